"""Context of the hypotheses phase: the interpretation, and hypotheses carried from before."""

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
        "catalogs": material.catalogs,
        "hypotheses": parts.hypotheses(state),
        "evidence": parts.evidence(state, reader, material),
    }
