"""SIGKILL at random moments: nothing acknowledged is lost, nothing half-written is seen.

The everyday run kills 20 times. The full count: `python -m pytest tests/crash -m slow`.
"""

from __future__ import annotations

import random
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from subprocess import Popen

import pytest

from ledger import packing
from ledger.book import Book
from ledger.package import Package, restore, verify_package
from ledger.verify import verify_book
from tests.crash import examine
from tests.support import evidence, make_case, start

WRITER = Path(__file__).with_name("writer.py")
LONGEST = 0.25
"""Seconds a child works before it is killed, at most; each does several hundred things in it."""

everyday_and_full = pytest.mark.parametrize(
    "kills", [4, pytest.param(40, marks=pytest.mark.slow)], ids=["everyday", "full"]
)


@pytest.mark.parametrize(
    "kills", [8, pytest.param(200, marks=pytest.mark.slow)], ids=["everyday", "full"]
)
def test_killed_while_appending_loses_nothing_acknowledged(tmp_path: Path, kills: int) -> None:
    moments = random.Random(kills)
    path = tmp_path / "0.case"
    for number, done in enumerate(deaths("append", tmp_path, kills, moments)):
        path = tmp_path / f"{number // 10}.case"
        check_case(path, acknowledged=done)
        assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []
        go_on_writing(path)


@everyday_and_full
def test_killed_while_creating_leaves_whole_cases_only(tmp_path: Path, kills: int) -> None:
    for done in deaths("create", tmp_path, kills, random.Random(kills)):
        assert set(done) <= names(tmp_path, "*.case")
        for name in names(tmp_path, "*.case"):
            check_case(tmp_path / name)
        for name in take_over(tmp_path, make_case):
            go_on_writing(tmp_path / name)
        clear(tmp_path)


@everyday_and_full
def test_killed_while_importing_leaves_whole_cases_only(tmp_path: Path, kills: int) -> None:
    source(tmp_path)

    def import_again(path: Path) -> None:
        with Package(tmp_path / "source.zip") as package:
            restore(package, path)

    with Package(tmp_path / "source.zip") as package:
        head = package.head
    for done in deaths("import", tmp_path, kills, random.Random(kills)):
        assert set(done) <= names(tmp_path, "*.case")
        take_over(tmp_path, import_again)
        for name in names(tmp_path, "*.case"):
            check_case(tmp_path / name)
            with Book.open(tmp_path / name) as book:
                assert book.head == head
        clear(tmp_path)


@everyday_and_full
def test_killed_while_exporting_leaves_whole_packages_only(tmp_path: Path, kills: int) -> None:
    source(tmp_path)

    def export_again(path: Path) -> None:
        with Book.open(tmp_path / "source.case") as book:
            packing.write(book, path, overwrite=True)

    for done in deaths("export", tmp_path, kills, random.Random(kills)):
        assert set(done) <= names(tmp_path, "*.zip")
        take_over(tmp_path, export_again)
        for name in names(tmp_path, "*.zip"):
            with Package(tmp_path / name) as package:
                report = verify_package(package)
                assert (report.findings, report.events) == ([], 30)


# The children -----------------------------------------------------------------------------------


def deaths(mode: str, folder: Path, kills: int, moments: random.Random) -> Iterator[list[str]]:
    """Kill that many children in turn; yield what each had acknowledged.

    The next child warms up meanwhile. Appending ones get a new case every ten kills, so that the
    checks stay quick.
    """
    waiting: list[Popen[bytes]] = []
    try:
        for number in range(kills + 1):
            if number < kills:
                waiting.append(launched(mode, folder, number))
            if number:
                yield killed(waiting.pop(0), moments.uniform(0.002, LONGEST))
    finally:
        for child in waiting:
            child.kill()
            child.communicate()


def launched(mode: str, folder: Path, number: int) -> Popen[bytes]:
    if mode != "append":
        return start(WRITER, mode, folder, number)
    path = folder / f"{number // 10}.case"
    return start(WRITER, mode, path if path.exists() else make_case(path), number)


def killed(child: Popen[bytes], seconds: float) -> list[str]:
    """Let a child work for a while, kill it, return the lines it had written."""
    assert child.stdout
    assert child.stdin
    assert child.stdout.readline() == b"ready\n"
    child.stdin.write(b"go\n")
    child.stdin.flush()
    time.sleep(seconds)
    child.kill()
    output, _ = child.communicate()
    assert child.returncode == -signal.SIGKILL, "the child ended by itself"
    return output.decode().splitlines()


# What is found afterwards -----------------------------------------------------------------------


def check_case(path: Path, acknowledged: Sequence[str] = ()) -> None:
    """The case opens, verifies, and holds all that was acknowledged, whole transactions only."""
    with Book.open(path) as book:
        report = verify_book(book)
        assert [f for f in report.findings if f.kind == "damage"] == []
    chains = examine.chains(path)
    for line in acknowledged:
        position, _, value = line.partition(":")
        assert chains[int(position) - 1] == value
    examine.check_payloads(path)
    examine.check_sqlite(path)
    last = re.fullmatch(r"(\d+) of (\d+)", examine.states(path)[-1]["kind"])
    assert last is None or last[1] == last[2], "half a transaction"


def go_on_writing(path: Path) -> None:
    """A writer takes the case over, appends, and leaves one file at rest with its anchor."""
    with Book.open_for_writing(path) as book:
        before = book.head.position
        data = b"written after the crash %d" % before
        assert book.append(evidence(before, data), payloads=[data]).position == before + 1
    with Book.open(path) as book:
        assert verify_book(book).findings == []
    assert names(path.parent, f"{path.name}*") == {path.name, f"{path.name}.head"}


def take_over(folder: Path, make: Callable[[Path], object]) -> list[str]:
    """Make again what a kill left unfinished; nothing hidden remains. Return the names."""
    examine.discard_second_names(folder)
    unfinished = {
        name.removesuffix(".head").removesuffix(".new").removeprefix(".")
        for name in names(folder, ".*")
    }
    for name in unfinished:
        make(folder / name)
    assert names(folder, ".*") == set()
    return sorted(unfinished)


def names(folder: Path, pattern: str) -> set[str]:
    return {path.name for path in folder.glob(pattern)}


def source(folder: Path) -> None:
    """Put a case and its package into a folder, to import and export."""
    make_case(folder / "source.case", events=30)
    with Book.open(folder / "source.case") as book:
        packing.write(book, folder / "source.zip")


def clear(folder: Path) -> None:
    for path in folder.glob("[0-9]*.case*"):
        path.unlink()
