"""Creating a remote cache, and finding one whose reply was lost. Each step is on the ledger.

A reply that is lost leaves it open whether the cache exists. Its name, the content ID and a nonce,
is kept until it is found, or looked for once more when everything is given up: a service may commit
long after its connection ended.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from ledger import canonical
from ledger.errors import CanonicalError
from ledger.events import (
    CacheCreated,
    CacheCreateFailed,
    CacheCreateRequested,
    CacheCreateUnknown,
)
from phases.preparing import reference
from phases.providers.base import Failure, Ledger, Sending
from phases.providers.gemini import replies
from phases.providers.gemini.client import HANDLE, Client
from phases.providers.gemini.models import MARGIN_SECONDS
from phases.providers.gemini.parts import Parts
from phases.providers.transport import Exchanged

LIST_PAGES = 20
PAGE_TOKEN = re.compile(r"[!-~]{1,2048}")
LOOK_SECONDS = 10.0
"""Total time of looking for a cache by its name."""

MAYBE_DONE = frozenset({500, 502, 504})
"""Statuses after which a creation may have happened all the same: a gateway's, above all."""


@dataclass(frozen=True)
class Wanted:
    """A cache to create: of what, and how long it may live and take."""

    key: str
    model: str
    parts: Parts
    ttl_seconds: int
    estimated_tokens: int
    seconds: float
    """Total time that creating it may take."""


@dataclass(frozen=True)
class Pending:
    """A creation that was asked for and whose outcome is not known yet."""

    key: str
    content_id: str
    display_name: str
    ttl_seconds: int
    asked: float
    """Moment of the local monotonic clock before it was asked for: it cannot be older."""


@dataclass(frozen=True)
class Handle:
    """A remote cache that this process created. Its name goes into requests only."""

    name: str = field(repr=False)
    key: str
    content_id: str
    display_name: str
    ends: float
    """Moment of the local monotonic clock from which it is not used."""

    tokens: int | None = None


