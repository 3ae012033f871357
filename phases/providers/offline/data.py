"""Databases: which tables concern the report, which rows are odd, and which of those matter."""

from __future__ import annotations

import re
from dataclasses import dataclass

from phases.providers.offline.case import Table
from phases.providers.offline.clues import Clues
from phases.providers.offline.corpus import Corpus, Finding, Rows
from phases.providers.offline.words import stems

TELLING = {
    "foreign_key_violation": 3.0,
    "mixed_types": 3.0,
    "near_unique": 3.0,
    "reference_to_several": 3.0,
    "stray_blanks": 2.5,
    "spelling_variants": 2.0,
    "reference_without_target": 2.0,
    "odd_shape": 1.5,
    "empty_text": 1.0,
    "zero_among_others": 1.0,
    "count_equals_offset": 1.0,
    "rare_null": 0.7,
    "rare_value": 0.7,
    "without_children": 0.7,
}
"""How much a kind of finding means by itself: broken keys more than rare values."""

OF_KEYS = frozenset({"near_unique", "reference_to_several"})
"""Kinds of findings that say a column alone is no key."""

OF_VALUES = frozenset(
    ["mixed_types", "stray_blanks", "spelling_variants", "odd_shape", "empty_text",
     "zero_among_others", "rare_null"]
)  # fmt: skip
"""Kinds of findings that say of single values that they are odd."""

_NAMED = 4.0
"""Rows that hold a code of the report are what the report is about."""

_KEY = re.compile(r"(_id|Id|ID|_no|_key)$")
"""Columns that name a thing the same way in every table; `id` alone is another thing in each."""

_EXCEPTIONS = 25
"""Rows up to which it says something that one of them belongs to the report."""

_SAID = 0.3
"""Share for odd rows whose odd value the report itself tells."""

_FEW = 5
"""Rows up to which a finding is an exception rather than a habit of the data."""


@dataclass(frozen=True)
class Odd:
    """A finding with how much it matters to the report. `codes`: of the report, in its rows or in
    rows that they belong to; `links`: (code, what ties it to them, such as `order_id=7`).
    """

    finding: Finding
    score: float
    codes: tuple[str, ...]
    links: tuple[tuple[str, str], ...] = ()


def related_tables(clues: Clues) -> list[tuple[float, Table]]:
    """Return tables by how much their names and columns share with the report, best first."""
    weights = clues.weights
    found = []
    names = {table.name for table in clues.case.tables}
    for table in clues.case.tables:
        name = sum(weights.get(stem, 0.0) for stem in dict.fromkeys(stems(table.name)))
        columns = dict.fromkeys(s for c in table.columns for s in stems(c.name))
        shared = sum(weights.get(stem, 0.0) for stem in columns)
        if is_shadow(table.name, names):
            continue
        found.append((round(3 * name + shared / (1 + len(columns)) ** 0.5, 6), table))
    return sorted(found, key=lambda item: (-item[0], item[1].database, item[1].name))


def is_shadow(name: str, names: set[str]) -> bool:
    """Tell the inner tables of SQLite's full-text search, which nobody writes to by hand."""
    stem, _, ending = name.rpartition("_")
    inner = ending in ("data", "idx", "config", "docsize", "content", "segments", "segdir", "stat")
    return inner and stem in names


def odd_rows(clues: Clues, corpus: Corpus) -> list[Odd]:
    """Return the odd rows that evidence shows, those that matter most first."""
    keys = reported_keys(clues, corpus)
    found = [_odd(clues, finding, keys, corpus) for finding in corpus.findings]
    return sorted(found, key=lambda o: (-o.score, o.finding.table, o.finding.columns))


def reported_keys(clues: Clues, corpus: Corpus) -> dict[tuple[str, object], str]:
    """Return (column, value) → code: the keys of rows that hold a code of the report, and so what
    other tables call the same thing. Codes that the report names only as working are left out.
    """
    found: dict[tuple[str, object], str] = {}
    for rows in corpus.queried:
        names = _keys_elsewhere(clues, rows)
        for row in rows.rows if names and len(rows.rows) <= _FEW else ():
            held = [code for code in held_codes(clues, (row,)) if code not in clues.contrast]
            for name in names if held and type(row[0]) is int else ():
                found.setdefault((name, row[0]), held[0])
    return found


def _keys_elsewhere(clues: Clues, rows: Rows) -> list[str]:
    """Return what other tables call the key of rows: as they declare it, else by the usual name:
    `order_id` as it is, `id` of orders too.
    """
    first = rows.names[0] if rows.names else ""
    if len(rows.tables) != 1 or first.lower() != "id":
        return [first] if _KEY.search(first) else []
    declared = [
        column for table in clues.case.tables for column, target, key in table.references
        if target == rows.tables[0] and key in (first, "")
    ]  # fmt: skip
    return list(dict.fromkeys([*declared, f"{rows.tables[0].lower().removesuffix('s')}_id"]))


def _linked(finding: Finding, keys: dict[tuple[str, object], str]) -> dict[str, str]:
    """Return code → link of the odd rows that belong to what the report names, by a key."""
    found: dict[str, str] = {}
    for row in finding.rows:
        for name, value in zip(finding.names, row, strict=False):
            if type(value) is int and (code := keys.get((name, value))):
                found.setdefault(code, f"{name}={value}")
    return found


