"""Writing a package: one case as one zip, the same input as the same bytes.

Form: docs/format.md, "The package".
"""

from __future__ import annotations

import base64
import hashlib
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from ledger import canonical
from ledger.archive import BLOCK, FIXED, FOLDERS, FORMAT, MANIFEST, is_bomb
from ledger.errors import PayloadWithheld
from ledger.events import ArtifactAdded, Event, Ref
from ledger.files import new_file
from ledger.reader import RecordReader, Row, SharedReader, Withheld
from ledger.redacted import known_event, record_identity
from ledger.trees import needed_payloads, tree_files

SPOOL = 16 * 2**20
"""Bytes of a member kept in memory before it goes to a temporary file."""

_DATE = (1980, 1, 1, 0, 0, 0)
# Part of format 1: a package is checked against the one that its own events give, this included.
_README = """\
A case of caseledger: everything a bug analysis saw, sent, received and decided, in order.

Every file here can be read with stock tools:

  manifest.json     what is inside, with size and SHA-256 of each member, and the head of the chain
  events.jsonl      one event a line, in order; "state" is a string that holds JSON
  documents.jsonl   payloads by digest: each is its chunks joined, or a file under intake/
  chunks.jsonl      the chunks
  intake/           report, logs, source files and databases as they were taken in
  prompts/          prompt files and output schemas that the requests used
  derived/          rendered requests and reports, if they were asked for

The exact form, with the formula of the chain, is docs/format.md of the project.
Replay it with:  caseledger import FILE.zip
"""


def write(
    book: RecordReader,
    path: Path,
    *,
    extra: Mapping[str, bytes] | None = None,
    overwrite: bool = False,
) -> str:
    """Write a package of a case; return its identity, the digest of the manifest.

    Args:
        book: an open case, or a record with parts left out (`ledger.redacted`).
        path: where the package goes.
        extra: further members by name, under `prompts/` or `derived/`.
        overwrite: replace a file that stands there.

    Raises:
        CaseExists, StorageError: nothing was written.
        LedgerDamaged: the case is damaged; export what `verify` accepts.
    """
    with new_file(path, overwrite=overwrite) as file, ExitStack() as spool:
        plan = _Plan(book, spool, [_member_of(*item) for item in (extra or {}).items()])
        manifest = plan.manifest()
        with zipfile.ZipFile(file, "w") as archive:
            _add(archive, _member_of(MANIFEST, manifest))
            for member in plan.members():
                _add(archive, member)
    return canonical.digest(manifest)


def rebuilt_manifest(reader: RecordReader, extra: Iterable[Member]) -> bytes:
    """Return the manifest that a package of this record must have, byte for byte."""
    with ExitStack() as spool:
        return _Plan(reader, spool, extra).manifest()


class Member(NamedTuple):
    """One file of a package."""

    name: str
    size: int
    sha256: str
    blocks: Callable[[], Iterable[bytes]] = tuple


class _Plan:
    """All members of a package: what each holds, its size and its digest."""

    def __init__(self, book: RecordReader, spool: ExitStack, extra: Iterable[Member]) -> None:
        shared = book if isinstance(book, SharedReader) else None
        self._book = book
        self._withheld = (shared.withheld if shared else Withheld()).payloads
        self._extra = sorted(extra, key=_extra_order)
        self._intake: dict[str, tuple[str, int]] = {}  # member name: digest, size
        self._homes: dict[str, str] = {}  # digest: member that holds it
        self._chunks: dict[int, int] = {}  # chunk ID in the store: number in the package
        self._seen: set[str] = set()
        self._identity = record_identity(book.rows(), shared.stated if shared else None)
        self._find_intake()
        self._fixed = {name: _Sink(spool) for name in FIXED}
        self._fixed["README.txt"].write(_README.encode())
        self._write_record()

    def manifest(self) -> bytes:
        head = self._book.head
        value = {
            "format": FORMAT,
            "case_id": self._book.case_id,
            **self._identity,
            "head": {"position": head.position, "chain": head.chain.hex()},
            "members": [
                {"name": member.name, "size": member.size, "sha256": member.sha256}
                for member in self.members()
            ],
        }
        return canonical.to_bytes(value) + b"\n"

    def members(self) -> Iterator[Member]:
        for name, sink in self._fixed.items():
            yield Member(name, sink.size, sink.sha256.hexdigest(), sink.blocks)
        for name, (digest, size) in sorted(self._intake.items()):
            read = partial(self._book.payload, digest)
            yield Member(name, size, digest.removeprefix("sha256:"), partial(_single, read))
        yield from self._extra

    def _find_intake(self) -> None:
        for row in self._book.rows():
            event = known_event(row)
            if isinstance(event, ArtifactAdded):
                with suppress(PayloadWithheld):  # a tree: its files are left out with it
                    for name, digest, size in intake_members(event, self._book.payload):
                        if digest not in self._withheld:
                            self._intake[name] = (digest, size)
        for name, (digest, _) in sorted(self._intake.items()):
            self._homes.setdefault(digest, name)

    def _write_record(self) -> None:
        complete = True
        for row in self._book.rows():
            self._fixed["events.jsonl"].line(event_line(row))
            event = known_event(row)
            if event is None:
                complete = complete and row.state is None
                continue
            for ref in self._needed(event):
                if ref.digest not in self._seen:
                    self._seen.add(ref.digest)
                    self._write_document(ref.digest, ref.size)

        if not complete:  # what events of a newer release need is not known: keep everything
            for digest, size in sorted(self._book.stored_payloads()):
                if digest not in self._seen:
                    self._write_document(digest, size)

    def _needed(self, event: Event) -> Iterator[Ref]:
        with suppress(PayloadWithheld):  # a tree: what its files are is left out with it
            yield from needed_payloads(event, self._book.payload)

    def _write_document(self, digest: str, size: int) -> None:
        entry: dict[str, Any] = {"digest": digest, "size": size}
        if digest in self._withheld:
            entry["withheld"] = True
        elif digest in self._homes:
            entry["member"] = self._homes[digest]
        else:
            entry["chunks"] = [
                self._number(chunk_id, chunk)
                for chunk_id, chunk in self._book.numbered_chunks(digest)
            ]
        self._fixed["documents.jsonl"].line(entry)

    def _number(self, chunk_id: int, chunk: bytes) -> int:
        number = self._chunks.get(chunk_id)
        if number is None:
            number = self._chunks[chunk_id] = len(self._chunks) + 1
            self._fixed["chunks.jsonl"].line(chunk_line(number, chunk))
        return number


