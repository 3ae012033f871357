"""Carrying out an action that was asked for: evidence or a refusal, and its charge."""

from __future__ import annotations

from typing import Any

from ledger import canonical
from ledger.events import ActionRefused, BudgetCharged, Event, EvidenceRecorded, Problem
from phases.investigation.actions import Refusal, perform
from phases.investigation.snapshot import Snapshot
from phases.preparing import Prepared, reference
from phases.settings import Settings
from phases.steps import exhausted_budget
from projections.contexts.parts import READS
from projections.state import Action, State


def act(
    state: State,
    action: Action,
    snapshot: Snapshot,
    settings: Settings,
    withheld: frozenset[str],
    now: str,
) -> Prepared:
    """Return the result of an action as events with their payload.

    A person's action is not charged: the budget is the model's. `withheld` are kinds of artefact
    that a remote provider must not see.
    """
    charged = action.by == "model"
    refusal = _not_now(state, action, settings, withheld) if charged else None
    result = refusal or perform(snapshot, action.name, dict(action.expanded))
    charge = BudgetCharged(at=now, actions=1, action=action.id)
    if isinstance(result, Refusal):
        refused = ActionRefused(
            at=now, action=action.id, kind=result.kind, problems=result.problems
        )
        return Prepared((refused, charge) if charged else (refused,), ())
    data = canonical.to_bytes(result.document)
    recorded = EvidenceRecorded(
        at=now,
        evidence=f"E{len(state.evidence) + 1}",
        action=action.id,
        kind=action.name,
        content=reference(data),
        characters=len(data.decode()),
        complete=result.complete,
        found=result.found,
        hypothesis=action.hypothesis,
    )
    charge = charge.model_copy(update={"evidence_characters": recorded.characters})
    events: tuple[Event, ...] = (recorded, charge) if charged else (recorded,)
    return Prepared(events, (data,))


def _not_now(
    state: State, action: Action, settings: Settings, withheld: frozenset[str]
) -> Refusal | None:
    """Refuse what the budget no longer allows, what must stay here, and what was done already."""
    if (kind := READS.get(action.name, "source")) in withheld:
        message = f"this case keeps every {kind} on the machine; look elsewhere"
        return Refusal("outside_snapshot", (Problem(code="withheld", message=message),))
    if exhausted := exhausted_budget(state, settings):
        message = f"the budget is used up ({exhausted})"
        return Refusal("limit", (Problem(code=exhausted, message=message),))
    for earlier in state.actions.values():
        if earlier.id == action.id:
            break
        if _same_look(earlier, action):
            message = f"this look was taken already, its result is {earlier.result}"
            return Refusal("repeated", (Problem(code="repeated", message=message),))
    return None


def _same_look(earlier: Action, action: Action) -> bool:
    def key(item: Action) -> tuple[Any, ...]:
        return item.name, item.revision, canonical.to_bytes(dict(sorted(item.expanded.items())))

    return earlier.result != "refused" and key(earlier) == key(action)
