"""What tokens cost: dated rows, integers only.

A row is in nano-USD for a million tokens (0.075 USD is 75,000,000), so that sums stay exact. Prices
change on dates, so the row that was used is embedded in the event that states a cost. Source of the
built-in rows: Google's pricing page and the genai-prices data set (0.2.3), November 2026.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phases.settings import PriceRow

MILLION = 1_000_000
_USD = 10**9


@dataclass(frozen=True)
class Price:
    """One row: nano-USD for a million tokens; storage for a million tokens and hour.

    Attributes:
        id: name of the row.
        above: prompts with at least so many tokens pay this row.
        valid_from: first day, `YYYY-MM-DD`; empty for always.
        valid_to: last day; empty for ever.
    """

    id: str
    input: int
    cached: int | None
    output: int
    storage: int | None = None
    above: int = 0
    valid_from: str = ""
    valid_to: str = ""

    def as_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value not in (None, "")}


def usd(text: str) -> int:
    """Return an amount such as `0.075` in nano-USD.

    Raises:
        ValueError: it is no amount, is negative, or has more than nine decimals.
    """
    whole, _, decimals = text.strip().partition(".")
    if not (whole + decimals).isdecimal() or len(decimals) > 9 or len(whole) > 9:
        raise ValueError(f"{text!r} is no amount in USD, such as 0.075")
    return int(whole or "0") * _USD + int(decimals.ljust(9, "0"))


def price_at(prices: Iterable[Price], at: str, prompt_tokens: int = 0) -> Price | None:
    """Return the row for a moment and a prompt's size; None if nobody knows it."""
    day = at[:10]
    valid = [
        price
        for price in prices
        if prompt_tokens >= price.above
        and (not price.valid_from or price.valid_from <= day)
        and (not price.valid_to or day <= price.valid_to)
    ]
    return max(valid, key=lambda price: price.above, default=None)


def cost(usage: Mapping[str, Any], price: Price) -> int | None:
    """Return the cost of one exchange in nano-USD, rounded up; None if the prompt is unmeasured.

    Cached tokens are part of the prompt, thoughts part of the output. An unmeasured cached part
    is billed as if nothing had been cached: an upper bound.
    """
    prompt: int | None = usage.get("prompt")
    if prompt is None:
        return None
    cached = min(usage.get("cached") or 0, prompt)
    output = usage.get("output") or 0
    cached_price = price.input if price.cached is None else price.cached
    total: int = (prompt - cached) * price.input + cached * cached_price + output * price.output
    return -(-total // MILLION)


def storage_cost(tokens: int, lifetime_ms: int, price: Price) -> int:
    """Return what keeping tokens costs, in nano-USD, rounded up; 0 if the row has no storage."""
    return -(-tokens * (price.storage or 0) * lifetime_ms // (MILLION * 3_600_000))


def measured(usage: Mapping[str, Any], prices: Iterable[Price], at: str) -> dict[str, Any]:
    """Return the fields of `usage.measured`, cost and the row used included where known."""
    fields = dict(usage)
    if "cost_nano_usd" in fields:
        return fields
    price = price_at(prices, at, fields.get("prompt") or 0)
    if price is None or (total := cost(fields, price)) is None:
        return fields
    return fields | {"cost_nano_usd": total, "price": price.as_json()}


def _row(model: str, prices: str, **more: Any) -> Price:
    """Return a row of USD for a million tokens: input, cached, output and, if known, storage."""
    values: list[int | None] = [usd(text) if text != "-" else None for text in prices.split()]
    given = [*values, *[None] * (4 - len(values))]
    name = "-".join([model, *(str(value) for value in more.values())])
    return Price(name, given[0] or 0, given[1], given[2] or 0, given[3], **more)


def configured(row: PriceRow, model: str) -> tuple[Price, ...]:
    """Return the row that a user states in the settings; empty if none is."""
    if not row.input or not row.output:
        return ()
    cached, storage = (usd(text) if text else None for text in (row.cached, row.storage))
    return (Price(f"{model}-configured", usd(row.input), cached, usd(row.output), storage),)


_UNTIL_2027 = {"valid_to": "2026-12-31"}
_FROM_2027 = {"valid_from": "2027-01-01"}

GEMINI: Mapping[str, tuple[Price, ...]] = {
    "gemini-2.5-pro": (
        _row("gemini-2.5-pro", "1.25 0.125 10 4.50"),
        _row("gemini-2.5-pro", "2.5 0.25 15 4.50", above=200_001),
    ),
    "gemini-2.5-flash": (_row("gemini-2.5-flash", "0.30 0.03 2.50 1.00"),),
    "gemini-2.5-flash-lite": (_row("gemini-2.5-flash-lite", "0.10 0.01 0.40"),),
    "gemini-3.1-pro-preview": (
        _row("gemini-3.1-pro-preview", "2 0.2 12 4.50"),
        _row("gemini-3.1-pro-preview", "4 0.4 18 4.50", above=200_001),
    ),
    "gemini-3.5-flash": (_row("gemini-3.5-flash", "1.5 0.15 9"),),
    **{
        name: (
            _row(name, "0.75 0.075 3.75 0.50", **_UNTIL_2027),
            _row(name, "1.5 0.15 7.5 0.50", **_FROM_2027),
        )
        for name in ("gemini-3.6-flash", "gemini-3.7-flash", "gemini-3.8-flash")
    },
    **{
        name: (
            _row(name, "2 0.10 10", valid_to="2026-11-30"),
            _row(name, "4 0.20 20", valid_from="2026-12-01"),
        )
        for name in ("gemini-4-argon", "gemini-4-carbon")
    },
    "gemini-4-hydrogen": (_row("gemini-4-hydrogen", "1.5 0.075 7.5"),),
}
"""Built-in rows by model. 3.5-flash and 2.5-flash-lite: storage is not stated where we looked."""
