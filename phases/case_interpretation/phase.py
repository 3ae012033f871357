"""Case interpretation: what the case says, before anybody looks for the cause."""

from __future__ import annotations

from ledger.events import CaseInterpreted, Event
from phases.case_interpretation.answer_v1 import CaseInterpretation
from phases.phase import Accepted, Phase, numbered


def facts(accepted: Accepted) -> list[Event]:
    """Return the interpretation, its facts with their IDs."""
    before = max((int(fact["id"][1:]) for fact in accepted.state.facts), default=0)
    result = {**accepted.answer, "facts": numbered(accepted.answer["facts"], "F", before)}
    return [
        CaseInterpreted(
            at=accepted.now,
            request=accepted.request,
            revision=accepted.state.revision,
            result=result,
        )
    ]


PHASE = Phase("case_interpretation", {"case_interpretation_v1": CaseInterpretation}, facts)
