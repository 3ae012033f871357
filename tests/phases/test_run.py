"""A whole case by script: order, limits, budgets, reviews, corrections, failures, crashes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import prompts
from ledger import canonical
from ledger.book import Book
from ledger.events import (
    ActionRefused,
    ActionRequested,
    BudgetCharged,
    BudgetExtended,
    ContextCreated,
    EarlyReviewHeld,
    EvidenceRecorded,
    InvestigationEnded,
    OutcomeUnknown,
    ProviderFailedOver,
    RequestAbandoned,
    RequestFailed,
    RequestPrepared,
    RequestSent,
    ResponseReceived,
    ResponseRejected,
    RunStopped,
    UsageMeasured,
)
from ledger.verify import verify_book
from phases import ORDER
from phases.asking import LONGEST_ASKED_SECONDS
from phases.intake import IntakeError, IntakeRequest
from phases.opening import amend_case
from phases.pinned import EARLY_REVIEWS, pinned_settings
from phases.providers import Received, Reply
from phases.run import Options, Run
from phases.settings import Settings
from projections.saw import check_all
from tests.phases import scripting
from tests.phases.scripting import (
    Script,
    copied,
    events_of,
    failure,
    look,
    only,
    patched,
    prepared_run,
    run,
    settings_for,
    state_of,
    topics_of,
    view_of,
)

NEEDED = [{"what": "the timezone of the server", "why": "the log has none"}]


class Died(BaseException):
    """Stands for a process that ends without a word."""


def sound(path: Path) -> bool:
    """The ledger verifies and every saved request can be rebuilt."""
    with Book.open(path) as book:
        same = all(check.state == "same" for check in check_all(book))
        return same and verify_book(book).findings == []


# The order of things ----------------------------------------------------------------------------


def test_a_whole_case_goes_through_every_phase_in_order(case: Path) -> None:
    script = Script()
    assert run(case, script).reason == "done"
    phases = [event.phase for event in only(case, RequestPrepared)]
    assert list(dict.fromkeys(phases)) == [*ORDER[:4], "diagnosis_early", *ORDER[4:]]
    state = state_of(case)
    assert state.done == set(ORDER)
    assert state.ended == "early_review"
    assert len(script.documents) == len(state.requests)
    assert sound(case)


def test_each_request_leaves_its_events_in_exactly_the_designed_order(case: Path) -> None:
    with Book.open(case) as book:
        taken_in = book.head.position
    run(case, Script(usage={"prompt": 12, "output": 3}))
    exchange = [
        "context.created",
        "request.prepared",
        "request.sent",
        "response.received",
        "usage.measured",
        "response.accepted",
    ]
    looked = ["evidence.recorded", "budget.charged"]
    step = [*exchange, "hypothesis.assessed"]
    assert topics_of(case, taken_in) == [
        *["configuration.pinned", "run.started"],
        *[*exchange, "entities.resolved"],
        *[*exchange, "case.interpreted"],
        *[*exchange, "hypotheses.proposed", "hypothesis.selected"],
        *[*step, "action.requested", "action.requested", "budget.charged", *looked, *looked],
        *[*step, "action.requested", "budget.charged", *looked],
        *[*step, "action.requested", "budget.charged", *looked],
        *[*step, "conclusion.reached", "budget.charged"],
        *[*exchange, "early_review.held", "budget.charged"],
        "investigation.ended",
        *[*exchange, "diagnosis.concluded"],
        *[*exchange, "change.requested"],
        "run.stopped",
    ]
    assert only(case, UsageMeasured)[0].prompt == 12


class Witness(Script):
    """Looks at the ledger, through its own connection, whenever it is spoken to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.seen: list[str] = []

    def ask(self, document: bytes, sending: Any) -> Received:
        self._look(document, "request.prepared")

        def recorded(wire: bytes | None) -> None:
            sending(wire)
            self._look(document, "request.sent")

        return super().ask(document, recorded)

    def read(self, body: bytes) -> Any:
        with Book.open(self.path) as book:
            event = list(book.events())[-1].event
            assert isinstance(event, ResponseReceived)
            assert book.payload(event.body.digest) == body
        self.seen.append("read")
        return super().read(body)

    def _look(self, document: bytes, topic: str) -> None:
        with Book.open(self.path) as book:
            event: Any = list(book.events())[-1].event
            assert f"{topic}/1" == event.TOPIC
            digest = event.document if isinstance(event, RequestSent) else event.document.digest
            assert book.payload(digest) == document
        self.seen.append(topic)


