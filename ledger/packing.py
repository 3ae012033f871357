"""Writing a package: one case as one zip, the same input as the same bytes.

Form: docs/format.md, "The package".
"""

from __future__ import annotations

import base64
import hashlib
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from ledger import canonical, topics
from ledger.archive import BLOCK, FIXED, FOLDERS, FORMAT, MANIFEST
from ledger.errors import UnknownEvent
from ledger.events import ArtifactAdded, CaseForked, CaseOpened, Event, ObservationsExtracted
from ledger.files import new_file
from ledger.reader import RecordReader, Row
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
        book: an open case.
        path: where the package goes.
        extra: further members by name, under `prompts/` or `derived/`.
        overwrite: replace a file that stands there.

    Raises:
        CaseExists, StorageError: nothing was written.
        LedgerDamaged: the case is damaged; export what `verify` accepts.
    """
    with new_file(path, overwrite=overwrite) as file, ExitStack() as spool:
        plan = _Plan(book, spool, extra or {})
        manifest = plan.manifest()
        with zipfile.ZipFile(file, "w") as archive:
            _add(archive, MANIFEST, len(manifest), [manifest])
            for member in plan.members():
                _add(archive, member.name, member.size, member.blocks())
    return canonical.digest(manifest)


def rebuilt_manifest(reader: RecordReader, extra: Mapping[str, bytes]) -> bytes:
    """Return the manifest that a package of this record must have, byte for byte."""
    with ExitStack() as spool:
        return _Plan(reader, spool, extra).manifest()


class _Member(NamedTuple):
    name: str
    size: int
    sha256: str
    blocks: Callable[[], Iterable[bytes]]


class _Plan:
    """All members of a package: what each holds, its size and its digest."""

    def __init__(self, book: RecordReader, spool: ExitStack, extra: Mapping[str, bytes]) -> None:
        self._book = book
        self._extra = extra
        self._intake: dict[str, tuple[str, int]] = {}  # member name: digest, size
        self._homes: dict[str, str] = {}  # digest: member that holds it
        self._chunks: dict[int, int] = {}  # chunk ID in the store: number in the package
        self._seen: set[str] = set()
        self._identity: dict[str, Any] = {"trial_id": "", "package_id": None, "generation": 0}
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

    def members(self) -> Iterator[_Member]:
        for name, sink in self._fixed.items():
            yield _Member(name, sink.size, sink.sha256.hexdigest(), sink.blocks)
        for name, (digest, size) in sorted(self._intake.items()):
            read = partial(self._book.payload, digest)
            yield _Member(name, size, digest.removeprefix("sha256:"), partial(_single, read))
        for name, data in sorted(self._extra.items(), key=_extra_order):
            yield _Member(
                name, len(data), hashlib.sha256(data).hexdigest(), partial(_single, data.__bytes__)
            )

    def _find_intake(self) -> None:
        for row in self._book.rows():
            event = _known_event(row)
            if isinstance(event, (CaseOpened, CaseForked)):  # a fork has an identity of its own
                self._identity["trial_id"] = event.trial_id
            elif isinstance(event, ObservationsExtracted) and not self._identity["generation"]:
                self._identity["package_id"] = event.package_id
                self._identity["generation"] = row.position
            elif isinstance(event, ArtifactAdded):
                for name, digest, size in intake_members(event, self._book.payload):
                    self._intake[name] = (digest, size)
        for name, (digest, _) in sorted(self._intake.items()):
            self._homes.setdefault(digest, name)

    def _write_record(self) -> None:
        complete = True
        for row in self._book.rows():
            self._fixed["events.jsonl"].line(event_line(row))
            event = _known_event(row)
            if event is None:
                complete = False
                continue
            for ref in needed_payloads(event, self._book.payload):
                if ref.digest not in self._seen:
                    self._seen.add(ref.digest)
                    self._write_document(ref.digest, ref.size)

        if not complete:  # what events of a newer release need is not known: keep everything
            for digest, size in sorted(self._book.stored_payloads()):
                if digest not in self._seen:
                    self._write_document(digest, size)

    def _write_document(self, digest: str, size: int) -> None:
        entry: dict[str, Any] = {"digest": digest, "size": size}
        if digest in self._homes:
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


def _extra_order(item: tuple[str, bytes]) -> tuple[int, str]:
    name = item[0]
    rank = next((n for n, folder in enumerate(FOLDERS) if name.startswith(folder)), None)
    assert rank, f"{name} is not under prompts/ or derived/"
    return rank, name


def _known_event(row: Row) -> Event | None:
    """Return the event, None for one of a newer release or a withheld one."""
    if row.state is None:
        return None
    try:
        return topics.decode(row.topic, row.state, row.position)
    except UnknownEvent:
        return None


def _add(archive: zipfile.ZipFile, name: str, size: int, blocks: Iterable[bytes]) -> None:
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    info._compresslevel = 6  # type: ignore[attr-defined]  # ZipInfo has no public way before 3.13
    info.create_system = 3
    info.external_attr = 0o100644 << 16
    info.file_size = size  # lets zipfile decide on zip64 by the true size
    with archive.open(info, "w") as member:
        for block in blocks:
            member.write(block)


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
