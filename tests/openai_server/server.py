"""A local chat completions server: real HTTP on loopback, for the real client; test support only.

Sockets, faults and their actions are those of the local Gemini server; what differs is what is
said over them. It does not stream. A reply goes out in one write, without Nagle's delay.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from tests.gemini.faults import Action, Faults
from tests.gemini.replies import Answer
from tests.gemini.server import _Listener as Listener
from tests.gemini.state import Exchange
from tests.openai_server.completions import (
    QUIRKS,
    Asked,
    Completion,
    Json,
    Prompts,
    completion,
    error,
)

Responder = Callable[[Asked], "str | Completion"]


class OpenAIServer:
    """The server as tests use it: `with OpenAIServer() as server: …`."""

    def __init__(
        self,
        responder: Responder = lambda asked: "{}",
        *,
        models: tuple[str, ...] = ("local-model",),
        keys: tuple[str, ...] = (),
        quirks: frozenset[str] = frozenset(),
        context_size: int = 1_000_000,
    ) -> None:
        """Prepare a server.

        Without `keys` it asks for none. `quirks` are names of forms it refuses (see QUIRKS);
        `context_size` is in tokens.
        """
        self.responder = responder
        self.faults = Faults()
        self.log: list[Exchange] = []
        self.failures: list[BaseException] = []
        self.models = models
        self.keys = keys
        self.quirks = quirks
        self.context_size = context_size
        self._queued: list[Completion] = []
        self._prompts = Prompts()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._listener = Listener(self)
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop; an error inside the server or its responder is raised here, not swallowed."""
        self._listener.stop()
        self._thread.join()
        if self.failures and raised is None:
            raise self.failures[0]

    @property
    def origin(self) -> str:
        host, port = self._listener.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def url(self) -> str:
        """The base URL, as in the settings."""
        return f"{self.origin}/v1"

    def queue(self, *replies: Completion | str) -> None:
        """Add replies that are taken before the responder is asked."""
        self._queued += [Completion(r) if isinstance(r, str) else r for r in replies]

    def bodies(self, operation: str = "chat") -> list[bytes]:
        """Return the bodies of one operation's requests, as they arrived."""
        return [exchange.body for exchange in self.log if exchange.operation == operation]

    # What the listener calls -----------------------------------------------------------------

    def receive(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Exchange:
        """Log a request and find its operation."""
        routes = {
            ("POST", "/v1/chat/completions"): "chat",
            ("GET", "/v1/models"): "models",
        }
        operation = routes.get((method, path), "none")
        exchange = Exchange(0, method, path, operation, headers, body, _loose(body))
        with self._lock:
            self.log.append(exchange)
            exchange.number = len(self.log)
        return exchange

    def handle(self, exchange: Exchange) -> tuple[Action, Answer]:
        """Return a request's answer and how it is to be sent."""
        action = self.faults.take(exchange) or Action()
        answer = action.instead(exchange)
        if answer is None:
            answer = action.after(self._answer(exchange))
        exchange.reply = answer.body
        exchange.status = answer.status if action.answers else None
        return action, answer

    def _answer(self, exchange: Exchange) -> Answer:
        if self.keys and exchange.headers.get("authorization") not in map(_bearer, self.keys):
            return error(401, "Incorrect API key provided.", code="invalid_api_key")
        if exchange.operation == "models":
            rows = [{"id": name, "object": "model"} for name in self.models]
            return _ok({"object": "list", "data": rows})
        if exchange.operation != "chat":
            return error(404, f"Invalid URL ({exchange.method} {exchange.path})")
        try:
            return self._complete(exchange)
        except Exception as raised:  # kept, and raised when the server stops
            self.failures.append(raised)
            return error(500, f"The local server failed: {raised!r}")

    def _complete(self, exchange: Exchange) -> Answer:
        if not isinstance(exchange.json, dict):
            return error(400, "We could not parse the JSON body of your request.")
        asked = Asked(exchange.json)
        for name in sorted(self.quirks):
            if refusal := QUIRKS[name](asked):
                return refusal
        with self._lock:
            prompt, cached = self._prompts.hit(asked.prompt())
            queued = self._queued.pop(0) if self._queued else None
        if prompt > self.context_size:
            said = f"request ({prompt} tokens) exceeds the available context size"
            return error(400, said, kind="exceed_context_size_error")
        reply = queued or self.responder(asked)
        reply = Completion(reply) if isinstance(reply, str) else reply
        if reply.body is not None:
            return Answer(200, reply.body)
        return _ok(completion(reply, asked, prompt, cached))


def _ok(value: Mapping[str, object]) -> Answer:
    return Answer(200, json.dumps(value).encode(), (("X-Request-Id", "req-17"),))


def _bearer(key: str) -> str:
    return f"Bearer {key}"


def _loose(body: bytes) -> Json | None:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