def test_a_request_is_saved_before_it_is_sent_and_an_answer_before_it_is_read(case: Path) -> None:
    witness = Witness(case)
    run(case, witness)
    assert witness.seen == ["request.prepared", "request.sent", "read"] * len(witness.documents)


def test_the_body_a_provider_sends_is_on_the_ledger_before_it_leaves(case: Path) -> None:
    class Wired(Script):
        def ask(self, document: bytes, sending: Any) -> Received:
            return super().ask(document, lambda _: sending(b"wire " + document[:20]))

    run(case, Wired(), options=Options(until="entity_resolution"))
    (sent,) = only(case, RequestSent)
    with Book.open(case) as book:
        assert book.payload(sent.wire.digest).startswith(b"wire ")


def test_the_request_document_has_its_members_in_order(case: Path) -> None:
    script = Script()
    run(case, script)
    for document in script.documents:
        value = json.loads(document)
        assert list(value) == ["format", "protocol", "system", "schema", "messages"]
        assert [message["role"] for message in value["messages"]] == ["user"]
        assert canonical.to_bytes(value) == document


# Limits of a run --------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ORDER)
def test_until_stops_when_the_phase_is_done(case: Path, phase: str) -> None:
    stopped = run(case, Script(), options=Options(until=phase))
    state = state_of(case)
    assert stopped.reason == ("done" if phase == ORDER[-1] else "until")
    assert state.done == set(ORDER[: ORDER.index(phase) + 1])
    assert state.open_request is None


def test_a_run_in_pieces_ends_like_one_run(case: Path, scratch: Path) -> None:
    whole = copied(case, scratch / "whole.case")
    run(whole, Script())
    pieces = 0
    while run(case, Script(), options=Options(max_requests=1)).reason == "max_requests":
        pieces += 1
    assert pieces + 1 == len(state_of(whole).requests)
    assert state_of(case).outcome() == state_of(whole).outcome()
    with Book.open(case) as one, Book.open(whole) as other:
        digests = [[c.saved for c in check_all(book)] for book in (one, other)]
    assert digests[0] == digests[1]


def test_max_requests_counts_attempts_and_still_takes_in_the_last_answer(case: Path) -> None:
    script = Script()
    assert run(case, script, options=Options(max_requests=2)).reason == "max_requests"
    assert len(script.documents) == 2
    assert state_of(case).done == {"entity_resolution", "case_interpretation"}


def test_a_finished_case_is_done_at_once(case: Path) -> None:
    run(case, Script())
    again = Script()
    assert run(case, again).reason == "done"
    assert again.documents == []
    assert topics_of(case)[-2:] == ["run.started", "run.stopped"]


# Budgets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        ({"requests": 2}, "requests_used"),
        ({"actions": 1}, "actions_used"),
        ({"evidence_characters": 10}, "context_full"),
        ({"requests": 0}, "requests_used"),
    ],
)
def test_a_budget_ends_the_investigation_and_a_diagnosis_follows(
    case: Path, budget: dict[str, int], reason: str
) -> None:
    script = Script()
    stopped = run(case, script, settings=settings_for(budget=budget))
    assert stopped.reason == "done"
    assert [event.reason for event in only(case, InvestigationEnded)] == [reason]
    state = state_of(case)
    assert state.diagnosis is not None
    assert state.change_request is not None
    views = [view_of(document) for document in script.documents]
    assert next(view for phase, view in views if phase == "diagnosis")["ended"] == reason


def test_an_action_beyond_the_budget_is_refused_and_the_others_stand(case: Path) -> None:
    run(case, Script(), settings=settings_for(budget={"actions": 1}))
    (refused,) = only(case, ActionRefused)
    assert refused.kind == "limit"
    assert len(only(case, EvidenceRecorded)) == 1


def test_looks_of_the_last_paid_request_are_still_taken(case: Path) -> None:
    run(case, Script(), settings=settings_for(budget={"requests": 1}))
    assert len(only(case, EvidenceRecorded)) == 2


