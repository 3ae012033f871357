"""Estimated tokens of a text: built in, dependency-free, the same on every machine.

Encoders choose by it, so it must never depend on an optional tokenizer. A word costs by its length,
digits one each, punctuation that JSON repeats is cheap; fitted on Gemma 3 counts of phase views.
Characters divided by four undercounts such texts by 27 to 44 %.
"""

from __future__ import annotations

import re

ESTIMATOR = "estimate_v1"

_ATOM = re.compile(
    r"(?P<space>\s+)|(?P<digits>[0-9]+)|(?P<word>[A-Za-z]+)|(?P<wide>[^\x00-\x7f]+)"
    r"|(?P<json>[\"{}\[\]:,]+)|(?P<other>[^\w\s])|(?P<rest>_+)"
)
_WORD = (0.0, 1.0, 1.0, 1.0, 1.05, 1.1, 1.2, 1.3, 1.4, 1.5, 1.7, 1.85, 2.0)


def estimated_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text."""
    total = 0.0
    for atom in _ATOM.finditer(text):
        total += _cost(str(atom.lastgroup), atom.end() - atom.start())
    return round(total)


def _cost(kind: str, length: int) -> float:
    if kind == "digits":
        return float(length)
    if kind == "word":
        return _WORD[length] if length < len(_WORD) else 2.0 + (length - 12) * 0.22
    if kind == "space":
        return 0.0 if length == 1 else 1.0
    if kind == "wide":
        return length * 0.7
    if kind == "json":
        return 0.45 * length if length > 1 else 0.8
    return 0.8 * length
