"""A cached request that dies at any of its steps: the same case in the end, nothing paid twice.

The full count: `python -m pytest tests/crash/test_gemini_kills.py -m slow`.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.phases.conftest import scratch as scratch
from tests.phases.scripting import make_case
from tests.support import python

CHILD = Path(__file__).with_name("gemini_child.py")

Json = dict[str, Any]


def play(mode: str, case: Path, count: int) -> list[Json]:
    """Let a child run a case with deaths; return the undisturbed run and all others."""
    command = python(CHILD, mode, case, count, 17)
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(seen: list[Json]) -> None:
    whole, *others = seen
    assert others
    assert (whole["restarts"], whole["left"], whole["leaked"]) == (0, 0, 0)
    for one in seen:
        name = one["name"]
        assert one["outcome"] == whole["outcome"], name
        assert (one["findings"], list(one["checks"])) == ([], ["same"]), name
        assert one["requests"] == whole["requests"], name
        assert one["same_document"], name
        check_nothing_is_paid_twice(one)
        check_caches(one)


def check_nothing_is_paid_twice(one: Json) -> None:
    """What was answered and recorded is never asked again; only an unknown outcome is."""
    assert one["answers"] == [1], one["name"]
    assert one["unknown"] == one["resent"] <= one["deaths"], one["name"]
    assert one["calls"] <= one["requests"] + one["unknown"], one["name"]


def check_caches(one: Json) -> None:
    """One cache a key and process, each on the record to its end; dead ones are left to expire."""
    assert one["created_twice"] == [], one["name"]
    assert one["unrecorded"] == [], one["name"]
    assert one["unexplained"] == [], one["name"]
    assert one["unsettled"] == 0, one["name"]
    assert one["leaked"] <= one["left"] <= one["deaths"], one["name"]
    assert one["restarts"] <= one["left"], one["name"]


def test_a_death_at_any_step_of_a_cached_request_changes_nothing(scratch: Path) -> None:
    seen = play("boundaries", make_case(scratch, database=False), 1)
    check(seen)
    assert len(seen) == 1 + 2 * 7
    left = {one["name"].rpartition(" ")[2]: [] for one in seen[1:]}
    for one in seen[1:]:
        left[one["name"].rpartition(" ")[2]].append((one["leaked"], one["left"], one["unknown"]))
    assert left == {  # before and after each: caches alive, left to expire, outcomes unknown
        "cache.decided": [(0, 0, 0), (0, 0, 0)],
        "cache.create_requested": [(0, 0, 0), (0, 1, 0)],
        "cache.created": [(1, 1, 0), (1, 1, 0)],
        "request.sent": [(1, 1, 0), (1, 1, 1)],
        "response.received": [(1, 1, 1), (1, 1, 0)],
        "cache.deleted": [(0, 1, 0), (0, 0, 0)],
        "cache.settled": [(0, 0, 0), (0, 0, 0)],
    }


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_death_at_every_append_of_an_investigation_changes_nothing(
    scratch: Path, moment: str
) -> None:
    seen = play(moment, make_case(scratch, database=False), 1)
    check(seen)
    assert len(seen) == 1 + seen[0]["appends"] > 20


@pytest.mark.slow
def test_thirty_kills_at_random_moments_change_nothing(scratch: Path) -> None:
    check(play("kills", make_case(scratch), 30))
