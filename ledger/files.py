"""A new file appears complete under its name, or not at all."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ledger.errors import CaseExists, LedgerLocked, StorageError
from ledger.storage import APPLICATION_ID, sync, translated


@contextmanager
def new_file(path: Path, *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """Yield a file to write to; it gets its name when the block ends well.

    An error or a kill leaves nothing under the name (a kill: a hidden `.NAME.new`, which the next
    attempt takes over).

    Raises:
        CaseExists: something stands at `path` and `overwrite` is false.
        StorageError: the folder is missing, full or cannot be written.
    """
    temporary = temporary_name(path)
    drop_second_name(path)
    if not overwrite and (path.exists() or path.is_symlink()):
        raise CaseExists(f"{path}: already exists; choose another name or pass --force")
    if overwrite and is_case(path):
        raise CaseExists(f"{path}: is a case, which is never replaced; choose another name")
    if not path.parent.is_dir():
        raise StorageError(f"{path}: the folder {path.parent} does not exist; create it first")
    with translated(path):
        handle = _take(path, temporary)
        with os.fdopen(handle, "w+b") as file:
            try:
                file.truncate(0)
                yield file
                file.flush()
                os.fsync(handle)
                _publish(temporary, path, overwrite)
            finally:
                temporary.unlink(missing_ok=True)


def is_case(path: Path) -> bool:
    """Tell whether a file is a case ledger, by its first bytes."""
    try:
        with path.open("rb") as file:
            head = file.read(72)
    except OSError:
        return False
    return head.startswith(b"SQLite format 3\0") and head[68:] == APPLICATION_ID.to_bytes(4, "big")


def temporary_name(path: Path) -> Path:
    """Return the hidden name under which a new file is filled."""
    return path.with_name(f".{path.name}.new")


def drop_second_name(path: Path) -> None:
    """Take away what a kill between naming a new file and tidying up left: its first name."""
    temporary = temporary_name(path)
    with suppress(OSError):
        if temporary.samefile(path):
            temporary.unlink()


def _take(path: Path, temporary: Path) -> int:
    """Open the temporary file under a lock: nobody else's, and under no other name.

    Its last owner may have been killed, or may just have finished, between giving the file its name
    and taking the temporary one away. Then the file open here is that finished one.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        handle = os.open(temporary, flags, 0o600)
        try:
            _lock(path, handle)
            mine = os.fstat(handle)
            with suppress(FileNotFoundError):
                if temporary.stat().st_ino == mine.st_ino:
                    if mine.st_nlink == 1:
                        return handle
                    temporary.unlink()
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _lock(path: Path, handle: int) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LedgerLocked(f"{path}: another process is writing it; run again later") from None


def _publish(temporary: Path, path: Path, overwrite: bool) -> None:
    if overwrite:
        temporary.replace(path)
    else:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise CaseExists(f"{path}: already exists; nothing was written") from None
    sync(path.parent)
