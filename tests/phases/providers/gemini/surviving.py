"""An investigation on the Gemini path, from its first request on: what went wrong, told in lines.

The real client asks the local server; whatever happens, `Trial.go` holds that every body that left
stands on the ledger and that the model was given each archived document whole.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import prompts
from ledger import canonical
from ledger import events as e
from ledger.book import Book
from phases.providers import Provider
from phases.providers.credentials import Key
from phases.providers.gemini.provider import Gemini
from phases.run import Options, Run, Stopped
from phases.settings import Settings
from tests.gemini.analyst import Analyst
from tests.gemini.replies import Reply, Request
from tests.gemini.server import GeminiServer
from tests.phases import scripting
from tests.phases.providers.gemini.running import (
    key,
    received_bodies,
    sent_bodies,
    serving,
    settings_for,
)
from tests.phases.scripting import copied, events_of

AT = "2026-11-30T12:00:00.000000Z"

Json = dict[str, Any]
Said = str | Reply | Callable[[str], str | Reply]


class Odd(Analyst):
    """The offline analyst; queued replies, or functions of its good answer, take its place."""

    def __init__(self) -> None:
        super().__init__()
        self.instead: list[Said] = []

    def __call__(self, request: Request) -> Any:
        good = super().__call__(request)
        if not self.instead:
            return good
        said = self.instead.pop(0)
        return said(good) if callable(said) else said


@dataclass
class Trial:
    """One case and one server; `waits` holds what the run would have slept, in seconds."""

    path: Path
    server: GeminiServer
    analyst: Odd
    waits: list[float] = field(default_factory=list)
    begins: int = 0

    def go(
        self,
        *providers: str,
        requests: int | None = None,
        provider: Provider | None = None,
        more: Json | None = None,
        **section: Any,
    ) -> Stopped:
        """Run in a process of its own, for so many attempts; `section` is that of Gemini."""
        settings = settings_for(self.server, *providers, more=more, **section)
        with Book.open_for_writing(self.path) as book:
            work = Run(
                book, settings, "tests", Options(max_requests=requests), sleep=self.waits.append
            )
            if provider:
                work._providers["gemini"] = provider
            stopped = work.go()
        self.check()
        return stopped

    def check(self) -> None:
        """Hold that the ledger has every body that arrived, and the model saw whole documents."""
        received = received_bodies(self.server)
        sent = sent_bodies(self.path)
        assert sent[len(sent) - len(received) :] == received
        prepared = {p.request: p.document.digest for p in self.all(e.RequestPrepared)}
        order = list(prepared.values())
        asked = list(dict.fromkeys(self.analyst.digests))
        assert asked == sorted(asked, key=order.index)
        ours = {(s.request, s.attempt) for s in self.all(e.RequestSent) if s.provider == "gemini"}
        answered = {(r.request, r.attempt) for r in self.all(e.ResponseReceived)} & ours
        assert {prepared[request] for request, _ in answered} <= set(asked)

    def all(self, kind: type[e.Event]) -> list[Any]:
        return [event for event in events_of(self.path)[self.begins :] if isinstance(event, kind)]

    def one(self, kind: type[e.Event]) -> Any:
        (event,) = self.all(kind)
        return event

    def story(self) -> list[str]:
        """Return what happened, one line an event, without what the answers say."""
        lines = map(told, events_of(self.path)[self.begins :])
        return [line for line in lines if line]

    def counts(self) -> tuple[int, int]:
        """Return how many creations and how many requests reached the server."""
        return self.server.count("create"), self.server.count("generate")


def document_of(protocol: str, content: Any = None, schema: Any = None) -> bytes:
    """Return a request document that was made by hand."""
    card = prompts.card(protocol)
    return canonical.to_bytes(
        {
            "format": 1,
            "protocol": protocol,
            "system": card.text,
            "schema": schema or prompts.schema(card.schema),
            "messages": [{"role": "user", "content": content or {"case": {"id": "bug-17"}}}],
        }
    )


class Sheet:
    """The ledger's side of attempts without a ledger, for providers that are asked directly.

    `leaving` is called when a request is about to leave.
    """

    def __init__(self, request: str = "R1", leaving: Callable[[], object] = bool) -> None:
        self.request = request
        self.attempt = 1
        self.events: list[e.Event] = []
        self.payloads: list[bytes] = []
        self.sent: list[tuple[bytes | None, str]] = []
        self._leaving = leaving

    def record(self, *events: e.Event, payloads: tuple[bytes, ...] = ()) -> None:
        self.events += events
        self.payloads += payloads

    def now(self) -> str:
        return AT

    def __call__(self, wire: bytes | None, cache: str = "") -> None:
        self._leaving()
        self.sent.append((wire, cache))

    def story(self) -> list[str]:
        return [line for line in map(told, self.events) if line]


def told(event: e.Event) -> str:
    """Return an event in a line; empty for one that these tests are not about."""
    match event:
        case e.CacheDecided():
            return f"decided {event.decision}: {event.reason}"
        case e.CacheCreateRequested():
            return "create"
        case e.CacheCreated():
            return "adopted" if event.adopted else "created"
        case e.CacheCreateFailed():
            return f"not created: {event.kind}"
        case e.CacheCreateUnknown():
            return f"perhaps created: {event.reason.partition(':')[0]}"
        case e.CacheRejected():
            return f"cache rejected: {event.kind} {event.status}"
        case e.CacheLost():
            return f"cache lost: {event.reason}"
        case e.CacheDeleted():
            return f"cache {event.outcome}"
        case e.RequestSent():
            return f"sent {'cached' if event.cache else 'whole'}"
        case e.RequestFailed():
            return f"failed{' for good' * (not event.retryable)}: {event.kind}"
        case e.ResponseReceived():
            return "answered" if event.complete else "cut off"
        case e.ResponseAccepted():
            return "accepted"
        case e.ResponseRejected():
            return f"rejected{' for good' * (not event.correctable)}: {event.kind}"
        case e.ProviderFailedOver():
            return f"over to {event.to_provider}: {event.reason}"
        case e.RequestAbandoned():
            return f"abandoned: {event.reason}"
        case e.RunStopped():
            return f"stopped: {event.reason}"
    return ""


@pytest.fixture(scope="session")
def understood(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a case whose next request is the first one that a cache can serve."""
    path = scripting.make_case(tmp_path_factory.mktemp("understood"))
    scripting.run(path, settings=Settings(), options=Options(until="hypotheses"))
    return path


