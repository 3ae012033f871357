"""Canonical contexts: what each phase may know, built from state and payloads. One module a phase.

Builders need no freezing: a saved request is rebuilt from its archived context.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ledger.reader import CaseReader
from projections.contexts import (
    case_interpretation,
    change_request,
    diagnosis,
    diagnosis_early,
    entity_resolution,
    hypotheses,
    investigation,
)
from projections.contexts.parts import Json, Material
from projections.state import State

Builder = Callable[[State, CaseReader, Material], Json]


def builder(phase: str) -> Builder:
    """Return the builder of a phase; one without its own gets all that a diagnosis gets."""
    return BUILDERS.get(phase, diagnosis.build)


BUILDERS: Mapping[str, Builder] = {
    "entity_resolution": entity_resolution.build,
    "case_interpretation": case_interpretation.build,
    "hypotheses": hypotheses.build,
    "investigation": investigation.build,
    "diagnosis_early": diagnosis_early.build,
    "diagnosis": diagnosis.build,
    "change_request": change_request.build,
}

__all__ = ["BUILDERS", "Builder", "Material", "builder"]
