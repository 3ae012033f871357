"""Remote caches of one process: created once for a key, reused, lost, deleted. Handles die with it.

What is lost here costs money and never information: the request is rebuilt in full.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable

from ledger.events import CacheDeleted, CacheLost
from phases.providers.base import Failure, Ledger, Sending
from phases.providers.gemini import replies
from phases.providers.gemini.client import Client
from phases.providers.gemini.creating import Creator, Handle, NotCreated, Wanted

DELETE_SECONDS = 10.0
FAILURES = 2
"""How often a prefix may fail to be cached before it is left alone in this process."""


class Caches:
    """Handles by key. Safe for several threads: one creation a key, invalidated by comparison."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._creator = Creator(client, clock)
        self._lock = threading.RLock()
        self._flights: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._handles: dict[str, Handle] = {}
        self._rejected: list[Handle] = []
        self._refused: dict[str, str] = {}
        self._failures: defaultdict[str, int] = defaultdict(int)
        self.tokens_per_estimate: float | None = None

    @property
    def minimum_tokens(self) -> int | None:
        """Return the smallest cache that the service itself stated."""
        return self._creator.minimum_tokens

    def usable(self, key: str, ledger: Ledger) -> Handle | None:
        """Return the live handle of a key; one that expires soon is given up."""
        with self._lock:
            handle = self._handles.get(key)
            if handle is None or self._clock() < handle.ends:
                return handle
            self._forget(handle, "expired", ledger)
            return None

    def reject(self, handle: Handle, why: str, ledger: Ledger) -> bool:
        """Forget a handle that the service refused, if it is still its key's; tell whether it was.

        A service that refuses every use would else be asked for a new cache with every request.
        """
        with self._lock:
            if not self._forget(handle, "rejected", ledger):
                return False
            self._rejected.append(handle)
            self._count_failure(handle.key, f"refused when used: {why}", for_good=False)
            return True

    def refused(self, key: str) -> str:
        """Return why no cache of this key is created again; empty if it may be."""
        return self._refused.get(key, "")

    def create(self, wanted: Wanted, sending: Sending) -> Handle | None:
        """Return a handle: the live one, one whose reply was lost and is found, or a new one."""
        with self._lock:
            flight = self._flights[wanted.key]
        with flight:
            if handle := self.usable(wanted.key, sending):
                return handle
            try:
                handle = self._creator.create(wanted, sending)
            except NotCreated as why:
                with self._lock:
                    self._count_failure(
                        wanted.key, f"{why.kind}: {why.message}", for_good=why.for_good
                    )
                return None
            with self._lock:
                self._handles[wanted.key] = handle
                if handle.tokens and wanted.estimated_tokens:
                    self.tokens_per_estimate = handle.tokens / wanted.estimated_tokens
            return handle

    def release(self, ledger: Ledger) -> None:
        """Delete every cache of this process, those found at last included."""
        with self._lock:
            handles = [*self._rejected, *self._handles.values()]
            self._rejected.clear()
            self._handles.clear()
        for handle in handles:
            self._delete(handle, ledger)
        for pending in self._creator.lost():
            if found := self._creator.look(pending, ledger):
                self._delete(found, ledger)
            else:
                _deleted(pending.key, "left_to_expire", None, ledger)

    def _forget(self, handle: Handle, reason: str, ledger: Ledger) -> bool:
        if self._handles.get(handle.key) is not handle:
            return False
        del self._handles[handle.key]
        ledger.record(CacheLost(at=ledger.now(), key=handle.key, reason=reason))
        return True

    def _count_failure(self, key: str, why: str, *, for_good: bool) -> None:
        self._failures[key] += 1
        if for_good or self._failures[key] >= FAILURES:
            self._refused[key] = why

    def _delete(self, handle: Handle, ledger: Ledger) -> None:
        try:
            got = self._client.delete_cache(handle.name, DELETE_SECONDS)
        except Failure:
            _deleted(handle.key, "failed", None, ledger)
            return
        gone = got.status in (403, 404) or replies.cache_lost(got)
        outcome = "deleted" if got.status == 200 else "gone" if gone else "failed"
        _deleted(handle.key, outcome, got.status, ledger)


def _deleted(key: str, outcome: str, status: int | None, ledger: Ledger) -> None:
    ledger.record(CacheDeleted(at=ledger.now(), key=key, outcome=outcome, status=status))
