"""Canonical contexts: complete, and without anything that a crash or the clock would change."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ledger.book import Book
from ledger.canonical import from_bytes, to_bytes
from ledger.events import (
    ContextCreated,
    OutcomeUnknown,
    RequestFailed,
    RequestSent,
    RunStarted,
    RunStopped,
)
from phases import ORDER
from phases.phase import Phase
from projections.contexts import BUILDERS, Material, builder
from projections.contexts.parts import READS
from projections.folding import fold
from tests.phases.scripting import Script, copied, failure, only, payload_of, run, ticking
from tests.projections.test_folding import keys

LATE = "2031-01-01T00:00:00.000000Z"
MATERIAL = Material([], {"budget": {"requests": 1, "actions": 1, "evidence_characters": 1}}, {})


def contexts_of(path: Path) -> list[tuple[str, Any]]:
    return [
        (event.phase, payload_of(path, event.content.digest))
        for event in only(path, ContextCreated)
    ]


@pytest.mark.parametrize("phase", BUILDERS)
def test_a_run_that_stopped_and_an_attempt_that_failed_leave_the_context_as_it_was(
    lives: dict[str, Path], tmp_path: Path, phase: str
) -> None:
    path = copied(lives["plain"], tmp_path / "again.case")
    with Book.open_for_writing(path) as book:
        before = to_bytes(builder(phase)(fold(book.events()), book, MATERIAL))
        state = fold(book.events())
        request = list(state.requests.values())[-1]
        sent = {"provider": "x", "model": "x", "endpoint": "x", "document": request.document.digest}
        failed = {"kind": "server", "message": "x", "retryable": True, "elapsed_ms": 1}
        book.append(
            RunStarted(at=LATE, run=9, program="other"),
            RequestSent(at=LATE, request=request.id, attempt=7, **sent),
            RequestFailed(at=LATE, request=request.id, attempt=7, **failed),
            RequestSent(at=LATE, request=request.id, attempt=8, **sent),
            OutcomeUnknown(at=LATE, request=request.id, attempt=8, policy="resend"),
            RunStopped(at=LATE, run=9, reason="provider"),
        )
        after = to_bytes(builder(phase)(fold(book.events()), book, MATERIAL))
    assert after == before


def test_failures_restarts_and_another_clock_build_the_same_contexts(
    lives: dict[str, Path], tmp_path: Path
) -> None:
    path = copied(lives["fresh"], tmp_path / "again.case")
    script = Script({"*": [failure(), None, None, failure(retryable=False)]})
    reasons = [run(path, script, sources=ticking(50_000)).reason for _ in range(2)]
    assert reasons == ["provider", "done"]
    assert contexts_of(path) == contexts_of(lives["plain"])


def test_no_context_holds_a_position_a_time_an_attempt_or_money(lived: Path) -> None:
    for phase, context in contexts_of(lived):
        found = keys({**context, "tools": [], "evidence": []})
        assert found & {"position", "at", "attempt", "attempts", "run", "cost_nano_usd"} == set(), (
            phase
        )


def test_every_phase_has_a_builder_and_a_new_one_gets_what_a_diagnosis_gets() -> None:
    assert set(BUILDERS) == {*ORDER, "diagnosis_early"}
    assert builder("a phase of tomorrow") is BUILDERS["diagnosis"]
    assert Phase.__doc__


def test_the_investigation_context_has_the_members_of_the_design(lives: dict[str, Path]) -> None:
    context = next(
        value for phase, value in contexts_of(lives["plain"]) if phase == "investigation"
    )
    assert set(context) == {
        *("case", "sources", "interpretation", "policy", "tools", "catalogs"),
        *("selected_hypothesis", "hypotheses", "budget", "evidence", "early_review", "shared"),
    }


def test_the_pointer_names_the_latest_result_and_never_its_payload(lives: dict[str, Path]) -> None:
    found = [
        c["budget"]["previous_result"]
        for p, c in contexts_of(lives["plain"])
        if p == "investigation"
    ]
    assert found == [None, "E2", "E3", "E4"]


def test_every_stored_payload_is_in_every_later_investigation_context(
    lives: dict[str, Path],
) -> None:
    steps = [c for p, c in contexts_of(lives["plain"]) if p == "investigation"]
    for earlier, later in pairwise(steps):
        assert later["evidence"][: len(earlier["evidence"])] == earlier["evidence"]
    with Book.open(lives["plain"]) as book:
        state = fold(book.events())
        for shown, item in zip(steps[-1]["evidence"], state.evidence.values(), strict=False):
            stored = from_bytes(book.payload(item.content.digest))
            assert shown == {"id": item.id, "hypothesis": item.hypothesis, **stored}


def test_catalogs_are_fixed_for_a_revision(lived: Path) -> None:
    seen: dict[int, Any] = {}
    for _, context in contexts_of(lived):
        found = {k: v for k, v in context["catalogs"].items() if k != "evidence_not_cited"}
        assert seen.setdefault(context["case"]["revision"], found) == found


def test_the_change_request_sees_the_evidence_that_the_diagnosis_cites(
    lives: dict[str, Path],
) -> None:
    context = dict(contexts_of(lives["plain"]))["change_request"]
    assert [item["id"] for item in context["evidence"]] == ["E1", "E2", "E3", "E4"]
    assert context["catalogs"]["evidence_not_cited"] == []


def test_what_every_action_reads_is_known_to_the_egress_rule() -> None:
    from phases.investigation.actions import ACTIONS

    elsewhere = {name for name in ACTIONS if "log" in name or "database" in name or "table" in name}
    assert set(READS) == set(ACTIONS)
    assert {name for name, kind in READS.items() if kind != "source"} == elsewhere
