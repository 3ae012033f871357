"""Which payloads a ledger needs: those its events name, and the files of a source tree.

Form of a tree document: docs/format.md, "Tree document".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
        if value["format"] != 1:
            raise LedgerDamaged(f"a tree document has format {value['format']!r}, expected 1")
        files: list[dict[str, Any]] = value["files"]
        for entry in files:
            _ = entry["path"], entry["digest"], entry["size"], entry["stored"]
    except (CanonicalError, KeyError, TypeError) as error:
        raise LedgerDamaged(f"a tree document is malformed: {error}") from None
    return files


def needed_payloads(event: Event, payload: Callable[[str], bytes]) -> Iterator[Ref]:
    """Yield every payload that must be stored for an event, in the order packages list them."""
    yield from references(event)
    if isinstance(event, ArtifactAdded) and event.tree is not None:
        for entry in tree_files(payload(event.tree.digest)):
            if entry["stored"]:
                yield Ref(digest=entry["digest"], size=entry["size"])
