"""What the generator of random cases promises to those who use it."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given

from ledger.book import Book
from ledger.events import EVENTS
from ledger.verify import verify_book
from projections.folding import fold
from projections.saw import check_all
from tests.generated import A_FIFTH, A_TENTH, History, fresh, histories
from tests.phases.conftest import scratch as scratch


def test_a_random_case_folds_rebuilds_verifies_and_reads_as_in_memory(scratch: Path) -> None:
    @A_TENTH
    @given(history=histories())
    def check(history: History) -> None:
        reader = history.reader()
        assert fold(reader.events()) == history.state()
        assert {check.state for check in check_all(reader)} <= {"same"}
        path = history.write(fresh(scratch))
        with Book.open(path) as book:
            assert verify_book(book).findings == []
            assert book.head == reader.head
            assert list(book.rows()) == list(reader.rows())
            assert set(book.stored_payloads()) == set(reader.stored_payloads())
        path.unlink()

    check()


def test_every_topic_occurs_in_random_cases() -> None:
    seen: set[type] = set()

    @A_FIFTH
    @given(history=histories(most=60, ahead=12) | histories(most=30, ahead=50, least=40))
    def collect(history: History) -> None:
        seen.update(map(type, history.events()))

    collect()
    assert set(EVENTS) - seen == set()
