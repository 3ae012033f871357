"""Which files, documents and databases an action's arguments mean; nothing outside the snapshot."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ledger.events import JsonObject
from phases.investigation.actions.base import Refused, Trouble, choice_schema, text_schema
from phases.investigation.actions.schema import shown
from phases.investigation.index import index_of
from phases.investigation.index.paths import name as last_part
from phases.investigation.index.paths import suffix_match
from phases.investigation.index.roles import ROLES
from phases.investigation.patterns import PatternRefused, glob, glob_matches
from phases.investigation.snapshot import Document, Snapshot, SourceFile

PATH = text_schema("Path of a file of the source tree, exactly as list_files shows it.", 1000)
GLOB = text_schema(
    "Only paths that match: `*` within a folder, `**` across folders; without `/`, file names.",
    300, 0, default="",
)  # fmt: skip
ROLE = choice_schema("Only files of this role (any: all of them).", ("any", *ROLES), "any")
TEXTUAL = ("log", "report", "observation")


def files_in_scope(snapshot: Snapshot, arguments: JsonObject) -> list[SourceFile]:
    """Return the readable files that glob and role let through, in reading order."""
    index = index_of(snapshot)
    wanted = arguments["role"]
    return index.ordered(
        [
            file
            for file in snapshot.readable_files
            if wanted in ("any", index.roles[file.path].role)
            and glob_matches(arguments["glob"], file.path)
        ]
    )


def scope_of(snapshot: Snapshot) -> JsonObject:
    """Describe the whole that a search of the source looks at."""
    readable = len(snapshot.readable_files)
    return {"source_files": len(snapshot.files), "with_text": readable}


def check_glob(snapshot: Snapshot, arguments: JsonObject) -> list[Trouble]:
    """Refuse a glob that cannot be read."""
    try:
        glob(arguments["glob"])
    except PatternRefused as error:
        return [Trouble("arguments", "glob", str(error), "$.glob")]
    return []


def check_path(snapshot: Snapshot, arguments: JsonObject) -> list[Trouble]:
    """Refuse a path that the snapshot does not hold, or whose text it does not hold."""
    path = arguments["path"]
    file = snapshot.files.get(path)
    if file is None:
        return [Trouble("outside_snapshot", "no_such_path", _unknown(snapshot, path), "$.path")]
    if not file.readable:
        why = "is catalogued only" if not file.stored else "is binary"
        return [Trouble("arguments", "no_text", f"{shown(path, 200)} {why}", "$.path")]
    return []


def _unknown(snapshot: Snapshot, path: str) -> str:
    near = suffix_match(snapshot.files, path)
    hint = f"; the tree has {near}" if near else "; list_files shows what there is"
    return f"the snapshot has no file {shown(path, 200)!r}{hint}"


def find_document(snapshot: Snapshot, wanted: str, kinds: tuple[str, ...]) -> Document | Trouble:
    """Return the document meant by an ID, a name or the last part of a name; "" if there is one
    only.
    """
    all_ = snapshot.of_kind(*kinds)
    what = " or ".join(kinds)
    if not wanted:  # the only log, even if there are a report and observations too
        found = next(filter(None, (snapshot.of_kind(kind) for kind in kinds)), [])
    else:
        found = (
            [item for item in all_ if item.artifact == wanted]
            or [item for item in all_ if item.name == wanted]
            or [item for item in all_ if last_part(item.name) == wanted]
        )
    if len(found) == 1:
        return found[0]
    names = _names(found or all_)
    if not all_:
        text, kind = f"the snapshot has no {what}", "outside_snapshot"
    elif found:
        text, kind = f"several are meant, name one: {names}", "arguments"
    else:
        text, kind = (
            f"no {what} is called {shown(wanted, 100)!r}; there are: {names}",
            "outside_snapshot",
        )
    return Trouble(kind, "no_such_artifact" if kind != "arguments" else "ambiguous", text, "")


def document_check(argument: str, *kinds: str) -> Any:
    """Return a checker for an argument that must mean exactly one document of these kinds."""

    def check(snapshot: Snapshot, arguments: JsonObject) -> list[Trouble]:
        found = find_document(snapshot, arguments[argument], kinds)
        return [found._replace(path=f"$.{argument}")] if isinstance(found, Trouble) else []

    return check


def document_of(snapshot: Snapshot, wanted: str, kinds: tuple[str, ...]) -> Document:
    """Return the document that a checked argument means."""
    found = find_document(snapshot, wanted, kinds)
    if isinstance(found, Trouble):
        raise Refused(*found)
    return found


def _names(items: Iterable[Document]) -> str:
    names = [f"{item.artifact} ({shown(item.name, 80)})" for item in items]
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
