"""Laws of packages over random cases: there and back, whole and shared, in two readers' eyes."""

from __future__ import annotations

import zipfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import packing
from ledger.book import Book
from ledger.package import Package, restore
from ledger.reader import RecordReader
from ledger.redacted import Redacted
from ledger.verify import verify_book
from projections.redaction import redaction
from tests.generated import History, fresh, histories
from tests.ledger import independent_reader
from tests.phases.conftest import scratch as scratch
from tests.projections.test_redaction import withholdable
from tools.packaging import derived_members, prompt_members, verify_whole

A_TWENTIETH = settings(max_examples=settings.default.max_examples // 20)
"""A case that goes there and back takes some 100 ms."""


def written(record: RecordReader, path: Path, *, full: bool = True) -> str:
    """Write a package with all that can be in one; return its identity."""
    extra = prompt_members(record) | derived_members(record, requests=full, report=full)
    return packing.write(record, path, extra=extra)


def test_a_random_case_goes_there_and_back(scratch: Path) -> None:
    """The same head, identity and bytes; and the same as from memory, which cuts nothing."""

    @A_TWENTIETH
    @given(history=histories(), full=st.booleans())
    def check(history: History, full: bool) -> None:
        case, there, back = fresh(scratch), fresh(scratch, ".zip"), fresh(scratch)
        history.write(case)
        with Book.open(case) as book:
            identity = written(book, there, full=full)
        with Package(there) as package:
            assert verify_whole(package).findings == []
            assert package.identity == identity
            assert list(package.events()) == history.entries()
            head = restore(package, back)
        with Book.open(back) as book:
            assert verify_book(book).findings == []
            assert (book.head, head) == (history.reader().head, book.head)
            again = fresh(scratch, ".zip")
            assert written(book, again, full=full) == identity
        assert again.read_bytes() == there.read_bytes()
        assert independent_reader.read(there) == independent_reader.read(case)
        for path in (case, there, back, again):
            path.unlink()

    check()


def test_a_copy_of_a_random_case_verifies_and_holds_what_it_may(scratch: Path) -> None:
    @A_TWENTIETH
    @given(history=histories(), data=st.data())
    def check(history: History, data: st.DataObject) -> None:
        wanted = data.draw(st.lists(st.sampled_from(withholdable(history)), min_size=1, max_size=3))
        record = Redacted(history.reader(), redaction(history.reader(), wanted).withheld)
        path, again = fresh(scratch, ".zip"), fresh(scratch, ".zip")
        identity = written(record, path)
        with Package(path) as package:
            assert verify_whole(package).findings == []
            assert package.head == history.reader().head
            assert package.withheld == record.withheld
            assert list(package.events()) == list(record.events())
            assert package.is_redacted
            assert written(package, again) == identity
        assert again.read_bytes() == path.read_bytes()
        _, events, documents = independent_reader.read(path)
        assert {n for n, _, state, *_ in events if state is None} == record.withheld.positions
        assert {d for d, found in documents.items() if found is None} == record.withheld.payloads
        assert_gone(history, record, path)
        path.unlink()
        again.unlink()

    check()


def assert_gone(history: History, record: Redacted, path: Path) -> None:
    """Check that no withheld payload is there as a whole, neither as a chunk nor as a file."""
    kept = {d for d, _ in record.stored_payloads() if d not in record._left_out.payloads}
    hidden = {
        data
        for digest, data in history.payloads.items()
        if digest in record._left_out.payloads and len(data) > 40
    }
    with zipfile.ZipFile(path) as archive:
        everything = b"\n".join(archive.read(name) for name in archive.namelist())
    whole = b"\n".join(history.payloads[digest] for digest in kept)
    for data in hidden:
        assert data not in everything or data in whole
