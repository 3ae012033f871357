"""One attempt at a request: plan, record, send, record the raw answer. Retries and failover.

The order protects money and truth: `request.sent` is committed before the body leaves, the raw
answer is committed before anything reads it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
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
    previous = because = ""
    for name in settings.providers:
        mine = asked[name]
        failed = [a for a in mine if a.status == "failed"]
        if not failed:
            return Choice(name, 0.0, previous, because)
        if failed[-1].retryable and len(mine) < settings.run.attempts:
            return Choice(name, _wait(failed))
        because = "attempts_used" if failed[-1].retryable else f"terminal: {failed[-1].kind}"
        previous = name
    raise ProvidersUsedUp(
        f"{request.id}: no provider is left ({', '.join(settings.providers)}); last: {because}"
    )


def specification(request: Request, attempt: Attempt, settings: Settings) -> str:
    """Return how the configuration spells the provider of an attempt."""
    asked = _asked(request, settings, attempt.run)
    return next(name for name, attempts in asked.items() if attempt in attempts)


def _asked(request: Request, settings: Settings, run: int) -> dict[str, list[Attempt]]:
    """Return a run's attempts by provider: the first, until a failover names another one."""
    asked: dict[str, list[Attempt]] = {name: [] for name in settings.providers}
    current = settings.providers[0]
    for attempt in request.attempts:
        if attempt.run == run:
            current = attempt.taken_over or current
            asked[current].append(attempt)
    return asked


def ask(
    book: Book,
    request: Request,
    provider: Provider,
    choice: Choice,
    now: Callable[[], str],
) -> None:
    """Send one attempt and record what came of it: an answer or a failure."""
    number = len(request.attempts) + 1
    document = book.payload(request.document.digest)
    started = time.monotonic()

    def sending(wire: bytes | None) -> None:
        _record_sending(book, request, provider, choice, number, wire, now())

    try:
        received = provider.ask(document, sending)
    except Failure as failure:
        elapsed = _since(started)
        _record_failure(book, request, number, failure, elapsed, now())
        return
    _record_answer(book, request, number, received, _since(started), now())


def _record_sending(
    book: Book,
    request: Request,
    provider: Provider,
    choice: Choice,
    number: int,
    wire: bytes | None,
    now: str,
) -> None:
    events: list[Event] = []
    if choice.takes_over_from:
        events.append(
            ProviderFailedOver(
                at=now,
                request=request.id,
                from_provider=choice.takes_over_from,
                to_provider=choice.provider,
                reason=choice.because.partition(":")[0],
                detail=choice.because,
            )
        )
    events.append(
        RequestSent(
            at=now,
            request=request.id,
            attempt=number,
            provider=provider.name,
            model=provider.model,
            endpoint=provider.endpoint,
            document=request.document.digest,
            client=provider.client,
            api_version=provider.api_version,
            parameters=dict(provider.parameters),
            wire=reference(wire) if wire is not None else None,
        )
    )
    book.append(*events, payloads=[wire] if wire is not None else [])


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
        return min(asked / 1000, LONGEST_WAIT_SECONDS)
    return min(FIRST_WAIT_SECONDS * 2.0 ** (len(failed) - 1), LONGEST_WAIT_SECONDS)


def _since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