def test_charges_add_up(case: Path) -> None:
    run(case, Script())
    charges = only(case, BudgetCharged)
    recorded = only(case, EvidenceRecorded)
    spent = state_of(case).spent
    assert spent.requests == sum(c.requests for c in charges) == 5  # four steps and a review
    assert spent.actions == len(recorded) == 4
    assert spent.evidence_characters == sum(item.characters for item in recorded)


def extend(case: Path, **amounts: int) -> None:
    with Book.open_for_writing(case) as book:
        book.append(BudgetExtended(at=book.sources.now(), **amounts))


def test_more_budget_reopens_an_investigation_that_a_budget_ended(case: Path) -> None:
    settings = settings_for(budget={"requests": 1})
    run(case, Script(), settings=settings)
    first = state_of(case)
    extend(case, requests=20)
    assert run(case, Script(), settings=settings).reason == "done"
    state = state_of(case)
    assert state.ended == "early_review"
    assert list(state.evidence)[: len(first.evidence)] == list(first.evidence)
    assert topics_of(case).count("diagnosis.concluded") == 2


def test_more_budget_while_the_diagnosis_is_open_gives_a_new_diagnosis_at_the_end(
    case: Path,
) -> None:
    settings = settings_for(budget={"requests": 1}, attempts=1)
    run(case, Script({"diagnosis": [failure()]}), settings=settings)
    assert state_of(case).open_request is not None
    extend(case, requests=20)
    assert run(case, Script(), settings=settings).reason == "done"
    topics = topics_of(case)
    last_ended = len(topics) - topics[::-1].index("investigation.ended")
    assert topics[last_ended:].count("diagnosis.concluded") == 1
    assert topics[last_ended:].count("change.requested") == 1


# The early review -------------------------------------------------------------------------------


def rejecting(number: int) -> Callable[[Any, Any], Any]:
    missing = [{"what": f"thing {number}", "why": "it is", "suggestion": ""}]
    return patched(verdict="reject", why=f"{number} times", missing=missing)


def test_a_rejected_review_is_feedback_of_the_next_context(case: Path) -> None:
    script = Script({"diagnosis_early": [rejecting(1)]})
    assert run(case, script).reason == "done"
    assert [event.accepted for event in only(case, EarlyReviewHeld)] == [False, True]
    views = [view for phase, view in map(view_of, script.documents) if phase == "investigation"]
    assert [view["early_review"] for view in views[:4]] == [None] * 4
    assert views[4]["early_review"]["accepted"] is False
    assert views[4]["early_review"]["missing"][0]["what"] == "thing 1"
    assert state_of(case).ended == "early_review"


def test_reviews_are_bounded_and_the_last_conclusion_stands(case: Path) -> None:
    script = Script({"diagnosis_early": [rejecting(n) for n in range(1, 9)]})
    assert run(case, script).reason == "done"
    assert len(only(case, EarlyReviewHeld)) == EARLY_REVIEWS
    assert state_of(case).ended == "concluded"


# Corrections ------------------------------------------------------------------------------------


def test_a_rejected_answer_is_corrected_on_the_same_context(case: Path) -> None:
    script = Script({"case_interpretation": [b"{}"]})
    assert run(case, script).reason == "done"
    (rejected,) = only(case, ResponseRejected)
    assert rejected.kind == "schema"
    assert rejected.correctable
    wrong, right = [
        event for event in only(case, RequestPrepared) if event.phase == "case_interpretation"
    ]
    assert (right.corrects, right.context) == (wrong.request, wrong.context)
    message = json.loads(script.documents[2])["messages"][1]["content"]["correction"]
    assert message["of"] == wrong.request
    assert message["rejected_answer"] == {}
    assert len(message["problems"]) == len(rejected.problems) > 5
    assert sound(case)


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_corrections_are_bounded_then_the_request_is_abandoned(case: Path, rounds: int) -> None:
    script = Script({"hypotheses": [b"[]"] * 9})
    stopped = run(case, script, settings=settings_for(corrections=rounds))
    assert stopped == ("needs_attention", "corrections_used")
    assert len(only(case, ResponseRejected)) == rounds + 1
    (abandoned,) = only(case, RequestAbandoned)
    assert abandoned.request == only(case, RequestPrepared)[-1].request
    assert sound(case)


