"""What raw answers of chat completions servers are read as."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phases.providers.base import Reply
from phases.providers.openai_compatible.replies import failure, has_answer, models_of, read
from phases.providers.transport import Exchanged


def answer(message: Any = None, usage: Any = None, **choice: Any) -> bytes:
    said = {"role": "assistant", "content": '{"a":1}'} if message is None else message
    whole = {"choices": [{"index": 0, "finish_reason": "stop", "message": said, **choice}]}
    return json.dumps(whole if usage is None else {**whole, "usage": usage}).encode()


def test_a_normal_end_gives_the_text() -> None:
    assert read(answer()) == Reply('{"a":1}')


FINISHES = [
    (answer(finish_reason="length"), "cut_off"),
    (answer({"content": ""}, finish_reason="length"), "cut_off"),
    (answer(finish_reason="content_filter"), "safety"),
    (answer({"content": None}, finish_reason="content_filter"), "safety"),
    (answer({"content": None, "refusal": "I cannot."}), "safety"),
    (answer({"content": "x", "refusal": "I cannot."}), "safety"),
    (answer({"content": None, "tool_calls": [{}]}, finish_reason="tool_calls"), "malformed"),
    (answer(finish_reason="function_call"), "malformed"),
    (answer(finish_reason="a_new_reason"), "malformed"),
    (answer(finish_reason=None), "malformed"),
    (answer(finish_reason=["stop"]), "malformed"),
    (answer({"content": ""}), "empty"),
    (answer({"content": None}), "empty"),
    (answer({}), "empty"),
    (answer("text"), "empty"),
    (answer({"content": "", "reasoning_content": "Hm."}), "thoughts_only"),
    (answer({"content": None, "reasoning": "Hm."}), "thoughts_only"),
    (answer({"content": [{"type": "text", "text": "{}"}]}), "malformed"),
    (answer({"content": 17}), "malformed"),
    (b'{"choices":[]}', "empty"),
    (b'{"choices":[1]}', "malformed"),
    (b'{"choices":[{"finish_reason":"stop"},{"finish_reason":"stop"}]}', "malformed"),
    (b'{"choices":{}}', "malformed"),
    (b"{}", "malformed"),
    (b"[]", "malformed"),
    (b"", "malformed"),
    (b"\xff", "malformed"),
    (answer()[:-1], "malformed"),
    (answer() + b" x", "malformed"),
    (answer().replace(b'"index"', b'"message": {"content": "{}"}, "index"'), "malformed"),
    (answer().replace(b'"index": 0', b'"index": NaN'), "malformed"),
]


@pytest.mark.parametrize(("body", "finish"), FINISHES)
def test_every_other_end_has_its_kind(body: bytes, finish: str) -> None:
    reply = read(body)
    assert reply.finish == finish
    assert reply.detail or finish in ("empty", "thoughts_only", "cut_off", "safety")


def test_thoughts_beside_an_answer_are_not_part_of_it() -> None:
    for name in ("reasoning_content", "reasoning"):
        reply = read(answer({"content": "{}", name: "Hm, {"}))
        assert (reply.text, reply.finish) == ("{}", "stop")


USAGES: list[tuple[Any, dict[str, Any]]] = [
    ({}, {}),
    (None, {}),
    ("many", {}),
    ({"prompt_tokens": 0}, {"prompt": 0}),
    ({"prompt_tokens": 10, "completion_tokens": 7}, {"prompt": 10, "output": 7}),
    ({"total_tokens": 17}, {}),
    (
        {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 0}},
        {"prompt": 10, "cached": 0},
    ),
    (
        {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 8}},
        {"prompt": 10, "cached": 8},
    ),
    (
        {"completion_tokens": 7, "completion_tokens_details": {"reasoning_tokens": 5}},
        {"output": 7, "thoughts": 5},
    ),
    (
        {"completion_tokens": 7, "completion_tokens_details": {"reasoning_tokens": 0}},
        {"output": 7, "thoughts": 0},
    ),
    (
        # counted apart: more thoughts than the completion has tokens
        {"completion_tokens": 7, "completion_tokens_details": {"reasoning_tokens": 50}},
        {"output": 57, "thoughts": 50},
    ),
    (
        # counted apart: the total says so
        {
            "prompt_tokens": 10,
            "completion_tokens": 7,
            "total_tokens": 22,
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
        {"prompt": 10, "output": 12, "thoughts": 5},
    ),
    (
        {
            "prompt_tokens": True,
            "completion_tokens": 7.0,
            "total_tokens": "17",
            "prompt_tokens_details": [],
            "completion_tokens_details": {"reasoning_tokens": -1},
        },
        {},
    ),
    ({"prompt_tokens": 10**12}, {}),
]


@pytest.mark.parametrize(("stated", "usage"), USAGES)
def test_usage_is_what_was_stated_and_nothing_else(stated: Any, usage: dict[str, Any]) -> None:
    found = dict(read(answer(usage={} if stated is None else stated)).usage)
    assert found.pop("details", {}) == (stated if isinstance(stated, dict) else {})
    assert found == usage


def test_usage_is_kept_of_answers_that_did_not_end_well() -> None:
    for finish in ("length", "content_filter", "odd"):
        reply = read(answer(usage={"prompt_tokens": 3}, finish_reason=finish))
        assert reply.usage == {"prompt": 3, "details": {"prompt_tokens": 3}}


NAMES = (
    *("choices", "message", "content", "refusal", "finish_reason", "error", "code", "type"),
    *("usage", "prompt_tokens", "completion_tokens_details", "reasoning_tokens"),
    *("data", "id", "detail"),
)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(st.binary() | anything.map(lambda value: json.dumps(value).encode()))
def test_no_body_makes_reading_fail(body: bytes) -> None:
    reply = read(body)
    assert reply.finish != "stop" or reply.text
    has_answer(body)
    models_of(body)
    failure(Exchanged(400, {}, body), "2024-05-17T09:30:00.000000Z").message.encode()
