"""Where a case stands, in a line for lists and in a page for one case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledger.book import Book
from ledger.errors import LedgerError
from ledger.reader import CaseReader
from projections.caching import decisions, lives, settle
from projections.folding import fold
from projections.spending import spending
from projections.state import State
from projections.wording import counted
from tools.output import money, spoken
from tools.rendering import confidence
from tools.sharing import withheld_json, withheld_text


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
    if state.diagnosis and ("change_request" in state.done or _is_finished_copy(state)):
        return spoken(state.diagnosis["outcome"])
    if _is_finished_copy(state):
        return "finished; the diagnosis is withheld in this copy"
    return f"in {spoken(contexts[-1].phase)}" if contexts else "taken in"


def _is_finished_copy(state: State) -> bool:
    """Tell whether the analysis is over, though what it found may be withheld in this copy."""
    return bool(state.withheld) and state.stopped == "done"


def status_json(reader: CaseReader, state: State) -> dict[str, Any]:
    """Return everything `status` shows of a state, as JSON (docs/json-output.md)."""
    spent = spending(reader.events(state.position))
    diagnosis = state.diagnosis
    return {
        "case_id": reader.case_id,
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
        "cache": cache_json(reader, state.position),
        "outcome": diagnosis["outcome"] if diagnosis else None,
        "confidence": diagnosis["confidence"] if diagnosis else None,
        "stopped": state.stopped or None,
        "needs": list(state.needs),
        "next": next_move(state),
        "withheld": withheld_json(reader),
    }


def cache_json(reader: CaseReader, upto: int) -> dict[str, Any]:
    """Return in figures what remote caches did up to a position (docs/json-output.md)."""
    made = decisions(reader.events(upto))
    ended = [life for life in lives(reader.events(upto)) if life.end]
    settled = [settle(life, life.ended_at) for life in ended]
    saved = [s.saved_nano_usd for s in settled if s.saved_nano_usd is not None]
    costs = [s.basis["creation_nano_usd"] for s in settled] + [s.storage_nano_usd for s in settled]
    priced = [amount for amount in costs if amount is not None]
    return {
        "decisions": len(made),
        "explicit": sum(one.event.decision == "explicit" for one in made),
        "rejected": sum(one.outcome == "rejected" for one in made),
        "caches": len(ended),
        "cost_nano_usd": sum(priced) if costs and len(priced) == len(costs) else None,
        "saved_nano_usd": sum(saved) if saved else None,
    }


def next_move(state: State) -> str:
    """Return what a person would do next."""
    if state.withheld:
        return "nothing: this is a copy made for sharing; whoever made it has the whole case"
    if state.attention == "information_needed":
        return "amend the case with what is needed, then run it"
    if state.attention:
        return "look at the latest rejection (`log --kind response`), then run again"
    if "change_request" in state.done:
        return "read the report; label it when you know"
    return "run it"


def status_lines(shown: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of `status`."""
    yield shown["title"] or shown["case_id"]
    where = f"position {shown['position']}, revision {shown['revision']}"
    yield f"state        {shown['standing']} ({where})"
    if shown["outcome"]:
        yield f"diagnosis    {spoken(shown['outcome'])}, {confidence(shown['confidence'])}"
    for hypothesis in shown["hypotheses"]:
        mark = "→" if hypothesis["id"] == shown["selected"] else " "
        yield f"{mark} {hypothesis['id']:<3} {hypothesis['state']:<10} {hypothesis['statement']}"
    spent, usage = shown["spent"], shown["usage"]
    yield (
        f"budget       {counted(spent['requests'], 'step')}, "
        f"{counted(spent['actions'], 'action')}, "
        f"{counted(spent['evidence_characters'], 'character')} of evidence "
        f"{_items(shown)}"
    )
    attempts = f"{counted(usage['attempts'], 'attempt')}, {usage['failed']} failed"
    yield f"requests     {shown['requests']}, {attempts}"
    yield f"tokens       {_tokens(usage)}"
    yield f"cost         {money(usage['cost_nano_usd'])}"
    if shown["cache"]["decisions"]:
        yield f"cache        {_cache(shown['cache'])}"
    for need in shown["needs"]:
        yield f"needed       {need['what']} ({need['why']})"
    if shown["withheld"]:
        yield f"withheld     {withheld_text(shown['withheld'])}: what depends on them is not shown"
    if "next" in shown:
        yield f"next         {shown['next']}"


def _items(shown: dict[str, Any]) -> str:
    """Return how many items of evidence there are; those of a copy are not all there were."""
    items = counted(shown["evidence"], "item")
    return f"({items} not withheld)" if shown["withheld"] else f"in {items}"


def _cache(cache: dict[str, Any]) -> str:
    text = f"{cache['explicit']} of {counted(cache['decisions'], 'attempt')} named one"
    if cache["rejected"]:
        text += f", {cache['rejected']} refused"
    if cache["saved_nano_usd"] is not None:
        text += f"; saved {money(cache['saved_nano_usd'])}"
    if cache["cost_nano_usd"] is not None:
        cost = money(cache["cost_nano_usd"])
        text += f"; creating and storing them cost {cost}, which is not in the cost above"
    elif cache["caches"]:
        text += "; what creating and storing them cost is unknown, and not in the cost above"
    return text


def _tokens(usage: dict[str, Any]) -> str:
    if usage["prompt"] is None:
        return "unmeasured (no usage from the provider)"
    cached = "unmeasured" if usage["cached"] is None else f"{usage['cached']:,}"
    return f"{usage['prompt']:,} in ({cached} cached), {usage['output'] or 0:,} out"
