"""Remote caches as the ledger tells of them: their lives, what they saved, and why one missed.

Everything here is computed from events. A cause that the events do not hold is never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ledger import events as e
from ledger.errors import LedgerDamaged
from ledger.reader import Entry
from projections.state import MALFORMED, fault

MILLION = 1_000_000

_MOST = 10**15
"""A million dollars in nano-USD; nobody has so many tokens either."""


@dataclass(frozen=True)
class Read:
    """One request that named a cache. Tokens are None while unmeasured."""

    request: str
    attempt: int
    prompt: int | None = None
    cached: int | None = None
    price: dict[str, Any] | None = None
    rejected: bool = False
    answered: bool = False


@dataclass(frozen=True)
class Life:
    """One remote cache, from its creation to its end.

    Attributes:
        estimated_tokens: its size before it was created.
        tokens: its size as the provider stated it.
        expected: nano-USD by each way, of the decision that created it.
        ttl_seconds: lifetime asked for; None if the record does not hold it.
        end: empty while it lives, else `deleted`, `gone`, `failed`, `left_to_expire`, or the reason
            for which its handle was lost.
        ended_at: moment of the event that says so.
        inherited: it was created before the latest fork; the origin may still use it.
        storage_priced: what was expected of it includes its storage.
    """

    key: str
    content_id: str
    display_name: str
    model: str
    created_at: str
    expires_at: str
    estimated_tokens: int
    tokens: int | None
    adopted: bool
    expected: dict[str, Any]
    ttl_seconds: int | None = None
    creation_factor: int = 1
    reads: tuple[Read, ...] = ()
    end: str = ""
    ended_at: str = ""
    settled: bool = False
    inherited: bool = False
    storage_priced: bool = True

    @property
    def size(self) -> int:
        """Return its tokens, as stated, else as estimated."""
        return self.estimated_tokens if self.tokens is None else self.tokens


def lives(entries: Iterable[Entry]) -> list[Life]:
    """Return every remote cache in the order of creation."""
    found: list[Life] = []
    asked: dict[str, e.CacheCreateRequested] = {}
    decided: dict[str, e.CacheDecided] = {}
    keys: dict[tuple[str, int], str] = {}
    for _, event in entries:
        match event:
            case e.CacheDecided():
                decided[event.key] = event
                keys[event.request, event.attempt] = event.key
            case e.CacheCreateRequested():
                asked[event.display_name] = event
            case e.CacheCreated():
                made = asked.get(event.display_name)
                found.append(_born(event, made, decided.get(event.key)))
            case e.RequestSent() if event.cache:
                _name(found, event, keys.get((event.request, event.attempt)))
            case e.UsageMeasured() | e.CacheRejected() | e.ResponseReceived():
                _change_read(found, event)
            case e.CacheLost():
                _end(found, event.key, event.reason, event.at)
            case e.CacheDeleted():
                _end(found, event.key, event.outcome, event.at)
            case e.CacheSettled():
                _settle_first(found, event.key)
            case e.CaseForked():
                found = [replace(life, inherited=True) for life in found]
    return found


def abandoned(entries: Iterable[Entry], now: str) -> list[e.Event]:
    """Return the events for caches of a process that is gone: their handles died with it.

    So did the knowledge of a creation that was under way: nobody but its process may look for it.
    What was there before the latest fork is the origin's, which may still use it.
    """
    found = list(entries)
    events: list[e.Event] = []
    for life in lives(found):
        if not life.end and not life.inherited:
            events += [
                e.CacheLost(at=now, key=life.key, reason="restart"),
                e.CacheDeleted(at=now, key=life.key, outcome="left_to_expire"),
            ]
    for asked, told in _under_way(found):
        if not told:
            events.append(
                e.CacheCreateUnknown(
                    at=now, key=asked.key, display_name=asked.display_name, reason=_DIED
                )
            )
        events.append(e.CacheDeleted(at=now, key=asked.key, outcome="left_to_expire"))
    return events


_DIED = "restart: the process ended before the reply was recorded"


def _under_way(entries: Iterable[Entry]) -> list[tuple[e.CacheCreateRequested, bool]]:
    """Return the creations without an end, and whether the record says that they are unknown.

    A process that stopped in order has looked for those whose reply it lost.
    """
    asked: dict[str, e.CacheCreateRequested] = {}
    unknown: set[str] = set()
    for _, event in entries:
        match event:
            case e.CacheCreateRequested():
                asked[event.display_name] = event
            case e.CacheCreated() | e.CacheCreateFailed():
                asked.pop(event.display_name, None)
            case e.CacheCreateUnknown():
                unknown.add(event.display_name)
            case e.RunStopped() | e.CaseForked():
                asked.clear()
            case e.CacheDeleted():
                asked = {name: x for name, x in asked.items() if x.key != event.key}
    return [(event, name in unknown) for name, event in asked.items()]


def settlements(entries: Iterable[Entry], now: str) -> list[e.Event]:
    """Return what each ended and not yet settled cache saved; not of those before a fork.

    Raises:
        LedgerDamaged: a price or an expectation is not of our making.
    """
    return [
        settle(life, now)
        for life in lives(entries)
        if life.end and not life.settled and not life.inherited
    ]


def settle(life: Life, now: str) -> e.CacheSettled:
    """Return what a cache actually saved against sending its prefix inline with every request.

    saved = Σ min(cached, T)·(p - c) - k·T·p - storage, with T its tokens, k the creation factor, p
    and c the prices of the prompt and of cached tokens in the row that billed the read; creation
    and storage are counted by the row of the first one. Cached tokens beyond T are the provider's
    implicit caching. Unmeasured reads are left out, not zero; without a price of storage, or
    without a lifetime, storage and saving are unknown.

    Raises:
        LedgerDamaged: a price or an expectation is not of our making.
    """
    try:
        return _settled(life, now)
    except MALFORMED as error:
        raise LedgerDamaged(
            f"cache {life.display_name[:40]}: what it cost rests on nonsense ({fault(error)})"
        ) from None


def _settled(life: Life, now: str) -> e.CacheSettled:
    _check_numbers(life)
    measured = [read for read in life.reads if read.cached is not None]
    price = next((read.price for read in measured if read.price), None)
    lifetime = _lifetime_ms(life)
    cached = sum(read.cached or 0 for read in measured)
    ours = sum(_of(life, read) for read in measured)
    storage = saved = creation = None
    if price:
        creation = _per_million(life.creation_factor * life.size * price["input"])
    if price and price.get("cached") is not None:
        storage = _storage(life.size, price.get("storage"), lifetime)
    if creation is not None and storage is not None:
        saved = sum(_saved(life, read) for read in measured) // MILLION - creation - storage
    return e.CacheSettled(
        at=now,
        key=life.key,
        reads=len(measured),
        cached_tokens=cached if measured else None,
        lifetime_ms=lifetime,
        storage_nano_usd=storage,
        saved_nano_usd=saved,
        basis={
            "display_name": life.display_name,
            "tokens": life.size,
            "tokens_from": "the provider" if life.tokens is not None else "estimate",
            "estimated_tokens": life.estimated_tokens,
            "implicit_tokens": cached - ours,
            "named_by": len(life.reads),
            "unmeasured_reads": sum(r.answered and r.cached is None for r in life.reads),
            "ended": life.end,
            "creation_factor": life.creation_factor,
            "creation_nano_usd": creation,
            "price": price,
            "expected_nano_usd": life.expected,
        },
    )


# Lives -------------------------------------------------------------------------------------------


def _born(
    event: e.CacheCreated, asked: e.CacheCreateRequested | None, decided: e.CacheDecided | None
) -> Life:
    basis = decided.basis if decided else {}
    return Life(
        key=event.key,
        content_id=asked.content_id if asked else "",
        display_name=event.display_name,
        model=asked.model if asked else "",
        created_at=event.at,
        expires_at=event.expires_at,
        estimated_tokens=asked.estimated_tokens if asked else 0,
        tokens=event.tokens,
        adopted=event.adopted,
        expected=basis.get("expected_nano_usd") or {},
        storage_priced=storage_priced(basis),
        ttl_seconds=asked.ttl_seconds if asked else None,
        creation_factor=basis.get("creation_factor") or 1,
    )


def storage_priced(basis: Mapping[str, Any]) -> bool:
    """Tell whether the costs expected in a decision include storage; without its price they count
    it as nothing.
    """
    price = basis.get("price")
    return isinstance(price, Mapping) and price.get("storage") is not None


def _name(found: list[Life], event: e.RequestSent, key: str | None) -> None:
    """Add a read to the latest living cache of its decision's key; two keys may share one content.

    Args:
        found: changed in place.
        event: the request.
        key: as its decision has it; None if the record holds no decision.
    """

    def is_meant(life: Life) -> bool:
        named = life.content_id == event.cache if key is None else life.key == key
        return named and not life.end and not life.inherited

    read = Read(event.request, event.attempt)
    _change(found, is_meant, lambda life: replace(life, reads=(*life.reads, read)))


def _end(found: list[Life], key: str, how: str, at: str) -> None:
    """End the latest living cache of a key; one that a restart lost is still left to expire."""
    _change(
        found,
        lambda life: life.key == key and life.end in ("", "restart") and not life.inherited,
        lambda life: replace(life, end=how, ended_at=at),
    )


def _change(
    found: list[Life], is_meant: Callable[[Life], bool], change: Callable[[Life], Life]
) -> None:
    """Change the latest cache that is meant."""
    for index in range(len(found) - 1, -1, -1):
        if is_meant(found[index]):
            found[index] = change(found[index])
            return


_Told = e.UsageMeasured | e.CacheRejected | e.ResponseReceived


def _change_read(found: list[Life], event: _Told) -> None:
    for index, life in enumerate(found):
        if any((r.request, r.attempt) == (event.request, event.attempt) for r in life.reads):
            found[index] = replace(life, reads=tuple(_told(read, event) for read in life.reads))


def _told(read: Read, event: _Told) -> Read:
    if (read.request, read.attempt) != (event.request, event.attempt):
        return read
    if isinstance(event, e.CacheRejected):
        return replace(read, rejected=True)
    if isinstance(event, e.ResponseReceived):
        return replace(read, answered=True)
    price = event.price or None
    return replace(read, answered=True, prompt=event.prompt, cached=event.cached, price=price)


def _settle_first(found: list[Life], key: str) -> None:
    for index, life in enumerate(found):
        if life.key == key and life.end and not life.settled and not life.inherited:
            found[index] = replace(life, settled=True)
            return


def _check_numbers(life: Life) -> None:
    """Refuse what is no whole number: a text times a large number is a text without end."""
    numbers = [life.creation_factor, life.size]
    numbers += [life.expected[way] for way in ("none", "explicit") if life.expected]
    for read in life.reads:
        if read.price and read.price.get("cached") is not None:
            price = read.price
            numbers += [price["input"], price["cached"], price.get("storage") or 0]
            numbers += [read.cached or 0]
    for number in numbers:
        if type(number) is not int or abs(number) > _MOST:
            raise TypeError(f"{type(number).__name__} is no amount")


def _of(life: Life, read: Read) -> int:
    """Return the tokens that a request read from this cache and from nothing else."""
    return min(read.cached or 0, life.size)


def _saved(life: Life, read: Read) -> int:
    """Return what a read saved, in millionths of a nano-USD."""
    price = read.price or {}
    if price.get("cached") is None:
        return 0
    saved: int = _of(life, read) * (price["input"] - price["cached"])
    return saved


def _lifetime_ms(life: Life) -> int | None:
    """Return how long it was stored: until it was gone, at most the lifetime asked for.

    Both ends are of the local clock: the server's expiry is of another one. None if the record
    does not hold it, or if the local clock was set back in between.
    """
    asked = None if life.ttl_seconds is None else life.ttl_seconds * 1000
    if life.end not in _GONE:
        return asked
    try:
        created, ended = map(datetime.fromisoformat, (life.created_at, life.ended_at))
        passed = round((ended - created).total_seconds() * 1000)
    except (ValueError, TypeError):
        return None
    if passed < 0:
        return None
    return passed if asked is None else min(passed, asked)


_GONE = frozenset({"deleted", "gone", "rejected"})
"""Ends after which nothing is stored any more."""


def _storage(tokens: int, price: int | None, lifetime_ms: int | None) -> int | None:
    if price is None or lifetime_ms is None:
        return None
    return -(-tokens * price * lifetime_ms // (MILLION * 3_600_000))


def _per_million(product: int) -> int:
    return -(-product // MILLION)


# Decisions ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Decided:
    """A cache decision of one attempt and what came of it.

    Attributes:
        position: of the decision.
        outcome: `read`, `not_read`, `unmeasured`, `unanswered`, `rejected`, `inline`, `failed`,
            `unsent`.
        prompt: tokens of the prompt; None if unmeasured.
        cached: tokens read from a cache; None if unmeasured.
    """

    position: int
    event: e.CacheDecided
    outcome: str = "unsent"
    prompt: int | None = None
    cached: int | None = None


def decisions(entries: Iterable[Entry]) -> list[Decided]:
    """Return the final cache decision of every attempt, with what came of it."""
    found: dict[tuple[str, int], Decided] = {}
    for position, event in entries:
        match event:
            case e.CacheDecided():
                found[event.request, event.attempt] = Decided(position, event)
            case e.RequestSent():
                _outcome(found, event, "unanswered" if event.cache else "inline")
            case e.ResponseReceived():
                _outcome(found, event, "unmeasured", only="unanswered")
            case e.CacheRejected():
                _outcome(found, event, "rejected")
            case e.RequestFailed():
                _outcome(found, event, "failed", unless="rejected")
            case e.UsageMeasured():
                _measured(found, event)
    return list(found.values())


def _outcome(
    found: dict[tuple[str, int], Decided],
    event: e.RequestSent | e.ResponseReceived | e.CacheRejected | e.RequestFailed,
    outcome: str,
    unless: str = "",
    only: str = "",
) -> None:
    at = (event.request, event.attempt)
    if at in found and found[at].outcome != unless and only in ("", found[at].outcome):
        found[at] = replace(found[at], outcome=outcome)


def _measured(found: dict[tuple[str, int], Decided], event: e.UsageMeasured) -> None:
    at = (event.request, event.attempt)
    if at not in found:
        return
    outcome = found[at].outcome
    if outcome in ("unanswered", "unmeasured"):
        outcome = _reading(event.cached)
    found[at] = replace(found[at], outcome=outcome, prompt=event.prompt, cached=event.cached)


def _reading(cached: int | None) -> str:
    if cached is None:
        return "unmeasured"
    return "read" if cached else "not_read"


def hit_rate(entries: Iterable[Entry]) -> tuple[int, int]:
    """Return cached and prompt tokens over all measured attempts that named a cache."""
    read = [d for d in decisions(entries) if d.outcome in ("read", "not_read")]
    return sum(d.cached or 0 for d in read), sum(d.prompt or 0 for d in read)


def named(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield the requests that a cache decision was made for."""
    yield from dict.fromkeys(decided.event.request for decided in decisions(entries))
