"""The report quotes the snapshot, never the model."""

from __future__ import annotations

from pathlib import Path

from ledger.book import Book
from ledger.canonical import to_bytes
from phases.investigation.snapshot import Snapshot
from projections.folding import fold
from projections.report import report
from tests.phases.scripting import Script, copied, patched, run


def built(path: Path) -> dict[str, object]:
    with Book.open(path) as book:
        return report(fold(book.events()), book)


def test_every_quoted_line_is_the_snapshots_text(lived: Path) -> None:
    with Book.open(lived) as book, Snapshot.of(book) as snapshot:
        found = report(fold(book.events()), book)
        quoted = 0
        for quote in found["quotes"]:
            text = snapshot.text(snapshot.files[quote["path"]])
            for line in quote["lines"]:
                assert line["text"] == text.lines[line["line"] - 1]
                quoted += 1
    assert quoted == 2


def test_every_citation_resolves(lived: Path) -> None:
    found = built(lived)
    cited = found["citations"]
    assert isinstance(cited, dict)
    assert {"E1", "E2", "H1", "S4"} <= set(cited)
    rows = cited["E2"]["rows"]
    assert rows[0] == {"id": 1, "total": 10, "note": "P1"}


def test_a_report_has_the_documented_members_at_every_stage(
    lives: dict[str, Path], tmp_path: Path
) -> None:
    members = list(built(lives["plain"]))
    path = copied(lives["fresh"], tmp_path / "x.case")
    assert list(built(path)) == members
    run(path, Script({"hypotheses": [b"finish:safety"]}))
    found = built(path)
    assert list(found) == members
    assert (found["complete"], found["diagnosis"], found["quotes"]) == (False, None, [])


def test_words_of_the_model_about_a_line_are_no_quotation(
    lives: dict[str, Path], tmp_path: Path
) -> None:
    """Lines that no evidence holds are not quoted, even if the model cites something."""
    path = copied(lives["fresh"], tmp_path / "x.case")
    place = {
        "path": "shop/__init__.py",
        "function": "",
        "first_line": 1,
        "last_line": 10**9,
        "role": "faulty",
        "why": "1: evil = True",
        "evidence": ["E1"],
    }
    run(path, Script({"diagnosis": [patched(locations=[place])]}))
    assert b"evil" not in to_bytes(built(path)["quotes"])
