"""Numbers in words: one spelling of `1 step, 7 steps` for everybody who tells of a case."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 step`, `1,200 steps`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
