"""The seam between the run loop and whoever answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ledger import canonical
from ledger.errors import CanonicalError
from ledger.events import Event
from phases.providers.prices import Price

LARGEST_USAGE = 4096
"""Bytes of a usage object that are kept."""

LONGEST_MESSAGE = 600
"""Characters of what a server says that are kept."""


class ProviderConfigurationError(Exception):
    """A provider that cannot be set up: one line with what to do. Nothing was sent."""


class Failure(Exception):
    """An attempt that ended without a usable exchange.

    Attributes:
        kind: error class, such as `timeout`, `http_503`, `quota_daily`, `cache_rejected`.
        message: one line, secrets removed.
        retryable: whether the same document may go to the same provider again.
        status: HTTP status, if there was one.
        retry_after_ms: how long the provider asks to wait.
        partial: the bytes that arrived.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        retryable: bool,
        status: int | None = None,
        retry_after_ms: int | None = None,
        partial: bytes | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retryable = retryable
        self.status = status
        self.retry_after_ms = retry_after_ms
        self.partial = partial


class Refused(Exception):
    """The attempt is not made, nothing was sent and nobody else may be asked: one line, why."""


@dataclass(frozen=True)
class Received:
    """Raw answer of one exchange, before anything reads it."""

    body: bytes
    complete: bool = True
    status: int | None = None
    content_type: str = ""
    request_id: str = ""


@dataclass(frozen=True)
class Reply:
    """What a raw answer says.

    Attributes:
        text: the answer's text; None if there is none.
        finish: `stop` for a normal end, else its kind: `cut_off`, `safety`, `recitation`,
            `blocked`, `thoughts_only`, `empty`, `malformed`.
        detail: the provider's own words for an end that is not normal.
        usage: fields of `usage.measured` that the provider stated.
    """

    text: str | None
    finish: str = "stop"
    detail: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)


def line(text: str) -> str:
    """Return one bounded line that can be stored: no lone surrogate."""
    return " ".join(text.encode("utf-8", "backslashreplace").decode().split())[:LONGEST_MESSAGE]


def details_of(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return a usage object as received; nothing if it is too large or odd to be one."""
    try:
        data = canonical.to_bytes([[[stated]]])  # as deep as it stands in an event
    except CanonicalError:
        return {}
    return {} if len(data) > LARGEST_USAGE or b"\\ud" in data.lower() else dict(stated)


class Ledger(Protocol):
    """Where a provider records what it does beside an attempt."""

    def record(self, *events: Event, payloads: tuple[bytes, ...] = ()) -> None:
        """Append events, one transaction."""

    def now(self) -> str:
        """Return the moment to record."""


class Sending(Ledger, Protocol):
    """The ledger's side of one attempt.

    Called with the exact body just before it leaves; None if the document itself is the body. Only
    when it returns, `request.sent` is committed and the body may be sent.
    """

    request: str
    attempt: int

    def __call__(self, wire: bytes | None, cache: str = "") -> None:
        """Record that the attempt leaves, referring to this cached prefix."""


class Check(NamedTuple):
    """One thing about a provider that was looked at without spending."""

    what: str
    ok: bool
    detail: str


class Provider:
    """Somebody who answers request documents.

    Attributes:
        name: as in the configuration.
        model: the model asked.
        endpoint: base URL, or `in-process`.
        client: client library and version.
        api_version: API version of the endpoint.
        parameters: temperature, limits and other sent settings; no secrets.
        remote: whether documents leave this machine.
        deadline_ms: total time of one attempt; 0 for none.
        prices: dated prices of the model; empty if nobody knows them.
    """

    name: str
    model: str
    endpoint: str = "in-process"
    client: str = ""
    api_version: str = ""
    parameters: Mapping[str, Any] = {}
    remote: bool = False
    deadline_ms: int = 0
    prices: tuple[Price, ...] = ()

    def ask(self, document: bytes, sending: Sending) -> Received:
        """Send a request document and return the raw answer.

        `sending` is called before anything leaves, always: an attempt that cannot be sent is a
        mistake in the configuration, found by `open_provider`.

        Raises:
            Failure: the attempt ended without a usable exchange.
            Refused: strict test mode forbids this attempt.
        """
        raise NotImplementedError

    def read(self, body: bytes) -> Reply:
        """Return what a raw answer says; never raises for a malformed one."""
        raise NotImplementedError

    def release(self, ledger: Ledger) -> None:
        """Give up what is held elsewhere, such as remote caches; does nothing twice."""

    def checks(self) -> list[Check]:
        """Look, without spending anything, whether this provider could answer."""
        return []
