"""Where a case stands, in a line for lists and in a page for one case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledger.book import Book
from ledger.errors import LedgerError
from ledger.package import Package
from projections.spending import spending
from projections.state import State, fold
from tools.output import spoken
from tools.rendering import confidence


@dataclass(frozen=True)
class Row:
    """A case in a list."""

    name: str
    state: str
    confidence: float | None
    requests: int
    cost_nano_usd: int | None
    events: int
    title: str

    def cells(self) -> tuple[object, ...]:
        sure = "" if self.confidence is None else confidence(self.confidence)
        return (self.name, self.state, sure, self.requests, money(self.cost_nano_usd), self.events,
                self.title)  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        return vars(self).copy()


def rows(path: Path) -> Iterator[Row]:
    """Yield the row of a case; one that cannot be read says why in its place."""
    try:
        with Book.open(path) as book:
            state = fold(book.events())
            spent = spending(book.events())
            found = state.diagnosis["confidence"] if state.diagnosis else None
            yield Row(
                path.stem,
                standing(state),
                found,
                len(state.requests),
                spent.cost_nano_usd,
                book.head.position,
                state.title,
            )
    except LedgerError as error:
        yield Row(path.stem, type(error).__name__, None, 0, None, 0, str(error))


def standing(state: State) -> str:
    """Return in a few words where a case stands."""
    contexts = [c for c in state.contexts.values() if c.revision == state.revision]
    if state.revision > 1 and not contexts and not state.attention:
        return "amended, not analysed yet"
    if state.labels:
        return f"labelled {state.labels[-1].verdict}"
    if state.attention:
        return f"needs attention: {spoken(state.attention)}"
    if "change_request" in state.done and state.diagnosis:
        return spoken(state.diagnosis["outcome"])
    return f"in {spoken(contexts[-1].phase)}" if contexts else "taken in"


def status_json(reader: Book | Package, state: State) -> dict[str, Any]:
    """Return everything `status` shows, as JSON (docs/json-output.md)."""
    spent = spending(reader.events())
    diagnosis = state.diagnosis
    return {
        "case_id": state.case_id,
        "trial_id": state.trial_id,
        "title": state.title,
        "revision": state.revision,
        "position": state.position,
        "standing": standing(state),
        "phases_done": sorted(state.done),
        "hypotheses": [
            {"id": h.id, "state": h.state, "statement": h.value["statement"]}
            for h in state.hypotheses.values()
        ],
        "selected": state.selected or None,
        "spent": vars(state.spent),
        "evidence": len(state.evidence),
        "requests": len(state.requests),
        "usage": spent.as_json(),
        "outcome": diagnosis["outcome"] if diagnosis else None,
        "confidence": diagnosis["confidence"] if diagnosis else None,
        "stopped": state.stopped or None,
        "needs": list(state.needs),
        "next": next_move(state),
    }


def next_move(state: State) -> str:
    """Return what a person would do next."""
    if state.attention == "information_needed":
        return "amend the case with what is needed, then run it"
    if state.attention:
        return "look at the latest rejection (`log --kind response`), then run again"
    if "change_request" in state.done:
        return "read the report; label it when you know"
    return "run it"


def status_lines(shown: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of `status`."""
    yield shown["title"]
    where = f"position {shown['position']}, revision {shown['revision']}"
    yield f"state        {shown['standing']} ({where})"
    if shown["outcome"]:
        yield f"diagnosis    {spoken(shown['outcome'])}, {confidence(shown['confidence'])}"
    for hypothesis in shown["hypotheses"]:
        mark = "→" if hypothesis["id"] == shown["selected"] else " "
        yield f"{mark} {hypothesis['id']:<3} {hypothesis['state']:<10} {hypothesis['statement']}"
    spent, usage = shown["spent"], shown["usage"]
    yield (
        f"budget       {spent['requests']} steps, {spent['actions']} actions, "
        f"{spent['evidence_characters']:,} characters of evidence in {shown['evidence']} items"
    )
    attempts = f"{usage['attempts']} attempts, {usage['failed']} failed"
    yield f"requests     {shown['requests']}, {attempts}"
    yield f"tokens       {_tokens(usage)}"
    yield f"cost         {money(usage['cost_nano_usd'])}"
    for need in shown["needs"]:
        yield f"needed       {need['what']} ({need['why']})"
    yield f"next         {shown['next']}"


def money(nano_usd: int | None) -> str:
    """Return an amount in US dollars; `unmeasured` if the provider did not say."""
    return "unmeasured" if nano_usd is None else f"${nano_usd / 1e9:.4f}"


def _tokens(usage: dict[str, Any]) -> str:
    if usage["prompt"] is None:
        return "unmeasured (no usage from the provider)"
    return f"{usage['prompt']:,} in ({usage['cached'] or 0:,} cached), {usage['output'] or 0:,} out"
