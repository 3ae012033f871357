"""Aliases: short labels for provenance and metadata definitions that items of a view share.

A label is scoped to one request of one case; it is never an evidence ID. An alias version is a
module with `apply(view)`; `VERSIONS` names them, and the inverse is the same for all: `resolve`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from projections.aliases import content_v1, none, sequential_v1
from projections.aliases.slots import resolve

VERSIONS: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "none": none.apply,
    "sequential_v1": sequential_v1.apply,
    "content_v1": content_v1.apply,
}

__all__ = ["VERSIONS", "resolve"]
