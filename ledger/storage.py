"""The case file as SQLite sees it: schema, opening, closing, and errors in our own words."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from urllib.parse import quote

from ledger.errors import (
    CaseNotFound,
    LedgerBusy,
    LedgerDamaged,
    LedgerError,
    LedgerFull,
    LedgerReadOnly,
    NewerFormat,
    NotALedger,
    StorageError,
)

APPLICATION_ID = int.from_bytes(b"CSLG", "big")
FORMAT = 1
BUSY_SECONDS = 5.0
PAGE_SIZE = 1024
"""Bytes of a database page: chunks are 1 to 4 KB compressed, larger pages leave more of each empty
(docs/decisions/0004-payload-chunks.md). Any page size can be read."""

CHECKPOINT_PAGES = 4000
"""Pages after which a WAL is checkpointed: as many bytes as with SQLite's default page size."""

SHOWN = 4
"""Differences of a schema that are named in one line."""

MAGIC = b"SQLite format 3\0"

_TABLES = """
CREATE TABLE event (
    position INTEGER PRIMARY KEY CHECK (position > 0),
    case_id  TEXT NOT NULL,
    version  INTEGER NOT NULL CHECK (version = position),
    topic    TEXT NOT NULL,
    state    BLOB NOT NULL,
    nonce    BLOB NOT NULL CHECK (length(nonce) = 16),
    chain    BLOB NOT NULL CHECK (length(chain) = 32),
    UNIQUE (case_id, version)
) STRICT;
CREATE TABLE chunk (
    id     INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
    codec  INTEGER NOT NULL,
    size   INTEGER NOT NULL CHECK (size >= 0),
    data   BLOB NOT NULL
) STRICT;
CREATE TABLE document (
    digest BLOB PRIMARY KEY CHECK (length(digest) = 32),
    size   INTEGER NOT NULL CHECK (size >= 0),
    chunks BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX event_topic ON event (topic);
"""

_TRIGGERS = "".join(
    f"CREATE TRIGGER {table}_{verb.lower()} BEFORE {verb} ON {table} "
    f"BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;\n"
    for table in ("event", "chunk", "document")
    for verb in ("UPDATE", "DELETE")
)

# REPLACE removes a row without a word to the triggers above.
_TRIGGERS += "".join(
    f"CREATE TRIGGER {table}_replace BEFORE INSERT ON {table} "
    f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {taken}) "
    f"BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;\n"
    for table, taken in (
        ("event", "position = NEW.position"),
        ("chunk", "id = NEW.id OR digest = NEW.digest"),
        ("document", "digest = NEW.digest"),
    )
)

SCHEMA = _TABLES + _TRIGGERS


@cache
def expected_schema() -> Mapping[str, str]:
    """Return what a case file has: `trigger event_update` and the like, and the SQL of each."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(SCHEMA)
        return stored_schema(connection)
    finally:
        connection.close()


def stored_schema(connection: sqlite3.Connection) -> Mapping[str, str]:
    """Return what a database has but SQLite's own, by kind and name, white space made one."""
    rows = connection.execute(
        "SELECT type || ' ' || name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
    ).fetchall()
    return {str(name): " ".join(str(sql).split()) for name, sql in rows}


def schema_problem(connection: sqlite3.Connection) -> str | None:
    """Return what differs from the schema of the format, None if nothing does."""
    expected, stored = expected_schema(), stored_schema(connection)
    if expected == stored:
        return None
    differences = [
        f"{name[:80]} {_difference(expected.get(name), stored.get(name))}"
        for name in sorted(expected.keys() | stored.keys())
        if expected.get(name) != stored.get(name)
    ]
    more = [f"{len(differences) - SHOWN} more"] if len(differences) > SHOWN else []
    named = ", ".join(differences[:SHOWN] + more)
    return f"tables, indexes or triggers are not those of format {FORMAT}: {named}"


def _difference(expected: str | None, stored: str | None) -> str:
    if stored is None:
        return "is missing"
    return "is altered" if expected is not None else "does not belong there"


def create_file(path: Path) -> sqlite3.Connection:
    """Create an empty case file and return a connection for filling it.

    No journal and no fsync while filling: until it is renamed, nobody relies on it. The caller
    syncs it before the rename.
    """
    with translated(path):
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            path.chmod(0o600)
            connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {FORMAT}; COMMIT;")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
    return connection


def open_file(path: Path, *, write: bool) -> sqlite3.Connection:
    """Open an existing case file; never create one, never write while opening.

    Raises:
        CaseNotFound, NotALedger, NewerFormat, StorageError: with the cause and what to do.
    """
    check_magic(path)
    with translated(path):
        connection = _connect(path, "rw" if write else "ro")
        try:
            check_format(path, connection)
        except BaseException:
            connection.close()  # a failed open must not keep a lock or a handle
            raise
    return connection


