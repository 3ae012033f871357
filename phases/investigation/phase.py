"""One investigation step: assess what is known, then look further or conclude."""

from __future__ import annotations

from typing import Any

from ledger.events import (
    ActionRequested,
    BudgetCharged,
    ConclusionReached,
    Event,
    HypothesisAssessed,
    HypothesisSelected,
    Problem,
)
from phases.investigation.answer_v1 import InvestigationStep
from phases.investigation.references import expand
from phases.phase import Accepted, Phase, assessed_once


def check(answer: dict[str, Any], context: dict[str, Any]) -> list[Problem]:
    """A step either looks further or concludes, not both and not neither."""
    problems = assessed_once([item["hypothesis"] for item in answer["assessments"]], "assessments")
    ready, actions = answer["conclusion"]["ready"], answer["actions"]
    message = ""
    if ready and actions:
        message = "conclusion.ready asks for an early review: then ask for no actions"
    elif not ready and not actions and not answer["information_needed"]:
        message = "ask for at least one action, or set conclusion.ready"
    if message:
        problems.append(Problem(code="step", message=message, path="$.actions"))
    return problems


def facts(accepted: Accepted) -> list[Event]:
    """Return assessments, selection, actions asked for or the conclusion, and the charge."""
    answer, state, now = accepted.answer, accepted.state, accepted.now
    events: list[Event] = [
        HypothesisAssessed(at=now, request=accepted.request, **_frozen(assessment))
        for assessment in answer["assessments"]
    ]
    selected = answer["selected_hypothesis"]
    if selected and selected != state.selected:
        events.append(
            HypothesisSelected(
                at=now,
                hypothesis=selected,
                reason=answer["conclusion"]["why"],
                request=accepted.request,
            )
        )
    events += _actions(accepted)
    if answer["conclusion"]["ready"]:
        events.append(
            ConclusionReached(at=now, request=accepted.request, why=answer["conclusion"]["why"])
        )
    return [*events, BudgetCharged(at=now, requests=1, request=accepted.request)]


def _actions(accepted: Accepted) -> list[Event]:
    shared = accepted.view.get("shared") or {}
    return [
        ActionRequested(
            at=accepted.now,
            action=f"A{len(accepted.state.actions) + number}",
            name=action["name"],
            arguments=action["arguments"],
            expanded=expand(action["arguments"], shared),
            revision=accepted.state.revision,
            request=accepted.request,
            hypothesis=action["hypothesis"] or "",
        )
        for number, action in enumerate(accepted.answer["actions"], start=1)
    ]


def _frozen(assessment: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(v) if isinstance(v, list) else v for key, v in assessment.items()}


PHASE = Phase("investigation", {"investigation_v1": InvestigationStep}, facts, check)
