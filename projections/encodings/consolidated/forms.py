"""What a plan is made of: the form of each node, and the shapes they use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from projections.encodings.consolidated.layout import Column, Field, Layout


class Group(NamedTuple):
    """The objects of one key set in an array, and all else in it."""

    kind: int
    members: Column
    fields: tuple[Field, ...]
    others: Column


class Shape(NamedTuple):
    """The layout of a key set for the whole document, and each object's values under it."""

    layout: Layout
    rows: dict[int, Column]


class Record(NamedTuple):
    """An object as a shape and the values that the shape leaves open."""

    shape: int


class Table(NamedTuple):
    """An array of objects as rows of one layout, its own or a shape's."""

    group: Group
    layout: Layout
    shape: int | None


class Block(NamedTuple):
    """The values before the texts, the first line's number last; and the texts."""

    values: Column
    texts: list[int]


class Lines(NamedTuple):
    """An array of source-line records as blocks of consecutive lines."""

    layout: Layout
    blocks: list[Block]


Form: TypeAlias = Record | Table | Lines


class Gain(NamedTuple):
    """What the use of a shape saves, and the form that an array takes without it."""

    shape: int
    hundredths: int
    otherwise: Form | None


@dataclass
class Plan:
    """What was chosen.

    Attributes:
        cost: of each node where it stands: of a reference if it is shared.
        parts: the nodes that each node's form writes.
        forms: chosen forms by node; a node that has none is plain.
        shared: what the content of nodes costs that are worth a definition.
        uses: how often each node is written.
        shapes: what is known of each shape, by its key set.
        gains: by node, for nodes whose form uses a shape.
        saved: hundredths of a token that the plan saves against the plain view, by its own costs.
    """

    cost: list[int]
    parts: list[Sequence[int]]
    forms: dict[int, Form]
    shared: dict[int, int]
    uses: Sequence[int]
    shapes: dict[int, Shape]
    gains: dict[int, Gain]
    saved: int = 0

    def written(self, node: int) -> int:
        """Return how often a node's form is written: once if it is shared."""
        return min(1, self.uses[node]) if node in self.shared else self.uses[node]
