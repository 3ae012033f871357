"""Entity resolution: who and what the case speaks of."""

from __future__ import annotations

from ledger.events import EntitiesResolved, Event
from phases.entity_resolution.answer_v1 import EntityResolution
from phases.phase import Accepted, Phase, numbered


def facts(accepted: Accepted) -> list[Event]:
    """Return the entities with their IDs; a new revision numbers on, IDs are never reused."""
    items = numbered(accepted.answer["entities"], "N", accepted.state.entities)
    result = {
        **accepted.answer,
        "entities": [{**item, "revision": accepted.state.revision} for item in items],
    }
    return [
        EntitiesResolved(
            at=accepted.now,
            request=accepted.request,
            revision=accepted.state.revision,
            result=result,
        )
    ]


PHASE = Phase("entity_resolution", {"entity_resolution_v1": EntityResolution}, facts)
