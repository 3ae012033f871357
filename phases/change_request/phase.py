"""Change request: the hand-off to a coding agent or a person."""

from __future__ import annotations

from ledger.events import ChangeRequested, Event
from phases.change_request.answer_v1 import ChangeRequest
from phases.phase import Accepted, Phase


def facts(accepted: Accepted) -> list[Event]:
    """Return the change request."""
    return [
        ChangeRequested(
            at=accepted.now,
            request=accepted.request,
            revision=accepted.state.revision,
            result=accepted.answer,
        )
    ]


PHASE = Phase("change_request", {"change_request_v1": ChangeRequest}, facts)
