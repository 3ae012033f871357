"""View investigation_focused_v1: evidence of the selected hypothesis only, for v8 and v9."""

from __future__ import annotations

from typing import Any


def show(context: dict[str, Any]) -> dict[str, Any]:
    """Return the context with the evidence of other hypotheses left out, and said so.

    Evidence that serves no hypothesis stays. What is left out is listed by ID, so that the model
    knows it exists.
    """
    selected = context["selected_hypothesis"]
    kept = [item for item in context["evidence"] if item["hypothesis"] in (selected, None)]
    shown = {item["id"] for item in kept}
    left_out = [item["id"] for item in context["evidence"] if item["id"] not in shown]
    return {**context, "evidence": kept, "evidence_not_shown": left_out}
