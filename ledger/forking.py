"""A fork: a new ledger with the history of another one, row for row, that then goes its own way."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ledger import chain
from ledger.book import Book
from ledger.checks import compare_with_anchor
from ledger.clock import Sources
from ledger.errors import LedgerDamaged, PackageRefused, PayloadDamaged, UnsafeEvent
from ledger.events import CaseForked, CaseOpened
from ledger.package import Package
from ledger.reader import Head, RecordReader, Row
from ledger.trees import needed_payloads


class Forked(NamedTuple):
    """A new ledger: what its first own event says, and its head."""

    event: CaseForked
    head: Head


def fork(
    origin: RecordReader, path: Path, at: int, *, note: str = "", sources: Sources | None = None
) -> Forked:
    """Create a ledger with the events of another one up to a position, then `case.forked`.

    Rows are copied as they are, nonces and chain included, with the payloads that they need and no
    others. The origin is read only. The ledger gets its name when it is complete.

    Args:
        origin: a case or a package.
        path: where the new ledger goes.
        at: the last position that is shared, 1 or more.

    Raises:
        LedgerDamaged: the origin is behind its anchor, or an event or payload is not what its
            chain or digest says.
        UnknownEvent: an event up to `at` was written by a newer release.
        PackageRefused: the origin is a copy made for sharing, with parts withheld.
        UnsafeEvent: there is no such position.
        CaseExists, StorageError: the ledger cannot be created there.
    """
    _refuse_unfit(origin, at)
    with Book.create(path, sources=sources) as book:
        head = book.restore(_proved(origin.rows(at)), _payloads(origin, at))
        forked = CaseForked(
            at=book.sources.now(),
            trial_id=book.sources.identity("trial"),
            origin_trial_id=_trial(book),
            origin_position=head.position,
            origin_chain=head.chain.hex(),
            note=note,
        )
        return Forked(forked, book.append(forked))


def _refuse_unfit(origin: RecordReader, at: int) -> None:
    if not 1 <= at <= origin.head.position:
        raise UnsafeEvent(f"position {at}: the ledger has positions 1 to {origin.head.position}")
    if isinstance(origin, Package) and origin.is_redacted:
        raise PackageRefused(
            f"{origin.path}: is a copy made for sharing with parts withheld; "
            "it can be read and verified, not forked"
        )
    if isinstance(origin, Book) and (problem := compare_with_anchor(origin, origin.anchor())):
        raise problem


def _proved(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows whose places and chain values follow from each other."""
    value = chain.ZERO
    for expected, row in enumerate(rows, start=1):
        value = chain.link(value, row.leaf())
        if row.position != expected or row.chain != value:
            raise LedgerDamaged(
                f"position {expected} does not follow from those before it; nothing was written",
                expected,
            )
        yield row


def _payloads(origin: RecordReader, at: int) -> Iterator[tuple[str, int, Iterable[bytes]]]:
    """Yield digest, size and chunks of each payload that the events up to `at` need, once."""
    done: set[str] = set()
    for _, event in origin.events(at):
        for ref in needed_payloads(event, origin.payload):
            if ref.digest not in done:
                done.add(ref.digest)
                yield ref.digest, ref.size, _checked(origin, ref.digest, ref.size)


def _checked(origin: RecordReader, digest: str, size: int) -> Iterator[bytes]:
    """Yield the chunks of a payload; an error at its end rolls the whole ledger back."""
    whole, found = hashlib.sha256(), 0
    for _, chunk in origin.numbered_chunks(digest):
        whole.update(chunk)
        found += len(chunk)
        yield chunk
    if found != size or f"sha256:{whole.hexdigest()}" != digest:
        raise PayloadDamaged(
            f"payload {digest} of {size} bytes: there are {found} with sha256:{whole.hexdigest()}"
        )


def _trial(book: Book) -> str:
    """Return the identity that the ledger had so far."""
    trial = ""
    for _, event in book.events():
        if isinstance(event, CaseOpened | CaseForked):
            trial = event.trial_id
    return trial
