"""Whether a request uses a cache, and what that is expected to cost: pure, in integers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import canonical
from ledger.events import CacheDecided
from phases.providers import Failure, prices
from phases.providers.credentials import Key
from phases.providers.gemini import models
from phases.providers.gemini.deciding import (
    READS_WITHOUT_PRICE,
    SECONDS_A_READ,
    Situation,
    decide,
    expected_costs,
)
from phases.providers.gemini.provider import Gemini, _reads_left
from phases.providers.prices import GEMINI, MILLION, Price, cost, price_at, storage_cost, usd
from phases.settings import Gemini as Section
from phases.settings import PriceRow
from tests.phases.providers.gemini.surviving import Sheet, document_of, key, nobody

__all__ = ["key"]

AT = "2026-11-30T12:00:00.000000Z"
PRO = GEMINI["gemini-2.5-pro"][0]

WORTHWHILE = Situation(
    mode="auto",
    not_cacheable="",
    detail="",
    tokens=10_900,
    method="estimate_v1",
    reads=13,
    capability=models.capability("gemini-2.5-pro"),
    price=PRO,
    ttl_seconds=3_600,
)
"""A seed's investigation: 10,900 tokens of prefix and 13 reads of it."""

TINY = {"tokens": 100}
GEMINI_4 = {"capability": models.capability("gemini-4-argon")}
UNKNOWN = {"capability": models.capability("gemini-9-unheard-of")}


# Which reason -----------------------------------------------------------------------------------

DECISIONS: list[tuple[dict[str, Any], str, str]] = [
    ({}, "explicit", "create"),
    ({"alive": True}, "explicit", "reuse"),
    ({"mode": "required"}, "explicit", "required"),
    ({"mode": "required", "alive": True}, "explicit", "reuse"),
    ({"mode": "off"}, "implicit", "off"),
    ({"mode": "off", "alive": True}, "implicit", "off"),
    ({"mode": "off", **TINY}, "none", "off"),
    ({"not_cacheable": "not_a_candidate"}, "none", "not_a_candidate"),
    ({"not_cacheable": "shape_changed", "alive": True}, "none", "shape_changed"),
    ({"not_cacheable": "not_a_candidate", "mode": "required"}, "none", "not_a_candidate"),
    ({"not_cacheable": "not_a_candidate", "mode": "off"}, "none", "not_a_candidate"),
    ({"inline": True}, "implicit", "cache_rejected"),
    ({"inline": True, "alive": True}, "implicit", "cache_rejected"),
    ({"inline": True, "mode": "required"}, "implicit", "cache_rejected"),
    ({"inline": True, **TINY}, "none", "cache_rejected"),
    ({"rejected": "too_small: …"}, "implicit", "rejected_before"),
    ({"rejected": "too_small: …", "alive": True}, "explicit", "reuse"),
    ({"rejected": "too_small: …", **TINY}, "none", "rejected_before"),
    (GEMINI_4, "implicit", "model_has_none"),
    ({**GEMINI_4, **TINY}, "none", "model_has_none"),
    ({**GEMINI_4, "mode": "required"}, "explicit", "required"),  # the service decides
    (TINY, "none", "below_minimum"),
    ({"tokens": 2_047}, "none", "below_minimum"),
    ({"tokens": 2_048}, "explicit", "create"),
    ({**TINY, "mode": "required"}, "explicit", "required"),
    ({**TINY, **UNKNOWN}, "explicit", "create"),  # nobody knows a minimum: the service states it
    ({"reads": 1}, "implicit", "too_few_reads"),
    ({"reads": 2}, "explicit", "create"),
    ({"price": None, "reads": READS_WITHOUT_PRICE - 1}, "implicit", "too_few_reads"),
    ({"price": None, "reads": READS_WITHOUT_PRICE}, "explicit", "create"),
    ({"price": replace(PRO, cached=None), "reads": 2}, "implicit", "too_few_reads"),
    ({"price": replace(PRO, cached=None)}, "explicit", "create"),
    ({"price": replace(PRO, cached=PRO.input)}, "implicit", "too_few_reads"),
    ({"price": replace(PRO, storage=10**15)}, "implicit", "too_few_reads"),
    ({"price": replace(PRO, input=0, cached=0, storage=0)}, "implicit", "too_few_reads"),
]


