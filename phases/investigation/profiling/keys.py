"""Checks on keys: columns that are nearly unique, declared and implied references, missing
children.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from phases.investigation.actions.tables import Column, Reader, Table, quoted, text_of
from phases.investigation.profiling.facts import Facts, Finding, few, one_of

_COMMON_NAMES = frozenset({"id", "name", "code", "position", "created", "createdat", "updatedat"})

MOST_TARGETS = 60
"""Column pairs that are compared by value."""


class Target(NamedTuple):
    """A column that another may refer to. `key`: in a declared key; `unique`: alone one."""

    table: str
    column: Column
    key: bool
    unique: bool
    rows: int


def near_unique(
    reader: Reader, table: str, facts: Facts, keys: list[list[str]]
) -> Iterator[Finding]:
    """A column whose values differ in nearly all rows, but not in all, and need not by
    declaration.
    """
    extra = facts.present - facts.distinct
    declared = [facts.name] in keys or "real" in facts.types
    if declared or facts.present < 10 or not 0 < extra <= few(facts.distinct, 0.02, 1):
        return
    if facts.temporal and facts.longest > 10:
        return  # two things may well happen in the same second
    rows = reader.rows(
        f"SELECT {facts.sql}, count(*) AS n FROM {quoted(table)} WHERE {facts.sql} IS NOT NULL "
        f"GROUP BY {facts.sql} COLLATE BINARY HAVING n > 1 ORDER BY n DESC, 1 LIMIT 20",
        value=2000,
    )
    where = one_of(facts.sql, [row[0] for row in rows])
    if where:
        says = (
            f"is different in all rows but these ({facts.distinct} values in {facts.present} rows)"
        )
        yield Finding("near_unique", [facts.name], says, where, sum(int(r[1]) for r in rows), [])


def declared_references(reader: Reader, table: Table) -> Iterator[Finding]:
    """Rows that violate a declared foreign key (PRAGMA foreign_key_check)."""
    if table.without_rowid:
        return
    rows = reader.rows(f"PRAGMA foreign_key_check({quoted(table.name)})", rows=1000)
    found: dict[tuple[str, int], list[int]] = {}
    for row in rows:
        if row[1] is not None:
            found.setdefault((text_of(row[2]), int(row[3])), []).append(int(row[1]))
    for (target, number), ids in sorted(found.items()):
        columns = _foreign_columns(reader, table.name, number)
        says = f"refers to {target}, which has no such row"
        where = f"rowid IN ({', '.join(map(str, sorted(ids)[:20]))})"
        yield Finding("foreign_key_violation", columns, says, where, len(ids), [target])


def _foreign_columns(reader: Reader, table: str, number: int) -> list[str]:
    rows = reader.rows(f"PRAGMA foreign_key_list({quoted(table)})")
    return [text_of(row[3]) for row in sorted(rows, key=lambda r: r[:2]) if row[0] == number]


def targets(reader: Reader, tables: list[Table], table: str) -> list[Target]:
    """Return the columns of other tables."""
    found: list[Target] = []
    for other in tables:
        if other.kind != "table" or other.virtual or other.name == table:
            continue
        keys = reader.unique_keys(other.name)
        alone = {key[0] for key in keys if len(key) == 1}
        parts = {name for key in keys for name in key}
        rows = reader.count(other.name) or 0
        found += [
            Target(other.name, column, column.name in parts, column.name in alone, rows)
            for column in reader.columns(other.name)
        ]
    return found


def implied_references(
    reader: Reader, table: str, facts: Facts, among: list[Target], declared: set[tuple[str, str]]
) -> Iterator[Finding]:
    """Values that refer, by name or by being nearly all there, to a key that lacks some of them."""
    compared = 0
    for target in among:
        named = refers_by_name(facts.name, target)
        by_value = (
            target.key and bool(facts.texts) and not facts.temporal and "TEXT" in _kind(target)
        )
        if (facts.name, target.table) in declared or target.rows == 0 or not (named or by_value):
            continue
        compared += 1
        if compared > MOST_TARGETS:
            return
        yield from _missing(reader, table, facts, target, named)
        if named and not target.unique:
            yield from _several(reader, table, facts, target)


def _kind(target: Target) -> str:
    upper = target.column.declared.upper()
    return "TEXT" if not upper or "CHAR" in upper or "TEXT" in upper else upper


def refers_by_name(name: str, target: Target) -> bool:
    """Tell whether a column's name means a target: `plan_code` or `planCode` → plan.code, the same
    name.
    """
    own = name.replace("_", "").lower()
    column = target.column.name.replace("_", "").lower()
    table = target.table.replace("_", "").lower()
    singular = {
        table,
        table.removesuffix("s"),
        table.removesuffix("es"),
        table.removesuffix("ies") + "y",
    }
    if own in {stem + column for stem in singular} or (own in singular and target.unique):
        return True
    return own == column and target.key and own not in _COMMON_NAMES


def _missing(
    reader: Reader, table: str, facts: Facts, target: Target, named: bool
) -> Iterator[Finding]:
    other, column = quoted(target.table), quoted(target.column.name)
    where = (
        f"{facts.sql} IS NOT NULL AND {facts.sql} NOT IN "
        f"(SELECT {column} FROM {other} WHERE {column} IS NOT NULL)"
    )
    rows = reader.rows(f"SELECT count(*) FROM {quoted(table)} WHERE {where}", rows=1)
    missing = int(rows[0][0]) if rows else 0
    most = facts.present // 2 if named and target.unique else few(facts.present, 0.05, 1)
    if 0 < missing <= most and missing < facts.present:
        how = "by its name" if named else "as nearly all its values are there"
        key = f"{target.table}.{target.column.name}"
        says = f"seems to refer to {key} ({how}), which lacks these values"
        yield Finding(
            "reference_without_target", [facts.name], says, where, missing, [target.table]
        )


def _several(reader: Reader, table: str, facts: Facts, target: Target) -> Iterator[Finding]:
    """A reference by one column of a key, where its value alone means several rows."""
    other, column = quoted(target.table), quoted(target.column.name)
    rows = reader.rows(
        f"SELECT {column}, count(*) AS n FROM {other} "
        f"WHERE {column} IN (SELECT {facts.sql} FROM {quoted(table)}) "
        f"GROUP BY 1 HAVING n > 1 ORDER BY n DESC, 1 LIMIT 1000",
        value=2000,
    )
    if not 0 < len(rows) <= few(facts.distinct, 0.02, 1):
        return
    where = one_of(facts.sql, [row[0] for row in rows[:20]])
    if where:
        says = f"has values that mean several rows of {target.table} by {target.column.name} alone"
        count = sum(n for v, n in facts.values or () if any(v == row[0] for row in rows))
        yield Finding("reference_to_several", [facts.name], says, where, count, [target.table])


def without_children(
    reader: Reader, table: str, rows: int, tables: list[Table]
) -> Iterator[Finding]:
    """Rows of this table to which no row of a referring table belongs, where nearly all have
    some.
    """
    for other in tables:
        if other.kind != "table" or other.virtual or other.name == table:
            continue
        for reference in reader.foreign_keys(other.name):
            columns, wanted = reference["columns"], reference["targets"]
            if reference["table"].lower() != table.lower() or len(columns) != 1 or len(wanted) != 1:
                continue
            child, key = quoted(columns[0]), quoted(wanted[0])
            where = (
                f"{key} NOT IN (SELECT {child} FROM {quoted(other.name)} WHERE {child} IS NOT NULL)"
            )
            count = reader.rows(f"SELECT count(*) FROM {quoted(table)} WHERE {where}", rows=1)
            lonely = int(count[0][0]) if count else 0
            if 0 < lonely <= few(rows, 0.1, 1) and lonely < rows:
                says = f"has no row in {other.name}, where nearly all others have"
                yield Finding("without_children", [wanted[0]], says, where, lonely, [other.name])


_COUNT = ("count", "total", "number", "num", "rows", "items", "size", "quantity", "length")
_OFFSET = ("offset", "skip", "start", "position", "cursor", "last", "limit", "page", "index")


def equal_counts(reader: Reader, table: str, all_facts: list[Facts]) -> Iterator[Finding]:
    """Rows whose count equals an offset beside it: what a page's total looks like if it is
    wrong.
    """
    numbers = [f for f in all_facts if f.numeric and f.distinct > 1]
    pairs: list[tuple[Any, Any]] = [
        (one, two) for one in numbers for two in numbers
        if one is not two and _means(one.name, _COUNT) and _means(two.name, _OFFSET)
    ]  # fmt: skip
    for one, two in pairs[:20]:
        where = f"{one.sql} = {two.sql} AND {one.sql} > 1"
        rows = reader.rows(f"SELECT count(*) FROM {quoted(table)} WHERE {where}", rows=1)
        equal = int(rows[0][0]) if rows else 0
        if 0 < equal <= few(min(one.present, two.present), 0.1):
            yield Finding(
                "count_equals_offset",
                [one.name, two.name],
                "are equal in these rows",
                where,
                equal,
                [],
            )


def _means(name: str, words: tuple[str, ...]) -> bool:
    return any(word in name.lower() for word in words)
