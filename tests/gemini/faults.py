"""What can go wrong on purpose: {operation, predicate, skip, times, action}, first match wins.

An action may change the state before the call is handled, stand instead of handling it, change
the answer, or send it in its own way. Handling commits: what a fault drops afterwards is done.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tests.gemini.replies import HTML, Answer, laid_over
from tests.gemini.rules import Json, detail, error_body, to_json
from tests.gemini.service import CACHE_OPERATIONS, NO_PAGE, Service
from tests.gemini.state import Exchange

Edit = Callable[[Json], Json]


class Wire(Protocol):
    """A connection, as an action may use it."""

    def plain(self, answer: Answer) -> None: ...
    def head(self, answer: Answer, framing: Mapping[str, str]) -> bytes: ...
    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...
    def reset(self) -> None: ...
    def sleep(self, seconds: float) -> None: ...
    def wait_for_client(self) -> None: ...


class Action:
    """A fault's behaviour; each default is what happens without a fault."""

    @property
    def answers(self) -> bool:
        """Say whether the client gets a status line."""
        return True

    def before(self, service: Service, exchange: Exchange) -> None:
        """Change the state before the call is handled."""

    def instead(self, exchange: Exchange) -> Answer | None:
        """Return an answer that keeps the call from being handled."""
        return None

    def after(self, answer: Answer) -> Answer:
        """Return the answer, changed."""
        return answer

    def send(self, wire: Wire, answer: Answer) -> None:
        """Send the answer, or do not."""
        wire.plain(answer)


@dataclass(frozen=True)
class Instead(Action):
    """An answer that comes without the call being handled."""

    status: int
    body: bytes = b""
    content_type: str = "application/json; charset=UTF-8"
    headers: Mapping[str, str] = field(default_factory=dict)

    def instead(self, exchange: Exchange) -> Answer:
        return Answer(self.status, self.body, tuple(self.headers.items()), self.content_type)


def api_error(
    code: int,
    message: str = "Something went wrong.",
    *,
    status: str | None = None,
    details: Iterable[Json] = (),
    headers: Mapping[str, str] | None = None,
) -> Instead:
    """Return an action: the service's error document with this code and canonical status."""
    body = error_body(code, message, kind=status, details=details)
    return Instead(code, body, headers=headers or {})


def rate_limited(seconds: float = 53) -> Instead:
    """429 with RetryInfo and Retry-After (issue: python-genai#1875)."""
    quota = "GenerateRequestsPerMinutePerProjectPerModel"
    return api_error(
        429,
        f"You exceeded your current quota. Please retry in {seconds:g}s.",
        details=[quota_failure(quota, 15), detail("RetryInfo", retryDelay=f"{seconds:g}s")],
        headers={"Retry-After": f"{seconds:g}"},
    )


def daily_quota(limit: int = 0) -> Instead:
    """429 of a daily quota: waiting a minute does not help (issue: langchain-google#1445)."""
    quota = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
    return api_error(
        429,
        "You exceeded your current quota, please check your plan and billing details.\n* Quota "
        "exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests"
        f", limit: {limit}\nPlease retry in 6.81204503s.",
        details=[quota_failure(quota, limit), detail("RetryInfo", retryDelay="6s")],
    )


def storage_quota(requested: int = 116_563) -> Instead:
    """429 of cache storage (issue: RaunoT/plex-rewind#261)."""
    return api_error(
        429,
        "TotalCachedContentStorageTokensPerModelFreeTier limit exceeded for model "
        f"gemini-2.5-flash: limit=0, requested={requested}",
    )


def unavailable() -> Instead:
    """503 as the service words it when it has no capacity."""
    return api_error(503, "The model is overloaded. Please try again later.")


def quota_failure(quota: str, limit: int) -> Json:
    metric = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
    violation = {"quotaMetric": metric, "quotaId": quota, "quotaValue": str(limit)}
    return detail("QuotaFailure", violations=[violation])


@dataclass(frozen=True)
class Redirect(Action):
    """To the same path at another origin, which must never see the key."""

    url: str
    status: int = 307

    def instead(self, exchange: Exchange) -> Answer:
        return Answer(self.status, b"", (("Location", self.url + exchange.path),), HTML)


@dataclass(frozen=True)
class Bytes(Action):
    """A change of the bytes of a good answer; a refusal stays as it is."""

    change: Callable[[bytes], bytes]
    encoding: str | None = None

    def after(self, answer: Answer) -> Answer:
        if answer.status != 200:
            return answer
        headers = (("Content-Encoding", self.encoding),) if self.encoding else ()
        return answer._replace(body=self.change(answer.body), headers=answer.headers + headers)