def test_run_again_after_an_abandoned_request_tries_afresh(case: Path) -> None:
    run(case, Script({"hypotheses": [b"[]"] * 3}))
    before = state_of(case)
    assert run(case, Script()).reason == "done"
    contexts = [event for event in only(case, ContextCreated) if event.phase == "hypotheses"]
    assert len(contexts) == 2
    assert contexts[0].content == contexts[1].content  # the failure left no trace in the context
    assert list(state_of(case).requests)[: len(before.requests)] == list(before.requests)


@pytest.mark.parametrize("finish", ["cut_off", "safety", "blocked", "recitation", "thoughts_only"])
def test_an_answer_that_did_not_end_normally_is_never_fed_back(case: Path, finish: str) -> None:
    stopped = run(case, Script({"hypotheses": [f"finish:{finish}".encode()]}))
    assert stopped == ("needs_attention", "not_correctable")
    (rejected,) = only(case, ResponseRejected)
    assert (rejected.kind, rejected.correctable) == ("finish", False)
    assert rejected.problems[0].code == finish


def test_an_answer_whose_connection_ended_early_is_a_cut_off_one(case: Path) -> None:
    class Early(Script):
        def ask(self, document: bytes, sending: Any) -> Received:
            received = super().ask(document, sending)
            return Received(received.body, complete=view_of(document)[0] != "hypotheses")

    assert run(case, Early()) == ("needs_attention", "not_correctable")
    assert only(case, ResponseRejected)[0].problems[0].code == "cut_off"


def test_a_correction_does_not_repeat_a_huge_rejected_answer(case: Path) -> None:
    huge = canonical.to_bytes({"entities": "x" * 3_000_000})
    script = Script({"entity_resolution": [huge]})
    assert run(case, script, options=Options(until="entity_resolution")).reason == "until"
    assert len(script.documents[1]) < len(script.documents[0]) + 300_000


# Information needed, amending -------------------------------------------------------------------


def amend(case: Path, *observations: str, abandon: bool = False) -> None:
    request = IntakeRequest(report=None, source=None, observations=observations)
    with Book.open_for_writing(case) as book:
        amend_case(book, request, abandon=abandon)


def needing(case: Path) -> Script:
    """Run until the second investigation step needs information."""
    said = {"investigation": [None, patched(actions=[], information_needed=NEEDED)]}
    script = Script(said)
    assert run(case, script) == ("needs_attention", "information_needed")
    return script


def test_needed_information_stops_the_case_until_it_is_amended(case: Path) -> None:
    needing(case)
    before = state_of(case)
    assert [dict(need) for need in before.needs] == NEEDED
    amend(case, "The server runs in UTC.")
    script = Script()
    assert run(case, script).reason == "done"
    after = state_of(case)
    assert (after.revision, after.attention, after.needs) == (2, "", ())
    phase, view = view_of(script.documents[0])
    assert phase == "entity_resolution"
    assert view["case"]["revision"] == 2
    assert "UTC" in json.dumps(view["sources"]["observations"])


def test_a_new_revision_keeps_evidence_ids_and_spent_budget_and_carries_hypotheses(
    case: Path,
) -> None:
    needing(case)
    before = state_of(case)
    amend(case, "The server runs in UTC.")
    amended = state_of(case)
    assert {h.state for h in amended.hypotheses.values()} == {"carried"}
    assert (amended.evidence, amended.spent) == (before.evidence, before.spent)
    assert amended.done == frozenset()
    script = Script()
    run(case, script)
    after = state_of(case)
    assert list(after.evidence)[: len(before.evidence)] == list(before.evidence)
    assert [item["id"] for item in after.entities] == ["N1", "N2"]
    assert [item["id"] for item in after.facts] == ["F1", "F2"]
    views = dict(reversed([view_of(document) for document in script.documents]))
    assert {h["state"] for h in views["hypotheses"]["hypotheses"]} == {"carried"}
    assert views["investigation"]["budget"]["spent"] == vars(before.spent)
    assert [item["id"] for item in views["investigation"]["evidence"]] == ["E1", "E2"]
    assert views["entity_resolution"]["case"]["generation"] == before.generation
    assert sound(case)


def test_a_run_without_the_information_goes_on_with_what_there_is(case: Path) -> None:
    needing(case)
    assert run(case, Script()).reason == "done"


def test_amending_is_refused_while_a_request_is_unanswered(case: Path) -> None:
    run(case, Script({"hypotheses": [failure(retryable=False)]}))
    with pytest.raises(IntakeError, match="--abandon"):
        amend(case, "It rains.")
    amend(case, "It rains.", abandon=True)
    assert only(case, RequestAbandoned)[0].reason == "amended"
    assert run(case, Script()).reason == "done"


