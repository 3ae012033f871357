"""What a raw answer says, whatever it holds: bodies as they came from the network, unasked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledger.events import UsageMeasured
from phases.providers import Reply
from phases.providers.gemini import replies
from phases.providers.prices import GEMINI, cost, measured, price_at
from phases.providers.transport import Exchanged

AT = "2026-11-30T12:00:00.000000Z"


def body(value: Any) -> bytes:
    return json.dumps(value).encode()


def read(value: Any) -> Reply:
    return replies.read(value if isinstance(value, bytes) else body(value))


def said(*parts: Any, finish: Any = "STOP", **more: Any) -> Reply:
    """Read an answer of these parts; a text stands for a part with it."""
    written = [{"text": part} if isinstance(part, str) else part for part in parts]
    candidate = {"content": {"parts": written, "role": "model"}, "finishReason": finish}
    return read({"candidates": [candidate], **more})


def usage(**stated: Any) -> dict[str, Any]:
    """Return what is read of a usage object, the object itself apart."""
    found = dict(said("{}", usageMetadata=stated).usage)
    found.pop("details", None)
    return found


# How it ended -----------------------------------------------------------------------------------

KINDS = {
    "STOP": "stop",
    "MAX_TOKENS": "cut_off",
    "RECITATION": "recitation",
    "SAFETY": "safety",
    "BLOCKLIST": "safety",
    "PROHIBITED_CONTENT": "safety",
    "SPII": "safety",
    "IMAGE_SAFETY": "safety",
    "OTHER": "malformed",
    "LANGUAGE": "malformed",
    "MALFORMED_FUNCTION_CALL": "malformed",
    "FINISH_REASON_UNSPECIFIED": "malformed",
    "CONTINUATION": "malformed",
    "stop": "malformed",
    "A_NEW_REASON": "malformed",
    "": "malformed",
}


@pytest.mark.parametrize(("reason", "finish"), KINDS.items())
def test_only_a_plain_stop_is_a_normal_end(reason: str, finish: str) -> None:
    reply = said('{"a":1}', finish=reason)
    assert (reply.finish, reply.text) == (finish, '{"a":1}')
    assert reason in reply.detail


@pytest.mark.parametrize("reason", [None, 1, True, 1.5, [], ["STOP"], {"STOP": 1}])
def test_a_finish_reason_that_is_no_text_is_no_normal_end(reason: object) -> None:
    assert said("{}", finish=reason).finish == "malformed"


def test_no_finish_reason_is_no_normal_end() -> None:
    assert read({"candidates": [{"content": {"parts": [{"text": "{}"}]}}]}).finish == "malformed"


def test_the_services_own_words_are_kept_and_bounded() -> None:
    candidate = {"finishReason": "OTHER", "finishMessage": "why " * 1_000}
    reply = read({"candidates": [candidate]})
    assert reply.detail.startswith("OTHER why why")
    assert len(reply.detail) <= 200


@pytest.mark.parametrize("reason", ["SAFETY", "PROHIBITED_CONTENT", "OTHER", 17, None])
def test_a_blocked_prompt_says_why(reason: object) -> None:
    for candidates in ({}, {"candidates": []}):
        reply = read({"promptFeedback": {"blockReason": reason}, **candidates})
        assert (reply.text, reply.finish, reply.detail) == (None, "blocked", str(reason))


def test_a_candidate_goes_before_feedback_on_the_prompt() -> None:
    assert said("{}", promptFeedback={"safetyRatings": []}).finish == "stop"


@pytest.mark.parametrize("feedback", [None, {}, [], "SAFETY", 1])
def test_no_candidate_and_no_block_is_no_answer(feedback: object) -> None:
    assert read({"promptFeedback": feedback}).finish == "malformed"


# Texts ------------------------------------------------------------------------------------------


def test_parts_are_joined_as_they_are() -> None:
    assert said('{"a":', " 1", "}\n").text == '{"a": 1}\n'


def test_thoughts_are_no_part_of_an_answer() -> None:
    reply = said({"text": "{ let me", "thought": True}, '{"a":1}', {"text": "!", "thought": True})
    assert (reply.text, reply.finish) == ('{"a":1}', "stop")


def test_thoughts_alone_are_told_from_nothing() -> None:
    assert said({"text": "hm", "thought": True}).finish == "thoughts_only"
    assert said().finish == said("").finish == said("", "").finish == "empty"


@pytest.mark.parametrize(
    "part",
    [None, 1, "text", [], {}, {"text": None}, {"text": 7}, {"text": ["{}"]}, {"functionCall": {}}],
)
def test_a_part_that_holds_no_text_adds_nothing(part: Any) -> None:
    parts = [part, {"text": "{}"}]
    candidate = {"content": {"parts": parts}, "finishReason": "STOP"}
    assert read({"candidates": [candidate]}) == Reply("{}", "stop", "STOP")


@pytest.mark.parametrize(
    "content", [None, [], "{}", 1, {}, {"parts": None}, {"parts": {}}, {"parts": "{}"}]
)
def test_content_of_another_form_is_empty(content: object) -> None:
    candidate = {"content": content, "finishReason": "STOP"}
    assert read({"candidates": [candidate]}).finish == "empty"


def test_white_space_is_text_and_left_to_who_reads_it() -> None:
    assert said("\n ").text == "\n "


def test_a_lone_surrogate_is_kept_for_the_check_of_the_answer() -> None:
    assert said("\ud83d").text == "\ud83d"


def test_only_the_first_candidate_is_read() -> None:
    first, second = (
        {"content": {"parts": [{"text": text}]}, "finishReason": "STOP"} for text in ("1", "2")
    )
    assert read({"candidates": [first, second]}).text == "1"


# Bodies -----------------------------------------------------------------------------------------

MALFORMED: dict[str, Any] = {
    "nothing": b"",
    "null": None,
    "a list of 1": [1],
    "a list of an answer": [{"candidates": [{"finishReason": "STOP"}]}],
    "a text": "candidates",
    "a number": 17,
    "true": True,
    "an empty object": {},
    "an error": {"error": {"code": 500, "message": "oops"}},
    "candidates that are null": {"candidates": None},
    "candidates that are text": {"candidates": "none"},
    "candidates that are an object": {"candidates": {"0": {}}},
    "no candidate": {"candidates": []},
    "a candidate that is null": {"candidates": [None]},
    "a candidate that is a list": {"candidates": [[]]},
    "half": b'{"candidates": [{"content": {"parts": [{"text": "{',
    "text behind": b'{"candidates": []} {}',
    "HTML": b"<html>",
    "bad UTF-8": b'{"candidates": [{"content": {"parts": [{"text": "\xff"}]}}]}',
    "UTF-16": '{"candidates": []}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"candidates": [{"finishReason": "STOP"}]}',
    "a key twice": b'{"candidates": [], "candidates": [{"finishReason": "STOP"}]}',
    "a key twice inside": b'{"candidates": [{"finishReason": "STOP", "finishReason": "SAFETY"}]}',
    "NaN": b'{"candidates": [{"finishReason": "STOP", "avgLogprobs": NaN}]}',
    "infinity": b'{"candidates": [{"finishReason": "STOP", "avgLogprobs": 1e999}]}',
    "a huge number": b'{"candidates": [{"finishReason": ' + b"9" * 5_000 + b"}]}",
    "depth": b'{"candidates": [' + b"[" * 100_000 + b"]" * 100_000 + b"]}",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_body_is_a_reply_without_text(name: str) -> None:
    reply = read(MALFORMED[name])
    assert (reply.text, reply.finish) == (None, "malformed")
    assert 0 < len(reply.detail) <= 200


def test_members_that_nobody_knows_are_let_be() -> None:
    assert said("{}", someNewMember=[{"a": 1}], modelVersion=17).finish == "stop"


# Usage ------------------------------------------------------------------------------------------


def test_usage_is_named_the_same_for_every_provider() -> None:
    assert usage(
        promptTokenCount=322_707,
        cachedContentTokenCount=322_698,
        candidatesTokenCount=282,
        thoughtsTokenCount=4_049,
        totalTokenCount=327_038,
    ) == {
        "prompt": 322_707,
        "cached": 322_698,
        "output": 282 + 4_049,
        "thoughts": 4_049,
    }


def test_what_is_not_stated_is_absent_and_not_zero() -> None:
    assert usage(promptTokenCount=10) == {"prompt": 10}
    assert usage(promptTokenCount=10, cachedContentTokenCount=0)["cached"] == 0
    assert usage() == {}
    assert said("{}").usage == {}


@pytest.mark.parametrize("stated", [None, [], "many", 17, True])
def test_usage_of_another_form_is_none(stated: object) -> None:
    assert said("{}", usageMetadata=stated).usage == {}


@pytest.mark.parametrize(
    "number", [-1, 1.5, 1.0, True, "10", None, [], {}, 10**12, 10**400, -(10**400)]
)
def test_a_count_that_is_none_is_absent(number: object) -> None:
    stated = dict.fromkeys(
        ("promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "totalTokenCount"),
        number,
    )
    assert usage(**stated) == {}


@pytest.mark.parametrize(
    ("details", "cached"),
    [
        ([{"modality": "TEXT", "tokenCount": 900}, {"modality": "AUDIO", "tokenCount": 9}], 909),
        ([{"modality": "TEXT", "tokenCount": 0}], 0),
        ([{"tokenCount": 5}, {"modality": "TEXT"}, None, 7, {"tokenCount": -1}], 5),
        ([], None),
        ([{"modality": "TEXT"}], None),
        ({}, None),
        ("900", None),
        (None, None),
    ],
)
def test_details_count_where_the_cached_count_is_missing(
    details: object, cached: int | None
) -> None:
    assert usage(promptTokenCount=1_000, cacheTokensDetails=details).get("cached") == cached


def test_a_stated_cached_count_goes_before_its_details() -> None:
    stated = usage(cachedContentTokenCount=0, cacheTokensDetails=[{"tokenCount": 900}])
    assert stated == {"cached": 0}


def test_usage_is_read_from_answers_that_are_none() -> None:
    stated = {"usageMetadata": {"promptTokenCount": 10}}
    for answer in (
        {"promptFeedback": {"blockReason": "OTHER"}},
        {"candidates": [{"finishReason": "MAX_TOKENS"}]},
    ):
        assert read({**answer, **stated}).usage["prompt"] == 10


def test_a_usage_object_is_kept_as_it_was_received_unless_it_is_none() -> None:
    stated = {"promptTokenCount": 10, "serviceTier": "standard"}
    assert said("{}", usageMetadata=stated).usage["details"] == stated
    for odd in ({"a": "x" * 5000}, {"a": "\ud83d"}):
        assert "details" not in said("{}", usageMetadata=odd).usage


@pytest.mark.parametrize("cached", [7_179, 8_000, 10**11])
def test_more_cached_than_prompt_tokens_are_no_more_than_the_prompt_costs(cached: int) -> None:
    price = price_at(GEMINI["gemini-2.5-flash"], AT)
    assert price is not None
    stated = usage(promptTokenCount=7_000, cachedContentTokenCount=cached)
    assert cost(stated, price) == 7_000 * 30_000_000 // 10**6


def test_the_cost_of_an_answer_without_a_prompt_count_is_unmeasured() -> None:
    fields = measured(usage(candidatesTokenCount=5), GEMINI["gemini-2.5-flash"], AT)
    assert fields == {"output": 5}


# Errors -----------------------------------------------------------------------------------------


def refused(value: Any, status: int = 400, **headers: str) -> Exchanged:
    written = {name.replace("_", "-"): text for name, text in headers.items()}
    return Exchanged(status, written, value if isinstance(value, bytes) else body(value))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"error": {"status": "NOT_FOUND", "message": "two\n lines"}}, "400 NOT_FOUND: two lines"),
        ([{"error": {"message": "in a list"}}], "400: in a list"),
        ({"error": {"message": "\ud83d"}}, "400: \\ud83d"),
        ({"error": {"message": 17, "status": None}}, "400: 17"),
        ({"error": {"message": "x" * 10_000}}, "400: " + "x" * 595),
        ({"error": "text"}, "400: HTTP 400 without a message"),
        ([1], "400: HTTP 400 without a message"),
        ([], "400: HTTP 400 without a message"),
        (None, "400: HTTP 400 without a message"),
        (b"", "400: HTTP 400 without a message"),
        (b"<html>\n <b>Bad</b>", "400: <html> <b>Bad</b>"),
        (b"\xff\xfe", "400: \ufffd\ufffd"),
    ],
)
def test_an_error_is_one_line_that_can_be_stored(value: Any, message: str) -> None:
    failure = replies.failure(refused(value))
    assert failure.message == message
    failure.message.encode()


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        *((status, True) for status in (408, 429, 500, 502, 503, 504, 529, 599)),
        *((status, False) for status in (201, 204, 301, 302, 307, 400, 401, 403, 404, 413, 499)),
    ],
)
def test_only_what_may_pass_is_tried_again(status: int, retryable: bool) -> None:
    failure = replies.failure(refused({}, status))
    assert (failure.kind, failure.status) == (f"http_{status}", status)
    assert failure.retryable is retryable


QUOTAS: dict[str, tuple[dict[str, Any], str]] = {
    "of a minute": ({"quotaId": "GenerateRequestsPerMinutePerProject", "quotaValue": "15"}, ""),
    "of a day": ({"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}, "quota_daily"),
    "of a day by metric": ({"quotaMetric": "x/RequestsPerDay"}, "quota_daily"),
    "of zero": ({"quotaId": "PerMinute", "quotaValue": "0"}, "quota_daily"),
    "of another form": ({"quotaId": ["PerMinute"], "quotaValue": {}}, ""),
}


@pytest.mark.parametrize("name", QUOTAS)
def test_a_quota_that_does_not_come_back_is_terminal(name: str) -> None:
    violation, kind = QUOTAS[name]
    error = {"message": "quota", "details": [None, {"violations": [7, violation]}]}
    failure = replies.failure(refused({"error": error}, 429))
    assert failure.kind == (kind or "http_429")
    assert failure.retryable == (not kind)


@pytest.mark.parametrize(
    ("header", "delay", "milliseconds"),
    [
        ("53", None, 53_000),
        ("0", "9s", 0),
        ("", "53s", 53_000),
        ("", "6.81204503s", 6_812),
        ("9" * 5_000, None, 86_400_000),
        ("٣", None, None),
        ("-1", "2s", 2_000),
        ("soon", None, None),
        ("", "soon", None),
        ("", "-1s", None),
        ("", "9" * 5_000 + "s", None),
        ("", 53, None),
        ("", {"seconds": 53}, None),
    ],
)
def test_the_wait_that_is_asked_for(header: str, delay: object, milliseconds: int | None) -> None:
    details = [{"@type": "RetryInfo", "retryDelay": delay}] if delay else []
    exchanged = refused({"error": {"details": details}}, 429, retry_after=header)
    assert replies.failure(exchanged).retry_after_ms == milliseconds


@pytest.mark.parametrize(
    ("header", "delay", "milliseconds"),
    [
        ("Mon, 30 Nov 2026 12:00:42 GMT", None, 42_000),
        ("Mon, 30 Nov 2026 12:00:42 GMT", "9s", 42_000),
        ("Mon, 30 Nov 2026 11:00:42 GMT", None, 0),
        ("Mon, 30 Nov 2098 12:00:42 GMT", None, 86_400_000),
        ("Mon, 30 Nov 2026 12:00:42 -0000", "9s", 9_000),  # it does not say where
        ("Mon, 99999999999999999999 Nov 2026 12:00:42 GMT", "9s", 9_000),
        ("Mon, 30 Nov 99999999999999999999 12:00:42 GMT", None, None),
    ],
)
def test_a_date_to_wait_for_is_compared_with_the_clock_of_the_ledger(
    header: str, delay: object, milliseconds: int | None
) -> None:
    details = [{"@type": "RetryInfo", "retryDelay": delay}] if delay else []
    exchanged = refused({"error": {"details": details}}, 429, retry_after=header)
    assert replies.failure(exchanged, AT).retry_after_ms == milliseconds
    assert replies.failure(exchanged).retry_after_ms == (9_000 if delay else None)


LOST = {
    "CachedContent not found (or permission denied)": (403, "not_found"),
    "Not found: cached content metadata for 17.": (404, "not_found"),
    "Cache content 17 is expired.": (400, "expired"),
    "The cached content has expired": (400, "expired"),
}
NOT_LOST = {
    "Tool config, tools and system instruction should not be set in the request when using "
    "cached content.": 400,
    "CachedContent can not be used with GenerateContent request setting system_instruction": 400,
    "API key not valid. Please pass a valid API key.": 400,
    "Permission denied on resource project 17.": 403,
    "models/gemini-9 is not found for API version v1": 404,
    "CachedContent storage is overloaded": 503,
    "Too many requests for cached content": 429,
    "": 403,
}


@pytest.mark.parametrize("message", LOST)
def test_a_lost_cache_is_told_by_its_words(message: str) -> None:
    status, how = LOST[message]
    assert replies.cache_lost(refused({"error": {"message": message}}, status)) == how


@pytest.mark.parametrize("message", NOT_LOST)
def test_what_is_no_lost_cache_is_not_taken_for_one(message: str) -> None:
    exchanged = refused({"error": {"message": message}}, NOT_LOST[message])
    assert replies.cache_lost(exchanged) == ""


@pytest.mark.parametrize(
    ("message", "least"),
    [
        ("Cached content is too small. total_token_count=896, min_total_token_count=1024", 1_024),
        (
            "The cached content is of 900 tokens. The minimum token count to start caching is "
            "4096.",
            4_096,
        ),
        ("min_total_token_count=" + "9" * 5_000, None),
        ("min_total_token_count=many", None),
        ("too small", None),
    ],
)
def test_the_minimum_is_learned_from_either_wording(message: str, least: int | None) -> None:
    assert replies.stated_minimum(refused({"error": {"message": message}})) == least


# Whatever comes ---------------------------------------------------------------------------------

NAMES = (
    *("candidates", "content", "parts", "text", "thought", "finishReason", "finishMessage"),
    *("promptFeedback", "blockReason", "usageMetadata", "promptTokenCount", "totalTokenCount"),
    *("cachedContentTokenCount", "cacheTokensDetails", "tokenCount", "candidatesTokenCount"),
    *("error", "message", "status", "details", "violations", "quotaId", "retryDelay"),
)
WORDS = ("STOP", "MAX_TOKENS", "SAFETY", "53s", "PerDay", "\ud83d", "cached content expired", "{}")
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**30), 10**30),
        st.floats(allow_nan=False),
        st.sampled_from(WORDS),
        st.text(max_size=8),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    ),
    max_leaves=12,
)


def holds_what_events_take(reply: Reply) -> None:
    UsageMeasured(at=AT, request="R1", attempt=1, **reply.usage)
    counts = [value for name, value in reply.usage.items() if name != "details"]
    assert all(type(count) is int and 0 <= count < 10**13 for count in counts)
    assert reply.text is None or isinstance(reply.text, str)
    assert reply.finish in set(KINDS.values()) | {"blocked", "empty", "thoughts_only"}
    assert reply.text or reply.finish != "stop"
    assert len(reply.detail) <= 200


@given(st.binary(max_size=200) | VALUES.map(body))
@example(body({"candidates": [{"finishReason": {"a": 10**4299}}]}))
@example(body({"promptFeedback": {"blockReason": "\ud800"}}))
def test_reading_never_raises(data: bytes) -> None:
    holds_what_events_take(replies.read(data))


@given(st.data())
def test_reading_an_answer_that_was_damaged_anywhere_never_raises(data: st.DataObject) -> None:
    candidate = {"content": {"parts": [{"text": "{}"}]}, "finishReason": "STOP"}
    good = body({"candidates": [candidate], "usageMetadata": {"promptTokenCount": 17}})
    at = data.draw(st.integers(0, len(good)))
    gone, new = data.draw(st.integers(0, 9)), data.draw(st.binary(max_size=4))
    holds_what_events_take(replies.read(good[:at] + new + good[at + gone :]))


@given(st.sampled_from((200, 307, 400, 403, 404, 429, 503)), VALUES, st.text(max_size=20))
def test_reading_an_error_never_raises(status: int, error: Any, header: str) -> None:
    for value in (error, {"error": error}, [{"error": error}], {"error": {"details": error}}):
        exchanged = refused(value, status, retry_after=header)
        failure = replies.failure(exchanged)
        assert failure.message == " ".join(failure.message.encode().decode().split())
        assert failure.retry_after_ms is None or 0 <= failure.retry_after_ms <= 10**9
        replies.cache_lost(exchanged)
        replies.stated_minimum(exchanged)
