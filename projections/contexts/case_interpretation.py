"""Context of case interpretation: as entity resolution, with the entities resolved."""

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
        "unresolved": list(state.unresolved),
        "catalogs": material.catalogs,
        "earlier_interpretation": state.interpretation,
    }