class NotCreated(Exception):
    """There is no cache to use now: the kind of error, one line, and whether to try again."""

    def __init__(self, kind: str, message: str, *, for_good: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.for_good = for_good


class Creator:
    """Creates caches one after the other and keeps the names of those whose reply was lost."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._pending: dict[str, Pending] = {}
        self._told: set[str] = set()
        self.minimum_tokens: int | None = None

    def create(self, wanted: Wanted, sending: Sending) -> Handle:
        """Return a new cache, or one whose reply was lost and that is found.

        Raises:
            NotCreated: there is none; the ledger says why.
        """
        for lost in self._lost(wanted.key):
            if found := self._adopted(lost, sending):
                return found
        return self._create(wanted, sending)

    def lost(self) -> list[Pending]:
        """Return the creations that nobody found, and forget them."""
        with self._lock:
            pending = list(self._pending.values())
            self._pending.clear()
        return pending

    def look(self, pending: Pending, ledger: Ledger) -> Handle | None:
        """Look once more for a lost creation; None if it is not there or nobody can tell."""
        self._tell(pending, "the process ended before its reply came", ledger)
        try:
            listed = self._listed(pending.display_name)
        except Failure:
            return None
        return self._handle(listed, pending) if listed else None

    # Asking ----------------------------------------------------------------------------------

    def _create(self, wanted: Wanted, sending: Sending) -> Handle:
        parts = wanted.parts
        name = f"{parts.content_id}-{secrets.token_hex(8)}"
        pending = Pending(wanted.key, parts.content_id, name, wanted.ttl_seconds, self._clock())

        def before_send(body: bytes) -> None:
            sending.record(_requested(wanted, name, body, sending), payloads=(body,))
            self._pending[name] = pending

        try:
            exchanged = self._client.create_cache(
                wanted.model, parts, name, wanted.ttl_seconds, wanted.seconds, before_send
            )
        except Failure as failure:
            return self._without_reply(pending, failure, sending)
        if exchanged.status in MAYBE_DONE:
            return self._without_reply(pending, replies.failure(exchanged, sending.now()), sending)
        if exchanged.status != 200:
            raise self._turned_down(pending, exchanged, sending)
        handle = self._handle(exchanged, pending)
        if handle is None:
            unreadable = Failure("no_handle", "the reply names no cache", retryable=False)
            return self._without_reply(pending, unreadable, sending)
        return self._kept(handle, exchanged, sending, adopted=False)

    def _kept(
        self, handle: Handle, exchanged: Exchanged, sending: Sending, *, adopted: bool
    ) -> Handle:
        sending.record(
            CacheCreated(
                at=sending.now(),
                key=handle.key,
                display_name=handle.display_name,
                expires_at=_expiry(exchanged.body),
                reply=reference(exchanged.body),
                tokens=handle.tokens,
                adopted=adopted,
            ),
            payloads=(exchanged.body,),
        )
        self._pending.pop(handle.display_name, None)
        return handle

    def _turned_down(self, pending: Pending, exchanged: Exchanged, sending: Sending) -> NotCreated:
        minimum = replies.stated_minimum(exchanged)
        failure = replies.failure(exchanged, sending.now())
        kind = "too_small" if minimum is not None else failure.kind
        self.minimum_tokens = minimum if minimum is not None else self.minimum_tokens
        self._failed(pending, kind, failure, minimum, sending)
        for_good = exchanged.status == 429 or not failure.retryable
        return NotCreated(kind, failure.message, for_good=for_good)

    def _without_reply(self, pending: Pending, failure: Failure, sending: Sending) -> Handle:
        """Nothing was sent, or it may have been created all the same: then look for it."""
        missing = NotCreated(failure.kind, failure.message)
        if pending.display_name not in self._pending:
            raise missing  # it was never asked for
        if failure.kind == "connect":
            self._failed(pending, failure.kind, failure, None, sending)
            raise missing
        self._tell(pending, f"{failure.kind}: {failure.message}", sending)
        found = self._adopted(pending, sending)
        if found is None:
            raise missing
        return found

    def _failed(
        self,
        pending: Pending,
        kind: str,
        failure: Failure,
        minimum: int | None,
        sending: Sending,
    ) -> None:
        reply = failure.partial
        sending.record(
            CacheCreateFailed(
                at=sending.now(),
                key=pending.key,
                display_name=pending.display_name,
                kind=kind,
                message=failure.message,
                status=failure.status,
                minimum_tokens=minimum,
                reply=None if reply is None else reference(reply),
            ),
            payloads=() if reply is None else (reply,),
        )
        self._pending.pop(pending.display_name, None)

    def _tell(self, pending: Pending, reason: str, ledger: Ledger) -> None:
        """Record once that a reply was lost."""
        if pending.display_name in self._told:
            return
        self._told.add(pending.display_name)
        ledger.record(
            CacheCreateUnknown(
                at=ledger.now(), key=pending.key, display_name=pending.display_name, reason=reason
            )
        )

    # Looking ---------------------------------------------------------------------------------

    def _lost(self, key: str) -> list[Pending]:
        return [pending for pending in list(self._pending.values()) if pending.key == key]

    def _adopted(self, pending: Pending, sending: Sending) -> Handle | None:
        """Return the cache of a lost reply; None if the service says that it is not there.

        Raises:
            NotCreated: nobody can tell: another one must not be asked for.
        """
        try:
            listed = self._listed(pending.display_name)
        except Failure:
            message = "whether it was created could not be found out"
            raise NotCreated("unknown", message) from None
        handle = self._handle(listed, pending) if listed else None
        if handle is None:
            return None
        assert listed is not None
        return self._kept(handle, listed, sending, adopted=True)

    def _listed(self, display_name: str) -> Exchanged | None:
        """Return the entry of a name as if it were its creation's reply; None if there is none.

        Raises:
            Failure: nobody can tell.
        """
        for page in self._pages():
            items = page.get("cachedContents")
            for item in items if isinstance(items, list) else []:
                if isinstance(item, dict) and item.get("displayName") == display_name:
                    return Exchanged(200, {}, canonical.to_bytes(item))
        return None

    def _pages(self) -> Iterator[dict[str, object]]:
        ends = time.monotonic() + LOOK_SECONDS
        token: object = ""
        for _ in range(LIST_PAGES):
            left = ends - time.monotonic()
            exchanged = self._client.list_caches(str(token), max(left, 0.001))
            page = _object(exchanged.body) if exchanged.status == 200 else None
            if page is None:
                raise Failure("no_list", "the caches could not be listed", retryable=False)
            yield page
            token = page.get("nextPageToken") or ""
            if token == "":
                return
            if not isinstance(token, str) or not PAGE_TOKEN.fullmatch(token):
                break
        raise Failure("no_list", "the list of caches has no end", retryable=False)

    def _handle(self, exchanged: Exchanged, pending: Pending) -> Handle | None:
        value = _object(exchanged.body) or {}
        name = value.get("name")
        if not isinstance(name, str) or not HANDLE.fullmatch(name):
            return None
        usage = value.get("usageMetadata")
        tokens = replies.count(usage.get("totalTokenCount")) if isinstance(usage, dict) else None
        return Handle(
            name,
            pending.key,
            pending.content_id,
            pending.display_name,
            pending.asked + _lifetime(value, pending.ttl_seconds) - MARGIN_SECONDS,
            tokens or None,
        )


def _requested(wanted: Wanted, name: str, body: bytes, sending: Sending) -> CacheCreateRequested:
    return CacheCreateRequested(
        at=sending.now(),
        request=sending.request,
        key=wanted.key,
        content_id=wanted.parts.content_id,
        display_name=name,
        model=wanted.model,
        ttl_seconds=wanted.ttl_seconds,
        estimated_tokens=wanted.estimated_tokens,
        body=reference(body),
    )


def _lifetime(value: dict[str, object], ttl_seconds: int) -> float:
    """Return how long a new cache lives by the server's own two times; never longer than asked."""
    try:
        created = datetime.fromisoformat(str(value.get("createTime")))
        expires = datetime.fromisoformat(str(value.get("expireTime")))
        return min((expires - created).total_seconds(), float(ttl_seconds))
    except (ValueError, TypeError):
        return float(ttl_seconds)


def _expiry(body: bytes) -> str:
    value = (_object(body) or {}).get("expireTime")
    return value[:40] if isinstance(value, str) and value.isascii() else ""


def _object(body: bytes) -> dict[str, object] | None:
    try:
        value = canonical.from_bytes(body)
    except CanonicalError:
        return None
    return value if isinstance(value, dict) else None
