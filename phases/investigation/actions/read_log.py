"""read_log: lines of a log, the report or an observation, as they are."""

from __future__ import annotations

from ledger.events import JsonObject
from phases.investigation.actions.base import (
    SIZE,
    Action,
    Result,
    Trouble,
    object_schema,
    text_schema,
)
from phases.investigation.actions.read_lines import COLUMN, FIRST, LAST, WIDTH, check_range, read
from phases.investigation.actions.scope import TEXTUAL, document_check, document_of
from phases.investigation.snapshot import Snapshot

LOG = text_schema(
    "ID (`S3`) or name of a log, report or observation; empty if the case has only one.", 300, 0,
    default="",
)  # fmt: skip
_check_log = document_check("log", *TEXTUAL)


def run(snapshot: Snapshot, arguments: JsonObject) -> Result:
    item = document_of(snapshot, arguments["log"], TEXTUAL)
    return read(snapshot, "read_log", item, snapshot.text(item), arguments)


def check(snapshot: Snapshot, arguments: JsonObject) -> list[Trouble]:
    return [*_check_log(snapshot, arguments), *check_range(snapshot, arguments)]


ACTION = Action(
    name="read_log",
    description="Read lines of one log, the report or an observation exactly as they are.",
    arguments=object_schema(
        [], log=LOG, first=FIRST, last=LAST, column=COLUMN, width=WIDTH, characters=SIZE
    ),
    run=run,
    check=check,
)
