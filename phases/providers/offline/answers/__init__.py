"""One module a phase: from the case to the phase's answer. `PHASES` is the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from phases.providers.offline.answers import (
    case_interpretation,
    change_request,
    diagnosis,
    diagnosis_early,
    entity_resolution,
    hypotheses,
    investigation,
)
from phases.providers.offline.case import Case, Json

PHASES: Mapping[str, Callable[[Case], Json]] = {
    "entity_resolution": entity_resolution.answer,
    "case_interpretation": case_interpretation.answer,
    "hypotheses": hypotheses.answer,
    "investigation": investigation.answer,
    "diagnosis_early": diagnosis_early.answer,
    "diagnosis": diagnosis.answer,
    "change_request": change_request.answer,
}


def answer_view(phase: str, view: Json) -> Json:
    """Return the answer of a phase to a view whose labels are resolved."""
    return PHASES[phase](Case(view))


__all__ = ["PHASES", "answer_view"]
