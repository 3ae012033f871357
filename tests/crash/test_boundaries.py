"""Death between every two writes of a create, an append, an export and an import; then again."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from ledger import packing
from ledger.book import Book
from ledger.errors import CaseExists
from ledger.package import Package, verify_package
from ledger.verify import verify_book
from tests.crash import boundaries, examine
from tests.support import OPENED, evidence, python

CHILD = Path(__file__).with_name("boundaries.py")
FEWEST = {"create": 200, "append": 140, "export": 35, "import": 75}
"""Boundaries of each script, at least: fewer would mean that the hooks no longer see them."""

every_script = pytest.mark.parametrize("mode", FEWEST)


@every_script
def test_death_at_every_boundary_then_the_same_end(tmp_path: Path, mode: str) -> None:
    whole, *deaths = run(mode, tmp_path)
    assert len(deaths) >= FEWEST[mode]
    resume(mode, whole)
    for folder in deaths:
        check_remains(folder)
        resume(mode, folder)
        examine.discard_second_names(folder)
        assert contents(folder) == contents(whole), folder


@pytest.mark.parametrize("name", ["a.case", "a.zip"])
def test_the_next_attempt_removes_the_second_name_of_a_finished_file(
    tmp_path: Path, name: str
) -> None:
    """A death between link and unlink leaves one; found by the test above."""
    mode = "create" if name == "a.case" else "export"
    prepare(tmp_path)
    (tmp_path / "start.case").rename(tmp_path / "a.case")
    (tmp_path / "start.zip").rename(tmp_path / "a.zip")
    os.link(tmp_path / name, tmp_path / f".{name}.new")
    with pytest.raises(CaseExists):
        list(boundaries.SCRIPTS[mode](tmp_path))
    assert not (tmp_path / f".{name}.new").exists()


def run(mode: str, folder: Path) -> list[Path]:
    """Die at every boundary; return the folders, that of the undisturbed run first."""
    prepare(folder)
    subprocess.run(python(CHILD, mode, folder), check=True)
    return [folder / name for name in json.loads((folder / "deaths.json").read_text())]


def prepare(folder: Path) -> None:
    """Put a case, not yet complete, and its package where the script starts from."""
    path = folder / "start.case"
    with Book.create(path, sources=boundaries.FIXED) as book:
        book.append(OPENED)
        payloads = [b"first", b"second" * 500]
        events = [evidence(n, data, kind=f"{n + 1} of 2") for n, data in enumerate(payloads)]
        book.append(*events, payloads=payloads)
    with Book.open(path) as book:
        packing.write(book, folder / "start.zip")


def check_remains(folder: Path) -> None:
    """What stands under a final name is whole and holds everything that was acknowledged."""
    case, package = folder / "a.case", folder / "a.zip"
    present: set[str] = set()
    if case.exists():
        with Book.open(case) as book:
            assert [f for f in verify_book(book).findings if f.kind == "damage"] == []
            assert book.head.position % 2 == 1, "half a transaction"
        present.update(f"{n}:{value}" for n, value in enumerate(examine.chains(case), start=1))
        examine.check_payloads(case)
    if package.exists():
        with Package(package) as opened:
            assert verify_package(opened).findings == []
            present.add(opened.identity)
    assert set((folder / "acknowledged").read_text().splitlines()) <= present


def resume(mode: str, folder: Path) -> None:
    """Do it again, as a person would: what exists goes on, what does not is made anew."""
    with suppress(CaseExists):
        list(boundaries.SCRIPTS[mode](folder))
    if mode != "export":
        with Book.open_for_writing(folder / "a.case", sources=boundaries.FIXED) as book:
            data = b"written after the crash"
            book.append(evidence(0, data), payloads=[data])


def contents(folder: Path) -> dict[str, object]:
    """Return names and what they hold, so that two folders can be compared."""
    found: dict[str, object] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix == ".case":
            found[path.name] = examine.chains(path)
        elif path.name != "acknowledged":
            found[path.name] = path.read_bytes()
    return found
