"""Identifiers as words: `openItems`, `open_items` and `OpenItems` have the words open and items."""

from __future__ import annotations

import re
from functools import lru_cache

IDENTIFIER = re.compile(r"[^\W\d]\w*")
LONGEST = 100
"""Characters of the longest identifier that is indexed; longer ones are data."""

_HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")


@lru_cache(maxsize=200_000)
def words(identifier: str) -> tuple[str, ...]:
    """Return the lower-case words of an identifier: `HTTPServer2` → http, server, 2."""
    return tuple(part.lower() for part in _HUMPS.findall(identifier))


@lru_cache(maxsize=200_000)
def terms(identifier: str) -> str:
    """Return what is indexed for an identifier: its words, and all joined if there are several."""
    if len(identifier) > LONGEST:
        return ""
    parts = words(identifier)
    return " ".join(parts) if len(parts) < 2 else " ".join((*parts, "".join(parts)))
