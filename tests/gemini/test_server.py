"""The local server's own state, log, implicit hits and replies."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from tests.gemini import messages, replies, state
from tests.gemini.clients import make_client
from tests.gemini.guard import Escape, only_loopback
from tests.gemini.replies import Reply
from tests.gemini.server import GeminiServer
from tests.gemini.sites import LARGE, Site, local_site, refusal
from tests.gemini.state import ModelRow

FLASH = "gemini-2.5-flash"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
USER = {"role": "user", "parts": [{"text": "Say OK."}]}

# State, on the local server only.


def test_time_is_virtual_and_ends_caches(here: Site, server: GeminiServer) -> None:
    name = here.cache().name
    server.clock.advance(299)
    assert [cache.name for cache in server.leaked()] == [name]
    assert here.generate(cached_content=name).text == "OK"
    server.clock.advance(1)
    assert refusal(lambda: here.generate(cached_content=name))[0] == 403
    (cache,) = server.caches
    assert (cache.end, cache.uses, server.leaked()) == ("expired", 1, [])
    assert cache.token_hours(server.clock.now) == pytest.approx(cache.tokens * 299.6 / 3_600)


def test_a_clock_can_start_at_a_stated_time() -> None:
    with local_site(now=datetime(2031, 5, 1, tzinfo=UTC), early_expiry=0) as site:
        assert site.cache().expire_time == datetime(2031, 5, 1, 0, 5, tzinfo=UTC)


def test_another_key_sees_and_uses_none_of_the_caches(here: Site, server: GeminiServer) -> None:
    name = here.cache().name
    other = here.client(key=server.other_key)
    assert list(other.caches.list()) == []
    assert refusal(lambda: other.caches.get(name=str(name)))[0] == 403
    assert here.raw("GET", "cachedContents", **{"x-goog-api-key": server.other_key}).json() == {}


def test_a_preview_model_is_served_by_v1beta_only(here: Site) -> None:
    old = here.client(version="v1")
    assert old.models.generate_content(model=FLASH, contents="Hi", config={}).text
    status, message = refusal(
        lambda: old.models.generate_content(model=here.preview, contents="Hi", config={})
    )
    assert status == 404
    assert "is not found for API version v1, or is not supported for generateContent" in message


def test_a_minimum_can_be_set_for_a_model() -> None:
    row = {FLASH: ModelRow(explicit_cache=True, min_cache_tokens=1_024)}
    with local_site(models=row) as site:
        site.cache(contents=[types.Content(role="user", parts=[types.Part(text="x" * 4_096)])])
        small = [types.Content(role="user", parts=[types.Part(text="x" * 4_092)])]
        _, message = refusal(lambda: site.cache(contents=small))
        assert "total_token_count=1023, min_total_token_count=1024" in message


def test_a_foreign_or_deleted_cache_is_a_404_where_expired_ones_are_a_400() -> None:
    with local_site(missing_cache="400") as site:
        name = site.cache().name
        site.client().caches.delete(name=str(name))
        assert refusal(lambda: site.generate(cached_content=name))[0] == 404


def test_a_path_prefix_is_no_hindrance(server: GeminiServer) -> None:
    client = make_client(f"{server.url}/proxy", server.key)
    assert client.models.generate_content(model=FLASH, contents="Hi", config={}).text == "OK"
    assert server.log[0].path == f"/proxy/v1beta/models/{FLASH}:generateContent"
    client.close()


def test_the_log_keeps_what_was_sent(here: Site, server: GeminiServer) -> None:
    here.generate("héllo", seed=1)
    (exchange,) = server.log
    assert (exchange.method, exchange.operation, exchange.status) == ("POST", "generate", 200)
    assert exchange.headers["x-goog-api-key"] == server.key
    assert b'"h\\u00e9llo"' in exchange.body
    assert server.bodies("generate") == [exchange.body]
    assert exchange.json["contents"][0]["parts"] == [{"text": "héllo"}]
    assert json.loads(exchange.reply)["responseId"] == "r000001"


def test_problems_name_a_cache_beside_a_system_instruction(
    here: Site, server: GeminiServer
) -> None:
    assert server.problems() == []
    name = here.cache().name
    refusal(lambda: here.generate(cached_content=name, system_instruction="Be brief."))
    here.generate(f"my key is {here.key}")
    assert server.problems() == [
        "request 2 has a cache and a system instruction",
        "request 3 has a key in its body",
    ]


def test_two_threads_share_the_server(here: Site, server: GeminiServer) -> None:
    client, said = here.client(), []

    def ask(name: str) -> None:
        for number in range(10):
            text = f"{name} {number}"
            reply = client.models.generate_content(model=FLASH, contents=text, config={})
            said.append((text, reply.text))

    server.responder = lambda request: request.texts[-1]
    threads = [threading.Thread(target=ask, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == server.count("generate") == 20
    assert all(text == answer for text, answer in said)


def test_an_error_in_a_responder_is_raised_when_the_server_stops() -> None:
    def ask(failing: GeminiServer) -> None:
        with failing:
            failing.responder = lambda request: str(1 / 0)
            assert refusal(Site(failing.url, failing.key).generate)[0] == 500

    with pytest.raises(ZeroDivisionError):
        ask(GeminiServer())


def test_only_loopback_is_reached_under_the_guard(here: Site) -> None:
    with only_loopback() as asked:
        here.generate()
        with pytest.raises(Escape), httpx2.Client(trust_env=False) as plain:
            plain.get("http://192.0.2.1/")
    assert set(asked) == {"127.0.0.1", "192.0.2.1"}


# Implicit caching.


def implicit(site: Site, live: str, **more: Any) -> int | None:
    spent = site.generate(LARGE + live, **more).usage_metadata
    assert spent
    return spent.cached_content_token_count


def test_an_implicit_hit_is_the_common_prefix_in_steps_of_256() -> None:
    with local_site(implicit="ideal") as site:
        assert implicit(site, "one") is None
        assert implicit(site, "two") == len(LARGE) // 4 // 256 * 256
        assert implicit(site, "two", system_instruction="Another start.") is None


def test_another_schema_breaks_an_implicit_hit() -> None:
    with local_site(implicit="ideal") as site:
        asked = {"response_mime_type": "application/json", "response_json_schema": SCHEMA}
        assert implicit(site, "one", **asked) is None
        assert implicit(site, "two", **asked)
        asked["response_json_schema"] = SCHEMA | {"description": "Another."}
        assert implicit(site, "three", **asked) is None


def test_implicit_hits_can_miss_first_or_never_come() -> None:
    with local_site(implicit=2) as site:
        hits = [implicit(site, str(number)) for number in range(5)]
        assert [bool(hit) for hit in hits] == [False, False, False, True, True]
    with local_site() as site:
        assert [implicit(site, "a"), implicit(site, "a")] == [None, None]


def test_implicit_entries_end_after_a_day_and_below_the_minimum(here: Site) -> None:
    with local_site(implicit="ideal") as site:
        implicit(site, "one")
        assert site.generate("short").usage_metadata.cached_content_token_count is None
        assert site.generate("short").usage_metadata.cached_content_token_count is None
        site.server.clock.advance(24 * 3_600)
        assert implicit(site, "two") is None


# Replies.


def test_a_responder_sees_the_cached_input_first(here: Site, server: GeminiServer) -> None:
    seen = []
    server.responder = lambda request: seen.append(request) or "OK"
    cache = here.cache(system_instruction="Be brief.")
    schema = {"response_mime_type": "application/json", "response_json_schema": SCHEMA}
    here.generate("live", cached_content=cache.name, **schema)
    here.generate("inline", system_instruction="Be long.")
    cached, inline = seen
    assert (cached.system, cached.texts, cached.schema) == ("Be brief.", [LARGE, "live"], SCHEMA)
    assert cached.cache
    assert cached.cache.name == cache.name
    assert (inline.system, inline.texts, inline.cache) == ("Be long.", ["inline"], None)


def test_a_queue_goes_before_the_responder(here: Site, server: GeminiServer) -> None:
    server.responder = lambda request: "responder"
    server.queue("first", Reply(text="second"))
    assert [here.generate().text for _ in range(3)] == ["first", "second", "responder"]


def test_thoughts_are_billed_and_shown_on_request(here: Site, server: GeminiServer) -> None:
    server.queue(Reply(text="A", thoughts="I think so."), Reply(text="A", thoughts="I think so."))
    unseen, shown = here.generate(), here.generate(thinking_config={"include_thoughts": True})
    for reply, parts in ((unseen, 1), (shown, 2)):
        spent = reply.usage_metadata
        assert spent
        assert spent.thoughts_token_count == 3
        assert len(reply.candidates[0].content.parts) == parts
        assert reply.text == "A"


def test_thoughts_can_use_up_the_output(here: Site, server: GeminiServer) -> None:
    server.queue(Reply(text="An answer.", thoughts=500), Reply(text="x" * 100, thoughts=10))
    nothing, half = (here.generate(max_output_tokens=20) for _ in range(2))
    assert nothing.text is None
    assert nothing.usage_metadata
    assert nothing.usage_metadata.thoughts_token_count == 20
    assert half.text == "x" * 40
    for reply in (nothing, half):
        assert reply.candidates
        assert reply.candidates[0].finish_reason == "MAX_TOKENS"


def test_refused_and_empty_answers_raise_nothing_in_the_client(
    here: Site, server: GeminiServer
) -> None:
    server.queue(
        Reply(finish="SAFETY"),
        Reply(finish="RECITATION", candidate={"citationMetadata": {"citationSources": []}}),
        Reply(block="PROHIBITED_CONTENT"),
        Reply(text=""),
        Reply(parts=[]),
        Reply(parts=[{"text": "hm", "thought": True}]),
    )
    answers = [here.generate() for _ in range(6)]
    assert [answer.text for answer in answers] == [None, None, None, "", None, None]
    assert answers[2].candidates is None
    assert answers[2].prompt_feedback
    assert answers[2].prompt_feedback.block_reason == "PROHIBITED_CONTENT"


def test_usage_candidate_and_body_can_be_overridden(here: Site, server: GeminiServer) -> None:
    server.queue(
        Reply(usage={"promptTokenCount": 7, "totalTokenCount": None}),
        Reply(candidate={"avgLogprobs": -0.5, "finishReason": None}),
        Reply(body=b'{"candidates": 1'),
    )
    spent = here.generate().usage_metadata
    assert spent
    assert (spent.prompt_token_count, spent.total_token_count) == (7, None)
    chosen = (here.generate().candidates or [])[0]
    assert (chosen.avg_logprobs, chosen.finish_reason) == (-0.5, None)
    with pytest.raises(json.JSONDecodeError):
        here.generate()


def test_continued_answers_are_hops_that_the_client_may_join(
    here: Site, server: GeminiServer
) -> None:
    server.queue(*replies.continued("one ", "two ", "three"))
    assert here.generate().text == "one "
    assert here.generate(automatic_continuation=True).text == "two three"
    assert server.count("generate") == 3
    assert b'"continuationToken"' in server.bodies("generate")[-1]


def test_tokens_can_be_counted_another_way() -> None:
    with local_site(tokens=len) as site:
        spent = site.generate("12345").usage_metadata
        assert spent
        assert spent.prompt_token_count == 5


# Laws.


@given(st.binary(max_size=64), st.binary(max_size=64), st.binary(max_size=64))
def test_a_common_prefix_is_the_longest(start: bytes, one: bytes, other: bytes) -> None:
    one, other = start + one, start + other
    length = state.common_prefix(one, other)
    assert one[:length] == other[:length]
    assert one[length : length + 1] != other[length : length + 1] or length == len(one) == len(
        other
    )


@given(st.text(max_size=200), st.integers(0, 60), st.integers(1, 60))
def test_a_cut_answer_fills_its_limit_and_never_passes_it(
    text: str, thoughts: int, limit: int
) -> None:
    count = state.count_tokens
    kept, spent, cut = replies.limited(text, thoughts, {"maxOutputTokens": limit}, count)
    assert text.startswith(kept)
    assert count(kept) + spent <= limit
    assert cut == (count(text) + thoughts > limit)
    if cut and kept != text:
        assert count(text[: len(kept) + 1]) + spent > limit


@given(st.data())
def test_every_mix_of_spellings_reads_the_same(data: st.DataObject) -> None:
    def respelled(value: Any) -> Any:
        if isinstance(value, list):
            return [respelled(item) for item in value]
        if not isinstance(value, dict):
            return value
        written = {name: data.draw(st.sampled_from([name, messages.snake(name)])) for name in value}
        return {written[name]: respelled(member) for name, member in value.items()}

    plain = {
        "contents": [USER],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "toolConfig": {},
        "generationConfig": {
            "maxOutputTokens": 5,
            "responseMimeType": "application/json",
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 0},
        },
    }
    assert messages.read("GenerateContentRequest", respelled(plain)) == plain