@pytest.fixture
def trial(understood: Path, scratch: Path, key: None) -> Iterator[Trial]:
    """Return a case before its investigation, and a server that answers as the analyst does."""
    path = copied(understood, scratch / "small.case")
    with opened(path) as made:
        yield made


@contextmanager
def opened(path: Path, **options: Any) -> Iterator[Trial]:
    """Yield a case with a server of its own; `options` are those of the server."""
    analyst = Odd()
    with serving(analyst, **options) as server:
        yield Trial(path, server, analyst, begins=len(events_of(path)))


def nobody() -> str:
    """Return an address that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        return f"http://127.0.0.1:{gone.getsockname()[1]}"


def all_closed(server: GeminiServer) -> None:
    """Wait until the server has closed every connection."""
    ends = time.monotonic() + 10
    while server._listener._open and time.monotonic() < ends:
        time.sleep(0.002)
    assert not server._listener._open


def impatient(server: GeminiServer, **section: Any) -> Gemini:
    """Return a provider whose times may be fractions of a second."""
    return Gemini(settings_for(server).gemini.model_copy(update=section), Key(server.key))


__all__ = [
    "Odd",
    "Sheet",
    "Trial",
    "all_closed",
    "document_of",
    "impatient",
    "key",
    "nobody",
    "opened",
    "trial",
    "understood",
]
