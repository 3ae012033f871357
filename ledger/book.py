"""One case, one SQLite file: create, open, append, read up to a position.

One process writes at a time. Opening never creates and never writes; creating happens under a
temporary name. Every append is one transaction: events, chain and payloads together or not at all.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ledger import chain, storage, topics
from ledger.anchor import AnchorLock, read_anchor
from ledger.checks import (
    check_chain,
    compare_with_anchor,
    refuse_existing,
    refuse_other_schema,
    refuse_unknown_topics,
    remove_database,
    tip,
)
from ledger.clock import Sources
from ledger.errors import (
    CaseExists,
    LedgerConflict,
    LedgerDamaged,
    LedgerReadOnly,
    PayloadDamaged,
    StorageError,
    UnsafeEvent,
)
from ledger.events import CaseOpened, Event, HeadAccepted, Ref
from ledger.files import drop_second_name, temporary_name
from ledger.payloads import PayloadStore
from ledger.reader import EMPTY, Entry, Head, Row
from ledger.trees import needed_payloads

if TYPE_CHECKING:
    from ledger.recorder import CaseApplication, Stamped

PAGE = 512
"""Rows fetched at once: a reader holds no transaction open between pages."""

SUFFIX = ".case"

_COLUMNS = "position, version, case_id, topic, state, nonce, chain"


class Book:
    """An open case. Implements `CaseReader`; a context manager that closes it."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        *,
        case_id: str,
        head: Head,
        lock: AnchorLock | None = None,
        copy: tempfile.TemporaryDirectory[str] | None = None,
        sources: Sources | None = None,
    ) -> None:
        """Internal; use `open`, `open_for_writing` or `create`."""
        self.path = path
        self.sources = sources or Sources()
        self._connection = connection
        self._case_id = case_id
        self._head = head
        self._lock = lock
        self._copy = copy
        self._payloads = PayloadStore(connection)
        self._application: CaseApplication | None = None
        self._journal_ready = False
        self._published = False
        self._closed = False

    # Opening ---------------------------------------------------------------------------------

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Open a case for reading.

        Raises:
            CaseNotFound, NotALedger, NewerFormat, StorageError: one line with what to do.
        """
        path = Path(path)
        copy = None
        try:
            connection = storage.open_file(path, write=False)
        except LedgerReadOnly:
            # A WAL in a folder that cannot be written: read a copy, the rows in the WAL included.
            connection, copy = storage.open_copy(path)
        try:
            case_id, head = tip(path, connection)
        except BaseException:
            connection.close()
            if copy:
                copy.cleanup()
            raise
        return cls(path, connection, case_id=case_id, head=head, copy=copy)

    @classmethod
    def open_for_writing(cls, path: Path | str, *, sources: Sources | None = None) -> Self:
        """Open a case for appending; nothing is written until the first append.

        Raises:
            LedgerLocked: another process is writing.
            LedgerDamaged: the ledger is behind its anchor, or differs from it, or a table, index or
                trigger is not the format's.
            UnknownEvent: it has topics of a newer release.
            CaseNotFound, NotALedger, NewerFormat, StorageError: one line with what to do.
        """
        return cls._open_writer(Path(path), sources)

    @classmethod
    def recover(
        cls, path: Path | str, *, reason: str = "", sources: Sources | None = None
    ) -> HeadAccepted | None:
        """Accept a head that differs from its anchor, on the record; None if there is nothing to.

        Raises:
            LedgerDamaged: the chain itself is broken: restore the case from a package instead.
        """
        with cls._open_writer(Path(path), sources, accept=True) as book:
            known = book.anchor()
            if known is None or compare_with_anchor(book, known) is None:
                return None
            check_chain(book)
            accepted = HeadAccepted(
                at=book.sources.now(),
                position=book.head.position,
                chain=book.head.chain.hex(),
                anchor_position=known.position,
                anchor_chain=known.chain.hex(),
                reason=reason,
            )
            book.append(accepted)
            return accepted

    @classmethod
    def _open_writer(cls, path: Path, sources: Sources | None, *, accept: bool = False) -> Self:
        connection = storage.open_file(path, write=True)
        try:
            refuse_other_schema(path, connection)
            refuse_unknown_topics(path, connection)
            lock = AnchorLock(path)
            try:
                drop_second_name(path)
                case_id, head = tip(path, connection)
                book = cls(path, connection, case_id=case_id, head=head, lock=lock, sources=sources)
                known = book.anchor()
                problem = compare_with_anchor(book, known)
                if problem and not accept:
                    raise problem
                if not problem and known != head:
                    lock.write(head)
            except BaseException:
                lock.release()
                raise
        except BaseException:
            connection.close()  # a failed open must not keep a handle
            raise
        return book

    @classmethod
    @contextmanager
    def create(cls, path: Path | str, *, sources: Sources | None = None) -> Iterator[Self]:
        """Create a case: fill it inside the block; it gets its name when the block ends well.

        An error inside the block, or a kill, leaves nothing under the name.

        Raises:
            CaseExists: something stands at `path` already.
        """
        path = Path(path)
        temporary = temporary_name(path)
        drop_second_name(path)
        refuse_existing(path)
        lock = AnchorLock(path)
        book = None
        taken = path.exists()  # somebody may have finished while we came to the lock
        try:
            refuse_existing(path)
            lock.clear()
            try:
                remove_database(temporary)
                with closing(storage.create_file(temporary)) as connection:
                    book = cls(
                        temporary, connection, case_id="", head=EMPTY, lock=lock, sources=sources
                    )
                    book._journal_ready = True
                    yield book
                    book._finish(path)
            finally:
                remove_database(temporary)
        except BaseException:
            if not taken and not (book and book._published):
                lock.remove()
            raise
        finally:
            lock.release()

    def close(self) -> None:
        """Close the case; a writer leaves one complete file and its anchor behind."""
        if self._closed:
            return
        self._closed = True
        try:
            with storage.translated(self.path):
                storage.close_file(self._connection, write=self._journal_ready)
        finally:
            if self._lock:
                self._lock.release()
                self._lock = None
            if self._copy:
                self._copy.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # Reading ---------------------------------------------------------------------------------

    @property
    def case_id(self) -> str:
        """Identity of the bug under investigation."""
        return self._case_id

    @property
    def head(self) -> Head:
        """Last position and chain value, as of opening or the last append."""
        return self._head

    @property
    def connection(self) -> sqlite3.Connection:
        """The SQLite connection, for `verify` and `package` only."""
        return self._connection

    @property
    def payloads(self) -> PayloadStore:
        """The payload tables, for `package` only."""
        return self._payloads

    def events(self, upto: int | None = None, *, after: int = 0) -> Iterator[Entry]:
        """Yield entries with `after` < position ≤ `upto`, by default up to the head."""
        decode, expected = topics.decode, after
        for page in self._pages("position, topic, state", after, upto):
            for position, topic, state in page:
                expected += 1
                if position != expected:  # in a package a gap is an event that is withheld
                    raise LedgerDamaged(
                        f"{self.path}: position {expected} is missing: the next one is {position}",
                        expected,
                    )
                yield Entry(position, decode(topic, state, position))

    def rows(self, upto: int | None = None, *, after: int = 0) -> Iterator[Row]:
        """Yield rows as stored, unknown topics included."""
        for page in self._pages(_COLUMNS, after, upto):
            for values in page:
                position, version, case_id, topic, state, nonce, value = values
                # SQLite checks types when it writes, not when it reads.
                if not (
                    type(version) is int
                    and (type(case_id) is type(topic) is str)
                    and (type(state) is type(nonce) is type(value) is bytes)
                ):
                    raise LedgerDamaged(
                        f"{self.path}: position {position} holds a value of another type", position
                    )
                yield Row(position, version, case_id, topic, state, nonce, value)

    def payload(self, digest: str) -> bytes:
        """Return a payload, checked against its digest.

        Raises:
            PayloadDamaged: if it is missing or different.
        """
        with storage.translated(self.path):
            return self._payloads.get(digest)

    def numbered_chunks(self, digest: str) -> Iterator[tuple[int, bytes]]:
        """Yield a payload's (chunk ID, chunk) in order, unchecked."""
        with storage.translated(self.path):
            yield from self._payloads.chunks(digest)

    def stored_payloads(self) -> Iterator[tuple[str, int]]:
        """Yield digest and size of every payload in the store."""
        with storage.translated(self.path):
            # All at once: a query read half keeps a transaction open.
            rows = self._connection.execute("SELECT digest, size FROM document").fetchall()
        return ((f"sha256:{name.hex()}", size) for name, size in rows)

    def refresh(self) -> Head:
        """Look for events that another process appended since; return the new head."""
        self._case_id, self._head = tip(self.path, self._connection)
        return self._head

    @contextmanager
    def at_one_moment(self) -> Iterator[None]:
        """See the ledger as it is now throughout the block, whatever another process appends.

        Holds a read transaction: for `verify`, which reads all of it once, and for nothing long.
        """
        with storage.translated(self.path):
            self._connection.execute("BEGIN")
        try:
            self.refresh()
            yield
        finally:
            self._connection.execute("ROLLBACK")

    def anchor(self) -> Head | None:
        """Return the head the anchor knows; None for an unanchored case."""
        return read_anchor(self.path)

    def _pages(self, columns: str, after: int, upto: int | None) -> Iterator[Sequence[tuple]]:  # type: ignore[type-arg]
        last = self._head.position if upto is None else min(upto, self._head.position)
        query = (
            f"SELECT {columns} FROM event WHERE position > ? AND position <= ? "
            "ORDER BY position LIMIT ?"
        )
        while after < last:
            with storage.translated(self.path):
                page = self._fetch(query, after, last)
            if not page:
                return
            yield page
            after = page[-1][0]

    def _fetch(self, query: str, after: int, last: int) -> list[tuple]:  # type: ignore[type-arg]
        try:
            return self._connection.execute(query, (after, last, PAGE)).fetchall()
        except sqlite3.DatabaseError:
            # Row by row up to the one that cannot be read, so that it can be named.
            return self._connection.execute(query, (after, last, 1)).fetchall()

    # Appending -------------------------------------------------------------------------------

    def append(self, *events: Event, payloads: Iterable[bytes] = ()) -> Head:
        """Append events and the payloads they name in one transaction; return the new head.

        Idempotent: if the commit succeeded and only its answer was lost, that counts as success.

        Raises:
            LedgerConflict: somebody else appended first.
            UnsafeEvent: an event cannot be read back exactly or names a payload that is not there,
                or a payload is named by no event.
            StorageError: disk full, read-only, locked; nothing was written.
        """
        from eventsourcing.persistence import PersistenceError

        from ledger.recorder import Commit, Stamped

        application = self._writer(events)
        first = self._head.position + 1
        stamped = [Stamped(self._case_id, first + n, event) for n, event in enumerate(events)]
        nonces = [self.sources.random_bytes(chain.NONCE_SIZE) for _ in events]
        commit = Commit(self._head, nonces, lambda: self._store(events, payloads))
        try:
            application.save(*stamped, commit=commit)
        except PersistenceError as error:
            have = self._stored(first, len(events))
            if have != _wanted(stamped, nonces):  # equal: only the answer was lost
                raise self._explain(error, taken=bool(have)) from error
            commit.head = tip(self.path, self._connection)[1]
        assert self._lock is not None
        assert commit.head is not None
        self._head = commit.head
        self._lock.write(self._head)
        return self._head

    def restore(
        self, rows: Iterable[Row], payloads: Iterable[tuple[str, int, Iterable[bytes]]]
    ) -> Head:
        """Fill a case that is being created with a verified record, rows and cuts as they are.

        Args:
            rows: the events, in order, none withheld.
            payloads: digest, size and chunks of each payload.
        """
        from ledger.recorder import INSERT

        with storage.translated(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            for digest, size, chunks in payloads:
                self._payloads.put_chunks(digest, size, chunks)
            self._connection.executemany(INSERT, (row.stored() for row in rows))
            self._connection.execute("COMMIT")
        self._case_id, self._head = tip(self.path, self._connection)
        assert self._lock is not None
        self._lock.write(self._head)
        return self._head

    def _writer(self, events: Sequence[Event]) -> CaseApplication:
        if self._lock is None:
            raise LedgerReadOnly(f"{self.path}: was opened for reading")
        if not events:
            raise UnsafeEvent("there is nothing to append")
        if self._head.position == 0:
            self._case_id = _opening_case_id(events[0])
        later = events[1:] if self._head.position == 0 else events
        if any(isinstance(event, CaseOpened) for event in later):
            raise UnsafeEvent("case.opened begins a ledger; it cannot stand later in one")
        if not self._journal_ready:
            storage.enter_wal(self._connection)
            self._journal_ready = True
        if self._application is None:
            from ledger.recorder import CaseApplication

            self._application = CaseApplication(self._connection)
        return self._application

    def _store(self, events: Sequence[Event], payloads: Iterable[bytes]) -> None:
        """Store payloads and check that events and payloads name each other, in the transaction."""
        unnamed = {self._payloads.put(data) for data in payloads}
        for event in events:
            for ref in self._needed(event):
                if self._payloads.size(ref.digest) != ref.size:
                    raise UnsafeEvent(
                        f"{event.TOPIC} names payload {ref.digest} of {ref.size} bytes, "
                        "which is not stored"
                    )
                unnamed.discard(ref.digest)
        if unnamed:
            raise UnsafeEvent(f"payload {min(unnamed)} is named by no event")

    def _needed(self, event: Event) -> Iterator[Ref]:
        try:
            yield from needed_payloads(event, self._payloads.get)
        except PayloadDamaged:
            raise
        except LedgerDamaged as error:  # not the record yet: the caller's artefact or tree
            raise UnsafeEvent(f"{event.TOPIC} cannot be stored: {error}") from None

    def _stored(self, first: int, count: int) -> list[tuple[int, str, bytes, bytes]]:
        """Return what stands in the places that an append wanted."""
        query = (
            "SELECT position, topic, state, nonce FROM event WHERE position >= ? "
            "ORDER BY position LIMIT ?"
        )
        with suppress(sqlite3.Error):
            return self._connection.execute(query, (first, count)).fetchall()
        return []

    def _explain(self, error: Exception, *, taken: bool) -> Exception:
        from eventsourcing.persistence import IntegrityError

        if taken or isinstance(error, IntegrityError):
            return LedgerConflict(
                f"{self.path}: another process appended after position {self._head.position}; "
                "nothing was written, run again"
            )
        cause = error.__cause__
        if isinstance(cause, sqlite3.Error):
            return storage.translate(cause, self.path)
        return StorageError(f"{self.path}: {error}")

    # Creation ---------------------------------------------------------------------------------

    def _finish(self, path: Path) -> None:
        """Give the filled file its name; the anchor, written and locked, has its name already."""
        if self._head.position == 0:
            raise UnsafeEvent(f"{path}: a case needs at least one event")
        self._connection.close()
        with storage.translated(path):
            storage.sync(self.path)
            try:
                os.link(self.path, path)
            except FileExistsError:
                raise CaseExists(f"{path}: already exists; nothing was written") from None
            self._published = True
            storage.sync(path.parent)


def _wanted(
    stamped: Sequence[Stamped], nonces: Sequence[bytes]
) -> list[tuple[int, str, bytes, bytes]]:
    return [
        (item.originator_version, *topics.encode(item.event), nonce)
        for item, nonce in zip(stamped, nonces, strict=True)
    ]


def _opening_case_id(event: Event) -> str:
    if not isinstance(event, CaseOpened):
        raise UnsafeEvent(f"a ledger begins with case.opened, not with {event.TOPIC}")
    return event.case_id
