"""Builds the tree document of a source snapshot while its files go by, once, in bounded memory.

Stored contents wait in an anonymous temporary file until the caller asks for them, secrets already
replaced: each file is read exactly once, so digest and bytes cannot disagree.
"""

from __future__ import annotations

import codecs
import hashlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, NamedTuple

from ledger import canonical
from phases.intake import secrets, text
from phases.intake.errors import IntakeError
from phases.intake.limits import (
    MAX_FILES,
    MAX_STORED_FILE,
    MAX_STORED_TOTAL,
    MAX_TREE,
    MIB,
)
from phases.intake.members import Member, Skipped

FORMAT = 1
_IN_MEMORY = 32 * MIB
Document = dict[str, Any]


class Replaced(NamedTuple):
    """Secrets replaced in one file of the tree."""

    path: str
    hits: tuple[secrets.Hit, ...]


class Spool:
    """Contents by digest, each once, in a temporary file without a name."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed by the owner
        self._where: dict[str, tuple[int, int]] = {}
        self.size = 0

    def put(self, data: bytes) -> str:
        """Keep contents; return their digest."""
        digest = canonical.digest(data)
        if digest not in self._where:
            self._file.seek(self.size)
            self._file.write(data)
            self._where[digest] = (self.size, len(data))
            self.size += len(data)
        return digest

    def get(self, digest: str) -> bytes:
        """Return what was kept under a digest."""
        start, size = self._where[digest]
        self._file.seek(start)
        return self._file.read(size)

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._file.close()


class TreeBuilder:
    """Takes members one by one; `files`, `skipped` and `replaced` are what came of them."""

    def __init__(
        self, spool: Spool, *, keep_secrets: bool, tell: Callable[[int], None] = lambda done: None
    ) -> None:
        self._spool, self._keep_secrets, self._tell = spool, keep_secrets, tell
        self._read = 0
        self.files: list[Document] = []
        self.skipped: list[Skipped] = []
        self.replaced: list[Replaced] = []

    def take(self, members: Iterator[Member | Skipped]) -> None:
        """Take all members.

        Raises:
            IntakeError: for a source beyond the limits on files and bytes.
        """
        for member in members:
            if isinstance(member, Skipped):
                self.skipped.append(member)
            else:
                self._member(member)
            if len(self.files) + len(self.skipped) > MAX_FILES:
                raise _too_much(f"more than {MAX_FILES:,} files")
        for entries in (self.files, self.skipped, self.replaced):
            entries.sort(key=_path_of)

    def document(self) -> Document:
        """Return the tree document (docs/format.md, "Tree document")."""
        skipped = [{"path": path, "reason": reason} for path, reason in self.skipped]
        return {"format": FORMAT, "files": self.files, "skipped": skipped}

    def counts(self) -> Document:
        """Return the numbers to show: files, bytes, catalogued and skipped by reason."""
        catalogued = Counter(kind for file in self.files if (kind := catalogued_as(file)))
        skipped = Counter(reason for _, reason in self.skipped)
        return {
            "files": len(self.files),
            "bytes": sum(file["size"] for file in self.files),
            "stored_files": sum(file["stored"] for file in self.files),
            "stored_bytes": sum(file["size"] for file in self.files if file["stored"]),
            "catalogued": dict(sorted(catalogued.items())),
            "skipped": dict(sorted(skipped.items())),
        }

    def contents(self) -> Iterator[bytes]:
        """Yield the contents of the stored files, each once, in the order of the files."""
        given: set[str] = set()
        for file in self.files:
            if file["stored"] and file["digest"] not in given:
                given.add(file["digest"])
                yield self._spool.get(file["digest"])

    def _member(self, member: Member) -> None:
        head: list[bytes] = []
        size = 0
        try:
            for data in member.chunks:
                head.append(data)
                size += len(data)
                self._count(len(data))
                if size > MAX_STORED_FILE:
                    self.files.append(self._huge(member, b"".join(head)))
                    break
            else:
                self.files.append(self._small(member.path, b"".join(head)))
        except OSError:  # a folder's file that cannot be read to its end
            self.skipped.append(Skipped(member.path, "unreadable"))
        self._tell(len(self.files))

    def _small(self, path: str, data: bytes) -> Document:
        encoding = text.source_encoding(data)
        if encoding is None:
            return _entry(path, len(data), canonical.digest(data), stored=False)
        if not self._keep_secrets:
            cleaned = secrets.in_encoding(data, encoding, secrets.mask)
            data = cleaned.data
            if cleaned.hits:
                self.replaced.append(Replaced(path, cleaned.hits))
        lines = text.count_lines(data, encoding)
        digest = self._spool.put(data)
        if self._spool.size > MAX_STORED_TOTAL:
            raise _too_much(f"more than {MAX_STORED_TOTAL:,} bytes of text")
        return _entry(path, len(data), digest, encoding, lines, stored=True)

    def _huge(self, member: Member, head: bytes) -> Document:
        """Catalogue a file of which only pieces are ever in memory."""
        profile = _Profile()
        profile.add(head)
        for data in member.chunks:
            self._count(len(data))
            profile.add(data)
        return profile.entry(member.path)

    def _count(self, size: int) -> None:
        self._read += size
        if self._read > MAX_TREE:
            raise _too_much(f"more than {MAX_TREE:,} bytes")
        self._tell(len(self.files))


class _Profile:
    """What can be told of a file from its pieces: digest, text or not, lines."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._size = self._breaks = 0
        self._encoding = "utf-8"
        self._last = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def add(self, data: bytes) -> None:
        if not self._size and data.startswith(codecs.BOM_UTF8):
            self._encoding = "utf-8-sig"
        self._hash.update(data)
        self._size += len(data)
        self._breaks -= self._last == b"\r" and data.startswith(b"\n")  # one end, cut in two
        self._last = data[-1:] or self._last
        if self._encoding and b"\0" in data:
            self._encoding = ""  # binary
        if not self._encoding:
            return
        self._breaks += text.count_ends(data)
        self._decode(data)

    def entry(self, path: str) -> Document:
        self._decode(b"", final=True)
        digest = f"sha256:{self._hash.hexdigest()}"
        lines = self._breaks + (self._last not in b"\r\n")
        return _entry(path, self._size, digest, self._encoding or None, lines, stored=False)

    def _decode(self, data: bytes, *, final: bool = False) -> None:
        if self._encoding.startswith("utf-8"):
            try:
                self._decoder.decode(data, final)
            except UnicodeDecodeError:
                self._encoding = "latin-1"


def catalogued_as(file: Document) -> str:
    """Return why a file of a tree document is not stored: `binary`, `huge` or `` (it is stored)."""
    if file["stored"]:
        return ""
    return "huge" if file["size"] > MAX_STORED_FILE else "binary"


def _entry(
    path: str, size: int, digest: str, encoding: str | None = None, lines: int = 0, *, stored: bool
) -> Document:
    entry: Document = {"path": path, "size": size, "digest": digest}
    if encoding is None:
        return entry | {"media": "binary", "stored": stored}
    return entry | {"media": "text", "encoding": encoding, "lines": lines, "stored": stored}


def _path_of(entry: Document | Skipped | Replaced) -> str:
    path: str = entry["path"] if isinstance(entry, dict) else entry.path
    return path


def _too_much(what: str) -> IntakeError:
    return IntakeError(f"source: {what}; leave something out with --exclude")
