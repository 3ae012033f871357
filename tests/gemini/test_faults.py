"""Each fault looks to the real client as it is known to look, and does what it says."""

from __future__ import annotations

import gzip
import json
import threading
import time
import warnings
from collections.abc import Callable
from datetime import timedelta

import httpx2
import pydantic
import pytest
from google.genai import errors, types

from tests.gemini import faults, rules
from tests.gemini.clients import make_client
from tests.gemini.server import GeminiServer
from tests.gemini.sites import LARGE, Site, local_site, refusal

FLASH = "gemini-2.5-flash"
USER = {"role": "user", "parts": [{"text": "Say OK."}]}
HELD = {"role": "user", "parts": [{"text": LARGE}]}

SERVER, CLIENT = errors.ServerError, errors.ClientError
BROKEN_WIRE: dict[str, type[Exception]] = {
    "html_502": SERVER,
    "empty_503": SERVER,
    "unavailable": SERVER,
    "rate_limited": CLIENT,
    "daily_quota": CLIENT,
    "storage_quota": CLIENT,
    "no_such_path": CLIENT,
    "html_200": json.JSONDecodeError,
    "truncated_json": json.JSONDecodeError,
    "cut_without_length": json.JSONDecodeError,
    "wrong_types": pydantic.ValidationError,
    "bad_gzip": httpx2.DecodingError,
    "hang": httpx2.ReadTimeout,
    "hang_mid_body": httpx2.ReadTimeout,
    "commit_then_hang": httpx2.ReadTimeout,
    "close": httpx2.RemoteProtocolError,
    "close_mid_body": httpx2.RemoteProtocolError,
    "cut_chunk": httpx2.RemoteProtocolError,
    "commit_then_drop": httpx2.RemoteProtocolError,
    "garbage": httpx2.RemoteProtocolError,
    "reset": httpx2.ReadError,
    "reset_mid_body": httpx2.ReadError,
    "commit_then_reset": httpx2.ReadError,
}
NO_CANDIDATES = {"empty_200", "object_200", "null_200", "list_200", "error_200"}
STILL_ANSWERS = {
    "gzip", "drip", "duplicate_keys", "unknown_fields", "unknown_finish", "no_finish", "bad_utf8",
    "lone_surrogate", "no_usage", "cached_zero", "cached_missing", "cached_larger",
    "close_after_reply", "expire_cache", "evict_cache",
}  # fmt: skip
NOT_HANDLED = {"hang", "close", "reset"}


def test_every_action_is_tried() -> None:
    assert BROKEN_WIRE.keys() | NO_CANDIDATES | STILL_ANSWERS == faults.ACTIONS.keys()


@pytest.mark.parametrize("action", BROKEN_WIRE)
def test_a_broken_reply_raises_what_the_client_is_known_to_raise(action: str) -> None:
    with local_site() as site:
        site.server.faults.add(operation="generate", action=action)
        with pytest.raises(BROKEN_WIRE[action]):
            site.generate(http_options={"timeout": 200} if "hang" in action else None)
        exchange = site.server.log[-1]
        assert exchange.fault == action
        assert site.generate().text == "OK"  # the next request is served


@pytest.mark.parametrize("action", sorted(NO_CANDIDATES))
def test_some_broken_replies_raise_nothing(action: str, here: Site, server: GeminiServer) -> None:
    server.faults.add(action=action)
    assert here.generate().candidates is None


@pytest.mark.parametrize("action", sorted(STILL_ANSWERS))
def test_other_broken_replies_are_still_answers(
    action: str, here: Site, server: GeminiServer
) -> None:
    server.faults.add(action=action)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*A_NEW_REASON.*", UserWarning)
        assert (here.generate().text or "").endswith("OK")
    assert server.log[-1].status == 200


@pytest.mark.parametrize(
    ("action", "member"),
    [
        ("duplicate_keys", b'"candidates": [],'),
        ("unknown_fields", b"someNewMember"),
        ("bad_utf8", b"\xff\xfeOK"),
        ("lone_surrogate", b"\\ud83dOK"),
        ("no_usage", b'"responseId"'),
    ],
)
def test_the_bytes_of_a_broken_reply_are_sent_as_logged(
    action: str, member: bytes, here: Site, server: GeminiServer
) -> None:
    server.faults.add(action=action)
    sent = here.ask({"contents": [USER]}).content
    assert sent == server.log[-1].reply
    assert member in sent


def test_a_gzip_reply_is_really_compressed(here: Site, server: GeminiServer) -> None:
    server.faults.add(action="gzip")
    here.generate()
    assert json.loads(gzip.decompress(server.log[-1].reply))["candidates"]


@pytest.mark.parametrize("action", ["commit_then_drop", "commit_then_reset", "commit_then_hang"])
def test_what_is_dropped_after_it_is_done_is_done(action: str) -> None:
    with local_site() as site:
        server = site.server
        patient, impatient = site.client(), make_client(server.url, server.key, timeout=0.5)
        for operation in ("create", "patch", "delete"):
            server.faults.add(operation=operation, action=action)
        turn = types.Content(**HELD)
        with pytest.raises(httpx2.TransportError):
            impatient.caches.create(model=FLASH, config={"contents": [turn], "display_name": "me"})
        (cache,) = patient.caches.list()
        assert (cache.display_name, server.log[0].status) == ("me", None)
        with pytest.raises(httpx2.TransportError):
            impatient.caches.update(name=str(cache.name), config={"ttl": "9000s"})
        assert server.caches[0].expires > server.clock.now + timedelta(seconds=8_000)
        with pytest.raises(httpx2.TransportError):
            impatient.caches.delete(name=str(cache.name))
        assert server.caches[0].end == "deleted"
        impatient.close()


