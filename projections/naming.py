"""What an ID inside a case names: S1, O2, N3, F4, H5, C6, R7, A8, E9, and payload digests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ledger.events import (
    ActionRequested,
    ArtifactAdded,
    CaseInterpreted,
    ContextCreated,
    EntitiesResolved,
    Event,
    EvidenceRecorded,
    HypothesesProposed,
    ObservationsExtracted,
    Ref,
    RequestPrepared,
)
from ledger.reader import Entry


class Named(NamedTuple):
    """Where a thing came into being: its event, and its payload or its value inside the event."""

    id: str
    position: int
    event: Event
    payload: Ref | None = None
    value: Mapping[str, Any] | None = None


def things(entries: Iterable[Entry]) -> Iterator[Named]:
    """Yield every thing with an ID, in the order in which they came into being."""
    for position, event in entries:
        match event:
            case ArtifactAdded():
                yield Named(event.artifact, position, event, event.content or event.tree)
            case ObservationsExtracted():
                for observation in event.observations:
                    yield Named(
                        observation.id, position, event, value=observation.model_dump(mode="json")
                    )
            case ContextCreated():
                yield Named(event.context, position, event, event.content)
            case RequestPrepared():
                yield Named(event.request, position, event, event.document)
            case ActionRequested():
                yield Named(event.action, position, event)
            case EvidenceRecorded():
                yield Named(event.evidence, position, event, event.content)
            case EntitiesResolved() | CaseInterpreted() | HypothesesProposed():
                yield from _in_result(position, event)


def find(entries: Iterable[Entry], name: str) -> Named | None:
    """Return the thing with this ID, None if there is none."""
    return next((thing for thing in things(entries) if thing.id == name), None)


def _in_result(
    position: int, event: EntitiesResolved | CaseInterpreted | HypothesesProposed
) -> Iterator[Named]:
    for value in event.result.values():
        for item in value if isinstance(value, list) else ():
            if isinstance(item, dict) and isinstance(item.get("id"), str):
                yield Named(item["id"], position, event, value=item)
