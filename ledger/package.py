"""Reading a package, and making a ledger of it again.

Form: docs/format.md, "The package". A package is somebody else's file: its size, names, counts and
digests are checked before anything is built on it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from ledger import canonical, topics
from ledger.archive import MAX_MEMBER, MAX_PAYLOADS, Archive, is_hex
from ledger.book import Book
from ledger.chain import NONCE_SIZE
from ledger.clock import Sources
from ledger.errors import (
    CanonicalError,
    LedgerDamaged,
    PackageRefused,
    PayloadDamaged,
    PayloadWithheld,
)
from ledger.packing import Member, rebuilt_manifest
from ledger.payloads import MAX_CHUNK, cut
from ledger.reader import Entry, Head, Row, Withheld
from ledger.verify import Report, verify_record


class Package:
    """An open package. Implements `SharedReader`; a context manager that closes it."""

    def __init__(self, path: Path | str) -> None:
        """Open a package; check its manifest, member list, events and document list.

        Raises:
            CaseNotFound: there is no such file.
            PackageRefused: it is malformed, hostile or altered.
        """
        self.path = Path(path)
        self._archive = Archive(self.path)
        try:
            self.manifest = self._archive.manifest
            self.identity = self._archive.identity
            self._rows = list(self._read_rows())
            self._documents = self._read_documents()
            self._withheld = Withheld(
                frozenset(row.position for row in self._rows if row.state is None),
                frozenset(d for d, entry in self._documents.items() if "withheld" in entry),
            )
            self._chunks: list[bytes] | None = None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._archive.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def case_id(self) -> str:
        """Identity of the bug under investigation."""
        return str(self.manifest["case_id"])

    @property
    def head(self) -> Head:
        """The head that the manifest states; `verify_record` proves it."""
        head = self.manifest["head"]
        return Head(head["position"], bytes.fromhex(head["chain"]))

    @property
    def withheld(self) -> Withheld:
        """What is left out of a copy made for sharing; nothing of any other package."""
        return self._withheld

    @property
    def is_redacted(self) -> bool:
        """Whether events or payloads are withheld: a copy made for sharing."""
        return any(self._withheld)

    @property
    def stated(self) -> Mapping[str, Any]:
        """The manifest, for what withheld events would say."""
        return self.manifest

    @property
    def members(self) -> list[str]:
        """Names of all members but the manifest."""
        return [member["name"] for member in self.manifest["members"]]

    def events(self, upto: int | None = None, *, after: int = 0) -> Iterator[Entry]:
        """Yield entries with `after` < position ≤ `upto`; withheld ones are left out."""
        for row in self.rows(upto, after=after):
            if row.state is not None:
                yield Entry(row.position, topics.decode(row.topic, row.state, row.position))

    def rows(self, upto: int | None = None, *, after: int = 0) -> Iterator[Row]:
        """Yield rows as stored."""
        yield from self._rows[after : len(self._rows) if upto is None else upto]

    def payload(self, digest: str) -> bytes:
        """Return a payload, checked against its digest.

        Raises:
            PayloadWithheld: if it is left out of this copy.
            PayloadDamaged: if it is missing or different.
        """
        data = b"".join(chunk for _, chunk in self.numbered_chunks(digest))
        if canonical.digest(data) != digest:
            raise PayloadDamaged(f"payload {digest}: its bytes have {canonical.digest(data)}")
        return data

    def check(self, digest: str) -> int:
        """Check a payload against its digest without holding it; return its size.

        Raises:
            PayloadWithheld: if it is left out of this copy.
            PayloadDamaged: if it is missing or different.
        """
        entry = self._documents.get(digest, {})
        whole, size = hashlib.sha256(), 0
        blocks = (
            self._archive.blocks(entry["member"])
            if "member" in entry
            else (chunk for _, chunk in self.numbered_chunks(digest))
        )
        for block in blocks:
            whole.update(block)
            size += len(block)
        if "sha256:" + whole.hexdigest() != digest or size != entry["size"]:
            raise PayloadDamaged(
                f"payload {digest} of {entry['size']} bytes: "
                f"there are {size} with sha256:{whole.hexdigest()}"
            )
        return size

    def member(self, name: str) -> bytes:
        """Return a member's bytes, checked against the manifest."""
        return b"".join(self._archive.blocks(name))

    def check_unread(self) -> None:
        """Check the members that nothing has read yet against the manifest.

        Raises:
            PackageRefused: one is not what the manifest says.
        """
        self._archive.check_unread()

    def listed(self, *folders: str) -> Iterator[Member]:
        """Yield the members below some folders as the manifest lists them, each checked."""
        for member in self.manifest["members"]:
            if member["name"].startswith(folders):
                for _ in self._archive.blocks(member["name"]):
                    pass
                yield Member(member["name"], member["size"], member["sha256"])

    def documents(self) -> Iterator[tuple[str, int, Iterable[bytes]]]:
        """Yield digest, size and chunks of every payload, in order."""
        for digest, entry in self._documents.items():
            yield digest, entry["size"], (chunk for _, chunk in self.numbered_chunks(digest))

    def numbered_chunks(self, digest: str) -> Iterator[tuple[int, bytes]]:
        """Yield a payload's (number, chunk) in order, unchecked; a member is cut afresh, as 0."""
        entry = self._documents.get(digest)
        if entry is None:
            raise PayloadDamaged(f"payload {digest} is missing")
        if "withheld" in entry:
            raise PayloadWithheld(f"payload {digest} is withheld in this copy")
        if "member" in entry:
            yield from ((0, chunk) for chunk in cut(self.member(entry["member"])))
            return
        if self._chunks is None:
            self._chunks = list(self._read_chunks())
        left = entry["size"]
        for number in entry["chunks"]:
            if number > len(self._chunks):
                raise PayloadDamaged(f"payload {digest}: chunk {number} is missing")
            left -= len(self._chunks[number - 1])
            if left < 0:  # a short list of chunks can stand for any number of bytes
                raise PayloadDamaged(f"payload {digest} has more than its {entry['size']} bytes")
            yield number, self._chunks[number - 1]

    def stored_payloads(self) -> Iterator[tuple[str, int]]:
        """Yield digest and size of every payload."""
        return ((digest, entry["size"]) for digest, entry in self._documents.items())

    def _read_rows(self) -> Iterator[Row]:
        for number, line in enumerate(self._lines("events.jsonl"), start=1):
            try:
                yield _row(self.case_id, number, line)
            except _MALFORMED as error:
                raise self._malformed("events.jsonl", number, error) from None

    def _read_documents(self) -> dict[str, Any]:
        documents: dict[str, Any] = {}
        total = 0
        for number, line in enumerate(self._lines("documents.jsonl"), start=1):
            if problem := _document_problem(line):
                raise self._malformed("documents.jsonl", number, problem)
            if line["digest"] in documents:
                raise self._malformed("documents.jsonl", number, f"{line['digest']} occurs twice")
            documents[line["digest"]] = line
            total += line["size"]
            if total > MAX_PAYLOADS:  # chunks may be shared, but somebody has to hash all of it
                raise PackageRefused(
                    f"{self.path}: its payloads have more than {MAX_PAYLOADS} bytes together"
                )
        return documents

    def _read_chunks(self) -> Iterator[bytes]:
        seen: set[bytes] = set()
        for number, line in enumerate(self._lines("chunks.jsonl"), start=1):
            try:
                chunk = _chunk(number, line)
            except _MALFORMED as error:
                raise self._malformed("chunks.jsonl", number, error) from None
            name = hashlib.sha256(chunk).digest()
            if name in seen:
                raise PackageRefused(f"{self.path}: chunks.jsonl, line {number}: occurs twice")
            seen.add(name)
            yield chunk

    def _malformed(self, member: str, number: int, what: object) -> PackageRefused:
        """Return the error for a line; `what` is what was expected, or an error that says it."""
        if isinstance(what, Exception) and type(what) is not _Unexpected:
            what = f"expected {_EXPECTED[member]}"
        return PackageRefused(f"{self.path}: {member}, line {number}: malformed: {what}")

    def _lines(self, name: str) -> Iterator[Any]:
        for number, line in enumerate(self._archive.lines(name), start=1):
            try:
                yield canonical.from_bytes(line)
            except CanonicalError as error:
                raise PackageRefused(f"{self.path}: {name}, line {number}: {error}") from None


