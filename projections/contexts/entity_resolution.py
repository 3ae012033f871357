"""Context of entity resolution: observations, artefacts and catalogs."""

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
        "catalogs": material.catalogs,
    }
