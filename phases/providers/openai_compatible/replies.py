"""What raw answers of a chat completions server say. Hostile input throughout."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ledger import canonical
from ledger.errors import CanonicalError
from phases.providers.base import Failure, Reply, details_of, line
from phases.providers.transport import Exchanged

_FINISH: Mapping[str, str] = {"stop": "stop", "length": "cut_off", "content_filter": "safety"}
"""A tool call, of which we offer none, and every other reason is `malformed`."""

_HINTS: Mapping[str, str] = {
    "cut_off": ": max_output_tokens or the server's context was used up",
    "thoughts_only": ": the model thought and did not answer",
}

_RETRYABLE = frozenset({408, 429})
_LONGEST_DETAIL = 200
_CHOICES = re.compile(rb'"choices"\s*:\s*\[')

Json = Mapping[str, Any]


def read(body: bytes) -> Reply:
    """Return what an answer says: how it ended first, then its text."""
    try:
        value = canonical.from_bytes(body)
    except CanonicalError as error:
        return Reply(None, "malformed", str(error)[:_LONGEST_DETAIL])
    if not isinstance(value, dict):
        return Reply(None, "malformed", "the answer is no object")
    usage = _usage(value.get("usage"))
    choices = value.get("choices")
    if choices == []:
        return Reply(None, "empty", "the answer has no choice", usage)
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        return Reply(None, "malformed", "`choices` is not a list of one object", usage)
    return _read_choice(choices[0], usage)


def _read_choice(choice: Json, usage: Json) -> Reply:
    message = choice.get("message")
    said = message if isinstance(message, dict) else {}
    text, refusal = said.get("content"), said.get("refusal")
    reason = choice.get("finish_reason")
    finish = _FINISH.get(reason, "malformed") if isinstance(reason, str) else "malformed"
    if finish == "stop" and refusal:
        return Reply(None, "safety", f"refused: {refusal}"[:_LONGEST_DETAIL], usage)
    if text is not None and not isinstance(text, str):
        return Reply(None, "malformed", "`content` is no text", usage)
    if finish == "stop" and not text:
        finish = "thoughts_only" if _thoughts(said) else "empty"
    detail = "" if finish == "stop" else f"finish_reason {reason}{_HINTS.get(finish, '')}"
    return Reply(text or None, finish, detail[:_LONGEST_DETAIL], usage)


def _thoughts(message: Json) -> Any:
    """Return the thoughts of a message; llama.cpp and vLLM spell the member in two ways."""
    return message.get("reasoning_content") or message.get("reasoning")


def _usage(stated: Any) -> dict[str, Any]:
    """Return the usage that an answer states; what it does not state is absent, not zero."""
    if not isinstance(stated, dict):
        return {}
    total, prompt = _count(stated, "total_tokens"), _count(stated, "prompt_tokens")
    completion = _count(stated, "completion_tokens")
    thoughts = _count(stated.get("completion_tokens_details"), "reasoning_tokens")
    output = completion
    if completion is not None and thoughts and not _contained(thoughts, completion, prompt, total):
        output = completion + thoughts
    found = {
        "prompt": prompt,
        "cached": _count(stated.get("prompt_tokens_details"), "cached_tokens"),
        "output": output,
        "thoughts": thoughts,
    }
    usage: dict[str, Any] = {name: count for name, count in found.items() if count is not None}
    details = details_of(stated)
    return usage | ({"details": details} if details else {})


def _contained(thoughts: int, completion: int, prompt: int | None, total: int | None) -> bool:
    """Tell whether the thoughts are part of the completion: so at OpenAI; some count them apart."""
    return thoughts <= completion and total != (prompt or 0) + completion + thoughts


def _count(values: Any, name: str) -> int | None:
    value = values.get(name) if isinstance(values, dict) else None
    return value if type(value) is int and 0 <= value < 10**12 else None


def has_answer(body: bytes) -> bool:
    """Tell whether a body is an answer at all, however bad: it holds a list of choices.

    Only bytes are compared: an answer is recorded before anything reads it.
    """
    return _CHOICES.search(body) is not None


class Problem(NamedTuple):
    """An error that a server stated: its words, and its code words."""

    message: str
    codes: str = ""


def problem_of(body: bytes) -> Problem:
    """Return the error that a body states; whatever it holds, never an exception."""
    try:
        value: Any = canonical.from_bytes(body)
    except CanonicalError:
        return Problem(line(body[:2000].decode("utf-8", "replace")))
    error = value.get("error", value) if isinstance(value, dict) else value
    if not isinstance(error, dict):
        return Problem(line(error if isinstance(error, str) else ""))
    codes = [error[name] for name in ("type", "code", "param") if isinstance(error.get(name), str)]
    said = next((error[name] for name in ("message", "detail", "error") if error.get(name)), "")
    return Problem(line(str(said)), line(" ".join(codes)))


def failure(exchanged: Exchanged, now: str) -> Failure:
    """Return the failure that an answer with another status than 200 is."""
    status, problem = exchanged.status, problem_of(exchanged.body)
    no_quota = status == 429 and "insufficient_quota" in problem.codes
    return Failure(
        "quota" if no_quota else f"http_{status}",
        line(f"{status}: {_words(status, problem)}"),
        retryable=not no_quota and (status in _RETRYABLE or 500 <= status <= 599),
        status=status,
        retry_after_ms=exchanged.retry_after_ms(now),
        partial=exchanged.body or None,
    )


def _words(status: int, problem: Problem) -> str:
    if 300 <= status <= 399:
        return "it redirects, which is not followed: set openai_compatible.base_url to where"
    return problem.message or "no message"


def no_answer(body: bytes) -> Failure:
    """Return the failure that a 200 without an answer is."""
    said = problem_of(body).message or "no message"
    message = line(f"200 without an answer: {said}")
    return Failure("no_answer", message, retryable=True, status=200, partial=body or None)


def models_of(body: bytes) -> list[str] | None:
    """Return the models that a server lists; None if it lists none in the usual form."""
    try:
        value = canonical.from_bytes(body)
    except CanonicalError:
        return None
    rows = value.get("data") if isinstance(value, dict) else None
    if not isinstance(rows, list):
        return None
    return [row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
