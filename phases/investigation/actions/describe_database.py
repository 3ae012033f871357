"""describe_database: tables, columns, keys, indexes, row counts, views and triggers."""

from __future__ import annotations

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
    object_schema,
)
from phases.investigation.actions.tables import (
    DATABASE,
    Reader,
    Table,
    check_database,
    database_entry,
    quoted,
    text_of,
)
from phases.investigation.snapshot import Snapshot

_SQL_CHARACTERS = 1_500
_MOST_COLUMNS = 100


def run(snapshot: Snapshot, arguments: JsonObject) -> Result:
    reader = Reader(snapshot, arguments["database"])
    objects = [*reader.tables(), *_triggers(reader)]
    tray = Tray(arguments["characters"])
    offset, limit = arguments["offset"], arguments["limit"]
    for item in objects[offset : offset + limit]:
        if not tray.add(_describe(reader, item)):
            break
    stopped = reader.stopped[0] if reader.stopped else ""
    cut_off = ("characters", tray.limit) if tray.full else (stopped, 0) if stopped else None
    return Result(
        {
            **database_entry(snapshot, "describe_database", reader.document),
            "objects": tray.items,
        },
        found=bool(objects),
        page=Page(offset, limit, len(tray.items), len(objects)),
        cut_off=cut_off,
        covered={"objects": len(objects)},
        scope={"database": reader.document.artifact},
    )


def _triggers(reader: Reader) -> list[Table]:
    rows = reader.rows(
        "SELECT name, type, coalesce(sql, '') FROM sqlite_schema "
        "WHERE type = 'trigger' ORDER BY name",
        value=20_000,
    )
    return [Table(*map(text_of, row)) for row in rows]


def _describe(reader: Reader, item: Table) -> JsonObject:
    if item.kind != "table":
        return {"name": item.name, "kind": item.kind, "sql": cut(item.sql, _SQL_CHARACTERS)}
    if item.virtual:
        return {"name": item.name, "kind": "virtual", "sql": cut(item.sql, _SQL_CHARACTERS)}
    columns = reader.columns(item.name)
    entry: JsonObject = {
        "name": item.name,
        "kind": "table",
        "rows": reader.count(item.name),
        "columns": [
            {
                "name": cut(c.name, 100), "type": cut(c.declared, 60), "not_null": c.not_null,
                "default": None if c.default is None else cut(c.default, 100), "key": c.key,
            }
            for c in columns[:_MOST_COLUMNS]
        ],
        "unique": reader.unique_keys(item.name)[:20],
        "references": reader.foreign_keys(item.name)[:40],
        "indexes": _indexes(reader, item.name)[:40],
    }  # fmt: skip
    if len(columns) > _MOST_COLUMNS:
        entry["columns_total"] = len(columns)
    if "CHECK" in item.sql.upper() or any(c.hidden for c in columns):
        entry["sql"] = cut(item.sql, _SQL_CHARACTERS)
    return entry


def _indexes(reader: Reader, table: str) -> list[JsonObject]:
    rows = sorted(reader.rows(f"PRAGMA index_list({quoted(table)})"), key=lambda r: text_of(r[1]))
    return [
        {
            "name": text_of(row[1]), "columns": reader.index_columns(text_of(row[1])),
            "unique": bool(row[2]), "partial": bool(row[4]),
        }
        for row in rows
    ]  # fmt: skip


ACTION = Action(
    name="describe_database",
    description=(
        "Describe a database of the case: each table with its columns, declared types, keys, "
        "references, indexes and number of rows; views and triggers with their SQL."
    ),
    arguments=object_schema(
        [], database=DATABASE, offset=OFFSET, limit=limit_schema(50, 500), characters=SIZE
    ),
    run=run,
    check=check_database,
)
