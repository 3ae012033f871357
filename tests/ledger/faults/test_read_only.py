"""A folder or a file that cannot be written: reading goes on, writing says why it does not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ledger import packing
from ledger.book import Book
from tests.ledger.faults.conftest import append_one, check_message
from tests.support import evidence, make_case, python

ATTEMPT = Path(__file__).with_name("attempt.py")


@pytest.fixture
def shared_case(public_folder: Path) -> Path:
    """A case that belongs to everybody, with a package beside it."""
    path = make_case(public_folder / "a.case", events=5)
    with Book.open(path) as book:
        packing.write(book, public_folder / "source.zip")
    for file in public_folder.iterdir():
        file.chmod(0o666)
    return path


@pytest.mark.parametrize(
    ("action", "name"),
    [("append", "a.case"), ("create", "b.case"), ("export", "a.case"), ("import", "b.case")],
)
def test_a_read_only_folder_is_named_and_left_alone(
    shared_case: Path, action: str, name: str
) -> None:
    folder = shared_case.parent
    names = sorted(folder.iterdir())
    folder.chmod(0o555)
    assert attempt("read", shared_case) == {"head": 5}
    check_refused(attempt(action, folder / name))
    assert sorted(folder.iterdir()) == names
    folder.chmod(0o777)
    assert "head" in attempt(action, folder / name)


def test_a_read_only_file_is_named_and_left_alone(shared_case: Path) -> None:
    before = shared_case.read_bytes()
    shared_case.chmod(0o444)
    assert attempt("read", shared_case) == {"head": 5}
    check_refused(attempt("append", shared_case))
    assert shared_case.read_bytes() == before
    shared_case.chmod(0o666)
    assert attempt("append", shared_case) == {"head": 6}
    assert append_one(shared_case) == 7


def test_a_read_only_anchor_is_named_and_left_alone(shared_case: Path) -> None:
    anchor = shared_case.with_name("a.case.head")
    anchor.chmod(0o444)
    assert attempt("read", shared_case) == {"head": 5}
    check_refused(attempt("append", shared_case))
    anchor.chmod(0o666)
    assert attempt("append", shared_case) == {"head": 6}


def test_an_unreadable_file_is_named(shared_case: Path) -> None:
    shared_case.chmod(0o200)
    check_refused(attempt("read", shared_case))
    check_refused(attempt("append", shared_case))


def test_a_read_only_folder_shows_what_a_killed_writer_left(public_folder: Path) -> None:
    private, path = public_folder / "writer", public_folder / "a.case"
    private.mkdir()
    with Book.open_for_writing(make_case(private / "a.case", events=5)) as book:
        book.append(evidence(9, b"still in the WAL"), payloads=[b"still in the WAL"])
        for end in ("", "-wal", ".head"):  # as a kill leaves them
            shutil.copyfile(private / f"a.case{end}", public_folder / f"a.case{end}")
    public_folder.chmod(0o555)
    assert attempt("read", path) == {"head": 6}
    public_folder.chmod(0o777)
    assert append_one(path) == 7


def attempt(action: str, path: Path) -> dict[str, Any]:
    done = subprocess.run(python(ATTEMPT, action, path), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def check_refused(outcome: dict[str, Any]) -> None:
    assert "error" in outcome, outcome
    advice = "check permissions|check it and run again"
    check_message("LedgerReadOnly", advice, outcome["error"], outcome["message"])


def test_the_child_gives_up_its_rights(public_folder: Path) -> None:
    """Else the tests above would prove nothing when root runs them."""
    if os.geteuid() != 0:
        pytest.skip("not root")
    public_folder.chmod(0o755)
    assert attempt("create", public_folder / "a.case")["error"] == "LedgerReadOnly"
