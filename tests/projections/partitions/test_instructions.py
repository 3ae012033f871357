"""instructions_v1: an empty prefix, the whole view live."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.canonical import same, to_bytes
from projections.partitions import PartitionRefused, ShapeChanged, Split, Whole
from projections.partitions.instructions_v1 import join, partition, split
from projections.partitions.types import content_id
from tests.projections.partitions.strategies import VALUES, VIEWS

ANY_VIEW = VIEWS | st.dictionaries(st.text(max_size=3) | st.just("shared"), VALUES)
EMPTY = content_id("instructions_v1", {}, {})


@given(ANY_VIEW)
def test_the_whole_view_is_live_under_one_empty_prefix(view: dict[str, Any]) -> None:
    parts = partition(view)
    assert isinstance(parts, Split)
    assert same(join(*parts), view)
    assert same(
        parts.prefix, {"version": "instructions_v1", "id": EMPTY, "input": {}, "shared": {}}
    )
    assert to_bytes(parts.live["input"]) == to_bytes(view)


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize(
    "change",
    [
        {"version": "stable_case_v1"},
        {"id": "sha256:" + "0" * 64},
        {"prefix": "sha256:" + "0" * 64},
        {"shared": {"P1": {}}},
        {"input": []},
        {"more": 1},
    ],
    ids=str,
)
def test_other_parts_are_refused(part: int, change: dict[str, Any]) -> None:
    parts = [*split({"case": 1})]
    parts[part] = {**parts[part], **change}
    with pytest.raises(PartitionRefused):
        join(*parts)


@pytest.mark.parametrize("member", ["input", "shared"])
def test_a_prefix_that_is_not_empty_is_refused_under_its_right_id(member: str) -> None:
    prefix, live = split({"case": 1})
    prefix = {**prefix, member: {"P1": 1}}
    name = content_id("instructions_v1", prefix["input"], prefix["shared"])
    with pytest.raises(PartitionRefused, match="is not empty"):
        join({**prefix, "id": name}, {**live, "prefix": name})


def test_what_is_no_object_stays_whole() -> None:
    view: Any = ["case"]
    with pytest.raises(ShapeChanged):
        split(view)
    assert partition(view) == Whole("ShapeChanged: the view is not an object")