@pytest.mark.parametrize(("changes", "decision", "reason"), DECISIONS)
def test_a_decision_and_its_reason(changes: dict[str, Any], decision: str, reason: str) -> None:
    decided = decide(replace(WORTHWHILE, **changes))
    assert (decided.decision, decided.reason) == (decision, reason)
    assert decided.explicit == (decision == "explicit")


def test_the_minimum_that_the_service_stated_goes_before_the_table() -> None:
    row = models.capability("gemini-2.5-pro").stating(20_000)
    decided = decide(replace(WORTHWHILE, capability=row))
    assert decided.reason == "below_minimum"
    assert decided.basis["capability"] == {
        "family": "gemini-2.5-",
        "explicit": True,
        "minimum_tokens": 20_000,
        "as_of": "2026-11-30",
        "source": "the service's refusal",
    }


@pytest.mark.parametrize(
    ("model", "explicit", "minimum"),
    [
        ("gemini-2.5-pro", True, 2_048),
        ("gemini-2.5-flash", True, 2_048),
        ("models/gemini-2.5-flash-lite", True, 2_048),
        ("gemini-3-flash-preview", True, 4_096),
        ("gemini-3.1-pro-preview", True, 4_096),
        ("gemini-3.8-flash", True, 4_096),
        ("gemini-4-argon", False, 4_096),
        ("gemini-4-neon", False, 4_096),
        ("gemini-flash-latest", None, 0),
        ("gemini-5-x", None, 0),
    ],
)
def test_what_a_model_can_cache(model: str, explicit: bool | None, minimum: int) -> None:
    row = models.capability(model)
    assert (row.explicit, row.minimum_tokens) == (explicit, minimum)


def test_a_decision_says_what_it_rests_on() -> None:
    decided = decide(replace(WORTHWHILE, detail="a remark", rejected="quota"))
    assert decided.basis == {
        "detail": "a remark",
        "tokens": 10_900,
        "tokens_method": "estimate_v1",
        "expected_reads": 13,
        "expected_reads_from": "requests left in the budget, this one included",
        "expected_lifetime_ms": 13 * SECONDS_A_READ * 1_000,
        "expected_lifetime_from": "60 s a read, assumed",
        "expected_creations": 1,
        "creation_factor": 1,
        "expected_nano_usd": expected_costs(WORTHWHILE),
        "price": PRO.as_json(),
        "capability": WORTHWHILE.capability.as_json(),
        "rejected": "quota",
    }
    assert decide(replace(WORTHWHILE, not_cacheable="not_a_candidate")).basis == {}


def test_reads_are_what_is_left_of_the_budget() -> None:
    def document(content: Any) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": content}]}

    assert _reads_left(document({"budget": {"left": {"requests": 17}}})) == 17
    assert _reads_left(document({"budget": {"left": {"requests": 0}}})) == 1
    for odd in (None, {}, [], {"budget": 1}, {"budget": {"left": []}}):
        assert _reads_left(document(odd)) == 1
    for number in (True, "9", 1.5, None, -4):
        assert _reads_left(document({"budget": {"left": {"requests": number}}})) == 1


# Where it breaks even ---------------------------------------------------------------------------


