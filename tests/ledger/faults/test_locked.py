"""Two at one case: the second is told so, nothing is lost, and afterwards all goes on."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ledger import files
from ledger.book import Book
from ledger.errors import LedgerBusy, LedgerConflict, LedgerError, LedgerLocked
from ledger.verify import verify_book
from tests.ledger.faults.conftest import Refused, append_one
from tests.support import evidence, start

HOLD = Path(__file__).with_name("hold.py")
WAIT = "another program holds it locked; run again when it is done"


@contextmanager
def held(how: str, case: Path) -> Iterator[None]:
    """Hold a case in another process."""
    with start(HOLD, how, case) as child:
        assert child.stdout
        assert child.stdout.readline() == b"held\n"
        yield
        child.communicate()


@pytest.mark.usefixtures("impatient")
def test_a_case_locked_by_another_process_opens_once_it_is_free(
    case: Path, refused: Refused
) -> None:
    with held("exclusive", case):
        with refused(LedgerBusy, WAIT):
            Book.open(case)
        with refused(LedgerBusy, WAIT):
            Book.open_for_writing(case)
    assert append_one(case) == 9


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("before", [0, 1], ids=["first append", "later append"])
def test_a_lock_taken_meanwhile_costs_one_append(case: Path, before: int, refused: Refused) -> None:
    with Book.open_for_writing(case) as book:
        for _ in range(before):
            append(book)
        with held("exclusive", case), refused(LedgerBusy, WAIT):
            append(book)
        assert append(book) == 9 + before
    assert append_one(case) == 10 + before


def test_a_second_writer_is_turned_away(case: Path, refused: Refused) -> None:
    with held("writer", case):
        with refused(LedgerLocked, "another process is writing to it; wait for it or stop it"):
            Book.open_for_writing(case)
        with Book.open(case) as book:
            assert verify_book(book).findings == []
    assert append_one(case) == 9


def test_a_writer_behind_the_lock_is_one_conflict(case: Path, refused: Refused) -> None:
    """A lock file that was removed lets two in; the stream's version still keeps them apart."""
    with Book.open_for_writing(case) as first:
        append(first)
        case.with_name("a.case.head").unlink()
        with Book.open_for_writing(case) as second:
            append(second)
            with refused(LedgerConflict, "another process appended after position 9"):
                append(first)
            assert append(second) == 11
            assert second.payload(evidence(8, b"from position 8").content.digest)
    with Book.open(case) as book:
        assert verify_book(book).ok
    assert append_one(case) == 12


def test_a_reader_never_sees_what_a_killed_writer_had_not_committed(case: Path) -> None:
    """In rollback-journal mode, which a writer falls back to while a reader is at work."""
    child = os.fork()
    if child == 0:
        half_a_commit(case)
        os._exit(9)
    os.waitpid(child, 0)
    assert case.with_name("a.case-journal").stat().st_size > 0
    with Book.open(case) as book:
        assert book.head.position == 8
        assert verify_book(book).findings == []


def test_a_file_being_written_by_another_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening the temporary file and locking it, its writer may have finished."""
    path, temporary = tmp_path / "a.zip", tmp_path / ".a.zip.new"
    lock, meanwhile = files._lock, iter([True])

    def lock_late(*arguments: Any) -> None:
        if next(meanwhile, False):
            temporary.unlink()  # its writer is done, and the next one has begun
            temporary.write_bytes(b"half of another")
        lock(*arguments)

    monkeypatch.setattr(files, "_lock", lock_late)
    with suppress(LedgerError), files.new_file(path) as file:
        file.write(b"mine")
    assert not path.exists() or path.read_bytes() == b"mine"


def test_a_second_name_of_a_finished_file_is_not_written_to(tmp_path: Path) -> None:
    """A kill between link and unlink leaves one; replacing the file must not empty it."""
    path = tmp_path / "a.zip"
    path.write_bytes(b"finished")
    os.link(path, tmp_path / ".a.zip.new")
    with suppress(RuntimeError), files.new_file(path, overwrite=True) as file:
        file.write(b"half")
        file.flush()
        assert path.read_bytes() == b"finished"
        raise RuntimeError
    assert path.read_bytes() == b"finished"


def half_a_commit(case: Path) -> None:
    """Spill a transaction to the file and leave it open."""
    connection = sqlite3.connect(case, isolation_level=None)
    connection.execute("PRAGMA cache_size = 5")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "INSERT INTO event SELECT 9, case_id, 9, topic, state, nonce, chain "
        "FROM event WHERE position = 8"
    )
    for _ in range(300):
        connection.execute(
            "INSERT INTO chunk (digest, codec, size, data) "
            "VALUES (randomblob(32), 0, 3000, randomblob(3000))"
        )


def append(book: Book) -> int:
    data = b"from position %d" % book.head.position
    return book.append(evidence(book.head.position, data), payloads=[data]).position
