"""Remote caches as events tell of them: lives, what they saved, and why a request missed one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import canonical
from ledger import events as e
from ledger.errors import LedgerDamaged, PayloadWithheld
from ledger.reader import Entry
from projections.cache_causes import Why, causes
from projections.caching import (
    Decided,
    abandoned,
    decisions,
    hit_rate,
    lives,
    settle,
    settlements,
    storage_priced,
)

START = datetime(2026, 11, 30, 12, tzinfo=UTC)
KEY, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64
CONTENT = "sha256:" + "c" * 64
NOBODY = e.Ref(digest="sha256:" + "0" * 64, size=0)
PRICE = {"id": "p", "input": 750_000_000, "cached": 75_000_000, "output": 1, "storage": 500_000_000}
"""Nano-USD for a million tokens: 0.75 USD, 0.075 USD, and 0.50 USD for an hour."""

SCOPE = {"system": "sha256:s", "provider": "gemini", "endpoint": "https://x", "model": "m"}
STABLE = dict.fromkeys(("case", "sources", "interpretation", "policy", "tools", "catalogs"))

Json = dict[str, Any]


class Story:
    """Events as a run appends them, a second apart; also the reader of the case they make."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.payloads: dict[str, bytes] = {}
        self.now = START
        self.creations = 0

    def events(self, upto: int | None = None, *, after: int = 0) -> Iterator[Entry]:
        return iter(self.entries[after:upto])

    def payload(self, digest: str) -> bytes:
        if digest not in self.payloads:
            raise PayloadWithheld("it is withheld")
        return self.payloads[digest]

    def at(self, seconds: float = 0) -> str:
        return (self.now + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")

    def add(self, cls: type[e.Event], /, **fields: Any) -> int:
        """Append an event; return its position."""
        self.now += timedelta(seconds=1)
        self.entries.append(Entry(len(self.entries) + 1, cls(at=self.at(), **fields)))
        return len(self.entries)

    def follow(self, *events: e.Event) -> None:
        for event in events:
            self.entries.append(Entry(len(self.entries) + 1, event))

    def runs(self, number: int = 1) -> int:
        return self.add(e.RunStarted, run=number, program="tests")

    def prepared(self, request: str, content: Any) -> int:
        document = {"protocol": "p", "system": "s", "messages": [{"content": content}]}
        data = canonical.to_bytes(document)
        saved = e.Ref(digest=canonical.digest(data), size=len(data))
        self.payloads[saved.digest] = data
        return self.add(
            e.RequestPrepared,
            request=request,
            context="C1",
            phase="investigation",
            protocol="investigation_project_v11",
            document=saved,
            **PREPARED,
        )

    def decided(
        self, request: str, reason: str = "create", *, attempt: int = 1, key: str = KEY, **more: Any
    ) -> int:
        explicit = reason in ("create", "reuse", "required")
        fields: Json = {
            "provider": "gemini",
            "model": "m",
            "mode": "auto",
            "decision": "explicit" if explicit else "none",
            "partition": "stable_case_v1",
            "content_id": CONTENT,
            "basis": {"key_of": SCOPE, **BASIS},
        }
        return self.add(
            e.CacheDecided, request=request, attempt=attempt, reason=reason, key=key,
            **{**fields, **more},
        )  # fmt: skip

    def asks(
        self, request: str = "R1", key: str = KEY, tokens: int = 1000, ttl_seconds: int = 3600
    ) -> str:
        """Ask for a cache; return its name."""
        self.creations += 1
        name = f"{CONTENT}-{self.creations}"
        self.add(
            e.CacheCreateRequested, request=request, key=key, content_id=CONTENT,
            display_name=name, model="m", ttl_seconds=ttl_seconds, estimated_tokens=tokens,
        )  # fmt: skip
        return name

    def created(
        self,
        request: str = "R1",
        *,
        key: str = KEY,
        tokens: int | None = 1200,
        seconds: int = 3600,
        adopted: bool = False,
    ) -> int:
        name = self.asks(request, key, ttl_seconds=seconds)
        return self.add(
            e.CacheCreated, key=key, display_name=name, expires_at=self.at(seconds), reply=NOBODY,
            tokens=tokens, adopted=adopted,
        )  # fmt: skip

    def sent(self, request: str, *, attempt: int = 1, cache: str = CONTENT) -> int:
        return self.add(
            e.RequestSent, request=request, attempt=attempt, provider="gemini", model="m",
            endpoint="https://x", document=NOBODY.digest, cache=cache,
        )  # fmt: skip

    def measured(
        self,
        request: str,
        cached: int | None,
        *,
        attempt: int = 1,
        prompt: int | None = 5000,
        price: Json | None = None,
    ) -> int:
        return self.add(
            e.UsageMeasured, request=request, attempt=attempt, prompt=prompt, cached=cached,
            price=PRICE if price is None else price,
        )  # fmt: skip

    def read(self, request: str, cached: int | None = 1200, **more: Any) -> None:
        self.sent(request)
        self.measured(request, cached, **more)

    def answered(self, request: str, *, attempt: int = 1) -> int:
        return self.add(
            e.ResponseReceived, request=request, attempt=attempt, body=NOBODY, complete=True,
            elapsed_ms=1,
        )  # fmt: skip

    def forked(self) -> int:
        return self.add(
            e.CaseForked, trial_id="t2", origin_trial_id="t1", origin_position=1, origin_chain="",
        )  # fmt: skip

    def failed(self, request: str, *, attempt: int = 1, kind: str = "http_503") -> int:
        return self.add(
            e.RequestFailed, request=request, attempt=attempt, kind=kind, message="m",
            retryable=True, elapsed_ms=1,
        )  # fmt: skip

    def rejected(self, request: str, *, attempt: int = 1) -> int:
        position = self.add(
            e.CacheRejected, request=request, attempt=attempt, key=KEY, kind="not_found",
            message="403: CachedContent not found", status=403,
        )  # fmt: skip
        self.lost("rejected")
        self.failed(request, attempt=attempt, kind="cache_rejected")
        return position

    def lost(self, reason: str, key: str = KEY) -> int:
        return self.add(e.CacheLost, key=key, reason=reason)

    def deleted(self, outcome: str = "deleted", key: str = KEY) -> int:
        return self.add(e.CacheDeleted, key=key, outcome=outcome)

    def refused(self, request: str = "R1", kind: str = "http_500") -> int:
        name = self.asks(request)
        return self.add(
            e.CacheCreateFailed, key=KEY, display_name=name, kind=kind, message="no",
        )  # fmt: skip

    def unknown(self, request: str = "R1") -> int:
        name = self.asks(request)
        return self.add(e.CacheCreateUnknown, key=KEY, display_name=name, reason="timeout: late")


PREPARED: Json = {
    "versions": {},
    "estimator": "e",
    "form": "plain",
    "form_reason": "shortest",
    **dict.fromkeys(("characters", "plain_characters"), 1),
    **dict.fromkeys(("estimated_tokens", "plain_estimated_tokens"), 1),
}
BASIS: Json = {
    "tokens": 1000,
    "expected_reads": 2,
    "expected_nano_usd": {"none": 9, "implicit": 5, "explicit": 7},
    "price": {"id": "the row", "input": 3, "cached": 1, "output": 9, "storage": 1},
    "creation_factor": 1,
    "capability": {"minimum_tokens": 4096, "source": "the table"},
}


def whole(reads: Iterable[int | None] = (1200, 1200), **created: Any) -> Story:
    """Return a case whose cache was created, read and deleted."""
    story = Story()
    story.decided("R1")
    story.created(**created)
    for number, cached in enumerate(reads, start=1):
        story.read(f"R{number}", cached)
    story.deleted()
    return story


# Lives ------------------------------------------------------------------------------------------


def test_a_life_is_told_from_its_creation_to_its_end() -> None:
    story = whole()
    (life,) = lives(story.entries)
    assert (life.key, life.content_id, life.model) == (KEY, CONTENT, "m")
    assert (life.estimated_tokens, life.tokens, life.size) == (1000, 1200, 1200)
    assert [(r.request, r.attempt, r.prompt, r.cached) for r in life.reads] == [
        ("R1", 1, 5000, 1200), ("R2", 1, 5000, 1200),
    ]  # fmt: skip
    assert (life.end, life.ended_at, life.settled) == ("deleted", story.at(), False)
    assert (life.expected, life.creation_factor) == (BASIS["expected_nano_usd"], 1)


def test_a_size_that_was_not_stated_is_the_estimate() -> None:
    (life,) = lives(whole(tokens=None).entries)
    assert (life.tokens, life.size) == (None, 1000)


def test_an_adopted_cache_lives_like_any_other() -> None:
    story = Story()
    story.decided("R1")
    name = story.asks()
    story.add(e.CacheCreateUnknown, key=KEY, display_name=name, reason="timeout: late")
    story.add(
        e.CacheCreated, key=KEY, display_name=name, expires_at=story.at(60), reply=NOBODY,
        adopted=True,
    )  # fmt: skip
    story.read("R1")
    (life,) = lives(story.entries)
    assert (life.adopted, life.size, len(life.reads), life.end) == (True, 1000, 1, "")
    assert [type(event) for event in abandoned(story.entries, story.at())] == [
        e.CacheLost, e.CacheDeleted,
    ]  # fmt: skip


def test_caches_of_one_key_have_a_life_each() -> None:
    story = Story()
    for request, how in (("R1", "expired"), ("R2", "rejected"), ("R3", "")):
        story.decided(request)
        story.created(request)
        story.read(request)
        if how:
            story.lost(how)
    story.deleted()
    first, second, third = lives(story.entries)
    assert [life.end for life in (first, second, third)] == ["expired", "rejected", "deleted"]
    assert [life.reads[0].request for life in (first, second, third)] == ["R1", "R2", "R3"]


def test_a_deletion_of_a_lost_creation_ends_no_other_life() -> None:
    """The key had a cache before, which expired; then the reply to another creation was lost."""
    story = Story()
    story.created()
    story.lost("expired")
    story.unknown("R2")
    story.deleted("gone")
    (life,) = lives(story.entries)
    assert life.end == "expired"


def test_caches_of_two_keys_do_not_mix() -> None:
    story = Story()
    story.created("R1")
    story.read("R1")
    story.created("R2", key=OTHER)
    story.read("R2", 700)
    story.lost("expired", key=KEY)
    story.deleted(key=OTHER)
    first, second = lives(story.entries)
    assert (first.key, first.end, len(first.reads)) == (KEY, "expired", 1)
    assert (second.key, second.end, second.reads[0].cached) == (OTHER, "deleted", 700)


def test_a_request_reads_the_cache_of_its_decision_where_two_keys_share_one_content() -> None:
    """Two models, one prefix: the first cache is named after the second was created."""
    story = Story()
    story.decided("R1")
    story.created("R1")
    story.decided("R2", key=OTHER)
    story.created("R2", key=OTHER)
    story.read("R2", 700)
    story.decided("R3", "reuse")
    story.read("R3", 1100)
    first, second = lives(story.entries)
    assert [(read.request, read.cached) for read in first.reads] == [("R3", 1100)]
    assert [(read.request, read.cached) for read in second.reads] == [("R2", 700)]


def test_a_request_that_names_a_cache_of_no_known_key_reads_none() -> None:
    story = Story()
    story.created()
    story.decided("R2", "reuse", key=OTHER)
    story.read("R2")
    assert lives(story.entries)[0].reads == ()


def test_an_inline_request_reads_no_life() -> None:
    story = Story()
    story.created()
    story.sent("R1", cache="")
    story.measured("R1", 900)
    assert lives(story.entries)[0].reads == ()


def test_a_rejected_request_named_a_life_and_did_not_read_it() -> None:
    story = Story()
    story.created()
    story.sent("R1")
    story.rejected("R1")
    (life,) = lives(story.entries)
    assert (life.reads[0].rejected, life.reads[0].cached, life.end) == (True, None, "rejected")
    settled = settle(life, story.at())
    assert (settled.reads, settled.cached_tokens, settled.basis["named_by"]) == (0, None, 1)


# What is left of a dead process -----------------------------------------------------------------


def test_a_living_cache_of_a_dead_process_is_lost_and_left_to_expire() -> None:
    story = Story()
    story.created()
    lost, deleted = abandoned(story.entries, story.at())
    assert isinstance(lost, e.CacheLost)
    assert isinstance(deleted, e.CacheDeleted)
    assert (lost.key, lost.reason) == (KEY, "restart")
    assert (deleted.key, deleted.outcome) == (KEY, "left_to_expire")
    story.follow(lost, deleted)
    (life,) = lives(story.entries)
    assert life.end == "left_to_expire"
    assert abandoned(story.entries, story.at()) == []


def test_a_creation_that_was_under_way_is_unknown_and_left_to_expire() -> None:
    story = Story()
    name = story.asks()
    unknown, deleted = abandoned(story.entries, story.at())
    assert isinstance(unknown, e.CacheCreateUnknown)
    assert isinstance(deleted, e.CacheDeleted)
    assert (unknown.display_name, unknown.reason.partition(":")[0]) == (name, "restart")
    story.follow(unknown, deleted)
    assert abandoned(story.entries, story.at()) == []
    assert lives(story.entries) == []


def test_a_lost_reply_that_was_known_of_is_left_to_expire_and_not_told_twice() -> None:
    story = Story()
    story.unknown()
    (deleted,) = abandoned(story.entries, story.at())
    assert isinstance(deleted, e.CacheDeleted)
    story.follow(deleted)
    assert abandoned(story.entries, story.at()) == []


@pytest.mark.parametrize("end", ["refused", "deleted", "expired", "swept", "not found"])
def test_nothing_is_left_of_what_ended(end: str) -> None:
    story = Story()
    if end == "refused":
        story.refused()
    elif end == "not found":
        story.unknown()  # then it was not listed, and the run stopped in order
        story.add(e.RunStopped, run=1, reason="done")
    elif end == "swept":
        story.unknown()
        story.deleted("gone")
    else:
        story.created()
        story.deleted() if end == "deleted" else story.lost("expired")
    assert abandoned(story.entries, story.at()) == []


# What a fork took over --------------------------------------------------------------------------


def test_a_fork_says_nothing_of_caches_that_its_origin_may_still_use() -> None:
    story = Story()
    story.decided("R1")
    story.created()
    story.read("R1")
    story.asks("R2", key=OTHER)
    story.forked()
    assert abandoned(story.entries, story.at()) == []
    assert settlements(story.entries, story.at()) == []


def test_a_fork_settles_its_own_caches_and_none_from_before() -> None:
    """Its own has the key of one that the origin holds, and of one that ended unsettled."""
    story = whole([1200])
    story.created("R2")
    story.forked()
    story.runs(2)
    story.decided("R3")
    story.created("R3")
    story.read("R3", 900)
    story.lost("expired")
    (settled,) = settlements(story.entries, story.at())
    assert isinstance(settled, e.CacheSettled)
    assert (settled.cached_tokens, settled.basis["display_name"]) == (900, f"{CONTENT}-3")
    story.follow(settled)
    assert settlements(story.entries, story.at()) == []
    story.deleted("gone")  # of a creation whose reply was lost: not the origin's cache
    assert [life.end for life in lives(story.entries)] == ["deleted", "", "expired"]


# Settlement -------------------------------------------------------------------------------------


def test_what_a_cache_saved_is_reads_less_creation_and_storage() -> None:
    story = whole([1200, 1200, 1200])
    (settled,) = settlements(story.entries, story.at())
    assert isinstance(settled, e.CacheSettled)
    seconds = 7  # three reads of two events each, and the deletion
    storage = math.ceil(Fraction(1200 * 500_000_000 * seconds, 3600 * 10**6))
    saved = 3 * 1200 * (750 - 75) - 1200 * 750 - storage
    assert (settled.reads, settled.cached_tokens, settled.lifetime_ms) == (3, 3600, seconds * 1000)
    assert (settled.storage_nano_usd, settled.saved_nano_usd) == (storage, saved)
    assert settled.basis["price"] == PRICE
    assert settled.basis["ended"] == "deleted"
    assert settled.basis["tokens_from"] == "the provider"


def test_each_life_is_settled_once_and_only_when_it_ended() -> None:
    story = Story()
    story.created()
    story.read("R1")
    assert settlements(story.entries, story.at()) == []
    story.lost("expired")
    story.created("R2")
    story.read("R2")
    (first,) = settlements(story.entries, story.at())
    story.follow(first)
    assert settlements(story.entries, story.at()) == []
    story.deleted()
    (second,) = settlements(story.entries, story.at())
    assert isinstance(first, e.CacheSettled)
    assert isinstance(second, e.CacheSettled)
    assert first.basis["display_name"] != second.basis["display_name"]
    story.follow(second)
    assert settlements(story.entries, story.at()) == []


def test_tokens_beyond_the_cache_are_implicit_and_not_its_merit() -> None:
    story = whole([1200, 4000])
    (settled,) = settlements(story.entries, story.at())
    assert isinstance(settled, e.CacheSettled)
    assert (settled.cached_tokens, settled.basis["implicit_tokens"]) == (5200, 2800)
    (plain,) = settlements(whole([1200, 1200]).entries, story.at())
    assert isinstance(plain, e.CacheSettled)
    assert settled.saved_nano_usd == plain.saved_nano_usd


def test_unmeasured_reads_are_left_out_and_counted() -> None:
    settled = settle(lives(whole([1200, None, 0]).entries)[0], START.isoformat())
    assert (settled.reads, settled.cached_tokens) == (2, 1200)
    assert (settled.basis["named_by"], settled.basis["unmeasured_reads"]) == (3, 1)


def test_a_read_is_unmeasured_only_if_it_was_answered() -> None:
    story = Story()
    story.created()
    for request in ("R1", "R2", "R3"):
        story.sent(request)
    story.answered("R1")
    story.failed("R2")
    story.rejected("R3")
    settled = settle(lives(story.entries)[0], story.at())
    assert (settled.basis["named_by"], settled.basis["unmeasured_reads"]) == (3, 1)


def test_a_cache_that_nobody_measured_has_saved_something_unknown() -> None:
    settled = settle(lives(whole([None, None]).entries)[0], START.isoformat())
    assert (settled.reads, settled.cached_tokens) == (0, None)
    assert (settled.saved_nano_usd, settled.storage_nano_usd) == (None, None)


def test_without_a_price_nothing_is_said_of_money() -> None:
    story = Story()
    story.created()
    story.read("R1", price={})
    story.deleted()
    settled = settle(lives(story.entries)[0], story.at())
    assert (settled.reads, settled.cached_tokens) == (1, 1200)
    assert (settled.saved_nano_usd, settled.storage_nano_usd) == (None, None)


def test_without_a_price_of_storage_the_saving_is_unknown() -> None:
    story = Story()
    story.created()
    story.read("R1", price={name: PRICE[name] for name in ("id", "input", "cached", "output")})
    story.deleted()
    settled = settle(lives(story.entries)[0], story.at())
    assert (settled.reads, settled.cached_tokens) == (1, 1200)
    assert (settled.saved_nano_usd, settled.storage_nano_usd) == (None, None)


@pytest.mark.parametrize(
    "price",
    [
        {"cached": 1, "storage": 1},
        {"cached": 1, "storage": 1, "input": "9" * 9},
        {"cached": [1], "storage": 1, "input": 1},
        {"cached": 1, "storage": "1", "input": 1},
        {"cached": 1, "storage": 1, "input": 10**40},
    ],
)
def test_a_price_that_is_nonsense_is_damage_in_one_line(price: Json) -> None:
    story = Story()
    story.created()
    story.read("R1", price=price)
    story.deleted()
    with pytest.raises(LedgerDamaged, match="nonsense") as caught:
        settle(lives(story.entries)[0], story.at())
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("wrong", [{"expected_nano_usd": {"x": 1}}, {"creation_factor": "9" * 99}])
def test_a_decision_that_is_nonsense_is_damage_in_one_line(wrong: Json) -> None:
    story = Story()
    story.decided("R1", basis={**BASIS, **wrong})
    story.created()
    story.deleted()
    with pytest.raises(LedgerDamaged, match="nonsense"):
        settle(lives(story.entries)[0], story.at())


def test_reads_are_saved_at_the_price_that_billed_each() -> None:
    """A long prompt pays another row."""
    dear = {**PRICE, "id": "long", "input": 1_500_000_000, "cached": 150_000_000}
    story = Story()
    story.created()
    story.read("R1")
    story.read("R2", price=dear)
    story.deleted()
    settled = settle(lives(story.entries)[0], story.at())
    assert settled.storage_nano_usd is not None
    assert settled.saved_nano_usd == (
        1200 * (750 - 75) + 1200 * (1500 - 150) - 1200 * 750 - settled.storage_nano_usd
    )


@pytest.mark.parametrize("how", ["deleted", "gone"])
def test_a_deleted_cache_was_stored_until_then(how: str) -> None:
    story = Story()
    story.created(seconds=3600)
    story.read("R1")
    story.now += timedelta(seconds=100)
    story.deleted(how)
    assert settle(lives(story.entries)[0], story.at()).lifetime_ms == 103_000


@pytest.mark.parametrize("how", ["left_to_expire", "failed"])
def test_a_cache_that_is_left_is_stored_until_the_server_lets_it_expire(how: str) -> None:
    story = Story()
    story.created(seconds=3600)
    story.deleted(how)
    assert settle(lives(story.entries)[0], story.at()).lifetime_ms == 3_600_000


@pytest.mark.parametrize("noticed_after", [30, 90_000])
def test_an_expired_cache_was_stored_until_its_expiry_whenever_that_was_noticed(
    noticed_after: int,
) -> None:
    story = Story()
    story.created(seconds=60)
    story.read("R1")
    story.now += timedelta(seconds=noticed_after)
    story.lost("expired")
    assert settle(lives(story.entries)[0], story.at()).lifetime_ms == 60_000


def test_a_rejected_cache_was_not_stored_beyond_its_expiry() -> None:
    story = Story()
    story.created(seconds=60)
    story.sent("R1")
    story.now += timedelta(seconds=90_000)
    story.rejected("R1")
    assert settle(lives(story.entries)[0], story.at()).lifetime_ms == 60_000


@pytest.mark.parametrize("expires_at", ["", "soon", "1970-01-01T00:00:00Z", "9999-12-31T00:00:00Z"])
@pytest.mark.parametrize(("how", "stored_ms"), [("deleted", 3000), ("left_to_expire", 3_600_000)])
def test_a_lifetime_does_not_depend_on_the_clock_of_the_server(
    expires_at: str, how: str, stored_ms: int
) -> None:
    story = Story()
    name = story.asks()
    story.add(e.CacheCreated, key=KEY, display_name=name, expires_at=expires_at, reply=NOBODY)
    story.read("R1", 1000)
    story.deleted(how)
    settled = settle(lives(story.entries)[0], story.at())
    assert settled.lifetime_ms == stored_ms
    assert settled.storage_nano_usd
    assert settled.saved_nano_usd is not None


def test_a_clock_that_was_set_back_leaves_the_lifetime_unknown() -> None:
    story = Story()
    story.created()
    story.read("R1")
    story.now -= timedelta(seconds=100)
    story.deleted()
    settled = settle(lives(story.entries)[0], story.at())
    assert (settled.lifetime_ms, settled.storage_nano_usd, settled.saved_nano_usd) == (
        None, None, None,
    )  # fmt: skip


def test_a_clock_that_was_set_forward_gives_no_more_than_was_asked_for() -> None:
    story = Story()
    story.created(seconds=60)
    story.now += timedelta(days=400)
    story.deleted()
    assert settle(lives(story.entries)[0], story.at()).lifetime_ms == 60_000


def test_a_creation_that_is_withheld_leaves_the_time_until_the_expiry_unknown() -> None:
    story = Story()
    story.created()
    story.read("R1")
    story.deleted("left_to_expire")
    left = [x for x in story.entries if not isinstance(x.event, e.CacheCreateRequested)]
    settled = settle(lives(left)[0], story.at())
    assert (settled.lifetime_ms, settled.storage_nano_usd) == (None, None)


PRICES = st.fixed_dictionaries(
    {
        "input": st.integers(0, 10**10),
        "cached": st.integers(0, 10**10),
        "storage": st.none() | st.integers(0, 10**10),
    }
)


@given(
    st.integers(1, 10**6),
    st.lists(st.none() | st.integers(0, 10**6), min_size=1, max_size=6),
    PRICES,
    st.integers(0, 3),
)
def test_the_saving_is_the_formula_for_any_figures(
    tokens: int, reads: list[int | None], price: Json, factor: int
) -> None:
    story = Story()
    story.decided("R1", basis={**BASIS, "creation_factor": factor})
    story.created(tokens=tokens)
    for number, cached in enumerate(reads, start=1):
        story.read(f"R{number}", cached, price=price)
    story.deleted()
    settled = settle(lives(story.entries)[0], story.at())
    known = [cached for cached in reads if cached is not None]
    if not known or price["storage"] is None:
        assert settled.saved_nano_usd is settled.storage_nano_usd is None
        return
    ours = sum(min(cached, tokens) for cached in known)
    assert settled.lifetime_ms is not None
    hours = Fraction(settled.lifetime_ms, 3_600_000)
    storage = Fraction(tokens * price["storage"], 10**6) * hours
    creation = Fraction((factor or 1) * tokens * price["input"], 10**6)
    exact = Fraction(ours * (price["input"] - price["cached"]), 10**6) - creation - storage
    assert settled.saved_nano_usd is not None
    assert settled.storage_nano_usd == math.ceil(storage)
    assert exact - 3 < settled.saved_nano_usd <= exact


# Decisions --------------------------------------------------------------------------------------


def outcomes(story: Story) -> list[tuple[str, int, str]]:
    return [(d.event.request, d.event.attempt, d.outcome) for d in decisions(story.entries)]


def test_what_came_of_each_decision() -> None:
    story = Story()
    story.decided("R1")
    story.created()
    story.read("R1")
    story.decided("R2", "reuse")
    story.read("R2", 0)
    story.decided("R3", "reuse")
    story.read("R3", None)
    story.decided("R4", "reuse")
    story.sent("R4")
    story.rejected("R4")
    story.decided("R4", "cache_rejected", attempt=2)
    story.sent("R4", attempt=2, cache="")
    story.measured("R4", 0, attempt=2)
    story.decided("R5", "reuse")
    story.sent("R5")
    story.failed("R5")
    story.decided("R6", "reuse")
    assert outcomes(story) == [
        ("R1", 1, "read"), ("R2", 1, "not_read"), ("R3", 1, "unmeasured"), ("R4", 1, "rejected"),
        ("R4", 2, "inline"), ("R5", 1, "failed"), ("R6", 1, "unsent"),
    ]  # fmt: skip


def test_a_decision_that_was_revised_is_the_last_one() -> None:
    story = Story()
    story.decided("R1")
    story.refused()
    last = story.decided("R1", "rejected_before")
    story.sent("R1", cache="")
    (found,) = decisions(story.entries)
    assert (found.position, found.event.reason, found.outcome) == (
        last,
        "rejected_before",
        "inline",
    )


def test_the_hit_rate_is_over_measured_requests_that_named_a_cache() -> None:
    story = Story()
    story.decided("R1")
    story.created()
    story.read("R1", 1200, prompt=5000)
    story.decided("R2", "reuse")
    story.read("R2", 0, prompt=3000)
    story.decided("R3", "reuse")
    story.read("R3", None)
    story.decided("R4", "off")
    story.sent("R4", cache="")
    story.measured("R4", 900)
    assert hit_rate(story.entries) == (1200, 8000)
    assert hit_rate([]) == (0, 0)


def test_usage_without_a_decision_is_nobodys() -> None:
    story = Story()
    story.measured("R1", 10)
    story.failed("R2")
    assert decisions(story.entries) == []


# Causes -----------------------------------------------------------------------------------------


def cause(story: Story, request: str, attempt: int = 1) -> Why:
    (found,) = [why for why in causes(story, request) if why.attempt == attempt]
    return found


def expect(story: Story, request: str, code: str, *positions: int, attempt: int = 1) -> str:
    """Return the sentence of the cause that a request must have, shown by these events."""
    why = cause(story, request, attempt)
    (decided,) = [
        x.position
        for x in decisions(story.entries)
        if (x.event.request, x.event.attempt) == (request, attempt)
    ]
    assert (why.cause, why.positions) == (code, (*positions, decided))
    assert why.says
    return why.says


def begun() -> Story:
    """Return a run that created a cache with R1 and read it."""
    story = Story()
    story.runs()
    story.decided("R1")
    story.created()
    story.read("R1")
    return story


def test_the_first_request_found_none() -> None:
    expect(begun(), "R1", "first")


def test_a_request_that_read_it_is_a_hit() -> None:
    story = begun()
    story.decided("R2", "reuse")
    story.read("R2")
    assert expect(story, "R2", "hit") == "1200 of 5000 prompt tokens came from the cache"


def test_one_that_expired_is_named() -> None:
    story = begun()
    lost = story.lost("expired")
    story.decided("R2")
    story.created("R2")
    story.read("R2")
    expect(story, "R2", "expired", lost)


def test_a_restart_is_named_where_the_cache_was_left() -> None:
    story = begun()
    story.runs(2)
    lost = story.lost("restart")
    story.deleted("left_to_expire")
    story.decided("R2")
    expect(story, "R2", "restart", lost)


@pytest.mark.parametrize("runs", [1, 2, 3])
@pytest.mark.parametrize("outcome", ["deleted", "gone", "failed"])
def test_a_deletion_is_named_however_many_runs_came_after_it(runs: int, outcome: str) -> None:
    story = begun()
    deleted = story.deleted(outcome)
    for number in range(1, runs):
        story.runs(number + 1)
    story.decided("R2")
    assert "process ended" not in expect(story, "R2", "deleted", deleted)


def test_the_deletion_of_a_lost_creation_does_not_hide_that_its_reply_was_lost() -> None:
    story = Story()
    story.runs()
    story.decided("R1")
    unknown = story.unknown()
    story.decided("R1", "rejected_before")
    story.deleted("gone")
    story.runs(2)
    story.decided("R2")
    expect(story, "R2", "create_unknown", unknown)


def test_a_fork_that_does_not_find_its_origins_cache_names_the_fork() -> None:
    story = begun()
    forked = story.forked()
    story.runs(2)
    story.decided("R2")
    assert "origin" in expect(story, "R2", "forked", forked)


def test_a_rejection_is_named_for_the_attempt_the_next_one_and_the_next_request() -> None:
    story = begun()
    story.decided("R2", "reuse")
    story.sent("R2")
    rejected = story.rejected("R2")
    story.decided("R2", "cache_rejected", attempt=2)
    story.sent("R2", attempt=2, cache="")
    story.measured("R2", 0, attempt=2)
    story.decided("R3")
    story.created("R3")
    story.read("R3")
    says = expect(story, "R2", "rejected", rejected)
    assert "not_found: 403: CachedContent not found" in says
    expect(story, "R2", "cache_rejected", attempt=2)
    expect(story, "R3", "rejected", rejected + 1)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"model": "n"}, "model 'm' to 'n'"),
        ({"endpoint": "https://y"}, "endpoint 'https://x' to 'https://y'"),
        ({"system": "sha256:t"}, "system 'sha256:s' to 'sha256:t'"),
        ({"credential": "f00d"}, "credential None to 'f00d'"),
        ({"ttl_seconds": 60, "model": "n"}, "model 'm' to 'n', ttl_seconds None to 60"),
    ],
)
def test_a_changed_configuration_says_what_changed(changed: Json, said: str) -> None:
    story = begun()
    latest = next(x.position for x in story.entries if isinstance(x.event, e.CacheDecided))
    story.decided("R2", key=OTHER, basis={**BASIS, "key_of": {**SCOPE, **changed}})
    assert expect(story, "R2", "configuration_changed", latest) == f"changed: {said}"


