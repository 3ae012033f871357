"""Whole cases through the OpenAI-compatible provider, answered by the offline analyst over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger import canonical
from ledger.book import Book
from ledger.events import (
    Event,
    ProviderFailedOver,
    Ref,
    RequestFailed,
    RequestPrepared,
    RequestSent,
    ResponseReceived,
    UsageMeasured,
)
from ledger.verify import verify_book
from phases.run import Options, Run, Stopped
from phases.settings import Settings
from projections.saw import check_all
from tests.gemini.faults import Bytes, Cut, Instead, Redirect
from tests.gemini.guard import only_loopback
from tests.openai_server.completions import Completion, offline_analyst
from tests.openai_server.server import OpenAIServer
from tests.phases.scripting import copied, events_of, only, reading, state_of

KEY = "sk-canary/0123456789abcdef+ghij="


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with OpenAIServer(offline_analyst, keys=(KEY,)) as running, only_loopback():
        yield running


def settings_of(server: OpenAIServer, *providers: str, **section: Any) -> Settings:
    values = {"base_url": server.url, "model": "local-model", "timeout_seconds": 20, **section}
    return Settings.model_validate(
        {"providers": providers or ("openai_compatible",), "openai_compatible": values}
    )


def run(path: Path, settings: Settings, options: Options | None = None) -> Stopped:
    with Book.open_for_writing(path) as book:
        work = Run(book, settings, "tests", options or Options(), sleep=lambda seconds: None)
        return work.go()


def wires_of(path: Path) -> list[bytes]:
    with reading(path) as book:
        sent = [event.wire for _, event in book.events() if isinstance(event, RequestSent)]
        return [book.payload(wire.digest) for wire in sent if wire]


def test_a_case_ends_as_it_does_with_the_analyst_in_this_process(
    server: OpenAIServer, case: Path, scratch: Path
) -> None:
    local = copied(case, scratch / "local.case")
    assert run(local, Settings()).reason == "done"
    assert run(case, settings_of(server)).reason == "done"
    assert state_of(case).outcome() == state_of(local).outcome()
    assert wires_of(case) == server.bodies()
    with reading(case) as book:
        verify_book(book)
        assert all(check.state == "same" for check in check_all(book))
    documents = [event.document.digest for event in only(case, RequestPrepared)]
    assert documents == [event.document.digest for event in only(local, RequestPrepared)]


def test_the_record_says_who_was_asked_and_how(server: OpenAIServer, case: Path) -> None:
    run(case, settings_of(server), Options(max_requests=1))
    (sent,) = only(case, RequestSent)
    assert (sent.provider, sent.model, sent.endpoint) == (
        "openai_compatible", "local-model", server.url,
    )  # fmt: skip
    assert sent.parameters == {"max_tokens": 16_384, "schema": "json_schema"}
    assert (sent.client[:7], sent.deadline_ms) == ("httpx2/", 20_000)
    (received,) = only(case, ResponseReceived)
    assert (received.status, received.provider_request_id) == (200, "req-17")


def test_the_server_reads_the_stable_prefix_of_an_investigation_from_its_cache(
    server: OpenAIServer, case: Path
) -> None:
    run(case, settings_of(server, response_schema=False))
    steps = [e.request for e in only(case, RequestPrepared) if "investigation" in e.protocol]
    usage = {event.request: event for event in only(case, UsageMeasured)}
    assert len(steps) > 2
    for step in steps[1:]:
        assert usage[step].cached > usage[step].prompt / 2


def test_a_local_model_without_a_price_costs_something_unmeasured(
    server: OpenAIServer, case: Path, scratch: Path
) -> None:
    stated = copied(case, scratch / "stated.case")
    run(case, settings_of(server), Options(max_requests=1))
    assert only(case, UsageMeasured)[0].cost_nano_usd is None
    free = settings_of(server, price={"input": "0", "output": "0"})
    run(stated, free, Options(max_requests=1))
    measured = only(stated, UsageMeasured)[0]
    assert (measured.cost_nano_usd, measured.price["input"]) == (0, 0)


@pytest.mark.parametrize("quirk", ["no_schema", "no_max_tokens"])
def test_a_refused_form_costs_one_attempt_in_a_whole_case(
    server: OpenAIServer, case: Path, quirk: str
) -> None:
    server.quirks = frozenset({quirk})
    assert run(case, settings_of(server)).reason == "done"
    (failed,) = only(case, RequestFailed)
    assert (failed.kind, failed.attempt) == ("form_refused", 1)
    assert wires_of(case) == server.bodies()


def test_a_correction_reaches_a_server_whose_template_wants_turns(
    server: OpenAIServer, case: Path
) -> None:
    server.quirks = frozenset({"alternating"})
    server.queue("{}")
    assert run(case, settings_of(server)).reason == "done"
    (failed,) = only(case, RequestFailed)
    assert (failed.request, failed.kind) == ("R2", "form_refused")


def test_three_failures_in_a_row_hand_the_request_to_the_next_provider(
    server: OpenAIServer, case: Path
) -> None:
    server.faults.add(operation="chat", action="unavailable", times=3)
    settings = settings_of(server, "openai_compatible", "offline")
    assert run(case, settings, Options(max_requests=4)).reason == "max_requests"
    (over,) = only(case, ProviderFailedOver)
    assert (over.from_provider, over.to_provider) == ("openai_compatible", "offline")
    assert len(only(case, RequestFailed)) == 3


def test_a_key_a_server_repeats_everywhere_is_nowhere_in_a_case(
    server: OpenAIServer, case: Path
) -> None:
    quoted = canonical.to_bytes({"message": f"bad key {KEY}", "url": f"?key={KEY}"})
    with OpenAIServer() as other:
        for action in (
            Instead(500, quoted),
            Instead(503, KEY.encode(), headers={"X-Request-Id": KEY, "Retry-After": KEY}),
            Bytes(lambda body: b'{"key":"' + KEY.encode() + b'"}'),
            Cut(after_bytes=200),
            Redirect(other.origin + "/" + KEY),
        ):
            server.faults.add(operation="chat", action=action)
        server.queue(Completion(text=f'{{"hypotheses": "{KEY}"}}', message={"refusal": KEY}))
        for _ in range(4):
            run(case, settings_of(server), Options(max_requests=3))
        assert other.log == []
    assert len(only(case, RequestFailed)) == 5
    assert KEY.encode() not in _everything(case)
    assert KEY.replace("/", "\\/").encode() not in _everything(case)


def _everything(path: Path) -> bytes:
    """Return every byte on disk, and every event and payload uncompressed."""
    files = [file.read_bytes() for file in path.parent.iterdir() if file.is_file()]
    with reading(path) as book:
        payloads = [book.payload(digest) for digest in _payloads(events_of(path))]
    return b"\0".join([*files, repr(events_of(path)).encode(), *payloads])


def _payloads(value: Any) -> set[str]:
    """Return the digests of all payloads that events name."""
    if isinstance(value, list | tuple):
        return set().union(*map(_payloads, value))
    if isinstance(value, Ref):
        return {value.digest}
    return _payloads(list(vars(value).values())) if isinstance(value, Event) else set()
