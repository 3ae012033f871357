"""Small slips in Python functions, as people make them: found by syntax tree, replaced as text.

The source stays as it is written but for the slip. Kinds follow what fix commits undo: a comparison
at its boundary, an index off by one, a guard or branch that is missing, arguments in the wrong
order, a wrong default, a copy or await that was forgotten, a wrong key, slice or method.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_COMPARED = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"),
    ast.Is: ("is", "is not"), ast.NotIn: ("not in", "in"), ast.IsNot: ("is not", "is"),
}  # fmt: skip
_COMPUTED = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.FloorDiv: ("//", "/"),
             ast.Mod: ("%", "//")}  # fmt: skip
_METHODS = {
    "lower": "upper", "upper": "lower", "strip": "lstrip", "lstrip": "rstrip", "rstrip": "strip",
    "startswith": "endswith", "endswith": "startswith", "find": "rfind", "split": "rsplit",
    "partition": "rpartition", "rpartition": "partition", "append": "extend", "ljust": "rjust",
    "rjust": "ljust", "insert": "append", "items": "keys", "values": "keys",
}  # fmt: skip
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_COPIES = ("list", "dict", "set", "tuple", "sorted", "reversed")
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutation:
    """A slip. `start` and `end` are byte offsets of what `text` replaces; `line` is 1-based, as is
    `first`, where the function begins (its decorators included).
    """

    kind: str
    function: str
    first: int
    line: int
    start: int
    end: int
    text: str

    def applied(self, source: str) -> str | None:
        """Return the source with the slip; None if that is no Python, or no change."""
        data = source.encode()
        text = (data[: self.start] + self.text.encode() + data[self.end :]).decode()
        try:
            ast.parse(text)
        except SyntaxError:
            return None
        return text if text != source else None

    def told(self, source: str) -> str:
        """Return the slip in short: what stood there, and what stands there now."""
        old = source.encode()[self.start : self.end].decode()
        return f"{' '.join(old.split())[:120]!r} -> {self.text[:120]!r}"


class _Source:
    """Byte offsets of what the syntax tree names by line and column."""

    def __init__(self, text: str) -> None:
        self.data = text.encode()
        self.lines = text.encode().splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def start(self, node: ast.AST) -> int:
        return self.starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        return self.starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def text(self, node: ast.AST) -> str:
        return self.data[self.start(node) : self.end(node)].decode()

    def whole_lines(self, first: int, last: int) -> tuple[int, int]:
        return self.starts[first - 1], self.starts[last]


def mutations(text: str) -> list[Mutation]:
    """Return the slips that can be made in the functions of a module, in order of place; a few
    give no Python (`applied` tells).
    """
    tree = ast.parse(text)
    source = _Source(text)
    found = [
        Mutation(kind, name, _first_line(function), line, start, end, new)
        for name, function in functions(tree)
        for kind, line, start, end, new in _in_function(source, function)
    ]
    return sorted(set(found), key=_place)


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Yield (qualified name, function) of all functions; those inside functions belong to them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield f"{prefix}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        else:
            yield from functions(node, prefix)


def _first_line(function: Function) -> int:
    return min([function.lineno, *(d.lineno for d in function.decorator_list)])


def _place(mutation: Mutation) -> tuple[int, int, str, str]:
    return mutation.start, mutation.end, mutation.kind, mutation.text


Found = tuple[str, int, int, int, str]


def _in_function(source: _Source, function: Function) -> Iterator[Found]:
    keys = _keys(function)
    yield from _defaults(source, function)
    for statement in function.body:
        for node in ast.walk(statement):
            yield from _of_node(source, node, keys)


def _of_node(source: _Source, node: ast.AST, keys: list[str]) -> Iterator[Found]:
    match node:
        case ast.Compare(ops=[operator]):
            yield from _compared(source, node, operator)
        case ast.BoolOp():
            yield from _logic(source, node)
        case ast.UnaryOp(op=ast.Not()):
            yield "negation", node.lineno, *_span(source, node), source.text(node.operand)
        case ast.BinOp():
            yield from _computed(source, node)
        case ast.Subscript():
            yield from _subscript(source, node, keys)
        case ast.Call():
            yield from _call(source, node, keys)
        case ast.Await():
            yield "forgotten await", node.lineno, *_span(source, node), source.text(node.value)
        case ast.If():
            yield from _branches(source, node)
        case ast.ExceptHandler(type=ast.Tuple(elts=[first, *_])) if node.type is not None:
            yield "narrow except", node.lineno, *_span(source, node.type), source.text(first)
        case ast.For() | ast.While():
            yield from _loop(source, node)
        case ast.AugAssign() | ast.Expr(value=ast.Call()):
            yield "forgotten step", node.lineno, *_span(source, node), "pass"
        case ast.keyword(value=ast.Constant(value=bool(value))):
            yield "wrong constant", node.value.lineno, *_span(source, node.value), str(not value)


def _span(source: _Source, node: ast.AST) -> tuple[int, int]:
    return source.start(node), source.end(node)


def _between(source: _Source, left: ast.AST, right: ast.AST, old: str) -> tuple[int, int] | None:
    """Return where an operator stands between two operands; None if it is written unusually."""
    start, end = source.end(left), source.start(right)
    at = source.data[start:end].decode().find(old)
    alone = source.data[start:end].decode().replace(old, "", 1).strip(" ()\n\t") == ""
    return (start + at, start + at + len(old)) if at >= 0 and alone else None


def _compared(source: _Source, node: ast.Compare, operator: ast.cmpop) -> Iterator[Found]:
    old, new = _COMPARED[type(operator)]
    if span := _between(source, node.left, node.comparators[0], old):
        kind = "boundary" if old in ("<", "<=", ">", ">=") else "comparison"
        yield kind, node.lineno, *span, new
    for side in (node.left, *node.comparators):
        yield from _off_by_one(source, side)


def _logic(source: _Source, node: ast.BoolOp) -> Iterator[Found]:
    old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    for left, right in pairwise(node.values):
        if span := _between(source, left, right, old):
            yield "logic", left.lineno, *span, new
    for at, value in enumerate(node.values[1:]):  # a condition that was forgotten
        before = node.values[at]
        yield "missing condition", value.lineno, source.end(before), source.end(value), ""


def _computed(source: _Source, node: ast.BinOp) -> Iterator[Found]:
    yield from _off_by_one(source, node.right)
    words = [part for part in (node.left, node.right) if _is_text(part)]
    if type(node.op) in _COMPUTED and not words:
        old, new = _COMPUTED[type(node.op)]
        if span := _between(source, node.left, node.right, old):
            yield "arithmetic", node.lineno, *span, new


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _off_by_one(source: _Source, node: ast.AST) -> Iterator[Found]:
    if isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) < 10_000:
        for new in (node.value + 1, node.value - 1):
            if new >= 0:
                yield "off by one", node.lineno, *_span(source, node), str(new)


def _subscript(source: _Source, node: ast.Subscript, keys: list[str]) -> Iterator[Found]:
    if isinstance(node.slice, ast.Slice):
        for bound in (node.slice.lower, node.slice.upper):
            if bound is not None:
                yield "slice", bound.lineno, *_span(source, bound), ""
                yield from _off_by_one(source, bound)
        if node.slice.lower is None and node.slice.upper is None and node.slice.step is None:
            yield "forgotten copy", node.lineno, *_span(source, node), source.text(node.value)
        return
    yield from _off_by_one(source, node.slice)
    yield from _wrong_key(source, node.slice, keys)


def _wrong_key(source: _Source, node: ast.AST, keys: list[str]) -> Iterator[Found]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in keys:
        others = [key for key in keys if key != node.value]
        for key in others[:1]:
            yield "wrong key", node.lineno, *_span(source, node), repr(key)


def _keys(function: Function) -> list[str]:
    """Return the texts that a function uses as keys, in order."""
    found: dict[str, None] = {}
    for node in ast.walk(function):
        match node:
            case ast.Subscript(slice=ast.Constant(value=str(key))):
                found[key] = None
            case ast.Call(
                func=ast.Attribute(attr="get" | "pop"), args=[ast.Constant(value=str(key)), *_]
            ):
                found[key] = None
    return list(found)


def _call(source: _Source, node: ast.Call, keys: list[str]) -> Iterator[Found]:
    first, second, *_ = [*node.args, None, None]
    named = (ast.Name, ast.Attribute)
    if isinstance(first, named) and isinstance(second, named):
        one, two = source.text(first), source.text(second)
        if one != two:
            between = source.data[source.end(first) : source.start(second)].decode()
            span = source.start(first), source.end(second)
            yield "swapped arguments", first.lineno, *span, f"{two}{between}{one}"
    match node.func:
        case ast.Name(id=name) if name in _FUNCTIONS:
            yield "wrong function", node.lineno, *_span(source, node.func), _FUNCTIONS[name]
        case ast.Name(id=name) if name in _COPIES and len(node.args) == 1 and not node.keywords:
            yield "forgotten copy", node.lineno, *_span(source, node), source.text(node.args[0])
        case ast.Name(id="range"):
            for argument in node.args:
                yield from _off_by_one(source, argument)
        case ast.Attribute(attr="copy", value=value) if not node.args:
            yield "forgotten copy", node.lineno, *_span(source, node), source.text(value)
        case ast.Attribute(attr=name) if name in _METHODS:
            end = source.end(node.func)
            yield "wrong method", node.lineno, end - len(name), end, _METHODS[name]
        case ast.Attribute(attr="get" | "pop") if node.args:
            yield from _wrong_key(source, node.args[0], keys)


def _branches(source: _Source, node: ast.If) -> Iterator[Found]:
    """Leave out a guard, an `else` or an `elif`."""
    body, other = node.body, node.orelse
    if len(body) == 1 and isinstance(body[0], _LEAVES) and not other:
        span = source.start(node), source.end(node)
        yield "missing guard", node.lineno, *span, "pass"
    if other and not _is_elif(source, other):
        first, last = body[-1].end_lineno or 0, other[-1].end_lineno or 0
        yield "missing branch", other[0].lineno, *source.whole_lines(first + 1, last), ""
    if len(other) == 1 and _is_elif(source, other) and not other[0].orelse:  # type: ignore[attr-defined]
        first, last = body[-1].end_lineno or 0, other[0].end_lineno or 0
        yield "missing branch", other[0].lineno, *source.whole_lines(first + 1, last), ""


def _is_elif(source: _Source, other: list[ast.stmt]) -> bool:
    return isinstance(other[0], ast.If) and source.text(other[0]).startswith("elif")


def _loop(source: _Source, node: ast.For | ast.While) -> Iterator[Found]:
    """End a loop too early, or not early enough."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Continue):
            yield "early end", inner.lineno, *_span(source, inner), "break"
        elif isinstance(inner, ast.Break):
            yield "no early end", inner.lineno, *_span(source, inner), "continue"


def _defaults(source: _Source, function: Function) -> Iterator[Found]:
    arguments = function.args
    for default in [*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)]:
        if isinstance(default, ast.Constant) and isinstance(default.value, bool):
            yield "wrong default", default.lineno, *_span(source, default), str(not default.value)
        for kind, *rest in _off_by_one(source, default):
            assert kind
            yield "wrong default", *rest  # type: ignore[misc]
