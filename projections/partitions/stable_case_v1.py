"""Partition stable_case_v1: what stays the same over a case revision, and the complete live input.

Exact form, and what `join` refuses: docs/partitions/stable_case_v1.md.
"""

from __future__ import annotations

import re
from typing import Any

from ledger.canonical import same, to_bytes
from projections.aliases.slots import LITERAL, PREFIX
from projections.partitions import types
from projections.partitions.types import Json, PartitionRefused, ShapeChanged, Split, Whole
from projections.views.investigation_ordered_v1 import show

VERSION = "stable_case_v1"

STABLE = ("case", "sources", "interpretation", "policy", "tools", "catalogs")

# By form, not by what `shared` happens to hold: evidence must not turn text of the prefix into a
# label. Both alias versions, so that a label without its definition is always seen.
_LABEL = re.compile(r"([PM])(?::[0-9a-f]{32}|[1-9][0-9]*)")


def split(view: Json) -> Split:
    """Return the stable prefix of an investigation view and its complete live input.

    Raises:
        ShapeChanged: a stable member or `shared` is missing, or a label has no definition.
        CanonicalError: the view is not JSON.
    """
    to_bytes(view)
    _check_shape(view)
    shared = view["shared"]
    stable = {key: view[key] for key in STABLE}
    live = {key: value for key, value in show(view).items() if key not in (*STABLE, "shared")}
    _check_labels(shared, [stable, live, *shared.values()])
    needed = _closure(stable, shared)
    return types.documents(
        VERSION,
        stable,
        {label: shared[label] for label in sorted(needed)},
        live,
        {label: shared[label] for label in sorted(shared.keys() - needed)},
    )


def join(prefix: Any, live: Any) -> Json:
    """Return the view of two parts, in its fixed order.

    Raises:
        PartitionRefused: they are not exactly what `split` makes of one view.
    """
    return types.refusing(_join, prefix, live)


def partition(view: Json) -> Split | Whole:
    """Return the parts of a view, proven to join to exactly it; else why it stays whole."""
    return types.prove(split, join, view)


def _join(prefix: Any, live: Any) -> Json:
    types.check(VERSION, prefix, live)
    shared = {**prefix["shared"], **live["shared"]}
    ordered = {label: shared[label] for label in sorted(shared)}
    view = show({**prefix["input"], **live["input"], "shared": ordered})
    again = split(view)
    if not same(again.prefix, prefix):
        raise PartitionRefused(
            "the prefix does not hold exactly the stable input and what it needs"
        )
    if not same(again.live, live):
        raise PartitionRefused("the live part does not hold exactly the rest, in its fixed order")
    return view


def _check_shape(view: Any) -> None:
    if not isinstance(view, dict):
        raise ShapeChanged("the view is not an object")
    if missing := [key for key in STABLE if key not in view]:
        raise ShapeChanged(f"stable members are missing: {', '.join(missing)}")
    if not isinstance(view.get("shared"), dict):
        raise ShapeChanged("shared is not an object")


def _check_labels(shared: Json, nodes: list[Any]) -> None:
    for name in shared:
        if not (isinstance(name, str) and _LABEL.fullmatch(name)):
            raise ShapeChanged(f"shared defines {name!r}, which is no label")
    if missing := sorted(set[str]().union(*map(_labels, nodes)) - shared.keys()):
        raise ShapeChanged(f"labels without a definition: {', '.join(missing)}")


def _closure(stable: Json, shared: Json) -> set[str]:
    """Return the labels that stable input needs, those that their definitions need among them."""
    needed: set[str] = set()
    found = _labels(stable)
    while found:
        needed |= found
        found = set[str]().union(*(_labels(shared[label]) for label in found)) - needed
    return needed


def _labels(node: Any) -> set[str]:
    """Return the labels in the slots of a value; literal data is not looked into."""
    found: set[str] = set()
    nodes = [node]
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict):
            for key, value in node.items():
                if key in PREFIX and isinstance(value, str):
                    match = _LABEL.fullmatch(value)
                    if match and match[1] == PREFIX[key]:
                        found.add(value)
                elif key not in LITERAL:
                    nodes.append(value)
        elif isinstance(node, list | tuple):
            nodes.extend(node)
    return found
