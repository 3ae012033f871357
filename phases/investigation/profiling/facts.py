"""The facts about a column that all checks start from, gathered in two statements a column."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from phases.investigation.actions.tables import Column, Reader, quoted, text_of

MOST_VALUES = 50_000
"""Distinct values of a column that are looked at one by one."""

LONGEST = 2_000
"""Characters of a value that checks on values look at; longer ones they pass over."""

STEPS = 600_000_000
"""SQLite instructions that one profile may cost; the checks that remain then are named as left
out.
"""


@dataclass(frozen=True)
class Finding:
    """Something odd. `where` is an SQL condition for its rows, `rows` how many they are.

    `details` are values that say more (variants, targets), JSON.
    """

    kind: str
    columns: list[str]
    says: str
    where: str
    rows: int
    details: list[Any]


@dataclass(frozen=True)
class Facts:
    """A column's values. `types`: storage class → rows. `values`: (value, rows) for each distinct
    value that is not null, by value; None if there are more than MOST_VALUES.
    """

    column: Column
    types: dict[str, int]
    low: Any
    high: Any
    longest: int
    values: list[tuple[Any, int]] | None
    distinct: int

    @property
    def name(self) -> str:
        """The column's name."""
        return self.column.name

    @property
    def sql(self) -> str:
        """The column's name as it stands in SQL."""
        return quoted(self.column.name)

    @property
    def rows(self) -> int:
        """All rows."""
        return sum(self.types.values())

    @property
    def present(self) -> int:
        """Rows that are not null."""
        return self.rows - self.types.get("null", 0)

    @cached_property
    def texts(self) -> list[tuple[str, int]]:
        """The distinct texts with their rows; cut and undecodable ones left out."""
        return [(value, count) for value, count in self.values or () if isinstance(value, str)]

    @cached_property
    def numeric(self) -> bool:
        """Whether all values are numbers."""
        return bool(self.present) and set(self.types) <= {"integer", "real", "null"}

    @cached_property
    def temporal(self) -> bool:
        """Whether most values are dates or times written as text."""
        dates = sum(count for value, count in self.texts if _is_date(value))
        return bool(self.texts) and dates >= 0.9 * sum(count for _, count in self.texts)


def _is_date(text: str) -> bool:
    return len(text) >= 8 and text[:4].isdigit() and text[4] in "-/" and text[5:7].isdigit()


def gather(reader: Reader, table: str, column: Column) -> Facts:
    """Return the facts about one column."""
    name, source = quoted(column.name), quoted(table)
    types = reader.rows(
        f"SELECT typeof({name}), count(*), min({name}), max({name}), max(length({name})) "
        f"FROM {source} GROUP BY 1 ORDER BY 1",
        value=80,
    )
    counts = {text_of(row[0]): int(row[1]) for row in types}
    values = reader.rows(
        f"SELECT {name}, count(*) FROM {source} WHERE {name} IS NOT NULL "
        f"GROUP BY {name} COLLATE BINARY ORDER BY 1 COLLATE BINARY",
        rows=MOST_VALUES + 1,
        value=LONGEST,
    )
    complete = len(values) <= MOST_VALUES
    if not complete and "count" in reader.stopped:
        reader.stopped.remove("count")  # known here, and said by `values`
    present = [row for row in types if text_of(row[0]) != "null"]
    return Facts(
        column,
        counts,
        low=present[0][2] if present else None,
        high=present[-1][3] if present else None,
        longest=max((int(row[4]) for row in present if row[4] is not None), default=0),
        values=[(row[0], int(row[1])) for row in values] if complete else None,
        distinct=len(values) if complete else _distinct(reader, name, source),
    )


def _distinct(reader: Reader, name: str, source: str) -> int:
    rows = reader.rows(f"SELECT count(DISTINCT {name} COLLATE BINARY) FROM {source}", rows=1)
    return int(rows[0][0]) if rows else MOST_VALUES


def literal(value: Any) -> str:
    """Return a value as an SQL literal; "" for one that was cut off."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        if "\0" in value:
            return f"CAST(x'{value.encode().hex()}' AS TEXT)"
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, tuple):
        form, part, total = value
        if form == "text" or len(part) != total:
            return ""
        plain = f"x'{part.hex()}'"
        return plain if form == "blob" else f"CAST({plain} AS TEXT)"
    return {"inf": "9e999", "-inf": "-9e999"}.get(repr(value), repr(value))


def one_of(name: str, values: list[Any]) -> str:
    """Return the condition that a column holds one of these values, compared exactly."""
    literals = [text for text in map(literal, values) if text]
    return f"{name} COLLATE BINARY IN ({', '.join(literals)})" if literals else ""


def few(rows: int, share: float = 0.01, least: int = 3) -> int:
    """Return how many of `rows` still count as exceptions."""
    return max(least, int(rows * share))
