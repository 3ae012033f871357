"""A case as it was at any position: its state, what the model had seen, what each event changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ledger.events import Event, RequestPrepared, RequestSent
from ledger.reader import CaseReader
from projections.diffing import Change, state_changes
from projections.folding import fold
from projections.state import State


@dataclass(frozen=True)
class Seen:
    """A request that was saved by a position.

    Attributes:
        position: where it was prepared.
        characters: of all messages together, without the output schema.
        sent: the position of its first sending; None if it had not left yet: nobody had seen it.
        status: what had become of it (`projections.state.Request`); `withheld` if a copy made for
            sharing does not say how it was prepared: then only what its sending says is known.
    """

    request: str
    phase: str | None
    protocol: str | None
    document: str
    position: int | None
    characters: int | None
    estimated_tokens: int | None
    sent: int | None = None
    status: str = "prepared"

    def as_json(self) -> dict[str, Any]:
        return vars(self).copy()


class Moment(NamedTuple):
    """One event and what it changed in the state."""

    position: int
    event: Event
    changes: tuple[Change, ...]


def state_at(reader: CaseReader, position: int) -> State:
    """Return the state after the event at a position: what a run saw that stood there.

    Raises:
        LedgerDamaged: an event does not follow from those before it.
        UnknownEvent: an event up to there was written by a newer release.
    """
    return fold(reader.events(position))


def seen_by(reader: CaseReader, position: int) -> list[Seen]:
    """Return the requests saved up to a position, in order."""
    seen: dict[str, Seen] = {}
    state = State()
    for entry in reader.events(position):
        state = fold([entry], state)
        match entry.event:
            case RequestPrepared() as event:
                seen[event.request] = _seen(event, entry.position)
            case RequestSent(request=name) as event:
                known = seen.get(name) or _withheld(event)
                seen[name] = replace(known, sent=known.sent or entry.position)
    return [
        replace(item, status=state.requests[name].status) if name in state.requests else item
        for name, item in seen.items()
    ]


def walk(reader: CaseReader, upto: int, after: int = 0) -> Iterator[Moment]:
    """Yield every event with `after` < position ≤ `upto`, with what it changed."""
    state = state_at(reader, after)
    for entry in reader.events(upto, after=after):
        before, state = state, fold([entry], state)
        yield Moment(entry.position, entry.event, tuple(state_changes(before, state)))


def _withheld(event: RequestSent) -> Seen:
    unknown = (None, None, event.document, None, None, None)
    return Seen(event.request, *unknown, status="withheld")


def _seen(event: RequestPrepared, position: int) -> Seen:
    return Seen(
        event.request,
        event.phase,
        event.protocol,
        event.document.digest,
        position,
        event.characters,
        event.estimated_tokens,
    )
