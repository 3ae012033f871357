"""query_database: one SELECT statement."""

from __future__ import annotations

from ledger.events import JsonObject
from phases.investigation.actions.base import (
    OFFSET,
    SIZE,
    Action,
    Page,
    Refused,
    Result,
    Tray,
    limit_schema,
    number_schema,
    object_schema,
    text_schema,
)
from phases.investigation.actions.scope import document_of
from phases.investigation.actions.tables import DATABASE, ask, check_database, database_entry
from phases.investigation.database import MODEL, Limits, Rows
from phases.investigation.snapshot import Document, Snapshot
from phases.investigation.values import row_to_json

_STOPS = {
    "steps": MODEL.steps, "seconds": int(MODEL.seconds), "length": MODEL.length,
    "bytes": MODEL.bytes, "count": MODEL.count, "memory": 0,
}  # fmt: skip
_ADVICE = {
    "steps": "the statement takes too many steps; restrict it, or use an indexed column",
    "seconds": "the statement takes too long",
    "length": "a value is longer than 10,000,000 bytes; select length(column) or other columns",
    "bytes": "one row is too large; select fewer columns",
    "memory": "the statement takes too much memory",
}


def run(snapshot: Snapshot, arguments: JsonObject) -> Result:
    item = document_of(snapshot, arguments["database"], ("database",))
    answer = ask(
        snapshot.database(item.artifact), arguments["sql"], limits=_limits(arguments),
        offset=arguments["offset"], rows=arguments["limit"],
    )  # fmt: skip
    if not answer.rows and answer.stopped not in ("", "count"):
        raise Refused("limit", answer.stopped, _ADVICE[answer.stopped], "$.sql")
    tray = Tray(arguments["characters"])
    if not _header_fits(answer, tray):
        raise Refused(
            "limit", "columns", "the columns alone fill the result; select fewer", "$.sql"
        )
    for row in answer.rows:
        if not tray.add(row_to_json(row)):
            break
    if answer.rows and (not tray.items or tray.left < 0):
        raise Refused("limit", "row", "one row fills the result; select fewer columns", "$.sql")
    return _result(snapshot, arguments, answer, tray, item)


def _limits(arguments: JsonObject) -> Limits:
    return Limits(value=arguments["value_characters"])


def _header_fits(answer: Rows, tray: Tray) -> bool:
    return all(tray.charge(len(name) + 3) for name in answer.columns)


def _result(
    snapshot: Snapshot, arguments: JsonObject, answer: Rows, tray: Tray, item: Document
) -> Result:
    cut_off = None
    if tray.full:
        cut_off = ("characters", tray.limit)
    elif answer.stopped:
        cut_off = (answer.stopped, _STOPS[answer.stopped])
    return Result(
        {
            **database_entry(snapshot, "query_database", item, tables=answer.tables),
            "columns": answer.columns,
            "rows": tray.items,
        },
        found=answer.seen > 0,
        page=Page(
            arguments["offset"], arguments["limit"], len(tray.items), answer.seen,
            not answer.stopped,
        ),
        cut_off=cut_off,
        covered={"rows": answer.seen},
        scope={"database": item.artifact, "tables": answer.tables},
        query={"sql": arguments["sql"]},
    )  # fmt: skip


ACTION = Action(
    name="query_database",
    description=(
        "Run one SELECT (or WITH … SELECT, or VALUES) statement of SQLite on a database of the "
        "case and get its rows. It can only read the database's tables and views: no PRAGMA, "
        "ATTACH or writing, no random or present-time functions. Order the rows yourself if "
        "their order matters. Long values are cut; use substr() for the rest."
    ),
    arguments=object_schema(
        ["sql"],
        sql=text_schema("The statement.", 8_000),
        database=DATABASE,
        offset=OFFSET,
        limit=limit_schema(50, 500),
        value_characters=number_schema("Characters (bytes) shown of one value.", 1, 8_000, 500),
        characters=SIZE,
    ),
    run=run,
    check=check_database,
    limits={
        "steps": MODEL.steps, "seconds": int(MODEL.seconds), "rows_counted": MODEL.count,
        "bytes_of_a_value": MODEL.length,
    },
)  # fmt: skip
