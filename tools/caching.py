"""What remote caches did in a case, for people: lists and causes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ledger.errors import LedgerDamaged
from ledger.reader import CaseReader
from projections.cache_causes import Why, causes
from projections.caching import Life, hit_rate, lives, settle, storage_priced
from projections.state import MALFORMED, fault
from projections.wording import counted
from tools.exits import UserError
from tools.output import money, spoken


def listed(reader: CaseReader) -> dict[str, Any]:
    """Return every remote cache and every decision, as JSON (docs/json-output.md)."""
    cached, prompt = hit_rate(reader.events())
    return {
        "caches": [_life(life) for life in lives(reader.events())],
        "decisions": [_decision(why) for why in causes(reader)],
        "cached_tokens": cached,
        "prompt_tokens": prompt,
    }


def _life(life: Life) -> dict[str, Any]:
    settled = settle(life, life.ended_at)
    return {
        "key": life.key,
        "content_id": life.content_id,
        "model": life.model,
        "created_at": life.created_at,
        "expires_at": life.expires_at,
        "ended": life.end or None,
        "ended_at": life.ended_at or None,
        "tokens": life.size,
        "tokens_from": settled.basis["tokens_from"],
        "adopted": life.adopted,
        "inherited": life.inherited,
        "reads": settled.reads,
        "cached_tokens": settled.cached_tokens,
        "saved_nano_usd": settled.saved_nano_usd,
        "storage_nano_usd": settled.storage_nano_usd,
        "expected_nano_usd": _expected(life),
    }


def _decision(why: Why) -> dict[str, Any]:
    values = asdict(why)
    values.pop("basis")
    return values


def list_lines(shown: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of `cache ls`, decisions apart."""
    for cache in shown["caches"]:
        ended = spoken(cache["ended"]) if cache["ended"] else _alive(cache)
        yield f"{cache['content_id'][:19]}… {cache['model']}: {cache['tokens']:,} tokens, {ended}"
        read = "unmeasured" if cache["cached_tokens"] is None else f"{cache['cached_tokens']:,}"
        readers = counted(cache["reads"], "request")
        yield f"  read by {readers}, {read} tokens; saved {_saved(cache)}"
    if shown["prompt_tokens"]:
        share = 100 * shown["cached_tokens"] / shown["prompt_tokens"]
        yield (
            f"{shown['cached_tokens']:,} of {shown['prompt_tokens']:,} prompt tokens of requests "
            f"that named a cache were read from it ({share:.0f} %)"
        )
    if not shown["caches"]:
        yield "no remote cache was created"


def _alive(cache: dict[str, Any]) -> str:
    if cache["inherited"]:
        return "created before the fork: it belongs to the origin's run"
    return "alive when the record ends"


def _saved(cache: dict[str, Any]) -> str:
    saved, expected = cache["saved_nano_usd"], cache["expected_nano_usd"]
    if saved is None:
        return "unmeasured"
    if not expected:
        return money(saved)
    if expected["explicit"] is None:
        return f"{money(saved)} (expected: {UNKNOWN})"
    return f"{money(saved)} (expected {money(expected['none'] - expected['explicit'])})"


UNKNOWN = "unknown, no price of storage is known"


def _expected(life: Life) -> dict[str, Any]:
    """Return what was expected by each way; None for a cache whose storage has no known price."""
    if life.expected and not life.storage_priced:
        return life.expected | {"explicit": None}
    return life.expected


def decision_rows(shown: dict[str, Any]) -> list[list[object]]:
    """Return the table of `cache ls`."""
    return [
        [
            f"{d['request']}.{d['attempt']}",
            d["decision"],
            d["reason"],
            spoken(d["outcome"]),
            "" if d["prompt"] is None else f"{d['prompt']:,}",
            "" if d["cached"] is None else f"{d['cached']:,}",
        ]
        for d in shown["decisions"]
    ]


def explained(reader: CaseReader, request: str) -> list[dict[str, Any]]:
    """Return why each attempt of a request, or of all, found a cache or none.

    Raises:
        UserError: no cache decision was made for it.
    """
    found = [asdict(why) for why in causes(reader, request)]
    if not found and request:
        raise UserError(
            f"{request}: no cache decision is recorded; only Gemini requests have one "
            "(`cache ls` lists them)"
        )
    return found


def why_lines(found: list[dict[str, Any]], *, one: bool) -> Iterator[str]:
    """Yield the lines of `cache why`; for one request with what the decision rests on.

    Raises:
        LedgerDamaged: what it rests on is not of our making.
    """
    for why in found:
        at = ", ".join(f"#{position}" for position in why["positions"])
        yield f"{why['request']}.{why['attempt']} {why['cause']}: {why['says']} [{at}]"
        if one:
            yield from _checked_basis(why)
    if not found:
        yield "no cache decision is recorded"


def _checked_basis(why: dict[str, Any]) -> list[str]:
    try:
        return list(_basis_lines(why["basis"]))
    except MALFORMED as error:
        raise LedgerDamaged(
            f"request {why['request']}: its cache decision rests on nonsense ({fault(error)})",
            why["positions"][-1],
        ) from None


def _basis_lines(basis: dict[str, Any]) -> Iterator[str]:
    if "tokens" not in basis:
        return
    yield f"  prefix       {basis['tokens']:,} tokens by {basis['tokens_method']}"
    yield f"  reads        {basis['expected_reads']} expected: {basis['expected_reads_from']}"
    row = basis["capability"]
    yield (
        f"  model        explicit caches: {row['explicit']}, at least {row['minimum_tokens']:,} "
        f"tokens ({row['source']}, {row['as_of']})"
    )
    for way, nano_usd in basis["expected_nano_usd"].items():
        known = way != "explicit" or storage_priced(basis)
        yield f"  expected     {way:<9} {money(nano_usd) if known else UNKNOWN}"
    if basis["price"]:
        yield f"  price row    {basis['price']['id']}"
