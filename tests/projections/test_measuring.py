from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ledger.package import Package
from projections.measuring import by_phase, measure, phases_using, reduction
from projections.tokens import estimated_tokens
from tools.cli import run

CASES = Path(__file__).parents[1] / "frozen" / "cases"
PACKAGE = CASES / "example.zip"
INTERRUPTED = CASES / "mp-renewal-missing-invoices-7-requests.zip"


def test_every_saved_request_is_measured_and_restored_exactly() -> None:
    with Package(PACKAGE) as package:
        found = list(measure(package, "consolidated_v1", (estimated_tokens,), frozenset()))
    assert len(found) == 18
    assert all(item.exact for item in found)
    assert all(item.before.tokens[0] > 0 for item in found)


def test_the_explanation_is_counted_after_and_not_before() -> None:
    with Package(PACKAGE) as package:
        (item,) = measure(package, "plain_v1", (), frozenset({"diagnosis"}))
        (encoded,) = measure(package, "consolidated_v1", (), frozenset({"diagnosis"}))
    assert item.before.characters == item.after.characters
    assert encoded.before == item.before
    assert encoded.after.characters < encoded.before.characters


def test_phases_that_are_absent_have_no_row() -> None:
    with Package(INTERRUPTED) as package:
        phases = phases_using("consolidated_v1")
        rows = by_phase(measure(package, "consolidated_v1", (), phases))
    assert [row.phase for row in rows] == ["case_interpretation", "hypotheses"]


def test_reductions_are_per_cent_of_before() -> None:
    assert reduction(200, 150) == 25.0
    assert reduction(0, 0) == 0.0


def test_the_package_is_unchanged_and_its_text_is_not_printed(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    before = hashlib.sha256(PACKAGE.read_bytes()).hexdigest()
    assert run(["measure", "consolidation", str(PACKAGE), "--per-request"]) == 0
    assert hashlib.sha256(PACKAGE.read_bytes()).hexdigest() == before
    printed = capsysbinary.readouterr().out
    assert b"5 of 5 requests restored exactly" in printed
    assert b"does not prove that a model understands" in printed
    assert b"R-2025-00568" not in printed
