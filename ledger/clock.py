"""Where time, identity and randomness enter: here, and from here only into events.

A projection never calls these. Tests and frozen cases replace them (`Sources`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def _now() -> str:
    moment = datetime.now(UTC)  # noqa: TID251 - this is the one place
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True)
class Sources:
    """`now` gives UTC as RFC 3339 with microseconds; `random_bytes(n)` gives n random bytes."""

    now: Callable[[], str] = _now
    random_bytes: Callable[[int], bytes] = secrets.token_bytes

    def identity(self, prefix: str) -> str:
        """Return a new identity: the prefix, a hyphen and 96 random bits in hex."""
        return f"{prefix}-{self.random_bytes(12).hex()}"
