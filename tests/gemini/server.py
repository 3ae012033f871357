"""A local Gemini server: real HTTP on loopback, for the real client; test support only.

It does not stream. A reply goes out in one write, without Nagle's delay.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlsplit

from tests.gemini.faults import Action, Faults
from tests.gemini.listening import Listener as _Listener
from tests.gemini.replies import Answer, Reply, Tokens
from tests.gemini.rules import error_body
from tests.gemini.service import ROUTES, Call, Responder, Service
from tests.gemini.state import (
    CATALOGUE,
    Cache,
    Clock,
    Exchange,
    ModelRow,
    Prompts,
    count_tokens,
)

PATH = re.compile(r"(?:/.*)?/(?P<version>v1|v1beta)/(?P<rest>.+)")  # any prefix, as of a proxy
KEYS = ("local-gemini-key-one", "local-gemini-key-two")


class GeminiServer:
    """The server as tests use it: `with GeminiServer() as server: …`."""

    def __init__(
        self,
        models: Mapping[str, ModelRow] | None = None,
        *,
        missing_cache: str = "403",
        wording: str = "developer",
        implicit: str | int = "off",
        tokens: Tokens = count_tokens,
        now: datetime | None = None,
        early_expiry: float = 0.4,
        keys: tuple[str, ...] = KEYS,
    ) -> None:
        """Prepare a server; `models` are laid over the default catalogue.

        `missing_cache` is "403" (developer service), "404", or "400" (Agent Platform: expired
        caches get a 400, others a 404). `wording` is "developer" or "platform", for texts that
        differ. `implicit` is "off", "ideal", or how many hits each model and key miss first.
        `early_expiry` is how many seconds before the stated time a cache ends (issue: cookbook).
        """
        self.faults = Faults()
        self.log: list[Exchange] = []
        self.failures: list[BaseException] = []
        self.keys = keys
        self._service = Service(
            models=CATALOGUE | dict(models or {}),
            keys=keys,
            clock=Clock(now),
            prompts=Prompts(implicit),
            missing_cache=missing_cache,
            wording=wording,
            early_expiry=timedelta(seconds=early_expiry),
            tokens=tokens,
        )

    def __enter__(self) -> Self:
        self._listener = _Listener(self)
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop; an error inside the server or its responder is raised here, not swallowed."""
        self._listener.stop()
        self._thread.join()
        if self.failures and error is None:
            raise self.failures[0]

    # What a client needs.

    @property
    def url(self) -> str:
        """The base URL, without a version."""
        host, port = self._listener.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def key(self) -> str:
        """A key that is accepted."""
        return self.keys[0]

    @property
    def other_key(self) -> str:
        """Another key that is accepted; it owns other caches."""
        return self.keys[1]

    # What a test sets.

    @property
    def clock(self) -> Clock:
        return self._service.clock

    @property
    def models(self) -> Mapping[str, ModelRow]:
        return self._service.models

    @property
    def responder(self) -> Responder:
        """What answers a generate request when nothing is queued."""
        return self._service.responder

    @responder.setter
    def responder(self, responder: Responder) -> None:
        self._service.responder = responder

    @property
    def missing_cache(self) -> str:
        return self._service.missing_cache

    @missing_cache.setter
    def missing_cache(self, status: str) -> None:
        self._service.missing_cache = status

    def queue(self, *replies: Reply | str) -> None:
        """Add replies that are taken before the responder is asked."""
        self._service.queued += [Reply(text=r) if isinstance(r, str) else r for r in replies]

    # What a test asks.

    @property
    def caches(self) -> list[Cache]:
        """All caches, live and ended, in the order of their creation."""
        with self._service.lock:
            self._service.settle()
            return list(self._service.caches)

    def leaked(self) -> list[Cache]:
        """Return the caches that are alive at this moment."""
        return [cache for cache in self.caches if cache.ended is None]

    def exchanges(self, operation: str) -> list[Exchange]:
        """Return the requests of one operation, in the order of their arrival."""
        return [exchange for exchange in self.log if exchange.operation == operation]

    def count(self, operation: str) -> int:
        """Return how many requests of one operation arrived."""
        return len(self.exchanges(operation))

    def bodies(self, operation: str) -> list[bytes]:
        """Return the bodies of one operation's requests, as they arrived."""
        return [exchange.body for exchange in self.exchanges(operation)]

    def problems(self) -> list[str]:
        """Return what no client should have done: mixed cache and system, or written its key."""
        found = []
        for exchange in self.log:
            sent = exchange.json if isinstance(exchange.json, dict) else {}
            if sent.get("cachedContent") and sent.get("systemInstruction"):
                found.append(f"request {exchange.number} has a cache and a system instruction")
            if any(key.encode() in exchange.body for key in self.keys):
                found.append(f"request {exchange.number} has a key in its body")
        return found

    # What the listener calls.

    def receive(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Call:
        """Log a request and find its operation."""
        parts = urlsplit(path)
        version, rest = "", ""
        if found := PATH.fullmatch(parts.path):
            version, rest = found["version"], found["rest"]
        operation, name = _operation(method, rest)
        exchange = Exchange(0, method, path, operation, headers, body, _loose(body))
        exchange.cache = _cache_named(operation, name, exchange.json)
        with self._service.lock:
            self.log.append(exchange)
            exchange.number = len(self.log)
        return Call(operation, version, name, dict(parse_qsl(parts.query)), exchange)

    def handle(self, call: Call) -> tuple[Action, Answer]:
        """Return a request's answer and how it is to be sent."""
        action = self.faults.take(call.exchange) or Action()
        with self._service.lock:
            action.before(self._service, call.exchange)
        answer = action.instead(call.exchange)
        if answer is None:
            answer = action.after(self._answer(call))
        call.exchange.reply = answer.body
        call.exchange.status = answer.status if action.answers else None
        return action, answer

    def _answer(self, call: Call) -> Answer:
        try:
            return self._service.answer(call)
        except Exception as error:  # kept, and raised when the server stops
            self.failures.append(error)
            return Answer(500, error_body(500, f"The local server failed: {error!r}"))


def _operation(method: str, rest: str) -> tuple[str, str]:
    for route in ROUTES:
        if route.method == method and (found := route.path.fullmatch(rest)):
            return route.operation, found.groupdict().get("name") or ""
    return "none", ""


def _loose(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _cache_named(operation: str, name: str, sent: object) -> str | None:
    if operation in {"get", "patch", "delete"}:
        return f"cachedContents/{name}"
    named = (
        sent.get("cachedContent", sent.get("cached_content")) if isinstance(sent, dict) else None
    )
    return named if isinstance(named, str) else None
