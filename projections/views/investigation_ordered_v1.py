"""View investigation_ordered_v1: full history in a fixed order of members, for v11.

What stays the same over a whole revision stands first, evidence before what changes at every step.
"""

from __future__ import annotations

from typing import Any

FIRST = (
    "case",
    "sources",
    "interpretation",
    "policy",
    "tools",
    "catalogs",
    "evidence",
    "hypotheses",
    "selected_hypothesis",
    "budget",
    "early_review",
)
LAST = "shared"


def show(context: dict[str, Any]) -> dict[str, Any]:
    """Return all of the context: known members in order, unknown ones sorted, `shared` last."""
    unknown = sorted(set(context) - {*FIRST, LAST})
    order = [*(key for key in FIRST if key in context), *unknown]
    return {key: context[key] for key in order} | {LAST: context.get(LAST, {})}
