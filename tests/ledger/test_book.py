"""The book: opening, creating, appending, closing, and what each of them leaves behind."""

from __future__ import annotations

import fcntl
import gc
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ledger import book as book_module
from ledger import canonical, chain, storage
from ledger.anchor import AnchorLock, read_anchor
from ledger.book import Book
from ledger.checks import check_chain
from ledger.errors import (
    CaseExists,
    CaseNotFound,
    LedgerBusy,
    LedgerConflict,
    LedgerDamaged,
    LedgerError,
    LedgerLocked,
    LedgerReadOnly,
    NewerFormat,
    NotALedger,
    StorageError,
    UnknownEvent,
    UnsafeEvent,
)
from ledger.events import ArtifactAdded, CaseOpened, EvidenceRecorded, HeadAccepted, Ref
from ledger.reader import EMPTY, Entry, Head
from tests.ledger.making import (
    AT,
    CASE,
    append_raw,
    contents,
    edit,
    filled,
    fixed_sources,
    head_path,
    listing,
    note,
    one_line,
    open_files,
    opened,
    raising,
    ref,
    small_case,
    tree_document,
    wal_path,
    whole_case,
    whole_record,
)

DATA = b"an answer, longer than nothing"


def evidence(data: bytes = DATA, **changes: Any) -> EvidenceRecorded:
    return filled(EvidenceRecorded).model_copy(update={"content": ref(data), **changes})


def journal_of(path: Path) -> str:
    """Return how the file's header says it is written, without SQLite."""
    return {1: "rollback", 2: "wal"}[path.read_bytes()[18]]


def state_of(path: Path) -> tuple[bytes, int]:
    return path.read_bytes(), path.stat().st_mtime_ns


@pytest.fixture
def case(tmp_path: Path) -> Path:
    return small_case(tmp_path / "a.case")


# Opening ------------------------------------------------------------------------------------------


def test_opening_to_read_changes_no_byte_and_makes_no_file(case: Path) -> None:
    before, names = (state_of(case), state_of(head_path(case))), listing(case.parent)
    with Book.open(case) as book:
        assert [entry.position for entry in book.events()] == [1, 2, 3, 4]
        assert listing(case.parent) == names
    assert (state_of(case), state_of(head_path(case))) == before
    assert listing(case.parent) == names


def test_opening_to_write_and_writing_nothing_changes_no_byte_of_the_case(case: Path) -> None:
    before, names = (state_of(case), state_of(head_path(case))), listing(case.parent)
    with Book.open_for_writing(case) as book:
        assert book.head.position == 4
    assert (state_of(case), state_of(head_path(case))) == before
    assert listing(case.parent) == names


@pytest.mark.parametrize("opener", [Book.open, Book.open_for_writing, Book.recover])
def test_opening_never_creates(opener: Callable[[Path], Any], tmp_path: Path) -> None:
    with pytest.raises(CaseNotFound) as caught:
        opener(tmp_path / "none.case")
    one_line(caught.value)
    with pytest.raises(CaseNotFound):
        opener(tmp_path / "no folder" / "none.case")
    assert listing(tmp_path) == []


@pytest.mark.parametrize("opener", [Book.open, Book.open_for_writing])
def test_a_case_that_goes_away_while_it_is_opened_is_not_created(
    opener: Callable[[Path], Any], case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "check_magic", Path.unlink)
    with pytest.raises(LedgerError) as caught:
        opener(case)
    one_line(caught.value)
    assert listing(case.parent) == ["a.case.head"]


