"""What differs between two states, two requests or two cases, by JSON path.

Values are compared as canonical bytes compare: 1, 1.0 and true are three values, and the order of
an object's members counts. Lists of objects with IDs are matched by ID, other lists by place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel

from ledger import canonical
from ledger.errors import CanonicalError
from ledger.events import CaseForked, RequestPrepared
from ledger.reader import CaseReader
from projections.folding import fold
from projections.requests import UnknownVersion
from projections.saw import decoded, saved_document
from projections.spending import spending
from projections.state import State

Json = dict[str, Any]

Kind = Literal["added", "removed", "changed", "reordered"]


class Change(NamedTuple):
    """One difference.

    Attributes:
        path: RFC 9535 JSON path; an item with an ID is `[?@.id=='E5']`, another one `[4]`.
        kind: `added` stands only right, `removed` only left; `reordered` has the two orders.
        left: the JSON value on the left, None where there is none.
        right: the JSON value on the right.
    """

    path: str
    kind: Kind
    left: Any = None
    right: Any = None


def differences(left: Any, right: Any, path: str = "$") -> Iterator[Change]:
    """Yield what differs between two values, in the order of the document.

    Args:
        left: a JSON value; dataclasses and events of the program stand for their fields.
        right: another one.
        path: where the two stand.
    """
    if left is right:
        return
    left, right = _opened(left), _opened(right)
    if isinstance(left, dict) and isinstance(right, dict):
        yield from _members(left, right, path)
    elif isinstance(left, list) and isinstance(right, list):
        yield from _items(left, right, path)
    elif not _alike(left, right):
        yield Change(path, "changed", as_json(left), as_json(right))


def as_json(value: Any) -> Any:
    """Return a value of the program (dataclass, event, mapping, tuple, set) as a JSON value."""
    value = _opened(value)
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    return [as_json(item) for item in value] if isinstance(value, list) else value


def _opened(value: Any) -> Any:
    """Return one level of a value as dict or list."""
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, BaseModel):
        return dict(value)
    if isinstance(value, Mapping):
        return value if isinstance(value, dict) else dict(value)
    if isinstance(value, frozenset):
        return sorted(value)
    return list(value) if isinstance(value, tuple) else value


def _alike(left: Any, right: Any) -> bool:
    try:
        return canonical.same(left, right)
    except CanonicalError:
        return False


def _members(left: Json, right: Json, path: str) -> Iterator[Change]:
    for key in _merged(list(left), list(right)):
        below = f"{path}{_member(key)}"
        yield from _one_side_or_both(key, left, right, below)
    yield from _order(left, right, path)


def _items(left: list[Any], right: list[Any], path: str) -> Iterator[Change]:
    named_left, named_right = _by_id(left), _by_id(right)
    if named_left is None or named_right is None:
        yield from _places(left, right, path)
        return
    for name in _merged(list(named_left), list(named_right)):
        below = f"{path}[?@.id=={_quoted(name)}]"
        yield from _one_side_or_both(name, named_left, named_right, below)
    yield from _order(named_left, named_right, path)


def _one_side_or_both(key: str, left: Json, right: Json, path: str) -> Iterator[Change]:
    if key not in right:
        yield Change(path, "removed", left=as_json(left[key]))
    elif key not in left:
        yield Change(path, "added", right=as_json(right[key]))
    else:
        yield from differences(left[key], right[key], path)


def _order(left: Json, right: Json, path: str) -> Iterator[Change]:
    """Yield a change if what both sides have stands in another order."""
    ours, theirs = [n for n in left if n in right], [n for n in right if n in left]
    if ours != theirs:
        yield Change(path, "reordered", ours, theirs)


def _places(left: list[Any], right: list[Any], path: str) -> Iterator[Change]:
    """Match lists by place, after what is equal at their beginnings and at their ends."""
    shortest = min(len(left), len(right))
    first = _equal_run(zip(left, right, strict=False))
    last = min(_equal_run(zip(reversed(left), reversed(right), strict=False)), shortest - first)
    middle = range(first, max(len(left), len(right)) - last)
    for n in middle:
        below = f"{path}[{n}]"
        if n >= len(right) - last:
            yield Change(below, "removed", left=as_json(left[n]))
        elif n >= len(left) - last:
            yield Change(below, "added", right=as_json(right[n]))
        else:
            yield from differences(left[n], right[n], below)


def _equal_run(pairs: Iterable[tuple[Any, Any]]) -> int:
    count = 0
    for left, right in pairs:
        # By bytes: asking `differences` here and again below would double the work a level.
        if left is not right and not _alike(as_json(left), as_json(right)):
            break
        count += 1
    return count


def _by_id(items: list[Any]) -> Json | None:
    """Return items by their IDs; None if they do not all have one of their own."""
    opened = [_opened(item) for item in items]
    named = {item["id"]: item for item in opened if _has_id(item)}
    return named if len(named) == len(items) else None


def _has_id(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("id"), str)


def _merged(left: Sequence[str], right: Sequence[str]) -> list[str]:
    """Return the names of both sides in the order in which a reader of both meets them."""
    places: dict[str, int] = {}
    for names in (left, right):
        for place, name in enumerate(names):
            places[name] = min(place, places.get(name, place))
    return sorted(places, key=places.__getitem__)


_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def _member(key: str) -> str:
    return f".{key}" if _PLAIN_NAME.match(key) else f"[{_quoted(key)}]"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + "".join(c if c >= " " else f"\\u{ord(c):04x}" for c in escaped) + "'"


# States -----------------------------------------------------------------------------------------


def state_changes(before: State, after: State) -> Iterator[Change]:
    """Yield what differs between two states of a case, their positions aside."""
    for field in fields(State):
        if field.name != "position":
            left, right = getattr(before, field.name), getattr(after, field.name)
            yield from differences(left, right, f"$.{field.name}")


# Requests ---------------------------------------------------------------------------------------


def request_summary(reader: CaseReader, prepared: RequestPrepared) -> Json:
    """Return what two requests are compared by: versions, words, decoded view and feedback.

    A request of a protocol that this release does not have is compared as it was sent.

    Raises:
        LedgerDamaged: the payload is missing, altered, or no request document.
    """
    document = saved_document(reader, prepared.request, prepared.document)
    head = {
        "phase": prepared.phase,
        "protocol": prepared.protocol,
        "versions": prepared.versions,
        "form": prepared.form,
        "system": document["system"],
        "schema": document.get("schema"),
    }
    try:
        shown = decoded(document)
        return {**head, "view": shown["view"], "feedback": shown["feedback"]}
    except UnknownVersion:
        return {**head, "messages": document["messages"]}


# Cases ------------------------------------------------------------------------------------------


class Side(NamedTuple):
    """One of two cases that are compared: which it is, and what is compared of it."""

    reader: CaseReader
    state: State
    compared: Json

    @property
    def forks(self) -> list[CaseForked]:
        """The forks in its history, oldest first."""
        return [event for _, event in self.reader.events() if isinstance(event, CaseForked)]


def case_side(reader: CaseReader) -> Side:
    """Return a case with what it is compared by: findings, requests, usage, configuration."""
    state = fold(reader.events())
    prepared = [event for _, event in reader.events() if isinstance(event, RequestPrepared)]
    return Side(
        reader,
        state,
        {
            "outcome": state.outcome(),
            "configuration": _configuration(reader, state),
            "usage": spending(reader.events()).as_json(),
            "requests": {event.request: _request(event) for event in prepared},
        },
    )


def shared_history(left: CaseReader, right: CaseReader) -> int:
    """Return the position up to which two ledgers have the same events; 0 for none."""
    shared = 0
    if left.case_id == right.case_id:
        for ours, theirs in zip(left.rows(), right.rows(), strict=False):
            if ours.chain != theirs.chain:
                break
            shared = ours.position
    return shared


def _request(event: RequestPrepared) -> Json:
    return {
        "phase": event.phase,
        "protocol": event.protocol,
        "document": event.document.digest,
        "characters": event.characters,
        "estimated_tokens": event.estimated_tokens,
    }


def _configuration(reader: CaseReader, state: State) -> Any:
    if state.configuration is None:
        return None
    return canonical.from_bytes(reader.payload(state.configuration.digest))
