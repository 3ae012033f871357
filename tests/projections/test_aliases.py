"""Aliases and views: labels are undone exactly, data that looks like a label stays data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.book import Book
from ledger.canonical import same, to_bytes
from ledger.events import RequestPrepared
from projections import aliases, views
from projections.aliases import resolve, sequential_v1
from projections.requests import restored_view
from projections.saw import saved_document
from tests.phases.scripting import only, payload_of

LABELS = st.sampled_from(["P1", "P2", "M1", "P:" + "0" * 32, "$ref", "E1", "S4", ""])
SCALARS = LABELS | st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4)
DEFINITIONS = st.sampled_from(
    [{"path": "a.py"}, {"path": "b.py"}, {"a": 1}, {"a": 1.0}, {"a": True}, {"b": 1, "a": 2},
     {"a": 2, "b": 1}, {}, {"provenance": "P1"}]
)  # fmt: skip
KEYS = st.sampled_from(
    ["provenance", "metadata", "rows", "arguments", "lines", "values", "text", "result", "items"]
)
NODES = st.recursive(
    SCALARS | DEFINITIONS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)
VIEWS = st.builds(
    lambda items, other: {"case": other, "evidence": items, "shared": {}},
    st.lists(st.dictionaries(KEYS, NODES, max_size=4), max_size=5),
    NODES,
)


@given(VIEWS)
def test_sequential_labels_are_undone_exactly(view: dict[str, Any]) -> None:
    """Definitions are shared once, numbered in order; nothing outside evidence is touched."""
    labelled = sequential_v1.apply(view)
    assert same(resolve(labelled), view)
    assert same(labelled["case"], view["case"])
    definitions = [to_bytes([label[0], value]) for label, value in labelled["shared"].items()]
    assert len(definitions) == len(set(definitions))
    for prefix in "PM":
        numbers = [int(label[1:]) for label in labelled["shared"] if label[0] == prefix]
        assert numbers == sorted(set(numbers))


def test_text_in_the_place_of_a_definition_is_never_taken_for_a_label() -> None:
    slots = [{"a": 1}, {"a": 1}, "P1", {"b": 1}, {"b": 1}, "P2"]
    view = {"evidence": [{"provenance": slot} for slot in slots], "shared": {}}
    labelled = sequential_v1.apply(view)
    assert same(resolve(labelled), view)
    assert list(labelled["shared"]) == ["P3", "P4"]


def test_database_values_that_look_like_labels_stay_literal(lives: dict[str, Path]) -> None:
    path = lives["focused"]
    documents = investigation_documents(path)
    last = documents[-1]
    labelled = restored_view(last)
    assert labelled["shared"], "the case has something to share"
    for view in (labelled, resolve(labelled)):
        text = to_bytes(view["evidence"]).decode()
        assert '[1,10,"P1"],[2,20,"M1"]' in text
        assert f'"P:{"0" * 32}"' in text
    assert "M1" in labelled["shared"]


def investigation_documents(path: Path) -> list[Any]:
    with Book.open(path) as book:
        return [
            saved_document(book, event.request, event.document)
            for event in only(path, RequestPrepared)
            if event.phase == "investigation"
        ]


def test_the_labelled_view_resolves_to_the_saved_context(lives: dict[str, Path]) -> None:
    path = lives["focused"]
    contexts = {e.context: payload_of(path, e.content.digest) for e in contexts_created(path)}
    for event, document in zip(
        [e for e in only(path, RequestPrepared) if e.phase == "investigation"],
        investigation_documents(path),
        strict=True,
    ):
        shown = views.VERSIONS["investigation_focused_v1"](contexts[event.context])
        assert same(resolve(restored_view(document)), shown)


def contexts_created(path: Path) -> list[Any]:
    from ledger.events import ContextCreated

    return only(path, ContextCreated)


CONTEXT = {
    "selected_hypothesis": "H2",
    "evidence": [
        {"id": "E1", "hypothesis": "H1"},
        {"id": "E2", "hypothesis": "H2"},
        {"id": "A3", "hypothesis": None},
        {"id": "E4", "hypothesis": None},
    ],
    "shared": {},
}


def test_the_focused_view_shows_the_selected_hypothesis_and_names_what_it_leaves_out() -> None:
    shown = views.VERSIONS["investigation_focused_v1"](CONTEXT)
    assert [item["id"] for item in shown["evidence"]] == ["E2", "A3", "E4"]
    assert shown["evidence_not_shown"] == ["E1"]


@pytest.mark.parametrize("version", ["investigation_full_v1", "whole_v1"])
def test_the_other_views_show_everything(version: str) -> None:
    assert same(views.VERSIONS[version](CONTEXT), CONTEXT)


def test_a_view_without_evidence_is_left_alone() -> None:
    for apply in aliases.VERSIONS.values():
        assert apply({"case": {"provenance": {"a": 1}}})["case"] == {"provenance": {"a": 1}}
