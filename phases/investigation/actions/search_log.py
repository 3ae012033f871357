"""search_log: lines of the logs by text and by time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ledger.events import JsonObject
from phases.investigation.actions.base import (
    MOST_HITS,
    OFFSET,
    SIZE,
    Action,
    Page,
    Result,
    Tray,
    Trouble,
    choice_schema,
    limit_schema,
    number_schema,
    object_schema,
    text_schema,
)
from phases.investigation.actions.files import cost, document_entry
from phases.investigation.actions.quote import Quoter, around
from phases.investigation.actions.scope import TEXTUAL, document_check, document_of
from phases.investigation.actions.search_code import compile_pattern
from phases.investigation.lines import Text
from phases.investigation.logtimes import Bound, line_times, parse_bound
from phases.investigation.patterns import WORK, Pattern, Work, WorkDone
from phases.investigation.snapshot import Document, Snapshot


class LogHit(NamedTuple):
    """A line of a log that fits, 1-based, and its time as written ("" if it has none)."""

    log: Document
    line: int
    column: int
    time: str


class LogSearch(NamedTuple):
    """All hits and what was covered. `timed`: lines that carry or inherit a time."""

    hits: list[LogHit]
    lines: int
    timed: int
    cut_off: tuple[str, int] | None


def search(
    snapshot: Snapshot, logs: list[Document], pattern: Pattern | None, window: tuple[Bound, Bound]
) -> LogSearch:
    """Return the lines that match and lie in the window, logs in order of intake."""
    work, hits, lines, timed = Work(), list[LogHit](), 0, 0
    try:
        for log in logs:
            text = snapshot.text(log)
            times = line_times(text.lines, window)
            for line, column in _places(text, pattern, work):
                if _inside(times[line - 1], window):
                    hits.append(LogHit(log, line, column, times[line - 1]))
                if len(hits) > MOST_HITS:
                    raise WorkDone("hits", MOST_HITS)
            lines, timed = lines + len(text.lines), timed + sum(map(bool, times))
    except WorkDone as done:
        reason, limit = done.args
        return LogSearch(hits[:MOST_HITS], lines, timed, (reason, limit))
    return LogSearch(hits, lines, timed, None)


def _places(text: Text, pattern: Pattern | None, work: Work) -> Iterator[tuple[int, int]]:
    """Return the lines that match; all of them if nothing is looked for."""
    if pattern is not None:
        return pattern.matches(text, work)
    return ((number, 1) for number in range(1, len(text.lines) + 1))


def _inside(time: str, window: tuple[Bound, Bound]) -> bool:
    low, high = window
    if not low.text and not high.text:
        return True
    if not time:
        return False
    return low.text <= time[: len(low.text)] and (
        not high.text or time[: len(high.text)] <= high.text
    )


def run(snapshot: Snapshot, arguments: JsonObject) -> Result:
    logs = _logs(snapshot, arguments["log"])
    pattern = None
    if arguments["query"]:
        pattern = compile_pattern(arguments["query"], arguments["mode"], arguments["ignore_case"])
    window = (parse_bound(arguments["from"]), parse_bound(arguments["to"]))
    found = search(snapshot, logs, pattern, window)
    tray = Tray(arguments["characters"])
    quoter = Quoter(tray, "artifact")
    shown = list(_quote(snapshot, found.hits, arguments, quoter))
    return Result(
        {
            "documents": [
                document_entry(snapshot, "search_log", snapshot.documents[name])
                for name in quoter.names
            ],
            "hits": shown,
            "blocks": quoter.blocks(),
        },
        found=bool(found.hits),
        page=Page(
            arguments["offset"], arguments["limit"], len(shown), len(found.hits),
            found.cut_off is None,
        ),
        cut_off=("characters", tray.limit) if tray.full else found.cut_off,
        covered={"logs": len(logs), "lines": found.lines, "lines_with_time": found.timed},
        scope={"logs": [log.artifact for log in logs][:50]},
        filter={"from": arguments["from"], "to": arguments["to"]},
        query={"query": arguments["query"], "mode": arguments["mode"]},
    )  # fmt: skip


def _logs(snapshot: Snapshot, wanted: str) -> list[Document]:
    return [document_of(snapshot, wanted, TEXTUAL)] if wanted else snapshot.of_kind("log")


def _quote(
    snapshot: Snapshot, hits: list[LogHit], arguments: JsonObject, quoter: Quoter
) -> Iterator[JsonObject]:
    context, offset = arguments["context"], arguments["offset"]
    for hit in hits[offset : offset + arguments["limit"]]:
        name = hit.log.artifact
        entry = {"artifact": name, "line": hit.line, "column": hit.column, "time": hit.time}
        fits = quoter.add(
            name, snapshot.text(hit.log), hit.line - context, hit.line + context,
            {hit.line: around(hit.column)}, cost(document_entry(snapshot, "search_log", hit.log)),
        )  # fmt: skip
        if not fits or not quoter.tray.charge(cost(entry)):
            return
        yield entry


_check_log = document_check("log", *TEXTUAL)


def check(snapshot: Snapshot, arguments: JsonObject) -> list[Trouble]:
    found = _check_log(snapshot, arguments) if arguments["log"] else []
    if not arguments["log"] and not snapshot.of_kind("log"):
        found = [
            Trouble("outside_snapshot", "no_such_artifact", "the snapshot has no log", "$.log")
        ]
    for name in ("from", "to"):
        if arguments[name] and not parse_bound(arguments[name]).text:
            text = "expected a time such as 2024-06-28, 2024-06-28 02:00 or 02:00:15"
            found.append(Trouble("arguments", "time", text, f"$.{name}"))
    return found


ACTION = Action(
    name="search_log",
    description=(
        "Search the logs by text (literal or RE2 expression) and by time. `from` and `to` are "
        "inclusive and may be cut short (`2024-06-28 02` is that hour); times are compared as "
        "the log writes them, without regard to time zones. A line without a time of its own "
        "has that of the line before it."
    ),
    arguments=object_schema(
        [],
        query=text_schema(
            "What to look for; empty: every line of the window.", 1000, 0, default=""
        ),
        mode=choice_schema("How to read the query.", ("literal", "regex"), "literal"),
        ignore_case={"type": "boolean", "description": "Ignore case.", "default": False},
        log=text_schema(
            "ID or name of one log, the report or an observation; empty: all logs.",
            300,
            0,
            default="",
        ),
        **{
            "from": text_schema("Earliest time.", 40, 0, default=""),
            "to": text_schema("Latest time.", 40, 0, default=""),
        },
        context=number_schema("Lines before and after a hit.", 0, 10, 0),
        offset=OFFSET,
        limit=limit_schema(50, 500),
        characters=SIZE,
    ),
    run=run,
    check=check,
    limits={"hits_counted": MOST_HITS, "instructions_times_bytes": WORK},
)
