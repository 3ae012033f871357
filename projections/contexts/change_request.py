"""Context of the change request: the diagnosis and the evidence it cites."""

from __future__ import annotations

from ledger.reader import CaseReader
from projections.contexts import parts
from projections.contexts.parts import Json, Material
from projections.state import State


def build(state: State, reader: CaseReader, material: Material) -> Json:
    """Return the canonical context; evidence that the diagnosis does not cite is left out."""
    cited = _cited(state.diagnosis)
    return {
        "case": parts.case(state),
        "sources": parts.sources(state, reader, material),
        "interpretation": state.interpretation,
        "diagnosis": state.diagnosis,
        "evidence": [
            item for item in parts.evidence(state, reader, material) if item["id"] in cited
        ],
        "catalogs": {
            **material.catalogs,
            "evidence_not_cited": sorted(set(state.evidence) - cited, key=_number),
        },
    }


def _cited(node: object) -> set[str]:
    """Return every string in the diagnosis: a superset of what it cites, which is all we need."""
    if isinstance(node, dict):
        return set().union(*map(_cited, node.values())) if node else set()
    if isinstance(node, list):
        return set().union(*map(_cited, node)) if node else set()
    return {node} if isinstance(node, str) else set()


def _number(name: str) -> int:
    return int(name[1:])
