"""Takes a consistent snapshot of an SQLite database without writing to it or beside it.

SQLite's backup API copies it from a read-only connection, rows in a write-ahead log included. Where
even a read-only connection would write (a log whose index file is missing, a journal to roll
back), the files are copied first and opened there. The stored bytes are one complete database in
rollback-journal mode; with secrets replaced it is rebuilt, so that no free page keeps one.
"""

from __future__ import annotations

import mmap
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from phases.intake.cells import CellCleaner, Replacement
from phases.intake.errors import IntakeError, reason_of, shown
from phases.intake.files import kind_of, open_regular, require, too_large
from phases.intake.limits import DATABASE_SECONDS, MAX_DATABASE
from phases.intake.secrets import keys_in_bytes

_MAGIC = b"SQLite format 3\0"
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")
_PAGES = 4096
_BUSY_SECONDS = 5.0


class Snapshot(NamedTuple):
    """A database as it is stored, how it was copied, and what was replaced in it."""

    data: bytes
    provenance: dict[str, str]
    counts: dict[str, int]
    replaced: tuple[Replacement, ...]
    left: bool  # shapes of secrets stand where they cannot be replaced: the schema, BLOBs


def snapshot(
    path: Path, *, keep_secrets: bool = False, tell: Callable[[int, int], None] = lambda a, b: None
) -> Snapshot:
    """Return a snapshot of the database at `path`; the same database gives the same bytes.

    Raises:
        IntakeError: if it is no SQLite database, damaged, encrypted, locked or too large.
    """
    header = _header(path)
    real = path.resolve()  # the log lies beside the file itself, not beside a link to it
    with _refusing(path), tempfile.TemporaryDirectory(prefix="caseledger-") as folder:
        copy = Path(folder) / "snapshot.db"
        how = _copy(real, copy, header, tell)
        with closing(_open(copy)) as connection:
            _check(connection, path)
            tables = _count(connection)
            cleaner = CellCleaner(connection, path)
            if not keep_secrets:
                cleaner.clean()
            replaced = cleaner.replacements()
            found = not keep_secrets and _holds_keys(copy)
            if replaced or found:  # freed pages may keep what the rows no longer say
                connection.execute("VACUUM INTO ?", (str(Path(folder) / "clean.db"),))
                copy = Path(folder) / "clean.db"
        _restore(copy, header)
        data = copy.read_bytes()
        left = found and _holds_keys(copy)
    counts = {"bytes": len(data), "tables": tables}
    return Snapshot(data, {"copied": how}, counts, replaced, left)


def _header(path: Path) -> bytes:
    status = require(path, "database")
    try:
        with open_regular(path) as file:
            header = file.read(100)
    except OSError as error:
        why = f"is {kind_of(status.st_mode)}; give a file" if not error.errno else ""
        raise _unfit(path, why or f"cannot be read: {reason_of(error)}") from None
    if not header:
        raise _unfit(path, "is empty; give a database with tables")
    if not header.startswith(_MAGIC):
        raise _unfit(
            path, "is no SQLite database, or it is encrypted; give a decrypted SQLite file"
        )
    if len(header) < 100:
        raise _unfit(path, "is cut off; give a complete copy")
    size = status.st_size + _size(_beside(path, "-wal"))
    if size > MAX_DATABASE:
        raise too_large(path, "database", size, MAX_DATABASE)
    return header


def _copy(path: Path, copy: Path, header: bytes, tell: Callable[[int, int], None]) -> str:
    """Make a plain copy without a write-ahead log; return how it was made."""
    options = _read_only(path, header)
    if options:
        try:
            _back_up(path, options, copy, tell)
        except sqlite3.OperationalError as error:
            name = error.sqlite_errorname
            if not name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")):
                raise
        else:
            _patch(copy)
            return "backup"
    copy.unlink(missing_ok=True)
    _copy_files(path, copy)
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    _patch(copy)
    return "files"


def _read_only(path: Path, header: bytes) -> str:
    """Return options of a connection that writes nothing, or `` if only a copy can be opened.

    A plain `mode=ro` connection to a database in WAL mode creates the index of the log.
    """
    if header[18] != 2:
        return "mode=ro"
    if _beside(path, "-shm").exists():
        return "mode=ro&readonly_shm=1"
    return "" if _size(_beside(path, "-wal")) else "mode=ro&immutable=1"


