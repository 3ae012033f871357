"""stable_case_v1: exact over any view, stable where it must be, no tampering accepted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.canonical import from_bytes, same, to_bytes
from projections.partitions import VERSIONS, PartitionRefused, ShapeChanged, Split, Whole
from projections.partitions import stable_case_v1 as stable_case
from projections.partitions.stable_case_v1 import STABLE, join, partition, split
from tests.projections.partitions.strategies import (
    ALWAYS,
    BY_ID,
    DEFINITIONS,
    FIRST_LABEL,
    LIVE_INPUT,
    SCALARS,
    SECOND_LABEL,
    STABLE_INPUT,
    UNDEFINED,
    VALUES,
    VIEWS,
    needing,
    rehashed,
    tampered,
)

SHOWN: dict[str, Any] = {**dict.fromkeys((*STABLE, "evidence", "budget")), "shared": {}}


def exact(view: dict[str, Any]) -> None:
    parts = partition(view)
    assert isinstance(parts, Split)
    prefix, live = (from_bytes(to_bytes(part)) for part in parts)
    assert same(join(prefix, live), view)
    assert list(prefix["input"]) == list(STABLE)
    assert not prefix["shared"].keys() & live["shared"].keys()
    assert prefix["shared"].keys() | live["shared"].keys() == view["shared"].keys()
    assert set(prefix["shared"]) == needed(prefix["input"], view["shared"])


def needed(node: Any, shared: dict[str, Any], seen: frozenset[str] = frozenset()) -> set[str]:
    """Return labels reachable from a node: another way to say which definitions a prefix takes."""
    if isinstance(node, list):
        return set().union(*(needed(item, shared, seen) for item in node))
    found: set[str] = set()
    for key, value in node.items() if isinstance(node, dict) else ():
        if key in ("rows", "arguments", "lines", "values", "text"):
            continue
        if key in ("provenance", "metadata") and isinstance(value, str):
            if value in shared and value[0] == key[0].upper() and value not in seen:
                found |= {value} | needed(shared[value], shared, seen | {value})
        else:
            found |= needed(value, shared, seen)
    return found


@given(VIEWS)
def test_the_parts_of_a_view_join_to_exactly_it(view: dict[str, Any]) -> None:
    exact(view)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(VIEWS)
def test_ten_thousand_partitions_are_exact(view: dict[str, Any]) -> None:
    exact(view)


@given(STABLE_INPUT, LIVE_INPUT, LIVE_INPUT, st.sets(st.sampled_from(sorted(DEFINITIONS))))
def test_nothing_live_changes_the_prefix(
    stable: dict[str, Any], one: dict[str, Any], other: dict[str, Any], kept: set[str]
) -> None:
    """Definitions that only live input brought may come and go too."""
    first = split({**stable, **one, "shared": DEFINITIONS})
    used = first.prefix["shared"].keys()
    added = {"P:" + "e" * 32: {"new": 1}, "M20": {"newer": 1}}
    second = split({**other, **stable, "shared": {**added, **DEFINITIONS}})
    assert to_bytes(first.prefix) == to_bytes(second.prefix)
    less = {label: DEFINITIONS[label] for label in DEFINITIONS if label in used}
    third = split({**stable, "evidence": sorted(kept), "shared": less})
    assert to_bytes(first.prefix) == to_bytes(third.prefix)


@given(VIEWS, st.sampled_from(STABLE), VALUES)
def test_any_change_of_stable_input_changes_the_id(
    view: dict[str, Any], key: str, value: Any
) -> None:
    changed = {**view, key: value}
    before, after = split(view).prefix["id"], split(changed).prefix["id"]
    assert (before == after) == same(view, changed)


def test_a_changed_definition_that_the_prefix_needs_changes_the_id() -> None:
    view = needing(SHOWN)
    changed = {**view, "shared": {**view["shared"], FIRST_LABEL: {"path": "z.py"}}}
    assert split(view).prefix["id"] != split(changed).prefix["id"]


def refused(parts: Any) -> None:
    with pytest.raises(PartitionRefused) as caught:
        join(*parts)
    assert type(caught.value) is PartitionRefused
    assert "\n" not in str(caught.value)


CHANGES = [(name, False) for name in (*BY_ID, *ALWAYS)] + [(name, True) for name in ALWAYS]


@pytest.mark.parametrize(("name", "rehash"), CHANGES)
def test_a_tampering_is_refused(name: str, rehash: bool) -> None:
    refused(tampered(split(needing(SHOWN)), name, "drawn", rehash=rehash))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("id of the prefix", "the prefix has the ID 'sha256:0000"),
        ("id in the live part", "the live part names 'sha256:0000"),
        ("version of the prefix", "the prefix has version 'stable_case_v2', expected stable_case_"),
        ("version of the live part", "the live part has version 'instructions_v1'"),
        ("overlap from the prefix", "input keys on both sides: case"),
        ("overlap from the live part", "input keys on both sides: evidence"),
        ("equal redefinition", f"definitions on both sides: {FIRST_LABEL}"),
        ("redefinition in the prefix", "definitions on both sides: P1"),
        ("definition lost from the prefix", f"labels without a definition: {SECOND_LABEL}"),
        ("stable input lost", "stable members are missing: catalogs"),
        ("definition that the prefix does not need", "the prefix does not hold exactly"),
        ("definition only in the live part", "the prefix does not hold exactly"),
        ("live input in the prefix", "the prefix does not hold exactly"),
        ("order of live input", "the live part does not hold exactly"),
        ("member more in the live part", "not an object of version, prefix, input, shared"),
        ("live input no object", "input of the live part is not an object"),
    ],
)
def test_a_refusal_says_what_is_wrong(name: str, message: str) -> None:
    rehash = name not in BY_ID
    with pytest.raises(PartitionRefused, match=message):
        join(*tampered(split(needing(SHOWN)), name, "drawn", rehash=rehash))


TAMPERINGS = st.tuples(VIEWS.map(needing), st.sampled_from(CHANGES), SCALARS)


def tampering_refused(view: dict[str, Any], change: tuple[str, bool], drawn: Any) -> None:
    name, rehash = change
    refused(tampered(split(view), name, drawn, rehash=rehash))


@given(TAMPERINGS)
def test_any_tampering_of_any_parts_is_refused(tampering: Any) -> None:
    tampering_refused(*tampering)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(TAMPERINGS)
def test_ten_thousand_tamperings_are_refused(tampering: Any) -> None:
    tampering_refused(*tampering)


@given(VIEWS, VIEWS)
def test_parts_of_two_views_join_only_under_the_same_prefix(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    first, second = split(one), split(other)
    if first.prefix["id"] != second.prefix["id"]:
        refused((first.prefix, second.live))


JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(VIEWS, st.sampled_from(["input", "shared"]), st.integers(0, 1), st.text(max_size=3), JSON)
def test_whatever_is_joined_is_split_into_the_same_parts(
    view: dict[str, Any], member: str, part: int, key: str, value: Any
) -> None:
    """A change with a right ID is either refused or another view's very parts."""
    parts = [*split(view)]
    parts[part] = {**parts[part], member: {**parts[part][member], key: value}}
    changed = rehashed(*parts)
    try:
        joined = join(*changed)
    except PartitionRefused:
        return
    assert to_bytes([*split(joined)]) == to_bytes([*changed])


