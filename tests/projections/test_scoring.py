"""Scores: ranks, symbols, rows, calibration and comparison follow their definitions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.scoring import (
    BOUNDS,
    Count,
    Decisive,
    Truth,
    TruthRefused,
    calibration,
    compared,
    quoted_equal,
    ranked,
    rows_cited,
    score,
    truth_from,
    values_of,
)

PATHS = ["shop/cart.py", "shop/prices.py", "web/prices.py", "setup.cfg"]


def place(path: str, function: str = "") -> dict[str, Any]:
    return {"path": path, "function": function}


def diagnosis(*locations: dict[str, Any], confidence: float = 0.8) -> dict[str, Any]:
    return {"outcome": "cause_likely", "confidence": confidence, "locations": list(locations)}


# The truth -------------------------------------------------------------------------------------


def test_a_truth_is_spelled_as_the_snapshot_spells_it() -> None:
    found = truth_from({"files": ["project-1.0/shop/cart.py", "./setup.cfg"]}, PATHS)
    assert found.files == ("shop/cart.py", "setup.cfg")
    inner = truth_from({"files": ["cart.py"], "functions": ["cart.py::Cart.total"]}, PATHS)
    assert (inner.files, inner.functions) == (("shop/cart.py",), ("shop/cart.py::Cart.total",))


def test_a_file_that_could_be_two_of_the_snapshot_is_none() -> None:
    assert truth_from({"files": ["prices.py", "setup.cfg"]}, PATHS).files == ("setup.cfg",)


def test_a_file_that_the_fix_adds_is_left_out() -> None:
    assert truth_from({"files": ["shop/new.py", "setup.cfg"]}, PATHS).files == ("setup.cfg",)


@pytest.mark.parametrize(
    "value", [None, [], {}, {"files": []}, {"files": "shop/cart.py"}, {"files": ["other.py"]}]
)
def test_a_truth_without_a_known_file_is_refused(value: Any) -> None:
    with pytest.raises(TruthRefused, match=r"truth\.json names"):
        truth_from(value, PATHS)


def test_decisive_rows_are_conditions_or_words_in_both_spellings() -> None:
    rows = [{"table": "orders", "where": "id = 7"}, "order 7 of 2024-05-01", {"other": 1}]
    wanted = (Decisive("orders", "id = 7"), Decisive(words="order 7 of 2024-05-01"))
    for member in ({"rows": rows}, {"database_evidence": {"rows": rows}}):
        assert truth_from({"files": ["setup.cfg"], **member}, PATHS).rows == wanted


# Ranks -----------------------------------------------------------------------------------------


def test_a_rank_counts_distinct_files() -> None:
    found = score(
        diagnosis(place("a.py", "f"), place("a.py", "g"), place("b.py"), place("c.py")),
        Truth(("c.py", "b.py")),
    )
    assert (found.rank, found.rank_of_all, found.named) == (2, 3, ("a.py", "b.py", "c.py"))


def test_a_missing_file_leaves_the_rank_of_all_open() -> None:
    found = score(diagnosis(place("a.py")), Truth(("a.py", "z.py")))
    assert (found.rank, found.rank_of_all) == (1, None)


def test_nothing_named_is_no_rank() -> None:
    found = score(diagnosis(), Truth(("a.py",), ("a.py::f",)))
    assert (found.rank, found.function_rank) == (None, None)


@pytest.mark.parametrize(
    ("named", "rank"),
    [("f", 1), ("C.f", 1), ("D.f", None), ("f.inner", None), ("module.C.f", 1)],
)
def test_a_function_is_the_same_if_name_and_known_class_are(named: str, rank: int | None) -> None:
    truth = Truth(("a.py",), ("a.py::C.f",))
    assert score(diagnosis(place("a.py", named)), truth).function_rank == rank


def test_a_function_of_another_file_is_another_function() -> None:
    found = score(
        diagnosis(place("b.py", "f"), place("b.py", "f"), place("a.py", "f")),
        Truth(("a.py",), ("a.py::f",)),
    )
    assert found.function_rank == 2


@given(st.lists(st.none() | st.integers(1, 30), max_size=30))
def test_acc_grows_with_k_and_bounds_the_mean_reciprocal_rank(ranks: list[int | None]) -> None:
    found = ranked(ranks, max(1, len(ranks)))
    counts = [found[f"acc_{bound}"] for bound in BOUNDS]
    assert counts == sorted(counts)
    named = sum(rank is not None for rank in ranks)
    assert (
        counts[0] / max(1, len(ranks)) - 1e-4 <= found["mrr"] <= named / max(1, len(ranks)) + 1e-4
    )


# Quotations and rows ---------------------------------------------------------------------------


def test_one_changed_character_is_no_quotation() -> None:
    lines = {"a.py": ["def f():", "    return 1"]}
    quotes = [
        ("a.py", 1, "def f():"),
        ("a.py", 2, "    return 2"),
        ("a.py", 9, ""),
        ("b.py", 1, ""),
    ]
    assert quoted_equal(quotes, lines.get) == Count(4, 1)


def test_a_row_is_cited_if_evidence_shows_one_that_the_condition_means() -> None:
    truth = Truth(("a.py",), (), (Decisive("orders", "id = 7"),))
    full = [{"id": 7, "code": "A-7", "note": None}]
    for shown, good in (
        ([{"id": 7, "code": "A-7"}], 1),
        ([{"id": 7, "code": "A-8"}], 0),
        ([{"id": 7}], 0),  # one column could be any table's
        ([{"id": 7, "total": 3}], 0),
        ([], 0),
    ):
        assert rows_cited(truth, shown, lambda _: full) == Count(1, good)


def test_a_row_in_words_is_cited_if_one_of_its_values_is_shown() -> None:
    words = "order 7 of '2024 05', currency 'EUR ', number AB-1204"
    assert values_of(words) == {"2024 05", "EUR ", "AB-1204"}
    truth = Truth(("a.py",), (), (Decisive(words=words),))
    assert rows_cited(truth, [{"n": "AB-1204"}], lambda _: []) == Count(1, 1)
    assert rows_cited(truth, [{"n": "7"}, {"n": "EUR"}], lambda _: []) == Count(1, 0)


# Calibration -----------------------------------------------------------------------------------

STATED = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


@given(STATED)
def test_every_case_is_in_one_row_of_the_reliability_table(
    stated: list[tuple[float, bool]],
) -> None:
    found = calibration(stated)
    assert sum(row["cases"] for row in found["table"]) == found["cases"] == len(stated)
    for row in found["table"]:
        assert row["from"] - 1e-4 <= row["mean_confidence"] <= row["to"] + 1e-4
    assert 0 <= found["brier"] <= 1


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_stating_the_base_rate_has_the_base_rates_score(right: list[bool]) -> None:
    share = sum(right) / len(right)
    found = calibration([(share, one) for one in right])
    assert found["brier"] == pytest.approx(found["brier_of_base_rate"], abs=2e-4)


def test_certainty_that_is_right_scores_nought_and_wrong_scores_one() -> None:
    assert calibration([(1.0, True), (0.0, False)])["brier"] == 0
    assert calibration([(0.0, True), (1.0, False)])["brier"] == 1
    assert calibration([])["brier"] is None


# Comparison ------------------------------------------------------------------------------------


@st.composite
def results(draw: st.DrawFn) -> list[dict[str, Any]]:
    rank = st.none() | st.integers(1, 12)
    return [
        {
            "case": name,
            "state": draw(st.sampled_from(["scored", "scored", "failed"])),
            "rank": draw(rank),
            "function_rank": draw(rank),
            "rows": {"total": 3, "good": draw(st.integers(0, 3))},
        }
        for name in draw(st.lists(st.sampled_from("abcdef"), unique=True))
    ]


@given(results())
def test_a_result_against_itself_shows_no_change(rows: list[dict[str, Any]]) -> None:
    found = compared(rows, rows)
    assert (found["better"], found["worse"]) == ([], [])
    assert set(found["net"].values()) == {0}


@given(results(), results())
def test_what_is_better_one_way_is_worse_the_other(
    one: list[dict[str, Any]], two: list[dict[str, Any]]
) -> None:
    there, back = compared(one, two), compared(two, one)

    def key(changes: list[dict[str, Any]]) -> set[tuple[str, str]]:
        return {(change["case"], change["what"]) for change in changes}

    assert key(there["better"]) == key(back["worse"])
    assert key(there["worse"]) == key(back["better"])
    assert there["net"] == {what: -number for what, number in back["net"].items()}
    assert there["only_now"] == back["only_before"]


def test_a_case_that_fails_now_is_worse() -> None:
    row = {"case": "a", "state": "scored", "rank": 2, "function_rank": None,
           "rows": {"total": 0, "good": 0}}  # fmt: skip
    found = compared([row], [{**row, "state": "failed"}])
    assert found["worse"] == [{"case": "a", "what": "file", "before": 2, "after": None}]
