"""A case at a position: replayed, walked through, forked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ledger.book import Book
from ledger.events import Event
from ledger.package import Package
from ledger.reader import CaseReader, Entry
from projections.diffing import Change
from projections.folding import fold
from projections.replay import Moment, Seen, seen_by, state_at
from projections.saw import Check, check_all
from projections.timeline import line
from projections.wording import counted
from tools.differing import change_json, short_text
from tools.exits import UserError
from tools.output import head_json, one_line, spoken
from tools.overview import status_json, status_lines

Json = dict[str, Any]

SHOWN = 4
"""Changes shown beside an event; `--json` has all."""


# Replay -----------------------------------------------------------------------------------------


def replayed(record: Book | Package, at: int) -> Json:
    """Return what `replay` shows of a case at a position, without steps and checks."""
    status = status_json(record, state_at(record, at))
    del status["next"]  # what a person would do next is past
    return {
        "at": at,
        "head": head_json(record.head),
        "status": status,
        "seen": [item.as_json() for item in seen_by(record, at)],
        "then": _then(record, at),
        "steps": None,
        "checks": None,
    }


def _then(record: CaseReader, at: int) -> Json | None:
    """Return the event after a position; None at the head."""
    row = next(record.rows(at + 1, after=at), None)
    if row is None:
        return None
    if row.state is None:
        return {"position": row.position, "topic": row.topic, "line": "withheld in this copy"}
    return _event_json(next(record.events(at + 1, after=at)))


def replay_lines(shown: Json) -> Iterator[str]:
    """Yield the lines of `replay`."""
    yield from status_lines(shown["status"])
    yield from _seen_lines([Seen(**item) for item in shown["seen"]])
    then = shown["then"]
    yield (
        f"then         {then['position']} {then['topic']} {then['line']}"
        if then
        else ("then         nothing: this is the head")
    )


def _seen_lines(seen: list[Seen]) -> Iterator[str]:
    sent = [item for item in seen if item.sent is not None]
    known = [item.characters for item in sent if item.characters is not None]
    gone = f"{counted(len(known), 'request')} with {counted(sum(known), 'character')}"
    if hidden := len(sent) - len(known):
        gone += f" and {hidden} withheld one{'' if hidden == 1 else 's'}"
    yield f"seen         {gone} had gone to a model"
    for item in seen:
        left = f"sent at {item.sent}" if item.sent is not None else "not sent yet"
        if item.phase is None:
            yield f"  {item.request:<4} withheld in this copy, {left}"
            continue
        yield (
            f"  {item.request:<4} {spoken(item.phase):<20} {item.characters:>9,} characters  "
            f"prepared at {item.position}, {left}, {item.status}"
        )


def step_json(moment: Moment) -> Json:
    """Return a step as JSON (docs/json-output.md)."""
    entry = _event_json(Entry(moment.position, moment.event))
    return {**entry, "changes": [change_json(change, full=False) for change in moment.changes]}


def step_line(moment: Moment) -> str:
    """Return a step as a line: the event, then what it changed in the state."""
    changed = "; ".join(_shown(list(moment.changes)))
    said = one_line(line(moment.event), 100)
    topic = moment.event.TOPIC.partition("/")[0]
    return f"{moment.position:>5}  {topic:<22} {said}  [{changed}]"


def _shown(changes: list[Change]) -> Iterator[str]:
    for change in islice(changes, SHOWN):
        yield one_line(short_text(change, 60))
    if len(changes) > SHOWN:
        yield f"{len(changes) - SHOWN} more"
    if not changes:
        yield "nothing"


def checks_upto(record: CaseReader, at: int) -> list[Check]:
    """Return the check of every request that was saved up to a position."""
    return list(check_all(record, at))


def checks_line(checks: list[Check]) -> str:
    """Return what rebuilding requests showed, the differences named."""
    count = Counter(check.state for check in checks)
    said = ", ".join(f"{count[state]} {state}" for state in ("same", "differs", "unchecked"))
    details = dict.fromkeys(check.detail for check in checks if check.state != "same")
    return "; ".join([f"requests rebuilt: {said}", *details])


def _event_json(entry: Entry) -> Json:
    event: Event = entry.event
    return {"position": entry.position, "topic": event.TOPIC, "line": line(event)}


# Fork -------------------------------------------------------------------------------------------


def fork_record(record: Book | Package, path: Path, at: int, note: str) -> Json:
    """Fork a case; return what `fork` says of it (docs/json-output.md).

    Raises:
        UserError: the intake is not complete at this position.
    """
    from ledger.forking import fork

    state = fold(record.events(at))
    if not state.intake_complete:
        raise UserError(
            f"position {at}: the intake of revision {state.revision} is not complete there, and a "
            "fork cannot take in the rest; choose a position after observations.extracted"
        )
    forked = fork(record, path, at, note=note)
    return {
        "case": str(path),
        "case_id": record.case_id,
        "trial_id": forked.event.trial_id,
        "origin_trial_id": forked.event.origin_trial_id,
        "position": at,
        "inside": _inside_step(record, at),
        "open_request": state.open_request.id if state.open_request else None,
        "head": head_json(forked.head),
    }


def _inside_step(record: CaseReader, at: int) -> bool:
    """Tell whether the next event was recorded together with this one: they have one time."""
    entries = list(record.events(at + 1, after=at - 1))
    return len(entries) == 2 and entries[0].event.at == entries[1].event.at


def fork_lines(forked: Json) -> Iterator[str]:
    """Yield the lines of `fork`."""
    events = counted(forked["position"], "event")
    yield (
        f"{forked['case']}: {events} shared, trial {forked['trial_id']}, "
        f"forked from {forked['origin_trial_id']}"
    )
    if request := forked["open_request"]:
        yield (
            f"{request} is open there: `run` finishes it under the configuration it was made "
            f"under; fork with --at {request} to ask it anew"
        )
    if forked["inside"]:
        yield (
            f"position {forked['position']} is inside a step: what the rest of it recorded is not "
            "in the fork, and `run` takes what is missing again"
        )
    yield f"caseledger run {forked['case']}"
