"""Investigation views in v11's form with labels everywhere, and ways to tamper with their parts."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from projections.aliases.content_v1 import label_of
from projections.partitions import Split
from projections.partitions.stable_case_v1 import STABLE, VERSION
from projections.partitions.types import content_id
from projections.views.investigation_ordered_v1 import show

LIVE = ("evidence", "hypotheses", "selected_hypothesis", "budget", "early_review", "later", "a.new")
SLOTS = ("provenance", "metadata")

FIRST = {"path": "a.py"}
FIRST_LABEL = label_of("provenance", FIRST)
SECOND = {"of": {"provenance": FIRST_LABEL}, "n": 1}
SECOND_LABEL = label_of("metadata", SECOND)
DEFINITIONS: dict[str, Any] = {
    FIRST_LABEL: FIRST,
    SECOND_LABEL: SECOND,
    "P1": {"path": "b.py", "line": 1.0},
    "P10": {"metadata": SECOND_LABEL},
    "P2": {"rows": ["P1"], "provenance": {"provenance": "P3"}},
    "P3": {"metadata": "M7", "arguments": {"provenance": "P99"}},
    "M7": {"provenance": "P2", "metadata": "no label"},
    "M8": -0.0,
}
"""Definitions that need others, a cycle among them."""

UNDEFINED = "P:" + "0" * 32
TEXTS = st.sampled_from([*DEFINITIONS, UNDEFINED, "P99", "M0", "", "text", "\ud800"])
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([1.0, -0.0]) | TEXTS
LITERALS = st.lists(st.dictionaries(st.sampled_from([*SLOTS, "id"]), TEXTS, max_size=2), max_size=2)


def _slot(name: str) -> st.SearchStrategy[Any]:
    own = [label for label in DEFINITIONS if label[0] == name[0].upper()]
    # A label of the other letter is text: `provenance` holds P labels only.
    other = [label for label in (*DEFINITIONS, "M:" + "0" * 32, "M99") if label not in own]
    other = [label for label in other if label[0] != name[0].upper()]
    return st.sampled_from([*own, *own, *other, "P0", "p1", None, 7, {"path": "small.py"}])


ITEMS = st.fixed_dictionaries(
    {"id": SCALARS},
    optional={
        "provenance": _slot("provenance"),
        "metadata": _slot("metadata"),
        "rows": LITERALS,
        "arguments": LITERALS,
        "result": st.fixed_dictionaries({"metadata": _slot("metadata")}, optional={"n": SCALARS}),
    },
)
VALUES = SCALARS | st.lists(ITEMS, max_size=2) | ITEMS
STABLE_INPUT = st.fixed_dictionaries(dict.fromkeys(STABLE, VALUES))
LIVE_INPUT = st.fixed_dictionaries(
    {"evidence": VALUES, "budget": VALUES},
    optional={key: VALUES for key in LIVE if key not in ("evidence", "budget")},
)
SHARED = dict(sorted(DEFINITIONS.items()))
VIEWS = st.builds(
    lambda stable, live: show({**live, **stable, "shared": SHARED}), STABLE_INPUT, LIVE_INPUT
)


def needing(view: dict[str, Any]) -> dict[str, Any]:
    """Return a view whose prefix needs two definitions, while live needs others."""
    literal = {key: {"rows": value} for key, value in view.items()}
    case, evidence = {"metadata": SECOND_LABEL}, {"provenance": "P1", "metadata": "M8"}
    labels = sorted([FIRST_LABEL, SECOND_LABEL, "P1", "M8"])
    return {
        **literal,
        "case": [case, literal["case"]],
        "evidence": [evidence, literal["evidence"]],
        "shared": {label: DEFINITIONS[label] for label in labels},
    }


def rehashed(prefix: dict[str, Any], live: dict[str, Any]) -> Split:
    """Return parts with the ID that their changed prefix would have."""
    name = content_id(VERSION, prefix["input"], prefix["shared"])
    return Split({**prefix, "id": name}, {**live, "prefix": name})


Tampering = Callable[[dict[str, Any], dict[str, Any], Any], Any]


def _set(part: int, *path: str, value: Any = None) -> Tampering:
    """Return a tampering that sets a member; without a value, to what is drawn."""

    def change(prefix: dict[str, Any], live: dict[str, Any], drawn: Any) -> None:
        at: Any = (prefix, live)[part]
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = drawn if value is None else value

    return change


def _move(member: str, key: str, source: int, *, copied: bool = False) -> Tampering:
    def change(prefix: dict[str, Any], live: dict[str, Any], _: Any) -> None:
        parts = (prefix, live)
        parts[1 - source][member][key] = parts[source][member][key]
        if not copied:
            del parts[source][member][key]

    return change


def _lose(part: int, *path: str) -> Tampering:
    def change(prefix: dict[str, Any], live: dict[str, Any], _: Any) -> None:
        at: Any = (prefix, live)[part]
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]

    return change


def _backwards(part: int, member: str) -> Tampering:
    def change(prefix: dict[str, Any], live: dict[str, Any], _: Any) -> None:
        chosen = (prefix, live)[part]
        chosen[member] = dict(reversed(chosen[member].items()))

    return change


# Those that change a prefix without its ID are refused by the ID; the rest must be with any ID.
BY_ID: dict[str, Tampering] = {
    "stable input changed": _set(0, "input", "case", value="changed"),
    "stable input drawn": lambda prefix, _, drawn: prefix["input"].update(policy=[drawn, "other"]),
    "definition of the prefix changed": _set(0, "shared", FIRST_LABEL, value={"path": "c.py"}),
    "id of the prefix": _set(0, "id", value="sha256:" + "0" * 64),
    "id of the prefix drawn": _set(0, "id"),
    "id without its tag": lambda prefix, _, __: prefix.update(id=prefix["id"].split(":")[1]),
    "id in the live part": _set(1, "prefix", value="sha256:" + "0" * 64),
    "id in the live part drawn": _set(1, "prefix"),
}
ALWAYS: dict[str, Tampering] = {
    "version of the prefix": _set(0, "version", value="stable_case_v2"),
    "version of the prefix drawn": _set(0, "version"),
    "version of the live part": _set(1, "version", value="instructions_v1"),
    "version of the live part drawn": _set(1, "version"),
    "overlap from the prefix": _move("input", "case", 0, copied=True),
    "overlap from the live part": _move("input", "evidence", 1, copied=True),
    "overlap with another value": _set(1, "input", "tools", value="mine"),
    "stable input in the live part": _move("input", "sources", 0),
    "live input in the prefix": _move("input", "budget", 1),
    "stable input lost": _lose(0, "input", "catalogs"),
    "equal redefinition": _move("shared", FIRST_LABEL, 0, copied=True),
    "other redefinition": _set(1, "shared", SECOND_LABEL, value={"mine": 1}),
    "redefinition in the prefix": _move("shared", "P1", 1, copied=True),
    "definition only in the live part": _move("shared", SECOND_LABEL, 0),
    "definition of a definition only in the live part": _move("shared", FIRST_LABEL, 0),
    "definition that the prefix does not need": _move("shared", "M8", 1),
    "definition lost from the prefix": _lose(0, "shared", SECOND_LABEL),
    "transitive definition lost": _lose(0, "shared", FIRST_LABEL),
    "definition lost from the live part": _lose(1, "shared", "P1"),
    "definition under a name that is no label": _set(1, "shared", "evidence", value={"a": 1}),
    "stable label without definition": _set(0, "input", "case", value={"provenance": UNDEFINED}),
    "live label without definition": _set(1, "input", "evidence", value={"provenance": UNDEFINED}),
    "shared as live input": _set(1, "input", "shared", value={}),
    "shared as stable input": _set(0, "input", "shared", value={}),
    "member more in the prefix": _set(0, "more", value=1),
    "member more in the live part": _set(1, "more", value=1),
    "member lost from the prefix": _lose(0, "version"),
    "member lost from the live part": _lose(1, "shared"),
    "order of stable input": _backwards(0, "input"),
    "order of definitions in the prefix": _backwards(0, "shared"),
    "order of live input": _backwards(1, "input"),
    "order of live definitions": _backwards(1, "shared"),
    "live input no object": _set(1, "input", value=[]),
    "live definitions no object": _set(1, "shared", value="P1"),
    "not JSON in the live part": _set(1, "input", "budget", value=float("nan")),
    "a key that is no text": _set(1, "input", "budget", value={1: 2}),
}


def tampered(parts: Split, name: str, drawn: Any, *, rehash: bool) -> Split:
    """Return a tampered copy of parts, with the ID of the changed prefix if asked for."""
    prefix, live = copy.deepcopy(parts)
    (BY_ID | ALWAYS)[name](prefix, live, drawn)
    if rehash and {"input", "shared"} <= prefix.keys():
        return rehashed(prefix, live)
    return Split(prefix, live)
