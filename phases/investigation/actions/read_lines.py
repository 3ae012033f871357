"""read_lines: lines of a source file, as they are."""

from __future__ import annotations

from ledger.events import JsonObject
from phases.investigation.actions.base import (
    LINE_CHARACTERS,
    SIZE,
    Action,
    Page,
    Result,
    Tray,
    Trouble,
    number_schema,
    object_schema,
)
from phases.investigation.actions.files import cost, document_entry, file_entry
from phases.investigation.actions.quote import Quoter
from phases.investigation.actions.scope import PATH, check_path
from phases.investigation.index import index_of
from phases.investigation.lines import Text
from phases.investigation.snapshot import Document, Snapshot

FIRST = number_schema("First line, 1-based.", 1, 1_000_000_000, 1)
LAST = number_schema("Last line, inclusive; 0: as many as fit.", 0, 1_000_000_000, 0)
COLUMN = number_schema(
    "Of a line longer than `width`: column (1-based) to show it from.", 1, 1_000_000_000, 1
)
WIDTH = number_schema("Characters shown of a long line.", 50, 4_000, LINE_CHARACTERS)


def check_range(snapshot: Snapshot, arguments: JsonObject) -> list[Trouble]:
    """Refuse a range that ends before it starts."""
    first, last = arguments["first"], arguments["last"]
    if last and last < first:
        return [Trouble("arguments", "range", f"last ({last}) is before first ({first})", "$.last")]
    return []


def read(
    snapshot: Snapshot, action: str, source: str | Document, text: Text, arguments: JsonObject
) -> Result:
    """Return lines of a file (by path) or document as blocks."""
    name = source if isinstance(source, str) else source.artifact
    tray = Tray(arguments["characters"])
    quoter = Quoter(tray, "path" if isinstance(source, str) else "artifact", arguments["width"])
    entry = (
        file_entry(snapshot, action, source)
        if isinstance(source, str)
        else document_entry(snapshot, action, source)
    )
    total = len(text.lines)
    first, last = arguments["first"], min(arguments["last"] or total, total)
    shown, price = 0, cost(entry)
    for number in range(first, last + 1):
        if not quoter.add(name, text, number, number, {number: arguments["column"]}, price):
            break
        shown += 1
    return Result(
        {"file" if isinstance(source, str) else "document": entry, "blocks": quoter.blocks()},
        found=shown > 0,
        page=Page(first - 1, max(0, last - first + 1), shown, last if last >= first else total),
        cut_off=("characters", tray.limit) if tray.full else None,
        covered={"lines": total},
        scope={quoter.member: name, "lines": total},
        query={"first": arguments["first"], "last": arguments["last"]},
    )


def run(snapshot: Snapshot, arguments: JsonObject) -> Result:
    path, index = arguments["path"], index_of(snapshot)
    result = read(snapshot, "read_lines", path, index.text(path), arguments)
    origin = index.origin(path, arguments["first"], arguments["column"])
    if origin is not None:
        result.result["file"]["metadata"]["origin"] = {
            "path": origin.path, "line": origin.line, "column": origin.column,
            "in_snapshot": origin.present,
        }  # fmt: skip
    return result


def check(snapshot: Snapshot, arguments: JsonObject) -> list[Trouble]:
    return [*check_path(snapshot, arguments), *check_range(snapshot, arguments)]


ACTION = Action(
    name="read_lines",
    description=(
        "Read lines of one source file exactly as they are. Of very long lines a window from "
        "`column` on is shown. For a built or minified file with a source map, "
        "`metadata.origin` says where the text at `first`:`column` came from."
    ),
    arguments=object_schema(
        ["path"], path=PATH, first=FIRST, last=LAST, column=COLUMN, width=WIDTH, characters=SIZE
    ),
    run=run,
    check=check,
)
