"""The order of an intake, its numbers, its end, and the identity of material."""

# ruff: noqa: E501 - tables and scripts read best with one case a line

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import canonical
from ledger.events import ArtifactAdded
from ledger.trees import package_id
from phases.intake import IntakeError, Known, Summary, take, title_of
from tests.phases.intake.making import database, folder, intake, report, request, write


def everything(tmp: Path) -> dict[str, object]:
    return {
        "logs": (write(tmp / "a.log", "ERROR x\n"),),
        "databases": (database(tmp / "app.db"),),
        "observations": ("It began on Monday.",),
    }


def test_artefacts_come_in_order_and_observations_close_the_intake(tmp_path: Path) -> None:
    result = intake(request(tmp_path, folder(tmp_path), **everything(tmp_path)))
    kinds = [(a.artifact, a.kind, a.name, a.media) for a in result.artifacts()]
    assert kinds == [
        ("S1", "report", "report.md", "text"), ("S2", "source", "source", "tree"), ("S3", "log", "a.log", "text"),
        ("S4", "database", "app.db", "sqlite"), ("S5", "observation", "observation-1.txt", "text"),
    ]  # fmt: skip
    seen = [
        (o.id, o.artifact, o.kind, o.first_line, o.last_line) for o in result.end().observations
    ]
    assert seen == [
        ("O1", "S1", "report_block", 1, 3),
        ("O2", "S3", "log_excerpt", 1, 1),
        ("O3", "S5", "observation", 1, 1),
    ]


def test_an_amendment_goes_on_with_numbers_and_keeps_the_identity(tmp_path: Path) -> None:
    known = Known(package_id="sha256:" + "0" * 64, report="about K-1118")
    late = write(tmp_path / "late.log", "fine\n" * 200 + "K-1118 moved\n" + "fine\n" * 200)
    result = intake(
        request(tmp_path, report=None, logs=(late,), observations=("One more.",)),
        known,
        first_artifact=5,
        first_observation=9,
    )
    assert [a.artifact for a in result.artifacts()] == ["S5", "S6"]
    assert [(o.id, o.first_line) for o in result.end().observations] == [("O9", 199), ("O10", 1)]
    assert result.end().package_id == known.package_id
    assert {a.revision for a in result.artifacts()} == {2}


def test_an_amendment_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IntakeError, match="nothing to take in"):
        intake(request(tmp_path, report=None), Known("sha256:x", ""))


def test_the_same_material_has_the_same_identity_in_any_order(tmp_path: Path) -> None:
    logs = [write(tmp_path / "a.log", "a\n"), write(tmp_path / "b.log", "b\n")]
    one = intake(request(tmp_path, folder(tmp_path), logs=tuple(logs)))
    two = intake(request(tmp_path, folder(tmp_path), logs=tuple(reversed(logs))))
    assert one.end().package_id == two.end().package_id
    write(tmp_path / "source" / "app.py", "x = 2\n")
    assert (
        intake(request(tmp_path, folder(tmp_path) / ".", logs=tuple(logs))).end().package_id
        == one.end().package_id
    )
    write(tmp_path / "source" / "new.py", "x = 2\n")
    assert (
        intake(request(tmp_path, tmp_path / "source", logs=tuple(logs))).end().package_id
        != one.end().package_id
    )


def test_package_id_is_the_digest_of_the_sorted_intake_list(tmp_path: Path) -> None:
    result = intake(request(tmp_path, folder(tmp_path)))
    said, source = result.one("report"), result.files()["app.py"]
    assert said.content is not None
    rows = [
        ["report", "report.md", said.content.size, said.content.digest],
        ["source", "app.py", source["size"], source["digest"]],
    ]
    assert result.end().package_id == canonical.digest(canonical.to_bytes(rows))
    assert package_id([], {}) == canonical.digest(b"[]")


def test_missing_logs_are_found_before_the_source_is_read(tmp_path: Path) -> None:
    steps = take(request(tmp_path, folder(tmp_path), logs=(tmp_path / "no.log",)), now=lambda: "T")
    with pytest.raises(IntakeError, match=r"no\.log"):
        next(steps)


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    given_ = request(tmp_path, folder(tmp_path), **everything(tmp_path))
    for step in take(given_, now=lambda: "T", progress=lambda *what: told.append(what)):
        list(step.payloads)
    assert {what for what, _, _ in told} == {"report", "source", "log", "database"}
    assert ("source", 1, None) in told


def test_abandoning_an_intake_leaves_no_temporary_file(tmp_path: Path) -> None:
    steps = take(request(tmp_path, folder(tmp_path)), now=lambda: "T", summary=Summary())
    next(steps)
    assert isinstance(next(steps).events[0], ArtifactAdded)
    steps.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# It breaks\n\nx", "It breaks"),
        ("\n\n**Bold** claim\n", "Bold** claim"),
        ("---\n\nafter a rule", "after a rule"),
        ("\ufeff# T", "T"),
        ("\x1b[31mred\x07", "[31mred"),
        ("a\tb  c", "a b c"),
        ("x" * 500, "x" * 199 + "…"),
        ("", "untitled"),
    ],
)
def test_a_title_is_one_visible_line(text: str, title: str) -> None:
    assert title_of(text) == title


@given(st.text(max_size=300))
def test_a_title_is_always_printable_and_short(text: str) -> None:
    title = title_of(text)
    assert title
    assert title.isprintable()
    assert len(title) <= 200


def test_the_summary_says_everything_in_plain_lines(tmp_path: Path) -> None:
    root = folder(tmp_path, logo__png=b"\0", note__txt="ok")
    write(root / "node_modules/x")
    result = intake(request(tmp_path, root, report=report(tmp_path, "# A\n\npassword=hunter2\n")))
    assert result.summary.render() == [
        "S1 report report.md: 32 bytes, 3 lines",
        "S2 source source: 9 bytes, 3 files",
        "skipped, dependencies: 1 (node_modules/)",
        "catalogued only, binary: 1 (logo.png)",
        "secrets replaced, password: 1 (S1:3)",
    ]
    assert result.summary.as_json()["skipped"] == {
        "dependencies": {"count": 1, "examples": ["node_modules/"]}
    }
