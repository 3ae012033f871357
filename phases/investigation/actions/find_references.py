"""find_references: where a name is used, and in which definition."""

from __future__ import annotations

import re

from ledger.events import JsonObject
from phases.investigation.actions.base import (
    OFFSET,
    SIZE,
    Action,
    Result,
    limit_schema,
    number_schema,
    object_schema,
    text_schema,
)
from phases.investigation.actions.scope import GLOB, ROLE, check_glob, files_in_scope
from phases.investigation.actions.search_code import compile_pattern, search, show
from phases.investigation.index import CodeIndex, index_of
from phases.investigation.snapshot import Snapshot

_IMPORT = re.compile(
    r"\s*(import|from|export|require|use|using|include|#include|const .{0,80}require\()\b"
)


def run(snapshot: Snapshot, arguments: JsonObject) -> Result:
    name = arguments["name"]
    last = name.replace("::", ".").rpartition(".")[2]
    found = search(
        snapshot, files_in_scope(snapshot, arguments), compile_pattern(last, "identifier", False)
    )
    result = show(snapshot, "find_references", found, arguments, {"name": name, "identifier": last})
    index = index_of(snapshot)
    for hit in result.result["hits"]:
        hit.update(_describe(index, hit["path"], hit["line"], last))
    return result


def _describe(index: CodeIndex, path: str, line: int, name: str) -> JsonObject:
    """Return how a line uses a name: `use` and the qualified name of the definition around it."""
    text = index.text(path).lines[line - 1]
    symbols = [s for s in index.symbols(path) if s.name == name and s.first <= line <= s.last]
    defined = any(line == s.first or (line < s.first + 10 and _heads(text, name)) for s in symbols)
    at = text.find(name) + len(name)
    use = "mention"
    if defined:
        use = "definition"
    elif _IMPORT.match(text[:200]):
        use = "import"
    elif text[at : at + 40].lstrip().startswith("("):
        use = "call"
    around = index.enclosing(path, line)
    return {"use": use, "in": around.qualified if around else ""}


def _heads(text: str, name: str) -> bool:
    head = text[: text.find(name)].split()
    return bool(head) and head[-1].rstrip("*") in (
        "def",
        "class",
        "function",
        "func",
        "fn",
        "interface",
    )


ACTION = Action(
    name="find_references",
    description=(
        "Find where a name is used in the source tree: definitions, imports, calls and other "
        "mentions, each with the definition it stands in. Names are compared as text: two "
        "things of the same name are not told apart. Of a qualified name the last part is "
        "looked for."
    ),
    arguments=object_schema(
        ["name"],
        name=text_schema("Identifier.", 300),
        glob=GLOB,
        role=ROLE,
        context=number_schema("Lines before and after a hit.", 0, 10, 0),
        offset=OFFSET,
        limit=limit_schema(50, 200),
        characters=SIZE,
    ),
    run=run,
    check=check_glob,
)
