"""Reading files that the user named: regular files only, never a byte more than the limit.

Opening is done without following what may block: a FIFO, a device or a socket is refused before
it is read. `os.stat` comes first because merely opening some devices does something.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from phases.intake.errors import IntakeError, reason_of, shown
from phases.intake.limits import CHUNK

_ZEROS = bytes(CHUNK)
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO (named pipe)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def kind_of(mode: int) -> str:
    """Return in words what a file mode says that is no regular file."""
    return _KINDS.get(stat.S_IFMT(mode), "a special file")


def open_regular(path: str | Path, *, follow: bool = True) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        OSError: as the system says; also for anything that is no regular file (errno 0), and for a
            symbolic link with `follow=False`.
    """
    mode = os.stat(path, follow_symlinks=follow).st_mode  # noqa: PTH116 - may be a surrogate path
    if not stat.S_ISREG(mode):
        raise OSError(f"it is {kind_of(mode)}")
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    handle = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("it was exchanged for something else while it was opened")
    return os.fdopen(handle, "rb", buffering=0)


def chunks_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield an open file from its beginning in pieces of at most CHUNK bytes.

    Holes of a sparse file are not read: the system would fill memory with zeros for them.
    """
    if isinstance(file, io.FileIO) and _is_sparse(file):
        yield from _with_holes(file)
    else:
        while data := file.read(CHUNK):
            yield data


def _is_sparse(file: io.FileIO) -> bool:
    status = os.fstat(file.fileno())
    return status.st_size > CHUNK and status.st_blocks * 512 < status.st_size // 2


def _with_holes(file: io.FileIO) -> Iterator[bytes]:
    position, size = 0, os.fstat(file.fileno()).st_size
    while position < size:
        try:
            start = os.lseek(file.fileno(), position, os.SEEK_DATA)
        except OSError:  # nothing but a hole from here on
            start = size
        for left in range(start - position, 0, -CHUNK):
            yield _ZEROS[:left]
        position = start
        end = os.lseek(file.fileno(), start, os.SEEK_HOLE) if start < size else size
        file.seek(start)
        while position < end and (data := file.read(min(CHUNK, end - position))):
            position += len(data)
            yield data
        if position < end:  # it was cut off meanwhile
            return


def require(path: Path, what: str) -> os.stat_result:
    """Return the status of a path that the user named.

    Raises:
        IntakeError: if there is nothing, or it cannot be looked at.
    """
    try:
        return path.stat()
    except FileNotFoundError:
        raise IntakeError(f"{what} {shown(path)}: there is no such file; check the path") from None
    except OSError as error:
        raise IntakeError(f"{what} {shown(path)}: cannot be read: {reason_of(error)}") from None
    except ValueError:  # a NUL in the name
        raise IntakeError(f"{what} {shown(path)}: is no possible file name") from None


def read_file(path: Path, what: str, limit: int) -> bytes:
    """Return a regular file's bytes; `what` names it in messages, `limit` is in bytes.

    Raises:
        IntakeError: if it is missing, no regular file, unreadable or larger than `limit`.
    """
    status = require(path, what)
    if not stat.S_ISREG(status.st_mode):
        raise IntakeError(f"{what} {shown(path)}: is {kind_of(status.st_mode)}; give a file")
    if status.st_size > limit:
        raise too_large(path, what, status.st_size, limit)
    try:
        with open_regular(path) as file:
            data = _read_to(file, limit + 1)
    except OSError as error:
        raise IntakeError(f"{what} {shown(path)}: cannot be read: {reason_of(error)}") from None
    if len(data) > limit:
        raise too_large(path, what, len(data), limit)
    return data


def too_large(path: Path, what: str, size: int, limit: int) -> IntakeError:
    """Return the error for a file over its limit."""
    return IntakeError(
        f"{what} {shown(path)}: has {size:,} bytes or more, at most {limit:,} are taken in;"
        " cut it down to the time or the part that matters"
    )


def _read_to(file: BinaryIO, limit: int) -> bytes:
    parts: list[bytes] = []
    room = limit
    while room > 0 and (data := file.read(min(room, CHUNK))):
        parts.append(data)
        room -= len(data)
    return b"".join(parts)
