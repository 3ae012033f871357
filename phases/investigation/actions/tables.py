"""What database actions share: the database meant, tables and their columns, refusals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ledger.events import JsonObject
from phases.investigation.actions.base import Refused, Trouble, text_schema
from phases.investigation.actions.schema import shown
from phases.investigation.actions.scope import document_check, document_of
from phases.investigation.database import OURS, Database, DatabaseRefused, Limits, Rows
from phases.investigation.snapshot import Document, Snapshot

DATABASE = text_schema(
    "ID (`S4`) or name of a database; empty if the case has only one.", 300, 0, default=""
)
check_database = document_check("database", "database")

_KINDS = {"not_read_only": "not_read_only", "sql": "arguments", "unreadable": "arguments"}


def quoted(name: str) -> str:
    """Return an SQL identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Column:
    """A column. `hidden`: 0 ordinary, 2 or 3 generated; `key`: place in the primary key, from 1,
    or 0.
    """

    name: str
    declared: str
    not_null: bool
    default: str | None
    key: int
    hidden: int


@dataclass(frozen=True)
class Table:
    """A table or view of the schema."""

    name: str
    kind: str
    sql: str

    @property
    def virtual(self) -> bool:
        """Whether a module computes its rows."""
        return self.sql[:40].upper().startswith("CREATE VIRTUAL")

    @property
    def without_rowid(self) -> bool:
        """Whether it has no rowid of its own."""
        return "WITHOUT ROWID" in self.sql[self.sql.rfind(")") :].upper()


class Reader:
    """Fixed queries on one database. `stopped` gathers the limits that were reached."""

    def __init__(self, snapshot: Snapshot, wanted: str) -> None:
        self.document: Document = document_of(snapshot, wanted, ("database",))
        self._database: Database = snapshot.database(self.document.artifact)
        self.stopped: list[str] = []
        self.steps = 0

    def rows(
        self, sql: str, parameters: Sequence[Any] = (), *, rows: int = 100_000, value: int = 500,
        steps: int = OURS.steps,
    ) -> list[list[Any]]:  # fmt: skip
        """Return the rows of one of our own statements, in the child's short form.

        Raises:
            Refused: if the database cannot be read.
        """
        limits = Limits(steps, OURS.seconds, OURS.length, value, 50_000_000, rows)
        answer = ask(self._database, sql, parameters, trusted=True, limits=limits, rows=rows)
        self.steps += answer.steps
        if answer.stopped:
            self.stopped.append(answer.stopped)
        return answer.rows

    def tables(self) -> list[Table]:
        """Return tables and views in order of name, SQLite's own left out."""
        rows = self.rows(
            "SELECT name, type, coalesce(sql, '') FROM sqlite_schema WHERE type IN ('table', "
            "'view') "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type, name",
            value=20_000,
        )
        return [Table(*map(text_of, row)) for row in rows]

    def columns(self, table: str) -> list[Column]:
        """Return the columns of a table in their order."""
        rows = self.rows(f"PRAGMA table_xinfo({quoted(table)})")
        return [
            Column(text_of(r[1]), text_of(r[2]), bool(r[3]), None if r[4] is None else
            text_of(r[4]),
                   int(r[5]), int(r[6]))
            for r in rows if int(r[6]) != 1
        ]  # fmt: skip

    def unique_keys(self, table: str) -> list[list[str]]:
        """Return the column lists that the schema declares unique, primary key first."""
        columns = self.columns(table)
        primary = [c.name for c in sorted(columns, key=lambda c: c.key) if c.key]
        keys = [primary] if primary else []
        for row in sorted(
            self.rows(f"PRAGMA index_list({quoted(table)})"), key=lambda r: text_of(r[1])
        ):
            if row[2] and not row[4] and (names := self.index_columns(text_of(row[1]))) not in keys:
                keys.append(names)
        return keys

    def index_columns(self, index: str) -> list[str]:
        """Return the columns of an index; an expression is shown as `<expression>`."""
        rows = self.rows(f"PRAGMA index_xinfo({quoted(index)})")
        return ["<expression>" if r[2] is None else text_of(r[2]) for r in rows if r[5]]

    def foreign_keys(self, table: str) -> list[JsonObject]:
        """Return declared references: columns, table, its columns."""
        found: dict[int, JsonObject] = {}
        for row in sorted(
            self.rows(f"PRAGMA foreign_key_list({quoted(table)})"), key=lambda r: r[:2]
        ):
            item = found.setdefault(
                row[0], {"columns": [], "table": text_of(row[2]), "targets": []}
            )
            item["columns"].append(text_of(row[3]))
            if row[4] is not None:
                item["targets"].append(text_of(row[4]))
        for item in found.values():
            item["targets"] = item["targets"] or next(iter(self.unique_keys(item["table"])), [])
        return list(found.values())

    def count(self, table: str) -> int | None:
        """Return the number of rows, None if counting them takes too long."""
        rows = self.rows(f"SELECT count(*) FROM {quoted(table)}", rows=1)
        return int(rows[0][0]) if rows else None


def text_of(value: Any) -> str:
    """Return a name or SQL text of the schema, whatever form it came in."""
    if isinstance(value, tuple):
        part = value[1]
        return part if isinstance(part, str) else bytes(part).decode("utf-8", "replace")
    return "" if value is None else str(value)


def ask(database: Database, sql: str, parameters: Sequence[Any] = (), **more: Any) -> Rows:
    """Query a database; what it refuses becomes a refusal of the action.

    Raises:
        Refused: with the kind that format.md names.
    """
    try:
        return database.query(sql, parameters, **more)
    except DatabaseRefused as error:
        message = shown(str(error), 300)
        if error.kind == "not_read_only":
            message = f"only reading the database's own tables is allowed, not {message}"
        elif error.kind == "unreadable":
            message = f"the database cannot be read: {message}"
        raise Refused(_KINDS[error.kind], error.kind, message, "$.sql") from None


def check_table(snapshot: Snapshot, arguments: JsonObject) -> list[Trouble]:
    """Refuse a table that the database does not have."""
    if found := check_database(snapshot, arguments):
        return list(found)
    names = [table.name for table in Reader(snapshot, arguments["database"]).tables()]
    if arguments["table"] in names:
        return []
    known = ", ".join(shown(name, 60) for name in names[:40])
    text = f"there is no table {shown(arguments['table'], 100)!r}; there are: {known}"
    return [Trouble("outside_snapshot", "no_such_table", text, "$.table")]


def database_entry(snapshot: Snapshot, action: str, item: Document, **more: Any) -> JsonObject:
    """Return `{database, provenance, metadata}` of a database that rows come from."""
    return {
        "database": item.artifact,
        "provenance": {
            "action": action, "artifact": item.artifact, "name": item.name, "digest": item.digest,
            "snapshot": snapshot.digest, **more,
        },
        "metadata": {"size": item.size},
    }  # fmt: skip
