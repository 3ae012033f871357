"""Context of the early review: does the evidence already decide the case?"""

from __future__ import annotations

from ledger.reader import CaseReader
from projections.contexts import parts
from projections.contexts.parts import Json, Material
from projections.state import State


def build(state: State, reader: CaseReader, material: Material) -> Json:
    """Return the canonical context."""
    return {
        "case": parts.case(state),
        "sources": parts.sources(state, reader, material),
        "interpretation": state.interpretation,
        "tools": material.tools,
        "catalogs": material.catalogs,
        "selected_hypothesis": state.selected or None,
        "hypotheses": parts.hypotheses(state),
        "evidence": parts.evidence(state, reader, material),
        "budget": parts.budget(state, material.policy["budget"]),
        "conclusion": {"why": state.conclusion},
        "earlier_review": state.early_review,
    }
