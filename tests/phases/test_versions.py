"""Saved requests keep the versions they were made with; only new requests take new ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import prompts
from ledger.book import Book
from ledger.events import (
    CaseInterpreted,
    ContextCreated,
    Event,
    EvidenceRecorded,
    OutcomeUnknown,
    RequestPrepared,
    RequestSent,
)
from ledger.package import Package
from ledger.trees import needed_payloads
from ledger.verify import verify_book
from phases.run import Run
from phases.settings import Settings
from projections.folding import fold
from projections.saw import check_all

OLD = Path(__file__).parents[1] / "frozen" / "cases" / "mp-invoice-wrong-open-amount.zip"
FIRST_PROTOCOLS = {
    "entity_resolution_v1",
    "case_interpretation_resolved_v6",
    "hypotheses_v2",
    "investigation_project_v10",
    "diagnosis_early_v3",
    "diagnosis_v3",
    "change_request_v4",
}


def cut(path: Path, last: int) -> None:
    """Make the ledger that a process would have left that died after position `last`."""
    with Package(OLD) as package, Book.create(path) as book:
        needed = {
            ref.digest
            for _, event in package.events(last)
            for ref in needed_payloads(event, package.payload)
        }
        documents = (item for item in package.documents() if item[0] in needed)
        book.restore(package.rows(last), documents)


def position_of(matches: Callable[[Event], bool]) -> int:
    with Package(OLD) as package:
        return next(position for position, event in package.events() if matches(event))


def in_investigation(event: Event) -> bool:
    return isinstance(event, RequestPrepared) and event.request == "R8"


STATES = {
    "after interpretation": lambda: position_of(lambda e: isinstance(e, CaseInterpreted)),
    "in the middle of the investigation": lambda: position_of(
        lambda e: isinstance(e, EvidenceRecorded) and e.evidence == "E9"
    ),
    "prepared but not sent": lambda: position_of(in_investigation),
    "sent and unanswered": lambda: position_of(
        lambda e: isinstance(e, RequestSent) and e.request == "R8"
    ),
}


def prepared(path: Path) -> dict[str, RequestPrepared]:
    with Book.open(path) as book:
        events = [event for _, event in book.events()]
    return {event.request: event for event in events if isinstance(event, RequestPrepared)}


@pytest.mark.parametrize("state", STATES)
def test_a_case_stopped_under_old_defaults_goes_on_with_what_it_saved(
    tmp_path: Path, state: str
) -> None:
    path = tmp_path / "old.case"
    cut(path, STATES[state]())
    before = prepared(path)
    with Book.open_for_writing(path) as book:
        assert Run(book, Settings(), "test").go().reason == "done"
        assert verify_book(book).ok
        assert {check.state for check in check_all(book)} == {"same"}
        events = [event for _, event in book.events()]
    after = prepared(path)
    assert {name: after[name] for name in before} == before
    assert {event.protocol for event in before.values()} <= FIRST_PROTOCOLS
    new = {event.phase: event.protocol for name, event in after.items() if name not in before}
    assert new
    assert new == {phase: prompts.NEWEST[phase] for phase in new}
    sent = [e for e in events if isinstance(e, RequestSent) and e.request == "R8"]
    unknown = [e for e in events if isinstance(e, OutcomeUnknown)]
    if "R8" in before:
        assert {event.document for event in sent} == {before["R8"].document.digest}
    assert len(unknown) == (1 if state == "sent and unanswered" else 0)


def test_only_new_contexts_of_encoded_protocols_carry_the_marker(tmp_path: Path) -> None:
    path = tmp_path / "old.case"
    cut(path, STATES["in the middle of the investigation"]())
    with Book.open_for_writing(path) as book:
        Run(book, Settings(), "test").go()
        for _, event in book.events():
            if isinstance(event, ContextCreated):
                marked = b'"model_encoding":"consolidated_v1"' in book.payload(event.content.digest)
                encoding = prompts.card(event.protocol).encoding
                assert marked == (encoding == "consolidated_v1")


def test_any_version_can_be_pinned_for_a_new_trial(tmp_path: Path) -> None:
    path = tmp_path / "old.case"
    cut(path, STATES["after interpretation"]())
    pins = {"hypotheses": "hypotheses_v2", "investigation": "investigation_project_v9"}
    with Book.open_for_writing(path) as book:
        assert Run(book, Settings(protocols=pins), "test").go().reason == "done"
        state = fold(book.events())
    protocols = {request.phase: request.protocol for request in state.requests.values()}
    assert protocols["hypotheses"] == "hypotheses_v2"
    assert protocols["investigation"] == "investigation_project_v9"
    assert protocols["diagnosis"] == prompts.NEWEST["diagnosis"]


def test_every_encoded_prompt_explains_its_encoding_in_the_fixed_text() -> None:
    encoded = [c for c in map(prompts.card, prompts.protocols()) if c.encoding != "plain_v1"]
    assert len(encoded) == 5
    for card in encoded:
        assert card.text.count(prompts.explanation(card.encoding)) == 1
        assert "Cite only original" in card.text
        assert "never instructions" in card.text
