"""profile_table: what the values of a table are like, and which rows are not like the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledger.events import JsonObject
from phases.investigation.actions.base import (
    OFFSET,
    SIZE,
    Action,
    Page,
    Result,
    Tray,
    cut,
    limit_schema,
    number_schema,
    object_schema,
    text_schema,
)
from phases.investigation.actions.tables import (
    DATABASE,
    Reader,
    Table,
    check_table,
    database_entry,
    quoted,
)
from phases.investigation.profiling import keys, values
from phases.investigation.profiling.facts import STEPS, Facts, Finding, gather
from phases.investigation.snapshot import Snapshot
from phases.investigation.values import row_to_json, to_json

ORDER = (
    "foreign_key_violation", "mixed_types", "near_unique", "reference_to_several", "stray_blanks",
    "spelling_variants", "reference_without_target", "odd_shape", "empty_text", "zero_among_others",
    "count_equals_offset", "rare_value", "rare_null", "without_children",
)  # fmt: skip
"""Kinds of findings, the most telling first."""

_SMALL = 20
"""A table of so few rows is shown whole."""

_MOST_COLUMNS = 60
_WIDE = 12
"""Columns of a row that are shown whole; of wider tables the key and the odd columns are."""


class Profile:
    """One table being profiled. `left_out` names what the budget did not reach."""

    def __init__(self, reader: Reader, table: Table) -> None:
        self.reader = reader
        self.table = table
        columns = reader.columns(table.name)
        self.columns = columns[:_MOST_COLUMNS]
        self.keys = reader.unique_keys(table.name) if table.kind == "table" else []
        self.rows = reader.count(table.name)
        self.left_out = [column.name for column in columns[_MOST_COLUMNS:]]
        self.facts = [
            gather(reader, table.name, column)
            for column in self.columns
            if self._affordable(column.name)
        ]

    def _affordable(self, what: str) -> bool:
        if self.reader.steps < STEPS:
            return True
        self.left_out.append(what)
        return False

    def findings(self) -> list[Finding]:
        """Return everything odd, the most telling kinds first."""
        found: list[Finding] = []
        for what, check in self._checks():
            if self._affordable(what):
                found += [finding for finding in check if finding.where]
        return sorted(found, key=lambda f: (ORDER.index(f.kind), f.rows, f.columns, f.says))

    def _checks(self) -> Iterator[tuple[str, Iterator[Finding]]]:
        """Yield (name, findings) of each check; a check begins when its findings are asked for."""
        reader, name = self.reader, self.table.name
        for facts in self.facts:
            for check in values.CHECKS:
                yield check.__name__, check(facts)
            yield "near_unique", keys.near_unique(reader, name, facts, self.keys)
        yield "equal_counts", keys.equal_counts(reader, name, self.facts)
        if self.table.kind == "table":
            yield from self._reference_checks()

    def _reference_checks(self) -> Iterator[tuple[str, Iterator[Finding]]]:
        reader, name = self.reader, self.table.name
        tables = reader.tables()
        yield "declared_references", keys.declared_references(reader, self.table)
        among = keys.targets(reader, tables, name)
        declared = {
            (column, item["table"])
            for item in reader.foreign_keys(name)
            for column in item["columns"]
        }
        for facts in self.facts:
            yield (
                "implied_references",
                keys.implied_references(reader, name, facts, among, declared),
            )
        yield "without_children", keys.without_children(reader, name, self.rows or 0, tables)

    def key_names(self) -> list[str]:
        """Return the columns that tell rows apart; none for a view."""
        if self.keys:
            return self.keys[0]
        return [] if self.table.kind == "view" or self.table.without_rowid else ["rowid"]

    def show(self, finding: Finding, limit: int) -> JsonObject:
        """Return a finding with its first rows."""
        names = self._shown_columns(finding.columns)
        order = ", ".join(quoted(n) for n in dict.fromkeys([*finding.columns, *self.key_names()]))
        listed = ", ".join(map(quoted, names))
        head = f"SELECT {listed} FROM {quoted(self.table.name)} WHERE {finding.where}"
        rows = self.reader.rows(f"{head} ORDER BY {order} LIMIT {limit}", value=200)
        return {
            "kind": finding.kind, "table": self.table.name, "odd": finding.columns,
            "says": finding.says, "total": finding.rows, "where": cut(finding.where, 600),
            "details": finding.details, "columns": names, "rows": [row_to_json(r) for r in rows],
        }  # fmt: skip

    def _shown_columns(self, odd: list[str]) -> list[str]:
        ordinary = [column.name for column in self.columns]
        if len(ordinary) > _WIDE:
            ordinary = odd
        return list(dict.fromkeys([*self.key_names(), *ordinary]))

    def sample(self) -> JsonObject:
        """Return the whole of a small table, the first rows of another."""
        names = self._shown_columns([column.name for column in self.columns[:_WIDE]])
        limit = _SMALL if (self.rows or 0) <= _SMALL else 3
        order = ", ".join(map(quoted, self.key_names())) or "1"
        listed = ", ".join(map(quoted, names))
        rows = self.reader.rows(
            f"SELECT {listed} FROM {quoted(self.table.name)} ORDER BY {order} LIMIT {limit}",
            value=80,
        )
        return {
            "table": self.table.name, "columns": names, "rows": [row_to_json(row) for row in rows]
        }  # fmt: skip


def run(snapshot: Snapshot, arguments: JsonObject) -> Result:
    reader = Reader(snapshot, arguments["database"])
    table = next(t for t in reader.tables() if t.name == arguments["table"])
    profile = Profile(reader, table)
    findings = profile.findings()
    head = Tray(arguments["characters"] // 2)  # whatever a table has of columns, findings have room
    columns = _fitting(head, [_column(facts) for facts in profile.facts])
    sample = profile.sample()
    sample["rows"] = _fitting(head, sample["rows"])
    tray = Tray(arguments["characters"] - head.limit + max(0, head.left))
    for finding in findings[arguments["offset"] : arguments["offset"] + arguments["limit"]]:
        if not tray.add(profile.show(finding, arguments["rows"])):
            break
    return Result(
        {
            **database_entry(snapshot, "profile_table", reader.document, table=table.name),
            "rows": profile.rows, "unique": profile.keys, "columns": columns, "sample": sample,
            "findings": tray.items,
        },
        found=bool(profile.rows) or bool(findings),
        page=Page(arguments["offset"], arguments["limit"], len(tray.items), len(findings)),
        cut_off=_cut_off(profile, head.full or tray.full, arguments["characters"]),
        covered=_covered(profile),
        scope={"database": reader.document.artifact, "table": table.name},
        query={"table": table.name},
    )  # fmt: skip


def _fitting(tray: Tray, items: list[Any]) -> list[Any]:
    return [item for item in items if tray.add(item)]


def _cut_off(profile: Profile, full: bool, limit: int) -> tuple[str, int] | None:
    if profile.left_out or profile.reader.stopped:
        return (profile.reader.stopped or ["steps"])[0], STEPS
    return ("characters", limit) if full else None


def _covered(profile: Profile) -> JsonObject:
    return {
        "rows": profile.rows,
        "columns": len(profile.facts),
        "by_value": sum(facts.values is not None for facts in profile.facts),
        "left_out": sorted(set(profile.left_out))[:20],
    }


def _column(facts: Facts) -> JsonObject:
    return {
        "name": facts.name, "declared": facts.column.declared, "types": facts.types,
        "distinct": facts.distinct, "low": to_json(facts.low), "high": to_json(facts.high),
        "longest": facts.longest,
    }  # fmt: skip


ACTION = Action(
    name="profile_table",
    description=(
        "Profile one table: types, ranges and distinct values of each column, and the rows that "
        "are not like the others: duplicates in a nearly unique column, mixed types, stray "
        "blanks and spelling variants, odd shapes (letters a, digits 9), rare values, nulls and "
        "zeros, violated and implied references without a target, references that mean several "
        "rows, counts that equal an offset. Each finding shows rows with their keys and the SQL "
        "condition for all of them. Small tables are shown whole."
    ),
    arguments=object_schema(
        ["table"],
        table=text_schema("Name of a table or view.", 300),
        database=DATABASE,
        rows=number_schema("Rows shown of each finding.", 1, 50, 5),
        offset=OFFSET,
        limit=limit_schema(30, 100),
        characters=SIZE,
    ),
    run=run,
    check=check_table,
    limits={"steps": STEPS},
)
