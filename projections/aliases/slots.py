"""Where labels may stand: `provenance` and `metadata` members of evidence, and nowhere else.

Rows of a database and arguments that a model gave are literal data, whatever they look like: no
label is set or resolved inside them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PREFIX = {"provenance": "P", "metadata": "M"}
LITERAL = frozenset({"rows", "arguments", "lines", "values", "text"})
"""Members whose content is data of the case: labels are neither set nor resolved below them."""

Change = Callable[[str, Any], Any]


def map_slots(node: Any, change: Change) -> Any:
    """Return a copy of evidence in which every slot's value is `change(member, value)`."""
    if isinstance(node, list):
        return [map_slots(item, change) for item in node]
    if not isinstance(node, dict):
        return node
    changed: dict[str, Any] = {}
    for key, value in node.items():
        if key in PREFIX:
            changed[key] = change(key, value)
        elif key in LITERAL:
            changed[key] = value
        else:
            changed[key] = map_slots(value, change)
    return changed


def with_evidence(view: dict[str, Any], change: Change) -> dict[str, Any]:
    """Return a copy of a view with `change` applied to every slot of its evidence."""
    if "evidence" not in view:
        return view
    return {**view, "evidence": map_slots(view["evidence"], change)}


def resolve(view: dict[str, Any]) -> dict[str, Any]:
    """Return a view with every label replaced by its definition in `shared`, `shared` emptied."""
    shared = view.get("shared") or {}

    def definition(member: str, value: Any) -> Any:
        is_label = isinstance(value, str) and value.startswith(PREFIX[member]) and value in shared
        return shared[value] if is_label else value

    resolved = with_evidence(view, definition)
    return {**resolved, "shared": {}} if "shared" in resolved else resolved