def prefix_story(before: Json, after: Json, *between: tuple[type[e.Event], Json]) -> Story:
    view = {**STABLE, "evidence": [], "shared": {}}
    story = Story()
    story.runs()
    story.prepared("R1", {**view, **before})
    story.decided("R1")
    story.created()
    story.read("R1")
    for kind, fields in between:
        story.add(kind, **fields)
    story.prepared("R2", {**view, **after})
    story.decided("R2", key=OTHER)
    return story


def position_of(story: Story, kind: type[e.Event]) -> int:
    return [x.position for x in story.entries if isinstance(x.event, kind)][-1]


def test_a_changed_prefix_says_where_and_because_of_which_event() -> None:
    story = prefix_story(
        {"case": {"revision": 1}},
        {"case": {"revision": 2}},
        (e.CaseAmended, {"revision": 2}),
        (e.ObservationsExtracted, {"observations": (), "revision": 2, "package_id": "p"}),
    )
    amended = position_of(story, e.CaseAmended)
    says = expect(story, "R2", "prefix_changed", amended)
    assert says == (
        f"the prefix changed at $.case.revision because of event {amended} case.amended/1"
    )


def test_a_changed_prefix_without_a_known_event_names_the_path_only() -> None:
    story = prefix_story({"catalogs": {"files": [1]}}, {"catalogs": {"files": [1, 2]}})
    assert expect(story, "R2", "prefix_changed") == "the prefix changed at $.catalogs.files[1]"


