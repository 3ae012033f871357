"""Definitions in JavaScript and TypeScript, from tree-sitter's syntax trees.

Names come the way people write them in these languages: declarations, methods, class fields and
object members that hold functions, `proto.handle = function handle`, named function expressions
anywhere (`return new Promise(function run() {…})`) and `export default`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from phases.investigation.index.symbols import Symbol, qualify
from phases.investigation.lines import Text

if TYPE_CHECKING:
    from tree_sitter import Node

GRAMMARS = {
    "js": "javascript", "jsx": "javascript", "cjs": "javascript", "mjs": "javascript",
    "ts": "typescript", "mts": "typescript", "cts": "typescript", "tsx": "tsx",
}  # fmt: skip

_DECLARATIONS = {
    "function_declaration": "function", "generator_function_declaration": "function",
    "function_signature": "function", "class_declaration": "class",
    "abstract_class_declaration": "class", "method_definition": "method",
    "method_signature": "method", "abstract_method_signature": "method",
    "interface_declaration": "interface", "type_alias_declaration": "type",
    "enum_declaration": "enum", "internal_module": "namespace", "module": "namespace",
}  # fmt: skip
_EXPRESSIONS = {
    "function_expression": "function", "generator_function": "function",
    "arrow_function": "function", "class": "class", "function": "function",
}  # fmt: skip
_HOLDERS = {
    "variable_declarator": ("name", "value"),
    "assignment_expression": ("left", "right"),
    "pair": ("key", "value"),
    "field_definition": ("property", "value"),
    "public_field_definition": ("name", "value"),
}
_MOST_NODES = 3_000_000


@lru_cache(maxsize=4)
def _parser(grammar: str) -> Any:
    from tree_sitter import Language, Parser

    if grammar == "javascript":
        import tree_sitter_javascript

        return Parser(Language(tree_sitter_javascript.language()))
    import tree_sitter_typescript

    pick = {
        "typescript": tree_sitter_typescript.language_typescript,
        "tsx": tree_sitter_typescript.language_tsx,
    }
    return Parser(Language(pick[grammar]()))


def symbols(extension: str, text: Text) -> list[Symbol]:
    """Return the definitions in a script."""
    tree = _parser(GRAMMARS[extension]).parse(text.data)
    found: list[Symbol] = []
    stack: list[tuple[Node, str, str]] = [(tree.root_node, "", "")]  # node, around, name given
    seen = 0
    while stack and seen < _MOST_NODES:
        node, around, given = stack.pop()
        seen += 1
        symbol = _symbol(node, around, given)
        if symbol is not None:
            found.append(symbol)
            around = symbol.qualified
        stack.extend(_children(node, around, given if symbol is None else ""))
    return found


def _children(node: Node, around: str, given: str) -> list[tuple[Node, str, str]]:
    """Return a node's named children, each with the name that the node gives it."""
    names: dict[int, str] = {}
    if node.type in _HOLDERS:
        name, value = (node.child_by_field_name(field) for field in _HOLDERS[node.type])
        if name is not None and value is not None:
            names[value.id] = _dotted(name)
            around, names = _around_object(value, around, names)
    elif node.type == "export_statement":
        value = node.child_by_field_name("value")
        if value is not None:
            names[value.id] = "default"
    elif node.type in ("parenthesized_expression", "call_expression") and given:
        return [(child, around, "") for child in node.named_children]
    return [(child, around, names.get(child.id, "")) for child in node.named_children]


def _around_object(value: Node, around: str, names: dict[int, str]) -> tuple[str, dict[int, str]]:
    """Members of `const api = {…}` are `api.member`; those of `module.exports = {…}` are plain."""
    if value.type != "object":
        return around, names
    name = _plain(names.pop(value.id))
    if name:
        around = qualify(around, name)
    return around, names


def _symbol(node: Node, around: str, given: str) -> Symbol | None:
    kind = _DECLARATIONS.get(node.type) or _EXPRESSIONS.get(node.type)
    if kind is None or not node.is_named:
        return None
    own = node.child_by_field_name("name")
    name = _plain(given) if given and given != "default" else ""
    if not name and own is not None:
        name = _plain(_dotted(own))
    name = name or given
    if not name:
        return None
    qualified = qualify(around, name)
    first, last = node.start_point[0] + 1, node.end_point[0] + 1
    return Symbol(name.rpartition(".")[2], qualified, kind, first, last)


def _dotted(node: Node) -> str:
    """Return a name or a member path as `a.b.c`; "" for anything that is computed."""
    text = (node.text or b"").decode("utf-8", "replace")
    if node.type in ("member_expression", "nested_identifier"):
        return text if len(text) <= 200 and "(" not in text and "\n" not in text else ""
    if node.type == "string":
        return text[1:-1]
    simple = node.type.endswith("identifier") or node.type in ("this", "super", "number")
    return text if simple and len(text) <= 200 else ""


def _plain(name: str) -> str:
    """Return a name without what says nothing: `exports.`, `module.exports`, `this.`,
    `.prototype`.
    """
    parts = [part.strip("#?") for part in name.split(".")]
    dropped = ("module", "exports", "prototype", "this")
    kept = [part for part in parts if part and part not in dropped]
    return ".".join(kept)