class _Unexpected(ValueError):
    """A line that is not what it must be; its text says what was expected."""


_MALFORMED = (KeyError, TypeError, ValueError, AttributeError)
_EXPECTED = {
    "events.jsonl": "an object of position, topic, state, nonce and chain, or position, topic, "
    "leaf and chain",
    "documents.jsonl": "an object of digest, size and one of chunks, member, withheld",
    "chunks.jsonl": "an object of n and text, or n and base64",
}
_DOCUMENT_FORMS = tuple({"digest", "size", form} for form in ("chunks", "member", "withheld"))


def _document_problem(line: Any) -> str | None:
    if not isinstance(line, dict) or set(line) not in _DOCUMENT_FORMS:
        return f"expected {_EXPECTED['documents.jsonl']}"
    digest, size, numbers = line["digest"], line["size"], line.get("chunks", [])
    if type(digest) is not str or not digest.startswith("sha256:") or not is_hex(digest[7:], 32):
        return "expected a digest: sha256: and 64 lower-case hex digits"
    if type(size) is not int or not 0 <= size <= MAX_MEMBER:
        return f"expected a size from 0 to {MAX_MEMBER}"
    if not isinstance(line.get("member", ""), str) or line.get("withheld", True) is not True:
        return "expected the name of a member, or withheld as true"
    if not isinstance(numbers, list) or not all(type(n) is int and n > 0 for n in numbers):
        return "expected chunks as a list of numbers above 0"
    return None


