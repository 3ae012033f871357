"""Definitions in Java, Go, C, C++, C#, Ruby and PHP, where the extra `languages` is installed.

Without it patterns (plain.py) stand in, so the answer to `find_symbol` may differ between machines;
the evidence says which of the two read a file.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from phases.investigation.index.symbols import Symbol, qualify
from phases.investigation.lines import Text

if TYPE_CHECKING:
    from tree_sitter import Node


class Grammar(NamedTuple):
    """A package, the function in it that gives the language, and what its definitions are."""

    package: str
    function: str
    kinds: dict[str, str]


_TYPES = {
    "class_declaration": "class", "interface_declaration": "interface", "enum_declaration": "enum",
    "record_declaration": "class", "struct_declaration": "class", "trait_declaration": "trait",
    "namespace_declaration": "namespace", "namespace_definition": "namespace",
    "annotation_type_declaration": "interface", "delegate_declaration": "type",
}  # fmt: skip
_MEMBERS = {
    "method_declaration": "method", "constructor_declaration": "method",
    "property_declaration": "property", "function_definition": "function",
    "local_function_statement": "function",
}  # fmt: skip
_C = {
    "struct_specifier": "class", "class_specifier": "class", "union_specifier": "class",
    "enum_specifier": "enum", "namespace_definition": "namespace",
    "function_definition": "function",
}  # fmt: skip
_GO = {
    "function_declaration": "function", "method_declaration": "method", "type_spec": "type",
    "method_elem": "method",
}  # fmt: skip
_RUBY = {"module": "module", "class": "class", "method": "method", "singleton_method": "method"}

_JAVA = Grammar("tree_sitter_java", "language", _TYPES | _MEMBERS)
_C_SHARP = Grammar("tree_sitter_c_sharp", "language", _TYPES | _MEMBERS)
_PHP = Grammar("tree_sitter_php", "language_php", _TYPES | _MEMBERS)
_CPP = Grammar("tree_sitter_cpp", "language", _C)
GRAMMARS: dict[str, Grammar] = {
    "java": _JAVA, "cs": _C_SHARP, "php": _PHP,
    "go": Grammar("tree_sitter_go", "language", _GO),
    "rb": Grammar("tree_sitter_ruby", "language", _RUBY),
    "c": Grammar("tree_sitter_c", "language", _C),
    **dict.fromkeys(("h", "cc", "cpp", "cxx", "hh", "hpp", "hxx"), _CPP),
}  # fmt: skip
_MOST_NODES = 3_000_000
_DEEPEST_DECLARATOR = 20


def available(extension: str) -> bool:
    """Tell whether a syntax tree can be made for files of this extension."""
    grammar = GRAMMARS.get(extension)
    return grammar is not None and find_spec(grammar.package) is not None


def symbols(extension: str, text: Text) -> list[Symbol]:
    """Return the definitions in a file."""
    grammar = GRAMMARS[extension]
    tree = _parser(grammar.package, grammar.function).parse(text.data)
    found: list[Symbol] = []
    stack: list[tuple[Node, str]] = [(tree.root_node, "")]
    seen = 0
    while stack and seen < _MOST_NODES:
        node, around = stack.pop()
        seen += 1
        kind = grammar.kinds.get(node.type) if node.is_named else None
        name = _name(node) if kind else ""
        if kind and name and _defines(node):
            symbol = _symbol(node, kind, around, name)
            found.append(symbol)
            around = symbol.qualified
        stack.extend((child, around) for child in node.named_children)
    return found


def _symbol(node: Node, kind: str, around: str, name: str) -> Symbol:
    if node.type == "method_declaration" and (receiver := node.child_by_field_name("receiver")):
        around = _receiver(receiver)  # Go: `func (s *S) M()` is S.M wherever it stands
    qualified = qualify(around, name)
    first, last = node.start_point[0] + 1, node.end_point[0] + 1
    return Symbol(name.rpartition(".")[2], qualified, kind, first, last)


def _defines(node: Node) -> bool:
    """`struct s` alone names a type; only with a body is it a definition."""
    if not node.type.endswith("_specifier"):
        return True
    return node.child_by_field_name("body") is not None


def _name(node: Node) -> str:
    """Return a definition's name; C and C++ wrap it in declarators."""
    for _ in range(_DEEPEST_DECLARATOR):
        inner = node.child_by_field_name("declarator")
        if inner is None:
            break
        node = inner
    named = node.child_by_field_name("name") if "identifier" not in node.type else node
    text = ((named or node).text or b"").decode("utf-8", "replace")
    name = text.replace("::", ".").replace("\\", ".")
    simple = named is not None and len(name) <= 200 and "\n" not in name and "(" not in name
    return name if simple else ""


def _receiver(node: Node) -> str:
    text = (node.text or b"").decode("utf-8", "replace")
    return text.strip("()").split("[")[0].split()[-1].lstrip("*") if text.strip("() ") else ""


@lru_cache(maxsize=4)
def _parser(package: str, function: str) -> Any:
    from importlib import import_module

    from tree_sitter import Language, Parser

    return Parser(Language(getattr(import_module(package), function)()))
