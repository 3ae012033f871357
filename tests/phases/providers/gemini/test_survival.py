"""What the transport must survive: the cases that were seen in the wild, one test each.

The numbers are those of the list that they were collected in; each names where it was seen there.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

import prompts
from ledger import canonical
from ledger import events as e
from phases.providers import Failure
from phases.providers.gemini import creating, models
from phases.providers.gemini.parts import in_dialect
from phases.providers.gemini.provider import Gemini
from phases.run import Stopped
from tests.gemini.faults import (
    Action,
    Bytes,
    Delay,
    Instead,
    Wire,
    api_error,
    edited,
    rate_limited,
    storage_quota,
    unavailable,
    usage_edited,
)
from tests.gemini.replies import Answer, Reply, laid_over
from tests.gemini.rules import RULES, detail
from tests.gemini.state import Exchange, ModelRow
from tests.phases.providers.gemini.running import names_cache
from tests.phases.providers.gemini.surviving import (
    Sheet,
    Trial,
    all_closed,
    document_of,
    impatient,
    key,
    opened,
    trial,
    understood,
)
from tests.phases.scripting import copied, payload_of, reading

__all__ = ["key", "trial", "understood"]

DECIDED = "decided explicit: create"
CREATED = [DECIDED, "create", "created"]
CACHED = ["sent cached", "answered", "accepted"]
REUSED = ["decided explicit: reuse", *CACHED]
WHOLE = ["sent whole", "answered", "accepted"]
AGAIN = ["decided implicit: cache_rejected", *WHOLE]
REFUSED = ["decided implicit: rejected_before", *WHOLE]


def stopped(trial: Trial, *before: str) -> list[str]:
    return [*before, "stopped: max_requests"]


def meets(
    trial: Trial,
    action: str | Action,
    operation: str = "generate",
    *,
    times: int | None = 1,
    cached: bool = False,
    skip: int = 0,
) -> None:
    """Add a fault; with `cached` only requests that name a cache meet it."""
    when: Callable[[Any], bool] = names_cache if cached else lambda exchange: True
    trial.server.faults.add(operation=operation, action=action, when=when, times=times, skip=skip)


# 1, 2, 3: the cache expires between plan and send ----------------------------------------------


def lose_the_cache(trial: Trial, status: str) -> tuple[Any, Any]:
    """Lose the cache once, with one attempt allowed; return the rejection and the failure."""
    trial.server.missing_cache = status
    meets(trial, "expire_cache", cached=True)
    assert trial.go(requests=3, more={"run": {"attempts": 1}}).reason == "max_requests"
    rejected, failed = trial.one(e.CacheRejected), trial.one(e.RequestFailed)
    assert trial.story() == [
        *CREATED,
        "sent cached",
        f"cache rejected: {rejected.kind} {rejected.status}",
        "cache lost: rejected",
        "failed: cache_rejected",
        *AGAIN,
        *CREATED,
        *CACHED,
        "cache gone",
        "cache deleted",
        "stopped: max_requests",
    ]
    assert (failed.retryable, failed.retry_after_ms, failed.status) == (True, 0, rejected.status)
    assert trial.counts() == (2, 3)
    assert trial.waits == []
    assert len(set(trial.analyst.digests)) == 2
    return rejected, failed


def test_a_cache_that_is_gone_as_403_sends_the_full_request_in_the_same_attempt_group(
    trial: Trial,
) -> None:
    rejected, failed = lose_the_cache(trial, "403")
    assert (rejected.kind, rejected.status) == ("not_found", 403)
    assert "CachedContent not found (or permission denied)" in failed.message


def test_a_cache_that_expired_as_400_sends_the_full_request(trial: Trial) -> None:
    rejected, _ = lose_the_cache(trial, "400")
    assert (rejected.kind, rejected.status) == ("expired", 400)


def test_a_cache_that_is_gone_as_404_sends_the_full_request(trial: Trial) -> None:
    rejected, _ = lose_the_cache(trial, "404")
    assert (rejected.kind, rejected.status) == ("not_found", 404)


# 4 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wording", ["developer", "platform"])
def test_a_refusal_of_system_text_or_tools_beside_a_cache_is_no_lost_cache(
    trial: Trial, wording: str
) -> None:
    meets(trial, api_error(400, RULES[f"beside_cache_{wording}"].text), cached=True, times=None)
    assert trial.go().reason == "provider"
    assert trial.story() == [
        *CREATED,
        "sent cached",
        "failed for good: http_400",
        "cache deleted",
        "stopped: provider",
    ]
    assert trial.counts() == (1, 1)


# 5 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wording", ["developer", "platform"])
def test_a_cache_that_is_too_small_is_tried_once_and_everything_goes_out_whole(
    understood: Any, scratch: Any, key: None, wording: str
) -> None:
    row = ModelRow(min_cache_tokens=20_000, thinking="both")
    with opened(
        copied(understood, scratch / "s.case"),
        models={"gemini-3.8-flash": row},
        wording=wording,
    ) as trial:
        assert trial.go().reason == "done"
        failed = trial.one(e.CacheCreateFailed)
        assert (failed.kind, failed.status, failed.minimum_tokens) == ("too_small", 400, 20_000)
        assert trial.story()[:7] == [DECIDED, "create", "not created: too_small", *REFUSED]
        later = [d for d in trial.all(e.CacheDecided) if d.partition][2:]
        assert {(d.decision, d.reason) for d in later} == {("none", "rejected_before")}
        assert trial.counts() == (1, 8)


# 6 ----------------------------------------------------------------------------------------------


def test_the_size_of_the_prefix_decides_and_not_that_of_the_request(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = models.Capability("gemini-3", explicit=True, minimum_tokens=9_000)
    monkeypatch.setattr(models, "ROWS", (row,))
    assert trial.go().reason == "done"
    assert max(u.prompt for u in trial.all(e.UsageMeasured)) > 9_000
    decided = [d for d in trial.all(e.CacheDecided) if d.partition]
    assert {d.reason for d in decided} == {"below_minimum"}
    assert {d.basis["tokens"] < 9_000 for d in decided} == {True}
    assert trial.counts() == (0, 8)


# 7 ----------------------------------------------------------------------------------------------


def test_a_cache_of_the_system_text_alone_is_created_without_contents(trial: Trial) -> None:
    section = {"model": "gemini-2.5-flash", "cache_context_version": "instructions_v1"}
    assert trial.go(requests=2, **section).reason == "max_requests"
    (exchange,) = trial.server.exchanges("create")
    assert exchange.status == 200
    assert isinstance(exchange.json, dict)
    assert "contents" not in exchange.json
    assert trial.story() == [
        *CREATED, *CACHED, *REUSED, "cache deleted", "stopped: max_requests",
    ]  # fmt: skip


# 8 ----------------------------------------------------------------------------------------------


def test_a_cache_service_that_answers_503_too_late_costs_two_deadlines_and_no_request(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creating, "LOOK_SECONDS", 0.1)
    meets(trial, Delay(40, unavailable()), "caches", times=None)
    provider = impatient(trial.server, cache_create_seconds=0.2)
    assert trial.go(provider=provider).reason == "done"
    assert trial.story()[:15] == [
        DECIDED, "create", "perhaps created: timeout", *REFUSED,
        DECIDED, *REFUSED,
        *REFUSED[:3],
    ]  # fmt: skip
    assert trial.story().count("cache left_to_expire") == 1
    assert trial.counts() == (1, 8)
    assert trial.server.count("list") == 3  # after the creation, before the next, at the end


def test_a_cache_service_that_answers_503_is_asked_twice(trial: Trial) -> None:
    meets(trial, unavailable(), "caches", times=None)
    assert trial.go().reason == "done"
    refused = [DECIDED, "create", "not created: http_503", *REFUSED]
    assert trial.story()[:18] == [*refused, *refused, *REFUSED]
    assert trial.counts() == (2, 8)


# 9 ----------------------------------------------------------------------------------------------


def test_no_quota_for_storage_is_not_asked_for_again(trial: Trial) -> None:
    meets(trial, storage_quota(), "create", times=None)
    assert trial.go().reason == "done"
    failed = trial.one(e.CacheCreateFailed)
    assert (failed.status, failed.kind) == (429, "http_429")
    assert "TotalCachedContentStorageTokensPerModel" in failed.message
    assert trial.story()[:11] == [DECIDED, "create", "not created: http_429", *REFUSED, *REFUSED]
    assert trial.counts() == (1, 8)
    assert trial.waits == []


# 10 ---------------------------------------------------------------------------------------------


def test_the_wait_that_a_429_asks_for_is_kept(trial: Trial) -> None:
    meets(trial, rate_limited(53))
    assert trial.go(requests=2).reason == "max_requests"
    failed = trial.one(e.RequestFailed)
    assert (failed.kind, failed.retryable, failed.retry_after_ms) == ("http_429", True, 53_000)
    assert trial.waits == [53.0]
    assert trial.story() == [
        *CREATED,
        "sent cached",
        "failed: http_429",
        *REUSED,
        "cache deleted",
        "stopped: max_requests",
    ]
    assert trial.counts() == (1, 2)


def test_the_wait_of_retry_info_is_kept_where_no_header_states_one(trial: Trial) -> None:
    details = [detail("RetryInfo", retryDelay="6.812s")]
    meets(trial, api_error(503, "The model is overloaded.", details=details))
    trial.go(requests=2)
    assert trial.waits == [6.812]


def test_a_wait_beyond_the_deadline_of_the_run_ends_the_run_at_once(trial: Trial) -> None:
    meets(trial, rate_limited(53))
    assert trial.go(more={"run": {"max_seconds": 40}}).reason == "max_seconds"
    assert trial.waits == []
    assert trial.counts() == (1, 1)


# 11 ---------------------------------------------------------------------------------------------


def test_a_daily_quota_is_not_waited_for(trial: Trial) -> None:
    meets(trial, "daily_quota", times=None)
    assert trial.go().reason == "provider"
    failed = trial.one(e.RequestFailed)
    assert (failed.kind, failed.status, failed.retryable) == ("quota_daily", 429, False)
    assert trial.waits == []
    assert trial.counts() == (1, 1)


# 12 ---------------------------------------------------------------------------------------------


def test_a_cache_whose_reply_was_lost_is_found_by_its_name_and_adopted(trial: Trial) -> None:
    trial.go(requests=1)  # another run's cache, which is deleted at its end
    meets(trial, "commit_then_drop", "create")
    assert trial.go(requests=2).reason == "max_requests"
    created = trial.all(e.CacheCreated)[1]
    unknown = trial.one(e.CacheCreateUnknown)
    assert (created.adopted, created.display_name) == (True, unknown.display_name)
    assert trial.story()[len([*CREATED, *CACHED]) + 2 :] == [
        DECIDED, "create", "perhaps created: disconnected", "adopted", *CACHED, *REUSED,
        "cache deleted", "stopped: max_requests",
    ]  # fmt: skip
    assert [cache.end for cache in trial.server.caches] == ["deleted", "deleted"]
    assert trial.server.count("list") == 1


def test_a_creation_that_did_not_happen_is_looked_for_before_it_is_repeated(trial: Trial) -> None:
    meets(trial, "close", "create")
    assert trial.go(requests=2).reason == "max_requests"
    assert trial.story() == [
        DECIDED, "create", "perhaps created: disconnected", *REFUSED, *CREATED, *CACHED,
        "cache deleted", "cache left_to_expire", "stopped: max_requests",
    ]  # fmt: skip
    assert [x.operation for x in trial.server.log] == [
        "create", "list", "generate", "list", "create", "generate", "delete", "list",
    ]  # fmt: skip
    assert trial.server.leaked() == []


def test_a_lost_reply_that_nobody_can_look_up_is_never_created_twice(trial: Trial) -> None:
    meets(trial, "commit_then_drop", "create")
    meets(trial, unavailable(), "list", times=2)
    assert trial.go(requests=4).reason == "max_requests"
    assert trial.counts()[0] == 1
    assert trial.story() == [
        DECIDED, "create", "perhaps created: disconnected", *REFUSED,
        DECIDED, *REFUSED, *REFUSED, *REFUSED,
        "cache deleted", "stopped: max_requests",
    ]  # fmt: skip


def test_a_cache_of_somebody_else_under_the_same_key_is_neither_taken_nor_deleted(
    trial: Trial,
) -> None:
    stranger = Sheet()
    other = impatient(trial.server)
    trial.go(requests=1)
    document = documents(trial)[0]
    other.ask(document, stranger)
    trial.server.log.clear()
    meets(trial, "close", "create")
    trial.go(requests=2)
    (alive,) = trial.server.leaked()
    assert isinstance(stranger.events[1], e.CacheCreateRequested)
    assert alive.display_name == stranger.events[1].display_name
    other.release(stranger)


# 13, 14: usage ----------------------------------------------------------------------------------


def usage_of_a_cached_request(trial: Trial, action: str | Action) -> tuple[Any, Any]:
    meets(trial, action)
    assert trial.go(requests=1).reason == "max_requests"
    assert trial.counts() == (1, 1)
    return trial.one(e.UsageMeasured), trial.one(e.CacheSettled)


def size_of_the_cache(trial: Trial) -> int:
    tokens = trial.one(e.CacheCreated).tokens
    assert isinstance(tokens, int)
    return tokens


def test_no_cached_tokens_are_a_measured_zero(trial: Trial) -> None:
    usage, settled = usage_of_a_cached_request(trial, "cached_zero")
    assert usage.cached == 0
    assert (settled.reads, settled.cached_tokens) == (1, 0)
    assert settled.saved_nano_usd < 0


def test_the_details_count_where_the_cached_tokens_are_missing(trial: Trial) -> None:
    usage, settled = usage_of_a_cached_request(trial, "cached_missing")
    assert usage.cached == settled.cached_tokens == size_of_the_cache(trial)


def test_cached_tokens_that_nobody_states_are_unmeasured_and_not_zero(trial: Trial) -> None:
    silent = usage_edited(
        lambda usage: laid_over(
            usage, {"cachedContentTokenCount": None, "cacheTokensDetails": None}
        )
    )
    usage, settled = usage_of_a_cached_request(trial, silent)
    assert usage.cached is None
    assert usage.prompt > size_of_the_cache(trial)
    assert (settled.reads, settled.cached_tokens) == (0, None)
    assert settled.basis["unmeasured_reads"] == 1


def test_an_answer_without_usage_costs_something_unmeasured(trial: Trial) -> None:
    meets(trial, "no_usage")
    trial.go(requests=1)
    assert trial.all(e.UsageMeasured) == []
    assert trial.one(e.CacheSettled).basis["unmeasured_reads"] == 1


def test_cached_tokens_beyond_the_cache_are_the_services_own(trial: Trial) -> None:
    usage, settled = usage_of_a_cached_request(trial, "cached_larger")
    size = size_of_the_cache(trial)
    assert usage.cached == size + 256
    assert settled.basis["implicit_tokens"] == 256
    price = settled.basis["price"]
    creation = -(-size * price["input"] // 10**6)
    assert settled.saved_nano_usd == (
        size * (price["input"] - price["cached"]) // 10**6 - creation - settled.storage_nano_usd
    )


# 15, 16: answers that were cut off --------------------------------------------------------------


def ends_the_run(trial: Trial, said: Any, finish: str, **section: Any) -> e.ResponseRejected:
    """Say this instead of an answer; hold that it is given up, and return its rejection."""
    trial.analyst.instead.append(said)
    assert trial.go(**section) == Stopped("needs_attention", "not_correctable")
    assert trial.story()[-5:] == [
        "answered",
        "rejected for good: finish",
        "abandoned: not_correctable",
        "cache deleted",
        "stopped: needs_attention",
    ]
    rejected: e.ResponseRejected = trial.one(e.ResponseRejected)
    assert [problem.code for problem in rejected.problems] == [finish]
    assert rejected.answer is None
    return rejected


def test_an_answer_that_thoughts_left_no_room_for_is_given_up(trial: Trial) -> None:
    ends_the_run(trial, Reply("{}", thoughts=99_999), "cut_off")
    usage = trial.one(e.UsageMeasured)
    assert (usage.output, usage.thoughts) == (16_384, 16_384)


def test_half_an_answer_is_never_fed_back(trial: Trial) -> None:
    half = '{"assessments":[{"hypothesis":"H1","notes":"a-half-answer-'
    ends_the_run(trial, Reply(half, finish="MAX_TOKENS"), "cut_off")
    trial.go(requests=1)
    assert trial.counts()[1] == 2
    assert not any(b"half-answer" in body for body in trial.server.bodies("generate"))
    assert trial.all(e.RequestPrepared)[-1].corrects == ""


@pytest.mark.parametrize("repeated", [" ", "la", "7"])
def test_an_answer_that_repeats_itself_to_the_limit_is_given_up(
    trial: Trial, repeated: str
) -> None:
    ends_the_run(
        trial, Reply('{"assessments":' + repeated * 50_000), "cut_off", max_output_tokens=2_000
    )
    assert not any(repeated * 1_000 in body.decode() for body in trial.server.bodies("generate"))


# 17 ---------------------------------------------------------------------------------------------


def test_thoughts_beside_the_answer_are_not_part_of_it(trial: Trial) -> None:
    trial.analyst.instead.append(
        lambda good: Reply(
            parts=[{"text": "Let me think: {", "thought": True}, {"text": good}], thoughts=9
        )
    )
    assert trial.go(requests=1).reason == "max_requests"
    assert trial.story() == [*CREATED, *CACHED, "cache deleted", "stopped: max_requests"]
    assert trial.one(e.UsageMeasured).thoughts == 9


def corrected(trial: Trial, said: Any, **answer: Any) -> e.ResponseRejected:
    """Say this instead of an answer; hold that one correction follows and is accepted."""
    trial.analyst.instead.append(said)
    assert trial.go(requests=2).reason == "max_requests"
    assert trial.story() == [
        *CREATED,
        "sent cached",
        "answered",
        "rejected: format",
        *REUSED,
        "cache deleted",
        "stopped: max_requests",
    ]
    assert trial.counts() == (1, 2)
    first, second = trial.all(e.RequestPrepared)
    assert second.corrects == first.request
    assert second.context == first.context
    rejected: e.ResponseRejected = trial.one(e.ResponseRejected)
    return rejected


def test_thoughts_that_leaked_into_the_answer_are_corrected(trial: Trial) -> None:
    rejected = corrected(trial, lambda good: f"Let me look at the cart first. {good}")
    assert [problem.code for problem in rejected.problems] == ["not_json"]


# 18 ---------------------------------------------------------------------------------------------

WITHOUT_TEXT: dict[str, tuple[Reply, str]] = {
    "a stop without text": (Reply(""), "empty"),
    "a stop without parts": (Reply(parts=[]), "empty"),
    "thoughts only": (Reply(parts=[{"text": "hm", "thought": True}]), "thoughts_only"),
    "recitation": (
        Reply(
            finish="RECITATION",
            candidate={"citationMetadata": {"citationSources": [{"uri": "https://e.example"}]}},
        ),
        "recitation",
    ),
    "safety": (Reply(finish="SAFETY"), "safety"),
    "a blocked prompt": (Reply(block="PROHIBITED_CONTENT"), "blocked"),
    "a finish that nobody knows": (Reply("{}", finish="A_NEW_REASON"), "malformed"),
    "no finish at all": (Reply("{}", finish=None), "malformed"),
}


@pytest.mark.parametrize("name", WITHOUT_TEXT)
def test_an_end_without_an_answer_is_a_rejection_of_its_kind(trial: Trial, name: str) -> None:
    reply, finish = WITHOUT_TEXT[name]
    ends_the_run(trial, reply, finish)
    assert trial.counts() == (1, 1)
    assert trial.all(e.UsageMeasured)


# 19 ---------------------------------------------------------------------------------------------


def test_an_answer_in_a_fence_is_corrected(trial: Trial) -> None:
    corrected(trial, lambda good: f"```json\n{good}\n```")


def test_an_answer_with_a_key_twice_is_corrected(trial: Trial) -> None:
    corrected(trial, lambda good: '{"assessments":[],' + good[1:])


def test_parts_of_a_text_are_one_answer(trial: Trial) -> None:
    trial.analyst.instead.append(
        lambda good: Reply(parts=[{"text": good[:99]}, {"text": good[99:]}])
    )
    trial.go(requests=1)
    assert trial.story() == [*CREATED, *CACHED, "cache deleted", "stopped: max_requests"]


def test_a_body_with_a_key_twice_is_not_read_at_all(trial: Trial) -> None:
    meets(trial, "duplicate_keys")
    assert trial.go() == Stopped("needs_attention", "not_correctable")
    assert trial.one(e.ResponseRejected).problems[0].code == "malformed"


# 20 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", prompts.protocols())
def test_every_output_schema_reaches_the_service_in_its_dialect(
    trial: Trial, protocol: str
) -> None:
    card = prompts.card(protocol)
    provider = impatient(trial.server, cache_mode="off")
    trial.server.responder = lambda request: "{}"
    provider.ask(document_of(protocol), Sheet())
    (exchange,) = trial.server.exchanges("generate")
    assert exchange.status == 200
    assert isinstance(exchange.json, dict)
    sent = exchange.json["generationConfig"]["responseJsonSchema"]
    assert canonical.same(sent, in_dialect(prompts.schema(card.schema)))
    assert list(siblings(sent)) == []


def test_a_recursive_schema_arrives_as_it_is(trial: Trial) -> None:
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/node"}, "more": {"type": "object"}},
        "additionalProperties": False,
    }
    schema = {"$defs": {"node": node}, "anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}
    trial.server.responder = lambda request: "{}"
    impatient(trial.server).ask(document_of("hypotheses_v3", schema=schema), Sheet())
    (exchange,) = trial.server.exchanges("generate")
    assert isinstance(exchange.json, dict)
    assert exchange.json["generationConfig"]["responseJsonSchema"] == schema


def siblings(schema: Any) -> Any:
    """Yield what stands beside a reference, where nothing may."""
    if isinstance(schema, dict):
        if "$ref" in schema and len(schema) > 1:
            yield schema
        for value in schema.values():
            yield from siblings(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from siblings(value)


# 21 ---------------------------------------------------------------------------------------------


def test_a_connection_that_the_server_closed_while_idle_costs_no_attempt(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    def later(self: Gemini, document: bytes, sending: Any) -> Any:
        all_closed(trial.server)
        return ask(self, document, sending)

    ask = Gemini.ask
    monkeypatch.setattr(Gemini, "ask", later)
    meets(trial, "close_after_reply", times=None)
    assert trial.go(requests=3).reason == "max_requests"
    assert trial.all(e.RequestFailed) == []
    assert trial.counts() == (1, 3)


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ("close", "disconnected"),
        ("commit_then_drop", "disconnected"),
        ("close_mid_body", "disconnected"),
        ("cut_chunk", "disconnected"),
        ("garbage", "disconnected"),
        ("reset", "reset"),
        ("reset_mid_body", "reset"),
        ("bad_gzip", "undecodable"),
    ],
)
def test_a_connection_that_breaks_is_tried_again(trial: Trial, action: str, kind: str) -> None:
    meets(trial, action)
    assert trial.go(requests=2).reason == "max_requests"
    assert trial.one(e.RequestFailed).kind == kind
    assert trial.story() == [
        *CREATED,
        "sent cached",
        f"failed: {kind}",
        *REUSED,
        "cache deleted",
        "stopped: max_requests",
    ]
    assert trial.waits == [1.0]
    assert trial.counts() == (1, 2)


# 22 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["hang", "hang_mid_body"])
def test_a_server_that_hangs_is_left_at_the_deadline_and_tried_again(
    trial: Trial, action: str
) -> None:
    meets(trial, action)
    provider = impatient(trial.server, timeout_seconds=0.7)
    assert trial.go(requests=2, provider=provider).reason == "max_requests"
    failed = trial.one(e.RequestFailed)
    assert (failed.kind, failed.retryable) == ("timeout", True)
    assert (failed.partial is not None) == (action == "hang_mid_body")
    assert trial.counts() == (1, 2)


# 23 ---------------------------------------------------------------------------------------------


def test_a_model_that_the_api_version_does_not_have_is_not_asked_for_again(trial: Trial) -> None:
    section = {"model": "gemini-3.1-pro-preview", "api_version": "v1"}
    assert trial.go(**section).reason == "provider"
    created, failed = trial.one(e.CacheCreateFailed), trial.one(e.RequestFailed)
    assert (created.status, failed.status, failed.retryable) == (404, 404, False)
    assert "is not found for API version v1" in failed.message
    assert trial.all(e.CacheRejected) == []
    assert trial.counts() == (1, 1)


# 24 ---------------------------------------------------------------------------------------------


def test_a_member_that_the_service_does_not_know_is_a_mistake_of_ours(trial: Trial) -> None:
    violation = {"field": "generation_config", "description": 'Unknown name "x": Cannot find field'}
    details = [detail("BadRequest", fieldViolations=[violation])]
    message = 'Invalid JSON payload received. Unknown name "x": Cannot find field.'
    meets(trial, api_error(400, message, details=details), times=None)
    assert trial.go().reason == "provider"
    failed = trial.one(e.RequestFailed)
    assert (failed.kind, failed.retryable) == ("http_400", False)
    assert 'Unknown name "x"' in failed.message
    assert payload_of(trial.path, failed.partial.digest)["error"]["details"] == details
    assert trial.counts() == (1, 1)


def test_an_invalid_key_hands_the_request_to_the_next_provider(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "no-key-of-this-server")
    assert trial.go("gemini", "offline", requests=2).reason == "max_requests"
    failed, over = trial.one(e.RequestFailed), trial.one(e.ProviderFailedOver)
    assert (failed.status, failed.retryable) == (400, False)
    assert "API key not valid" in failed.message
    assert over.detail == "terminal: http_400"
    sent = trial.all(e.RequestSent)
    assert sent[0].document == sent[1].document
    assert [s.provider for s in sent] == ["gemini", "offline"]
    assert trial.counts() == (1, 1)


# Workers ----------------------------------------------------------------------------------------


def documents(trial: Trial) -> list[bytes]:
    """Return the archived documents of the requests that were prepared in this trial."""
    with reading(trial.path) as book:
        return [book.payload(p.document.digest) for p in trial.all(e.RequestPrepared)]


def at_once(*calls: Callable[[], object]) -> list[Any]:
    """Return what calls in threads of their own returned, or the failures they ended in."""
    results: list[Any] = [None] * len(calls)

    def run(index: int) -> None:
        try:
            results[index] = calls[index]()
        except Failure as failure:
            results[index] = failure

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return results


@pytest.fixture
def shared(trial: Trial) -> tuple[Gemini, bytes]:
    """Return a provider that holds a cache, and a document that uses it."""
    trial.go(requests=1)
    (document,) = documents(trial)
    provider = impatient(trial.server)
    provider.ask(document, Sheet())
    return provider, document


def test_two_workers_that_share_a_dead_handle_lose_it_once_and_make_one_new_cache(
    trial: Trial, shared: tuple[Gemini, bytes]
) -> None:
    provider, document = shared
    before = trial.counts()
    meets(trial, "evict_cache", cached=True)
    both = threading.Barrier(2, timeout=10)
    sheets = [Sheet(name, both.wait) for name in ("R2", "R3")]
    results = at_once(*(lambda sheet=s: provider.ask(document, sheet) for s in sheets))
    assert [failure.kind for failure in results] == ["cache_rejected"] * 2
    assert sorted(line for sheet in sheets for line in sheet.story()) == [
        "cache lost: rejected",
        *["cache rejected: not_found 403"] * 2,
        *["decided explicit: reuse"] * 2,
    ]
    whole = at_once(*(lambda sheet=s: provider.ask(document, sheet) for s in sheets))
    assert [answer.status for answer in whole] == [200, 200]
    assert [sheet.sent[-1][1] for sheet in sheets] == ["", ""]

    later = [Sheet(name, both.wait) for name in ("R4", "R5")]
    answers = at_once(*(lambda sheet=s: provider.ask(document, sheet) for s in later))
    assert [answer.status for answer in answers] == [200, 200]
    assert sorted(line for sheet in later for line in sheet.story()) == sorted(
        ["create", "created", DECIDED, sheets_reason(later)]
    )
    assert trial.counts() == (before[0] + 1, before[1] + 6)
    provider.release(Sheet())
    assert trial.server.leaked() == []
    assert len(set(trial.analyst.digests)) == 1


def sheets_reason(sheets: list[Sheet]) -> str:
    """Return how the one decided that did not create: it may have looked before or after."""
    (line,) = [s.story()[0] for s in sheets if "create" not in s.story()]
    assert line in (DECIDED, "decided explicit: reuse")
    return line


class Held(Action):
    """A refusal that is sent when it may be."""

    def __init__(self, refusal: Instead) -> None:
        self.refusal = refusal
        self.arrived, self.may_leave = threading.Event(), threading.Event()

    def instead(self, exchange: Exchange) -> Answer:
        return self.refusal.instead(exchange)

    def send(self, wire: Wire, answer: Answer) -> None:
        self.arrived.set()
        assert self.may_leave.wait(10)
        wire.plain(answer)


def test_a_late_rejection_does_not_take_the_new_handle_away(
    trial: Trial, shared: tuple[Gemini, bytes]
) -> None:
    provider, document = shared
    gone = api_error(403, RULES["cache_missing_403"].text)
    held = Held(gone)
    slow, quick = Sheet("R2"), Sheet("R3")
    meets(trial, held, cached=True)
    meets(trial, gone, cached=True)

    def meanwhile() -> object:
        assert held.arrived.wait(10)
        with pytest.raises(Failure, match="not found"):
            provider.ask(document, quick)
        answer = provider.ask(document, Sheet("R4"))
        held.may_leave.set()
        return answer

    late, new = at_once(lambda: provider.ask(document, slow), meanwhile)
    assert (late.kind, new.status) == ("cache_rejected", 200)
    assert quick.story()[1:] == ["cache rejected: not_found 403", "cache lost: rejected"]
    assert slow.story()[1:] == ["cache rejected: not_found 403"]
    last = Sheet("R5")
    provider.ask(document, last)
    assert last.story() == ["decided explicit: reuse"]
    assert trial.counts()[0] == 3
    provider.release(Sheet())


def test_many_workers_on_one_provider_get_their_own_records_and_answers(
    trial: Trial, shared: tuple[Gemini, bytes]
) -> None:
    provider, document = shared
    together = threading.Barrier(8, timeout=10)
    sheets = [Sheet(f"R{number}", together.wait) for number in range(10, 18)]
    trial.server.responder = lambda request: request.contents[-1]["parts"][0]["text"]

    def work(sheet: Sheet) -> str | None:
        value = canonical.from_bytes(document)
        value["messages"].append({"role": "user", "content": {"correction": sheet.request}})
        return provider.read(provider.ask(canonical.to_bytes(value), sheet).body).text

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # what can get mixed up, gets mixed up
    try:
        answers = at_once(*(lambda s=sheet: work(s) for sheet in sheets))
    finally:
        sys.setswitchinterval(interval)
    for sheet, answer in zip(sheets, answers, strict=True):
        assert answer == canonical.to_bytes({"correction": sheet.request}).decode()
        ((wire, _),) = sheet.sent
        assert wire
        assert json.loads(wire)["contents"][-1]["parts"] == [{"text": answer}]
    provider.release(Sheet())


# A handle is text from the network --------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "cachedContents/../models",
        "cachedContents/a?key=b",
        "cachedContents/a/b",
        "cachedContents/",
        "cachedContents/%2e%2e",
        "cachedContents/ab\n",
        "cachedContents/a\u0000",
        "https://elsewhere.example/cachedContents/a",
        "cachedContents/" + "a" * 200,
        "CachedContents/a",
        "",
        17,
        None,
    ],
)
def test_a_handle_that_is_none_never_gets_into_an_address(trial: Trial, name: Any) -> None:
    meets(trial, edited(lambda reply: reply | {"name": name}), "create")
    meets(
        trial,
        edited(lambda page: {"cachedContents": [c | {"name": name} for c in items(page)]}),
        "list",
        times=None,
    )
    assert trial.go(requests=1).reason == "max_requests"
    assert trial.story() == [
        DECIDED,
        "create",
        "perhaps created: no_handle",
        *REFUSED,
        "cache left_to_expire",
        "stopped: max_requests",
    ]
    assert trial.server.count("delete") == 0
    assert {x.path.partition("?")[0] for x in trial.server.log} == {
        "/v1beta/cachedContents",
        "/v1beta/models/gemini-3.8-flash:generateContent",
    }


def escaped(edit: Callable[[Any], Any]) -> Action:
    """Change a reply and write it in ASCII: a lone surrogate arrives as its escape."""
    return Bytes(lambda body: json.dumps(edit(json.loads(body))).encode())


def items(page: Any) -> list[Any]:
    found: list[Any] = page.get("cachedContents", [])
    return found


HOSTILE_REPLIES: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda body: b"",
    "null": lambda body: b"null",
    "a list": lambda body: b"[" + body + b"]",
    "half": lambda body: body[: len(body) // 2],
    "bad UTF-8": lambda body: body.replace(b'"displayName": "', b'"displayName": "\xff'),
    "key twice": lambda body: body.replace(b"{", b'{"name": "cachedContents/b",', 1),
}


@pytest.mark.parametrize("name", HOSTILE_REPLIES)
def test_a_reply_that_names_no_cache_is_looked_for(trial: Trial, name: str) -> None:
    meets(trial, Bytes(HOSTILE_REPLIES[name]), "create")
    assert trial.go(requests=1).reason == "max_requests"
    assert trial.story() == [
        DECIDED, "create", "perhaps created: no_handle", "adopted", *CACHED,
        "cache deleted", "stopped: max_requests",
    ]  # fmt: skip


HOSTILE_MEMBERS: dict[str, dict[str, Any]] = {
    "times that are none": {"createTime": 17, "expireTime": ["x"]},
    "times without zones": {"createTime": "2026-11-30T12:00:00"},
    "a time with a surrogate": {"expireTime": "\ud800"},
    "a long time": {"expireTime": "9" * 100_000},
    "years": {"expireTime": "9999-12-31T23:59:59-23:59"},
    "huge tokens": {"usageMetadata": {"totalTokenCount": 10**400}},
    "negative tokens": {"usageMetadata": {"totalTokenCount": -1}},
    "tokens that are true": {"usageMetadata": {"totalTokenCount": True}},
    "no usage": {"usageMetadata": []},
}


@pytest.mark.parametrize("name", HOSTILE_MEMBERS)
def test_odd_members_of_a_new_cache_do_no_harm(trial: Trial, name: str) -> None:
    odd = HOSTILE_MEMBERS[name]
    meets(trial, escaped(lambda reply: reply | odd), "create")
    assert trial.go(requests=2).reason == "max_requests"
    created = trial.one(e.CacheCreated)
    assert created.tokens is None or created.tokens < 10_000
    assert len(created.expires_at) <= 40
    assert trial.story() == [
        *CREATED, *CACHED, *REUSED, "cache deleted", "stopped: max_requests",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "token", ["\ud800", "a b", "\n", "x" * 10_000, 17, ["a"], {"b": 1}, True], ids=repr
)
def test_an_odd_page_token_ends_the_look(trial: Trial, token: Any) -> None:
    meets(trial, "close", "create")
    meets(trial, escaped(lambda page: {"nextPageToken": token}), "list", times=None)
    assert trial.go(requests=1).reason == "max_requests"
    assert trial.story() == [
        DECIDED, "create", "perhaps created: disconnected", *REFUSED,
        "cache left_to_expire", "stopped: max_requests",
    ]  # fmt: skip
    assert trial.server.count("list") == 2


def test_a_list_without_an_end_is_left_after_some_pages(trial: Trial) -> None:
    meets(trial, "commit_then_drop", "create")
    meets(trial, Instead(200, b'{"nextPageToken": "more"}'), "list", times=None)
    assert trial.go(requests=1).reason == "max_requests"
    assert trial.server.count("list") == 2 * creating.LIST_PAGES
    pages = trial.server.exchanges("list")
    assert all(second.path.endswith("pageToken=more") for _, second in pairwise(pages[:20]))