def creations(reads: int, ttl_seconds: int) -> int:
    """Return how many caches it takes: one is not used in its last half minute."""
    return -(-reads // max((ttl_seconds - 30) // SECONDS_A_READ, 1))


QUARTER, HOUR = 900_000, 3_600_000
"""Milliseconds."""


def break_even(price: Price, lifetime_ms: int, again: int = 0) -> Fraction:
    """Return the reads beyond which an explicit cache pays: (k·p + s·H)/(p - c), k = 1 + again."""
    assert price.cached is not None
    stored = Fraction(storage_cost(MILLION, lifetime_ms, price))
    return ((1 + again) * price.input + stored) / (price.input - price.cached)


@pytest.mark.parametrize(
    ("model", "lifetime_ms", "reads"),
    [
        ("gemini-2.5-pro", QUARTER, "2.11"),
        ("gemini-2.5-pro", HOUR, "5.11"),
        ("gemini-2.5-pro", 360_000, "1.51"),
        ("gemini-2.5-pro", 2 * HOUR, "9.11"),
        ("gemini-2.5-flash", QUARTER, "2.04"),
        ("gemini-2.5-flash", HOUR, "4.81"),
        ("gemini-3.1-pro-preview", QUARTER, "1.74"),
        ("gemini-3.1-pro-preview", HOUR, "3.61"),
        ("gemini-3.8-flash", QUARTER, "1.30"),
        ("gemini-3.8-flash", HOUR, "1.85"),
    ],
)
def test_explicit_pays_from_as_many_reads_as_our_rows_say(
    model: str, lifetime_ms: int, reads: str
) -> None:
    price = price_at(GEMINI[model], AT)
    assert price is not None
    assert round(break_even(price, lifetime_ms), 2) == Fraction(reads)


@pytest.mark.parametrize("model", GEMINI)
@pytest.mark.parametrize("ttl_seconds", [60, 900, 3_600])
def test_the_decision_turns_where_the_formula_says(model: str, ttl_seconds: int) -> None:
    price = price_at(GEMINI[model], AT)
    assert price is not None
    base = replace(
        WORTHWHILE, price=price, ttl_seconds=ttl_seconds, capability=models.UNKNOWN, tokens=100_000
    )
    for reads in range(1, 80):
        again = creations(reads, ttl_seconds) - 1  # each costs a prompt more
        pays = reads > break_even(price, 1_000 * reads * SECONDS_A_READ, again)
        assert decide(replace(base, reads=reads)).reason == ("create" if pays else "too_few_reads")


def test_the_three_costs_of_a_seed() -> None:
    p, c, s = 1_250_000_000, 125_000_000, 4_500_000_000
    assert expected_costs(WORTHWHILE) == {
        "none": 13 * 10_900 * p // MILLION,
        "implicit": (10_900 * p + 12 * 10_900 * c) // MILLION,
        "explicit": (10_900 * p + 13 * 10_900 * c) // MILLION + 10_900 * s * 13 // (60 * MILLION),
    }


@pytest.mark.parametrize(
    ("model", "saved"), [("gemini-2.5-pro", "0.308 0.175"), ("gemini-3.8-flash", "0.185 0.099")]
)
def test_what_a_cache_saves_a_seed_is_what_the_design_expected(model: str, saved: str) -> None:
    """The design counts a quarter of an hour of storage, we count 13 minutes."""
    costs = expected_costs(replace(WORTHWHILE, price=price_at(GEMINI[model], AT)))
    before, after = map(Fraction, saved.split())
    found = Fraction(costs["none"] - costs["explicit"], 10**9)
    assert abs(found - (before - after)) < Fraction(3, 1_000)


@given(
    st.integers(0, 10**7),
    st.integers(1, 500),
    st.integers(60, 86_400),
    st.tuples(*[st.integers(0, 10**11)] * 3),
)
def test_costs_are_integers_rounded_up_and_grow_with_the_reads(
    tokens: int, reads: int, ttl: int, values: tuple[int, int, int]
) -> None:
    price = Price("x", values[0], values[1], 0, values[2])
    situation = replace(WORTHWHILE, tokens=tokens, reads=reads, ttl_seconds=ttl, price=price)
    costs = expected_costs(situation)
    once = Fraction(tokens * price.input, MILLION)
    hours = Fraction(reads * SECONDS_A_READ, 3_600)
    again = Fraction(tokens * values[1], MILLION)
    exact = {
        "none": reads * once,
        "implicit": once + (reads - 1) * again,
        "explicit": creations(reads, ttl) * once
        + reads * again
        + Fraction(tokens * values[2], MILLION) * hours,
    }
    for way, value in exact.items():
        assert type(costs[way]) is int
        assert 0 <= costs[way] - value < 2 * reads + 2  # each part is rounded up
    later = expected_costs(replace(situation, reads=reads + 1))
    assert all(later[way] >= costs[way] for way in costs)


# Price rows -------------------------------------------------------------------------------------


def usd_of(model: str, at: str, prompt: int = 0) -> tuple[str, ...]:
    """Return input, cached, output and storage in USD for a million tokens, as text."""
    row = price_at(GEMINI[model], at, prompt)
    assert row is not None
    values = (row.input, row.cached, row.output, row.storage)
    return tuple("" if v is None else f"{Fraction(v, 10**9).__float__():g}" for v in values)


LAST_OF_2026, FIRST_OF_2027 = "2026-12-31T23:59:59.999999Z", "2027-01-01T00:00:00.000000Z"
LAST_OF_NOVEMBER, FIRST_OF_DECEMBER = "2026-11-30T23:59:59.999999Z", "2026-12-01T00:00:00.000000Z"


@pytest.mark.parametrize("model", ["gemini-3.6-flash", "gemini-3.7-flash", "gemini-3.8-flash"])
def test_the_price_of_the_newer_flash_models_doubles_with_2027(model: str) -> None:
    assert usd_of(model, LAST_OF_2026) == ("0.75", "0.075", "3.75", "0.5")
    assert usd_of(model, FIRST_OF_2027) == ("1.5", "0.15", "7.5", "0.5")


@pytest.mark.parametrize("model", ["gemini-4-argon", "gemini-4-carbon"])
def test_the_price_of_gemini_4_doubles_with_december_2026(model: str) -> None:
    assert usd_of(model, LAST_OF_NOVEMBER) == ("2", "0.1", "10", "")
    assert usd_of(model, FIRST_OF_DECEMBER) == ("4", "0.2", "20", "")


@pytest.mark.parametrize(
    ("model", "small", "large"),
    [
        ("gemini-2.5-pro", ("1.25", "0.125", "10", "4.5"), ("2.5", "0.25", "15", "4.5")),
        ("gemini-3.1-pro-preview", ("2", "0.2", "12", "4.5"), ("4", "0.4", "18", "4.5")),
    ],
)
def test_prompts_above_200_000_tokens_pay_another_row(
    model: str, small: tuple[str, ...], large: tuple[str, ...]
) -> None:
    assert usd_of(model, AT) == usd_of(model, AT, 200_000) == small
    assert usd_of(model, AT, 200_001) == usd_of(model, AT, 10**7) == large


@pytest.mark.parametrize(
    ("model", "row"),
    [
        ("gemini-2.5-flash", ("0.3", "0.03", "2.5", "1")),
        ("gemini-2.5-flash-lite", ("0.1", "0.01", "0.4", "")),
        ("gemini-3.5-flash", ("1.5", "0.15", "9", "")),
        ("gemini-4-hydrogen", ("1.5", "0.075", "7.5", "")),
    ],
)
def test_the_other_rows_hold_at_any_time(model: str, row: tuple[str, ...]) -> None:
    assert usd_of(model, "2020-01-01") == usd_of(model, "2030-01-01") == row


def test_rows_have_names_of_their_own_and_never_overlap() -> None:
    for model, rows in GEMINI.items():
        assert len({row.id for row in rows}) == len(rows)
        assert all(row.id.startswith(model) for row in rows)
        for day in ("2026-11-30", "2026-12-01", "2026-12-31", "2027-01-01"):
            for above in {row.above for row in rows}:
                valid = [
                    row
                    for row in rows
                    if row.above == above
                    and (not row.valid_from or row.valid_from <= day)
                    and (not row.valid_to or day <= row.valid_to)
                ]
                assert len(valid) == 1


def test_a_moment_that_no_row_holds_for_has_no_price() -> None:
    old = Price("x", 1, 1, 1, valid_to="2026-11-30")
    assert price_at([old], FIRST_OF_DECEMBER) is None
    assert price_at([], AT) is None


@pytest.mark.parametrize(("words", "above"), [(1_000, None), (250_000, 200_001)])
def test_the_size_of_the_prefix_chooses_the_row_of_a_decision(
    words: int, above: int | None, key: None
) -> None:
    view = dict.fromkeys(("sources", "interpretation", "policy", "tools", "catalogs"))
    content = {"case": {"text": "word " * words}, **view, "evidence": [], "shared": {}}
    section = Section(model="gemini-2.5-pro", cache_mode="off", base_url=nobody())
    sheet = Sheet()
    with pytest.raises(Failure, match="no connection"):
        Gemini(section, Key("AIza-canary")).ask(
            document_of("investigation_project_v11", content), sheet
        )
    (decided,) = sheet.events
    assert isinstance(decided, CacheDecided)
    assert decided.basis["price"].get("above") == (above or 0)


# Costs ------------------------------------------------------------------------------------------


def test_thoughts_are_billed_as_output_and_cached_tokens_are_part_of_the_prompt() -> None:
    usage = {"prompt": 10_000, "cached": 7_000, "output": 500, "thoughts": 200}
    assert cost(usage, PRO) == 3_000 * 1_250 + 7_000 * 125 + 500 * 10_000


def test_a_fraction_of_a_nano_dollar_is_rounded_up() -> None:
    price = Price("x", 1, 1, 1)
    assert cost({"prompt": 0}, price) == 0
    assert cost({"prompt": 1}, price) == cost({"prompt": MILLION}, price) == 1
    assert cost({"prompt": MILLION + 1}, price) == 2


def test_unmeasured_is_not_zero() -> None:
    assert cost({}, PRO) is None
    assert cost({"cached": 7_000, "output": 5}, PRO) is None
    assert cost({"prompt": 0}, PRO) == 0
    whole = cost({"prompt": 10_000, "output": 5}, PRO)
    assert whole == cost({"prompt": 10_000, "cached": 0, "output": 5}, PRO)  # an upper bound
    assert "cost_nano_usd" not in prices.measured({"output": 5}, [PRO], AT)
    assert "cost_nano_usd" not in prices.measured({"prompt": 5}, [], AT)


def test_the_row_that_was_used_is_embedded() -> None:
    fields = prices.measured({"prompt": 300_000}, GEMINI["gemini-2.5-pro"], AT)
    assert fields == {
        "prompt": 300_000,
        "cost_nano_usd": 300_000 * 2_500,
        "price": {
            "id": "gemini-2.5-pro-200001",
            "input": 2_500_000_000,
            "cached": 250_000_000,
            "output": 15_000_000_000,
            "storage": 4_500_000_000,
            "above": 200_001,
        },
    }
    canonical.to_bytes(fields)


def test_a_cost_that_a_provider_states_itself_is_kept() -> None:
    assert prices.measured({"prompt": 1, "cost_nano_usd": 7}, [PRO], AT)["cost_nano_usd"] == 7


def test_a_row_without_a_cached_price_bills_cached_tokens_in_full() -> None:
    price = replace(PRO, cached=None)
    assert cost({"prompt": 10, "cached": 10}, price) == cost({"prompt": 10}, price)


@given(
    *[st.integers(0, 10**9)] * 4,
    st.sampled_from([row for rows in GEMINI.values() for row in rows]),
)
def test_a_cost_is_exact(prompt: int, cached: int, output: int, thoughts: int, row: Price) -> None:
    usage = {"prompt": prompt, "cached": cached, "output": output, "thoughts": thoughts}
    found = cost(usage, row)
    read = min(cached, prompt)
    exact = Fraction(
        (prompt - read) * row.input + read * (row.cached or 0) + output * row.output,
        MILLION,
    )
    assert type(found) is int
    assert 0 <= found - exact < 1


def test_storage_is_by_the_hour_and_rounded_up() -> None:
    assert storage_cost(MILLION, HOUR, PRO) == 4_500_000_000
    assert storage_cost(MILLION, QUARTER, PRO) == 1_125_000_000
    assert storage_cost(1, 1, PRO) == 1
    assert storage_cost(0, HOUR, PRO) == storage_cost(1, 0, PRO) == 0
    assert storage_cost(MILLION, HOUR, GEMINI["gemini-2.5-flash-lite"][0]) == 0


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("0.075", 75_000_000),
        ("0", 0),
        ("12", 12_000_000_000),
        (".5", 500_000_000),
        ("5.", 5_000_000_000),
        (" 1.25 ", 1_250_000_000),
        ("0.000000001", 1),
        ("0.100000000", 100_000_000),
    ],
)
def test_an_amount_is_read_exactly(text: str, nano: int) -> None:
    assert usd(text) == nano


@pytest.mark.parametrize(
    "text", ["", " ", ".", "-1", "+1", "1e3", "0.0000000001", "1,5", "1_0", "NaN", "1 2", "9" * 10]
)
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no amount"):
        usd(text)


def test_a_price_of_the_settings_takes_the_place_of_built_in_rows() -> None:
    row = PriceRow(input="1.5", output="6", cached="0.15", storage="0.5")
    (price,) = prices.configured(row, "mine")
    assert price == Price("mine-configured", 1_500_000_000, 150_000_000, 6_000_000_000, 500_000_000)
    (bare,) = prices.configured(PriceRow(input="1", output="2"), "mine")
    assert (bare.cached, bare.storage) == (None, None)
    assert prices.configured(PriceRow(input="1"), "mine") == ()
    (free,) = prices.configured(PriceRow(input="0", output="0"), "mine")
    assert cost({"prompt": 10}, free) == 0
