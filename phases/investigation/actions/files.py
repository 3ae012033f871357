"""The file-level members that results on source text share."""

from __future__ import annotations

from ledger.events import JsonObject
from phases.investigation.actions.base import characters
from phases.investigation.index import index_of
from phases.investigation.snapshot import Document, Snapshot


def file_entry(snapshot: Snapshot, action: str, path: str) -> JsonObject:
    """Return `{path, provenance, metadata}` of a quoted file."""
    file = snapshot.files[path]
    index = index_of(snapshot)
    role = index.roles[path]
    metadata: JsonObject = {
        "role": role.role, "size": file.size, "lines": file.lines,
        "encoding": file.encoding,
    }  # fmt: skip
    if role.minified:
        metadata["minified"] = True
    if role.origins:
        metadata["copy_of"] = list(role.origins[:3])
    return {
        "path": path,
        "provenance": {
            "action": action, "path": path, "artifact": file.artifact, "digest": file.digest,
            "snapshot": snapshot.digest,
        },
        "metadata": metadata,
    }  # fmt: skip


def document_entry(snapshot: Snapshot, action: str, item: Document) -> JsonObject:
    """Return `{artifact, provenance, metadata}` of a quoted log, report or observation."""
    return {
        "artifact": item.artifact,
        "provenance": {
            "action": action, "artifact": item.artifact, "name": item.name, "digest": item.digest,
            "snapshot": snapshot.digest,
        },
        "metadata": {
            "kind": item.kind, "size": item.size, "lines": item.lines,
            "encoding": item.encoding,
        },
    }  # fmt: skip


def cost(entry: JsonObject) -> int:
    """Return what a file's members cost in characters."""
    return characters(entry) + 1
