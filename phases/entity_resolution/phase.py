"""Entity resolution: who and what the case speaks of."""

from __future__ import annotations

from ledger.events import EntitiesResolved, Event
from phases.entity_resolution.answer_v1 import EntityResolution
from phases.phase import Accepted, Phase, numbered


def facts(accepted: Accepted) -> list[Event]:
    """Return the entities with their IDs; a new revision numbers on, IDs are never reused."""
    before = _highest(accepted)
    result = {
        **accepted.answer,
        "entities": numbered(accepted.answer["entities"], "N", before),
    }
    return [
        EntitiesResolved(
            at=accepted.now,
            request=accepted.request,
            revision=accepted.state.revision,
            result=result,
        )
    ]


def _highest(accepted: Accepted) -> int:
    return max((int(entity["id"][1:]) for entity in accepted.state.entities), default=0)


PHASE = Phase("entity_resolution", {"entity_resolution_v1": EntityResolution}, facts)