def _back_up(path: Path, options: str, copy: Path, tell: Callable[[int, int], None]) -> None:
    deadline = time.monotonic() + DATABASE_SECONDS

    def progress(status: int, remaining: int, total: int) -> None:
        if time.monotonic() > deadline:  # a locked database is asked again and again
            raise _unfit(path, f"could not be copied within {DATABASE_SECONDS} s")
        tell(total - remaining, total)

    uri = f"{path.absolute().as_uri()}?{options}"
    with (
        closing(
            sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
        ) as source,
        closing(sqlite3.connect(copy, isolation_level=None)) as target,
    ):
        source.execute("BEGIN")  # one state of the database, however long the copying takes
        source.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        source.backup(target, pages=_PAGES, progress=progress)


def _copy_files(path: Path, copy: Path) -> None:
    names = ("", "-wal", "-journal")
    before = [_stamp(_beside(path, name)) for name in names]
    _check_journal(path)
    for name in names:
        if _beside(path, name).exists():
            shutil.copyfile(_beside(path, name), _beside(copy, name))
    if [_stamp(_beside(path, name)) for name in names] != before:
        raise _unfit(path, "is being written to; stop the program that does, or give a copy")


def _check_journal(path: Path) -> None:
    """Refuse a journal that names another file: rolling it back could delete that file."""
    journal = _beside(path, "-journal")
    if _size(journal) > MAX_DATABASE:
        raise too_large(journal, "database", _size(journal), MAX_DATABASE)
    if _size(journal) and journal.read_bytes().endswith(_SUPER_JOURNAL):
        raise _unfit(
            path, "was left in a transaction over several databases; open it with its program"
        )


def _open(copy: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(copy, isolation_level=None)
    deadline = time.monotonic() + DATABASE_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 1_000_000)
    for setting in (
        "trusted_schema = OFF", "ignore_check_constraints = ON", "foreign_keys = OFF",
        "journal_mode = MEMORY", "synchronous = OFF", "temp_store = MEMORY", "mmap_size = 0",
        "cell_size_check = ON",
    ):  # fmt: skip
        connection.execute(f"PRAGMA {setting}").fetchall()
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    rows = connection.execute("PRAGMA quick_check(1)").fetchall()
    if rows != [("ok",)]:
        what = (
            shown(str(rows[0][0]).replace("*** in database main ***\n", ""))
            if rows
            else "no answer"
        )
        raise _unfit(path, f"is damaged ({what}); recover it first (sqlite3 FILE .recover)")


def _count(connection: sqlite3.Connection) -> int:
    sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
    return int(connection.execute(sql).fetchone()[0])


def _patch(copy: Path) -> None:
    """Mark a copy as one in rollback-journal mode: its pages are whole, its log is not with it."""
    with copy.open("r+b") as file:
        file.seek(18)
        file.write(b"\1\1")


def _restore(copy: Path, header: bytes) -> None:
    """Give header fields that tell of the copying the values of the original.

    Offsets 24 and 92 (change counter, twice), 40 (schema cookie) and 96 (version of the library
    that wrote last). So a database that needed no change comes back byte for byte.
    """
    with copy.open("r+b") as file:
        for offset, value in (
            (24, header[24:28]), (92, header[24:28]), (40, header[40:44]), (96, header[96:100]),
        ):  # fmt: skip
            file.seek(offset)
            file.write(value)


def _holds_keys(copy: Path) -> bool:
    """Tell whether a key stands anywhere in a database file, in text of any encoding."""
    with copy.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        wide = data[56:60] != b"\0\0\0\1"  # UTF-16: with its zeros left out it reads as ASCII
        return keys_in_bytes(data) or (wide and keys_in_bytes(data[:].translate(None, b"\0")))


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        name = error.sqlite_errorname or ""
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise _unfit(path, "is locked by another program; stop it, or give a copy") from None
        if name == "SQLITE_INTERRUPT":
            raise _unfit(path, f"could not be checked within {DATABASE_SECONDS} s") from None
        raise _unfit(path, f"cannot be opened ({shown(str(error))})") from None
    except sqlite3.Error as error:
        raise _unfit(
            path, f"is damaged ({shown(str(error))}); recover it first (sqlite3 FILE .recover)"
        ) from None
    except OSError as error:
        raise _unfit(path, f"cannot be copied: {reason_of(error)}") from None


def _unfit(path: Path, what: str) -> IntakeError:
    return IntakeError(f"database {shown(path)}: {what}")


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat() if path.exists() else None
    return (status.st_size, status.st_mtime_ns) if status else (0, 0)
