"""The local server keeps the service's rules; with `-m live` the real service is asked too.

A live run needs GEMINI_API_KEY, costs a little money, and fails where the service differs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.genai import types

from tests.gemini import rules
from tests.gemini.replies import Reply
from tests.gemini.sites import LARGE, Site, local_site, refusal, worded
from tests.gemini.state import ModelRow

FLASH = "gemini-2.5-flash"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
USER = {"role": "user", "parts": [{"text": "Say OK."}]}
MODEL = {"role": "model", "parts": [{"text": "It is"}]}
HELD = {"role": "user", "parts": [{"text": LARGE}]}
GONE = "cachedContents/0000000000000000000000000000000000000000"

# The conformance table: for each rule a request that breaks it. A live run compares the status,
# and the text where it is more than an assumption.

Broken = Callable[[Site], object]
BROKEN: dict[str, Broken] = {}
LOCAL_ONLY: dict[str, dict[str, Any]] = {  # the rule, and how the server is set for it
    "no_streaming": {},
    "prompt_too_long": {"models": {FLASH: ModelRow(input_limit=1_000)}},
    "too_small_platform": {"wording": "platform"},
    "beside_cache_platform": {"wording": "platform"},
    "cache_missing_404": {"missing_cache": "404"},
    "cache_expired_400": {"missing_cache": "400"},
}


def breaks(rule: str) -> Callable[[Broken], Broken]:
    def register(request: Broken) -> Broken:
        assert BROKEN.setdefault(rule, request) is request
        return request

    return register


def config(**members: Any) -> dict[str, Any]:
    return {"contents": [USER], "generationConfig": members}


breaks("key_missing")(lambda site: site.raw("GET", "models", **{"x-goog-api-key": ""}))
breaks("key_invalid")(lambda site: site.client(key="no-such-key").models.get(model=site.model))
breaks("no_route")(lambda site: site.raw("POST", "nothing/here", {}))
breaks("no_streaming")(lambda site: next(_stream(site)))
breaks("model_missing")(lambda site: site.generate(model="gemini-0-none"))
breaks("no_explicit_cache")(lambda site: site.cache(model=site.implicit_only))
breaks("not_json")(lambda site: site.ask(b'{"contents": [,]}'))
breaks("unknown_field")(lambda site: site.ask(config(favouriteColour="red")))
breaks("spelled_twice")(lambda site: site.ask(config(topK=1, top_k=1)))
breaks("wrong_type")(lambda site: site.ask(config(temperature="warm")))
breaks("one_of")(lambda site: site.cache(expire_time=_later()))
breaks("no_contents")(lambda site: site.ask({"contents": []}))
breaks("no_parts")(lambda site: site.ask({"contents": [{"role": "user", "parts": []}]}))
breaks("empty_part")(lambda site: site.generate(""))
breaks("bad_role")(lambda site: site.ask({"contents": [USER | {"role": "system"}]}))
breaks("ends_with_model")(
    lambda site: site.cache(contents=[types.Content(**HELD), types.Content(**MODEL)])
)
breaks("two_schemas")(
    lambda site: site.ask(
        config(
            responseMimeType="application/json", responseSchema=SCHEMA, responseJsonSchema=SCHEMA
        )
    )
)
breaks("schema_without_json")(lambda site: site.generate(response_json_schema=SCHEMA))
breaks("no_thinking_budget")(
    lambda site: site.generate(model=site.implicit_only, thinking_config={"thinking_budget": 1})
)
breaks("no_thinking_level")(lambda site: site.generate(thinking_config={"thinking_level": "HIGH"}))
breaks("budget_and_level")(
    lambda site: site.generate(
        model=site.preview, thinking_config={"thinking_level": "HIGH", "thinking_budget": 1_024}
    )
)
breaks("thinks_always")(
    lambda site: site.generate(model=site.thinks_always, thinking_config={"thinking_budget": 0})
)
breaks("no_penalty")(lambda site: site.generate(model=site.implicit_only, presence_penalty=0.5))
breaks("one_candidate")(lambda site: site.generate(model=site.implicit_only, candidate_count=2))
breaks("no_output_room")(lambda site: site.generate(max_output_tokens=0))
breaks("prompt_too_long")(lambda site: site.generate(LARGE))
breaks("no_model")(lambda site: site.raw("POST", "cachedContents", {"contents": [HELD]}))
breaks("nothing_to_cache")(lambda site: site.cache(contents=None))
breaks("long_display_name")(lambda site: site.cache(display_name="d" * 129))
breaks("bad_ttl")(lambda site: site.cache(ttl="5 minutes"))
breaks("bad_timestamp")(
    lambda site: site.cache(ttl=None, expire_time=_later().replace(tzinfo=None))
)
breaks("already_over")(
    lambda site: site.cache(ttl=None, expire_time=datetime(2020, 1, 1, tzinfo=UTC))
)
breaks("too_small_developer")(lambda site: site.cache(contents=[types.Content(**USER)]))
breaks("too_small_platform")(lambda site: site.cache(contents=[types.Content(**USER)]))
breaks("beside_cache_developer")(
    lambda site: site.generate(cached_content=site.cache().name, system_instruction="Be brief.")
)
breaks("beside_cache_platform")(
    lambda site: site.generate(cached_content=site.cache().name, tools=[{"code_execution": {}}])
)
breaks("other_model")(
    lambda site: site.generate(model=site.thinks_always, cached_content=site.cache().name)
)
breaks("bad_cache_name")(
    lambda site: site.ask({"contents": [USER], "cachedContent": "cachedContents/a b"})
)
breaks("cache_missing_403")(lambda site: site.generate(cached_content=GONE))
breaks("cache_missing_404")(lambda site: site.generate(cached_content=GONE))
breaks("only_expiry")(
    lambda site: site.raw("PATCH", str(site.cache().name), {"displayName": "another"})
)
breaks("bad_page_token")(lambda site: site.raw("GET", "cachedContents?pageToken=none"))
breaks("exclusive_count")(
    lambda site: site.raw(
        "POST",
        f"models/{site.model}:countTokens",
        {"contents": [USER], "generateContentRequest": {"contents": [USER]}},
    )
)


@breaks("cache_expired_400")
def _use_an_expired_cache(site: Site) -> object:
    name = site.cache().name
    site.server.clock.advance(301)
    return site.generate(cached_content=name)


def _later() -> datetime:
    return datetime.now(UTC) + timedelta(minutes=10)


def _stream(site: Site) -> Iterator[object]:
    return iter(site.client().models.generate_content_stream(model=site.model, contents="Hi"))


def test_every_rule_has_a_request_that_breaks_it_and_a_source() -> None:
    assert BROKEN.keys() == rules.RULES.keys()
    kinds = {rule.source.split(":")[0] for rule in rules.RULES.values()}
    assert kinds <= {"docs", "issue", "assumption"}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_request_that_breaks_a_rule_is_refused_with_its_text(rule: str) -> None:
    with local_site(**LOCAL_ONLY.get(rule, {})) as site:
        status, message = refusal(lambda: BROKEN[rule](site))
        assert site.server.log[-1].rule == rule, message
        assert site.server.log[-1].status == status == rules.RULES[rule].status
        assert worded(rule, message)
        assert not site.server.failures


@pytest.mark.live
@pytest.mark.parametrize("rule", [rule for rule in BROKEN if rule not in LOCAL_ONLY])
def test_the_real_service_refuses_the_same(rule: str, live: Site) -> None:
    status, message = refusal(lambda: BROKEN[rule](live))
    known = rules.RULES[rule]
    assert status == known.status, message
    assert "assumption" in known.source or worded(rule, message), message


def test_a_wrong_key_and_an_unknown_name_are_detailed(site: Site) -> None:
    keyed = site.raw("GET", "models", **{"x-goog-api-key": "no-such-key"}).json()["error"]
    assert "API_KEY_INVALID" in {detail.get("reason") for detail in keyed["details"]}
    (detail,) = site.ask(config(favouriteColour="red")).json()["error"]["details"]
    assert detail["fieldViolations"][0]["field"] == "generation_config"


def test_minimal_thinking_is_refused_where_a_model_lacks_it(site: Site) -> None:
    asked = {"thinking_config": {"thinking_level": "MINIMAL"}}
    assert refusal(lambda: site.generate(model=site.implicit_only, **asked))[0] == 400


# What works, at both sites.


def test_a_cached_prefix_is_counted_within_the_prompt(site: Site) -> None:
    cache = site.cache(system_instruction="Be brief.")
    spent = site.generate(cached_content=cache.name).usage_metadata
    assert spent
    assert cache.usage_metadata
    assert spent.prompt_token_count
    assert spent.cached_content_token_count == cache.usage_metadata.total_token_count
    assert spent.prompt_token_count > (spent.cached_content_token_count or 0)
    assert spent.total_token_count == spent.prompt_token_count + (
        spent.candidates_token_count or 0
    ) + (spent.thoughts_token_count or 0)


def test_a_response_schema_is_allowed_beside_a_cache(site: Site) -> None:
    if site.local:
        site.server.queue('{"a": 1}')
    said = site.generate(
        "Answer with a=1.",
        cached_content=site.cache().name,
        response_mime_type="application/json",
        response_json_schema=SCHEMA,
    )
    assert json.loads(said.text or "")["a"] == 1


def test_a_system_only_cache_is_a_cache(site: Site) -> None:
    cache = site.cache(contents=None, system_instruction=LARGE)
    assert site.generate(cached_content=cache.name).text


def test_a_cache_lives_for_an_hour_unless_told_otherwise(site: Site) -> None:
    cache = site.cache(ttl=None)
    assert cache.create_time
    assert cache.expire_time
    assert abs(cache.expire_time - cache.create_time - timedelta(hours=1)) < timedelta(seconds=2)


def test_an_expiry_can_be_moved_and_nothing_of_the_content_read_back(site: Site) -> None:
    cache = site.cache()
    moved = site.client().caches.update(name=str(cache.name), config={"ttl": "1200s"})
    assert moved.expire_time
    assert cache.expire_time
    assert moved.expire_time > cache.expire_time
    shown = site.raw("GET", str(cache.name)).json()
    assert set(shown) == {
        "name", "model", "createTime", "updateTime", "expireTime", "displayName", "usageMetadata",
    }  # fmt: skip


def test_a_deleted_cache_is_not_found_by_any_operation(site: Site) -> None:
    name, caches = str(site.cache().name), site.client().caches
    caches.delete(name=name)
    calls: list[Callable[[], object]] = [
        lambda: site.generate(cached_content=name),
        lambda: caches.get(name=name),
        lambda: caches.update(name=name, config={"ttl": "60s"}),
        lambda: caches.delete(name=name),
    ]
    for call in calls:
        assert refusal(call) == (403, rules.RULES["cache_missing_403"].text)


def test_a_list_gives_pages_of_live_caches(site: Site) -> None:
    names = {site.cache(display_name=f"page {number}").name for number in range(3)}
    listed = site.client().caches.list(config={"page_size": 2})
    assert names <= {cache.name for cache in listed}


def test_both_spellings_of_a_member_are_read(site: Site) -> None:
    body = {
        "contents": [USER],
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "generation_config": {
            "max_output_tokens": 500,
            "thinkingConfig": {"include_thoughts": True},
        },
    }
    assert site.ask(body).status_code == 200


def test_a_model_and_the_models_are_described(site: Site) -> None:
    client = site.client()
    assert "createCachedContent" in (client.models.get(model=site.model).supported_actions or [])
    assert f"models/{site.model}" in {model.name for model in client.models.list()}


def test_tokens_are_counted_without_generating(site: Site) -> None:
    counted = site.client().models.count_tokens(model=site.model, contents=LARGE)
    assert (counted.total_tokens or 0) > 2_000


def test_an_output_limit_cuts_the_answer(site: Site) -> None:
    said = site.generate(
        "Count from 1 to 500.", max_output_tokens=20, thinking_config={"thinking_budget": 0}
    )
    if site.local:
        site.server.queue(Reply(text="1, 2, 3, " * 50))
        said = site.generate("Count from 1 to 500.", max_output_tokens=20)
    assert said.candidates
    assert said.candidates[0].finish_reason == types.FinishReason.MAX_TOKENS
