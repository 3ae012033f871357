"""What to look at next, the way a person goes about it; each look at most once.

Everything is derived from the request: what was looked at is in its evidence and refusals, so the
plan is recomputed each time and goes on where the last step stopped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from phases.providers.offline.case import Json, as_dict
from phases.providers.offline.clues import Clues, Linked
from phases.providers.offline.corpus import Corpus
from phases.providers.offline.data import (
    OF_KEYS,
    OF_VALUES,
    TELLING,
    lookup,
    odd_rows,
    related_tables,
    reported_keys,
    sharing_column,
    ties,
)
from phases.providers.offline.deciding import named
from phases.providers.offline.ranking import Ranker
from phases.providers.offline.signals import PACKAGING
from phases.providers.offline.words import STOP

READ = 5
TIES, KEPT_FOR_CODE = 3, 12
"""Questions that tie odd rows to the report, and looks that must be left then."""

SMALL, READ_OF_SMALL = 60_000, 12
"""Characters of source up to which a program is small, and files of it that are read."""
"""Candidate files that are read, at most."""
WHOLE = 34_000
"""Bytes of a file that is read whole; of a larger one the surroundings of hits are."""
_DEFINES = r"(?i)\b(def|function|class|async)\s+"
"""Start of the expression for definitions; what follows is part of the name."""

AROUND = 100
"""Lines of the grid on which a large file is read."""
MARGIN = 20
"""Lines before and after a cell of the grid."""
ENDS = 80
"""Lines read on where the most likely functions are cut off."""


@dataclass(frozen=True)
class Look:
    """An action worth asking for, and what its result will decide. `kind`: code, data or place."""

    name: str
    arguments: Json
    purpose: str
    kind: str = "code"


def same(one: Look, two: Look) -> bool:
    """Tell whether two looks would show the same."""
    return (one.name, one.arguments) == (two.name, two.arguments)


class Planner:
    """Plans the looks of one case."""

    def __init__(self, clues: Clues, corpus: Corpus, ranker: Ranker) -> None:
        self.clues = clues
        self.corpus = corpus
        self.ranker = ranker
        self.case = clues.case

    def next(self, most: int) -> list[Look]:
        """Return the next looks, at most `most`; none when there is nothing left worth a look."""
        most = min(most, self.case.left("actions", 40))
        found: list[Look] = []
        for stage in (
            self._first,
            self._tie,
            self._trace_data,
            self._read,
            self._inwards,
            self._acting,
            self._ends,
        ):
            for look in stage():
                fitted = self._fitted(look)
                if fitted and not any(same(fitted, x) for x in found) and not self._done(fitted):
                    found.append(fitted)
                if len(found) >= most:
                    return found[:most]
            if found:
                return found
        return found

    def _done(self, look: Look) -> bool:
        return self.corpus.done(look.name, look.arguments)

    def _fitted(self, look: Look) -> Look | None:
        """Return a look within the tool's schema and the budget of characters; None if it cannot
        be asked for.
        """
        schema = self.case.tools.get(look.name)
        if schema is None:
            return None
        properties = as_dict(schema.get("properties"))
        arguments = {k: v for k, v in look.arguments.items() if k in properties or not properties}
        left = self.case.left("evidence_characters", 400_000)
        if left < 3_000:
            return None
        if "characters" in arguments:
            high = as_dict(properties.get("characters")).get("maximum", 40_000)
            arguments["characters"] = max(1_000, min(arguments["characters"], high, left // 2))
        return Look(look.name, arguments, look.purpose, look.kind)

    # Stages ---------------------------------------------------------------------------------

    def _first(self) -> Iterator[Look]:
        """What the observations alone suggest; later stages depend on what these looks show."""
        yield from self._search()
        yield from self._follow()
        yield from self._named()
        yield from self._data()

    def _search(self) -> Iterator[Look]:
        """First the report's own words, in several cuts; and what the databases hold."""
        for name in ("report", "title", "names", "prose", "difference"):
            if query := self.clues.queries.get(name):
                yield _ranked(query, "source", f"which files speak of the report's words ({name})")
        if query := self.clues.queries.get("report"):
            yield _ranked(query, "config", "whether settings or packaging speak of it", limit=10)
        for database in dict.fromkeys(table.database for table in self.case.tables):
            yield Look(
                "describe_database", {"database": database},
                "which tables, keys and references there are", "data",
            )  # fmt: skip

    def _follow(self) -> Iterator[Look]:
        """Frames and errors of the report: what stands there, who writes the text."""
        for linked in self._own_frames()[:4]:
            first = max(1, linked.frame.line - 25)
            yield Look(
                "read_lines",
                {"path": linked.path, "first": first, "last": linked.frame.line + 25},
                f"what happens at line {linked.frame.line}, which a stack trace names",
                "place",
            )
        for text in self.clues.messages[:2]:
            yield Look(
                "search_code", {"query": text, "mode": "literal", "limit": 12},
                "which code writes the error's text",
            )  # fmt: skip
        for text in self.clues.printed:
            yield Look(
                "search_code", {"query": text, "mode": "literal", "limit": 12},
                "which code writes what was printed",
            )  # fmt: skip
        if self.clues.missing_modules or self.clues.lacks_files:
            for path in self._packaging():
                yield Look(
                    "read_lines", {"path": path, "first": 1, "characters": 12_000},
                    "which packages are declared", "place",
                )  # fmt: skip

    def _named(self) -> Iterator[Look]:
        """Names of the report: where they are defined, what is named after them, who uses them."""
        for name in self._names()[:5]:
            yield Look(
                "find_symbol", {"name": name, "lines": 40, "limit": 8},
                f"where {name} is defined",
            )  # fmt: skip
        for name in [n for n in self._names() if len(n) > 4][:2]:
            yield Look(
                "search_code",
                {"query": rf"{_DEFINES}\w*{re.escape(_last(name))}\w*", "mode": "regex",
                 "role": "source", "limit": 20, "context": 0},
                f"which functions are named after {name}",
            )  # fmt: skip
        for name in self._names()[:2]:
            yield Look(
                "find_references", {"name": _last(name), "limit": 40, "role": "source"},
                f"who uses {name}, and how rare it is",
            )  # fmt: skip

    def _packaging(self) -> list[str]:
        return [f.path for f in self.case.files if f.path in PACKAGING and f.size < 60_000]

    def _data(self) -> Iterator[Look]:
        """Tables that concern the report: what is odd in them, and the rows it names."""
        ranked = related_tables(self.clues)
        chosen = [t for score, t in ranked if score > 0 or len(ranked) <= 6]
        for table in chosen[:7]:
            yield Look(
                "profile_table", {"database": table.database, "table": table.name, "rows": 12},
                f"which rows of {table.name} are not like the others", "data",
            )  # fmt: skip
        for table in chosen[:6]:
            if sql := lookup(table, self.clues.codes):
                yield Look(
                    "query_database", {"database": table.database, "sql": sql},
                    f"the rows of {table.name} that the report names", "data",
                )  # fmt: skip
        if self.case.log_names:
            for code in self.clues.codes[:3]:
                yield Look(
                    "search_log", {"query": code, "context": 1, "limit": 20},
                    f"what the logs say about {code}", "data",
                )  # fmt: skip

    def _tie(self) -> Iterator[Look]:
        """Whether odd rows belong to what the report names, where the profile shows only some; the
        most telling first, and only while enough looks are left to read the code.
        """
        keys = reported_keys(self.clues, self.corpus)
        own = [f for f in self.corpus.findings if f.kind in OF_VALUES]
        own.sort(key=lambda f: -TELLING[f.kind])
        asked = [(f, tie) for f in own for tie in ties(f, keys)][:TIES]
        for finding, tie in asked if self.case.left("actions", 40) >= KEPT_FOR_CODE else ():
            yield Look(
                "query_database", {"database": finding.database, "sql": tie.sql},
                f"whether odd rows of {finding.table} belong to {tie.code}", "data",
            )  # fmt: skip

    def _trace_data(self) -> Iterator[Look]:
        """Code that handles the odd rows: the searches that only the data suggests."""
        for at, odd in enumerate(odd_rows(self.clues, self.corpus)[:2]):
            finding = odd.finding
            tables = [
                finding.table,
                *(t for c in finding.columns for t in sharing_column(self.clues, c)),
            ]
            words = sorted({*finding.columns, *tables})
            column = finding.columns[0] if finding.columns else ""
            if finding.kind in OF_KEYS and self.corpus.rest_of_key((column,)):
                yield Look(
                    "search_code",
                    {"query": looked_up_by(column),
                     "mode": "regex", "role": "source", "limit": 20, "context": 4},
                    f"which code looks rows up by {column} without the rest of its key", "data",
                )  # fmt: skip
            elif column and (odd.codes or at == 0) and _is_telling(column):
                yield Look(
                    "search_code",
                    {"query": named(column), "mode": "regex", "role": "source", "limit": 40,
                     "context": 3},
                    f"which code decides by {column}", "data",
                )  # fmt: skip
            yield _ranked(
                " ".join(words[:12]),
                "source",
                f"which code reads {finding.table} by {', '.join(finding.columns)}",
            )

    def _read(self) -> Iterator[Look]:
        """The most likely files, whole if they are small, else around what pointed at them."""
        likely = [
            p for p in self.ranker.places()
            if self.clues.catalog.role(p.path) in ("source", "config", "")
        ]  # fmt: skip
        size = sum(f.size for f in self.case.files if f.role == "source")
        most = READ_OF_SMALL if size <= SMALL else READ
        fresh = max(0, most - len(self._read_on_purpose()))
        for place in likely[:most]:
            known = place.path in self._read_on_purpose()
            if not known and fresh <= 0:
                continue
            fresh -= not known
            yield from self._reading(place.path)

    def _inwards(self) -> Iterator[Look]:
        """What the functions that the report names call by a word of its title."""
        for name, caller in self.ranker.structure.inner_names.items():
            yield Look(
                "find_symbol", {"name": name, "lines": 40, "limit": 8},
                f"what {name} does, which {caller.name} calls", "place",
            )  # fmt: skip

    def _acting(self) -> Iterator[Look]:
        """What functions call that logged something about a code of the report, in other files."""
        known = set(self.corpus.read)
        for definition in list(self.ranker.structure.acting_chains)[:6]:
            for name in self.ranker.structure.calls.modules_in(definition):
                for path in self.clues.catalog.named_like(name)[:1]:
                    file = self.case.file.get(path)
                    if path not in known and file and file.role == "source" and file.size <= WHOLE:
                        known.add(path)
                        yield from self._reading(path)

    def _ends(self) -> Iterator[Look]:
        """The rest of the most likely functions, where it is not known yet."""
        for at, place in enumerate(self.ranker.places()[:2]):
            file = self.case.file.get(place.path)
            known = self.corpus.lines(place.path)
            for _, item in place.functions[: 4 if at == 0 else 2]:
                cut_off = item.last in known and item.last + 1 not in known
                if cut_off and file is not None and item.last < file.lines:
                    last = min(file.lines, item.last + ENDS)
                    yield Look(
                        "read_lines",
                        {"path": place.path, "first": item.last + 1, "last": last},
                        f"how {item.qualified} goes on", "place",
                    )  # fmt: skip

    def _read_on_purpose(self) -> set[str]:
        """Return the files read as candidates: those of which more than a frame was read."""
        return {
            path for path in self.corpus.read
            if len(self.corpus.lines(path)) > 60 or self._is_short(path)
        }  # fmt: skip

    def _is_short(self, path: str) -> bool:
        file = self.case.file.get(path)
        return file is not None and len(self.corpus.lines(path)) >= file.lines

    def _reading(self, path: str) -> Iterator[Look]:
        file = self.case.file.get(path)
        why = "what the code of a likely place does"
        if file is None or file.size <= WHOLE or file.lines == 0:
            yield Look("read_lines", {"path": path, "first": 1, "characters": 40_000}, why, "place")
            return
        inside = Look(
            "search_code",
            {"query": self.clues.queries.get("report", ""), "mode": "ranked", "glob": path,
             "limit": 8, "context": 3},
            f"which part of {path} speaks of it", "place",
        )  # fmt: skip
        if inside.arguments["query"] and not self._done(inside):
            yield inside
            return  # where to read depends on what it shows
        for first, last in self._windows(path, file.lines):
            yield Look(
                "read_lines", {"path": path, "first": first, "last": last, "characters": 16_000},
                why, "place",
            )  # fmt: skip

    def _windows(self, path: str, lines: int) -> list[tuple[int, int]]:
        """Return up to three windows, on a fixed grid so that a new hit does not shift them."""
        votes: dict[int, float] = {}
        for line, weight in self._pointed(path):
            cell = (line - 1) // AROUND
            votes[cell] = votes.get(cell, 0.0) + weight
        best = sorted(votes, key=lambda cell: (-votes[cell], cell))[:3]
        return [
            (max(1, cell * AROUND - MARGIN + 1), min(lines, (cell + 1) * AROUND + MARGIN))
            for cell in sorted(best)
        ]

    def _asked(self, name: str) -> str:
        """Return the part of a dotted name to ask for: `Class.method` whole, as long as nothing
        says that there is no such definition; of other names the last part.
        """
        parts = name.split(".")
        owner = parts[-2] if len(parts) > 1 else ""
        qualified = ".".join(parts[-2:])
        missing = any(
            a == "find_symbol" and what == qualified for _, a, what in self.corpus.negatives
        )
        return qualified if owner[:1].isupper() and not missing else parts[-1]

    def _pointed(self, path: str) -> Iterator[tuple[int, float]]:
        """Yield (line, weight) of what points into a file: hits, names of the report, frames."""
        for ranking in self.corpus.rankings:
            own = [line for p, line in ranking.hits if p == path]
            for rank, line in enumerate(own[:6]):
                yield line, 1 / (1 + rank)
        named = {_last(name) for name in self.clues.symbols}
        for _, asked, definition in self.corpus.symbols:
            if definition.path == path and _last(asked) in named:
                yield definition.first, 1.0
        for uses in self.corpus.uses:
            for p, line, _ in uses.hits if uses.name.startswith(_DEFINES) else ():
                if p == path:
                    yield line, 0.6
        for framed in self.ranker.structure.framed:
            if framed.path == path:
                yield framed.line, 1.0

    def _own_frames(self) -> list[Linked]:
        own = [linked for linked in self.clues.frames if linked.path]
        return sorted(own, key=lambda x: (x.frame.depth, x.path, x.frame.line))

    def _names(self) -> list[str]:
        """Return names worth looking up: the report's, then those of frames in the tree."""
        named = [name for name in self.clues.symbols if len(name) > 3 and name.lower() not in STOP]
        framed = [x.frame.name for x in self._own_frames() if x.frame.name]
        if any(self.clues.catalog.role(x.path) == "built_copy" for x in self._own_frames()):
            named = [*framed[:4], *named]  # the only road from a built copy to its source
        last = [self._asked(name) for name in [*named, *framed]]
        return [name for name in dict.fromkeys(last) if len(name) > 3 and not name.startswith("__")]


def _is_telling(column: str) -> bool:
    """Tell a name that says what it means from `id`, `name` and the like, which are everywhere."""
    return len(column) > 4 and column.lower() not in ("value", "title", "label", "status", "count")


def looked_up_by(column: str) -> str:
    """Return the expression for lines that compare, join or group by a column."""
    name = rf"\b{re.escape(column)}\b"
    return (
        rf"(?i){name}\s*=[^=]|=\s*(\w+\.)?{name}|\b(using\s*\(|group by\s)[^()]*{name}"
        rf"|{name}\s+(in|like|is)\b|\[.{column}.\]\s*(==|in)"
    )


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _ranked(query: str, role: str, purpose: str, limit: int = 40) -> Look:
    arguments = {"query": query, "mode": "ranked", "role": role, "limit": limit, "context": 0,
                 "characters": 20_000}  # fmt: skip
    return Look("search_code", arguments, purpose)
