"""No aliases: definitions stay where they are."""

from __future__ import annotations

from typing import Any


def apply(view: dict[str, Any]) -> dict[str, Any]:
    """Return the view itself."""
    return view
