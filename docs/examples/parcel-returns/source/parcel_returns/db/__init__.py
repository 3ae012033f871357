"""Access to the SQLite database."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger(__name__)

SCHEMA_FILE = Path(__file__).with_name("schema.sql")
BUSY_TIMEOUT_SECONDS = 10.0


class DatabaseError(RuntimeError):
    """The database cannot be opened."""


@contextmanager
def connect(path: Path, *, read_only: bool) -> Iterator[sqlite3.Connection]:
    """Open the database at ``path`` and close it at the end."""
    if not path.is_file():
        raise DatabaseError(f"no database at {path}")
    mode = "ro" if read_only else "rw"
    uri = f"{path.resolve().as_uri()}?mode={mode}"
    conn = sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None)
    try:
        prepare(conn)
        log.debug("opened %s, mode %s", path.name, mode)
        yield conn
    finally:
        conn.close()


def prepare(conn: sqlite3.Connection) -> None:
    """Set what every connection of the service needs."""
    conn.row_factory = sqlite3.Row
    conn.execute("PRAGMA foreign_keys = ON")


def create_schema(conn: sqlite3.Connection) -> None:
    """Create all tables in an empty database."""
    conn.executescript(SCHEMA_FILE.read_text(encoding="utf-8"))


@contextmanager
def transaction(conn: sqlite3.Connection, *, warn_after_ms: int) -> Iterator[None]:
    """Run a block in one write transaction; roll back when it fails."""
    start = time.monotonic()
    conn.execute("BEGIN IMMEDIATE")
    waited_ms = round((time.monotonic() - start) * 1000)
    if waited_ms > warn_after_ms:
        log.warning("waited %d ms for the write lock", waited_ms)
    try:
        yield
    except BaseException:
        conn.execute("ROLLBACK")
        raise
    conn.execute("COMMIT")