# Configuration ----------------------------------------------------------------------------------


def test_changed_settings_affect_later_operations_only(case: Path) -> None:
    one, other = (
        Script({"hypotheses": [failure(retryable=False)]}, name="one"),
        Script(name="other"),
    )
    first = settings_for("one", corrections=1)
    assert run(case, one, settings=first).reason == "provider"
    pending = state_of(case).open_request
    assert pending is not None
    second = settings_for("other", corrections=0)
    assert run(case, one, other, settings=second).reason == "done"
    asked = {event.request: event.provider for event in only(case, RequestSent)}
    later = [name for request, name in asked.items() if int(request[1:]) > int(pending.id[1:])]
    assert asked[pending.id] == "one"
    assert set(later) == {"other"}
    bound = {c.context: c.configuration for c in only(case, ContextCreated)}
    with Book.open(case) as book:
        named = pinned_settings(book, bound[pending.context])
        assert (named.providers, named.run.corrections) == (("one",), 1)
        assert pinned_settings(book, list(bound.values())[-1]).providers == ("other",)


def test_corrections_of_a_pending_request_follow_the_configuration_it_names(case: Path) -> None:
    script = Script({"hypotheses": [failure(retryable=False)]})
    run(case, script, settings=settings_for(corrections=2))
    wrong = Script({"hypotheses": [b"{}", b"{}"]})
    assert run(case, wrong, settings=settings_for(corrections=0)).reason == "done"


def test_an_unchanged_configuration_is_pinned_once(case: Path) -> None:
    run(case, Script(), options=Options(until="entity_resolution"))
    run(case, Script(), options=Options(until="case_interpretation"))
    run(case, Script(), settings=settings_for(corrections=1))
    assert topics_of(case).count("configuration.pinned") == 2


def test_a_pinned_protocol_is_used_and_others_take_the_newest(case: Path) -> None:
    settings = Settings(
        providers=("scripted",), protocols={"investigation": "investigation_project_v8"}
    )
    assert run(case, Script(), settings=settings).reason == "done"
    protocols = {event.phase: event.protocol for event in only(case, RequestPrepared)}
    assert protocols["investigation"] == "investigation_project_v8"
    assert protocols["diagnosis"] == prompts.NEWEST["diagnosis"]
    assert sound(case)


# Retries and failover ---------------------------------------------------------------------------


def test_a_retryable_failure_is_tried_again_after_the_time_asked_for(case: Path) -> None:
    failures = [failure("quota", status=429, retry_after_ms=2500), failure("server", status=503)]
    script = Script({"entity_resolution": list(failures)})
    waits: list[float] = []
    assert run(case, script, sleep=waits.append).reason == "done"
    assert waits == [2.5, 2.0]
    recorded = [(event.attempt, event.kind, event.status) for event in only(case, RequestFailed)]
    assert recorded == [(1, "quota", 429), (2, "server", 503)]
    assert [event.attempt for event in only(case, RequestSent)][:3] == [1, 2, 3]
    assert script.documents[0] == script.documents[1] == script.documents[2]


def test_a_wait_is_bounded_whatever_the_server_asks_for(case: Path) -> None:
    waits: list[float] = []
    script = Script({"entity_resolution": [failure(retry_after_ms=86_400_000)]})
    run(case, script, sleep=waits.append, options=Options(until="entity_resolution"))
    assert waits == [LONGEST_ASKED_SECONDS]


def test_a_partial_answer_of_a_failed_attempt_is_kept(case: Path) -> None:
    run(case, Script({"entity_resolution": [failure(partial=b'{"enti')]}))
    (failed,) = only(case, RequestFailed)
    with Book.open(case) as book:
        assert book.payload(failed.partial.digest) == b'{"enti'


