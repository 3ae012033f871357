"""What `diff` compares and how it shows it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ledger import canonical
from ledger.book import Book
from ledger.events import RequestPrepared
from ledger.package import Package
from ledger.reader import CaseReader
from projections.diffing import (
    Change,
    Side,
    case_side,
    differences,
    request_summary,
    shared_history,
    state_changes,
)
from projections.replay import state_at
from projections.state import State
from projections.wording import counted
from tools.exits import UserError
from tools.output import head_json, money, one_line, spoken
from tools.overview import standing
from tools.positions import position_of
from tools.sawing import prepared_request

Json = dict[str, Any]

SHOWN = 100
"""Differences printed unless all are asked for."""

WIDTH = 100
LONGEST = 2_000
"""Characters of a value on a line, and of its JSON in a document, unless all is asked for."""


class Compared:
    """Two things that were compared: what they are, and every difference."""

    def __init__(self, kind: str, left: Json, right: Json, changes: Iterable[Change]) -> None:
        self.kind = kind
        self.left = left
        self.right = right
        self.changes = list(changes)
        self.shared: int | None = None

    @property
    def same(self) -> bool:
        return not self.changes

    def as_json(self, *, full: bool) -> Json:
        """Return the comparison as JSON (docs/json-output.md)."""
        shown = self.changes if full else self.changes[:SHOWN]
        return {
            "kind": self.kind,
            "same": self.same,
            "left": self.left,
            "right": self.right,
            "shared": self.shared,
            "first": self.changes[0].path if self.changes else None,
            "changes": [change_json(change, full=full) for change in shown],
            "more": len(self.changes) - len(shown),
        }


def compare(ours: CaseReader, left: str, theirs: CaseReader, right: str) -> Compared:
    """Compare two positions, or two requests, of one case or of two.

    Raises:
        UserError: they are of two kinds, or not there.
    """
    names = (left, right)
    if all(re.fullmatch(r"R\d+|last", name) for name in names):
        return _requests(ours, left, theirs, right)
    if any(re.fullmatch(r"R\d+|last", name) for name in names):
        raise UserError(f"{left} and {right}: give two positions (17 57) or two requests (R4 R7)")
    return _positions(ours, position_of(ours, left), theirs, position_of(theirs, right))


def _positions(ours: CaseReader, left: int, theirs: CaseReader, right: int) -> Compared:
    before, after = state_at(ours, left), state_at(theirs, right)
    return Compared(
        "positions",
        {"position": left, "standing": standing(before)},
        {"position": right, "standing": standing(after)},
        state_changes(before, after),
    )


def _requests(ours: CaseReader, left: str, theirs: CaseReader, right: str) -> Compared:
    at, before = prepared_request(ours, left)
    then, after = prepared_request(theirs, right)
    return Compared(
        "requests",
        _request_json(at, before),
        _request_json(then, after),
        differences(request_summary(ours, before), request_summary(theirs, after)),
    )


def _request_json(position: int, prepared: RequestPrepared) -> Json:
    return {
        "request": prepared.request,
        "position": position,
        "phase": prepared.phase,
        "protocol": prepared.protocol,
        "characters": prepared.characters,
        "document": prepared.document.digest,
    }


def compare_cases(left: Book | Package, right: Book | Package) -> Compared:
    """Compare two cases, or two trials of one."""
    ours, theirs = case_side(left), case_side(right)
    compared = Compared(
        "cases",
        _side_json(left, ours),
        _side_json(right, theirs),
        differences(ours.compared, theirs.compared),
    )
    compared.shared = shared_history(left, right)
    return compared


def _side_json(record: Book | Package, side: Side) -> Json:
    state: State = side.state
    forks = side.forks
    diagnosis = state.diagnosis
    return {
        "case": str(record.path),
        "case_id": state.case_id,
        "trial_id": state.trial_id,
        "title": state.title,
        "head": head_json(record.head),
        "forked_at": forks[-1].origin_position if forks else None,
        "forked_from": forks[-1].origin_trial_id if forks else None,
        "standing": standing(state),
        "outcome": diagnosis["outcome"] if diagnosis else None,
        "confidence": diagnosis["confidence"] if diagnosis else None,
        "requests": len(state.requests),
        "characters": sum(item["characters"] for item in side.compared["requests"].values()),
        "usage": side.compared["usage"],
    }


# Showing ----------------------------------------------------------------------------------------


def change_json(change: Change, *, full: bool) -> Json:
    """Return a difference as JSON; a long value is `{"characters", "begins"}` unless `full`."""
    left, right = (value if full else _bounded(value) for value in (change.left, change.right))
    return {"path": change.path, "kind": change.kind, "left": left, "right": right}


def _bounded(value: Any) -> Any:
    text = _text(value)
    if len(text) <= LONGEST:
        return value
    return {"characters": len(text), "begins": text[: LONGEST // 10]}


MARKS = {"added": "+", "removed": "-", "changed": "~", "reordered": "~"}


def change_text(change: Change, width: int | None = WIDTH) -> str:
    """Return a difference as a line; values of at most `width` characters, None for all of them."""
    mark = place_text(change)
    if change.kind == "reordered":
        return f"{mark}: other order, {_cut(_text(change.right), width)}"
    if change.kind == "changed":
        return f"{mark}: {_apart(_text(change.left), _text(change.right), width)}"
    value = change.right if change.kind == "added" else change.left
    return f"{mark}: {_cut(_text(value), width)}"


def short_text(change: Change, width: int) -> str:
    """Return a difference without what does not fit into so many characters: at least its place."""
    text = change_text(change, None)
    return text if len(text) <= width else place_text(change)


def place_text(change: Change) -> str:
    """Return what kind of difference stands where."""
    return f"{MARKS[change.kind]} {change.path.removeprefix('$.')}"


def _apart(left: str, right: str, width: int | None) -> str:
    """Return two texts, cut so that the place where they part is seen."""
    if width is None or max(len(left), len(right)) <= width:
        return f"{left} → {right}"
    same = next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), 0)
    start = max(0, same - width // 4)
    shown = [("…" if start else "") + _cut(text[start:], width) for text in (left, right)]
    return f"{' → '.join(shown)} ({len(left):,} → {len(right):,} characters)"


def _cut(text: str, width: int | None) -> str:
    if width is None or len(text) <= width:
        return text
    return f"{text[: width - 1]}… ({len(text):,} characters)"


def _text(value: Any) -> str:
    return canonical.to_bytes(value).decode()


def compared_lines(compared: Compared, *, full: bool) -> Iterator[str]:
    """Yield the lines of `diff`."""
    yield from _HEADINGS[compared.kind](compared)
    told = compared.changes
    summed: list[str] = []
    if compared.kind == "cases" and not full:
        told, summed = _requests_apart(compared.changes)
    for change in told if full else told[:SHOWN]:
        text = change_text(change, None if full else WIDTH)
        yield one_line(text, len(text))
    if not full and (more := len(told) - SHOWN) > 0:
        yield f"{counted(more, 'more difference')}; --full prints all"
    if summed:
        names = ", ".join(summed)
        yield f"~ requests: {names}; `diff CASE R4 CASE2 R4` shows one, --full all of them"


def _requests_apart(changes: list[Change]) -> tuple[list[Change], list[str]]:
    """Return the changes but those of requests, and the names of the requests that differ."""
    inside = [change for change in changes if change.path.startswith("$.requests.")]
    names = dict.fromkeys(change.path.split(".")[2] for change in inside)
    return [change for change in changes if change not in inside], list(names)


def _count(compared: Compared) -> str:
    count = len(compared.changes)
    if not count:
        return "no difference"
    return f"{count} difference{'s' * (count > 1)}, the first at {compared.changes[0].path}"


def _positions_heading(compared: Compared) -> Iterator[str]:
    left, right = compared.left, compared.right
    yield (
        f"position {left['position']} ({left['standing']}) → {right['position']} "
        f"({right['standing']}): {_count(compared)}"
    )


def _requests_heading(compared: Compared) -> Iterator[str]:
    left, right = compared.left, compared.right
    names = [f"{s['request']} ({spoken(s['phase'])}, {s['protocol']})" for s in (left, right)]
    yield f"{names[0]} → {names[1]}: {_count(compared)}"


def _cases_heading(compared: Compared) -> Iterator[str]:
    for name, said in _ROWS.items():
        ours, theirs = said(compared.left), said(compared.right)
        yield f"{name:<12} {ours}" + (" (both)" if ours == theirs else f"  →  {theirs}")
    yield f"history      {_history(compared)}"
    yield f"compared     {_count(compared)}"


_ROWS: Mapping[str, Callable[[Json], str]] = {
    "case": lambda side: str(side["case"]),
    "title": lambda side: one_line(side["title"]),
    "trial": lambda side: str(side["trial_id"]),
    "state": lambda side: str(side["standing"]),
    "requests": lambda side: f"{side['requests']}, {side['characters']:,} characters",
    "attempts": lambda side: f"{side['usage']['attempts']}, {side['usage']['failed']} failed",
    "cost": lambda side: money(side["usage"]["cost_nano_usd"]),
}


def _history(compared: Compared) -> str:
    if not compared.shared:
        return "nothing in common"
    return f"the same up to position {compared.shared}" + "".join(
        f"; the {name} forked there from {side['forked_from']}"
        for name, side in (("left", compared.left), ("right", compared.right))
        if side["forked_at"] == compared.shared
    )


_HEADINGS = {
    "positions": _positions_heading,
    "requests": _requests_heading,
    "cases": _cases_heading,
}