def _row(case_id: str, number: int, line: dict[str, Any]) -> Row:
    """Return the row of one line of events.jsonl; ValueError and its like for a malformed one."""
    position, topic, value = line["position"], line["topic"], _unhex("chain", line["chain"], 32)
    if type(position) is not int or position != number:
        raise _Unexpected(f"position {str(position)[:20]}, expected {number}")
    topic.encode()  # a lone surrogate has no bytes to hash
    if set(line) == {"position", "topic", "leaf", "chain"}:
        hidden = _unhex("leaf", line["leaf"], 32)
        return Row(position, position, case_id, topic, None, None, value, hidden)
    if set(line) != {"position", "topic", "state", "nonce", "chain"}:
        raise ValueError
    state, nonce = line["state"].encode(), _unhex("nonce", line["nonce"], NONCE_SIZE)
    return Row(position, position, case_id, topic, state, nonce, value)


def _chunk(number: int, line: dict[str, Any]) -> bytes:
    """Return the bytes of one line of chunks.jsonl; ValueError and its like for a malformed one."""
    if type(line["n"]) is not int or line["n"] != number:
        raise _Unexpected(f"n is {str(line['n'])[:20]}, expected {number}")
    if len(line) != 2:
        raise ValueError
    text = line.get("text")
    chunk = base64.b64decode(line["base64"], validate=True) if text is None else text.encode()
    if not 0 < len(chunk) <= MAX_CHUNK:
        raise _Unexpected(f"{len(chunk)} bytes, expected 1 to {MAX_CHUNK}")
    return bytes(chunk)


def _unhex(name: str, value: Any, size: int) -> bytes:
    if not is_hex(value, size):
        raise _Unexpected(f"expected {name} as {2 * size} lower-case hex digits")
    return bytes.fromhex(value)


def verify_package(package: Package, sealed: Head | None = None) -> Report:
    """Check a package: chain, payloads, and that it holds nothing that its events do not need."""
    report = verify_record(package, package.check, sealed)
    report.withheld_events, report.withheld_payloads = map(len, package.withheld)
    if report.ok:
        extra = package.listed("prompts/", "derived/")
        rebuilt = rebuilt_manifest(package, extra)
        if canonical.digest(rebuilt) != package.identity:
            why = _difference(package.manifest, canonical.from_bytes(rebuilt))
            report.damage(None, f"the package is not the one that its own events give: {why}")
    if report.ok:
        try:
            package.check_unread()
        except PackageRefused as error:
            report.damage(None, str(error))
    return report


def _difference(stated: Mapping[str, Any], rebuilt: Mapping[str, Any]) -> str:
    """Return the first thing in which a manifest is not the one that is rebuilt."""
    for name in rebuilt:
        if name != "members" and not canonical.same(stated.get(name), rebuilt[name]):
            return f"manifest.json, {name}: {_shown(stated.get(name))}, not {_shown(rebuilt[name])}"
    theirs, ours = ({m["name"]: m for m in value["members"]} for value in (stated, rebuilt))
    for name in (*ours, *theirs):
        if name not in theirs:
            return f"{name} is missing"
        if name not in ours:
            return f"{name} belongs to no event"
        if not canonical.same(theirs[name], ours[name]):
            return f"{name} is not what the events and payloads give"
    if list(theirs) != list(ours):
        return "the order of its members"
    return "manifest.json is not the canonical JSON of its fields, with a line feed"


def _shown(value: object) -> str:
    return canonical.to_bytes(value).decode()[:80]


def restore(package: Package, path: Path, *, sources: Sources | None = None) -> Head:
    """Rebuild the ledger of a package at `path`, with the same head; verified first.

    Raises:
        PackageRefused: the record does not verify, or it is a copy made for sharing.
        CaseExists, StorageError: nothing was written.
    """
    if package.is_redacted:
        raise PackageRefused(
            f"{package.path}: is a copy made for sharing with parts withheld; "
            "it can be read and verified, not imported"
        )
    report = verify_package(package)
    if not report.ok:
        raise PackageRefused(
            f"{package.path}: does not verify: {report.first_damage(package.path)}"
        )
    with Book.create(path, sources=sources) as book:
        head = book.restore(package.rows(), package.documents())
        if head != package.head:
            raise LedgerDamaged(f"{path}: imported head {head}, expected {package.head}")
    return head