def event_line(row: Row) -> dict[str, Any]:
    """Return the JSON object of one line of events.jsonl."""
    line: dict[str, Any] = {"position": row.position, "topic": row.topic}
    if row.state is None or row.nonce is None:
        line["leaf"] = row.leaf().hex()
    else:
        line |= {"state": row.state.decode(), "nonce": row.nonce.hex()}
    return line | {"chain": row.chain.hex()}


def chunk_line(number: int, chunk: bytes) -> dict[str, Any]:
    """Return the JSON object of one line of chunks.jsonl."""
    try:
        return {"n": number, "text": chunk.decode()}
    except UnicodeDecodeError:
        return {"n": number, "base64": base64.b64encode(chunk).decode()}


def intake_members(
    event: ArtifactAdded, payload: Callable[[str], bytes]
) -> Iterator[tuple[str, str, int]]:
    """Yield (member name, digest, size) of an artefact's files."""
    base = f"intake/{event.artifact}/"
    if event.content is not None:
        yield base + escape_name(event.name), event.content.digest, event.content.size
    if event.tree is not None:
        for entry in tree_files(payload(event.tree.digest)):
            if entry["stored"]:
                yield base + escape_name(entry["path"]), entry["digest"], entry["size"]


def escape_name(name: str) -> str:
    r"""Return a member name for a path: `\`, `:`, `%` and control characters as `%XX`."""
    return "".join(
        f"%{ord(c):02X}" if c in "\\:%" or ord(c) < 0x20 or ord(c) == 0x7F else c for c in name
    )


def _extra_order(member: Member) -> tuple[int, str]:
    name = member.name
    rank = next((n for n, folder in enumerate(FOLDERS) if name.startswith(folder)), None)
    assert rank, f"{name} is not under prompts/ or derived/"
    return rank, name


def _member_of(name: str, data: bytes) -> Member:
    digest = hashlib.sha256(data).hexdigest()
    return Member(name, len(data), digest, partial(_single, data.__bytes__))


def _add(archive: zipfile.ZipFile, member: Member) -> None:
    info = zipfile.ZipInfo(member.name, _DATE)
    info.compress_type = zipfile.ZIP_STORED if _too_dense(member) else zipfile.ZIP_DEFLATED
    info._compresslevel = 6  # type: ignore[attr-defined]  # ZipInfo has no public way before 3.13
    info.create_system = 3
    info.external_attr = 0o100644 << 16
    info.file_size = member.size  # lets zipfile decide on zip64 by the true size
    with archive.open(info, "w") as file:
        for block in member.blocks():
            file.write(block)


def _too_dense(member: Member) -> bool:
    """Tell whether a member would be refused as a bomb if it were compressed."""
    if not is_bomb(member.size, 0):  # it may be as small as it likes
        return False
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = sum(len(packer.compress(block)) for block in member.blocks())
    return is_bomb(member.size, packed + len(packer.flush()))


def _single(read: Callable[[], bytes]) -> list[bytes]:
    return [read()]


class _Sink:
    """A member being written: in memory while small, then in a temporary file."""

    def __init__(self, spool: ExitStack) -> None:
        self._file: IO[bytes] = spool.enter_context(
            tempfile.SpooledTemporaryFile(max_size=SPOOL)  # noqa: SIM115 - the stack closes it
        )
        self.size = 0
        self.sha256 = hashlib.sha256()

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self.size += len(data)
        self.sha256.update(data)

    def line(self, value: Any) -> None:
        self.write(canonical.to_bytes(value) + b"\n")

    def blocks(self) -> Iterator[bytes]:
        self._file.seek(0)
        while block := self._file.read(BLOCK):
            yield block
