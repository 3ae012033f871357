"""What the actions look at: the artefacts of a case as they stood at a position, unchangeable.

Text is decoded when it is asked for. A database is written to a private temporary file (mode 0600)
at its first query and read there by a guarded child process (database.py); both end with the
snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType, TracebackType
from typing import Any, Self

from ledger.canonical import digest, from_bytes, to_bytes
from ledger.events import ArtifactAdded
from ledger.reader import CaseReader
from phases.investigation.database import Database
from phases.investigation.lines import Text, decode


@dataclass(frozen=True)
class SourceFile:
    """A file of the source tree. `stored` is false for one that is catalogued only."""

    path: str
    artifact: str
    size: int
    digest: str
    media: str = "text"
    encoding: str = ""
    lines: int = 0
    stored: bool = True

    @property
    def readable(self) -> bool:
        """Whether the snapshot holds this file's text."""
        return self.stored and self.media == "text"


@dataclass(frozen=True)
class Document:
    """A report, log or observation, or a database (`kind` as in `artifact.added/1`)."""

    artifact: str
    kind: str
    name: str
    size: int
    digest: str
    media: str = "text"
    encoding: str = ""
    lines: int = 0


class Snapshot:
    """The artefacts of a case. Use it as a context manager, or call `close`."""

    def __init__(
        self,
        reader: CaseReader,
        files: Mapping[str, SourceFile],
        documents: Mapping[str, Document],
        identity: str,
    ) -> None:
        self._reader = reader
        self.files: Mapping[str, SourceFile] = MappingProxyType(dict(sorted(files.items())))
        self.documents: Mapping[str, Document] = MappingProxyType(dict(documents))
        self.digest = identity
        self._texts: dict[str, Text] = {}
        self._databases: dict[str, Database] = {}

    @classmethod
    def of(cls, reader: CaseReader, upto: int | None = None) -> Snapshot:
        """Return the snapshot of the case at position `upto` (None: at its head).

        Raises:
            PayloadDamaged: if a tree document is missing or altered.
        """
        files: dict[str, SourceFile] = {}
        documents: dict[str, Document] = {}
        identity: list[list[Any]] = []
        for _, event in reader.events(upto):
            if isinstance(event, ArtifactAdded):
                ref = event.tree or event.content
                identity.append(
                    [event.artifact, event.kind, event.name, event.encoding, ref and ref.digest]
                )
                if event.kind == "source":
                    _take_source(reader, event, files)
                elif ref is not None:
                    documents[event.artifact] = _document(event)
        return cls(reader, files, documents, digest(to_bytes(identity)))

    def of_kind(self, *kinds: str) -> list[Document]:
        """Return the documents of these kinds, in order of intake."""
        return [item for item in self.documents.values() if item.kind in kinds]

    @cached_property
    def readable_files(self) -> list[SourceFile]:
        """The source files whose text the snapshot holds, sorted by path."""
        return [file for file in self.files.values() if file.readable]

    def text(self, item: SourceFile | Document) -> Text:
        """Return the text of a file or document of this snapshot, decoded once."""
        key = item.digest + " " + item.encoding
        if key not in self._texts:
            self._texts[key] = decode(self._reader.payload(item.digest), item.encoding)
        return self._texts[key]

    def database(self, artifact: str) -> Database:
        """Return the guarded reader of a database of this snapshot."""
        if artifact not in self._databases:
            content = self.documents[artifact].digest
            self._databases[artifact] = Database(lambda: self._reader.payload(content))
        return self._databases[artifact]

    def close(self) -> None:
        """End the database readers and delete their files; the snapshot may be used again."""
        for database in self._databases.values():
            database.close()
        self._databases.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _document(event: ArtifactAdded) -> Document:
    assert event.content is not None
    return Document(
        event.artifact, event.kind, event.name, event.content.size, event.content.digest,
        event.media, event.encoding, event.lines,
    )  # fmt: skip


def _take_source(reader: CaseReader, event: ArtifactAdded, files: dict[str, SourceFile]) -> None:
    """Add a tree, or a source given as one file.

    The paths of a second tree start with its artefact ID, so that an amendment renames nothing.
    """
    prefix = f"{event.artifact}/" if files else ""
    if event.tree is None:
        assert event.content is not None
        entry: dict[str, Any] = {
            "path": event.name, "size": event.content.size, "digest": event.content.digest,
            "media": event.media, "encoding": event.encoding, "lines": event.lines, "stored": True,
        }  # fmt: skip
        entries: list[dict[str, Any]] = [entry]
    else:
        entries = from_bytes(reader.payload(event.tree.digest))["files"]
    for item in entries:
        path = prefix + item["path"]
        files[path] = SourceFile(
            path, event.artifact, item["size"], item["digest"], item["media"],
            item.get("encoding", ""), item.get("lines", 0), item["stored"],
        )  # fmt: skip
