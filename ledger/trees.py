"""Which payloads a ledger needs: those its events name, and the files of a source tree; and which
material it is about.

Form of a tree document: docs/format.md, "Tree document".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ledger import canonical
from ledger.errors import CanonicalError, LedgerDamaged
from ledger.events import ArtifactAdded, Event, Ref, references


def tree_files(document: bytes) -> list[dict[str, Any]]:
    """Return the `files` of a tree document.

    Raises:
        LedgerDamaged: if it is not a tree document of format 1.
    """
    try:
        value = canonical.from_bytes(document)
        form, files = value["format"], value["files"]
        if not canonical.same(form, 1):
            raise LedgerDamaged(f"a tree document has format {form!r}, expected 1")
        problem = next(filter(None, map(_entry_problem, files)), None) or _order_problem(files)
    except KeyError as error:
        raise LedgerDamaged(f"a tree document is malformed: it has no {error}") from None
    except (CanonicalError, TypeError) as error:
        raise LedgerDamaged(f"a tree document is malformed: {error}") from None
    if problem:
        raise LedgerDamaged(f"a tree document is malformed: {problem}")
    return files  # type: ignore[no-any-return]


def package_id(artifacts: Iterable[ArtifactAdded], trees: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the identity of material (docs/format.md, "Identities").

    Args:
        artifacts: the artefacts of revision 1, in any order.
        trees: the tree document of each source, by its digest.
    """
    rows: list[list[str | int]] = []
    for artifact in artifacts:
        if artifact.tree is not None:
            for file in trees[artifact.tree.digest]["files"]:
                rows.append(["source", file["path"], file["size"], file["digest"]])
        elif artifact.content is not None:
            content = artifact.content
            rows.append([artifact.kind, artifact.name, content.size, content.digest])
    return canonical.digest(canonical.to_bytes(sorted(rows)))


def is_safe_path(path: str) -> bool:
    """Tell whether a path is relative, leads nowhere but down, and is valid Unicode."""
    if "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
        return False
    return not any("\ud800" <= character <= "\udfff" for character in path)


def needed_payloads(event: Event, payload: Callable[[str], bytes]) -> Iterator[Ref]:
    """Yield every payload that must be stored for an event, in the order packages list them."""
    yield from references(event)
    if not isinstance(event, ArtifactAdded):
        return
    if not is_safe_path(f"{event.artifact}/{event.name}"):
        raise LedgerDamaged(f"{event.artifact[:80]!r} has the name {event.name[:80]!r}, not a path")
    if event.tree is not None:
        for entry in tree_files(payload(event.tree.digest)):
            if entry["stored"]:
                yield Ref(digest=entry["digest"], size=entry["size"])


def _entry_problem(entry: Any) -> str | None:
    path, digest, size, stored = (entry[key] for key in ("path", "digest", "size", "stored"))
    if type(path) is not str or not is_safe_path(path):
        return f"{str(path)[:80]!r} is not a relative path"
    if type(digest) is not str or type(size) is not int or size < 0 or type(stored) is not bool:
        return f"{path[:80]!r}: digest, size or stored is not what it can be"
    return None


def _order_problem(files: list[dict[str, Any]]) -> str | None:
    paths = [entry["path"] for entry in files]
    if paths != sorted(set(paths)):
        return "its paths are not sorted, each once"
    every = set(paths)
    for path in paths:
        if any(path[:at] in every for at, character in enumerate(path) if character == "/"):
            return f"{path[:80]!r} lies below a file"
    return None
