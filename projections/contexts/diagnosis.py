"""Context of the diagnosis: an independent request over everything that was found."""

from __future__ import annotations

from ledger.reader import CaseReader
from projections.contexts import parts
from projections.contexts.parts import Json, Material
from projections.state import State


def build(state: State, reader: CaseReader, material: Material) -> Json:
    """Return the canonical context; `ended` says why the investigation ended."""
    return {
        "case": parts.case(state),
        "sources": parts.sources(state, reader, material),
        "interpretation": state.interpretation,
        "catalogs": material.catalogs,
        "selected_hypothesis": state.selected or None,
        "hypotheses": parts.hypotheses(state),
        "evidence": parts.evidence(state, reader, material),
        "early_review": state.early_review,
        "ended": state.ended,
    }
