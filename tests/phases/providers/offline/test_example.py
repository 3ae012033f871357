"""The example of the README: what a newcomer sees first is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.book import Book
from ledger.canonical import from_bytes
from phases.intake import IntakeRequest
from phases.investigation.snapshot import Snapshot
from phases.opening import open_case
from projections.folding import fold
from projections.scoring import score, truth_from
from tools.running import Wanted, run_case

EXAMPLE = Path(__file__).parents[4] / "docs" / "examples" / "parcel-returns"


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("example") / "x.case"
    request = IntakeRequest(
        report=EXAMPLE / "report.md", source=str(EXAMPLE / "source"),
        logs=(EXAMPLE / "logs" / "app.log",), databases=(EXAMPLE / "db" / "app.db",),
    )  # fmt: skip
    open_case(path, request, program="test")
    run_case(path, Wanted(), quiet=True)
    return path


def test_the_faulty_function_of_the_example_is_named_first_with_its_reason(case: Path) -> None:
    with Book.open(case) as book, Snapshot.of(book) as snapshot:
        diagnosis = fold(book.events()).diagnosis
        truth = truth_from(from_bytes((EXAMPLE / "truth.json").read_bytes()), snapshot.files)
    assert diagnosis is not None
    found = score(diagnosis, truth)
    assert (found.rank, found.function_rank) == (1, 1)
    assert diagnosis["outcome"] == "cause_found"
    assert "scanned_at" in diagnosis["cause"]


def test_questions_to_the_database_leave_looks_for_the_code(case: Path) -> None:
    """The example has seven tables and four codes: asked about each, nothing would be read."""
    with Book.open(case) as book:
        asked = [action.name for action in fold(book.events()).actions.values()]
    assert asked.count("read_lines") >= 3
