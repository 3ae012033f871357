"""Whole cases on the Gemini path: the local server, the real client, the real run loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ledger import canonical
from ledger.book import Book
from ledger.events import (
    CacheCreated,
    CacheCreateFailed,
    CacheCreateRequested,
    CacheCreateUnknown,
    CacheDecided,
    CacheDeleted,
    CacheLost,
    CacheRejected,
    Event,
    RequestPrepared,
    RequestSent,
)
from phases.run import Options, Run, Stopped
from phases.settings import Settings
from tests.gemini.analyst import Analyst, document_of
from tests.gemini.guard import only_loopback
from tests.gemini.replies import Request
from tests.gemini.server import KEYS, GeminiServer
from tests.gemini.state import Exchange
from tests.phases import scripting
from tests.phases.scripting import only, view_of

MODEL = "gemini-3.8-flash"

Json = dict[str, Any]


class Scripted(Analyst):
    """Answers as the script of tests/phases/scripting.py does, from what reached the server."""

    def __call__(self, request: Request) -> str:
        document = canonical.to_bytes(document_of(request))
        self.digests.append(canonical.digest(document))
        return canonical.to_bytes(self.say(*view_of(document))).decode()

    def say(self, phase: str, view: Json) -> Json:
        """Return the answer to a view."""
        return scripting.good_answer(phase, view)


class Patient(Analyst):
    """The offline analyst, taking a few looks at a time: long investigations."""

    def __init__(self, looks: int = 2) -> None:
        super().__init__()
        self._looks = looks

    def __call__(self, request: Request) -> str:
        answer = canonical.from_bytes(super().__call__(request).encode())
        if "actions" in answer:
            answer["actions"] = answer["actions"][: self._looks]
        return canonical.to_bytes(answer).decode()


@contextmanager
def serving(responder: Analyst | None = None, **options: Any) -> Iterator[GeminiServer]:
    """Yield a server that answers whole cases; nothing else is reached, no key is lost."""
    with GeminiServer(**options) as server, only_loopback():
        server.responder = responder or Scripted()
        yield server
        assert server.problems() == []


@pytest.fixture
def server(key: None) -> Iterator[GeminiServer]:
    """Return a server that answers with the script."""
    with serving() as running:
        yield running


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Set a key that every local server takes, and an installation of this test's own."""
    monkeypatch.setenv("GEMINI_API_KEY", KEYS[0])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def settings_for(
    server: GeminiServer, *providers: str, more: Json | None = None, **section: Any
) -> Settings:
    """Return settings that ask this server; `section` is that of Gemini."""
    values = {"base_url": server.url, "model": MODEL, "timeout_seconds": 20, **section}
    return Settings.model_validate(
        {"providers": providers or ("gemini",), "gemini": values, **(more or {})}
    )


def run(path: Path, settings: Settings, options: Options | None = None) -> Stopped:
    """Run a case as a new process would, without waiting."""
    with Book.open_for_writing(path) as book:
        work = Run(book, settings, "tests", options or Options(), sleep=lambda seconds: None)
        return work.go()


def names_cache(exchange: Exchange) -> bool:
    """Tell whether a request that reached the server names a cache."""
    return exchange.cache is not None


def decisions_of(path: Path) -> list[CacheDecided]:
    return only(path, CacheDecided)


def documents_of(path: Path) -> list[str]:
    """Return the digests of the prepared documents, in order."""
    return [event.document.digest for event in only(path, RequestPrepared)]


def sent_bodies(path: Path) -> list[bytes]:
    """Return the archived bodies of everything that was sent to Gemini, in order."""
    with Book.open(path) as book:
        sent = [event for _, event in book.events() if isinstance(event, RequestSent)]
        return [book.payload(event.wire.digest) for event in sent if event.wire]


def received_bodies(server: GeminiServer) -> list[bytes]:
    """Return the bodies that arrived, each handle replaced by the ID of what the cache holds."""
    return [with_content_id(server, exchange) for exchange in server.exchanges("generate")]


def with_content_id(server: GeminiServer, exchange: Exchange) -> bytes:
    cache = next((c for c in server.caches if c.name == exchange.cache), None)
    if cache is None:
        return exchange.body
    name = cache.display_name.rpartition("-")[0]
    assert exchange.body.count(cache.name.encode()) == 1
    return exchange.body.replace(cache.name.encode(), f"cachedContents/{name}".encode())


def facts(path: Path) -> list[str]:
    """Return what happened to caches, in words."""
    told = (
        *(CacheCreateRequested, CacheCreated, CacheCreateFailed, CacheCreateUnknown),
        *(CacheRejected, CacheLost, CacheDeleted),
    )
    return [_told(event) for event in scripting.events_of(path) if isinstance(event, told)]


def _told(event: Event) -> str:
    name = event.TOPIC.partition("/")[0].partition(".")[2]
    if isinstance(event, CacheCreateUnknown):
        return name  # its reason is a sentence
    more = (getattr(event, member, "") for member in ("reason", "outcome", "kind"))
    return f"{name} {''.join(more)}".strip()
