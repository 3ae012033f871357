"""What the run loop needs to know of a phase: how to check its answer and what facts it states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from ledger.events import Event, PhaseAnswered, Problem
from phases.answers import Answer
from projections.state import State

Json = dict[str, Any]


@dataclass(frozen=True)
class Accepted:
    """An answer that passed every check, and what it belongs to.

    Attributes:
        state: the state before the answer.
        request: ID of the request.
        answer: the answer.
        view: the model view of the request, labels still in place.
        now: the moment to record.
    """

    state: State
    request: str
    answer: Json
    view: Json
    now: str


def no_problems(answer: Json, context: Json) -> list[Problem]:
    """Find nothing beyond schema and citations."""
    return []


@dataclass(frozen=True)
class Phase:
    """One phase.

    Attributes:
        name: as in ORDER and in prompt files.
        answers: the model that checks answers, by output schema.
        facts: the events that an accepted answer becomes; IDs are assigned here.
        check: problems of the content that only this phase knows.
    """

    name: str
    answers: Mapping[str, type[Answer]]
    facts: Callable[[Accepted], list[Event]]
    check: Callable[[Json, Json], list[Problem]] = no_problems


def plain_facts(accepted: Accepted, phase: str) -> list[Event]:
    """Return the facts of a phase that has no event of its own."""
    return [
        PhaseAnswered(
            at=accepted.now,
            request=accepted.request,
            phase=phase,
            revision=accepted.state.revision,
            result=accepted.answer,
        )
    ]


def assessed_once(hypotheses: list[str], member: str) -> list[Problem]:
    """Return a problem for each hypothesis that an answer judges a second time."""
    return [
        Problem(
            code="duplicate",
            message=f"{name} is judged more than once; say once what became of it",
            path=f"$.{member}[{index}].hypothesis",
        )
        for index, name in enumerate(hypotheses)
        if name in hypotheses[:index]
    ]


def numbered(items: list[Json], letter: str, existing: Sized) -> list[Json]:
    """Return items with IDs assigned in answer order, after all that ever existed."""
    before = len(existing)
    return [{"id": f"{letter}{before + n}", **item} for n, item in enumerate(items, start=1)]


@cache
def find(name: str) -> Phase:
    """Return a phase by name. The early review is a part of the investigation's folder."""
    module = "phases.investigation.review" if name == "diagnosis_early" else f"phases.{name}.phase"
    phase = import_module(module).PHASE
    assert isinstance(phase, Phase)
    return phase