def test_a_document_that_is_withheld_leaves_the_path_unknown() -> None:
    story = prefix_story({"case": 1}, {"case": 2})
    story.payloads.clear()
    latest = next(x.position for x in story.entries if isinstance(x.event, e.CacheDecided))
    assert expect(story, "R2", "prefix_changed", latest) == "the prefix changed"


def test_a_preparation_that_is_withheld_leaves_the_path_unknown() -> None:
    story = prefix_story({"case": 1}, {"case": 2})
    story.entries = [x for x in story.entries if not isinstance(x.event, e.RequestPrepared)]
    assert cause(story, "R2").says == "the prefix changed"


def test_a_key_that_was_there_before_another_is_told_by_its_own_life() -> None:
    story = begun()
    story.decided("R2", key=OTHER, basis={**BASIS, "key_of": {**SCOPE, "model": "n"}})
    story.created("R2", key=OTHER)
    story.read("R2")
    lost = story.lost("expired")
    story.decided("R3")
    expect(story, "R3", "expired", lost)


def test_a_creation_that_failed_is_named_by_the_request_and_the_next() -> None:
    story = Story()
    story.runs()
    story.decided("R1")
    failed = story.refused()
    story.decided("R1", "rejected_before", basis={**BASIS, "rejected": "http_500: no"})
    story.sent("R1", cache="")
    story.decided("R2")
    story.created("R2")
    story.read("R2")
    assert expect(story, "R1", "rejected_before", failed).endswith("(http_500: no)")
    assert "http_500" in expect(story, "R2", "create_failed", failed)


