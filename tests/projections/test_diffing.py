"""Differences: empty for the same JSON value and for no other, and where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import canonical
from ledger.book import Book
from ledger.events import RequestPrepared
from projections.diffing import (
    Change,
    as_json,
    case_side,
    differences,
    request_summary,
    shared_history,
    state_changes,
)
from projections.folding import fold
from projections.state import State
from tests.generated import A_TWENTIETH, VALUES, History, histories

JSON = VALUES | st.recursive(
    st.sampled_from([0, 0.0, -0.0, 1, 1.0, True, False, None, "1"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from("ab"), inner)
        | st.lists(st.fixed_dictionaries({"id": st.sampled_from("xyz"), "v": inner}), max_size=3)
    ),
    max_leaves=8,
)
"""Values that Python holds equal and JSON does not, and lists of things with IDs."""


def changes(left: Any, right: Any) -> list[Change]:
    return list(differences(left, right))


@given(left=JSON, right=JSON)
def test_there_is_no_difference_exactly_if_it_is_the_same_json_value(left: Any, right: Any) -> None:
    assert (changes(left, right) == []) == canonical.same(left, right)
    assert changes(left, canonical.from_bytes(canonical.to_bytes(left))) == []


@given(left=JSON, right=JSON)
def test_differences_turned_round_are_those_of_the_values_turned_round(
    left: Any, right: Any
) -> None:
    back = {"added": "removed", "removed": "added"}
    turned = [
        Change(c.path, back.get(c.kind, c.kind), c.right, c.left) for c in changes(left, right)
    ]  # type: ignore[arg-type]
    assert sorted(map(repr, turned)) == sorted(map(repr, changes(right, left)))


@pytest.mark.parametrize(("left", "right"), [(1, True), (1, 1.0), (0, -0.0), (0, False), ("1", 1)])
def test_values_that_python_holds_equal_differ(left: Any, right: Any) -> None:
    assert changes({"a": [left]}, {"a": [right]}) == [Change("$.a[0]", "changed", left, right)]


def test_items_with_ids_are_matched_by_id_wherever_they_stand() -> None:
    left = [{"id": "E1", "v": 1}, {"id": "E2", "v": 2}]
    right = [{"id": "E0", "v": 0}, {"id": "E1", "v": 1}, {"id": "E2", "v": 3}]
    assert changes(left, right) == [
        Change("$[?@.id=='E0']", "added", None, {"id": "E0", "v": 0}),
        Change("$[?@.id=='E2'].v", "changed", 2, 3),
    ]
    turned = changes(left, left[::-1])
    assert turned == [Change("$", "reordered", ["E1", "E2"], ["E2", "E1"])]


def test_items_without_ids_are_matched_by_place_between_what_is_equal_at_both_ends() -> None:
    assert changes([1, 2, 3, 4], [1, 9, 3, 4]) == [Change("$[1]", "changed", 2, 9)]
    assert changes([1, 2, 3], [1, 2, 7, 3]) == [Change("$[2]", "added", None, 7)]
    assert changes([1, 1], [1]) == [Change("$[1]", "removed", 1, None)]


def test_the_order_of_members_is_a_difference() -> None:
    assert changes({"a": 1, "b": 2}, {"b": 2, "a": 1}) == [
        Change("$", "reordered", ["a", "b"], ["b", "a"])
    ]


def test_a_path_quotes_names_that_could_be_taken_for_a_path() -> None:
    names = ["a.b", "it's", "back\\slash", "line\nfeed", ""]
    paths = [c.path for c in changes({}, dict.fromkeys(names, 1))]
    assert paths == [
        "$['a.b']",
        "$['it\\'s']",
        "$['back\\\\slash']",
        "$['line\\u000afeed']",
        "$['']",
    ]


def test_deeply_nested_lists_take_time_that_grows_with_their_depth() -> None:
    """Asking each level twice would take 2 to the power of the depth."""
    left, right = 1, 2
    for _ in range(150):
        left, right = [left], [right]  # type: ignore[assignment]
    assert [c.path for c in changes(left, right)] == ["$" + "[0]" * 150]


# States, requests, cases ------------------------------------------------------------------------


@A_TWENTIETH
@given(history=histories(), data=st.data())
def test_what_an_event_changed_is_what_separates_the_states_before_and_after(
    history: History, data: st.DataObject
) -> None:
    entries = history.entries()
    at = data.draw(st.integers(1, len(entries)))
    before = fold(entries[: at - 1])
    after = fold(entries[at - 1 : at], before)
    found = list(state_changes(before, after))
    assert (found == []) == canonical.same(_compared(before), _compared(after))


def _compared(state: State) -> Any:
    return {key: value for key, value in as_json(state).items() if key != "position"}


def prepared(book: Book, name: str) -> RequestPrepared:
    found = [e for _, e in book.events() if isinstance(e, RequestPrepared) and e.request == name]
    return found[0]


def test_two_requests_differ_where_their_decoded_views_do(lives: dict[str, Path]) -> None:
    with Book.open(lives["plain"]) as book:
        earlier, later = (request_summary(book, prepared(book, name)) for name in ("R4", "R5"))
    found = {change.path: change.kind for change in differences(earlier, later)}
    assert found["$.view.evidence[?@.id=='E1']"] == "added"
    assert found["$.view.budget.previous_result"] == "changed"
    assert not any("shared" in path or "$ref" in path for path in found)


def test_a_correction_differs_from_what_it_corrects_by_its_feedback_alone(
    lives: dict[str, Path],
) -> None:
    with Book.open(lives["troubled"]) as book:
        corrects = [e for _, e in book.events() if isinstance(e, RequestPrepared) and e.corrects]
        right = request_summary(book, corrects[0])
        left = request_summary(book, prepared(book, corrects[0].corrects))
    assert [change.path for change in differences(left, right)] == ["$.feedback[0]"]


def test_a_request_of_an_unknown_protocol_is_compared_as_it_was_sent(
    lives: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Book.open(lives["plain"]) as book:
        event = prepared(book, "R1")
        import prompts

        def unknown(name: str) -> prompts.Card:
            raise prompts.PromptError(f"{name} is not here")

        monkeypatch.setattr(prompts, "card", unknown)
        assert "messages" in request_summary(book, event)


def test_two_lives_of_one_intake_share_it_and_differ_in_what_came_of_them(
    lives: dict[str, Path],
) -> None:
    with Book.open(lives["plain"]) as left, Book.open(lives["troubled"]) as right:
        assert 1 < shared_history(left, right) < left.head.position
        paths = [c.path for c in differences(case_side(left).compared, case_side(right).compared)]
        assert any(path.startswith("$.usage.") for path in paths)
        assert list(differences(case_side(left).compared, case_side(left).compared)) == []
        assert shared_history(left, left) == left.head.position
