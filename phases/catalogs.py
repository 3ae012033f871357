"""Catalogs: bounded lists of what a revision's intake holds, metadata and never evidence.

Fixed for the revision: reading a source does not shrink them. They are taken from the revision's
first context where there is one, so that a later release cannot change them under way.
"""

from __future__ import annotations

from typing import Any

from ledger import canonical
from ledger.reader import CaseReader
from phases.investigation.actions.base import Refused
from phases.investigation.actions.tables import Reader
from phases.investigation.index import index_of
from phases.investigation.snapshot import Snapshot
from projections.state import State

FILES = 400
TABLES = 60
ROLES = ("source", "config", "types", "built_copy", "test", "example", "docs", "data")
"""Roles in the order in which a bounded list keeps them; all others come after."""

WITHHELD = {"withheld": True}
"""Stands for a catalog that a context for a remote provider had to leave out."""

Json = dict[str, Any]


def catalogs(state: State, reader: CaseReader, snapshot: Snapshot) -> Json:
    """Return the catalogs of the current revision."""
    for context in state.contexts.values():
        if context.revision == state.revision:
            found = canonical.from_bytes(reader.payload(context.content.digest)).get("catalogs")
            if isinstance(found, dict) and "files" in found and WITHHELD not in found.values():
                return found
    return build(snapshot)


def build(snapshot: Snapshot) -> Json:
    """Return the catalogs of a snapshot."""
    return {
        "note": "metadata about what can be asked for; not evidence",
        "files": _files(snapshot),
        "databases": [
            _database(snapshot, item.artifact, item.name)
            for item in snapshot.documents.values()
            if item.kind == "database"
        ],
        "logs": [
            {"artifact": item.artifact, "name": item.name, "lines": item.lines}
            for item in snapshot.documents.values()
            if item.kind == "log"
        ],
    }


def _files(snapshot: Snapshot) -> Json:
    index = index_of(snapshot)
    rank = {role: number for number, role in enumerate(ROLES)}
    ordered = sorted(
        snapshot.files.values(),
        key=lambda file: (rank.get(index.roles[file.path].role, len(ROLES)), file.path),
    )
    items = [
        {"path": f.path, "role": index.roles[f.path].role, "lines": f.lines, "size": f.size}
        for f in ordered[:FILES]
    ]
    total = len(ordered)
    return {"bound": FILES, "total": total, "cut_off": total > FILES, "items": items}


def _database(snapshot: Snapshot, artifact: str, name: str) -> Json:
    try:
        reader = Reader(snapshot, artifact)
        tables = reader.tables()
        items = [_table(reader, table.name) for table in tables[:TABLES]]
    except Refused as error:
        return {"artifact": artifact, "name": name, "unreadable": str(error)}
    cut_off = len(tables) > TABLES
    return {
        "artifact": artifact,
        "name": name,
        "bound": TABLES,
        "total": len(tables),
        "cut_off": cut_off,
        "tables": items,
    }


def _table(reader: Reader, name: str) -> Json:
    return {
        "name": name,
        "rows": reader.count(name),
        "columns": [
            {"name": column.name, "type": column.declared, "key": column.key > 0}
            for column in reader.columns(name)
        ],
        "references": [
            {"columns": item["columns"], "table": item["table"], "to": item["targets"]}
            for item in reader.foreign_keys(name)
        ],
    }
