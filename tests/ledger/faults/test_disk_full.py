"""A full disk: one error, the transaction is gone as a whole, and freeing space is enough."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger import packing
from ledger.book import Book
from ledger.errors import LedgerError, LedgerFull
from ledger.package import Package, restore
from ledger.verify import verify_book
from tests.ledger.faults.conftest import Refused, append_one
from tests.support import evidence, make_case


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system is not permitted here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_appending_to_a_full_disk_writes_nothing_until_space_is_freed(
    small_disk: Path, refused: Refused
) -> None:
    case = make_case(small_disk / "a.case")
    with Book.open_for_writing(case) as book:
        fill(small_disk, leave=100_000)
        with refused(LedgerFull, "the disk is full; nothing was written, free space and run again"):
            append_until_full(book)
        position = book.head.position
        assert verify_book(book).findings == []
        (small_disk / "ballast").unlink()
        assert append(book) == position + 1
    assert append_one(case) == position + 2


def test_closing_on_a_full_disk_loses_nothing(small_disk: Path) -> None:
    case = make_case(small_disk / "a.case")
    with Book.open_for_writing(case) as book:
        append(book)
        fill(small_disk, leave=0)
        position = book.head.position
    (small_disk / "ballast").unlink()
    assert append_one(case) == position + 1


def test_a_case_that_reached_its_page_limit_goes_on_afterwards(
    case: Path, refused: Refused
) -> None:
    with Book.open_for_writing(case) as book:
        pages = book.connection.execute("PRAGMA page_count").fetchone()[0]
        book.connection.execute(f"PRAGMA max_page_count = {pages + 20}")
        with refused(LedgerFull, "the disk is full; nothing was written"):
            append_until_full(book)
        position = book.head.position
        book.connection.execute("PRAGMA max_page_count = 1000000")
        assert append(book) == position + 1
    assert append_one(case) == position + 2


def test_creating_on_a_full_disk_leaves_nothing(small_disk: Path, refused: Refused) -> None:
    fill(small_disk, leave=0)
    with refused(LedgerFull, "the disk is full"):
        make_case(small_disk / "a.case")
    assert not (small_disk / "a.case").exists()
    (small_disk / "ballast").unlink()
    make_case(small_disk / "a.case")
    assert append_one(small_disk / "a.case") == 4
    assert hidden(small_disk) == []


def test_a_failed_creation_leaves_no_hidden_file(small_disk: Path) -> None:
    fill(small_disk, leave=0)
    with pytest.raises(LedgerFull):
        make_case(small_disk / "a.case")
    assert hidden(small_disk) == []


def test_exporting_and_importing_on_a_full_disk_leave_nothing(
    small_disk: Path, case: Path, refused: Refused
) -> None:
    with Book.open_for_writing(case) as book:
        append(book)
    fill(small_disk, leave=40_000)
    with Book.open(case) as book:
        packing.write(book, case.with_suffix(".zip"))
        with refused(LedgerFull, "the disk is full"):
            packing.write(book, small_disk / "a.zip")
    with Package(case.with_suffix(".zip")) as package:
        with refused(LedgerFull, "the disk is full"):
            restore(package, small_disk / "a.case")
        assert [path.name for path in small_disk.iterdir()] == ["ballast"]
        (small_disk / "ballast").unlink()
        restore(package, small_disk / "a.case")
    with Book.open(case) as book:
        packing.write(book, small_disk / "a.zip")
    assert append_one(small_disk / "a.case") == 10


def test_an_anchor_that_cannot_be_written_does_not_deny_the_commit(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Book.open_for_writing(case) as book:
        monkeypatch.setattr(os, "pwrite", no_space)
        try:
            append(book)
        except LedgerError as error:
            assert "nothing was written" not in str(error)  # noqa: PT017
        monkeypatch.undo()
        assert book.refresh().position == 9


def test_a_failed_fsync_while_creating_is_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    monkeypatch.setattr(os, "fsync", no_space)
    with refused(LedgerFull, "the disk is full"):
        make_case(tmp_path / "a.case")


def append(book: Book) -> int:
    data = os.urandom(60_000)
    return book.append(evidence(book.head.position, data), payloads=[data]).position


def append_until_full(book: Book) -> None:
    """Append until it fails; all that was appended before is whole."""
    for _ in range(100):
        append(book)


def fill(disk: Path, *, leave: int) -> None:
    """Fill a file system up to `leave` bytes."""
    space = os.statvfs(disk)
    with (disk / "ballast").open("wb", buffering=0) as file:
        file.write(b"x" * (space.f_bavail * space.f_frsize - leave))
        while not leave:
            try:
                file.write(b"x" * 4096)
            except OSError:
                break


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.glob(".*")]


def no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