def open_copy(path: Path) -> tuple[sqlite3.Connection, tempfile.TemporaryDirectory[str]]:
    """Open a temporary copy of a case file and its WAL, for a folder that cannot be written.

    SQLite cannot read a WAL without writing its index beside it, and `immutable` would hide the
    WAL's rows.
    """
    folder = tempfile.TemporaryDirectory(prefix="caseledger-")
    copy = Path(folder.name) / "copy.case"
    try:
        with translated(path):
            shutil.copyfile(path, copy)
            for end in ("-wal", "-journal"):  # a journal takes back what was not committed
                with suppress(FileNotFoundError):
                    shutil.copyfile(f"{path}{end}", f"{copy}{end}")
            connection = _connect(copy, "rw")
            try:
                check_format(path, connection)
            except BaseException:
                connection.close()
                raise
        return connection, folder
    except BaseException:
        folder.cleanup()
        raise


def enter_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL with full synchronisation, for a writer.

    A reader with an open transaction can make the switch fail; the writer then goes on in
    rollback-journal mode, which is as safe and slower.
    """
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")


def close_file(connection: sqlite3.Connection, *, write: bool) -> None:
    """Close a connection; a writer's leaves one complete file, unless a reader is at work."""
    try:
        if write:
            with suppress(sqlite3.OperationalError):
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    finally:
        connection.close()


def check_magic(path: Path) -> None:
    """Refuse what cannot be a case file before SQLite sees it, for a clearer message."""
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
    except FileNotFoundError:
        raise CaseNotFound(f"{path}: there is no such case") from None
    except IsADirectoryError:
        raise NotALedger(f"{path}: is a folder, not a case") from None
    except OSError as error:
        raise translate_os(error, path) from None
    if not start:
        raise NotALedger(f"{path}: is empty; restore it from a package, or start a new case")
    if start.startswith(b"PK"):
        raise NotALedger(f"{path}: is not a case ledger; a package is read with `import`")
    if start != MAGIC:
        raise NotALedger(f"{path}: is not a case ledger: it is no SQLite database")


def check_format(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse other databases and newer formats."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        raise NotALedger(f"{path}: is an SQLite database, but not a case ledger")
    if version > FORMAT:
        raise NewerFormat(
            f"{path}: has format {version}, this release reads up to {FORMAT}; "
            "use the release that wrote it"
        )
    if version < 1:
        raise NotALedger(f"{path}: is an unfinished case ledger; it holds nothing")
    _check_length(path, connection)


def _check_length(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a file whose end is missing; SQLite itself reads a cut last page as zeros.

    While a WAL or journal belongs to it, the file alone says nothing.
    """
    if any(path.with_name(path.name + end).exists() for end in ("-wal", "-journal")):
        return
    size = path.stat().st_size
    page = connection.execute("PRAGMA page_size").fetchone()[0]
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    if size < page * pages or size % page:
        raise LedgerDamaged(
            f"{path}: the file has {size} bytes, {page * pages} belong to it: its end is missing; "
            "restore it from a package"
        )


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and the file system inside the block into ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error, path) from error
    except UnicodeDecodeError as error:  # a message of SQLite that quotes damaged bytes
        raise LedgerDamaged(
            f"{path}: the database file is damaged; restore it from a package"
        ) from error
    except OSError as error:
        raise translate_os(error, path) from error


def translate(error: sqlite3.Error, path: Path) -> LedgerError:
    """Return our error for one of SQLite's: one line with the cause and what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return LedgerFull(
            f"{path}: the disk is full; nothing was written, free space and run again"
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LedgerBusy(f"{path}: another program holds it locked; run again when it is done")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN):
        return LedgerReadOnly(
            f"{path}: the file or its folder cannot be written; check permissions"
        )
    if code == sqlite3.SQLITE_NOTADB:
        return NotALedger(f"{path}: is not a case ledger, or its first page is damaged")
    text = " ".join(str(error).split())  # SQLite may quote a stored text
    if code == sqlite3.SQLITE_CORRUPT or text.startswith("Could not decode to UTF-8"):
        return LedgerDamaged(
            f"{path}: the database file is damaged ({text}); restore it from a package"
        )
    return StorageError(f"{path}: {text}")


def translate_os(error: OSError, path: Path) -> LedgerError:
    """Return our error for one of the file system's."""
    import errno

    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LedgerFull(
            f"{path}: the disk is full; nothing was written, free space and run again"
        )
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return LedgerReadOnly(f"{path}: no permission ({error.strerror}); check it and run again")
    return StorageError(f"{path}: {error.strerror or error}")


def sync(path: Path) -> None:
    """Make a finished file survive a power loss."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=BUSY_SECONDS,
        check_same_thread=False,
    )
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")  # a hostile schema calls nothing
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection
