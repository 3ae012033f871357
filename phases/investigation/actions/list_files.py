"""list_files: what the source tree holds, and what each file is for."""

from __future__ import annotations

from collections import Counter

from ledger.events import JsonObject
from phases.investigation.actions.base import (
    OFFSET,
    SIZE,
    Action,
    Page,
    Result,
    Tray,
    limit_schema,
    object_schema,
)
from phases.investigation.actions.scope import GLOB, ROLE, check_glob, scope_of
from phases.investigation.index import CodeIndex, index_of
from phases.investigation.patterns import glob_matches
from phases.investigation.snapshot import Snapshot, SourceFile


def run(snapshot: Snapshot, arguments: JsonObject) -> Result:
    index = index_of(snapshot)
    matching = [
        file for file in snapshot.files.values() if glob_matches(arguments["glob"], file.path)
    ]
    wanted = arguments["role"]
    files = index.ordered(
        [file for file in matching if wanted in ("any", index.roles[file.path].role)]
    )
    tray = Tray(arguments["characters"])
    offset, limit = arguments["offset"], arguments["limit"]
    for file in files[offset : offset + limit]:
        if not tray.add(_entry(index, file)):
            break
    counts = Counter(index.roles[file.path].role for file in matching)
    return Result(
        {"files": tray.items, "roles": dict(sorted(counts.items()))},
        found=bool(files),
        page=Page(offset, limit, len(tray.items), len(files)),
        cut_off=("characters", tray.limit) if tray.full else None,
        covered={"files": len(snapshot.files)},
        scope=scope_of(snapshot),
        filter={"glob": arguments["glob"], "role": wanted},
    )


def _entry(index: CodeIndex, file: SourceFile) -> JsonObject:
    role = index.roles[file.path]
    entry: JsonObject = {"path": file.path, "role": role.role, "size": file.size}
    if file.readable:
        entry["lines"] = file.lines
    else:
        entry["text"] = False
    if role.minified:
        entry["minified"] = True
    if role.origins:
        entry["copy_of"] = list(role.origins[:3])
        entry["copy_of_total"] = len(role.origins)
    if copies := index.copies.get(file.path):
        entry["copies"] = copies[:6]
    return entry


ACTION = Action(
    name="list_files",
    description=(
        "List the files of the source tree with size, number of lines and role (source, test, "
        "docs, config, built_copy, …), source first. Built and minified copies name what they "
        "were made of."
    ),
    arguments=object_schema(
        [], glob=GLOB, role=ROLE, offset=OFFSET, limit=limit_schema(200, 1000), characters=SIZE
    ),
    run=run,
    check=check_glob,
)
