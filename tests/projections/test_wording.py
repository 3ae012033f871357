"""Numbers in words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ledger import events as e
from projections.timeline import line
from projections.wording import counted

NOW = "2026-11-30T12:00:00.000000Z"


@given(st.integers(0, 10**9))
def test_only_one_of_a_thing_is_singular(number: int) -> None:
    said, noun = counted(number, "step").split(" ")
    assert int(said.replace(",", "")) == number
    assert noun == ("step" if number == 1 else "steps")


def problems(number: int) -> e.ResponseRejected:
    found = tuple(e.Problem(code="x", message="y") for _ in range(number))
    return e.ResponseRejected(
        at=NOW, request="R1", attempt=1, kind="schema", problems=found, correctable=True
    )


def test_the_timeline_counts_in_words() -> None:
    assert line(problems(1)).endswith(": schema, 1 problem")
    assert line(problems(2)).endswith(": schema, 2 problems")


def test_the_timeline_says_that_a_number_is_unmeasured() -> None:
    measured = e.UsageMeasured(at=NOW, request="R1", attempt=1, prompt=None, output=None)
    assert line(measured) == "R1 prompt unmeasured, cached unmeasured, output unmeasured tokens"
