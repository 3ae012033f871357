"""A plan as the members of the envelope: every node that is written is built once, parts first."""

from __future__ import annotations

from typing import Any

from projections.encodings.consolidated import grammar
from projections.encodings.consolidated.forms import Block, Form, Lines, Plan, Record, Table
from projections.encodings.consolidated.graph import ARRAY, LEAVES, LONG, Graph
from projections.encodings.consolidated.layout import Head, Nested


def write(graph: Graph, plan: Plan) -> dict[str, Any]:
    """Return the envelope of a planned view; definitions that nothing uses are left out."""
    writer = _Writer(graph, plan)
    writer.build()
    shapes = [writer.heads(plan.shapes[kind].layout.heads) for kind in writer.shapes]
    envelope: dict[str, Any] = {grammar.MARK: grammar.VERSION}
    if shapes:
        envelope[grammar.SHAPES] = shapes
    if writer.shared:
        envelope[grammar.SHARED] = [writer.contents[node] for node in writer.shared]
    envelope[grammar.DATA] = writer.built[graph.root]
    return envelope


class _Writer:
    """Builds nodes in order; `built` holds what stands for each: its content or a reference."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self.graph = graph
        self.plan = plan
        self.shared = self._shared()
        self.shapes = self._shapes()
        self.shape_numbers = {kind: number for number, kind in enumerate(self.shapes)}
        self.built: list[Any] = list(graph.values)
        self.contents: dict[int, Any] = {}

    def _shared(self) -> list[int]:
        """Return what is written more than once: leaves first, the most used with short numbers.

        Definitions refer to earlier ones only; nodes are numbered parts first.
        """
        uses, kinds = self.plan.uses, self.graph.kinds
        worth = [node for node in self.plan.shared if uses[node] > 1]
        return sorted(worth, key=lambda n: (0, -uses[n], n) if kinds[n] in LEAVES else (1, 0, n))

    def _shapes(self) -> list[int]:
        """Return the shapes in use, the most used first."""
        used: dict[int, int] = {}
        for node, form in self.plan.forms.items():
            if not isinstance(form, Lines) and form.shape is not None and self.plan.uses[node]:
                used[form.shape] = used.get(form.shape, 0) + self.plan.written(node)
        return sorted(used, key=lambda kind: (-used[kind], kind))

    def build(self) -> None:
        """Build every node that is written."""
        kinds, uses, forms, built = self.graph.kinds, self.plan.uses, self.plan.forms, self.built
        numbers = {node: number for number, node in enumerate(self.shared)}
        for node in self.shared:
            if kinds[node] in LEAVES:
                self.contents[node] = built[node]
                built[node] = {grammar.REF: numbers[node]}
        for node, kind in enumerate(kinds):
            if not uses[node] or kind in LEAVES:
                continue
            form = forms.get(node)
            content = self._plain(node, kind) if form is None else self._formed(node, form)
            if node in numbers:
                self.contents[node] = content
                content = {grammar.REF: numbers[node]}
            built[node] = content

    def _plain(self, node: int, kind: int) -> Any:
        values = map(self.built.__getitem__, self.graph.values[node])
        if kind == ARRAY:
            return list(values)
        names = self.graph.names[kind]
        plain = dict(zip(names, values, strict=True))
        return {grammar.LIT: plain} if grammar.collides(names) else plain

    def _formed(self, node: int, form: Form) -> Any:
        if isinstance(form, Record):
            row = self.plan.shapes[form.shape].rows[node]
            values = list(map(self.built.__getitem__, row))
            return {grammar.RECORD: [self.shape_numbers[form.shape], values]}
        if isinstance(form, Lines):
            blocks = list(map(self._block, form.blocks))
            return {grammar.LINES: [self.heads(form.layout.heads), blocks]}
        return self._table(node, form)

    def _block(self, block: Block) -> list[Any]:
        """Return a block of lines; a text that may be quoted stands where it belongs."""
        values, built = self.graph.values, self.built
        texts = [values[node] if len(values[node]) < LONG else built[node] for node in block.texts]
        return [*map(built.__getitem__, block.values), *texts]

    def _table(self, node: int, table: Table) -> Any:
        members, kinds = table.group.members, self.graph.kinds
        heads: Any
        if table.shape is None:
            cells = table.layout.rows(len(members))
            heads = self.heads(table.layout.heads)
        else:
            rows = self.plan.shapes[table.shape].rows
            cells = iter([rows[member] for member in members])
            heads = self.shape_numbers[table.shape]
        value = self.built.__getitem__
        out: list[Any] = []
        for part in self.graph.values[node]:
            if kinds[part] == table.group.kind:
                out.append(list(map(value, next(cells))))
            else:
                element = value(part)
                out.append({grammar.LIT: element} if type(element) is list else element)
        return {grammar.TABLE: [heads, out]}

    def heads(self, heads: tuple[Head, ...]) -> list[Any]:
        """Return heads as they are written; common values side by side are one object."""
        out: list[Any] = []
        for head in heads:
            if isinstance(head, str):
                out.append(head)
            elif isinstance(head, Nested):
                out.append([head.name, *self.heads(head.heads)])
            elif out and type(out[-1]) is dict:
                out[-1][head.name] = self.built[head.node]
            else:
                out.append({head.name: self.built[head.node]})
        return out
