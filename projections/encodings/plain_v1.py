"""Encoding plain_v1: the view as it is."""

from __future__ import annotations

from typing import Any

from projections.encodings.types import Encoded


def encode(view: Any) -> Encoded:
    """Return the view itself."""
    return Encoded(view, "plain", "only")


def restore(content: Any) -> Any:
    """Return the view."""
    return content
