"""A run that dies anywhere, and is run again, ends as if nothing had happened.

The full count: `python -m pytest tests/crash/test_run_kills.py -m slow`.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from phases.intake import IntakeRequest
from phases.opening import open_case
from tests.phases.conftest import scratch as scratch
from tests.phases.scripting import make_case
from tests.support import python

CHILD = Path(__file__).with_name("run_child.py")
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "parcel-returns"

Json = dict[str, Any]


def play(mode: str, case: Path, provider: str, count: int) -> list[Json]:
    """Let a child run a case with deaths; return the undisturbed run and all others."""
    command = python(CHILD, mode, case, provider, count, 17)
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(seen: list[Json]) -> None:
    whole, *others = seen
    assert whole["findings"] == []
    assert others
    for one in others:
        assert one["outcome"] == whole["outcome"], one["name"]
        assert (one["findings"], list(one["checks"])) == ([], ["same"]), one["name"]
        assert one["requests"] == whole["requests"], one["name"]
        assert one["calls"] <= one["requests"] + one["deaths"], one["name"]
        assert one["unknown"] == one["resent"] <= one["deaths"], one["name"]
        assert one["same_document"], one["name"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_fault_at_every_append_changes_nothing(scratch: Path, moment: str) -> None:
    seen = play(moment, make_case(scratch, database=False), "scripted", 1)
    check(seen)
    assert len(seen) == 1 + seen[0]["appends"] > 30
    assert sum(one["unknown"] for one in seen) == seen[0]["requests"]


def test_kills_at_random_moments_change_nothing(scratch: Path) -> None:
    check(play("kills", make_case(scratch), "scripted", 6))


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_fault_at_every_append_of_an_offline_run_changes_nothing(
    scratch: Path, moment: str
) -> None:
    check(play(moment, make_case(scratch), "offline", 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("provider", "example", "count"),
    [("scripted", False, 20), ("offline", False, 15), ("offline", True, 15)],
)
def test_fifty_kills_over_three_cases_change_nothing(
    tmp_path: Path, provider: str, example: bool, count: int
) -> None:
    case = take_in_example(tmp_path) if example else make_case(tmp_path)
    check(play("kills", case, provider, count))


def take_in_example(folder: Path) -> Path:
    path = folder / "example.case"
    logs = tuple(sorted((EXAMPLE / "logs").glob("*")))
    report = EXAMPLE / "report.md"
    open_case(
        path,
        IntakeRequest(report=report, source=str(EXAMPLE / "source"), logs=logs),
        program="tests",
    )
    return path
