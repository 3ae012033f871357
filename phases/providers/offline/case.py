"""The request's view as plain values. Every member may be missing or odd: then it is empty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

Json = dict[str, Any]

MOST_CHARACTERS = 400_000
"""Characters of all observations that are looked at; the first ones."""


@dataclass(frozen=True)
class Observation:
    """A block of the report or an excerpt of a log. `source`: report, log or observation."""

    id: str
    artifact: str
    source: str
    first_line: int
    text: str


@dataclass(frozen=True)
class CatalogFile:
    """A file of the source tree, as catalogued."""

    path: str
    role: str
    lines: int
    size: int


@dataclass(frozen=True)
class Column:
    """A column, as catalogued."""

    name: str
    type: str
    key: bool


@dataclass(frozen=True)
class Table:
    """A table of a database, as catalogued. `references`: (column, table, its column)."""

    database: str
    name: str
    rows: int
    columns: tuple[Column, ...]
    references: tuple[tuple[str, str, str], ...]


class Case:
    """What the phases read; built from a view whose labels are resolved."""

    def __init__(self, view: Json) -> None:
        self.view = view

    @cached_property
    def sources(self) -> Json:
        return _dict(self.view.get("sources"))

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Kind of each artefact by its ID."""
        return {
            _str(item.get("id")): _str(item.get("kind"))
            for item in dicts(self.sources.get("artifacts"))
        }

    @cached_property
    def observations(self) -> list[Observation]:
        found, left = [], MOST_CHARACTERS
        for item in dicts(self.sources.get("observations")):
            name, text = _str(item.get("id")), _str(item.get("text"))[: max(0, left)]
            left -= len(text)
            artifact = _str(item.get("artifact"))
            kind = self.kinds.get(artifact) or _str(item.get("kind"))
            source = "log" if "log" in kind else "report"
            if name and text:
                first = _int(item.get("first_line"), 1)
                found.append(Observation(name, artifact, source, first, text))
        return found

    @cached_property
    def report(self) -> list[Observation]:
        """Blocks of the report, and observations that a person added."""
        return [item for item in self.observations if item.source == "report"]

    @cached_property
    def logs(self) -> list[Observation]:
        return [item for item in self.observations if item.source == "log"]

    @cached_property
    def facts(self) -> list[Json]:
        return [item for item in dicts(self.sources.get("facts")) if _str(item.get("id"))]

    @cached_property
    def entities(self) -> list[Json]:
        return [item for item in dicts(self.sources.get("entities")) if _str(item.get("id"))]

    @cached_property
    def interpretation(self) -> Json:
        return _dict(self.view.get("interpretation"))

    @cached_property
    def catalogs(self) -> Json:
        return _dict(self.view.get("catalogs"))

    @cached_property
    def files(self) -> list[CatalogFile]:
        """Files of the catalog and those that evidence names: a catalog is bounded."""
        listed = {
            _str(item.get("path")): item
            for item in [
                *self._files_of_evidence, *dicts(_dict(self.catalogs.get("files")).get("items")),
            ]
        }  # fmt: skip
        return [
            CatalogFile(
                _str(item.get("path")), _str(item.get("role")),
                _int(item.get("lines")), _int(item.get("size")),
            )
            for item in listed.values()
            if _str(item.get("path"))
        ]  # fmt: skip

    @cached_property
    def _files_of_evidence(self) -> list[Json]:
        found: dict[str, Json] = {}
        for item in self.evidence:
            result = _dict(item.get("result"))
            for entry in [*dicts(result.get("files")), _dict(result.get("file"))]:
                path = _str(entry.get("path"))
                found.setdefault(path, {"path": path, **_dict(entry.get("metadata"))})
        return list(found.values())

    @cached_property
    def file(self) -> dict[str, CatalogFile]:
        return {item.path: item for item in self.files}

    @cached_property
    def tables(self) -> list[Table]:
        return [
            _table(_str(database.get("artifact")), table)
            for database in dicts(self.catalogs.get("databases"))
            for table in dicts(database.get("tables"))
            if _str(table.get("name"))
        ]

    @cached_property
    def log_names(self) -> list[str]:
        """IDs of the logs."""
        listed = [_str(item.get("artifact")) for item in dicts(self.catalogs.get("logs"))]
        return [name for name in listed if name] or [
            name for name, kind in self.kinds.items() if kind == "log"
        ]

    @cached_property
    def evidence(self) -> list[Json]:
        """Evidence documents, refusals left out."""
        return [
            item for item in dicts(self.view.get("evidence"))
            if _str(item.get("id")) and "refused" not in item
        ]  # fmt: skip

    @cached_property
    def refused(self) -> list[Json]:
        return [
            _dict(item.get("refused")) for item in dicts(self.view.get("evidence"))
            if "refused" in item
        ]  # fmt: skip

    @cached_property
    def hypotheses(self) -> list[Json]:
        return [item for item in dicts(self.view.get("hypotheses")) if _str(item.get("id"))]

    @cached_property
    def tools(self) -> dict[str, Json]:
        """Argument schemas of the tools that may be asked for, by name."""
        return {
            _str(item.get("name")): _dict(item.get("arguments"))
            for item in dicts(self.view.get("tools"))
        }

    def left(self, name: str, default: int) -> int:
        """Return what is left of a budget."""
        return _int(_dict(_dict(self.view.get("budget")).get("left")).get(name), default)

    @cached_property
    def actions_per_step(self) -> int:
        return max(1, min(4, _int(_dict(self.view.get("policy")).get("actions_per_step"), 4)))


def _table(database: str, item: Json) -> Table:
    return Table(
        database,
        _str(item.get("name")),
        _int(item.get("rows")),
        tuple(
            Column(_str(c.get("name")), _str(c.get("type")), bool(c.get("key")))
            for c in dicts(item.get("columns"))
            if _str(c.get("name"))
        ),
        tuple(
            (_first(r, "column", "columns"), _str(r.get("table")), _first(r, "to", "targets"))
            for r in dicts(item.get("references"))
        ),
    )


def _first(item: Json, *names: str) -> str:
    """Return a name given alone or as the first of a list."""
    for name in names:
        value = item.get(name)
        if found := _str(value) or next(iter(strings(value)), ""):
            return found
    return ""


def dicts(value: Any) -> list[Json]:
    """Return the objects of a list; nothing of anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def strings(value: Any) -> list[str]:
    """Return the strings of a list; nothing of anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _str(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _int(value: Any, default: int = 0) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


as_dict, as_str, as_int = _dict, _str, _int