def make_database(*statements: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        connection = sqlite3.connect(path)
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()

    return make


IDENTITY = f"PRAGMA application_id = {storage.APPLICATION_ID}"
FORMAT_1 = "PRAGMA user_version = 1"
FOREIGN: dict[str, tuple[Callable[[Path], None], type[LedgerError], str]] = {
    "folder": (Path.mkdir, NotALedger, "is a folder"),
    "empty": (Path.touch, NotALedger, "is empty"),
    "text": (lambda p: p.write_text("no database at all"), NotALedger, "not a case ledger"),
    "zip": (lambda p: p.write_bytes(b"PK\3\4" + bytes(100)), NotALedger, "import"),
    "cut in its magic": (lambda p: p.write_bytes(b"SQLite form"), NotALedger, "not a case ledger"),
    "cut in its header": (
        lambda p: p.write_bytes(storage.MAGIC + b"\x10\0"),
        NotALedger,
        "damaged",
    ),
    "garbage after magic": (
        lambda p: p.write_bytes(storage.MAGIC + b"x" * 9000),
        NotALedger,
        "not a case ledger",
    ),
    "other database": (make_database("CREATE TABLE t (x)"), NotALedger, "not a case ledger"),
    "unfinished": (make_database(IDENTITY, "CREATE TABLE t (x)"), NotALedger, "unfinished"),
    "newer format": (make_database(IDENTITY, "PRAGMA user_version = 2"), NewerFormat, "format 2"),
    "without tables": (make_database(IDENTITY, FORMAT_1), LedgerError, "table.*event"),
    "without events": (lambda p: storage.create_file(p).close(), NotALedger, "holds no event"),
}


@pytest.mark.parametrize("opener", [Book.open, Book.open_for_writing, Book.recover])
@pytest.mark.parametrize("kind", FOREIGN)
def test_what_is_no_case_is_refused_in_one_line_and_left_alone(
    kind: str, opener: Callable[[Path], Any], tmp_path: Path
) -> None:
    make, error, says = FOREIGN[kind]
    path = tmp_path / "x.case"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(error, match=says) as caught:
        opener(path)
    assert str(path) in one_line(caught.value)
    assert not path.is_file() or path.read_bytes() == before
    assert open_files() == []


def test_a_cut_off_case_is_refused_or_damaged_never_another_error(case: Path) -> None:
    data = case.read_bytes()
    for size in range(0, len(data), 509):
        case.write_bytes(data[:size])
        with suppress(LedgerError), Book.open(case) as book:
            list(book.events())
            list(book.rows())


@pytest.mark.parametrize("name", ["file:x.case", "a?mode=memory.case", "100%41.case", "a#b.case"])
def test_a_name_is_never_read_as_a_uri(name: str, tmp_path: Path) -> None:
    path = small_case(tmp_path / name)
    assert listing(tmp_path) == sorted([name, name + ".head"])
    with Book.open_for_writing(path) as book:
        book.append(note(9))
    with Book.open(path) as book:
        assert book.head.position == 5
    assert listing(tmp_path) == sorted([name, name + ".head"])


def test_a_topic_of_a_newer_release_makes_a_case_read_only(case: Path) -> None:
    for topic in ("", "zzz.happened/9"):
        path = shutil.copyfile(case, case.with_name("b.case"))
        append_raw(path, topic, b"{}")
        before = path.read_bytes()
        with pytest.raises(UnknownEvent, match="newer release") as caught:
            Book.open_for_writing(path)
        one_line(caught.value)
        with Book.open(path) as book:
            assert [row.topic for row in book.rows(after=4)] == [topic]
            with pytest.raises(UnknownEvent):
                list(book.events())
        assert path.read_bytes() == before


def test_a_failed_open_leaks_no_lock_and_no_handle(case: Path) -> None:
    good = read_anchor(case)
    assert good is not None
    for _ in range(3):
        head_path(case).write_text(f"caseledger-head/1 9 {'0' * 64}\n")
        with pytest.raises(LedgerDamaged):
            Book.open_for_writing(case)
        assert open_files() == []
    head_path(case).write_text(f"caseledger-head/1 {good.position} {good.chain.hex()}\n")
    with Book.open_for_writing(case) as book:
        book.append(note(5))
    append_raw(case, "zzz.happened/9", b"{}")
    with pytest.raises(UnknownEvent):
        Book.open_for_writing(case)
    assert open_files() == []
    AnchorLock(case).release()  # not held by anybody


# Reading ------------------------------------------------------------------------------------------


def test_events_are_read_in_order_between_positions(case: Path) -> None:
    with Book.open(case) as book:
        everything = list(book.events())
        assert [entry.position for entry in everything] == [1, 2, 3, 4]
        assert everything[0] == Entry(1, opened())
        assert list(book.events(2)) == everything[:2]
        assert list(book.events(3, after=1)) == everything[1:3]
        assert list(book.events(after=4)) == []
        assert list(book.events(99)) == everything
        assert list(book.events(0)) == []
        assert book.case_id == CASE


def test_pages_are_invisible(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Book.open(case) as book:
        whole = list(book.events()), list(book.rows())
        for size in (1, 2, 3):
            monkeypatch.setattr(book_module, "PAGE", size)
            assert (list(book.events()), list(book.rows())) == whole


def test_a_reader_holds_no_transaction_between_pages(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer can switch to WAL, append, and close into one file while a reader iterates."""
    monkeypatch.setattr(book_module, "PAGE", 1)
    with Book.open(case) as reader:
        events, rows, sizes = reader.events(), reader.rows(), reader.stored_payloads()
        assert next(events).position == next(rows).position == 1
        next(sizes, None)
        with Book.open_for_writing(case) as writer:
            writer.append(evidence(), payloads=[DATA])
            assert journal_of(case) == "wal"
            assert next(events).position == 2
            assert wal_path(case).stat().st_size > 0
            reader.connection.close()  # the last one turns the file back
    assert listing(case.parent) == ["a.case", "a.case.head"]


def test_a_reader_that_goes_on_iterating_sees_its_own_end(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book_module, "PAGE", 1)
    monkeypatch.setattr(storage, "BUSY_SECONDS", 0.1)
    with Book.open(case) as reader:
        events = reader.events()
        next(events)
        with Book.open_for_writing(case) as writer:
            writer.append(note(4))
            writer.append(note(5))
        assert not wal_path(case).exists()  # the file is complete without it
        assert len(contents(shutil.copyfile(case, case.with_name("copy.case")))["event"]) == 6
        case.with_name("copy.case").unlink()
        assert [entry.position for entry in events] == [2, 3, 4]
        assert reader.refresh().position == 6
        assert [entry.position for entry in reader.events(after=4)] == [5, 6]
    with Book.open_for_writing(case) as writer:  # the next clean close leaves one file again
        writer.append(note(6))
    assert listing(case.parent) == ["a.case", "a.case.head"]


def test_a_payload_iterated_half_holds_no_transaction(tmp_path: Path) -> None:
    path = whole_case(tmp_path / "a.case")
    with Book.open(path) as reader:
        for digest, _ in reader.stored_payloads():
            next(reader.numbered_chunks(digest), None)
        chunks = reader.numbered_chunks(
            canonical.digest(tree_document(catalogued=("src/huge.bin",)))
        )
        next(chunks)
        stored = reader.stored_payloads()
        next(stored)
        connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("ROLLBACK")
        connection.close()
        list(chunks), list(stored)


@pytest.mark.parametrize(
    ("column", "value"),
    [("state", "'text'"), ("nonce", "'0123456789abcdef'"), ("chain", "7"), ("topic", "x'00'")],
)
def test_a_value_of_another_type_is_damage_with_its_position(
    column: str, value: str, case: Path
) -> None:
    """STRICT is checked when a row is written, not when it is read."""
    connection = sqlite3.connect(case, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    query = "UPDATE sqlite_schema SET sql = replace(sql, 'STRICT', '') WHERE name = 'event'"
    connection.execute(query)
    connection.execute("PRAGMA writable_schema = RESET")
    connection.close()
    edit(case, f"UPDATE event SET {column} = {value} WHERE position = 3")
    with Book.open(case) as book:
        with pytest.raises(LedgerDamaged, match="position 3") as caught:
            list(book.rows())
        assert caught.value.position == 3


# Appending ----------------------------------------------------------------------------------------


def test_an_append_is_there_for_the_next_reader_with_its_payloads(case: Path) -> None:
    with Book.open_for_writing(case, sources=fixed_sources()) as book:
        head = book.append(evidence(), note(5), payloads=[DATA])
        assert book.head == head == read_anchor(case)
        assert book.payload(canonical.digest(DATA)) == DATA
    with Book.open(case) as book:
        assert book.head == head
        assert list(book.events(after=4)) == [Entry(5, evidence()), Entry(6, note(5))]
        check_chain(book)


def test_a_payload_may_be_stored_once_and_named_again(case: Path) -> None:
    with Book.open_for_writing(case) as book:
        book.append(evidence(), payloads=[DATA])
        book.append(evidence())
        book.append(evidence(), payloads=[DATA, DATA])
    assert len(contents(case)["document"]) == 1


def test_what_is_opened_to_read_cannot_append(case: Path) -> None:
    with Book.open(case) as book, pytest.raises(LedgerReadOnly, match="opened for reading"):
        book.append(note(1))


def bad_tree(**changes: Any) -> bytes:
    entry = {"path": "a.py", "size": 3, "digest": canonical.digest(b"abc"), "media": "text"}
    entry |= {"encoding": "utf-8", "lines": 1, "stored": True}
    return canonical.to_bytes({"format": 1, "files": [entry | changes], "skipped": []})


def tree_event(document: bytes) -> ArtifactAdded:
    return filled(ArtifactAdded).model_copy(update={"content": None, "tree": ref(document)})


def failing(*items: bytes, error: BaseException) -> Iterator[bytes]:
    yield from items
    raise error


Attempt = Callable[[Book], Any]
REFUSED: dict[str, tuple[Attempt, type[BaseException], str]] = {
    "nothing": (lambda b: b.append(), UnsafeEvent, "nothing to append"),
    "payload named by no event": (
        lambda b: b.append(evidence(), payloads=[DATA, b"another"]),
        UnsafeEvent,
        "is named by no event",
    ),
    "payload with an event that names none": (
        lambda b: b.append(note(1), payloads=[DATA]),
        UnsafeEvent,
        "named by no event",
    ),
    "missing payload": (lambda b: b.append(evidence()), UnsafeEvent, "not stored"),
    "wrong size": (
        lambda b: b.append(
            evidence(content=Ref(digest=canonical.digest(DATA), size=1)), payloads=[DATA]
        ),
        UnsafeEvent,
        "of 1 bytes",
    ),
    "no digest": (
        lambda b: b.append(evidence(content=Ref(digest="sha256:x", size=1))),
        LedgerError,
        "not a digest",
    ),
    "second of two events": (
        lambda b: b.append(evidence(), evidence(b"missing"), payloads=[DATA]),
        UnsafeEvent,
        "not stored",
    ),
    "error in the payloads": (
        lambda b: b.append(evidence(), payloads=failing(DATA, error=ZeroDivisionError("mine"))),
        ZeroDivisionError,
        "mine",
    ),
    "interrupted": (
        lambda b: b.append(evidence(), payloads=failing(DATA, error=KeyboardInterrupt())),
        KeyboardInterrupt,
        "$",
    ),
    "payload that is no bytes": (
        lambda b: b.append(evidence(), payloads=[DATA, "text"]),  # type: ignore[list-item]
        TypeError,
        "encoded",
    ),
    "file of a tree missing": (
        lambda b: b.append(tree_event(bad_tree()), payloads=[bad_tree()]),
        UnsafeEvent,
        "not stored",
    ),
    "tree that is no tree": (
        lambda b: b.append(tree_event(DATA), payloads=[DATA]),
        LedgerError,
        "tree document",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_an_append_that_fails_leaves_nothing_and_the_next_one_works(kind: str, case: Path) -> None:
    attempt, error, says = REFUSED[kind]
    before, anchor = contents(case), head_path(case).read_bytes()
    with Book.open_for_writing(case) as book:
        with pytest.raises(error, match=says) as caught:
            attempt(book)
        if isinstance(caught.value, LedgerError):
            one_line(caught.value)
        assert not book.connection.in_transaction
        assert book.head.position == 4
        assert contents(case) == before
        assert head_path(case).read_bytes() == anchor
        book.append(note(5))
    with Book.open(case) as book:
        assert book.head.position == 5
        check_chain(book)


@pytest.mark.parametrize("swallow", [False, True])
def test_an_append_inside_an_append_is_refused_and_spoils_nothing(
    swallow: bool, case: Path
) -> None:
    before = contents(case)
    with Book.open_for_writing(case) as book:

        def nested() -> Iterator[bytes]:
            yield DATA
            try:
                book.append(note(6))
            except LedgerError:
                if not swallow:
                    raise
            yield b"second"

        events = [evidence(), evidence(b"second")]
        if swallow:
            book.append(*events, payloads=nested())
            assert [entry.event for entry in book.events(after=4)] == events
            check_chain(book)
        else:
            with pytest.raises(StorageError, match="nest"):
                book.append(*events, payloads=nested())
            assert contents(case) == before
        assert not book.connection.in_transaction


def test_reading_inside_an_append_works(case: Path) -> None:
    with Book.open_for_writing(case) as book:

        def payloads() -> Iterator[bytes]:
            assert len(list(book.events())) == 4
            yield DATA

        assert book.append(evidence(), payloads=payloads()).position == 5


class Answers:
    """A connection whose COMMIT does something else, once."""

    def __init__(
        self, real: sqlite3.Connection, commit: Callable[[sqlite3.Connection], Any]
    ) -> None:
        self._real, self._commit = real, commit

    def execute(self, sql: str, *parameters: Any) -> Any:
        if sql == "COMMIT":
            commit, self._commit = self._commit, lambda real: real.execute("COMMIT")
            return commit(self._real)
        return self._real.execute(sql, *parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@contextmanager
def answering(case: Path, commit: Callable[[sqlite3.Connection], Any]) -> Iterator[Book]:
    with Book.open_for_writing(case) as book:
        book._connection = Answers(book.connection, commit)  # type: ignore[assignment]
        yield book


LOST: list[sqlite3.Error] = [
    sqlite3.OperationalError("disk I/O error"),
    sqlite3.IntegrityError("UNIQUE constraint failed"),
    sqlite3.DatabaseError("database disk image is malformed"),
]


@pytest.mark.parametrize("error", LOST, ids=lambda error: type(error).__name__)
def test_a_commit_whose_answer_was_lost_is_a_success(error: sqlite3.Error, case: Path) -> None:
    def commit(real: sqlite3.Connection) -> None:
        real.execute("COMMIT")
        raise error

    with answering(case, commit) as book:
        head = book.append(evidence(), note(5), payloads=[DATA])
        assert head.position == 6
        assert read_anchor(case) == head
        assert book.append(note(6)).position == 7
    with Book.open(case) as again:
        check_chain(again)
        assert again.payload(canonical.digest(DATA)) == DATA


@pytest.mark.parametrize("error", LOST, ids=lambda error: type(error).__name__)
def test_a_commit_that_failed_is_an_error_and_leaves_nothing(
    error: sqlite3.Error, case: Path
) -> None:
    before = contents(case)
    with answering(case, raising(error)) as book:
        with pytest.raises((StorageError, LedgerConflict)) as caught:
            book.append(evidence(), payloads=[DATA])
        one_line(caught.value)
        assert contents(case) == before
        assert book.append(note(5)).position == 5


def test_a_different_row_in_the_place_is_a_conflict(case: Path) -> None:
    def commit(real: sqlite3.Connection) -> None:
        real.execute("ROLLBACK")
        with Book.open(case) as view:
            before = view.head
        leaf = chain.leaf(CASE, 5, "run.stopped/1", b"{}", bytes(16))
        real.execute(
            "INSERT INTO event VALUES (5, ?, 5, 'run.stopped/1', x'7b7d', zeroblob(16), ?)",
            (CASE, chain.link(before.chain, leaf)),
        )
        raise sqlite3.OperationalError("disk I/O error")

    with (
        answering(case, commit) as book,
        pytest.raises(LedgerConflict, match="after position 4") as caught,
    ):
        book.append(evidence(), payloads=[DATA])
    one_line(caught.value)
    assert contents(case)["document"] == []


def test_the_same_events_appended_twice_are_two_facts(case: Path) -> None:
    with Book.open_for_writing(case) as book:
        book.append(note(5))
        book.append(note(5))
        assert book.head.position == 6


# Two writers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("opener", [Book.open_for_writing, Book.recover])
def test_a_second_writer_is_locked_out(opener: Callable[[Path], Any], case: Path) -> None:
    with Book.open_for_writing(case) as first:
        with pytest.raises(LedgerLocked, match="another process") as caught:
            opener(case)
        one_line(caught.value)
        first.append(note(4))
        with pytest.raises(LedgerLocked):
            opener(case)
        with Book.open(case) as reader:
            assert reader.head.position == 5
    if (book := opener(case)) is not None:  # free again
        book.close()


class Unlocked(AnchorLock):
    """An anchor that anybody may hold."""

    def _open_locked(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CREAT)


def test_two_writers_past_the_lock_give_one_conflict_and_a_valid_chain(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book_module, "AnchorLock", Unlocked)
    monkeypatch.setattr(storage, "BUSY_SECONDS", 0.1)
    with Book.open_for_writing(case) as first, Book.open_for_writing(case) as second:
        first.append(evidence(), payloads=[DATA])
        with pytest.raises(LedgerConflict, match="after position 4") as caught:
            second.append(evidence(b"other"), payloads=[b"other"])
        assert not isinstance(caught.value, LedgerLocked)
        one_line(caught.value)
        assert second.refresh().position == 5
        second.append(evidence(b"other"), payloads=[b"other"])
        with pytest.raises(LedgerConflict):
            first.append(note(9))
    with Book.open(case) as book:
        check_chain(book)
        assert [type(e.event) for e in book.events(after=4)] == [EvidenceRecorded] * 2
        assert len(list(book.stored_payloads())) == 2


def test_a_record_cut_short_behind_a_writer_is_a_conflict_not_a_gap(case: Path) -> None:
    with Book.open_for_writing(case) as book:
        edit(case, "DELETE FROM event WHERE position = 4")
        before = contents(case)
        with pytest.raises(LedgerConflict):
            book.append(evidence(), payloads=[DATA])
        assert contents(case) == before


def test_an_anchor_renamed_before_it_was_locked_is_not_the_one_held(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A creator gives its anchor to the case between our opening and our locking."""
    flock, calls = fcntl.flock, []

    def late(handle: int, operation: int) -> None:
        calls.append(handle)
        if len(calls) == 1:
            other = case.with_name("other")
            shutil.copyfile(head_path(case), other)
            other.rename(head_path(case))
        flock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    lock = AnchorLock(case)
    assert len(calls) == 2
    with head_path(case).open() as anchor, pytest.raises(BlockingIOError):
        flock(anchor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    lock.release()


def test_another_programs_lock_is_busy_and_nothing_is_lost(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "BUSY_SECONDS", 0.05)
    other = sqlite3.connect(case, isolation_level=None)
    with Book.open_for_writing(case) as book:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerBusy, match="run again") as caught:
            book.append(note(4))
        one_line(caught.value)
        other.execute("ROLLBACK")
        assert book.append(note(4)).position == 5
    other.close()


# Creating -----------------------------------------------------------------------------------------


def test_a_new_case_is_one_file_and_its_anchor(tmp_path: Path) -> None:
    path = tmp_path / "a.case"
    with Book.create(path) as book:
        assert book.head == EMPTY
        book.append(opened())
        assert not path.exists()
    assert listing(tmp_path) == ["a.case", "a.case.head"]
    assert journal_of(path) == "rollback"
    with Book.open(path) as book:
        assert read_anchor(path) == book.head
        assert book.case_id == CASE


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, UnsafeEvent])
def test_an_error_while_creating_leaves_nothing(error: type[BaseException], tmp_path: Path) -> None:
    path = tmp_path / "a.case"
    with pytest.raises(error), Book.create(path) as book:  # noqa: PT012 - the block is the case
        book.append(opened())
        raise error
    assert listing(tmp_path) == []
    assert open_files() == []
    small_case(path)


def test_a_case_without_events_does_not_come_into_being(tmp_path: Path) -> None:
    with pytest.raises(UnsafeEvent, match="at least one event"), Book.create(tmp_path / "a.case"):
        pass
    assert listing(tmp_path) == []


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_creating_overwrites_nothing(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.case"
    {
        "file": Path.touch,
        "folder": Path.mkdir,
        "dangling link": lambda p: p.symlink_to(tmp_path / "nowhere"),
    }[kind](path)
    with pytest.raises(CaseExists) as caught, Book.create(path):
        pytest.fail("the block must not run")
    one_line(caught.value)
    assert listing(tmp_path) == ["a.case"]


def test_a_name_taken_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.case"
    with pytest.raises(CaseExists), Book.create(path) as book:  # noqa: PT012 - as above
        book.append(opened())
        path.write_text("somebody else's")
    assert path.read_text() == "somebody else's"
    assert listing(tmp_path) == ["a.case"]


def test_a_folder_that_is_missing_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "none" / "a.case"
    with pytest.raises(StorageError, match="does not exist"), Book.create(path):
        pytest.fail("the block must not run")


def test_two_creators_of_one_name_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "a.case"
    with Book.create(path) as book:
        book.append(opened())
        with pytest.raises(LedgerLocked), Book.create(path):
            pytest.fail("the block must not run")
    assert listing(tmp_path) == ["a.case", "a.case.head"]


def test_what_a_killed_creator_left_is_taken_over(tmp_path: Path) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        (tmp_path / f".a.case.new{end}").write_bytes(b"half a file")
    (tmp_path / "a.case.head").write_bytes(b"half a line")
    small_case(tmp_path / "a.case")
    assert listing(tmp_path) == ["a.case", "a.case.head"]


def test_the_anchor_of_an_erased_case_does_not_bind_a_new_one(tmp_path: Path) -> None:
    path = small_case(tmp_path / "a.case", notes=9)
    path.unlink()
    small_case(path, notes=1)
    with Book.open_for_writing(path) as book:
        assert book.anchor() == book.head == Head(2, book.head.chain)


def test_the_same_sources_give_the_same_record(tmp_path: Path) -> None:
    first, second = (whole_case(tmp_path / f"{name}.case") for name in "ab")
    assert contents(first) == contents(second)


# Closing ------------------------------------------------------------------------------------------


def test_a_clean_close_leaves_one_complete_file(case: Path) -> None:
    with Book.open_for_writing(case) as book:
        book.append(evidence(), payloads=[DATA])
        assert journal_of(case) == "wal"
    assert listing(case.parent) == ["a.case", "a.case.head"]
    assert journal_of(case) == "rollback"
    moved = case.parent / "elsewhere"
    moved.mkdir()
    shutil.copyfile(case, moved / "b.case")
    with Book.open(moved / "b.case") as book:
        assert book.payload(canonical.digest(DATA)) == DATA


def test_closing_twice_is_closing_once(case: Path) -> None:
    for book in (Book.open(case), Book.open_for_writing(case)):
        book.close()
        book.close()
    with Book.open_for_writing(case) as book:
        book.append(note(4))
        book.close()
    assert open_files() == []


def test_a_close_that_fails_lets_the_lock_go(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = Book.open_for_writing(case)
    book.append(note(4))
    close = storage.close_file

    def fail(connection: sqlite3.Connection, *, write: bool) -> None:
        close(connection, write=write)
        raise sqlite3.DatabaseError("malformed")

    monkeypatch.setattr(storage, "close_file", fail)
    with pytest.raises(LedgerError) as caught:
        book.close()
    one_line(caught.value)
    monkeypatch.undo()
    with Book.open_for_writing(case) as again:
        assert again.head.position == 5


def test_the_library_does_not_close_our_connection(case: Path) -> None:
    """`Application.__del__` closes its pool; a recorder may still be in use."""
    with Book.open_for_writing(case) as book:
        book.append(note(4))
        application = book._application
        assert application is not None
        application.close()
        application.factory.close()
        book._application = None
        del application
        gc.collect()
        assert len(list(book.events())) == 5
        assert book.append(note(5)).position == 6


# The library's environment ------------------------------------------------------------------------


def test_the_shell_changes_nothing_that_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = whole_case(tmp_path / "plain.case")
    for prefix in ("", "CASEAPPLICATION_", "APPLICATION_"):
        for name, value in {
            "PERSISTENCE_MODULE": "eventsourcing.popo",
            "INFRASTRUCTURE_FACTORY": "eventsourcing.popo:POPOFactory",
            "FACTORY_TOPIC": "eventsourcing.popo:POPOFactory",
            "COMPRESSOR_TOPIC": "zlib",
            "CIPHER_TOPIC": "eventsourcing.cipher:AESCipher",
            "CIPHER_KEY": "AAAAAAAAAAAAAAAAAAAAAA==",
            "MAPPER_TOPIC": "os:system",
            "TRANSCODER_TOPIC": "os:system",
            "APPLICATION_RECORDER_TOPIC": "os:system",
            "IS_SNAPSHOTTING_ENABLED": "y",
            "ORIGINATOR_ID_TYPE": "uuid",
            "SQLITE_DBNAME": str(tmp_path / "other.db"),
            "SQLITE_LOCK_TIMEOUT": "no number",
            "CREATE_TABLE": "n",
            "AGGREGATE_CACHE_MAXSIZE": "10",
            "LOG_SECTION_SIZE": "x",
        }.items():
            monkeypatch.setenv(prefix + name, value)
    shell = whole_case(tmp_path / "shell.case")
    with Book.open_for_writing(plain) as book:
        assert dict(book._writer([note(1)]).env) == {}
    assert contents(shell) == contents(plain)
    assert listing(tmp_path) == ["plain.case", "plain.case.head", "shell.case", "shell.case.head"]


def test_an_unknown_keyword_is_an_error_not_a_lost_payload(case: Path) -> None:
    """Stock recorders ignore what they do not know."""
    from ledger.recorder import Commit, Stamped

    with Book.open_for_writing(case) as book:
        application = book._writer([note(1)])
        commit = Commit(book.head, [bytes(16)], lambda: None)
        with pytest.raises(TypeError, match="blobs"):
            application.save(Stamped(CASE, 5, note(1)), commit=commit, blobs=[DATA])
        with pytest.raises(TypeError):
            application.save(Stamped(CASE, 5, note(1)))
        assert book.refresh().position == 4


# What guards the rows -----------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["event", "chunk", "document"])
@pytest.mark.parametrize("statement", ["UPDATE {t} SET rowid = 9", "DELETE FROM {t}"])
def test_rows_cannot_be_changed_or_removed(table: str, statement: str, tmp_path: Path) -> None:
    path = whole_case(tmp_path / "a.case", requests=1)
    before = contents(path)
    if table == "document":
        statement = statement.replace("rowid", "size")
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement.format(t=table))
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(f"REPLACE INTO {table} SELECT * FROM {table}")
    connection.close()
    assert contents(path) == before


def test_the_schema_is_the_one_on_the_format_page(case: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "format.md").read_text()
    sql = re.search(r"```sql\n(.*?)```", page, re.DOTALL)
    assert sql is not None
    connection = sqlite3.connect(":memory:")
    connection.executescript(re.sub("--.*", "", sql[1]))
    named = storage.stored_schema(connection)
    connection.close()
    stored = sqlite3.connect(case)
    assert storage.stored_schema(stored) == named
    for pragma, value in {"application_id": 1129532487, "user_version": 1}.items():
        assert stored.execute(f"PRAGMA {pragma}").fetchone() == (value,)
        assert str(value) in page
    stored.close()


# Anchors ------------------------------------------------------------------------------------------


UNREADABLE = [b"", b"x", b"caseledger-head/1 1", b"\xff" * 40, b"caseledger-head/2 1 " + b"0" * 64]


@pytest.mark.parametrize("content", [None, *UNREADABLE])
def test_a_case_without_a_readable_anchor_opens_and_gets_one(
    content: bytes | None, case: Path
) -> None:
    if content is None:
        head_path(case).unlink()
    else:
        head_path(case).write_bytes(content)
    with Book.open(case) as book:
        assert book.anchor() is None
    with Book.open_for_writing(case) as book:
        book.append(note(4))
        assert book.anchor() == book.head


def test_a_ledger_ahead_of_its_anchor_goes_on(case: Path) -> None:
    """A process was killed between the commit and the anchor."""
    old = head_path(case).read_bytes()
    with Book.open_for_writing(case) as book:
        book.append(note(4))
    head_path(case).write_bytes(old)
    with Book.open_for_writing(case) as book:
        assert book.anchor() == book.head == book.append(note(5)) or book.head.position == 6
        assert book.anchor() == book.head
    assert Book.recover(case) is None


def cut_tail(case: Path) -> None:
    edit(case, "DELETE FROM event WHERE position > 2")


def replace_record(case: Path) -> None:
    line = f"caseledger-head/1 3 {'ab' * 32}\n"
    head_path(case).write_text(line)


@pytest.mark.parametrize(
    ("damage", "says", "position"),
    [(cut_tail, "tail is missing", 3), (replace_record, "record was replaced", 3)],
)
def test_a_ledger_that_its_anchor_contradicts_is_not_written_to(
    damage: Callable[[Path], None], says: str, position: int, case: Path
) -> None:
    damage(case)
    before, anchor = case.read_bytes(), head_path(case).read_bytes()
    with pytest.raises(LedgerDamaged, match=says) as caught:
        Book.open_for_writing(case)
    one_line(caught.value)
    assert caught.value.position == position
    assert (case.read_bytes(), head_path(case).read_bytes()) == (before, anchor)
    with Book.open(case) as book:  # reading goes on
        assert list(book.events(1)) == [Entry(1, opened())]


@pytest.mark.parametrize("damage", [cut_tail, replace_record])
def test_recover_accepts_a_head_on_the_record(damage: Callable[[Path], None], case: Path) -> None:
    damage(case)
    known = read_anchor(case)
    with Book.open(case) as book:
        head = book.head
    accepted = Book.recover(case, reason="the disk died", sources=fixed_sources())
    assert known is not None
    assert accepted == HeadAccepted(
        at=AT,
        position=head.position,
        chain=head.chain.hex(),
        anchor_position=known.position,
        anchor_chain=known.chain.hex(),
        reason="the disk died",
    )
    with Book.open_for_writing(case) as book:
        assert list(book.events(after=head.position)) == [Entry(head.position + 1, accepted)]
        book.append(note(9))
        check_chain(book)
    assert Book.recover(case) is None


def test_recover_does_not_accept_a_broken_chain(case: Path) -> None:
    cut_tail(case)
    edit(case, "UPDATE event SET nonce = zeroblob(16) WHERE position = 2")
    before = contents(case)
    with pytest.raises(LedgerDamaged, match="position 2"):
        Book.recover(case)
    assert contents(case) == before
    assert open_files() == []


def test_the_anchor_is_locked_not_the_case(case: Path) -> None:
    anchor = head_path(case).open()
    with Book.open_for_writing(case), anchor, pytest.raises(BlockingIOError):
        fcntl.flock(anchor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_lock_that_cannot_be_taken_for_another_reason_is_not_another_process(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", raising(OSError(37, "No locks available")))
    with pytest.raises(StorageError, match="No locks available"):
        Book.open_for_writing(case)
    with pytest.raises(StorageError, match="No locks available"), Book.create(case.with_name("b")):
        pass


def test_an_anchor_that_cannot_be_written_does_not_deny_the_commit(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Book.open_for_writing(case) as book:
        monkeypatch.setattr(os, "pwrite", raising(OSError(28, "No space left on device")))
        with pytest.raises(StorageError, match="was written") as caught:
            book.append(note(4))
        assert "nothing was written" not in one_line(caught.value)
        monkeypatch.undo()
        assert book.head.position == 5
        assert book.append(note(5)).position == 6
        assert book.anchor() == book.head


# After a kill -------------------------------------------------------------------------------------


def killed_copy(case: Path, folder: Path) -> Path:
    """Return a copy of a case as a kill would leave it: in WAL mode, rows in the WAL."""
    folder.mkdir()
    with Book.open_for_writing(case) as book:
        book.append(evidence(), payloads=[DATA])
        for name in (case, wal_path(case), head_path(case)):
            shutil.copyfile(name, folder / name.name)
    return folder / case.name


def test_rows_in_the_wal_of_a_killed_writer_are_there(case: Path, tmp_path: Path) -> None:
    path = killed_copy(case, tmp_path / "killed")
    with Book.open(path) as book:
        assert book.head.position == 5
        assert book.payload(canonical.digest(DATA)) == DATA
    with Book.open_for_writing(path) as book:
        book.append(note(6))
    assert listing(path.parent) == ["a.case", "a.case.head"]


CHILD = textwrap.dedent(
    """
    import os, sys
    from pathlib import Path
    from ledger import verify, packing, package, recorder
    from ledger.book import Book
    from ledger.errors import LedgerError, LedgerReadOnly

    path = Path(sys.argv[1])
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    os.environ["TMPDIR"] = sys.argv[2]
    with Book.open(path) as book:
        report = verify.verify_book(book)
        print(book.head.position, report.ok, len(list(book.events())))
        packing.write(book, Path(sys.argv[2]) / "out.zip")
    try:
        with Book.open_for_writing(path) as book:
            book.append(next(iter(book.events())).event)
    except LedgerReadOnly as error:
        print("read-only", len(str(error).splitlines()))
    print(sorted(os.listdir(path.parent)), sorted(os.listdir(sys.argv[2])))
    """
)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody without rights")
@pytest.mark.parametrize("wal", [True, False])
def test_a_folder_that_cannot_be_written_is_read_wal_included(case: Path, wal: bool) -> None:
    """At rest, and in WAL mode after a kill: through a temporary copy, which goes away."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        home.chmod(0o755)
        scratch = home / "scratch"
        scratch.mkdir()
        scratch.chmod(0o777)
        path = killed_copy(case, home / "killed")
        if not wal:
            with Book.open_for_writing(path) as book:
                book.append(note(9))
        names = listing(path.parent)
        for name in path.parent.iterdir():
            name.chmod(0o444)
        path.parent.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-P", "-c", CHILD, path, scratch],
            capture_output=True,
            text=True,
            check=False,
            # It could not write its coverage beside ours.
            env={k: v for k, v in os.environ.items() if not k.startswith("COVERAGE")},
        )
        if "setuid" in done.stderr:
            pytest.skip("cannot become somebody else here")
        assert done.stderr == ""
        events = 5 if wal else 6
        assert done.stdout.splitlines() == [
            f"{events} True {events}",
            "read-only 1",
            f"{names} ['out.zip']",
        ]


def test_every_step_of_a_whole_record_can_be_read_up_to(tmp_path: Path) -> None:
    path = whole_case(tmp_path / "a.case")
    events = [event for event, _ in whole_record()]
    assert isinstance(events[0], CaseOpened)
    with Book.open(path) as book:
        for position in range(len(events) + 1):
            assert [entry.event for entry in book.events(position)] == events[:position]
