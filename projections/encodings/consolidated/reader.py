"""The way back: an envelope to the view it stands for, or the one error.

Definitions are read in order and refer to earlier ones only, so there are no cycles and no deep
chains. What a definition expands to is counted on each use and never copied.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ledger.canonical import MAX_DEPTH
from projections.encodings.consolidated import grammar
from projections.encodings.consolidated.grammar import ConsolidatedError


class Heads(NamedTuple):
    """The keys of a row.

    Attributes:
        template: every key in order, common values filled in.
        names: keys that take a value from the row, by their place in it.
        nested: keys whose object is built from the row: key, heads, place of the first value.
        width: how many values a row has.
        size: characters that keys and common values add to each row.
        height: levels of nesting that nested objects and common values add.
    """

    template: dict[str, Any]
    names: list[tuple[str, int]]
    nested: list[tuple[str, Heads, int]]
    width: int
    size: int
    height: int

    def build(self, row: list[Any], start: int = 0) -> dict[str, Any]:
        """Return the object of a row's values from `start` on."""
        item = self.template.copy()
        for name, place in self.names:
            item[name] = row[start + place]
        for name, inner, place in self.nested:
            item[name] = inner.build(row, start + place)
        return item


def read(envelope: dict[str, Any], limit: int) -> Any:
    """Return the view of an envelope.

    Args:
        envelope: the object that has the mark.
        limit: the most characters that definitions and common values may expand to.

    Raises:
        ConsolidatedError: it breaks the grammar or a bound.
    """
    members = dict(envelope)
    version = members.pop(grammar.MARK, None)
    if type(version) is not int or version != grammar.VERSION:
        raise ConsolidatedError(f"version {version!r:.40} of a consolidated document is unknown")
    if list(members) == [grammar.LITERAL]:
        return members[grammar.LITERAL]
    shapes = members.pop(grammar.SHAPES, None) if grammar.SHAPES in members else []
    shared = members.pop(grammar.SHARED, None) if grammar.SHARED in members else []
    if list(members) != [grammar.DATA] or type(shapes) is not list or type(shared) is not list:
        raise ConsolidatedError("the members of a consolidated document are not those of its form")
    return _Reader(shapes, limit).document(shared, members[grammar.DATA])


