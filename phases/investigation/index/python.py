"""Python's definitions, by the standard library's `ast`; by indentation for text it cannot read."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from phases.investigation.index.symbols import Symbol, qualify
from phases.investigation.lines import Text

_DEFINITION = re.compile(r"([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+([^\W\d]\w*)")
_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


def symbols(text: Text) -> list[Symbol]:
    """Return classes, functions, methods and the names assigned at module and class level."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the warnings are about the code under investigation
            tree = ast.parse(text.text.removeprefix("\ufeff"))
        return list(_walk(tree, "", False))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return list(_by_indentation(text))


def _walk(tree: ast.AST, around: str, in_class: bool) -> Iterator[Symbol]:
    """Yield definitions in and below a node; a stack rather than recursion, as input is
    untrusted.
    """
    stack: list[tuple[ast.AST, str, bool, bool]] = [(tree, around, in_class, True)]
    while stack:
        node, outer, inside_class, top = stack.pop()
        for part in _BODIES:
            for child in getattr(node, part, ()):
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    symbol = _definition(child, outer, inside_class)
                    yield symbol
                    is_class = isinstance(child, ast.ClassDef)
                    stack.append((child, symbol.qualified, is_class, is_class))
                else:
                    if top:
                        yield from _assigned(child, outer)
                    stack.append((child, outer, inside_class, top))


def _definition(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, outer: str, in_class: bool
) -> Symbol:
    kind = "class" if isinstance(node, ast.ClassDef) else "method" if in_class else "function"
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    qualified = qualify(outer, node.name)
    return Symbol(node.name, qualified, kind, first, node.end_lineno or node.lineno)


def _assigned(node: ast.AST, outer: str) -> Iterator[Symbol]:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    for target in targets:
        for item in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
            if isinstance(item, ast.Name):
                qualified = qualify(outer, item.id)
                last = getattr(node, "end_lineno", None) or item.lineno
                yield Symbol(item.id, qualified, "variable", item.lineno, last)


def _by_indentation(text: Text) -> Iterator[Symbol]:
    """Yield definitions of text that does not parse; each ends before the next line as far left."""
    open_: list[tuple[int, str, str, int, str]] = []  # indent, name, qualified, first, kind
    last_code = 0
    for number, line in enumerate(text.lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        indent = len(line.expandtabs()) - len(line.expandtabs().lstrip())
        while open_ and indent <= open_[-1][0]:
            _, name, qualified, first, kind = open_.pop()
            yield Symbol(name, qualified, kind, first, last_code)
        if found := _DEFINITION.match(line):
            outer, outer_kind = (open_[-1][2], open_[-1][4]) if open_ else ("", "")
            kind = (
                "class"
                if found[2] == "class"
                else "method"
                if outer_kind == "class"
                else "function"
            )
            qualified = qualify(outer, found[3])
            open_.append((indent, found[3], qualified, number, kind))
        last_code = number
    for _, name, qualified, first, kind in reversed(open_):
        yield Symbol(name, qualified, kind, first, last_code)