@pytest.mark.parametrize(
    ("failures", "reason", "detail", "attempts"),
    [
        ([failure() for _ in range(3)], "attempts_used", "attempts_used", 3),
        ([failure("key", retryable=False)], "terminal", "terminal: key", 1),
    ],
    ids=["attempts used", "terminal"],
)
def test_failover_sends_the_same_document_to_the_next_provider_and_says_why(
    case: Path, failures: list[Exception], reason: str, detail: str, attempts: int
) -> None:
    one, other = Script({"entity_resolution": list(failures)}, name="one"), Script(name="other")
    assert run(case, one, other, options=Options(until="entity_resolution")).reason == "until"
    (over,) = only(case, ProviderFailedOver)
    assert (over.from_provider, over.to_provider) == ("one", "other")
    assert (over.reason, over.detail) == (reason, detail)
    sent = only(case, RequestSent)
    assert [event.provider for event in sent] == ["one"] * attempts + ["other"]
    assert len({event.document for event in sent}) == 1
    assert one.documents[0] == other.documents[0]
    topics = topics_of(case)
    assert topics[topics.index("provider.failed_over") + 1] == "request.sent"


def test_two_providers_of_one_kind_fail_over_to_each_other(case: Path) -> None:
    one = Script({"entity_resolution": [failure(retryable=False)]}, name="kind")
    other = Script(name="kind")
    settings = settings_for("kind:one", "kind:other")
    with Book.open_for_writing(case) as book:
        work = prepared_run(book, settings=settings, options=Options(until="entity_resolution"))
        work._providers |= {"kind:one": one, "kind:other": other}
        assert work.go().reason == "until"
    assert (len(one.documents), len(other.documents)) == (1, 1)


def test_all_providers_used_up_stops_and_run_again_goes_on(case: Path) -> None:
    settings = settings_for("one", "other", attempts=2)
    one = Script({"*": [failure(), failure()]}, name="one")
    other = Script({"*": [failure("key", retryable=False)]}, name="other")
    stopped = run(case, one, other, settings=settings)
    assert stopped.reason == "provider"
    assert "one, other" in stopped.detail
    pending = state_of(case).open_request
    assert pending is not None
    assert [attempt.status for attempt in pending.attempts] == ["failed"] * 3
    assert run(case, one, other, settings=settings).reason == "done"
    assert [event.attempt for event in only(case, RequestSent) if event.request == "R1"] == [
        *(1, 2, 3),
        4,
    ]
    assert topics_of(case).count("context.created") == len(state_of(case).contexts)


# Crashes and interrupts -------------------------------------------------------------------------


def died_while_asking(case: Path, settings: Settings | None = None) -> None:
    with pytest.raises(Died):
        run(case, Script({"hypotheses": [Died()]}), settings=settings)
    assert topics_of(case)[-1] == "request.sent"


def test_an_unknown_outcome_is_recorded_and_resent_from_the_saved_document(case: Path) -> None:
    died_while_asking(case)
    script = Script()
    assert run(case, script).reason == "done"
    (unknown,) = only(case, OutcomeUnknown)
    sent = [event for event in only(case, RequestSent) if event.request == unknown.request]
    assert unknown.policy == "resend"
    assert [event.attempt for event in sent] == [1, 2]
    assert sent[0].document == sent[1].document == canonical.digest(script.documents[0])


@pytest.mark.parametrize("policy", ["ask", "stop"])
def test_with_another_policy_a_person_decides_about_an_unknown_outcome(
    case: Path, policy: str
) -> None:
    settings = settings_for(unknown_outcome=policy)
    died_while_asking(case, settings)
    script = Script()
    for _ in range(2):
        assert run(case, script, settings=settings) == ("needs_attention", "outcome_unknown")
    assert script.documents == []
    assert [event.policy for event in only(case, OutcomeUnknown)] == [policy]
    again = run(case, script, settings=settings, options=Options(resend=True))
    assert again.reason == "done"


def test_an_answer_that_arrived_before_a_crash_is_read_and_not_asked_again(case: Path) -> None:
    class Dies(Script):
        def read(self, body: bytes) -> Any:
            raise Died

    with pytest.raises(Died):
        run(case, Dies())
    script = Script()
    run(case, script, options=Options(until="entity_resolution"))
    assert script.documents == []


