"""State: a fold that may stop and go on anywhere, and what it says about a case."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from ledger import events as known
from ledger import topics
from ledger.book import Book
from ledger.canonical import to_bytes
from projections import folding as module
from projections.folding import fold
from projections.naming import things
from projections.spending import spending
from projections.state import State
from projections.timeline import line


def test_a_fold_may_be_cut_anywhere(lived: Path) -> None:
    with Book.open(lived) as book:
        entries = list(book.events())
    whole = fold(entries)
    state = State()
    for number, entry in enumerate(entries):
        assert fold(entries[number:], state) == whole
        state = fold([entry], state)
    assert state == whole


def test_what_follows_from_a_withheld_event_is_passed_over(lived: Path) -> None:
    with Book.open(lived) as book:
        entries = list(book.events())
    whole = fold(entries)
    for number in range(len(entries)):
        state = fold([*entries[:number], *entries[number + 1 :]])
        assert state.withheld == (number < len(entries) - 1)
        assert state.position in (whole.position, whole.position - 1)


def test_an_outcome_is_json_and_holds_no_position_time_attempt_or_money(lived: Path) -> None:
    with Book.open(lived) as book:
        outcome = fold(book.events()).outcome()
    assert (
        keys(outcome) & {"at", "position", "attempt", "attempts", "run", "cost_nano_usd"} == set()
    )
    assert to_bytes(outcome)


def keys(node: object) -> set[str]:
    if isinstance(node, dict):
        return set(node).union(*map(keys, node.values())) if node else set()
    if isinstance(node, list | tuple):
        return set().union(*map(keys, node)) if node else set()
    return set()


def test_the_same_answers_give_the_same_outcome_whatever_went_wrong(lives: dict[str, Path]) -> None:
    """Failed attempts, runs and corrections leave no trace: only the rejected review does."""
    outcomes = {}
    for name in ("plain", "troubled"):
        with Book.open(lives[name]) as book:
            outcomes[name] = fold(book.events()).outcome()
    for member in ("entities", "facts", "interpretation"):
        assert outcomes["plain"][member] == outcomes["troubled"][member]


NOT_FOLDED = {
    "secret.replaced/1",  # shown from the events
    "encoding.fell_back/1",  # a note beside request.prepared
    "head.accepted/1",  # about the file, not the analysis
}


def test_every_event_that_means_something_is_folded() -> None:
    """What the state leaves out is named above, with its reason; caches are not of the analysis."""
    folded = {kind.TOPIC for kind in module._APPLY}
    rest = {topic for topic in topics.REGISTRY if not topic.startswith("cache.")}
    assert rest - folded == NOT_FOLDED


def test_every_event_has_a_line_of_its_own_in_the_timeline(lived: Path) -> None:
    with Book.open(lived) as book:
        for _, event in book.events():
            text = line(event)
            assert text
            assert "\n" not in text
            assert event.at not in text


def test_ids_are_given_once_and_in_order(lived: Path) -> None:
    with Book.open(lived) as book:
        names = [thing.id for thing in things(book.events())]
    assert len(names) == len(set(names))
    for letter in "SOCRAENFH":
        numbers = [int(name[1:]) for name in names if name[0] == letter]
        assert numbers == list(range(1, len(numbers) + 1)), letter


def test_spending_that_nobody_measured_is_none_and_not_zero(lives: dict[str, Path]) -> None:
    with Book.open(lives["plain"]) as book:
        plain = spending(book.events())
    with Book.open(lives["troubled"]) as book:
        troubled = spending(book.events())
    assert (plain.prompt, plain.output, plain.cost_nano_usd) == (None, None, None)
    assert (plain.attempts, plain.failed) == (10, 0)
    assert (troubled.prompt, troubled.output, troubled.failed) == (7 * (14), None, 2)


def test_verdicts_of_a_person_are_those_the_event_allows(lives: dict[str, Path]) -> None:
    with Book.open(lives["troubled"]) as book:
        (label,) = fold(book.events()).labels
    assert label.verdict in get_args(known.Verdict)
