"""Why a request found no cache to read, or found one: from events only, never a guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger import events as e
from ledger.errors import LedgerDamaged, PayloadWithheld
from ledger.reader import CaseReader, Entry
from projections.caching import Decided, decisions, storage_priced
from projections.diffing import differences
from projections.partitions import VERSIONS, Whole
from projections.saw import saved_document
from projections.state import MALFORMED, fault
from projections.wording import counted

_SENTENCES: Mapping[str, str] = {
    "off": "explicit caching is switched off (gemini.cache_mode)",
    "not_a_candidate": "this protocol has no part that stays the same, or only a focused history",
    "shape_changed": "the view could not be divided, so the one original document went out",
    "model_has_none": "the model has no explicit caches",
    "below_minimum": "the prefix is below the smallest cache of this model",
    "too_few_reads": "a cache would cost more than it is expected to save",
    "rejected_before": "creating it failed before in this process",
    "cache_rejected": "the provider refused the cache of the attempt before",
}

_CAUSES: Mapping[str, tuple[type[e.Event], ...]] = {
    "case": (e.CaseAmended,),
    "sources": (e.ObservationsExtracted, e.EntitiesResolved, e.CaseInterpreted, e.ArtifactAdded),
    "interpretation": (e.CaseInterpreted,),
    "policy": (e.ConfigurationPinned,),
    "tools": (e.ConfigurationPinned,),
    "catalogs": (e.ArtifactAdded, e.ConfigurationPinned),
}
"""What changes a member of the prefix."""


@dataclass(frozen=True)
class Why:
    """The cause for one attempt.

    Attributes:
        cause: code, such as `hit`, `first`, `expired`, `restart`, `deleted`, `forked`,
            `prefix_changed`, `configuration_changed`, `rejected`, `create_failed`,
            `create_unknown`, `unmeasured`, `unanswered`, `failed`, `unsent`,
            `provider_or_unknown`, or a decision's reason.
        says: one sentence.
        positions: the events that show it.
    """

    request: str
    attempt: int
    decision: str
    reason: str
    outcome: str
    prompt: int | None
    cached: int | None
    cause: str
    says: str
    positions: tuple[int, ...]
    basis: Mapping[str, Any]


def causes(reader: CaseReader, request: str = "") -> list[Why]:
    """Return the cause for every attempt, or for those of one request.

    Raises:
        LedgerDamaged: a decision rests on something that is not of our making.
    """
    entries = [entry for entry in reader.events() if _matters(entry.event)]
    made = decisions(entries)
    return [
        _why(reader, entries, made[:index], decided)
        for index, decided in enumerate(made)
        if not request or decided.event.request == request
    ]


def _matters(event: e.Event) -> bool:
    causing = {cls for classes in _CAUSES.values() for cls in classes}
    return event.TOPIC.startswith(_TOPICS) or isinstance(event, tuple(causing))


_TOPICS = ("cache.", "request.", "usage.", "run.", "case.forked/")


def _why(reader: CaseReader, entries: list[Entry], earlier: list[Decided], decided: Decided) -> Why:
    event = decided.event
    try:
        cause, says, positions = _cause(reader, entries, earlier, decided)
    except MALFORMED as error:
        raise LedgerDamaged(
            f"request {event.request}: its cache decision rests on nonsense ({fault(error)})",
            decided.position,
        ) from None
    return Why(
        event.request,
        event.attempt,
        event.decision,
        event.reason,
        decided.outcome,
        decided.prompt,
        decided.cached,
        cause,
        says,
        (*positions, decided.position),
        event.basis,
    )


_Cause = tuple[str, str, tuple[int, ...]]


def _cause(
    reader: CaseReader, entries: list[Entry], earlier: list[Decided], decided: Decided
) -> _Cause:
    event = decided.event
    if decided.outcome == "rejected":
        return _rejected(entries, event)
    if decided.outcome == "read" and event.reason == "reuse":
        return "hit", f"{decided.cached} of {decided.prompt} prompt tokens came from the cache", ()
    if decided.outcome == "not_read":
        says = "the cache was named, and the provider reports that nothing was read from it"
        return "provider_or_unknown", f"{says}; the record does not say why", ()
    if event.reason in _SENTENCES:
        return event.reason, _sentence(event), _refusal(entries, event, decided.position)
    if event.decision != "explicit":
        return event.reason, f"the record says {event.reason!r}", ()
    if event.reason == "reuse":
        return decided.outcome, _WITHOUT_USAGE.get(decided.outcome, decided.outcome), ()
    return _not_there(reader, entries, earlier, decided)


_WITHOUT_USAGE: Mapping[str, str] = {
    "unmeasured": "the cache was named; the provider did not state what was read from it",
    "unanswered": "the cache was named, and no answer to this attempt is on the record",
    "failed": "the cache was named; the attempt ended without an answer",
    "unsent": "a cache was there; the attempt was not sent",
}


def _sentence(event: e.CacheDecided) -> str:
    more = event.basis.get("rejected") or event.basis.get("detail") or ""
    says = _SENTENCES[event.reason]
    if event.reason == "below_minimum":
        row = event.basis["capability"]
        more = f"{event.basis['tokens']} tokens, at least {row['minimum_tokens']}: {row['source']}"
    if event.reason == "too_few_reads":
        more = f"{counted(event.basis['expected_reads'], 'read')} expected{_costs(event.basis)}"
    return f"{says} ({more})" if more else says


def _costs(basis: Mapping[str, Any]) -> str:
    """Return the nano-USD expected by each way; empty without a price."""
    known = dict(basis["expected_nano_usd"])
    if known and not storage_priced(basis):
        known["explicit"] = "unknown, no price of storage"
    costs = ", ".join(f"{way} {value}" for way, value in known.items())
    return f"; nano-USD by way: {costs}" if costs else ""


def _rejected(entries: list[Entry], event: e.CacheDecided) -> _Cause:
    for position, other in entries:
        if isinstance(other, e.CacheRejected) and _same_attempt(other, event):
            says = f"the provider refused the cache ({other.kind}: {other.message})"
            return "rejected", says, (position,)
    return "rejected", "the provider refused the cache", ()


def _same_attempt(other: e.CacheRejected, event: e.CacheDecided) -> bool:
    return (other.request, other.attempt) == (event.request, event.attempt)


def _refusal(entries: list[Entry], event: e.CacheDecided, before: int) -> tuple[int, ...]:
    """Return where the record shows why a prefix is left alone."""
    kinds = (e.CacheCreateFailed, e.CacheCreateUnknown)
    shown = [
        position
        for position, other in entries
        if position < before and isinstance(other, kinds) and other.key == event.key
    ]
    return tuple(shown[-1:]) if event.reason == "rejected_before" else ()


def _not_there(
    reader: CaseReader, entries: list[Entry], earlier: list[Decided], decided: Decided
) -> _Cause:
    """Say why there was no cache to read when this request was decided."""
    before = [other for other in earlier if other.event.key and _wanted_one(other.event)]
    if not before:
        return "first", "the first request that a cache was wanted for", ()
    latest = before[-1]
    if any(other.event.key == decided.event.key for other in before):
        return _gone(entries, decided)
    if changed := _changed_scope(latest.event, decided.event):
        return "configuration_changed", f"changed: {changed}", (latest.position,)
    return _changed_prefix(reader, entries, latest, decided)


def _wanted_one(event: e.CacheDecided) -> bool:
    return event.decision == "explicit" or event.reason in ("rejected_before", "cache_rejected")


def _gone(entries: list[Entry], decided: Decided) -> _Cause:
    """Say what happened to the latest cache of this key, or to the try to create one."""
    key = decided.event.key
    ended: _Cause | None = None
    for position, event in reversed([x for x in entries if x.position < decided.position]):
        match event:
            case e.CacheLost(key=other, reason=reason) if other == key:
                return reason, _LOST.get(reason, reason), (position,)
            case e.CacheCreateFailed(key=other) if other == key:
                return "create_failed", f"creating it failed ({event.kind})", (position,)
            case e.CacheCreateUnknown(key=other) if other == key:
                says = f"the reply to its creation was lost ({event.reason})"
                return "create_unknown", says, (position,)
            case e.CacheDeleted(key=other, outcome=outcome) if other == key:
                ended = "deleted", _DELETED.get(outcome, outcome), (position,)
            case e.CacheCreated(key=other) if other == key:
                break
            case e.CaseForked() if ended is None or ended[0] == "restart":
                ended = "forked", "its handle stayed with the origin of this fork", (position,)
            case e.RunStarted() if ended is None or ended[0] == "restart":
                ended = "restart", _LOST["restart"], (position,)
    else:
        ended = None
    says = "no cache of this prefix was there, and the record does not say why"
    return ended or ("provider_or_unknown", says, ())


_DELETED: Mapping[str, str] = {
    "deleted": "the run deleted it when it had no more use for it",
    "gone": "it was gone when the run wanted to delete it",
    "failed": "the run gave it up, and deleting it failed",
    "left_to_expire": "it was left to expire",
}

_LOST: Mapping[str, str] = {
    "restart": "the handle was lost when the process ended; a new one never uses it",
    "expired": "it expired",
    "rejected": "the provider refused it before",
}


def _changed_scope(before: e.CacheDecided, now: e.CacheDecided) -> str:
    """Return what else than the prefix changed; never a credential, which is a fingerprint."""
    was, is_now = before.basis.get("key_of") or {}, now.basis.get("key_of") or {}
    return ", ".join(
        f"{name} {was.get(name)!r} to {is_now.get(name)!r}"
        for name in is_now
        if was.get(name) != is_now.get(name)
    )


def _changed_prefix(
    reader: CaseReader, entries: list[Entry], latest: Decided, decided: Decided
) -> _Cause:
    old, new = (_prefix(reader, entries, x.event) for x in (latest, decided))
    if old is None or new is None:
        return "prefix_changed", "the prefix changed", (latest.position,)
    change = next(differences(old, new), None)
    path = change.path if change else "$"
    member = path.removeprefix("$.").partition(".")[0].partition("[")[0]
    shown = [
        x
        for x in entries
        if latest.position < x.position < decided.position
        and isinstance(x.event, _CAUSES.get(member, ()))
    ]
    by = f" because of event {shown[-1].position} {shown[-1].event.TOPIC}" if shown else ""
    return (
        "prefix_changed",
        f"the prefix changed at {path}{by}",
        tuple(x.position for x in shown[-1:]),
    )


def _prefix(reader: CaseReader, entries: list[Entry], event: e.CacheDecided) -> Any:
    """Return the stable input of a request, divided again; None if it is withheld."""
    for _, prepared in entries:
        if isinstance(prepared, e.RequestPrepared) and prepared.request == event.request:
            break
    else:
        return None
    try:
        document = saved_document(reader, event.request, prepared.document)
    except PayloadWithheld:
        return None
    split = VERSIONS[event.partition].partition(document["messages"][0]["content"])
    return None if isinstance(split, Whole) else split.prefix["input"]
