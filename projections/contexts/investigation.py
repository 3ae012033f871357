"""Context of one investigation step: everything known, every payload, every hypothesis."""

from __future__ import annotations

from ledger.reader import CaseReader
from projections.contexts import parts
from projections.contexts.parts import Json, Material
from projections.state import State


def build(state: State, reader: CaseReader, material: Material) -> Json:
    """Return the canonical context; its members are those of design page 4."""
    return {
        "case": parts.case(state),
        "sources": parts.sources(state, reader, material),
        "interpretation": state.interpretation,
        "policy": material.policy,
        "tools": material.tools,
        "catalogs": material.catalogs,
        "selected_hypothesis": state.selected or None,
        "hypotheses": parts.hypotheses(state),
        "budget": parts.budget(state, material.policy["budget"]),
        "evidence": parts.evidence(state, reader, material),
        "early_review": state.early_review,
        "shared": {},
    }
