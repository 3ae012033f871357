"""Hypotheses: competing, testable explanations."""

from __future__ import annotations

from typing import Any

from ledger.events import Event, HypothesesProposed, HypothesisSelected, Problem
from phases.hypotheses.answer_v1 import Hypotheses
from phases.phase import Accepted, Phase, numbered


def check(answer: dict[str, Any], context: dict[str, Any]) -> list[Problem]:
    """Ask for at least one hypothesis, unless some were carried from an earlier revision."""
    if answer["hypotheses"] or answer["information_needed"] or context.get("hypotheses"):
        return []
    return [
        Problem(
            code="no_hypothesis",
            message="propose at least one hypothesis, or say what information is needed",
            path="$.hypotheses",
        )
    ]


def facts(accepted: Accepted) -> list[Event]:
    """Return the hypotheses with their IDs, and the most likely one as the first to follow."""
    state = accepted.state
    items = numbered(accepted.answer["hypotheses"], "H", state.hypotheses)
    events: list[Event] = [
        HypothesesProposed(
            at=accepted.now,
            request=accepted.request,
            revision=state.revision,
            result={**accepted.answer, "hypotheses": items},
        )
    ]
    if items:
        first = max(items, key=lambda item: item["likelihood"])
        events.append(
            HypothesisSelected(
                at=accepted.now,
                hypothesis=first["id"],
                reason="most likely before evidence",
                request=accepted.request,
            )
        )
    return events


PHASE = Phase("hypotheses", {"hypotheses_v1": Hypotheses}, facts, check)
