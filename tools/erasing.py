"""Removing a case: the file, its anchor, and what SQLite or a kill may have left beside them."""

from __future__ import annotations

from pathlib import Path

from ledger.anchor import AnchorLock
from ledger.errors import NotALedger
from ledger.storage import APPLICATION_ID, check_magic, translated

HEADER = 100
APPLICATION = slice(68, 72)
"""Where SQLite's header holds the application's identity: read so that a damaged case can go."""


def check_is_case(path: Path) -> None:
    """Refuse what is no case, even a damaged one.

    Raises:
        CaseNotFound, NotALedger: it is none.
    """
    check_magic(path)
    with path.open("rb") as opened:
        identity = opened.read(HEADER)[APPLICATION]
    if identity != APPLICATION_ID.to_bytes(4, "big"):
        raise NotALedger(f"{path}: is an SQLite database, but not a case ledger; it stays")


def erase_case(path: Path) -> list[Path]:
    """Remove a case's files; return what was removed.

    Raises:
        CaseNotFound, NotALedger: it is no case.
        LedgerLocked: another process is writing to it.
    """
    check_is_case(path)
    lock = AnchorLock(path)
    names = [path.name + end for end in ("", "-wal", "-shm", "-journal", ".head")]
    found = [path.with_name(name) for name in names if path.with_name(name).exists()]
    try:
        with translated(path):
            for file in found:
                file.unlink()
    finally:
        lock.release()
    return found
