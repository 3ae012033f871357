"""Case interpretation: what the case says, before anybody looks for the cause."""

from __future__ import annotations

from ledger.events import CaseInterpreted, Event
from phases.case_interpretation.answer_v1 import CaseInterpretation
from phases.phase import Accepted, Phase, numbered


def facts(accepted: Accepted) -> list[Event]:
    """Return the interpretation, its facts with their IDs."""
    items = numbered(accepted.answer["facts"], "F", accepted.state.facts)
    result = {
        **accepted.answer,
        "facts": [{**item, "revision": accepted.state.revision} for item in items],
    }
    return [
        CaseInterpreted(
            at=accepted.now,
            request=accepted.request,
            revision=accepted.state.revision,
            result=result,
        )
    ]


PHASE = Phase("case_interpretation", {"case_interpretation_v1": CaseInterpretation}, facts)
