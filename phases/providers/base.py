"""The seam between the run loop and whoever answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

Sending = Callable[[bytes | None], None]
"""Called with the exact body just before it leaves (None: the document itself is the body).

It records and commits; only when it returns may the body be sent.
"""


class ProviderConfigurationError(Exception):
    """A provider that cannot be set up: one line with what to do. Nothing was sent."""


class Failure(Exception):
    """An attempt that ended without a usable exchange."""

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


class Provider(Protocol):
    """Somebody who answers request documents."""

    name: str
    model: str
    endpoint: str
    client: str
    api_version: str
    parameters: Mapping[str, Any]
    remote: bool

    def ask(self, document: bytes, sending: Sending) -> Received:
        """Send a request document and return the raw answer.

        `sending` is called first, always: an attempt that cannot be sent is a mistake in the
        configuration, found by `open_provider`.

        Raises:
            Failure: the attempt ended without a usable exchange.
        """

    def read(self, body: bytes) -> Reply:
        """Return what a raw answer says; never raises for a malformed one."""