def edited(edit: Edit) -> Bytes:
    """Return an action that changes the answer as a document, if it is one."""
    return Bytes(lambda body: to_json(edit(json.loads(body))))


def usage_edited(edit: Edit) -> Bytes:
    """Return an action that changes the usage of a reply."""
    return edited(lambda reply: reply | {"usageMetadata": edit(reply["usageMetadata"])})


def candidate_edited(**changes: object) -> Bytes:
    """Return an action that lays changes over the first candidate; None takes a member away."""
    return edited(
        lambda reply: reply | {"candidates": [laid_over(reply["candidates"][0], changes)]}
    )


@dataclass(frozen=True)
class Delay(Action):
    """Silence for some seconds before the first byte; then another action, or none."""

    seconds: float
    then: Action = field(default_factory=Action)

    @property
    def answers(self) -> bool:
        return self.then.answers

    def before(self, service: Service, exchange: Exchange) -> None:
        self.then.before(service, exchange)

    def instead(self, exchange: Exchange) -> Answer | None:
        return self.then.instead(exchange)

    def after(self, answer: Answer) -> Answer:
        return self.then.after(answer)

    def send(self, wire: Wire, answer: Answer) -> None:
        wire.sleep(self.seconds)
        self.then.send(wire, answer)


@dataclass(frozen=True)
class Drip(Action):
    """A few bytes of the body at a time."""

    size: int = 16
    every: float = 0.05  # seconds

    def send(self, wire: Wire, answer: Answer) -> None:
        wire.write(wire.head(answer, {"Content-Length": str(len(answer.body))}))
        for start in range(0, len(answer.body), self.size):
            wire.write(answer.body[start : start + self.size])
            wire.sleep(self.every)


@dataclass(frozen=True)
class Silent(Action):
    """No status line: hang, or end the connection, before or after the call is handled."""

    how: str  # hang, close, reset
    commits: bool = False

    @property
    def answers(self) -> bool:
        return False

    def instead(self, exchange: Exchange) -> Answer | None:
        return None if self.commits else Answer(0)

    def send(self, wire: Wire, answer: Answer) -> None:
        end(wire, self.how)


@dataclass(frozen=True)
class Cut(Action):
    """The reply is handled, and its body ends early.

    `framing` is "length" (Content-Length promises more), "chunked" (inside a chunk) or "close"
    (no length at all, so that the client cannot tell).
    """

    after_bytes: int = 40
    how: str = "close"
    framing: str = "length"

    def send(self, wire: Wire, answer: Answer) -> None:
        part = answer.body[: self.after_bytes]
        size = str(len(answer.body))
        framings: dict[str, Mapping[str, str]] = {
            "length": {"Content-Length": size},
            "chunked": {"Transfer-Encoding": "chunked"},
            "close": {"Connection": "close"},
        }
        start = f"{len(answer.body):x}\r\n".encode() if self.framing == "chunked" else b""
        wire.write(wire.head(answer, framings[self.framing]) + start + part)
        end(wire, self.how)


@dataclass(frozen=True)
class Stale(Action):
    """A whole reply, then an unannounced close: the client keeps a dead connection."""

    def send(self, wire: Wire, answer: Answer) -> None:
        wire.plain(answer)
        wire.close()


@dataclass(frozen=True)
class Garbage(Action):
    """Bytes that are no HTTP."""

    @property
    def answers(self) -> bool:
        return False

    def send(self, wire: Wire, answer: Answer) -> None:
        wire.write(b"\x00\x01 this is no status line\r\n\r\n")
        wire.close()


@dataclass(frozen=True)
class EndCache(Action):
    """The cache that the request names ends just before the request is handled."""

    how: str  # expired, evicted

    def before(self, service: Service, exchange: Exchange) -> None:
        cache = service.find(exchange.cache) if exchange.cache else None
        if cache:
            cache.stop(service.clock.now, self.how)


def end(wire: Wire, how: str) -> None:
    {"hang": wire.wait_for_client, "close": wire.close, "reset": wire.reset}[how]()


def _twice(body: bytes) -> bytes:
    """Write the candidates twice: the first time with none in it."""
    return body.replace(b"{", b'{\n  "candidates": [],', 1)


def _without(name: str) -> Edit:
    return lambda usage: laid_over(usage, {name: None})


def _larger(usage: Json) -> Json:
    cached = min(int(usage.get("cachedContentTokenCount", 0)) + 256, usage["promptTokenCount"])
    return usage | {"cachedContentTokenCount": cached}