@pytest.mark.parametrize("action", sorted(NOT_HANDLED))
def test_what_is_dropped_before_it_is_done_is_not_done(action: str) -> None:
    with local_site() as site:
        site.server.faults.add(operation="create", action=action)
        with pytest.raises(httpx2.TransportError):
            site.cache(http_options={"timeout": 200})
        assert site.server.caches == []


def test_a_fault_waits_and_ends_and_chooses(here: Site, server: GeminiServer) -> None:
    server.faults.add(operation="generate", action="empty_503", skip=1, times=2)
    server.faults.add(action="html_502", when=lambda exchange: b"odd" in exchange.body)
    said = []
    for text in ("1", "2", "3", "4", "odd", "odd"):
        try:
            said.append(here.generate(text).text)
        except errors.ServerError as error:
            said.append(error.code)
    assert said == ["OK", 503, 503, "OK", 502, "OK"]
    server.faults.add(action="empty_503", times=None)
    server.faults.clear()
    assert here.generate().text == "OK"


def test_caches_can_fail_alone(here: Site, server: GeminiServer) -> None:
    server.faults.add(operation="caches", action="no_such_path", times=None)
    calls: list[Callable[[], object]] = [here.cache, lambda: list(here.client().caches.list())]
    assert [refusal(call)[0] for call in calls] == [404, 404]
    assert here.generate().text == "OK"


def test_a_quota_error_says_when_to_come_back(here: Site, server: GeminiServer) -> None:
    server.faults.add(action="rate_limited")
    server.faults.add(action=faults.daily_quota(0))
    for identifier, waits in (("PerMinute", "53s"), ("PerDay", "6s")):
        with pytest.raises(errors.ClientError) as raised:
            here.generate()
        error = raised.value
        failure, retry = error.details["error"]["details"]
        assert identifier in failure["violations"][0]["quotaId"]
        assert retry["retryDelay"] == waits
        assert error.response is not None
        assert error.response.headers.get("retry-after") == ("53" if waits == "53s" else None)


def test_an_error_of_any_kind_can_be_put_together(here: Site, server: GeminiServer) -> None:
    details = [rules.detail("ErrorInfo", reason="SOMETHING_NEW")]
    server.faults.add(action=faults.api_error(418, "teapot", status="ODD", details=details))
    with pytest.raises(errors.ClientError) as raised:
        here.generate()
    assert (raised.value.code, raised.value.status) == (418, "ODD")
    assert raised.value.details["error"]["details"][0]["reason"] == "SOMETHING_NEW"


def test_a_delay_comes_before_another_fault(here: Site, server: GeminiServer) -> None:
    server.faults.add(action=faults.Delay(5, then=faults.unavailable()))
    server.faults.add(action=faults.Delay(0.01, then=faults.unavailable()))
    with pytest.raises(httpx2.ReadTimeout):
        here.generate(http_options={"timeout": 200})
    with pytest.raises(errors.ServerError):
        here.generate()


def test_a_drip_outlasts_a_timeout_for_each_read(here: Site, server: GeminiServer) -> None:
    server.faults.add(action=faults.Drip(size=100, every=0.25))
    asked = time.monotonic()
    assert here.generate(http_options={"timeout": 1_000}).text == "OK"
    assert time.monotonic() - asked > 1


def test_the_cache_of_a_request_can_end_under_it(here: Site, server: GeminiServer) -> None:
    for action, end in (("expire_cache", "expired"), ("evict_cache", "evicted")):
        name = here.cache().name
        server.faults.add(operation="generate", action=action)
        server.missing_cache = "400"
        status = refusal(lambda name=name: here.generate(cached_content=name))[0]
        assert (status, server.caches[-1].end) == (400 if end == "expired" else 404, end)


@pytest.mark.parametrize(
    ("action", "expected"), [("cached_zero", 0), ("cached_missing", None), ("cached_larger", 256)]
)
def test_a_cached_count_can_be_wrong(
    action: str, expected: int | None, here: Site, server: GeminiServer
) -> None:
    name = here.cache().name
    server.faults.add(operation="generate", action=action)
    spent = here.generate(LARGE, cached_content=name).usage_metadata
    assert spent
    assert spent.cache_tokens_details
    held = server.caches[0].tokens
    assert spent.cached_content_token_count == (held + expected if expected else expected)


def test_a_redirect_carries_no_key_unless_it_is_followed(here: Site, server: GeminiServer) -> None:
    with GeminiServer() as elsewhere:
        server.faults.add(action=faults.Redirect(elsewhere.url))
        assert refusal(here.generate)[0] == 307
        assert elsewhere.log == []
        server.faults.add(action=faults.Redirect(elsewhere.url))
        with httpx2.Client(trust_env=False, follow_redirects=True) as careless:
            path = f"{server.url}/v1beta/models/{FLASH}:generateContent"
            careless.post(path, json={"contents": [USER]}, headers={"x-goog-api-key": server.key})
        assert elsewhere.log[0].headers["x-goog-api-key"] == server.key


def test_a_server_stops_while_a_client_hangs() -> None:
    with local_site() as site:
        server = site.server
        server.faults.add(action="hang")
        client = make_client(server.url, server.key, timeout=30)
        failed = []

        def ask() -> None:
            try:
                client.models.generate_content(model=FLASH, contents="Hi", config={})
            except httpx2.TransportError as error:
                failed.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        while not server.log:
            time.sleep(0.001)
    asking.join(5)
    client.close()
    assert not asking.is_alive()
    assert len(failed) == 1
