"""View investigation_full_v1: every stored payload, other hypotheses' included, for v10."""

from __future__ import annotations

from typing import Any


def show(context: dict[str, Any]) -> dict[str, Any]:
    """Return the context as it is: full history."""
    return context