def test_a_creation_whose_reply_was_lost_is_named_by_the_next() -> None:
    story = Story()
    story.runs()
    story.decided("R1")
    unknown = story.unknown()
    story.decided("R1", "rejected_before")
    story.decided("R2")
    assert "timeout: late" in expect(story, "R2", "create_unknown", unknown)


def test_a_failed_creation_of_an_earlier_run_is_no_lost_handle() -> None:
    story = Story()
    story.runs()
    story.decided("R1")
    failed = story.refused()
    story.decided("R1", "rejected_before")
    story.runs(2)
    story.decided("R2")
    expect(story, "R2", "create_failed", failed)


@pytest.mark.parametrize("earlier", ["off", "too_few_reads", "below_minimum", "model_has_none"])
def test_a_request_after_ones_that_wanted_none_is_the_first(earlier: str) -> None:
    story = Story()
    story.runs()
    story.decided("R1", earlier)
    story.sent("R1", cache="")
    story.runs(2)
    story.decided("R2")
    expect(story, "R2", "first")


def test_a_cache_that_was_named_and_not_read_is_not_explained() -> None:
    story = begun()
    story.decided("R2", "reuse")
    story.read("R2", 0)
    assert expect(story, "R2", "provider_or_unknown").endswith("the record does not say why")


