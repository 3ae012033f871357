"""Replaces keys in the text cells of a database snapshot, row by row, keeping what they mean.

The same key becomes the same replacement everywhere in a database and two keys never become one, so
joins, groups and unique columns stay as they were; the length stays too. BLOBs are left alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from phases.intake.errors import IntakeError, shown
from phases.intake.limits import MAX_PLACES
from phases.intake.secrets import Span, key_spans, masked

_Row = tuple[Any, ...]
_BATCH = 2000
_ROWID_NAMES = ("rowid", "_rowid_", "oid")
_FULL_TEXT = ("fts3", "fts4", "fts5")


class Replacement(NamedTuple):
    """Keys of one kind replaced in a database: how many, and where at first."""

    kind: str
    found: int
    places: tuple[dict[str, object], ...]


class _Table(NamedTuple):
    name: str
    key: tuple[str, ...]  # quoted columns that identify a row
    columns: tuple[str, ...]  # that can hold text, by name
    paged: bool  # by rowid


class _Change(NamedTuple):
    key: _Row
    cells: dict[str, bytes]


class CellCleaner:
    """Cleans one open, writable snapshot; `path` is the original's, for messages."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path
        self._numbers: dict[bytes, int] = {}
        self._found: dict[str, list[dict[str, object]]] = {}
        self._counts: dict[str, int] = {}
        self._triggers: list[str] | None = None

    def clean(self) -> None:
        """Replace the keys in all text cells.

        Raises:
            IntakeError: if a row that holds a key cannot be changed.
        """
        self._connection.text_factory = bytes  # text that is no UTF-8 must come back as it is
        self._connection.execute("BEGIN")
        for table in list(self._tables()):
            later: list[_Change] = []
            for first, rows in self._batches(table):
                later += self._changes(table, first, rows)
                if table.paged:
                    self._apply(table, later)
            self._apply(table, later)
        if self._counts:
            self._restore()
        self._connection.execute("COMMIT")
        self._connection.text_factory = str

    def replacements(self) -> tuple[Replacement, ...]:
        """Return what was replaced, by kind."""
        return tuple(
            Replacement(kind, self._counts[kind], tuple(self._found[kind]))
            for kind in sorted(self._counts)
        )

    def _tables(self) -> Iterator[_Table]:
        sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name"
        for (name,) in self._connection.execute(sql).fetchall():
            table = name.decode("utf-8", "surrogateescape")
            info = self._connection.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
            columns = [
                (row[1].decode("utf-8", "surrogateescape"), row[5]) for row in info if not row[6]
            ]
            names = tuple(name for name, _ in columns)
            rowid = next((n for n in _ROWID_NAMES if n not in map(str.lower, names)), None)
            if rowid and self._has(table, rowid):
                yield _Table(table, (rowid,), names, True)
            else:
                keyed = sorted((place, name) for name, place in columns if place)
                key = tuple(_quoted(name) for _, name in keyed) or tuple(map(_quoted, names))
                yield _Table(table, key, names, False)

    def _has(self, table: str, column: str) -> bool:
        try:
            self._connection.execute(f"SELECT {column} FROM {_quoted(table)} LIMIT 0")
        except sqlite3.OperationalError:
            return False
        return True

    def _batches(self, table: _Table) -> Iterator[tuple[int, list[_Row]]]:
        cells = ", ".join(
            f"CASE typeof({q}) WHEN 'text' THEN {q} END" for q in map(_quoted, table.columns)
        )
        select = f"SELECT {', '.join(table.key)}, {cells} FROM {_quoted(table.name)}"
        if not table.paged:  # changed only after all was read: the key itself may change
            cursor, first = self._connection.execute(select), 1
            while rows := cursor.fetchmany(_BATCH):
                yield first, rows
                first += len(rows)
            return
        rowid = table.key[0]
        sql = f"{select} WHERE {rowid} >= ? ORDER BY {rowid} LIMIT {_BATCH}"
        start: int | None = -(2**63)
        while start is not None and (rows := self._connection.execute(sql, (start,)).fetchall()):
            yield 0, rows
            last = rows[-1][0]
            start = last + 1 if last < 2**63 - 1 else None

    def _changes(self, table: _Table, first: int, rows: list[_Row]) -> Iterator[_Change]:
        width = len(table.key)
        if not key_spans(b"\n".join(cell for row in rows for cell in row[width:] if cell)):
            return
        for number, row in enumerate(rows, first):
            where = row[0] if table.paged else number
            changed = {
                column: new
                for column, cell in zip(table.columns, row[width:], strict=True)
                if cell and (new := self._cell(cell, table, column, where)) != cell
            }
            if changed:
                yield _Change(row[:width], changed)

    def _apply(self, table: _Table, changes: list[_Change]) -> None:
        for change in changes:
            self._disarm()
            self._update(table, change)
        changes.clear()

    def _cell(self, cell: bytes, table: _Table, column: str, row: object) -> bytes:
        spans = key_spans(cell)
        for span in reversed(spans):
            value = cell[span.start : span.end]
            cell = cell[: span.start] + self._replacement(value, span) + cell[span.end :]
        for span in spans:
            if span.first:
                self._note(span.kind, {"table": table.name, "column": column, "row": row})
        return cell

    def _replacement(self, value: bytes, span: Span) -> bytes:
        number = self._numbers.setdefault(value, len(self._numbers) + 1)
        filled = masked(value, span)
        digits = str(number).encode()
        return filled[: -len(digits)] + digits if len(filled) > len(digits) else filled

    def _note(self, kind: str, place: dict[str, object]) -> None:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        places = self._found.setdefault(kind, [])
        if len(places) < MAX_PLACES:
            places.append(place)

    def _update(self, table: _Table, change: _Change) -> None:
        sets, values = [], []
        for column, cell in change.cells.items():
            form, value = _text(cell)
            sets.append(f"{_quoted(column)} = {form}")
            values.append(value)
        tests = []
        for column, key in zip(table.key, change.key, strict=True):
            tests.append(f"{column} IS ?")
            values.append(key)
            if isinstance(key, bytes):  # text or BLOB, both come as bytes
                form, value = _text(key)
                tests[-1] = f"({tests[-1]} OR {column} IS {form})"
                values.append(value)
        try:
            self._connection.execute(
                f"UPDATE {_quoted(table.name)} SET {', '.join(sets)} WHERE {' AND '.join(tests)}",
                values,
            )
        except sqlite3.Error as error:
            raise IntakeError(
                f"database {shown(self._path)}: a key in table {shown(table.name)} cannot be"
                f" replaced ({shown(str(error))}); remove it, or keep it with --keep-secrets"
            ) from None

    def _disarm(self) -> None:
        """Take the triggers out: a replacement is no change that the application made."""
        if self._triggers is not None:
            return
        rows = self._connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid"
        ).fetchall()
        self._triggers = [sql.decode("utf-8") for _, sql in rows]
        for name, _ in rows:
            self._connection.execute(f"DROP TRIGGER {_quoted(name.decode('utf-8'))}")

    def _restore(self) -> None:
        """Put the triggers back and rebuild what repeats the rows: full-text indexes, samples."""
        for sql in self._triggers or ():
            self._connection.execute(sql)
        rows = self._connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND rootpage = 0"
        ).fetchall()
        for name, sql in rows:
            if any(word in sql.decode("utf-8", "replace").lower() for word in _FULL_TEXT):
                self._rebuild(_quoted(name.decode("utf-8")))
        if self._has("sqlite_stat4", "sample"):
            self._connection.execute("DELETE FROM sqlite_stat4")

    def _rebuild(self, table: str) -> None:
        try:
            self._connection.execute(f"INSERT INTO {table}({table}) VALUES ('rebuild')")
        except sqlite3.Error:  # an index without contents of its own, or of an unknown module
            return


def _text(cell: bytes) -> tuple[str, object]:
    """Return how UTF-8 text is bound: as text if valid (a database may be UTF-16), else cast."""
    try:
        return "?", cell.decode("utf-8")
    except UnicodeDecodeError:
        return "CAST(? AS TEXT)", cell


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