def test_a_saved_request_that_cannot_be_rebuilt_is_not_sent(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    died_while_asking(case)
    from projections import requests

    monkeypatch.setattr(requests, "FORMAT", 2)
    script = Script()
    assert run(case, script) == ("needs_attention", "request_differs")
    assert script.documents == []
    monkeypatch.undo()
    assert run(case, script).reason == "done"


def test_ctrl_c_is_recorded_and_run_goes_on(case: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(case, Script({"hypotheses": [KeyboardInterrupt()]}))
    assert only(case, RunStopped)[-1].reason == "interrupted"
    assert run(case, Script()).reason == "done"
    assert len(only(case, OutcomeUnknown)) == 1
    assert sound(case)


def test_ctrl_c_while_waiting_for_a_retry_leaves_nothing_unknown(case: Path) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(case, Script({"hypotheses": [failure()]}), sleep=interrupted)
    assert run(case, Script()).reason == "done"
    assert only(case, OutcomeUnknown) == []


# Looks ------------------------------------------------------------------------------------------


def test_a_repeated_look_is_refused_with_its_earlier_result(case: Path) -> None:
    again = look("search_code", query="cart_total")
    script = Script({"investigation": [patched(actions=[again, again])]})
    assert run(case, script).reason == "done"
    refused = only(case, ActionRefused)[0]
    assert (refused.action, refused.kind) == ("A2", "repeated")
    assert "E1" in refused.problems[0].message
    refusal = view_of(script.documents[4])[1]["evidence"][1]
    assert refusal["id"] == "A2"
    assert refusal["refused"]["problems"][0]["code"] == "repeated"


def test_a_look_may_be_repeated_after_it_was_refused(case: Path) -> None:
    wrong = look("read_lines", path="no/such.py")
    script = Script({"investigation": [patched(actions=[wrong, wrong])]})
    run(case, script)
    assert [event.kind for event in only(case, ActionRefused)] == ["outside_snapshot"] * 2


def test_a_label_in_an_argument_means_what_the_saved_context_says(case: Path) -> None:
    """The label of a request is expanded against that request; data that looks like one is not."""
    twice = [look("read_lines", path="shop/cart.py", first=n, last=n) for n in (1, 2)]
    labels: list[str] = []

    def by_label(good: Any, view: Any) -> Any:
        labels.extend(view["labels"])
        asked = [
            look("read_lines", path=labels[0], first=3, last=3),
            look("search_code", query="P1"),
        ]
        return {**good, "actions": asked, "conclusion": {"ready": False, "why": "x"}}

    class Labelled(Script):
        """Sees the view with its labels in place, as a model does."""

        def ask(self, document: bytes, sending: Any) -> Received:
            shared = json.loads(document)["messages"][0]["content"].get("shared", {})
            labels = shared.items() if isinstance(shared, dict) else ()  # a list: an envelope's
            self.labels = [name for name, value in labels if "path" in value]
            return super().ask(document, sending)

    script = Labelled()
    script._said = {
        "investigation": [
            patched(actions=twice),
            lambda good, view: by_label(good, {"labels": script.labels}),
        ]
    }
    protocols = {"investigation": "investigation_project_v9"}
    run(case, script, settings=Settings(providers=("scripted",), protocols=protocols))
    asked = only(case, ActionRequested)[2:4]
    assert labels
    assert asked[0].arguments["path"] == labels[0]
    assert asked[0].expanded["path"] == "shop/cart.py"
    assert asked[1].expanded["query"] == "P1"


def test_a_label_that_the_context_does_not_hold_is_refused(case: Path) -> None:
    asked = [look("read_lines", path="P1"), look("read_lines", path="P:" + "0" * 32)]
    run(case, Script({"investigation": [patched(actions=asked)]}))
    assert [event.kind for event in only(case, ActionRefused)[:2]] == ["outside_snapshot"] * 2


# What stays here --------------------------------------------------------------------------------


def kept_here(case: Path, remote: bool, **more: Any) -> Script:
    said: Any = {"diagnosis": [patched(data=[])]}
    script = Script(said, remote=remote)
    settings = Settings(providers=("scripted",), no_egress=("log", "database"))
    run(case, script, settings=settings, **more)
    return script


def test_no_egress_keeps_artefacts_from_a_remote_provider(case: Path) -> None:
    script = kept_here(case, remote=True)
    assert state_of(case).done == set(ORDER)
    for document in script.documents:
        text = document.decode()
        assert "dropped item plum" not in text  # of the log
        assert "app.log" not in text
        assert "shop.db" not in text
        assert '"note","type"' not in text  # a column
    kinds = {event.action: event.problems[0].code for event in only(case, ActionRefused)}
    assert kinds == {"A2": "withheld", "A4": "withheld"}


def test_evidence_taken_for_a_local_provider_stays_here_too(case: Path) -> None:
    run(case, Script(), options=Options(until="investigation"))
    script = kept_here(case, remote=True)
    assert script.documents
    for document in script.documents:
        assert "dropped item plum" not in document.decode()


def test_no_egress_does_not_bind_a_provider_on_this_machine(case: Path) -> None:
    kept_here(case, remote=False)
    assert only(case, ActionRefused) == []


def test_what_was_withheld_once_is_shown_when_it_may_be(case: Path) -> None:
    kept_here(case, remote=True, options=Options(until="entity_resolution"))
    script = Script()
    run(case, script)
    catalogs = view_of(script.documents[0])[1]["catalogs"]
    assert [item["name"] for item in catalogs["databases"]] == ["shop.db"]


def test_withheld_evidence_is_listed_in_the_focused_view_too(case: Path) -> None:
    plain = look("search_log", None, query="dropped")
    run(
        case,
        Script({"investigation": [patched(actions=[plain])]}),
        options=Options(max_requests=4),
    )
    settings = Settings(
        providers=("scripted",),
        no_egress=("log",),
        protocols={"investigation": "investigation_project_v8"},
    )
    script = Script(remote=True)
    run(case, script, settings=settings)
    first = view_of(script.documents[0])[1]
    assert first["evidence"][0] == {"id": "E1", "hypothesis": None, "withheld": "log"}


# The recorded provider --------------------------------------------------------------------------


def replayed(recording: Path, case: Path) -> str:
    spec = f"recorded:{recording}"
    with Book.open_for_writing(case) as book:
        return Run(book, settings_for(spec), "tests", sleep=lambda _: None).go().reason


def documents(path: Path) -> list[str]:
    return [event.document.digest for event in only(path, RequestPrepared)]


def test_a_recorded_case_replays_with_the_same_outcome_and_documents(
    case: Path, scratch: Path
) -> None:
    again = copied(case, scratch / "again.case")
    run(case, Script({"diagnosis_early": [rejecting(1)]}))
    assert replayed(case, again) == "done"
    assert state_of(again).outcome() == state_of(case).outcome()
    assert documents(again) == documents(case)


def test_a_recorded_case_replays_its_corrections_too(case: Path, scratch: Path) -> None:
    again = copied(case, scratch / "again.case")
    run(case, Script({"hypotheses": [b"{}"]}))
    assert replayed(case, again) == "done"
    assert documents(again) == documents(case)


def test_a_document_that_was_never_recorded_ends_the_provider(case: Path, scratch: Path) -> None:
    again = copied(case, scratch / "again.case")
    run(case, Script(), options=Options(until="hypotheses"))
    assert replayed(case, again) == "provider"
    assert only(again, RequestFailed)[0].kind == "not_recorded"
    assert state_of(again).done == {"entity_resolution", "case_interpretation", "hypotheses"}


def test_every_event_of_these_runs_survives_reading_back(case: Path) -> None:
    run(case, Script({"hypotheses": [b"{}", failure()]}))
    assert len(events_of(case)) == state_of(case).position
    assert scripting.payload_of(case, documents(case)[0])["format"] == 1


def test_a_waiting_request_is_made_anew_under_the_settings_of_today(case: Path) -> None:
    failures = [failure("key", retryable=False)] * 2
    down = Script({"entity_resolution": failures}, name="down")
    assert run(case, down).reason == "provider"
    asked = Script(name="other")
    settings = settings_for("other", budget={"requests": 7})
    assert run(case, asked, down, settings=settings).reason == "provider"  # it keeps its own
    assert asked.documents == []
    assert run(case, asked, settings=settings, options=Options(renew=True)).reason == "done"
    (abandoned,) = only(case, RequestAbandoned)
    assert (abandoned.request, abandoned.reason) == ("R1", "renewed")
    first = only(case, RequestPrepared)[1]
    assert first.phase == "entity_resolution"
    assert {event.provider for event in only(case, RequestSent)[2:]} == {"other"}


def test_an_answer_that_is_there_is_read_and_not_made_anew(case: Path) -> None:
    class Deaf(Script):
        def read(self, body: bytes) -> Reply:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(case, Deaf())
    assert run(case, Script(), options=Options(renew=True)).reason == "done"
    assert only(case, RequestAbandoned) == []
    assert len(only(case, RequestSent)) == len(only(case, RequestPrepared))
