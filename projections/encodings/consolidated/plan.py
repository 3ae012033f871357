"""Which form each value takes: a pass up over the costs, then one down over the uses.

The pass up gives every node its cheapest form under what its parts cost and how many nodes have it
as a part; the pass down counts how often each node is really written then. Nodes are numbered parts
first, so both are plain loops. A second round would save another 0.3 % and cost a fifth more time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from projections.encodings.consolidated import costs
from projections.encodings.consolidated.forms import (
    Block,
    Form,
    Gain,
    Group,
    Lines,
    Plan,
    Record,
    Shape,
    Table,
)
from projections.encodings.consolidated.grammar import LINES_IN_A_BLOCK, collides
from projections.encodings.consolidated.graph import ARRAY, FLAT, LONG, SCALAR, TEXT, Graph
from projections.encodings.consolidated.layout import Field, Layout, draw, settle

TRIFLING = 6
"""Characters, or items of a flat array, up to which a value is cheaper than a reference to it."""


class Offer(NamedTuple):
    """A form that an array could take, and what it costs."""

    cost: int
    form: Form


def plan(graph: Graph) -> Plan:
    """Return which form each value of a graph takes."""
    planner = _Planner(graph)
    chosen = planner.choose(planner.plain())
    planner.drop_poor_shapes(chosen)
    chosen.saved = planner.plain_cost() - planner.cost_of(chosen)
    return chosen


class _Planner:
    """Draws what does not depend on costs once, then plans."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.containers = [n for n, kind in enumerate(graph.kinds) if kind >= 0 or kind == ARRAY]
        self.parts: list[Sequence[int]] = [()] * len(graph.kinds)
        for node in self.containers:
            self.parts[node] = graph.values[node]
        self.parents = self._parents()
        self.leaves = self._leaves()
        self.repeated = [
            n
            for n, kind in enumerate(graph.kinds)
            if self.parents[n] > 1 and kind in (TEXT, FLAT) and self.leaves[n] > costs.REFERENCE
        ]
        self.keys = [
            costs.OBJECT + sum(map(costs.key, names)) + (costs.ESCAPE if collides(names) else 0)
            for names in graph.names
        ]
        self.rows: set[int] = set()
        self.groups = dict(self._groups())
        self.members = self._members()
        self.shape_fields = dict(self._shape_fields())

    def _parents(self) -> list[int]:
        """Return how many nodes have each node as a part, by each place it has there."""
        parents = [0] * len(self.parts)
        parents[self.graph.root] = 1
        for node, count in Counter(chain.from_iterable(self.parts)).items():
            parents[node] = count
        return parents

    def _leaves(self) -> list[int]:
        """Return the costs of scalars and flat arrays; containers cost nothing yet.

        Only differences decide, so what occurs once is guessed by its length.
        """
        out = []
        for value, kind, parents in zip(
            self.graph.values, self.graph.kinds, self.parents, strict=True
        ):
            if kind >= 0 or kind == ARRAY:
                out.append(0)
            elif kind == SCALAR:
                out.append(costs.SCALAR)
            elif parents > 1 and len(value) > TRIFLING:
                out.append(costs.exact(value))
            else:
                out.append(costs.ARRAY + len(value) * (30 if kind == TEXT else costs.ITEM))
        return out

    def _groups(self) -> Iterator[tuple[int, Group]]:
        kinds, values = self.graph.kinds, self.graph.values
        for node in self.containers:
            if kinds[node] != ARRAY:
                continue
            parts = values[node]
            best, members, others = kinds[parts[0]], parts, ()
            of = [kinds[part] for part in parts]
            if of.count(best) < len(of):
                counts = Counter(of)
                best = max(counts, key=lambda kind: (kind >= 0, counts[kind], -kind))
                members = tuple([part for part in parts if kinds[part] == best])
                others = tuple([part for part in parts if kinds[part] != best])
            if best < 0 or not self.graph.names[best]:
                continue
            fields: tuple[Field, ...] = ()
            if len(members) > 1:
                fields = draw(self.graph, [values[member] for member in members], best)
                self.rows.update(members)
            yield node, Group(best, members, fields, others)

    def _members(self) -> dict[int, list[int]]:
        members: dict[int, list[int]] = {}
        for node in self.containers:
            members.setdefault(self.graph.kinds[node], []).append(node)
        return members

    def _shape_fields(self) -> Iterator[tuple[int, tuple[Field, ...]]]:
        """Yield the fields of key sets that several objects have: what a shape can be made of."""
        simple = self._simple()
        for kind, nodes in self.members.items():
            names = self.graph.names[kind] if kind >= 0 else ()
            if len(nodes) > 1 and names and not collides(names):
                rows = [self.graph.values[node] for node in nodes]
                yield kind, draw(self.graph, rows, kind, simple)

    def _simple(self) -> list[bool]:
        """Return which nodes hold no object: only those may be common values of a shape."""
        simple = [True] * len(self.parts)
        for node in self.containers:
            simple[node] = self.graph.kinds[node] < 0 and all(
                simple[part] for part in self.parts[node]
            )
        return simple

    def plain(self) -> Plan:
        """Return the plan of plain forms: what is shared and what costs are before any choice."""
        plan = Plan(list(self.leaves), self.parts, {}, {}, self.parents, {}, {})
        self._share_leaves(plan, self.parents)
        cost, kinds, keys, parents = plan.cost, self.graph.kinds, self.keys, self.parents
        price = cost.__getitem__
        for node in self.containers:
            own = keys[kinds[node]] if kinds[node] >= 0 else costs.ARRAY
            full = own + sum(map(price, self.parts[node]))
            cost[node] = (
                self._placed(plan, node, full, parents[node]) if parents[node] > 1 else full
            )
        return plan

    def choose(self, before: Plan) -> Plan:
        """Return a plan of the cheapest forms, the costs of a plan before deciding on shapes."""
        plan = Plan(list(self.leaves), list(self.parts), {}, {}, [], {}, {})
        plan.shapes = dict(self._shapes(before))
        self._share_leaves(plan, before.uses)
        cost, kinds, uses = plan.cost, self.graph.kinds, before.uses
        for node in self.containers:
            kind, used = kinds[node], uses[node]
            full = self._object(plan, node, kind) if kind >= 0 else self._array(plan, node)
            cost[node] = self._placed(plan, node, full, used) if used > 1 else full
        plan.uses = self._count(plan)
        return plan

    def drop_poor_shapes(self, plan: Plan) -> None:
        """Take back the shapes that save less than their definition costs."""
        gains: Counter[int] = Counter()
        for node, gain in plan.gains.items():
            gains[gain.shape] += gain.hundredths * plan.written(node)
        poor = {
            shape
            for shape, total in gains.items()
            if total <= plan.shapes[shape].layout.head_cost + costs.DEFINITION
        }
        for node, gain in plan.gains.items():
            if gain.shape not in poor:
                continue
            del plan.forms[node]
            plan.parts[node] = self.parts[node]
            if gain.otherwise is not None:
                plan.forms[node] = gain.otherwise
                plan.parts[node] = self._written(gain.otherwise, plan)
        if poor:
            plan.uses = self._count(plan)

    def plain_cost(self) -> int:
        """Return what the plain view costs, everything written where it stands."""
        total, kinds, keys = list(self.leaves), self.graph.kinds, self.keys
        price = total.__getitem__
        for node in self.containers:
            own = keys[kinds[node]] if kinds[node] >= 0 else costs.ARRAY
            total[node] = own + sum(map(price, self.parts[node]))
        return total[self.graph.root]

    def cost_of(self, plan: Plan) -> int:
        """Return about what the envelope of a plan costs."""
        total = costs.ENVELOPE + plan.cost[self.graph.root]
        for node, full in plan.shared.items():
            if plan.uses[node] > 1:
                total += full + costs.DEFINITION
            elif plan.uses[node]:
                total += full - costs.REFERENCE
        used = {form.shape for form in plan.forms.values() if not isinstance(form, Lines)}
        return total + sum(
            plan.shapes[shape].layout.head_cost + costs.DEFINITION
            for shape in used
            if shape is not None
        )

    def _share_leaves(self, plan: Plan, uses: Sequence[int]) -> None:
        for node in self.repeated:
            plan.cost[node] = self._placed(plan, node, plan.cost[node], uses[node])

    def _placed(self, plan: Plan, node: int, full: int, uses: int) -> int:
        """Return what a node costs where it stands, and note it if it is worth a definition."""
        if (uses - 1) * full > uses * costs.REFERENCE + costs.DEFINITION:
            plan.shared[node] = full
            return costs.REFERENCE
        return full

    def _shapes(self, before: Plan) -> Iterator[tuple[int, Shape]]:
        """Yield the shapes that may pay, at best as rows of tables."""
        for kind, fields in self.shape_fields.items():
            nodes = self.members[kind]
            layout = settle(fields, before.cost)
            gain = sum([before.uses[n] for n in nodes]) * (self.keys[kind] - costs.ROW)
            if gain > layout.head_cost + costs.DEFINITION:
                yield kind, Shape(layout, dict(zip(nodes, layout.rows(len(nodes)), strict=True)))

    def _object(self, plan: Plan, node: int, kind: int) -> int:
        price = plan.cost.__getitem__
        plain = self.keys[kind] + sum(map(price, self.parts[node]))
        shape = plan.shapes.get(kind)
        if shape is None or (node in self.rows and self.parents[node] == 1):
            return plain  # a row of a table costs less than a record
        row = shape.rows[node]
        record = costs.RECORD + sum(map(price, row))
        if record >= plain:
            return plain
        plan.forms[node] = Record(kind)
        plan.parts[node] = row
        plan.gains[node] = Gain(kind, plain - record, None)
        return record

    def _array(self, plan: Plan, node: int) -> int:
        """Return the cost of an array's cheapest form, and note the form."""
        form: Form | None = None
        best = costs.ARRAY + sum(map(plan.cost.__getitem__, self.parts[node]))
        group = self.groups.get(node)
        if group is None:
            return best
        around = self._around(group, plan.cost)
        if group.fields:
            layout = settle(group.fields, plan.cost)
            for offer in self._own_layout(group, layout, around, plan.cost):
                if offer.cost < best:
                    best, form = offer
        shape = plan.shapes.get(group.kind)
        if shape is not None:
            offer = self._shape_table(group, shape, around, plan.cost)
            if offer.cost < best:
                plan.gains[node] = Gain(group.kind, best - offer.cost, form)
                best, form = offer
        if form is not None:
            plan.forms[node] = form
            plan.parts[node] = self._written(form, plan)
        return best

    def _written(self, form: Form, plan: Plan) -> Sequence[int]:
        """Return the nodes that an array's form writes."""
        if isinstance(form, Lines):
            values = self.graph.values
            before = chain.from_iterable([block.values for block in form.blocks])
            long = [node for node in form.layout.columns[-1] if len(values[node]) >= LONG]
            return [*form.layout.commons, *before, *long]
        assert isinstance(form, Table)
        if form.shape is None:
            cells = chain.from_iterable(form.layout.columns)
            return [*form.layout.commons, *cells, *form.group.others]
        rows = plan.shapes[form.shape].rows
        cells = chain.from_iterable([rows[member] for member in form.group.members])
        return [*cells, *form.group.others]

    def _around(self, group: Group, cost: Sequence[int]) -> int:
        """Return what a table costs beside its heads and cells."""
        kinds = self.graph.kinds
        arrays = sum([kinds[part] in (ARRAY, FLAT) for part in group.others])
        return (
            costs.TABLE
            + costs.ROW * len(group.members)
            + sum([cost[part] for part in group.others])
            + costs.ESCAPE * arrays
        )

    def _own_layout(
        self, group: Group, layout: Layout, around: int, cost: Sequence[int]
    ) -> Iterator[Offer]:
        heads = costs.ROW + layout.head_cost
        yield Offer(heads + layout.cell_cost + around, Table(group, layout, None))
        if not group.others and self._is_lines(layout):
            blocks = self._blocks(layout)
            yield Offer(heads + self._lines_cost(layout, blocks, cost), Lines(layout, blocks))

    def _shape_table(self, group: Group, shape: Shape, around: int, cost: Sequence[int]) -> Offer:
        cells = chain.from_iterable([shape.rows[member] for member in group.members])
        price = costs.NUMBER + sum(map(cost.__getitem__, cells)) + around
        return Offer(price, Table(group, shape.layout, group.kind))

    def _is_lines(self, layout: Layout) -> bool:
        """Tell whether the last two columns are numbers that often run on, and texts."""
        if len(layout.columns) < 2:
            return False
        kinds, values = self.graph.kinds, self.graph.values
        *_, numbers, texts = layout.columns
        if kinds[texts[0]] != TEXT or {*map(kinds.__getitem__, texts)} != {TEXT}:
            return False
        lines = [values[node] for node in numbers]
        if {*map(type, lines)} != {int}:
            return False
        run_on = sum([after == before + 1 for before, after in pairwise(lines)])
        return bool(5 * run_on >= len(lines))  # else a table is smaller

    def _lines_cost(self, layout: Layout, blocks: list[Block], cost: Sequence[int]) -> int:
        values, leaves = self.graph.values, self.leaves
        before = chain.from_iterable([block.values for block in blocks])
        texts = [
            leaves[node] if len(values[node]) < LONG else cost[node] for node in layout.columns[-1]
        ]
        return (
            costs.LINES
            + costs.BLOCK * len(blocks)
            + sum(map(cost.__getitem__, before))
            + sum(texts)
        )

    def _blocks(self, layout: Layout) -> list[Block]:
        """Return rows of lines as runs of consecutive numbers under the same other values."""
        *before, numbers, texts = layout.columns
        heads = zip(*before, strict=True) if before else iter([()] * len(texts))
        values = self.graph.values
        blocks: list[Block] = []
        expected: tuple[object, ...] | None = None
        for head, number, text in zip(heads, numbers, texts, strict=True):
            line = values[number]
            if (head, line) != expected or len(blocks[-1].texts) == LINES_IN_A_BLOCK:
                blocks.append(Block((*head, number), []))
            blocks[-1].texts.append(text)
            expected = (head, line + 1)
        return blocks

    def _count(self, plan: Plan) -> list[int]:
        """Return how often each node is written under a plan."""
        uses = [0] * len(self.parts)
        uses[self.graph.root] = 1
        seen: set[int] = set()
        parts, shared, forms = plan.parts, plan.shared, plan.forms
        for node in reversed(self.containers):
            if not (used := uses[node]):
                continue
            if node in shared:
                used = 1
            for part in parts[node]:
                uses[part] += used
            form = forms.get(node)
            shape = None if form is None or isinstance(form, Lines) else form.shape
            if shape is not None and shape not in seen:
                seen.add(shape)
                for part in plan.shapes[shape].layout.commons:
                    uses[part] += 1
        return uses
