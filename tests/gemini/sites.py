"""Where the conformance table runs: the local server, or the real service where a key exists."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
from google import genai
from google.genai import errors, types

from tests.gemini.clients import make_client, trust
from tests.gemini.rules import RULES, Json
from tests.gemini.server import GeminiServer

REAL = "https://generativelanguage.googleapis.com"
SENTENCE = "Case {0} was opened on day {0} and closed on day {1} by clerk {2}. "
LARGE = "".join(SENTENCE.format(n, n * 7 % 365, n * 31 % 97) for n in range(300))


@dataclass
class Site:
    """A service, the real client for it, and plain HTTP for what the client cannot say."""

    url: str
    key: str
    local: GeminiServer | None = None  # None: the real service
    model: str = "gemini-2.5-flash"
    thinks_always: str = "gemini-2.5-pro"
    preview: str = "gemini-3.1-pro-preview"
    implicit_only: str = "gemini-4-argon"
    made: list[str] = field(default_factory=list)
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def server(self) -> GeminiServer:
        """The local server; a test that asks for it is no test of the real service."""
        assert self.local, "this is the real service"
        return self.local

    def client(self, key: str | None = None, version: str = "v1beta") -> genai.Client:
        """Return a client that is closed with the site."""
        client = make_client(self.url, key or self.key, version=version, timeout=60)
        self._stack.callback(client.close)
        return client

    def generate(
        self, text: str = "Say OK.", model: str | None = None, **config: Any
    ) -> types.GenerateContentResponse:
        """Ask the model through the client."""
        config = {"automatic_continuation": False, "max_output_tokens": 2_000} | config
        turns = [types.Content(role="user", parts=[types.Part(text=text)])]
        return self.client().models.generate_content(
            model=model or self.model, contents=turns, config=config
        )

    def cache(self, model: str | None = None, **config: Any) -> types.CachedContent:
        """Make a cache through the client; it is deleted with the site."""
        turn = types.Content(role="user", parts=[types.Part(text=LARGE)])
        config = {"contents": [turn], "ttl": "300s", "display_name": "conformance"} | config
        config = {name: value for name, value in config.items() if value is not None}
        made = self.client().caches.create(model=model or self.model, config=config)
        self.made.append(str(made.name))
        return made

    def raw(
        self, method: str, path: str, body: Json | bytes = b"", **headers: str
    ) -> httpx2.Response:
        """Send plain HTTP: `path` follows the version, `headers` add to the key."""
        sent = {"x-goog-api-key": self.key, "content-type": "application/json"} | headers
        with httpx2.Client(trust_env=False, timeout=60, verify=trust()) as plain:
            return plain.request(
                method,
                f"{self.url}/v1beta/{path}",
                headers={name: value for name, value in sent.items() if value},
                **({"json": body} if isinstance(body, dict) else {"content": body}),
            )

    def ask(self, body: Json | bytes, model: str | None = None) -> httpx2.Response:
        """Send a generate request as plain HTTP."""
        return self.raw("POST", f"models/{model or self.model}:generateContent", body)

    def close(self) -> None:
        """Delete what was made, and close the clients."""
        with self._stack:
            for name in self.made:
                with contextlib.suppress(errors.APIError):
                    self.client().caches.delete(name=name)


@contextlib.contextmanager
def local_site(**options: Any) -> Iterator[Site]:
    """A site on a local server of its own."""
    with GeminiServer(**options) as server:
        site = Site(server.url, server.key, server)
        yield site
        site.close()


@contextlib.contextmanager
def live_site() -> Iterator[Site]:
    """A site on the real service, or at GEMINI_LIVE_URL; costs a little money."""
    site = Site(os.environ.get("GEMINI_LIVE_URL", REAL), os.environ["GEMINI_API_KEY"])
    yield site
    site.close()


def refusal(call: Callable[[], object]) -> tuple[int, str]:
    """Return status and message of a call that is refused, by the client or in plain HTTP."""
    try:
        answer = call()
    except errors.APIError as error:
        return error.code, str(error.message)
    assert isinstance(answer, httpx2.Response), f"not refused: {answer!r}"
    if "json" not in answer.headers["content-type"]:
        return answer.status_code, ""
    return answer.status_code, answer.json().get("error", {}).get("message", "")


def worded(rule: str, message: str) -> bool:
    """Say whether a message is the rule's text, whatever its placeholders hold."""
    pattern = re.sub(r"\\\{\w+\\\}", ".*", re.escape(RULES[rule].text.strip()))
    return re.search(pattern, message, re.DOTALL) is not None
