"""What raw answers of the service say: an answer, an error, a cache. Hostile input throughout."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ledger import canonical
from ledger.errors import CanonicalError
from phases.providers.base import Failure, Reply, details_of, line
from phases.providers.transport import Exchanged

_FINISH: Mapping[str, str] = {
    "STOP": "stop",
    "MAX_TOKENS": "cut_off",
    "RECITATION": "recitation",
    "SAFETY": "safety",
    "BLOCKLIST": "safety",
    "PROHIBITED_CONTENT": "safety",
    "SPII": "safety",
    "IMAGE_SAFETY": "safety",
}
RETRYABLE = frozenset({408, 429})

_MINIMUM = re.compile(
    r"min_total_token_count=(\d{1,9})\b|minimum token count to start caching is (\d{1,9})\b",
    re.IGNORECASE | re.ASCII,
)
_CACHE_GONE = re.compile(r"cache(d)? ?content", re.IGNORECASE)
_CALLERS_BUG = re.compile(r"system_?instruction|tool_?config|\btools\b", re.IGNORECASE)


class Problem(NamedTuple):
    """An error that the service stated: status word, message, details."""

    status: str
    message: str
    details: tuple[Mapping[str, Any], ...]


def read(body: bytes) -> Reply:
    """Return what an answer says; the finish reason first, then its text."""
    try:
        value = canonical.from_bytes(body)
    except CanonicalError as error:
        return Reply(None, "malformed", str(error)[:200])
    if not isinstance(value, dict):
        return Reply(None, "malformed", "the answer is no object")
    usage = usage_of(value)
    candidates = value.get("candidates")
    if not isinstance(candidates, list) or not candidates or not isinstance(candidates[0], dict):
        return Reply(None, *_without_candidate(value), usage)
    return _read_candidate(candidates[0], usage)


def _without_candidate(value: Mapping[str, Any]) -> tuple[str, str]:
    feedback = value.get("promptFeedback")
    if isinstance(feedback, dict) and feedback:
        return "blocked", str(feedback.get("blockReason", ""))[:200]
    return "malformed", "the answer has no candidate"


def _read_candidate(candidate: Mapping[str, Any], usage: Mapping[str, Any]) -> Reply:
    reason = candidate.get("finishReason")
    detail = f"{reason} {candidate.get('finishMessage', '')}".strip()[:200]
    texts, thoughts = _texts(candidate)
    text = "".join(texts)
    finish = _FINISH.get(reason, "malformed") if isinstance(reason, str) else "malformed"
    if finish == "stop" and not text:
        finish = "thoughts_only" if thoughts else "empty"
    return Reply(text or None, finish, detail, usage)


def _texts(candidate: Mapping[str, Any]) -> tuple[list[str], int]:
    """Return the texts of an answer, and how many of its parts are thoughts."""
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    found = [p for p in parts if isinstance(p, dict)] if isinstance(parts, list) else []
    spoken = [part for part in found if not part.get("thought")]
    texts = [part["text"] for part in spoken if isinstance(part.get("text"), str)]
    return texts, len(found) - len(spoken)


def usage_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the usage that an answer states; what it does not state is absent, not zero."""
    stated = value.get("usageMetadata")
    if not isinstance(stated, dict):
        return {}
    found = {
        "prompt": count(stated.get("promptTokenCount")),
        "cached": _cached(stated),
        "output": _answer(stated),
        "thoughts": count(stated.get("thoughtsTokenCount")),
    }
    usage: dict[str, Any] = {key: count for key, count in found.items() if count is not None}
    details = details_of(stated)
    return usage | ({"details": details} if details else {})


def _answer(stated: Mapping[str, Any]) -> int | None:
    """Return the tokens that are billed as output: the service counts thoughts apart."""
    answer = count(stated.get("candidatesTokenCount"))
    thoughts = count(stated.get("thoughtsTokenCount"))
    if answer is None and thoughts is None:
        return None
    return (answer or 0) + (thoughts or 0)


