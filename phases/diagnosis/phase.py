"""Diagnosis: what broke, why, where, and how sure that is."""

from __future__ import annotations

from typing import Any

from ledger.events import DiagnosisConcluded, Event, Problem
from phases.diagnosis.answer_v1 import Diagnosis
from phases.phase import Accepted, Phase, assessed_once


def check(answer: dict[str, Any], context: dict[str, Any]) -> list[Problem]:
    """A cause that was found needs a place and evidence."""
    problems = assessed_once([item["hypothesis"] for item in answer["hypotheses"]], "hypotheses")
    if answer["outcome"] == "insufficient_evidence" or answer["information_needed"]:
        return problems
    if not answer["locations"] and not answer["data"]:
        message = "a cause needs a location or data; otherwise the outcome is insufficient_evidence"
        problems.append(Problem(code="no_location", message=message, path="$.locations"))
    if not any(step["evidence"] for step in answer["mechanism"]):
        message = "a cause needs a mechanism whose steps cite evidence"
        problems.append(Problem(code="no_mechanism", message=message, path="$.mechanism"))
    return problems


def facts(accepted: Accepted) -> list[Event]:
    """Return the diagnosis."""
    return [
        DiagnosisConcluded(
            at=accepted.now,
            request=accepted.request,
            revision=accepted.state.revision,
            result=accepted.answer,
        )
    ]


PHASE = Phase("diagnosis", {"diagnosis_v1": Diagnosis}, facts, check)
