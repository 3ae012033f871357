"""Cases as an SQLite file for people who ask in SQL, and for Datasette: the command `tables`."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from inspect import cleandoc
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ledger.files import new_file, temporary_name
from ledger.storage import translated
from projections.tables import FORMAT, TABLES, VIEWS, Row, rows
from projections.wording import counted
from tools.exits import AnswerIsNo, UserError
from tools.many import Broken, Cases, broken_json, over
from tools.output import print_json, say
from tools.selecting import SUFFIX, open_record

if TYPE_CHECKING:
    from sqlite_utils import Database

APPLICATION_ID = int.from_bytes(b"CSLT", "big")
"""In the head of the file: ours to replace."""

BATCH = 200
"""Rows of one table that are held before they are inserted."""


def make_tables(
    cases: Cases, output: Path, *, words: bool = True, force: bool = False, json: bool = False
) -> None:
    """Write the rows of cases into a new SQLite file, and say how many there are.

    Raises:
        UserError: the file is a case, a package or another program's.
        AnswerIsNo: one of several cases could not be read; the others are in the file.
        LedgerError: the only case could not be read, or the file not be written: there is none.
    """
    _refuse_others(output)
    counts = Counter[str]()
    broken: list[Broken] = []
    numbers = count(1)
    with new_file(output, overwrite=force), translated(output), _database(output) as database:
        _create(database, words=words)

        def add(path: Path) -> Counter[str]:
            return _add(database, path, next(numbers), words=words)

        for made in over(cases, add, "reading", quiet=json):
            if isinstance(made, Broken):
                broken.append(made)
            else:
                counts += made
        _finish(database, words=words)
    _tell(output, counts, broken, words=words, json=json)
    if broken:
        raise AnswerIsNo


def _refuse_others(output: Path) -> None:
    """Refuse a path that would take the place, or the name, of something that is no such file."""
    if output.suffix in (SUFFIX, ".zip"):
        raise UserError(f"-o {output}: is the name of a case or package; call it FILE.db")
    if not output.is_file() or not output.stat().st_size:
        return
    with output.open("rb") as file:
        head = file.read(72)
    if head[68:72] != APPLICATION_ID.to_bytes(4, "big"):
        raise UserError(f"{output}: was not made by `tables`; choose another name")


@contextmanager
def _database(output: Path) -> Iterator[Database]:
    """Yield the database under its temporary name, which new_file holds locked."""
    from sqlite_utils import Database

    uri = f"file:{quote(str(temporary_name(output).absolute()))}?nolock=1"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        # Until it has its name nobody relies on it, and new_file syncs it before that.
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        yield Database(connection, execute_plugins=False)


def _create(database: Database, *, words: bool) -> None:
    for name, table in TABLES.items():
        if words or name != "texts":
            to_cases = [("ledger", "cases", "id")] if "ledger" in table.KEY else []
            database.table(name).create(
                table.columns(), pk=_key(table), foreign_keys=to_cases, strict=True
            )
    for name, sql in VIEWS.items():
        database.create_view(name, cleandoc(sql))


def _finish(database: Database, *, words: bool) -> None:
    database.table("events").create_index(["topic"])
    if words:
        database.table("texts").enable_fts(["text"], tokenize="unicode61")


def _add(database: Database, path: Path, number: int, *, words: bool) -> Counter[str]:
    """Insert the rows of a case, all or none; return how many by table."""
    counts = Counter[str]()
    with open_record(str(path)) as reader, database.atomic():
        for table, batch in _batches(rows(reader, number, path.stem, words=words)):
            values = [_stored(row) for row in batch]
            # A record of somebody else may use an ID twice: the later one holds, as in its state.
            database.table(table.NAME).insert_all(values, pk=_key(table), replace=True)
            counts[table.NAME] += len(values)
    return counts


def _key(table: type[Row]) -> str | tuple[str, ...]:
    return table.KEY if len(table.KEY) > 1 else table.KEY[0]


def _batches(made: Iterable[Row]) -> Iterator[tuple[type[Row], list[Row]]]:
    """Yield runs of rows of one table, at most BATCH each, in their order within a table."""
    held: dict[type[Row], list[Row]] = {}
    for row in made:
        batch = held.setdefault(type(row), [])
        batch.append(row)
        if len(batch) == BATCH:
            yield type(row), held.pop(type(row))
    yield from held.items()


def _stored(row: Row) -> dict[str, Any]:
    return {name: _value(value) for name, value in vars(row).items()}


def _value(value: Any) -> Any:
    """Return a value that SQLite can hold: null for an integer of more than 64 bits."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return None
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "backslashreplace").decode()  # lone surrogates
    return value


def _tell(
    output: Path, counts: Counter[str], broken: list[Broken], *, words: bool, json: bool
) -> None:
    if json:
        shown = {name: counts[name] for name in TABLES}
        print_json(
            {"file": str(output), "text": words, "rows": shown, "broken": broken_json(broken)}
        )
        return
    kept = "words included" if words else "without words"
    say(f"{output}: {counted(counts['cases'], 'case')}, {counted(counts.total(), 'row')}, {kept}")
    say("Look at it with `datasette` or any SQLite client; docs/tables.md describes it.")
