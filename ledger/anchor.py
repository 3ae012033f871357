"""The head anchor beside a case file: what the chain cannot show, a missing tail; and the lock.

Form and meaning: docs/format.md, "The head anchor". It is replaced after each commit in one small
write without fsync: a kill leaves the old or the new line.
"""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path

from ledger.errors import LedgerLocked
from ledger.reader import Head
from ledger.storage import translate_os

_LINE = re.compile(rb"caseledger-head/1 ([0-9]{1,18}) ([0-9a-f]{64})\n")


def anchor_path(case: Path) -> Path:
    """Return where the anchor of a case file stands."""
    return case.with_name(case.name + ".head")


def read_anchor(case: Path) -> Head | None:
    """Return the head the anchor knows; None if it is missing or unreadable."""
    try:
        found = _LINE.fullmatch(anchor_path(case).read_bytes())
    except OSError:
        return None
    return Head(int(found[1]), bytes.fromhex(found[2].decode())) if found else None


class AnchorLock:
    """The anchor file held under an exclusive lock: one writing process for each case."""

    def __init__(self, case: Path) -> None:
        """Take the lock without waiting.

        Raises:
            LedgerLocked: another process has it.
        """
        self._path = anchor_path(case)
        self._case = case
        self._handle = self._acquire()
        self._length = -1  # of the line written last; not known yet

    def write(self, head: Head) -> None:
        """Replace the anchor's line."""
        line = f"caseledger-head/1 {head.position} {head.chain.hex()}\n".encode()
        try:
            os.pwrite(self._handle, line, 0)
            if not 0 <= self._length <= len(line):
                os.ftruncate(self._handle, len(line))
            self._length = len(line)
        except OSError as error:
            kind = type(translate_os(error, self._path))
            raise kind(
                f"{self._case}: its anchor could not be written ({error.strerror}); the append "
                "itself was written: mend the cause, then open the case again"
            ) from error

    def clear(self) -> None:
        """Forget the head: the case is being created."""
        try:
            os.ftruncate(self._handle, 0)
        except OSError as error:
            raise translate_os(error, self._path) from error

    def remove(self) -> None:
        """Remove the anchor of a case file that did not come into being."""
        self._path.unlink(missing_ok=True)

    def release(self) -> None:
        """Let the lock go; the file stays."""
        os.close(self._handle)

    def _acquire(self) -> int:
        while True:
            handle = self._open_locked()
            # The file may have been renamed or removed between opening and locking it.
            try:
                if os.fstat(handle).st_ino == self._path.stat().st_ino:
                    return handle
            except FileNotFoundError:
                pass
            os.close(handle)

    def _open_locked(self) -> int:
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise translate_os(error, self._path) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise LedgerLocked(
                f"{self._case}: another process is writing to it; "
                "wait for it or stop it, then run again"
            ) from None
        except OSError as error:  # a file system without locks
            os.close(handle)
            raise translate_os(error, self._path) from error
        return handle