def test_a_cache_that_is_gone_without_an_event_is_not_explained() -> None:
    story = begun()
    story.decided("R2")
    assert "does not say why" in expect(story, "R2", "provider_or_unknown")


def test_a_named_cache_whose_reading_was_not_stated_is_unmeasured() -> None:
    story = begun()
    story.decided("R2", "reuse")
    story.read("R2", None)
    assert "did not state" in expect(story, "R2", "unmeasured")


@pytest.mark.parametrize("sent", [True, False])
def test_an_attempt_that_ended_before_an_answer_read_nothing_that_is_known(sent: bool) -> None:
    story = begun()
    story.decided("R2", "reuse")
    if sent:
        story.sent("R2")
        story.failed("R2")
    expect(story, "R2", "failed" if sent else "unsent")


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("off", "explicit caching is switched off (gemini.cache_mode)"),
        ("not_a_candidate", "this protocol has no part that stays the same"),
        ("shape_changed", "(ShapeChanged: a member is missing)"),
        ("model_has_none", "the model has no explicit caches"),
        ("below_minimum", "(1000 tokens, at least 4096: the table)"),
        ("too_few_reads", "(2 reads expected; nano-USD by way: none 9, implicit 5, explicit 7)"),
        ("rejected_before", "creating it failed before in this process"),
        ("cache_rejected", "the provider refused the cache of the attempt before"),
    ],
)
def test_a_decision_without_a_cache_is_its_own_cause(reason: str, says: str) -> None:
    story = Story()
    basis = BASIS | ({"detail": "ShapeChanged: a member is missing"} if "shape" in reason else {})
    story.decided("R1", reason, basis=basis)
    story.sent("R1", cache="")
    assert says in expect(story, "R1", reason)


