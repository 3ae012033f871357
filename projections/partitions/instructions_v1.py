"""Partition instructions_v1: only system text and output schema stay the same; the view is live.

Exact form, and what `join` refuses: docs/partitions/instructions_v1.md.
"""

from __future__ import annotations

from typing import Any

from ledger.canonical import to_bytes
from projections.partitions import types
from projections.partitions.types import Json, PartitionRefused, ShapeChanged, Split, Whole

VERSION = "instructions_v1"


def split(view: Json) -> Split:
    """Return an empty prefix and the whole view, `shared` left where it stands in it.

    Raises:
        ShapeChanged: the view is not an object.
    """
    if not isinstance(view, dict):
        raise ShapeChanged("the view is not an object")
    return types.documents(VERSION, {}, {}, view, {})


def join(prefix: Any, live: Any) -> Json:
    """Return the view, which is the live input.

    Raises:
        PartitionRefused: the prefix is not the empty one, or the live part not a view under it.
    """
    return types.refusing(_join, prefix, live)


def partition(view: Json) -> Split | Whole:
    """Return the parts of a view, proven to join to exactly it; else why it stays whole."""
    return types.prove(split, join, view)


def _join(prefix: Any, live: Any) -> Json:
    types.check(VERSION, prefix, live)
    for what, held in (
        ("input of the prefix", prefix["input"]),
        ("shared of the prefix", prefix["shared"]),
        ("shared of the live part", live["shared"]),
    ):
        if held:
            raise PartitionRefused(f"{what} is not empty: {to_bytes(list(held)).decode()}")
    view: Json = live["input"]
    return view
