"""Columns of objects with the same keys: which keys are common, nested, or take a value a row.

Fields are drawn from the nodes alone; `settle` then chooses, by the costs of a pass, between a
nested object's own columns and one column of whole objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from projections.encodings.consolidated import costs
from projections.encodings.consolidated.graph import Graph

Column: TypeAlias = tuple[int, ...]

MAX_NESTED = 6
"""Levels of nested columns: enough for any view, and drawing stays linear in a chain's depth."""


class Field(NamedTuple):
    """One key of the rows: its column, and its own fields if all its values have the same keys."""

    name: str
    cost: int
    column: Column
    common: bool
    fields: tuple[Field, ...]


class Nested(NamedTuple):
    """A head: an object whose columns stand in the row itself."""

    name: str
    heads: tuple[Head, ...]


class Common(NamedTuple):
    """A head: a key that has the same value in all rows."""

    name: str
    node: int


Head: TypeAlias = str | Nested | Common


class Layout(NamedTuple):
    """How rows are laid out.

    Attributes:
        heads: what stands for each key, in order.
        columns: the columns that take a value a row, in order.
        commons: nodes of the common values.
        head_cost: what the heads cost, their common values included.
        cell_cost: what all cells cost together.
    """

    heads: tuple[Head, ...]
    columns: tuple[Column, ...]
    commons: tuple[int, ...]
    head_cost: int
    cell_cost: int

    def rows(self, count: int) -> Iterator[Column]:
        """Return the values of each of `count` rows."""
        return zip(*self.columns, strict=True) if self.columns else iter([()] * count)


def draw(
    graph: Graph,
    rows: Sequence[Column],
    kind: int,
    simple: Sequence[bool] | None = None,
    levels: int = MAX_NESTED,
) -> tuple[Field, ...]:
    """Return the fields of rows of one key set.

    Args:
        graph: where the nodes are.
        rows: the parts of each row.
        kind: the rows' key set.
        simple: if given, a value can be common only if its node is simple.
        levels: how deep nested fields may go.
    """
    values, kinds = graph.values, graph.kinds
    fields = []
    for name, column in zip(graph.names[kind], zip(*rows, strict=True), strict=True):
        first = column[0]
        if column.count(first) == len(column) and (simple is None or simple[first]):
            fields.append(Field(name, costs.key(name), column, True, ()))
            continue
        inner: tuple[Field, ...] = ()
        of = kinds[first]
        if of >= 0 and levels and graph.names[of] and {*map(kinds.__getitem__, column)} == {of}:
            inner = draw(graph, [values[node] for node in column], of, simple, levels - 1)
        fields.append(Field(name, costs.key(name), column, False, inner))
    return tuple(fields)


def settle(fields: tuple[Field, ...], cost: Sequence[int]) -> Layout:
    """Return the cheapest layout of drawn fields under the nodes' costs."""
    heads: list[Head] = []
    columns: list[Column] = []
    commons: list[int] = []
    head_cost = cell_cost = 0
    price = cost.__getitem__
    for name, key, column, common, fields_below in fields:
        head_cost += key
        if common:
            heads.append(Common(name, column[0]))
            commons.append(column[0])
            head_cost += cost[column[0]]
            continue
        whole = sum(map(price, column))
        if fields_below:
            inner = settle(fields_below, cost)
            if inner.head_cost + inner.cell_cost < whole:
                heads.append(Nested(name, inner.heads))
                columns += inner.columns
                commons += inner.commons
                head_cost += costs.NESTED + inner.head_cost
                cell_cost += inner.cell_cost
                continue
        heads.append(name)
        columns.append(column)
        cell_cost += whole
    return Layout(tuple(heads), tuple(columns), tuple(commons), head_cost, cell_cost)
