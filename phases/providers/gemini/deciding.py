"""Whether a request uses an explicit cache: a pure decision with everything it rests on.

With P tokens of prefix, N reads expected, H hours alive, prices p (prompt), c (cached), s (storage)
and a creation that is billed like k prompts (k = 1), caching explicitly costs k·P·p + N·P·c + P·s·H
and sending inline N·P·p; explicit pays when N > (k·p + s·H)/(p - c). A cache that expires before
the last read is created again: k counts once for each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from phases.providers.gemini.models import MARGIN_SECONDS, Capability
from phases.providers.prices import MILLION, Price, storage_cost

CREATION_FACTOR = 1
SECONDS_A_READ = 60
"""How long a request and the looks after it are taken to last: an assumption, stated as such."""

READS_WITHOUT_PRICE = 3
"""From so many expected reads on a cache is created if no price is known."""


@dataclass(frozen=True)
class Situation:
    """What a decision rests on.

    Attributes:
        mode: `off`, `auto` or `required`.
        not_cacheable: why the request has no part for a cache; empty if it has one.
        detail: one line about it.
        tokens: estimated tokens of system text and prefix.
        method: how they were estimated.
        reads: requests that are expected to read the prefix, this one included.
        capability: the model's row, its minimum replaced by what the service stated.
        price: the row that holds now; None if nobody knows it.
        ttl_seconds: lifetime asked for.
        alive: a usable cache is there.
        rejected: why no cache of this prefix is created again in this process; empty if it may be.
        inline: this request lost its cache before and goes out in full.
    """

    mode: str
    not_cacheable: str
    detail: str
    tokens: int
    method: str
    reads: int
    capability: Capability
    price: Price | None
    ttl_seconds: int
    alive: bool = False
    rejected: str = ""
    inline: bool = False


@dataclass(frozen=True)
class Decision:
    """`none`, `implicit` or `explicit`, the reason code, and the basis."""

    decision: str
    reason: str
    basis: dict[str, Any] = field(default_factory=dict)

    @property
    def explicit(self) -> bool:
        return self.decision == "explicit"


def decide(situation: Situation) -> Decision:
    """Return the decision for one attempt."""
    costs = expected_costs(situation)
    decision, reason = _decided(situation, costs)
    return Decision(decision, reason, _basis(situation, costs))


def _decided(situation: Situation, costs: dict[str, int]) -> tuple[str, str]:
    if situation.not_cacheable:
        return "none", situation.not_cacheable
    inline = "implicit" if situation.tokens >= situation.capability.minimum_tokens else "none"
    if situation.mode == "off":
        return inline, "off"
    if situation.inline:
        return inline, "cache_rejected"
    if situation.alive:
        return "explicit", "reuse"
    if situation.mode == "required":
        return "explicit", "required"
    if why := _obstacle(situation, costs):
        return inline, why
    return "explicit", "create"


def _obstacle(situation: Situation, costs: dict[str, int]) -> str:
    """Return why no cache is created; empty if one is."""
    if situation.rejected:
        return "rejected_before"
    if situation.capability.explicit is False:
        return "model_has_none"
    if situation.tokens < situation.capability.minimum_tokens:
        return "below_minimum"
    if not costs:
        return "too_few_reads" if situation.reads < READS_WITHOUT_PRICE else ""
    return "too_few_reads" if costs["explicit"] >= costs["none"] else ""


def expected_costs(situation: Situation) -> dict[str, int]:
    """Return what the prefix is expected to cost by each way, nano-USD; empty without a price."""
    price, tokens, reads = situation.price, situation.tokens, situation.reads
    if price is None or price.cached is None:
        return {}
    once, again = _cost(tokens, price.input), _cost(tokens, price.cached)
    stored = storage_cost(tokens, _lifetime_ms(situation), price)
    creations = -(-reads // _reads_a_life(situation))
    return {
        "none": reads * once,
        "implicit": once + max(reads - 1, 0) * again,  # if every later read hits; not promised
        "explicit": creations * CREATION_FACTOR * once + reads * again + stored,
    }


def _reads_a_life(situation: Situation) -> int:
    """Return how many reads one cache lasts for; a long investigation needs several."""
    return max((situation.ttl_seconds - MARGIN_SECONDS) // SECONDS_A_READ, 1)


def _lifetime_ms(situation: Situation) -> int:
    """Return how long caches are alive, all of them together."""
    return 1000 * situation.reads * SECONDS_A_READ


def _cost(tokens: int, price: int) -> int:
    return -(-tokens * price // MILLION)


def _basis(situation: Situation, costs: dict[str, int]) -> dict[str, Any]:
    basis: dict[str, Any] = {"detail": situation.detail} if situation.detail else {}
    if situation.not_cacheable:
        return basis
    return basis | {
        "tokens": situation.tokens,
        "tokens_method": situation.method,
        "expected_reads": situation.reads,
        "expected_reads_from": "requests left in the budget, this one included",
        "expected_lifetime_ms": _lifetime_ms(situation),
        "expected_lifetime_from": f"{SECONDS_A_READ} s a read, assumed",
        "expected_creations": -(-situation.reads // _reads_a_life(situation)),
        "creation_factor": CREATION_FACTOR,
        "expected_nano_usd": costs,
        "price": situation.price.as_json() if situation.price else None,
        "capability": situation.capability.as_json(),
        **({"rejected": situation.rejected} if situation.rejected else {}),
    }
