"""Replay: the state at any position is the fold of that prefix, and nothing leaves the process."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.book import Book
from ledger.events import RequestPrepared, RequestSent
from ledger.package import Package
from ledger.reader import CaseReader
from projections.folding import fold
from projections.replay import seen_by, state_at, walk
from projections.saw import check_all
from projections.state import State
from tests.generated import A_TWENTIETH, History, histories

PACKAGES = Path(__file__).parents[1] / "frozen" / "cases"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every way to another machine."""

    def refuse(*arguments: object, **more: object) -> None:
        raise AssertionError("a replay asked the network")

    for name in ("socket", "create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)


def every_position_equals_the_fold_of_its_prefix(reader: CaseReader) -> None:
    state, count = State(), 0
    for count, entry in enumerate(reader.events(), start=1):
        state = fold([entry], state)  # of the prefix: a fold may be cut anywhere (test_folding.py)
        assert state_at(reader, count) == state
    assert count == reader.head.position


def test_the_state_at_every_position_of_a_package_is_the_fold_of_the_prefix() -> None:
    """The README's example, analysed by the offline analyst, read without importing it."""
    with Package(PACKAGES / "example.zip") as package:
        every_position_equals_the_fold_of_its_prefix(package)


def test_the_state_at_every_position_of_a_case_is_the_fold_of_the_prefix(lived: Path) -> None:
    with Book.open(lived) as book:
        every_position_equals_the_fold_of_its_prefix(book)


@A_TWENTIETH
@given(history=histories(), data=st.data())
def test_the_state_of_a_random_case_at_a_position_is_the_fold_of_the_prefix(
    history: History, data: st.DataObject
) -> None:
    reader, entries = history.reader(), history.entries()
    at = data.draw(st.integers(1, len(entries)))
    assert state_at(reader, at) == fold(entries[:at])
    assert [moment.position for moment in walk(reader, at)] == list(range(1, at + 1))
    seen = seen_by(reader, at)
    assert [item.request for item in seen] == list(state_at(reader, at).requests)
    assert all(item.sent is None or item.position < item.sent <= at for item in seen)
    assert [check.request for check in check_all(reader, at)] == [item.request for item in seen]


def test_a_walk_may_begin_anywhere_and_says_the_same(lived: Path) -> None:
    with Book.open(lived) as book:
        whole = list(walk(book, book.head.position))
        for after in range(0, book.head.position, 7):
            assert list(walk(book, book.head.position, after)) == whole[after:]


def test_the_model_has_seen_a_request_when_it_was_sent_and_not_when_it_was_prepared(
    lives: dict[str, Path],
) -> None:
    with Book.open(lives["plain"]) as book:
        entries = list(book.events())
        at = next(p for p, event in entries if isinstance(event, RequestPrepared))
        sent = next(p for p, event in entries if isinstance(event, RequestSent))
        assert [(i.request, i.sent, i.status) for i in seen_by(book, at)] == [
            ("R1", None, "prepared")
        ]
        assert seen_by(book, sent)[0].sent == sent
        assert seen_by(book, at - 1) == []
        assert {item.status for item in seen_by(book, book.head.position)} == {"accepted"}


def test_an_event_with_a_meaning_changes_something(lives: dict[str, Path]) -> None:
    with Book.open(lives["troubled"]) as book:
        quiet = {m.event.TOPIC for m in walk(book, book.head.position) if not m.changes}
    assert not quiet
