"""Views made to be slow to encode: five families, each of a given size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def different_key_sets(size: int) -> Any:
    """Return rows whose key sets all differ."""
    return [{f"k{n}": n, f"k{n + 1}": n, f"m{n}": "x"} for n in range(size)]


def chains(size: int) -> Any:
    """Return deep chains of objects, some parts shared between them."""
    out = []
    for number in range(size // 60):
        value: Any = {"leaf": number % 7}
        for level in range(60):
            value = {"down": value, "level": level}
        out.append(value)
    return out


def repeats_in_repeats(size: int) -> Any:
    """Return lists of which each holds parts of the ones before, down to common texts."""
    layers: list[Any] = [f"a value that is long enough to be shared {n}" for n in range(8)]
    out = []
    for n in range(size // 4):
        part = {"left": layers[n % 8], "right": [layers[(n + 3) % 8], n % 5]}
        layers[n % 8] = part if n % 40 else f"another value to begin with anew {n}"
        out.append(part)
        if n % 16 == 0:
            layers = [f"a value that is long enough to be shared {n // 160} {m}" for m in range(8)]
    return out


def broken_lines(size: int) -> Any:
    """Return source lines whose numbers never run on."""
    return [{"path": "a.py", "line": n * 7 % size, "text": f"t{n % 50}"} for n in range(size)]


def wide_rows(size: int) -> Any:
    """Return few rows with very many columns, nested in part."""
    return [{f"c{n}": {"v": n * row, "w": 1} for n in range(size // 8)} for row in range(8)]


FAMILIES: Mapping[str, Callable[[int], Any]] = {
    "key sets that all differ": different_key_sets,
    "deep chains": chains,
    "repeats in repeats": repeats_in_repeats,
    "broken lines": broken_lines,
    "wide nested rows": wide_rows,
}
