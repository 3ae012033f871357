"""Remote caches of one process: created once for a key, reused, lost, deleted. Handles die with it.

Every step is on the ledger before and after it happens. What is lost here costs money and never
information: the request is rebuilt in full.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from ledger import canonical
from ledger.errors import CanonicalError
from ledger.events import (
    CacheCreated,
    CacheCreateFailed,
    CacheCreateRequested,
    CacheCreateUnknown,
    CacheDeleted,
    CacheLost,
    Ref,
)
from phases.providers.base import Failure, Ledger, Sending
from phases.providers.gemini import replies
from phases.providers.gemini.client import HANDLE, Client
from phases.providers.gemini.models import MARGIN_SECONDS
from phases.providers.gemini.parts import Parts
from phases.providers.transport import Exchanged

LIST_PAGES = 20
PAGE_TOKEN = re.compile(r"[!-~]{1,2048}")
LOOK_SECONDS = 10.0
DELETE_SECONDS = 10.0
CREATIONS = 2
"""How often the creation of one prefix may fail before it is left alone in this process."""


@dataclass(frozen=True)
class Handle:
    """A remote cache that this process created. The name leaves this class in a request only."""

    name: str = field(repr=False)
    key: str
    content_id: str
    display_name: str
    ends: float
    """Moment of the local monotonic clock from which it is not used."""

    tokens: int | None = None


@dataclass(frozen=True)
class Wanted:
    """A cache to create: for which request, of what, how long."""

    key: str
    model: str
    parts: Parts
    ttl_seconds: int
    estimated_tokens: int
    seconds: float
    """Total time that creating it may take."""


class Caches:
    """Handles by key. Safe for several threads: one creation a key, invalidated by comparison."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._lock = threading.RLock()
        self._handles: dict[str, Handle] = {}
        self._refused: dict[str, str] = {}
        self._failures: dict[str, int] = {}
        self._unknown: dict[str, Handle] = {}
        self.minimum_tokens: int | None = None
        self.tokens_per_estimate: float | None = None

    def usable(self, key: str, ledger: Ledger) -> Handle | None:
        """Return the live handle of a key; one that expires soon is given up."""
        with self._lock:
            handle = self._handles.get(key)
            if handle is None or self._clock() < handle.ends:
                return handle
            self.invalidate(handle, "expired", ledger)
            return None

    def invalidate(self, handle: Handle, reason: str, ledger: Ledger) -> bool:
        """Forget a handle if it is still the one of its key; tell whether it was."""
        with self._lock:
            if self._handles.get(handle.key) is not handle:
                return False
            del self._handles[handle.key]
            ledger.record(CacheLost(at=ledger.now(), key=handle.key, reason=reason))
            return True

    def refused(self, key: str) -> str:
        """Return why no cache of this key is created again; empty if it may be."""
        return self._refused.get(key, "")

    def create(self, wanted: Wanted, sending: Sending) -> Handle | None:
        """Return a handle: the live one, one whose reply was lost and is found, or a new one."""
        with self._lock:
            if handle := self.usable(wanted.key, sending):
                return handle
            if lost := self._unknown.get(wanted.key):
                found = self._find(lost, wanted, sending)
                if found is None and wanted.key in self._unknown:  # looking may take long, too
                    message = "whether it was created could not be found out"
                    self._count_failure(wanted.key, "unknown", message, for_good=False)
                if found or wanted.key in self._unknown:
                    return found
            return self._create(wanted, sending)

    def release(self, ledger: Ledger) -> None:
        """Delete every cache of this process."""
        with self._lock:
            for handle in list(self._handles.values()):
                outcome, status = self._delete(handle)
                ledger.record(
                    CacheDeleted(at=ledger.now(), key=handle.key, outcome=outcome, status=status)
                )
            self._handles.clear()
            self._sweep(ledger)

    # Creating --------------------------------------------------------------------------------

    def _create(self, wanted: Wanted, sending: Sending) -> Handle | None:
        name = f"{wanted.parts.content_id}-{secrets.token_hex(8)}"
        pending = Handle("", wanted.key, wanted.parts.content_id, name, 0.0)

        def before_send(body: bytes) -> None:
            sending.record(self._requested(wanted, name, body, sending), payloads=(body,))

        try:
            exchanged = self._client.create_cache(
                wanted.model, wanted.parts, name, wanted.ttl_seconds, wanted.seconds, before_send
            )
        except Failure as failure:
            return self._without_reply(pending, wanted, failure, sending)
        if exchanged.status != 200:
            self._turned_down(pending, exchanged, sending)
            return None
        handle = self._handle(exchanged, pending, wanted)
        if handle is None:
            unreadable = Failure("no_handle", "the reply names no cache", retryable=False)
            return self._without_reply(pending, wanted, unreadable, sending)
        return self._keep(handle, exchanged, wanted, sending, adopted=False)

    def _requested(
        self, wanted: Wanted, name: str, body: bytes, sending: Sending
    ) -> CacheCreateRequested:
        return CacheCreateRequested(
            at=sending.now(),
            request=sending.request,
            key=wanted.key,
            content_id=wanted.parts.content_id,
            display_name=name,
            model=wanted.model,
            ttl_seconds=wanted.ttl_seconds,
            estimated_tokens=wanted.estimated_tokens,
            body=_ref(body),
        )

    def _keep(
        self,
        handle: Handle,
        exchanged: Exchanged,
        wanted: Wanted,
        sending: Sending,
        *,
        adopted: bool,
    ) -> Handle:
        reply = exchanged.body
        sending.record(
            CacheCreated(
                at=sending.now(),
                key=handle.key,
                display_name=handle.display_name,
                expires_at=_expiry(exchanged.body),
                reply=_ref(reply),
                tokens=handle.tokens,
                adopted=adopted,
            ),
            payloads=(reply,),
        )
        if handle.tokens and wanted.estimated_tokens:
            self.tokens_per_estimate = handle.tokens / wanted.estimated_tokens
        self._handles[handle.key] = handle
        self._unknown.pop(handle.key, None)
        return handle

    def _turned_down(self, pending: Handle, exchanged: Exchanged, sending: Sending) -> None:
        minimum = replies.stated_minimum(exchanged)
        failure = replies.failure(exchanged)
        kind = "too_small" if minimum is not None else failure.kind
        if minimum is not None:
            self.minimum_tokens = minimum
        self._count_failure(pending.key, kind, failure.message, for_good=not failure.retryable)
        if exchanged.status == 429:
            self._refused[pending.key] = f"{kind}: {failure.message}"
        reply = failure.partial or b""
        sending.record(
            CacheCreateFailed(
                at=sending.now(),
                key=pending.key,
                display_name=pending.display_name,
                kind=kind,
                message=failure.message,
                status=exchanged.status,
                minimum_tokens=minimum,
                reply=_ref(reply),
            ),
            payloads=(reply,),
        )

    def _without_reply(
        self, pending: Handle, wanted: Wanted, failure: Failure, sending: Sending
    ) -> Handle | None:
        """Nothing was sent, or it may have been created all the same: then look for it."""
        self._count_failure(pending.key, failure.kind, failure.message, for_good=False)
        if failure.kind == "connect" or not self._client.line.sent:
            sending.record(
                CacheCreateFailed(
                    at=sending.now(),
                    key=pending.key,
                    display_name=pending.display_name,
                    kind=failure.kind,
                    message=failure.message,
                )
            )
            return None
        reason = f"{failure.kind}: {failure.message}"
        sending.record(
            CacheCreateUnknown(
                at=sending.now(), key=pending.key, display_name=pending.display_name, reason=reason
            )
        )
        self._unknown[pending.key] = pending
        return self._find(pending, wanted, sending)

    def _count_failure(self, key: str, kind: str, message: str, *, for_good: bool) -> None:
        self._failures[key] = self._failures.get(key, 0) + 1
        if for_good or self._failures[key] >= CREATIONS:
            self._refused[key] = f"{kind}: {message}"

    # Looking for what a lost reply created ---------------------------------------------------

    def _find(self, lost: Handle, wanted: Wanted, sending: Sending) -> Handle | None:
        """Return the cache whose reply was lost; it stays unknown only if nobody can tell."""
        listed = self._listed(lost.display_name)
        if listed is None:
            return None
        handle = self._handle(listed[0], lost, wanted) if listed else None
        if handle is None:
            del self._unknown[lost.key]
            return None
        return self._keep(handle, listed[0], wanted, sending, adopted=True)

    def _listed(self, display_name: str) -> list[Exchanged] | None:
        """Return the entry of a name as if it were its creation's reply; None without an answer."""
        token: object = ""
        for _ in range(LIST_PAGES):
            page = self._page(str(token))
            if page is None:
                return None
            items = page.get("cachedContents")
            for item in items if isinstance(items, list) else []:
                if isinstance(item, dict) and item.get("displayName") == display_name:
                    return [Exchanged(200, {}, canonical.to_bytes(item))]
            token = page.get("nextPageToken") or ""
            if token == "":
                return []
            if not isinstance(token, str) or not PAGE_TOKEN.fullmatch(token):
                return None
        return None

    def _page(self, token: str) -> dict[str, object] | None:
        try:
            exchanged = self._client.list_caches(token, LOOK_SECONDS)
        except Failure:
            return None
        return _object(exchanged.body) if exchanged.status == 200 else None

    def _handle(self, exchanged: Exchanged, pending: Handle, wanted: Wanted) -> Handle | None:
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
            self._clock() + _lifetime(value, wanted.ttl_seconds) - MARGIN_SECONDS,
            tokens or None,
        )

    # Deleting --------------------------------------------------------------------------------

    def _delete(self, handle: Handle) -> tuple[str, int | None]:
        try:
            exchanged = self._client.delete_cache(handle.name, DELETE_SECONDS)
        except Failure:
            return "failed", None
        if exchanged.status == 200:
            return "deleted", 200
        return ("gone" if exchanged.status in (403, 404) else "failed"), exchanged.status

    def _sweep(self, ledger: Ledger) -> None:
        """Delete what lost replies created after all."""
        for lost in list(self._unknown.values()):
            listed = self._listed(lost.display_name)
            name = (_object(listed[0].body) or {}).get("name") if listed else None
            outcome: tuple[str, int | None] = ("left_to_expire" if listed is None else "gone", None)
            if isinstance(name, str) and HANDLE.fullmatch(name):
                outcome = self._delete(Handle(name, lost.key, lost.content_id, "", 0.0))
            ledger.record(
                CacheDeleted(at=ledger.now(), key=lost.key, outcome=outcome[0], status=outcome[1])
            )
        self._unknown.clear()


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


def _ref(data: bytes) -> Ref:
    return Ref(digest=canonical.digest(data), size=len(data))
