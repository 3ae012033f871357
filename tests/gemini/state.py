"""What the local service remembers: its clock, models, caches, earlier prompts, and a log."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tests.gemini.rules import Json


@dataclass(frozen=True)
class ModelRow:
    """What one model can do; sizes in tokens."""

    explicit_cache: bool = True
    min_cache_tokens: int = 2_048
    implicit_min: int = 2_048
    versions: tuple[str, ...] = ("v1", "v1beta")
    input_limit: int = 1_048_576
    output_limit: int = 65_536
    thinking: str = "budget"  # budget, level, both
    levels: tuple[str, ...] = ("MINIMAL", "LOW", "MEDIUM", "HIGH")
    thinks_always: bool = False  # a budget of 0 is refused
    strict_sampling: bool = False  # penalties and several candidates are refused
    prefill: bool = True  # a request may end with a model turn


_THREE = ModelRow(min_cache_tokens=4_096, implicit_min=4_096, thinking="both")

# docs: the newest pages; the minimum moved four times, so tests set it themselves where it matters.
CATALOGUE = {
    "gemini-2.5-flash": ModelRow(),
    "gemini-2.5-pro": ModelRow(thinks_always=True),
    "gemini-3.5-flash": _THREE,
    "gemini-3.8-flash": _THREE,
    "gemini-3.1-pro-preview": ModelRow(
        min_cache_tokens=4_096, implicit_min=4_096, thinking="both", versions=("v1beta",)
    ),
    "gemini-4-argon": ModelRow(
        explicit_cache=False,
        implicit_min=4_096,
        thinking="level",
        levels=("LOW", "MEDIUM", "HIGH"),
        strict_sampling=True,
        prefill=False,
    ),
}


class Clock:
    """A clock that stands still until it is moved; it starts at the real time."""

    def __init__(self, now: datetime | None = None) -> None:
        self.now = now or datetime.now(UTC)

    def advance(self, seconds: float) -> datetime:
        """Move on by `seconds` and return the new time."""
        self.now += timedelta(seconds=seconds)
        return self.now


@dataclass
class Cache:
    """One cachedContents resource; what it holds is kept as parsed, with lowerCamel names."""

    name: str
    model: str
    key: str = field(repr=False)
    content: Json = field(repr=False)
    tokens: int
    created: datetime
    updated: datetime
    expires: datetime
    display_name: str = ""
    uses: int = 0
    ended: datetime | None = None
    end: str | None = None  # deleted, expired, evicted

    def alive(self, now: datetime) -> bool:
        """Say whether a request at `now` could still use it."""
        return self.ended is None and now < self.expires

    def stop(self, now: datetime, how: str) -> None:
        """End it, unless it ended before."""
        if self.ended is None:
            self.ended, self.end = min(now, self.expires), how

    def token_hours(self, now: datetime) -> float:
        """Return the storage used so far, in tokens times hours."""
        until = self.ended or min(now, self.expires)
        return self.tokens * (until - self.created).total_seconds() / 3_600

    def document(self) -> Json:
        """Return it as the service shows it: never what it holds."""
        return {
            "name": self.name,
            "model": f"models/{self.model}",
            "createTime": stamp(self.created),
            "updateTime": stamp(self.updated),
            "expireTime": stamp(self.expires, nanoseconds=True),
            "displayName": self.display_name,
            "usageMetadata": {"totalTokenCount": self.tokens},
        }


@dataclass
class Exchange:
    """One request as it arrived, and what became of it."""

    number: int
    method: str
    path: str
    operation: str
    headers: dict[str, str]  # lower-case names; holds the key
    body: bytes
    json: object = None  # the body as parsed; None when it is no JSON
    cache: str | None = None  # the cachedContents name that it names
    status: int | None = None  # None: no status line was sent
    rule: str | None = None  # the rule that refused it
    fault: str | None = None  # the fault that met it
    reply: bytes = b""  # the reply's body as handled, before a fault cut it


@dataclass
class Prompts:
    """Earlier prompts by model and key, for implicit hits on a common prefix."""

    mode: str | int = "off"  # off, ideal, or how many hits are missed first
    seen: dict[tuple[str, str], deque[tuple[datetime, bytes]]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=64))
    )
    missed: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))

    def hit(self, owner: tuple[str, str], prompt: bytes, now: datetime, least: int) -> int:
        """Remember `prompt`; return the tokens that an earlier one already had at its start.

        Steps of 256 tokens (assumption), 4 bytes each, entries live 24 hours (docs).
        """
        earlier = [old for at, old in self.seen[owner] if now - at < timedelta(hours=24)]
        self.seen[owner].append((now, prompt))
        tokens = max((common_prefix(old, prompt) for old in earlier), default=0) // 4 // 256 * 256
        if self.mode == "off" or tokens < max(least, 1):
            return 0
        if isinstance(self.mode, int) and self.missed[owner] < self.mode:
            self.missed[owner] += 1
            return 0
        return tokens


def common_prefix(one: bytes, other: bytes) -> int:
    """Return how many bytes both start with, by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def count_tokens(text: str) -> int:
    """Count four UTF-8 bytes as one token, rounded up: not Gemini's count, but the same always."""
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / 4)


def stamp(at: datetime, *, nanoseconds: bool = False) -> str:
    """Write a time as the service does: microseconds, or nanoseconds for an expiry."""
    text = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return text + ("828Z" if nanoseconds else "Z")