def _cached(stated: Mapping[str, Any]) -> int | None:
    """Return the cached tokens; their sum may be stated where the count is missing."""
    whole = count(stated.get("cachedContentTokenCount"))
    details = stated.get("cacheTokensDetails")
    if whole is not None or not isinstance(details, list):
        return whole
    counts = [count(item.get("tokenCount")) for item in details if isinstance(item, dict)]
    known = [part for part in counts if part is not None]
    return sum(known) if known else None


def count(value: Any) -> int | None:
    """Return a number of tokens as somebody stated it; None for what is none."""
    return value if type(value) is int and 0 <= value < 10**12 else None


def has_answer(body: bytes) -> bool:
    """Tell whether a body is an answer at all, however bad: it has candidates or a block."""
    return b'"candidates"' in body or b'"promptFeedback"' in body


def problem_of(body: bytes) -> Problem:
    """Return the error that a body states; whatever it holds, never an exception."""
    try:
        value: Any = canonical.from_bytes(body)
    except CanonicalError:
        text = " ".join(body[:2000].decode("utf-8", "replace").split())
        return Problem("", text, ())
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict):
        return Problem("", "", ())
    details = error.get("details")
    kept = [item for item in details if isinstance(item, dict)] if isinstance(details, list) else []
    return Problem(str(error.get("status") or ""), str(error.get("message", "")), tuple(kept))


def failure(exchanged: Exchanged, now: str = "") -> Failure:
    """Return the failure that an answer with another status than 200 is.

    `now` is what a date in its header is compared with; without it such a date says nothing.
    """
    status, problem = exchanged.status, problem_of(exchanged.body)
    daily = status == 429 and _is_daily(problem)
    message = problem.message or f"HTTP {status} without a message"
    return Failure(
        "quota_daily" if daily else f"http_{status}",
        line(f"{f'{status} {problem.status}'.strip()}: {message}"),
        retryable=not daily and (status in RETRYABLE or 500 <= status <= 599),
        status=status,
        retry_after_ms=_retry_after(exchanged, problem, now),
        partial=exchanged.body or None,
    )


def _is_daily(problem: Problem) -> bool:
    """A quota of a day, or one of zero, will not be back within any run."""
    for detail in problem.details:
        violations = detail.get("violations")
        for violation in violations if isinstance(violations, list) else []:
            if isinstance(violation, dict):
                name = f"{violation.get('quotaId', '')} {violation.get('quotaMetric', '')}"
                if "PerDay" in name or str(violation.get("quotaValue", "")) == "0":
                    return True
    return "limit: 0" in problem.message


def _retry_after(exchanged: Exchanged, problem: Problem, now: str) -> int | None:
    """Return how long to wait, milliseconds: of the header, else of RetryInfo."""
    asked = exchanged.retry_after_ms(now)
    if asked is not None:
        return asked
    for detail in problem.details:
        delay = re.fullmatch(r"(\d{1,6})(\.\d{1,9})?s", str(detail.get("retryDelay", "")))
        if delay:
            return round(float(delay[0][:-1]) * 1000)
    return None


def cache_lost(exchanged: Exchanged) -> str:
    """Return how a cached request lost its cache; empty if the error is about something else.

    The Developer API answers 403 for an unknown, foreign or expired one, the Agent Platform 404 or
    400. A 400 that names system text or tools is a caller's mistake.
    """
    message = problem_of(exchanged.body).message
    if exchanged.status not in (400, 403, 404) or not _names_cache(message):
        return ""
    if _CALLERS_BUG.search(message):
        return ""
    return "expired" if "expired" in message.lower() else "not_found"


def _names_cache(message: str) -> bool:
    return bool(_CACHE_GONE.search(message)) or "cachedcontent" in message.lower()


def stated_minimum(exchanged: Exchanged) -> int | None:
    """Return the smallest cache that a refusal states, in either of its two wordings."""
    message = problem_of(exchanged.body).message
    found = _MINIMUM.search(message)
    return int(found[1] or found[2]) if found else None
