"""What a case used and cost, from usage events. Absent is not zero: it is unmeasured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ledger.events import RequestFailed, RequestSent, UsageMeasured
from ledger.reader import Entry


@dataclass
class Spending:
    """Sums over all attempts. A sum is None until something was measured."""

    attempts: int = 0
    failed: int = 0
    prompt: int | None = None
    cached: int | None = None
    output: int | None = None
    thoughts: int | None = None
    cost_nano_usd: int | None = None

    def as_json(self) -> dict[str, Any]:
        return vars(self).copy()


def spending(entries: Iterable[Entry]) -> Spending:
    """Return what all attempts used."""
    total = Spending()
    measured: set[tuple[str, int]] = set()  # a fork may read again what was measured already
    for _, event in entries:
        if isinstance(event, RequestSent):
            total.attempts += 1
        elif isinstance(event, RequestFailed):
            total.failed += 1
        elif isinstance(event, UsageMeasured) and _first(measured, event):
            total.prompt = _plus(total.prompt, event.prompt)
            total.cached = _plus(total.cached, event.cached)
            total.output = _plus(total.output, event.output)
            total.thoughts = _plus(total.thoughts, event.thoughts)
            total.cost_nano_usd = _plus(total.cost_nano_usd, event.cost_nano_usd)
    return total


def _first(measured: set[tuple[str, int]], event: UsageMeasured) -> bool:
    before = len(measured)
    measured.add((event.request, event.attempt))
    return len(measured) > before


def _plus(total: int | None, more: int | None) -> int | None:
    return total if more is None else (total or 0) + more
