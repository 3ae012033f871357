"""Entity resolution: what observations name, other spellings, and what of the catalogs is meant."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from phases.providers.offline.case import Case, Json
from phases.providers.offline.clues import Clues
from phases.providers.offline.limits import distinct, line
from phases.providers.offline.mentions import Mention
from phases.providers.offline.words import stem, stems

MOST = 80
_ORDER = ("error", "file", "symbol", "table", "column", "identifier", "package", "command",
          "configuration", "component", "value", "moment", "other")  # fmt: skip
_MEANING = {
    "error": "an error that was raised or logged",
    "file": "a file that is named",
    "symbol": "a name in code",
    "identifier": "a code that names one thing of the business",
    "package": "software and its version",
    "command": "a command that was run",
    "configuration": "an option or setting",
    "value": "an amount or measure",
    "moment": "a point in time",
    "table": "a table of the database that the report's words mean",
    "column": "a column of the database that the report's words mean",
    "component": "a part of the system that a stack trace names",
}


@dataclass
class _Found:
    """An entity being put together."""

    name: str
    kind: str
    spellings: list[str] = field(default_factory=list)
    observations: list[str] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)
    in_report: int = 0


def answer(case: Case) -> Json:
    """Return the answer of entity resolution."""
    clues = Clues(case)
    found = [*_mentioned(clues), *_functions(clues), *_tables(clues)]
    found.sort(key=lambda f: (-min(f.in_report, 1), _ORDER.index(f.kind), -len(f.observations)))
    return {
        "entities": [_entity(item) for item in found[:MOST]],
        "unresolved": _unresolved(found)[:40],
        "information_needed": [],
    }


def _mentioned(clues: Clues) -> list[_Found]:
    grouped: dict[tuple[str, str], _Found] = {}
    for item in clues.case.observations:
        for mention in clues.mentions[item.id]:
            key = (mention.kind, _key(mention))
            found = grouped.setdefault(key, _Found(mention.name, mention.kind))
            found.spellings.append(mention.name)
            found.observations.append(item.id)
            found.in_report += item.source == "report"
            if not found.candidates:
                found.candidates = _candidates(clues, mention)
    return list(grouped.values())


def _key(mention: Mention) -> str:
    """Spellings of one thing share a key: `a.b()` and `b`, upper and lower case, but not codes."""
    if mention.kind in ("identifier", "value", "moment", "command", "package"):
        return mention.name
    if mention.kind == "error":
        return mention.name.rpartition(".")[2]
    return mention.name.lower()


def _candidates(clues: Clues, mention: Mention) -> list[str]:
    """Return what a mention may mean in the catalogs, best first."""
    catalog, name = clues.catalog, mention.name
    if mention.kind == "file":
        return catalog.by_suffix(name)[:5]
    if mention.kind not in ("symbol", "configuration"):
        return []
    last = name.rpartition(".")[2]
    tables = [t.name for t in catalog.tables_named(last)]
    columns = [f"{t.name}.{c.name}" for t, c in catalog.columns_named(last)]
    files = catalog.modules(name) if "." in name else []
    return distinct([*tables, *columns, *files, *catalog.named_like(last)], 8)


def _functions(clues: Clues) -> list[_Found]:
    """Functions and files of stack frames that are in the tree."""
    grouped: dict[str, _Found] = {}
    for linked in clues.frames:
        if linked.path:
            name = linked.frame.name or linked.frame.path
            found = grouped.setdefault(f"{name} {linked.path}", _Found(name, "component"))
            found.candidates = [linked.path]
            found.observations.append(linked.frame.observation)
            found.spellings.append(name)
    return list(grouped.values())


def _tables(clues: Clues) -> list[_Found]:
    """Tables and columns whose name is a word of the report."""
    where: dict[str, list[str]] = defaultdict(list)
    for item in clues.case.report:
        for word in dict.fromkeys(stems(item.text)):
            where[word].append(item.id)
    found = []
    for table in clues.case.tables:
        words = list(dict.fromkeys(stems(table.name)))
        places = [name for word in words for name in where.get(word, [])]
        if words and all(word in where for word in words):
            found.append(_Found(table.name, "table", [], distinct(places), [table.name], 1))
        for column in table.columns:
            parts = [stem(w) for w in dict.fromkeys(stems(column.name))]
            if len(parts) > 1 and all(part in where for part in parts):
                own = distinct(name for part in parts for name in where[part])
                spot = f"{table.name}.{column.name}"
                found.append(_Found(spot, "column", [column.name], own, [spot], 1))
    return found[:30]


def _entity(item: _Found) -> Json:
    others = [line(s) for s in distinct(item.spellings, 21) if s != item.name]
    return {
        "name": line(item.name),
        "kind": item.kind,
        "also_written": others[:20],
        "meaning": _MEANING.get(item.kind, "something that is named"),
        "observations": distinct(item.observations),
        "candidates": [line(c) for c in item.candidates[:20]],
    }


def _unresolved(found: list[_Found]) -> list[Json]:
    """Files and names in code that nothing in the catalogs fits by name."""
    return [
        {
            "text": line(item.name),
            "why": "no catalogued file, table or column has this name",
            "observations": distinct(item.observations),
        }
        for item in found
        if item.kind in ("file", "symbol") and not item.candidates
    ]
