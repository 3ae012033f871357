"""What is checked before a case is read, written or created: tip, anchor, chain and names."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from ledger import chain, storage, topics
from ledger.errors import CaseExists, LedgerDamaged, NotALedger, StorageError, UnknownEvent
from ledger.reader import Head

if TYPE_CHECKING:
    from ledger.book import Book


def compare_with_anchor(book: Book, known: Head | None) -> LedgerDamaged | None:
    """Return what is wrong between a ledger and the head its anchor knows, None if nothing."""
    if known is None or known.position == 0:
        return None
    head = book.head
    if known.position > head.position:
        return LedgerDamaged(
            f"{book.path}: the ledger ends at position {head.position}, its anchor knows "
            f"{known.position}: the tail is missing; restore it from a package, or accept the loss "
            f"on the record with `caseledger recover {book.path} --accept-head`",
            head.position + 1,
        )
    row = next(book.rows(known.position, after=known.position - 1), None)
    value = row.chain if row else chain.ZERO
    if value != known.chain:
        return LedgerDamaged(
            f"{book.path}: at position {known.position} the chain is {value.hex()}, its anchor "
            f"knows {known.chain.hex()}: the record was replaced; restore it from a package",
            known.position,
        )
    return None


def check_chain(book: Book) -> None:
    """Recompute the chain from the first event to the head.

    Raises:
        LedgerDamaged: at the first position where it differs.
    """
    value = chain.ZERO
    for expected, row in enumerate(book.rows(), start=1):
        value = chain.link(value, row.leaf())
        if row.position != expected or row.chain != value:
            raise LedgerDamaged(
                f"{book.path}: position {expected} does not follow from the ones before it; "
                "restore the case from a package",
                expected,
            )


def tip(path: Path, connection: sqlite3.Connection) -> tuple[str, Head]:
    """Return the case and the head, as the last row tells them."""
    with storage.translated(path):
        row = connection.execute(
            "SELECT case_id, position, chain FROM event ORDER BY position DESC LIMIT 1"
        ).fetchone()
    if row is None:
        raise NotALedger(f"{path}: holds no event; it is not a finished case ledger")
    case_id, position, value = row
    if type(case_id) is not str or type(value) is not bytes:
        raise LedgerDamaged(f"{path}: position {position} holds a value of another type", position)
    return case_id, Head(position, value)


def refuse_unknown_topics(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse to write where a newer release has written, looking at each distinct topic once."""
    with storage.translated(path):
        (topic,) = connection.execute("SELECT min(topic) FROM event").fetchone()
        while topic is not None:
            if not topics.is_known(topic):
                raise UnknownEvent(
                    f"{path}: has events of the topic {topic[:80]!r}, written by a newer release; "
                    "this one can read, verify and export the case, not write to it"
                )
            query = "SELECT min(topic) FROM event WHERE topic > ?"
            (topic,) = connection.execute(query, (topic,)).fetchone()


def refuse_other_schema(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse to write to tables that the format's triggers do not guard."""
    with storage.translated(path):
        problem = storage.schema_problem(connection)
    if problem:
        raise LedgerDamaged(
            f"{path}: {problem}; restore it from a package, or go on in a new ledger with `fork`"
        )


def refuse_existing(path: Path) -> None:
    """Refuse a name that is taken, or whose folder does not exist."""
    if path.exists() or path.is_symlink():
        raise CaseExists(f"{path}: already exists; choose another name, nothing was written")
    if not path.parent.is_dir():
        raise StorageError(f"{path}: the folder {path.parent} does not exist; create it first")


def remove_database(path: Path) -> None:
    """Remove a SQLite file and what SQLite keeps beside it."""
    for name in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))):
        name.unlink(missing_ok=True)
