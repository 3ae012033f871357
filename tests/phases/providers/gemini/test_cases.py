"""Whole investigations on the Gemini path: one prefix a revision, every byte accounted for.

Two real cases are fetched from a package index: `python -m pytest … -m registry`. The figures that
docs/guides/gemini.md states are printed: `-rP -k transported`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ledger.book import Book
from ledger.events import (
    CacheCreateRequested,
    CacheRejected,
    ContextCreated,
    RequestPrepared,
    RequestSent,
)
from ledger.verify import verify_book
from phases.intake import IntakeRequest
from phases.opening import amend_case
from projections.cache_measuring import full_history_protocols, measure, summary
from projections.partitions import stable_case_v1
from projections.requests import model_view
from projections.saw import check_all
from projections.views import investigation_ordered_v1
from tests.gemini.server import KEYS, GeminiServer
from tests.phases.providers.gemini import open_cases
from tests.phases.providers.gemini.running import (
    Patient,
    Scripted,
    decisions_of,
    documents_of,
    facts,
    names_cache,
    received_bodies,
    run,
    sent_bodies,
    serving,
    settings_for,
)
from tests.phases.providers.gemini.running import key as key
from tests.phases.scripting import copied, events_of, only, reading, state_of, step_answer
from tools import cli
from tools.sawing import wire_of

V10, V11 = "investigation_project_v10", "investigation_project_v11"

Json = dict[str, Any]


LOOKS = {"example": 3, "croniter-leap-day": 2, "sqlite-utils-accents": 2}
"""How many looks a step takes, so that an investigation has at least 13 requests."""


@dataclass(frozen=True)
class Played:
    """A whole case, and the server that it was played with."""

    path: Path
    server: GeminiServer
    analyst: Patient


@pytest.fixture(
    scope="module",
    params=[
        "example",
        pytest.param("croniter-leap-day", marks=pytest.mark.registry),
        pytest.param("sqlite-utils-accents", marks=pytest.mark.registry),
    ],
)
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Played]:
    folder = tmp_path_factory.mktemp("played")
    path, analyst = open_cases.taken_in(request.param, folder), Patient(LOOKS[request.param])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GEMINI_API_KEY", KEYS[0])
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        with serving(analyst) as server:
            assert run(path, settings_for(server)).reason == "done"
            assert server.leaked() == []
        yield Played(path, server, analyst)


def investigation_of(path: Path) -> list[RequestPrepared]:
    return [event for event in only(path, RequestPrepared) if event.phase == "investigation"]


def test_a_long_investigation_creates_one_cache_and_reads_it_with_every_request(
    played: Played,
) -> None:
    steps = investigation_of(played.path)
    assert len(steps) >= 13
    decided = [event for event in decisions_of(played.path) if event.key]
    assert [event.request for event in decided] == [event.request for event in steps]
    assert [event.reason for event in decided] == ["create"] + ["reuse"] * (len(steps) - 1)
    assert len({event.content_id for event in decided}) == 1
    assert facts(played.path) == ["create_requested", "created", "deleted deleted"]
    (cache,) = played.server.caches
    assert cache.uses == len(steps)
    with reading(played.path) as book:
        assert verify_book(book).findings == []
        assert {check.state for check in check_all(book)} == {"same"}


def test_what_the_server_received_is_what_saw_wire_shows(
    played: Played, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    received = received_bodies(played.server)
    assert sent_bodies(played.path) == received
    with Book.open(played.path) as book:
        sent = [event for _, event in book.events() if isinstance(event, RequestSent)]
        assert [wire_of(book, e.request, e.attempt) for e in sent] == received
        (created,) = [e for _, e in book.events() if isinstance(e, CacheCreateRequested)]
        assert created.body is not None
        assert [book.payload(created.body.digest)] == played.server.bodies("create")
    for number in (0, len(sent) // 2):  # without a cache, and with one
        capfdbinary.readouterr()
        assert cli.run(["saw", str(played.path), sent[number].request, "--wire"]) == 0
        assert capfdbinary.readouterr().out == received[number]


def test_the_parts_that_arrived_join_to_the_archived_documents(played: Played) -> None:
    assert played.analyst.digests == documents_of(played.path)


def test_the_live_part_that_is_measured_is_the_one_that_was_transported(played: Played) -> None:
    with reading(played.path) as book:
        sums = summary(measure(book, ()), 0)
    cached = [x.json for x in played.server.exchanges("generate") if names_cache(x)]
    live = [part["text"] for sent in cached for part in sent["contents"][0]["parts"]]
    assert sums.live.characters == sum(map(in_json, live))
    assert sums.requests == sums.exact == len(cached)
    assert sums.complete == sums.historical
    less = 1 - sums.live.characters / sums.complete.characters
    share = sums.stable.characters / sums.complete.characters
    around = sums.stable.characters + sums.live.characters - sums.complete.characters
    assert 0 < around < 1000 * sums.requests  # what says that and how two parts form one
    print(
        f"\n{played.path.stem}: {sums.requests} requests, complete {sums.complete.characters:,}, "
        f"live {sums.live.characters:,} characters: {less:.2%} less; stable share {share:.2%}; "
        f"prefix {sums.prefixes[0].size.characters:,}; "
        f"labels {sums.alias_overhead.characters:,} longer than sequential ones"
    )


def in_json(text: str) -> int:
    """Return how many characters a text has inside a JSON string, with quotes and escapes."""
    return len(json.dumps(text, ensure_ascii=False))


def test_labels_in_sequence_give_several_prefixes_where_the_stable_part_cites_definitions(
    played: Played,
) -> None:
    """As in the milestone, whose sources carry provenance: here the first looks stand for them.

    Our own stable part cites none, so that rebuilt as v10 it stays one prefix too; what changes
    there is what a label means.
    """
    with reading(played.path) as book:
        contexts = [
            json.loads(book.payload(event.content.digest))
            for _, event in book.events()
            if isinstance(event, ContextCreated) and event.phase == "investigation"
        ]
    assert {V10, V11} == set(full_history_protocols())
    for protocol, several in ((V10, True), (V11, False)):
        views = [in_v11_order(protocol, context) for context in contexts]
        assert len({prefix_of(view) for view in views}) == 1
        moved = [with_looks_as_sources(view, 8) for view in views if len(view["evidence"]) >= 8]
        assert (len({prefix_of(view) for view in moved}) > 1) == several


def in_v11_order(protocol: str, context: Json) -> Json:
    view = investigation_ordered_v1.show(model_view(protocol, context))
    return {**view, "shared": dict(sorted(view["shared"].items()))}


def with_looks_as_sources(view: Json, number: int) -> Json:
    looks, rest = view["evidence"][:number], view["evidence"][number:]
    return {**view, "sources": {**view["sources"], "looks": looks}, "evidence": rest}


def prefix_of(view: Json) -> str:
    return str(stable_case_v1.split(view).prefix["id"])


# Revisions --------------------------------------------------------------------------------------


@pytest.fixture
def small(key: None, case: Path) -> Path:
    return case


def test_an_amendment_gives_exactly_one_more_prefix(small: Path) -> None:
    with serving() as server:
        run(small, settings_for(server))
        with Book.open_for_writing(small) as book:
            request = IntakeRequest(report=None, source=None, observations=("It rained.",))
            amend_case(book, request)
        assert run(small, settings_for(server)).reason == "done"
        assert server.count("create") == 2
        assert received_bodies(server) == sent_bodies(small)
    prepared = {event.request: event.context for event in investigation_of(small)}
    revisions = {c.context: c.revision for c in only(small, ContextCreated)}
    found: dict[int, set[str]] = {}
    for event in decisions_of(small):
        if event.key:
            found.setdefault(revisions[prepared[event.request]], set()).add(event.content_id)
    assert [len(found[revision]) for revision in (1, 2)] == [1, 1]
    assert found[1] != found[2]


@pytest.mark.slow
def test_forty_requests_share_one_prefix(small: Path) -> None:
    budget = {"requests": 60, "actions": 200}
    with serving(FortySteps()) as server:
        settings = settings_for(server, more={"budget": budget})
        assert run(small, settings).reason == "done"
        assert server.count("create") == 1
    assert len(investigation_of(small)) > 40
    assert len({event.content_id for event in decisions_of(small) if event.key}) == 1


class FortySteps(Scripted):
    """The script, with forty looks, one a step."""

    def __init__(self) -> None:
        super().__init__()
        look = {"name": "search_code", "purpose": "to see", "hypothesis": "H1"}
        self.looks = tuple(({**look, "arguments": {"query": f"item {n}"}},) for n in range(40))

    def say(self, phase: str, view: Json) -> Json:
        return (
            step_answer(view, self.looks) if phase == "investigation" else super().say(phase, view)
        )


# Rejected caches --------------------------------------------------------------------------------


def test_a_cache_rejected_at_any_request_changes_neither_outcome_nor_information(
    small: Path, scratch: Path
) -> None:
    whole, documents, reads = played_with_rejections(copied(small, scratch / "whole.case"), 0, 0)
    assert reads >= 4
    for number in range(reads):
        path = copied(small, scratch / f"rejected {number}.case")
        outcome, sent, left = played_with_rejections(path, number, 1)
        assert (outcome, sent) == (whole, documents)
        assert (len(only(path, CacheRejected)), left) == (1, reads)
    path = copied(small, scratch / "all.case")
    outcome, sent, left = played_with_rejections(path, 0, None)
    assert (outcome, sent) == (whole, documents)
    assert len(only(path, CacheRejected)) == left == 2  # then it is left alone
    rejection = ["create_requested", "created", "rejected not_found", "lost rejected"]
    assert facts(path) == [*rejection * 2, "deleted gone", "deleted gone"]


def played_with_rejections(path: Path, skip: int, times: int | None) -> tuple[Json, set[str], int]:
    """Run a case whose cache is gone at some requests.

    Return the outcome, the digests of the documents that were answered, and the cached requests.
    """
    analyst = Scripted()
    with serving(analyst) as server:
        server.faults.add(
            operation="generate", when=names_cache, skip=skip, times=times, action="evict_cache"
        )
        assert run(path, settings_for(server)).reason == "done"
        assert server.leaked() == []
        assert received_bodies(server) == sent_bodies(path)
        cached = sum(map(names_cache, server.exchanges("generate")))
    assert len(analyst.digests) == len(set(analyst.digests)), "nothing is answered twice"
    for event in events_of(path):
        if isinstance(event, RequestSent):
            assert event.document == state_of(path).requests[event.request].document.digest
    return state_of(path).outcome(), set(analyst.digests), cached