@dataclass(frozen=True)
class Tie:
    """A question that ties odd rows to the report: do any of them belong to what it names?"""

    code: str
    link: str
    sql: str


def ties(finding: Finding, keys: dict[tuple[str, object], str]) -> list[Tie]:
    """Return the questions for a finding that shows only some of its rows, or too many to mean the
    reported one.
    """
    if finding.total <= min(_EXCEPTIONS, len(finding.rows)) or not finding.where:
        return []
    names = ", ".join(map(_quoted, finding.names[:12]))
    return [
        Tie(code, f"{name}={value}",
            f"SELECT {names} FROM {_quoted(finding.table)} WHERE ({finding.where}) "
            f"AND {_quoted(name)} = {value} ORDER BY 1 LIMIT 5")
        for (name, value), code in keys.items() if name in finding.names
    ][:3]  # fmt: skip


def _asked(finding: Finding, keys: dict[tuple[str, object], str], corpus: Corpus) -> dict[str, str]:
    """Return code → link of odd rows that a question found to belong to what the report names."""
    answered = {rows.sql: rows for rows in corpus.queried if rows.rows}
    return {tie.code: tie.link for tie in ties(finding, keys) if tie.sql in answered}


def _is_symptom(clues: Clues, finding: Finding) -> bool:
    """Tell whether the report itself says the odd value: then it is what the reporter sees, not why
    it came about.
    """
    if finding.kind not in ("odd_shape", "rare_value"):
        return False
    at = [finding.names.index(name) for name in finding.columns if name in finding.names]
    values = {row[n] for row in finding.rows for n in at if n < len(row)}
    said = " ".join(p.text for p in clues.pieces).lower()
    return bool(values) and all(
        isinstance(v, str) and len(v) > 3 and v not in clues.codes and v.lower() in said
        for v in values
    )


def _odd(
    clues: Clues, finding: Finding, keys: dict[tuple[str, object], str], corpus: Corpus
) -> Odd:
    at = [finding.names.index(name) for name in finding.columns if name in finding.names]
    odd = tuple(tuple(row[n] for n in at if n < len(row)) for row in finding.rows)
    quoted = set(clues.error_values)
    held = tuple(
        value for value in held_codes(clues, finding.rows)
        if value not in quoted or value in held_codes(clues, odd)
    )  # fmt: skip
    asked = _asked(finding, keys, corpus)
    linked = (_linked(finding, keys) if finding.total <= _EXCEPTIONS else {}) | asked
    words = dict.fromkeys([*stems(finding.table), *stems(" ".join(finding.columns))])
    shared = sum(clues.weights.get(stem, 0.0) for stem in words)
    score = TELLING.get(finding.kind, 0.5) + shared / 2
    if _is_symptom(clues, finding):
        return Odd(finding, round(_SAID * score, 6), ())
    if held or linked:
        score += _NAMED
    if finding.total > _FEW and not asked:
        score *= 0.6
    order = [*clues.codes, *clues.error_values]
    codes = sorted({*held, *linked}, key=order.index)
    links = tuple((code, linked[code]) for code in codes if code in linked and code not in held)
    return Odd(finding, round(score, 6), tuple(codes), links)


def held_codes(clues: Clues, rows: tuple[tuple[object, ...], ...]) -> tuple[str, ...]:
    """Return what rows hold of the report's codes (blanks at the ends aside) and of the values
    that errors quote (exactly: a blank may be the very fault).
    """
    values = {str(value) for row in rows for value in row if isinstance(value, str | int)}
    stripped = {value.strip() for value in values}
    named = [code for code in clues.codes if code in stripped]
    return tuple(named + [value for value in clues.error_values if value in values])


def matching_rows(clues: Clues, corpus: Corpus) -> list[tuple[Rows, tuple[str, ...]]]:
    """Return query results with rows that hold codes of the report."""
    found = [(rows, held_codes(clues, rows.rows)) for rows in corpus.queried]
    return [(rows, codes) for rows, codes in found if codes]


def row_key(names: tuple[str, ...], row: tuple[object, ...], wanted: tuple[str, ...]) -> str:
    """Return how to find a row again: its first column and the columns that are odd."""
    pairs = [(n, v) for n, v in zip(names, row, strict=False)]
    named = [pair for at, pair in enumerate(pairs) if at == 0 or pair[0] in wanted]
    return ", ".join(f"{name}={shown(value)}" for name, value in named[:6])


def shown(value: object) -> str:
    """Return a value as it is written in Python, cut if it is long: blanks at its ends show."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:59] + "…"


def lookup(table: Table, codes: list[str]) -> str:
    """Return the statement that finds the rows of a table that hold one of some codes; "" if no
    column can.
    """
    columns = [
        column.name for column in table.columns
        if "CHAR" in column.type.upper() or "TEXT" in column.type.upper() or not column.type
    ][:12]  # fmt: skip
    wanted = ", ".join("'" + code.replace("'", "''") + "'" for code in codes[:12])
    if not columns or not wanted:
        return ""
    where = " OR ".join(f"{_quoted(name)} IN ({wanted})" for name in columns)
    return f"SELECT * FROM {_quoted(table.name)} WHERE {where} ORDER BY 1 LIMIT 20"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def sharing_column(clues: Clues, column: str) -> list[str]:
    """Return the tables that have a column of this name: code that joins them joins by it."""
    return [t.name for t in clues.case.tables if any(c.name == column for c in t.columns)]
