"""Gemini, then a server that speaks chat completions, then the offline analyst: nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ledger import canonical
from ledger.events import ProviderFailedOver, RequestFailed, RequestSent
from ledger.verify import verify_book
from phases.run import Options
from phases.settings import Settings
from tests.gemini.analyst import Analyst, document_of
from tests.gemini.faults import api_error
from tests.gemini.replies import Request
from tests.gemini.server import GeminiServer
from tests.gemini.state import Exchange
from tests.openai_server.completions import Asked, offline_analyst
from tests.openai_server.server import OpenAIServer
from tests.phases.providers.gemini.running import (
    documents_of,
    facts,
    names_cache,
    received_bodies,
    run,
    serving,
    settings_for,
)
from tests.phases.providers.gemini.running import key as key
from tests.phases.scripting import copied, events_of, only, reading, state_of

PROVIDERS = ("gemini", "openai_compatible", "offline")
BROKEN = api_error(500, "Something broke.")
DOWN = api_error(503, "The model is overloaded.", headers={"Retry-After": "0"})


class Servers(NamedTuple):
    """Two services and what answers in the first."""

    gemini: GeminiServer
    other: OpenAIServer
    analyst: Analyst

    def settings(self, *providers: str, attempts: int = 3) -> Settings:
        other = {"base_url": self.other.url, "model": "local-model", "timeout_seconds": 20}
        more = {"openai_compatible": other, "run": {"attempts": attempts}}
        return settings_for(self.gemini, *(providers or PROVIDERS), more=more)


@pytest.fixture
def servers(key: None) -> Iterator[Servers]:
    analyst = Analyst()
    with serving(analyst) as gemini, OpenAIServer(offline_analyst) as other:
        yield Servers(gemini, other, analyst)


@pytest.fixture
def expected(case: Path, scratch: Path) -> dict[str, Any]:
    """Return the outcome of the offline analyst alone."""
    local = copied(case, scratch / "local.case")
    run(local, Settings())
    return state_of(local).outcome()


def sendings(path: Path, request: str) -> list[str]:
    return [event.provider for event in only(path, RequestSent) if event.request == request]


def test_three_failures_of_each_hand_the_complete_request_down_the_list(
    servers: Servers, case: Path, expected: dict[str, Any]
) -> None:
    servers.gemini.faults.add(operation="generate", when=names_cache, skip=1, times=3, action=DOWN)
    servers.other.faults.add(operation="chat", action=BROKEN, times=3)
    assert run(case, servers.settings()).reason == "done"
    assert state_of(case).outcome() == expected

    first, second = only(case, ProviderFailedOver)
    assert first.request == second.request
    assert (first.from_provider, first.to_provider) == ("gemini", "openai_compatible")
    assert (second.from_provider, second.to_provider) == ("openai_compatible", "offline")
    assert {(e.reason, e.detail) for e in (first, second)} == {("attempts_used",) * 2}
    asked = sendings(case, first.request)
    assert asked == ["gemini"] * 3 + ["openai_compatible"] * 3 + ["offline"]
    failed = [(e.attempt, e.kind, e.status) for e in only(case, RequestFailed)]
    assert failed == [
        *((number, "http_503", 503) for number in (1, 2, 3)),
        *((number, "http_500", 500) for number in (4, 5, 6)),
    ]
    others = {e.provider for e in only(case, RequestSent) if e.request != first.request}
    assert others == {"gemini"}, "the next request begins with the first provider again"
    check_each_got_the_complete_request(servers, case)


def check_each_got_the_complete_request(servers: Servers, case: Path) -> None:
    handed = only(case, ProviderFailedOver)[0].request
    state = state_of(case)
    sent = {e.document for e in only(case, RequestSent) if e.request == handed}
    assert sent == {state.requests[handed].document.digest}
    arrived = [digest_of(Asked(exchange.json)) for exchange in servers.other.log]
    assert arrived == [state.requests[handed].document.digest] * 3
    lost = [x for x in servers.gemini.exchanges("generate") if x.fault]
    assert {digest_at(servers.gemini, exchange) for exchange in lost} == sent
    answered = [d for d in documents_of(case) if d not in sent]
    assert servers.analyst.digests == answered
    mine = [e for e in only(case, RequestSent) if e.provider == "gemini"]
    assert len(received_bodies(servers.gemini)) == len(mine)


def digest_of(asked: Asked) -> str:
    return canonical.digest(canonical.to_bytes(asked.document()))


def digest_at(server: GeminiServer, exchange: Exchange) -> str:
    """Return the digest of the document that a request carries together with its cache."""
    cache = next((c for c in server.caches if c.name == exchange.cache), None)
    value: Any = exchange.json
    request = Request("", "", value, value, cache, exchange)
    return canonical.digest(canonical.to_bytes(document_of(request)))


def test_the_cache_is_released_when_the_investigation_ends_elsewhere(
    servers: Servers, case: Path
) -> None:
    servers.gemini.faults.add(
        operation="generate", when=names_cache, skip=1, times=None, action=DOWN
    )
    assert run(case, servers.settings("gemini", "offline")).reason == "done"
    assert facts(case) == ["create_requested", "created", "deleted deleted"]
    assert servers.gemini.leaked() == []
    topics = [event.TOPIC.partition("/")[0] for event in events_of(case)]
    assert topics.index("investigation.ended") < topics.index("cache.deleted")
    assert topics.index("cache.deleted") < topics.index("cache.settled")
    with reading(case) as book:
        assert verify_book(book).findings == []


def test_a_service_that_is_down_for_good_changes_no_outcome(
    servers: Servers, case: Path, expected: dict[str, Any]
) -> None:
    servers.gemini.faults.add(action=DOWN, times=None)
    assert run(case, servers.settings(attempts=1)).reason == "done"
    assert state_of(case).outcome() == expected
    assert [digest_of(Asked(exchange.json)) for exchange in servers.other.log] == documents_of(case)
    assert len(only(case, ProviderFailedOver)) == len(documents_of(case))


def test_a_terminal_error_hands_over_at_once_and_says_why(servers: Servers, case: Path) -> None:
    servers.gemini.faults.add(
        operation="generate", action=api_error(400, "API key not valid."), times=None
    )
    run(case, servers.settings("gemini", "offline"), Options(max_requests=2))
    (over,) = only(case, ProviderFailedOver)
    assert (over.reason, over.detail) == ("terminal", "terminal: http_400")
    assert sendings(case, over.request) == ["gemini", "offline"]


def test_when_nobody_is_left_the_request_stays_prepared_and_a_later_run_asks_again(
    servers: Servers, case: Path
) -> None:
    servers.gemini.faults.add(operation="generate", action=DOWN, times=3)
    servers.other.faults.add(operation="chat", action=BROKEN, times=3)
    settings = servers.settings("gemini", "openai_compatible")
    stopped = run(case, settings)
    assert stopped.reason == "provider"
    assert "no provider is left (gemini, openai_compatible)" in stopped.detail
    held = state_of(case).open_request
    assert held is not None
    assert held.status == "prepared"
    assert run(case, settings, Options(max_requests=1)).reason == "max_requests"
    assert sendings(case, held.id) == ["gemini"] * 3 + ["openai_compatible"] * 3 + ["gemini"]
