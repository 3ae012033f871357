"""Reading a package, and making a ledger of it again.

Form: docs/format.md, "The package". A package is somebody else's file: its size, names, counts and
digests are checked before anything is built on it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

from ledger import canonical, topics
from ledger.archive import Archive
from ledger.book import Book
from ledger.clock import Sources
from ledger.errors import CanonicalError, LedgerDamaged, PackageRefused, PayloadDamaged
from ledger.packing import rebuilt_manifest
from ledger.payloads import cut
from ledger.reader import Entry, Head, Row
from ledger.verify import Report, verify_record


class Package:
    """An open package. Implements `CaseReader`; a context manager that closes it."""

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
    def is_redacted(self) -> bool:
        """Whether events or payloads are withheld: a copy made for sharing."""
        return any(row.state is None for row in self._rows) or any(
            "withheld" in entry for entry in self._documents.values()
        )

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
            PayloadDamaged: if it is missing, withheld or different.
        """
        data = b"".join(chunk for _, chunk in self.numbered_chunks(digest))
        if canonical.digest(data) != digest:
            raise PayloadDamaged(f"payload {digest}: its bytes have {canonical.digest(data)}")
        return data

    def member(self, name: str) -> bytes:
        """Return a member's bytes, checked against the manifest."""
        return b"".join(self._archive.blocks(name))

    def documents(self) -> Iterator[tuple[str, int, Iterable[bytes]]]:
        """Yield digest, size and chunks of every payload, in order."""
        for digest, entry in self._documents.items():
            yield digest, entry["size"], (chunk for _, chunk in self.numbered_chunks(digest))

    def numbered_chunks(self, digest: str) -> Iterator[tuple[int, bytes]]:
        """Yield a payload's (number, chunk) in order, unchecked; a member is cut afresh, as 0."""
        entry = self._documents.get(digest)
        if entry is None or "withheld" in entry:
            state = "missing" if entry is None else "withheld in this copy"
            raise PayloadDamaged(f"payload {digest} is {state}")
        if "member" in entry:
            yield from ((0, chunk) for chunk in cut(self.member(entry["member"])))
            return
        if self._chunks is None:
            self._chunks = list(self._read_chunks())
        for number in entry["chunks"]:
            if number > len(self._chunks):
                raise PayloadDamaged(f"payload {digest}: chunk {number} is missing")
            yield number, self._chunks[number - 1]

    def stored_payloads(self) -> Iterator[tuple[str, int]]:
        """Yield digest and size of every payload."""
        return ((digest, entry["size"]) for digest, entry in self._documents.items())

    def _read_rows(self) -> Iterator[Row]:
        for number, line in enumerate(self._lines("events.jsonl"), start=1):
            try:
                yield _row(self.case_id, line)
            except (KeyError, TypeError, ValueError, AttributeError):
                raise PackageRefused(
                    f"{self.path}: events.jsonl, line {number}: malformed"
                ) from None

    def _read_documents(self) -> dict[str, Any]:
        documents: dict[str, Any] = {}
        for number, line in enumerate(self._lines("documents.jsonl"), start=1):
            known = isinstance(line, dict) and set(line) in _DOCUMENT_FORMS
            if not known or not _document_ok(line) or line["digest"] in documents:
                raise PackageRefused(f"{self.path}: documents.jsonl, line {number}: malformed")
            documents[line["digest"]] = line
        return documents

    def _read_chunks(self) -> Iterator[bytes]:
        for number, line in enumerate(self._lines("chunks.jsonl"), start=1):
            try:
                if line["n"] != number:
                    raise ValueError
                text = line.get("text")
                if text is None:
                    yield base64.b64decode(line["base64"], validate=True)
                else:
                    yield text.encode()
            except (KeyError, TypeError, ValueError, AttributeError):
                raise PackageRefused(
                    f"{self.path}: chunks.jsonl, line {number}: malformed"
                ) from None

    def _lines(self, name: str) -> Iterator[Any]:
        for number, line in enumerate(self._archive.lines(name), start=1):
            try:
                yield canonical.from_bytes(line)
            except CanonicalError as error:
                raise PackageRefused(f"{self.path}: {name}, line {number}: {error}") from None


_DOCUMENT_FORMS = tuple({"digest", "size", form} for form in ("chunks", "member", "withheld"))


def _document_ok(line: dict[str, Any]) -> bool:
    numbers = line.get("chunks", [])
    return (
        isinstance(line["digest"], str)
        and type(line["size"]) is int
        and isinstance(line.get("member", ""), str)
        and isinstance(numbers, list)
        and all(type(n) is int and n > 0 for n in numbers)
    )


def _row(case_id: str, line: dict[str, Any]) -> Row:
    position, topic, value = line["position"], line["topic"], bytes.fromhex(line["chain"])
    if type(position) is not int or type(topic) is not str:
        raise ValueError
    if set(line) == {"position", "topic", "leaf", "chain"}:
        hidden = bytes.fromhex(line["leaf"])
        return Row(position, position, case_id, topic, None, None, value, hidden)
    if set(line) != {"position", "topic", "state", "nonce", "chain"}:
        raise ValueError
    state, nonce = line["state"].encode(), bytes.fromhex(line["nonce"])
    return Row(position, position, case_id, topic, state, nonce, value)


def verify_package(package: Package, sealed: Head | None = None) -> Report:
    """Check a package: chain, payloads, and that it holds nothing that its events do not need."""
    report = verify_record(package, sealed)
    if report.ok and not package.is_redacted:
        extra = {
            name: package.member(name)
            for name in package.members
            if name.startswith(("prompts/", "derived/"))
        }
        if canonical.digest(rebuilt_manifest(package, extra)) != package.identity:
            report.damage(None, "the package is not the one that its own events give")
    return report


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
        raise PackageRefused(f"{package.path}: does not verify: {report.findings[0].message}")
    with Book.create(path, sources=sources) as book:
        head = book.restore(package.rows(), package.documents())
        if head != package.head:
            raise LedgerDamaged(f"{path}: imported head {head}, expected {package.head}")
    return head
