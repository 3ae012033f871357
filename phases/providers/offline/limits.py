"""Cuts what an answer says to what the schemas allow: lines of 600, texts of 4000, lists of n."""

from __future__ import annotations

from collections.abc import Iterable

LINE = 600
TEXT = 4000
CITED = 40


def line(text: str, limit: int = LINE) -> str:
    """Return a text on one line, never empty, with a mark where it was cut."""
    flat = " ".join(text.split()) or "-"
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def text(value: str, limit: int = TEXT) -> str:
    """Return a text that is not empty, with a mark where it was cut."""
    tidy = value.strip() or "-"
    return tidy if len(tidy) <= limit else tidy[: limit - 1] + "…"


def distinct(items: Iterable[str], limit: int = CITED) -> list[str]:
    """Return items once each, in order, at most `limit`."""
    return list(dict.fromkeys(items))[:limit]