class _Reader:
    def __init__(self, shapes: list[Any], limit: int) -> None:
        self.raw_shapes = shapes
        self.shapes: dict[int, Heads] = {}
        self.values: list[Any] = []
        self.sizes: list[int] = []
        self.heights: list[int] = []
        self.used: set[int] = set()
        self.limit = limit
        self.spent = 0
        self.deepest = 0
        self.in_shape = False
        self.forms = {
            grammar.REF: self.reference,
            grammar.RECORD: self.record,
            grammar.TABLE: self.table,
            grammar.LINES: self.lines,
            grammar.LIT: self.literal,
        }

    def document(self, shared: list[Any], data: Any) -> Any:
        for raw in shared:
            self.deepest, before = 0, self.spent
            value = self.value(raw, 0)
            if not (type(raw) is dict and list(raw) == [grammar.REF]):  # its target is counted
                self.spend(_characters(raw))
            self.values.append(value)
            self.sizes.append(self.spent - before)
            self.heights.append(self.deepest)
        value = self.value(data, 0)
        if len(self.used) != len(self.values):
            raise ConsolidatedError("a shared value is not used")
        if len(self.shapes) != len(self.raw_shapes):
            raise ConsolidatedError("a shape is not used")
        return value

    def value(self, raw: Any, depth: int) -> Any:
        """Return what a value stands for; `depth` counts the arrays and objects around it."""
        of = type(raw)
        if of is dict:
            if len(raw) == 1:
                for key, inner in raw.items():
                    if key in self.forms:
                        return self.forms[key](inner, depth)
            return self.object(raw, depth)
        if of is list:
            return self.array(raw, depth)
        return raw

    def object(self, raw: dict[str, Any], depth: int) -> dict[str, Any]:
        depth = self.enter(depth)
        return {
            key: item if type(item) is str else self.value(item, depth) for key, item in raw.items()
        }

    def array(self, raw: list[Any], depth: int) -> list[Any]:
        depth = self.enter(depth)
        return [item if type(item) is str else self.value(item, depth) for item in raw]

    def enter(self, depth: int, levels: int = 1) -> int:
        """Return the depth some levels further in, if that is not too deep."""
        depth += levels
        if depth > self.deepest:
            if depth > MAX_DEPTH:
                raise ConsolidatedError(f"nested deeper than {MAX_DEPTH} levels")
            self.deepest = depth
        return depth

    def spend(self, characters: int) -> None:
        self.spent += characters
        if self.spent > self.limit:
            raise ConsolidatedError(f"expands to more than {self.limit} characters")

    def reference(self, raw: Any, depth: int) -> Any:
        number = _number(raw, len(self.values), "shared value")
        self.used.add(number)
        self.spend(self.sizes[number])
        self.enter(depth, self.heights[number])
        return self.values[number]

    def literal(self, raw: Any, depth: int) -> Any:
        if type(raw) is dict:
            return self.object(raw, depth)
        if type(raw) is list:
            return self.array(raw, depth)
        raise ConsolidatedError("only an array or object can be literal")

    def record(self, raw: Any, depth: int) -> dict[str, Any]:
        shape, row = _pair(raw, grammar.RECORD)
        heads = self.shape(shape, depth)
        return self.row(heads, row, depth)

    def table(self, raw: Any, depth: int) -> list[Any]:
        heads, rows = self.heads_and_rows(raw, grammar.TABLE, depth)
        depth = self.enter(depth)
        return [
            self.row(heads, row, depth) if type(row) is list else self.value(row, depth)
            for row in rows
        ]

    def lines(self, raw: Any, depth: int) -> list[Any]:
        heads, blocks = self.heads_and_rows(raw, grammar.LINES, depth)
        if heads.width < 2:
            raise ConsolidatedError("lines need a number and a text")
        depth = self.enter(depth)
        out: list[Any] = []
        for block in blocks:
            out += self.block(heads, block, depth)
        return out

    def block(self, heads: Heads, block: Any, depth: int) -> list[Any]:
        """Return the records of consecutive lines."""
        at = heads.width - 1
        if type(block) is not list or not at < len(block) <= at + grammar.LINES_IN_A_BLOCK:
            raise ConsolidatedError("a block of lines has no text, or too many")
        depth = self.enter(depth, heads.height)
        values = [self.value(item, depth) for item in block]
        first = values[at - 1]
        if type(first) is not int:
            raise ConsolidatedError("a block of lines has no number")
        self.spend((len(values) - at) * (heads.size + _characters(block[:at])))
        before = values[: at - 1]
        return [heads.build([*before, first + n, text]) for n, text in enumerate(values[at:])]

    def row(self, heads: Heads, row: Any, depth: int) -> dict[str, Any]:
        """Return the object of one row."""
        if type(row) is not list or len(row) != heads.width:
            raise ConsolidatedError(f"a row does not have {heads.width} values")
        self.spend(heads.size)
        depth = self.enter(depth, heads.height)
        return heads.build([item if type(item) is str else self.value(item, depth) for item in row])

    def heads_and_rows(self, raw: Any, form: str, depth: int) -> tuple[Heads, list[Any]]:
        heads, rows = _pair(raw, form)
        if type(rows) is not list:
            raise ConsolidatedError(f"{form} has no rows")
        if type(heads) is list:
            return self.heads(heads, depth + 1), rows
        return self.shape(heads, depth + 1), rows

    def shape(self, raw: Any, depth: int) -> Heads:
        """Return a shape's heads; its common values are read at its first use."""
        if self.in_shape:
            raise ConsolidatedError("a shape uses a shape")
        number = _number(raw, len(self.raw_shapes), "shape")
        heads = self.shapes.get(number)
        if heads is None:
            raw_heads = self.raw_shapes[number]
            if type(raw_heads) is not list:
                raise ConsolidatedError(f"shape {number} is no list of columns")
            self.in_shape = True
            heads = self.shapes[number] = self.heads(raw_heads, depth)
            self.in_shape = False
        return heads

    def heads(self, raw: list[Any], depth: int) -> Heads:
        """Return heads as they are written: names, nested objects, common values."""
        template: dict[str, Any] = {}
        names: list[tuple[str, int]] = []
        nested: list[tuple[str, Heads, int]] = []
        width = size = count = 0
        depth, outside, self.deepest = self.enter(depth), self.deepest, depth + 1
        for item in raw:
            if type(item) is str:
                template[item] = None
                names.append((item, width))
                width, size, count = width + 1, size + len(item) + 4, count + 1
            elif type(item) is list and item and type(item[0]) is str:
                inner = self.heads(item[1:], depth)
                template[item[0]] = None
                nested.append((item[0], inner, width))
                width += inner.width
                size, count = size + inner.size + len(item[0]) + 4, count + 1
            elif type(item) is dict and item:
                before = self.spent
                for key, common in item.items():
                    template[key] = self.value(common, depth)
                self.spend(_characters(item))
                size, count = size + self.spent - before, count + len(item)
            else:
                raise ConsolidatedError("a column is neither a name, nor nested, nor common values")
        if count != len(template):
            raise ConsolidatedError("two columns have the same name")
        height = self.deepest - depth + 1
        self.deepest = max(outside, self.deepest)
        return Heads(template, names, nested, width, size, height)


def _number(raw: Any, below: int, what: str) -> int:
    if type(raw) is not int or not 0 <= raw < below:
        raise ConsolidatedError(f"there is no {what} {raw!r:.20} at this place")
    return raw


def _pair(raw: Any, form: str) -> tuple[Any, Any]:
    if type(raw) is not list or len(raw) != 2:
        raise ConsolidatedError(f"{form} does not have two parts")
    return raw[0], raw[1]


def _characters(raw: Any) -> int:
    """Return about how many characters a value has as it is written."""
    try:
        return len(raw) if type(raw) is str else len(repr(raw))
    except ValueError:
        raise ConsolidatedError("an integer is too long") from None
