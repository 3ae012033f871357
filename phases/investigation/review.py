"""The early review: a separate request that tries to break a conclusion before it ends the loop."""

from __future__ import annotations

from typing import Any

from ledger.events import BudgetCharged, EarlyReviewHeld, Event, Problem
from phases.diagnosis.answer_v1 import EarlyReview
from phases.phase import Accepted, Phase


def check(answer: dict[str, Any], context: dict[str, Any]) -> list[Problem]:
    """A rejection says what is missing."""
    if answer["verdict"] == "accept" or answer["missing"]:
        return []
    message = "a rejection names at least one thing that is missing"
    return [Problem(code="nothing_missing", message=message, path="$.missing")]


def facts(accepted: Accepted) -> list[Event]:
    """Return the verdict; a rejection's feedback is live input of later investigation steps."""
    answer = accepted.answer
    accept = answer["verdict"] == "accept"
    feedback = {key: value for key, value in answer.items() if key != "verdict"}
    return [
        EarlyReviewHeld(
            at=accepted.now, request=accepted.request, accepted=accept, feedback=feedback
        ),
        BudgetCharged(at=accepted.now, requests=1, request=accepted.request),
    ]


PHASE = Phase("diagnosis_early", {"diagnosis_early_v1": EarlyReview}, facts, check)