@given(JSON, JSON)
def test_any_other_json_is_refused(prefix: Any, live: Any) -> None:
    refused((prefix, live))


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        ([], "the view is not an object"),
        ({k: v for k, v in SHOWN.items() if k != "policy"}, "stable members are missing: policy"),
        ({k: v for k, v in SHOWN.items() if k != "shared"}, "shared is not an object"),
        ({**SHOWN, "shared": []}, "shared is not an object"),
        ({**SHOWN, "shared": {"ref": 1}}, "shared defines 'ref', which is no label"),
        ({**SHOWN, "evidence": [{"provenance": UNDEFINED}]}, f"without a definition: {UNDEFINED}"),
        ({**SHOWN, "sources": {"metadata": "M4"}}, "labels without a definition: M4"),
        ({**SHOWN, "shared": {"P1": {"metadata": "M1"}}}, "labels without a definition: M1"),
    ],
)
def test_a_changed_shape_stays_whole_with_its_reason(view: Any, reason: str) -> None:
    with pytest.raises(ShapeChanged, match=reason):
        split(view)
    whole = partition(view)
    assert isinstance(whole, Whole)
    assert whole.reason.startswith("ShapeChanged: ")
    assert reason in whole.reason


def deep(levels: int) -> Any:
    node: Any = None
    for _ in range(levels):
        node = [node]
    return node


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        ({"evidence": [], **SHOWN}, "another order"),
        ({**SHOWN, "shared": {"P2": {}, "P1": {}}}, "another order"),
        ({**SHOWN, "shared": {}, "later": 1}, "another order"),
        ({**SHOWN, "evidence": float("nan")}, "CanonicalError: nan is not a JSON number"),
        ({**SHOWN, "evidence": {1: 2}}, "CanonicalError: "),
        ({**SHOWN, "evidence": deep(199)}, "CanonicalError: nested deeper"),
    ],
)
def test_a_view_that_cannot_be_proven_stays_whole(view: Any, reason: str) -> None:
    whole = partition(view)
    assert isinstance(whole, Whole)
    assert reason in whole.reason


def test_a_split_that_loses_something_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def losing(view: dict[str, Any]) -> Split:
        return split({**view, "evidence": []})

    view = {**SHOWN, "evidence": ["E1"]}
    monkeypatch.setattr(stable_case, "join", lambda *parts: {**view, "evidence": []})
    assert isinstance(partition(view), Whole)
    monkeypatch.undo()
    monkeypatch.setattr(stable_case, "split", losing)
    assert isinstance(partition(view), Whole)


def test_data_that_looks_like_labels_stays_literal() -> None:
    literal = {"rows": [["P1", {"provenance": "P1"}]], "arguments": {"metadata": SECOND_LABEL}}
    view = {**SHOWN, "sources": [literal, "P1", {"name": "P1", "metadata": "P1"}]}
    view["evidence"] = [literal, {"provenance": "P1"}]
    view["shared"] = {"P1": {"path": "a.py"}}
    exact(view)
    assert split(view).prefix["shared"] == {}
    assert same(split(view).prefix["input"]["sources"], view["sources"])


def test_the_prefix_takes_exactly_what_it_needs_transitively() -> None:
    shared = dict(sorted(DEFINITIONS.items()))
    parts = split({**SHOWN, "sources": [{"provenance": "P10"}], "shared": shared})
    assert list(parts.prefix["shared"]) == sorted(["P10", SECOND_LABEL, FIRST_LABEL])
    parts = split({**SHOWN, "case": {"provenance": {"metadata": "M7"}}, "shared": shared})
    assert list(parts.prefix["shared"]) == ["M7", "P2", "P3"], "a cycle ends"


def test_versions_are_named_as_protocols_name_them() -> None:
    assert set(VERSIONS) == {"instructions_v1", "stable_case_v1"}
    assert VERSIONS["stable_case_v1"] == (split, join, partition)