def _surrogate(body: bytes) -> bytes:
    return body.replace(b'"text": "', b'"text": "\\ud83d', 1)


def _bad_utf8(body: bytes) -> bytes:
    return body.replace(b'"text": "', b'"text": "\xff\xfe', 1)


ACTIONS: dict[str, Action] = {
    # Instead of an answer.
    "html_502": Instead(502, b"<html><title>502 Server Error</title></html>", HTML),
    "empty_503": Instead(503),
    "unavailable": unavailable(),
    "rate_limited": rate_limited(),
    "daily_quota": daily_quota(),
    "storage_quota": storage_quota(),
    "no_such_path": Instead(404, NO_PAGE.body, HTML),
    "empty_200": Instead(200),
    "object_200": Instead(200, b"{}"),
    "null_200": Instead(200, b"null"),
    "list_200": Instead(200, b"[{}]"),
    "error_200": Instead(200, error_body(500, "An internal error has occurred.")),
    "html_200": Instead(200, b"<html><body>Please sign in.</body></html>", HTML),
    # A handled answer, changed.
    "truncated_json": Bytes(lambda body: body[: len(body) // 2]),
    "duplicate_keys": Bytes(_twice),
    "unknown_fields": edited(lambda reply: reply | {"someNewMember": {"a": [1, 2]}}),
    "unknown_finish": candidate_edited(finishReason="A_NEW_REASON"),
    "no_finish": candidate_edited(finishReason=None),
    "wrong_types": edited(lambda reply: reply | {"candidates": "none", "usageMetadata": [1]}),
    "bad_utf8": Bytes(_bad_utf8),
    "lone_surrogate": Bytes(_surrogate),
    "bad_gzip": Bytes(lambda body: body, "gzip"),
    "gzip": Bytes(lambda body: gzip.compress(body, mtime=0), "gzip"),
    "cached_zero": usage_edited(lambda usage: usage | {"cachedContentTokenCount": 0}),
    "cached_missing": usage_edited(_without("cachedContentTokenCount")),
    "cached_larger": usage_edited(_larger),
    "no_usage": edited(lambda reply: laid_over(reply, {"usageMetadata": None})),
    # The connection.
    "hang": Silent("hang"),
    "close": Silent("close"),
    "reset": Silent("reset"),
    "commit_then_drop": Silent("close", commits=True),
    "commit_then_reset": Silent("reset", commits=True),
    "commit_then_hang": Silent("hang", commits=True),
    "close_mid_body": Cut(),
    "reset_mid_body": Cut(how="reset"),
    "hang_mid_body": Cut(how="hang"),
    "cut_chunk": Cut(framing="chunked"),
    "cut_without_length": Cut(framing="close"),
    "garbage": Garbage(),
    "drip": Drip(size=64),
    "close_after_reply": Stale(),
    # The state.
    "expire_cache": EndCache("expired"),
    "evict_cache": EndCache("evicted"),
}


@dataclass
class Fault:
    """One entry of the list; `times` None means always."""

    operation: str
    action: Action
    label: str
    when: Callable[[Exchange], bool]
    skip: int
    times: int | None

    def fits(self, exchange: Exchange) -> bool:
        """Say whether the entry is about this request."""
        groups = {"any": True, "caches": exchange.operation in CACHE_OPERATIONS}
        return groups.get(self.operation, self.operation == exchange.operation) and self.when(
            exchange
        )

    def due(self) -> bool:
        """Count one fitting request; say whether the fault meets it."""
        if self.skip:
            self.skip -= 1
            return False
        if self.times is None:
            return True
        self.times -= 1
        return self.times >= 0


class Faults:
    """The list; requests of several threads take from it one at a time."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def add(
        self,
        *,
        operation: str = "any",
        action: str | Action,
        when: Callable[[Exchange], bool] = lambda exchange: True,
        skip: int = 0,
        times: int | None = 1,
    ) -> None:
        """Add a fault behind the others.

        `operation` is generate, count, models, create, list, get, patch, delete, "caches" for the
        last five, or "any". The first `skip` fitting requests pass, the next `times` meet it.
        """
        known = ACTIONS[action] if isinstance(action, str) else action
        label = action if isinstance(action, str) else type(action).__name__
        self._faults.append(Fault(operation, known, label, when, skip, times))

    def clear(self) -> None:
        """Forget all of them."""
        self._faults.clear()

    def take(self, exchange: Exchange) -> Action | None:
        """Return the action that this request meets, and note it in the log."""
        with self._lock:
            for fault in self._faults:
                if fault.fits(exchange) and fault.due():
                    exchange.fault = fault.label
                    return fault.action
        return None
