"""Files that are no case, or not any more: named for what they are, left as they are."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from ledger import packing
from ledger.book import Book
from ledger.errors import CaseNotFound, LedgerDamaged, NewerFormat, NotALedger
from ledger.verify import verify_book
from tests.ledger.faults.conftest import Refused, append_one
from tests.support import make_case

both_ways = pytest.mark.parametrize("opening", [Book.open, Book.open_for_writing])
Opening = Callable[[Path], Book]
PAGE = 1024


def text(path: Path) -> None:
    path.write_text("a report about a bug, which is not a case\n" * 200)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def folder(path: Path) -> None:
    path.mkdir()


def other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE event (position INTEGER PRIMARY KEY)")


def unfinished(path: Path) -> None:
    make_case(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 0")


def package(path: Path) -> None:
    case = make_case(path.with_name("packed.case"))
    with Book.open(case) as book:
        packing.write(book, path)
    for used in path.parent.glob("packed*"):
        used.unlink()


def junk_after_magic(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + b"\xa5" * 8000)


@both_ways
@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (text, "is not a case ledger"),
        (empty, "is empty; restore it from a package"),
        (folder, "is a folder"),
        (other_database, "an SQLite database, but not a case"),
        (unfinished, "unfinished"),
        (package, "a package is read with `import`"),
        (junk_after_magic, "is not a case ledger, or its first page is damaged"),
    ],
)
def test_what_is_no_case_is_named_and_left_alone(
    tmp_path: Path, make: Callable[[Path], None], advice: str, opening: Opening, refused: Refused
) -> None:
    path = tmp_path / "a.case"
    make(path)
    before = None if path.is_dir() else path.read_bytes()
    names = sorted(tmp_path.iterdir())
    with refused(NotALedger, advice):
        opening(path)
    assert before is None or path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == names


@both_ways
def test_a_missing_case_is_not_created(tmp_path: Path, opening: Opening, refused: Refused) -> None:
    (tmp_path / "b.case").symlink_to(tmp_path / "nowhere")
    for name in ("a.case", "b.case"):
        with refused(CaseNotFound, "there is no such case"):
            opening(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["b.case"]


@both_ways
def test_a_newer_format_is_not_touched(case: Path, opening: Opening, refused: Refused) -> None:
    set_format(case, 2)
    before = case.read_bytes()
    with refused(NewerFormat, "has format 2, this release reads up to 1; use the release"):
        opening(case)
    assert case.read_bytes() == before
    set_format(case, 1)
    assert append_one(case) == 9


@pytest.mark.parametrize("seed", range(8))
def test_a_truncated_file_is_never_taken_for_a_whole_one(case: Path, seed: int) -> None:
    whole = case.read_bytes()
    for length in (*range(seed, 600, 97), *range(600 + seed * 311, len(whole) - PAGE, 2503)):
        check_truncated(case, whole[:length])
    case.write_bytes(whole)
    assert append_one(case) == 9


@pytest.mark.parametrize("missing", [1, 100, PAGE - 1])
def test_a_cut_last_page_is_noticed(case: Path, missing: int) -> None:
    check_truncated(case, case.read_bytes()[:-missing])


def test_verify_reports_pages_that_sqlite_cannot_read(case: Path) -> None:
    data = bytearray(case.read_bytes())
    with closing(sqlite3.connect(case)) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'chunk'"
        ).fetchone()
    data[(root - 1) * PAGE : root * PAGE] = b"\xa5" * PAGE
    case.write_bytes(data)
    with Book.open(case) as book:
        report = verify_book(book)
    assert not report.ok
    assert not any("\n" in finding.message for finding in report.findings)


def check_truncated(case: Path, left: bytes) -> None:
    """Writing is refused; reading is too, or verification says what is wrong."""
    case.write_bytes(left)
    with pytest.raises((NotALedger, LedgerDamaged)) as caught:
        Book.open_for_writing(case)
    assert "\n" not in str(caught.value)
    with suppress(NotALedger, LedgerDamaged), Book.open(case) as book:
        report = verify_book(book)
        assert not report.ok
        assert not any("\n" in finding.message for finding in report.findings)
    assert case.read_bytes() == left


def set_format(case: Path, number: int) -> None:
    with closing(sqlite3.connect(case)) as connection:
        connection.execute(f"PRAGMA user_version = {number}")
