"""Aliases sequential_v1: P1, P2 … and M1, M2 … for definitions that occur more than once.

Numbered in order of first appearance, so that evidence that comes earlier renames what follows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count as count_up
from typing import Any

from ledger.canonical import to_bytes
from projections.aliases.slots import PREFIX, with_evidence


def apply(view: dict[str, Any]) -> dict[str, Any]:
    """Return the view with repeated definitions in `shared` and labels in their place."""
    counts: Counter[tuple[str, bytes]] = Counter()
    taken: set[str] = set()

    def count(member: str, value: Any) -> Any:
        if isinstance(value, dict):
            counts[member, to_bytes(value)] += 1
        elif isinstance(value, str):
            taken.add(value)  # text of the case: a label must not look like it
        return value

    with_evidence(view, count)
    repeated = [key for key, number in counts.items() if number > 1]
    if not repeated:
        return view
    free = {member: _names(prefix, taken) for member, prefix in PREFIX.items()}
    labels = {key: next(free[key[0]]) for key in repeated}
    shared: dict[str, Any] = {}

    def label(member: str, value: Any) -> Any:
        if not isinstance(value, dict) or (name := labels.get((member, to_bytes(value)))) is None:
            return value
        shared[name] = value
        return name

    labelled = with_evidence(view, label)
    return {**labelled, "shared": dict(sorted(shared.items(), key=_order))}


def _names(prefix: str, taken: set[str]) -> Iterator[str]:
    for number in count_up(1):
        if (name := f"{prefix}{number}") not in taken:
            yield name


def _order(item: tuple[str, Any]) -> tuple[str, int]:
    return item[0][0], int(item[0][1:])
