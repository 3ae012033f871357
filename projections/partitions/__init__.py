"""Partitions: which part of a view stays the same over a case revision, and which is live.

A partition is a module with `split(view) -> Split`, its exact inverse `join(prefix, live)`, and
`partition(view)`, which proves the one by the other; `VERSIONS` names them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from projections.partitions import instructions_v1, stable_case_v1
from projections.partitions.types import PartitionRefused, ShapeChanged, Split, Whole


class Partition(NamedTuple):
    """One version of a partition: split, its inverse, and the split that proves itself."""

    split: Callable[[Any], Split]
    join: Callable[[Any, Any], dict[str, Any]]
    partition: Callable[[Any], Split | Whole]


VERSIONS: Mapping[str, Partition] = {
    module.VERSION: Partition(module.split, module.join, module.partition)
    for module in (instructions_v1, stable_case_v1)
}

__all__ = ["VERSIONS", "Partition", "PartitionRefused", "ShapeChanged", "Split", "Whole"]
