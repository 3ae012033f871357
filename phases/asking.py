"""One attempt at a request: plan, record, send, record the raw answer. Retries and failover.

The order protects money and truth: `request.sent` is committed before the body leaves, the raw
answer is committed before anything reads it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ledger.book import Book
from ledger.events import (
    Event,
    ProviderFailedOver,
    RequestFailed,
    RequestSent,
    ResponseReceived,
)
from phases.preparing import reference
from phases.providers import Failure, Provider, Received
from phases.settings import Settings
from projections.state import Attempt, Request

FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0
"""Our own waits double from the first to the longest."""

LONGEST_ASKED_SECONDS = 900.0
"""A provider that asks for more is asked again after this: nobody watches a silent hour."""

CACHE_REJECTED = "cache_rejected"
"""A refusal of a cached request because of its cache; it goes out again in full, at once."""


class ProvidersUsedUp(Exception):
    """Every provider of the list was given up; the request stays prepared."""


@dataclass(frozen=True)
class Choice:
    """Who is asked next, after how long, and whom it takes over from."""

    provider: str
    wait_seconds: float = 0.0
    takes_over_from: str = ""
    because: str = ""


def choose(request: Request, settings: Settings, run: int) -> Choice:
    """Return who is asked next; attempts of earlier runs do not count.

    Raises:
        ProvidersUsedUp: nobody is left.
    """
    asked = _asked(request, settings, run)
    previous = because = said = ""
    for name in settings.providers:
        mine = _counted(asked[name])
        if asked[name] and asked[name][-1] not in mine:
            return Choice(name)
        failed = [a for a in mine if a.status == "failed"]
        if not failed:
            return Choice(name, 0.0, previous, because)
        if failed[-1].retryable and len(mine) < settings.run.attempts:
            return Choice(name, _wait(failed))
        because = "attempts_used" if failed[-1].retryable else f"terminal: {failed[-1].kind}"
        said = f"{because} ({failed[-1].message})"
        if name.partition(":")[0] == "gemini" and settings.gemini.cache_mode == "required":
            raise ProvidersUsedUp(f"{request.id}: {name}: {said}; strict mode: no failover")
        previous = name
    raise ProvidersUsedUp(
        f"{request.id}: no provider is left ({', '.join(settings.providers)}); last: {said}"
    )


def specification(request: Request, attempt: Attempt, settings: Settings) -> str:
    """Return how the configuration spells the provider of an attempt."""
    asked = _asked(request, settings, attempt.run)
    return next(name for name, attempts in asked.items() if attempt in attempts)


def _counted(attempts: list[Attempt]) -> list[Attempt]:
    """Return the attempts that count: a first refusal of a cache belongs to the next attempt."""
    first = next((a for a in attempts if a.kind == CACHE_REJECTED), None)
    return [attempt for attempt in attempts if attempt is not first]


def _asked(request: Request, settings: Settings, run: int) -> dict[str, list[Attempt]]:
    """Return a run's attempts by provider: the first, until a failover names another one."""
    asked: dict[str, list[Attempt]] = {name: [] for name in settings.providers}
    current = settings.providers[0]
    for attempt in request.attempts:
        if attempt.run == run:
            current = attempt.taken_over or current
            asked[current].append(attempt)
    return asked


class BookLedger:
    """What providers may do to a case: append events, and read the clock that goes with them."""

    def __init__(self, book: Book) -> None:
        self._book = book

    def record(self, *events: Event, payloads: tuple[bytes, ...] = ()) -> None:
        """Append events, one transaction."""
        self._book.append(*events, payloads=payloads)

    def now(self) -> str:
        """Return the moment to record."""
        return self._book.sources.now()


class Exchange(BookLedger):
    """One attempt at a request, as its provider sees the ledger."""

    def __init__(
        self, book: Book, request: Request, number: int, provider: Provider, choice: Choice
    ) -> None:
        super().__init__(book)
        self.request = request.id
        self.attempt = number
        self._digest = request.document.digest
        self._provider = provider
        self._choice = choice

    def __call__(self, wire: bytes | None, cache: str = "") -> None:
        """Record that the attempt leaves."""
        payloads = (wire,) if wire is not None else ()
        self.record(*self._failover(), self._sent(wire, cache), payloads=payloads)

    def _failover(self) -> list[Event]:
        choice = self._choice
        if not choice.takes_over_from:
            return []
        return [
            ProviderFailedOver(
                at=self.now(),
                request=self.request,
                from_provider=choice.takes_over_from,
                to_provider=choice.provider,
                reason=choice.because.partition(":")[0],
                detail=choice.because,
            )
        ]

    def _sent(self, wire: bytes | None, cache: str) -> Event:
        provider = self._provider
        return RequestSent(
            at=self.now(),
            request=self.request,
            attempt=self.attempt,
            provider=provider.name,
            model=provider.model,
            endpoint=provider.endpoint,
            document=self._digest,
            client=provider.client,
            api_version=provider.api_version,
            parameters=dict(provider.parameters),
            wire=reference(wire) if wire is not None else None,
            cache=cache,
            deadline_ms=provider.deadline_ms,
        )


def ask(
    book: Book,
    request: Request,
    provider: Provider,
    choice: Choice,
) -> None:
    """Send one attempt and record what came of it: an answer or a failure.

    Raises:
        Refused: strict test mode forbids it; nothing was sent.
    """
    number = len(request.attempts) + 1
    document = book.payload(request.document.digest)
    exchange = Exchange(book, request, number, provider, choice)
    started = time.monotonic()
    try:
        received = provider.ask(document, exchange)
    except Failure as failure:
        _record_failure(book, request, number, failure, _since(started), exchange.now())
        return
    _record_answer(book, request, number, received, _since(started), exchange.now())


def _record_failure(
    book: Book, request: Request, number: int, failure: Failure, elapsed_ms: int, now: str
) -> None:
    partial = failure.partial
    book.append(
        RequestFailed(
            at=now,
            request=request.id,
            attempt=number,
            kind=failure.kind,
            message=failure.message,
            status=failure.status,
            retryable=failure.retryable,
            retry_after_ms=failure.retry_after_ms,
            partial=reference(partial) if partial is not None else None,
            elapsed_ms=elapsed_ms,
        ),
        payloads=[partial] if partial is not None else [],
    )


def _record_answer(
    book: Book, request: Request, number: int, received: Received, elapsed_ms: int, now: str
) -> None:
    book.append(
        ResponseReceived(
            at=now,
            request=request.id,
            attempt=number,
            status=received.status,
            body=reference(received.body),
            complete=received.complete,
            content_type=received.content_type,
            elapsed_ms=elapsed_ms,
            provider_request_id=received.request_id,
        ),
        payloads=[received.body],
    )


def _wait(failed: list[Attempt]) -> float:
    asked = failed[-1].retry_after_ms
    if asked is not None:
        return min(asked / 1000, LONGEST_ASKED_SECONDS)
    return min(FIRST_WAIT_SECONDS * 2.0 ** (len(failed) - 1), LONGEST_WAIT_SECONDS)


def _since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
