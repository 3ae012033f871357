"""Aliases content_v1: labels from the content of a definition, so that nothing renames anything.

Every `provenance` or `metadata` object of at least 200 canonical bytes gets `P:` or `M:` and 128
bits of the SHA-256 of its key-sorted bytes, at its first occurrence already. Adding evidence,
changing the selected hypothesis or the budget therefore changes no label.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from ledger.canonical import to_bytes
from projections.aliases.slots import PREFIX, with_evidence

SMALLEST = 200
"""Canonical bytes of the smallest definition that is shared."""

HEX_DIGITS = 32

Label = Callable[[str, dict[str, Any]], str]


def label_of(member: str, value: dict[str, Any]) -> str:
    """Return the label of a definition: its member's letter and 32 hex digits of its digest."""
    digest = hashlib.sha256(to_bytes(_sorted(value))).hexdigest()
    return f"{PREFIX[member]}:{digest[:HEX_DIGITS]}"


def apply(view: dict[str, Any], label: Label = label_of) -> dict[str, Any]:
    """Return the view with large definitions in `shared` and their labels in their place.

    A label that two different definitions would share is refused: the later one stays where it is.
    So does text of the case that stands in a slot and happens to be a label.
    """
    shared: dict[str, Any] = {}
    literal: set[str] = set()

    def note(member: str, value: Any) -> Any:
        if isinstance(value, str):
            literal.add(value)
        return value

    def replace(member: str, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        data = to_bytes(value)
        if len(data) < SMALLEST:
            return value
        name = label(member, value)
        if name in literal or to_bytes(shared.setdefault(name, value)) != data:
            return value
        return name

    with_evidence(view, note)
    labelled = with_evidence(view, replace)
    if not shared:
        return view
    return {**labelled, "shared": dict(sorted(shared.items()))}


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
