"""View whole_v1: the canonical context as it is. For phases that show all they know."""

from __future__ import annotations

from typing import Any


def show(context: dict[str, Any]) -> dict[str, Any]:
    """Return the context."""
    return context
