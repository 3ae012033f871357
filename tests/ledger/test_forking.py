"""Forks: history shared row for row, the origin untouched, and never half of one."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import packing
from ledger.book import Book
from ledger.errors import (
    CaseExists,
    LedgerDamaged,
    PackageRefused,
    PayloadDamaged,
    UnknownEvent,
    UnsafeEvent,
)
from ledger.events import CaseForked, OutcomeLabelled
from ledger.forking import fork
from ledger.package import Package, restore, verify_package
from ledger.trees import needed_payloads
from ledger.verify import verify_book
from tests.generated import A_TENTH, A_TWENTIETH, History, fresh, histories
from tests.phases.conftest import scratch as scratch
from tests.support import AT, make_case


def forked(origin: Path, target: Path, at: int, note: str = "") -> CaseForked:
    with Book.open(origin) as book:
        return fork(book, target, at, note=note).event


def needed(history: History, at: int) -> set[str]:
    """Return the payloads that the events up to a position need."""
    payloads = history.payloads
    return {
        ref.digest
        for event in history.events()[:at]
        for ref in needed_payloads(event, payloads.__getitem__)
    }


def test_a_fork_shares_the_prefix_verifies_and_leaves_its_origin_as_it_was(scratch: Path) -> None:
    @A_TENTH
    @given(history=histories(), data=st.data())
    def check(history: History, data: st.DataObject) -> None:
        path, target = history.write(fresh(scratch)), fresh(scratch)
        before = path.read_bytes()
        at = data.draw(st.integers(1, len(history.events())))
        event = forked(path, target, at, "why not")
        assert path.read_bytes() == before
        with Book.open(target) as book:
            assert verify_book(book).findings == []
            rows = list(book.rows())
            assert rows[:-1] == list(history.reader().rows(at))
            assert list(book.events(after=at)) == [(at + 1, event)]
            assert {digest for digest, _ in book.stored_payloads()} == needed(history, at)
        assert (event.origin_position, event.origin_chain) == (at, rows[at - 1].chain.hex())
        for file in (path, target):
            file.unlink()

    check()


def test_a_fork_of_a_package_has_the_same_rows_as_a_fork_of_the_case(scratch: Path) -> None:
    @A_TWENTIETH
    @given(history=histories(), data=st.data())
    def check(history: History, data: st.DataObject) -> None:
        path, package = history.write(fresh(scratch)), fresh(scratch, ".zip")
        at = data.draw(st.integers(1, len(history.events())))
        with Book.open(path) as book:
            packing.write(book, package)
        before = package.read_bytes()
        with Package(package) as opened:
            fork(opened, target := fresh(scratch), at)
        assert package.read_bytes() == before
        with Book.open(target) as book:
            assert verify_book(book).findings == []
            assert list(book.rows(at)) == list(history.reader().rows(at))
            assert {digest for digest, _ in book.stored_payloads()} == needed(history, at)
        for file in (path, package, target):
            file.unlink()

    check()


def test_a_fork_is_exported_and_imported_under_its_own_trial(tmp_path: Path) -> None:
    event = forked(make_case(tmp_path / "a.case"), tmp_path / "b.case", 2)
    with Book.open(tmp_path / "b.case") as book:
        packing.write(book, tmp_path / "b.zip")
        head = book.head
    with Package(tmp_path / "b.zip") as package:
        assert verify_package(package).findings == []
        assert package.manifest["trial_id"] == event.trial_id
        assert restore(package, tmp_path / "c.case") == head


def test_a_fork_can_be_written_to_and_forked_again(tmp_path: Path) -> None:
    first = forked(make_case(tmp_path / "a.case"), tmp_path / "b.case", 3)
    with Book.open_for_writing(tmp_path / "b.case") as book:
        book.append(OutcomeLabelled(at=AT, verdict="right"))
    second = forked(tmp_path / "b.case", tmp_path / "c.case", 5)
    assert second.origin_trial_id == first.trial_id
    assert second.trial_id not in (first.trial_id, first.origin_trial_id)
    assert forked(tmp_path / "b.case", tmp_path / "d.case", 2).origin_trial_id == "trial-1"


# What cannot be forked --------------------------------------------------------------------------


def damaged(path: Path, sql: str) -> Path:
    """Change a case behind its own back."""
    with closing(sqlite3.connect(path)) as connection, connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in names.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(sql)
    return path


BAD: dict[str, tuple[str, int, type[Exception]]] = {
    "state": ("UPDATE event SET state = CAST(replace(CAST(state AS TEXT), 'A1', 'A2') AS BLOB) "
              "WHERE position = 2", 3, LedgerDamaged),
    "nonce": ("UPDATE event SET nonce = zeroblob(16) WHERE position = 1", 1, LedgerDamaged),
    "order": ("DELETE FROM event WHERE position = 2", 3, LedgerDamaged),
    "payload": ("UPDATE document SET size = size + 1", 2, PayloadDamaged),
    "missing payload": ("DELETE FROM document", 2, LedgerDamaged),
    "newer topic": ("UPDATE event SET topic = 'x.y/1' WHERE position = 2", 2, UnknownEvent),
    "missing tail": ("DELETE FROM event WHERE position = 4", 2, LedgerDamaged),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_is_not_as_it_was_written_is_not_forked(tmp_path: Path, what: str) -> None:
    sql, at, error = BAD[what]
    origin = damaged(make_case(tmp_path / "a.case", 4), sql)
    with pytest.raises(error):
        forked(origin, tmp_path / "b.case", at)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.case", "a.case.head"]


def test_damage_after_the_position_does_not_keep_the_history_before_it_from_being_forked(
    tmp_path: Path,
) -> None:
    sql = "UPDATE event SET nonce = zeroblob(16) WHERE position = 4"
    forked(damaged(make_case(tmp_path / "a.case", 4), sql), tmp_path / "b.case", 3)
    with Book.open(tmp_path / "b.case") as book:
        assert verify_book(book).findings == []


@pytest.mark.parametrize("at", [-1, 0, 4, 2**70])
def test_a_position_that_is_not_there_is_refused(tmp_path: Path, at: int) -> None:
    with pytest.raises(UnsafeEvent, match="positions 1 to 3"):
        forked(make_case(tmp_path / "a.case"), tmp_path / "b.case", at)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    origin = make_case(tmp_path / "a.case")
    (tmp_path / "b.case").write_text("mine")
    with pytest.raises(CaseExists):
        forked(origin, tmp_path / "b.case", 2)
    with pytest.raises(CaseExists):
        forked(origin, origin, 2)
    assert (tmp_path / "b.case").read_text() == "mine"
    with Book.open(origin) as book:
        assert verify_book(book).findings == []


def test_a_copy_with_parts_withheld_is_not_forked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Book.open(make_case(tmp_path / "a.case")) as book:
        packing.write(book, tmp_path / "a.zip")
    monkeypatch.setattr(Package, "is_redacted", True)
    with Package(tmp_path / "a.zip") as package, pytest.raises(PackageRefused, match="not forked"):
        fork(package, tmp_path / "b.case", 2)


# Death ------------------------------------------------------------------------------------------


def calls_of(action: Callable[[], Any], at_call: Callable[[int], None]) -> int:
    """Run something; call `at_call` with the number of each call into the ledger it makes."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        if event in ("call", "c_call") and "/ledger/" in frame.f_code.co_filename:
            count += 1
            at_call(count)

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def killed(number: int, action: Callable[[], Any]) -> None:
    """Do something in a process that is killed at a certain call."""

    def kill(count: int) -> None:
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    if (child := os.fork()) == 0:
        try:
            calls_of(action, kill)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def test_a_process_killed_at_any_call_leaves_no_fork_or_a_whole_one(scratch: Path) -> None:
    origin = make_case(scratch / "a.case", 5)
    before = origin.read_bytes()
    forked(origin, scratch / "warm.case", 4)
    total = calls_of(lambda: forked(origin, scratch / "count.case", 4), lambda count: None)
    whole = 0
    for number in range(1, total + 1, max(1, total // 60)):
        target = scratch / f"{number}.case"
        killed(number, lambda: forked(origin, target, 4))  # noqa: B023 - called at once
        assert origin.read_bytes() == before
        if target.exists():
            whole += 1
        else:
            forked(origin, target, 4)  # what the dead process left is in nobody's way
        with Book.open(target) as book:
            assert verify_book(book).findings == []
            assert book.head.position == 5
    assert total > 300
    assert whole > 0