def test_a_cost_expected_without_a_price_of_storage_is_unknown_and_not_too_low() -> None:
    story = Story()
    row = {name: value for name, value in BASIS["price"].items() if name != "storage"}
    story.decided("R1", "too_few_reads", basis=BASIS | {"price": row})
    story.sent("R1", cache="")
    assert "none 9, implicit 5, explicit unknown" in expect(story, "R1", "too_few_reads")
    assert not storage_priced(BASIS | {"price": row})
    assert not storage_priced(BASIS | {"price": None})
    assert storage_priced(BASIS)


def test_a_decision_of_a_later_release_is_shown_by_its_own_name() -> None:
    story = Story()
    story.decided("R1", "weather", decision="none")
    story.sent("R1", cache="")
    assert cause(story, "R1").cause == "weather"


def test_a_basis_that_is_nonsense_is_damage_in_one_line() -> None:
    story = Story()
    story.decided("R1", "below_minimum", basis={})
    with pytest.raises(LedgerDamaged, match=r"R1"):
        causes(story)


def test_causes_of_all_requests_are_those_of_each() -> None:
    story = begun()
    story.decided("R2", "reuse")
    story.read("R2")
    assert [why.request for why in causes(story)] == ["R1", "R2"]
    assert causes(story)[1:] == causes(story, "R2")
    assert causes(story, "R9") == []


def test_a_decision_knows_its_figures() -> None:
    (found,) = decisions(begun().entries)
    assert isinstance(found, Decided)
    assert (found.prompt, found.cached) == (5000, 1200)
