"""find_symbol: where a name is defined."""

from __future__ import annotations

from ledger.events import JsonObject
from phases.investigation.actions.base import (
    OFFSET,
    SIZE,
    Action,
    Page,
    Result,
    Tray,
    choice_schema,
    limit_schema,
    number_schema,
    object_schema,
    text_schema,
)
from phases.investigation.actions.files import cost, file_entry
from phases.investigation.actions.quote import Quoter
from phases.investigation.actions.scope import GLOB, ROLE, check_glob, files_in_scope, scope_of
from phases.investigation.index import Symbol, index_of
from phases.investigation.index.symbols import read_by
from phases.investigation.snapshot import Snapshot

KINDS = ("any", "class", "function", "method", "variable", "type", "interface", "enum", "namespace",
         "module", "trait", "property", "definition")  # fmt: skip


def definitions(snapshot: Snapshot, arguments: JsonObject) -> tuple[list[tuple[str, Symbol]], int]:
    """Return (path, symbol) of each definition that fits, and the number of files looked at."""
    index = index_of(snapshot)
    wanted = arguments["name"]
    last = wanted.replace("::", ".").rpartition(".")[2]
    files = files_in_scope(snapshot, arguments)
    found = [
        (file.path, symbol)
        for file in files
        if last in index.text(file.path).text
        for symbol in index.symbols(file.path)
        if fits(symbol, wanted.replace("::", "."), arguments["kind"])
    ]
    return found, len(files)


def fits(symbol: Symbol, wanted: str, kind: str) -> bool:
    """Tell whether a symbol has this name, or a qualified name that ends with it."""
    named = symbol.name == wanted or f".{symbol.qualified}".endswith(f".{wanted}")
    return named and kind in ("any", symbol.kind)


def run(snapshot: Snapshot, arguments: JsonObject) -> Result:
    found, files = definitions(snapshot, arguments)
    index, tray = index_of(snapshot), Tray(arguments["characters"])
    quoter = Quoter(tray)
    shown: list[JsonObject] = []
    offset, limit = arguments["offset"], arguments["limit"]
    for path, symbol in found[offset : offset + limit]:
        entry = {
            "path": path, "name": symbol.name, "qualified": symbol.qualified, "kind": symbol.kind,
            "first": symbol.first, "last": symbol.last,
        }  # fmt: skip
        lines = range(symbol.first, min(symbol.last, symbol.first + arguments["lines"] - 1) + 1)
        price = cost(_entry(snapshot, path)) + cost(entry)
        fitting = [n for n in lines if quoter.add(path, index.text(path), n, n, {}, price)]
        if not fitting:
            break
        shown.append(entry)
    return Result(
        {
            "files": [_entry(snapshot, path) for path in quoter.names],
            "symbols": shown,
            "blocks": quoter.blocks(),
        },
        found=bool(found),
        page=Page(offset, limit, len(shown), len(found)),
        cut_off=("characters", tray.limit) if tray.full else None,
        covered={"files": files},
        scope=scope_of(snapshot),
        filter={"glob": arguments["glob"], "role": arguments["role"], "kind": arguments["kind"]},
        query={"name": arguments["name"]},
    )


def _entry(snapshot: Snapshot, path: str) -> JsonObject:
    """Return a file's members, and how its definitions were found."""
    entry = file_entry(snapshot, "find_symbol", path)
    entry["metadata"]["definitions_by"] = read_by(path, index_of(snapshot).text(path))
    return entry


ACTION = Action(
    name="find_symbol",
    description=(
        "Find where a function, class, method, type or module-level name is defined, with its "
        "first and last line and the lines it starts with. The name may be qualified: "
        "`Class.method`, `outer.inner`. Minified files have no symbols."
    ),
    arguments=object_schema(
        ["name"],
        name=text_schema("Name, or the end of a qualified name.", 300),
        kind=choice_schema("Only definitions of this kind.", KINDS, "any"),
        glob=GLOB,
        role=ROLE,
        lines=number_schema("Lines shown of each definition.", 1, 200, 12),
        offset=OFFSET,
        limit=limit_schema(20, 100),
        characters=SIZE,
    ),
    run=run,
    check=check_glob,
)
