"""A database of the snapshot, read through a guarded child process (database_child.py).

Limits that are the same everywhere come first (instructions, rows, bytes); time and memory are the
last resort, and hold whatever the query or the database file does.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phases.investigation import database_child

MEMORY = 1024 * 2**20
"""Bytes of address space a database child may have."""

START_SECONDS = 20.0


@dataclass(frozen=True)
class Limits:
    """Bounds of one query. `steps`: SQLite instructions; `length`: bytes of one value inside
    SQLite; `value`: characters (bytes) returned of one value; `count`: rows counted beyond the
    page.
    """

    steps: int = 50_000_000
    seconds: float = 5.0
    length: int = 10_000_000
    value: int = 500
    bytes: int = 2_000_000
    count: int = 100_000


MODEL = Limits()
"""For statements a model or a person wrote."""

OURS = Limits(steps=200_000_000, seconds=20.0, length=1_000_000_000, count=10_000_000)
"""For the fixed statements of describe_database and profile_table."""


@dataclass(frozen=True)
class Rows:
    """The answer to a query. `seen` counts rows from the first one on, `stopped` names the limit
    that ended it ("" if it ran to its end), `tables` the tables it read, `steps` its instructions.
    """

    columns: list[str]
    rows: list[list[Any]]
    seen: int
    stopped: str
    tables: list[str]
    steps: int


class DatabaseRefused(Exception):
    """A statement is not one that only reads, has an error, or the file is no readable database.

    `kind` is `not_read_only`, `sql` or `unreadable`.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Database:
    """Reads one SQLite file in a child process, started at the first query and after each kill."""

    def __init__(self, content: Callable[[], bytes]) -> None:
        self._content = content
        self._held = _Held()
        weakref.finalize(self, self._held.release)  # also at the end of the program

    def query(
        self,
        sql: str,
        parameters: Sequence[Any] = (),
        *,
        trusted: bool = False,
        limits: Limits = MODEL,
        offset: int = 0,
        rows: int = 100,
    ) -> Rows:
        """Return rows `offset` … `offset + rows` of a statement, values in the child's short form.

        `trusted` allows the pragmas that describe a table; only our own statements may use it.

        Raises:
            DatabaseRefused: if the statement may not or cannot be carried out.
        """
        job = {
            "sql": sql, "parameters": tuple(parameters), "trusted": trusted, "offset": offset,
            "rows": rows, "count": limits.count, "steps": limits.steps, "seconds": limits.seconds,
            "length": limits.length, "value": limits.value, "bytes": limits.bytes,
        }  # fmt: skip
        answer = self._ask(job, limits.seconds)
        error = answer["error"]
        if error in ("not_read_only", "sql", "unreadable"):
            raise DatabaseRefused(error, answer["message"])
        return Rows(
            answer["columns"], answer["rows"], answer["seen"], error,
            answer["tables"], answer["steps"],
        )  # fmt: skip

    def close(self) -> None:
        """End the child and delete the file; a later query starts anew."""
        self._held.release()

    def _ask(self, job: dict[str, Any], seconds: float) -> dict[str, Any]:
        child = self._start()
        try:
            _write(child, job)
            # The child looks at its own clock first; a kill loses the rows found.
            answer: dict[str, Any] = _read(child, seconds * 1.25 + 1)
            return answer
        except TimeoutError:
            self._held.stop()
            stopped = "seconds"
        except (EOFError, OSError):
            self._held.stop()
            stopped = "memory"  # out of memory, or the file made SQLite fall over
        return {"columns": [], "rows": [], "seen": 0, "error": stopped, "tables": [], "steps": 0}

    def _start(self) -> subprocess.Popen[bytes]:
        child = self._held.child
        if child is not None and child.poll() is None:
            return child
        self._held.stop()
        file = self._held.file(self._content)
        command = [sys.executable, "-I", "-S", database_child.__file__, str(file)]
        child = self._held.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "TZ": "UTC"}, cwd=file.parent,
        )  # fmt: skip
        try:
            _write(child, {"memory": MEMORY})
            opened = _read(child, START_SECONDS)
        except (TimeoutError, EOFError, OSError):
            opened = {"error": "unreadable", "message": "the database could not be opened"}
        if opened["error"]:
            self._held.stop()
            raise DatabaseRefused(opened["error"], opened["message"])
        return child


class _Held:
    """The child and the folder of a database, apart from it for its finalizer to reach them."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[bytes] | None = None
        self.folder: str | None = None

    def file(self, content: Callable[[], bytes]) -> Path:
        """Return the private copy of the database, written at the first call."""
        if self.folder is None:
            self.folder = tempfile.mkdtemp(prefix="caseledger-")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(os.open(self._path, flags, 0o600), "wb") as file:
                file.write(content())
        return self._path

    @property
    def _path(self) -> Path:
        return Path(self.folder or "", "snapshot.db")

    def stop(self) -> None:
        """End the child."""
        child, self.child = self.child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                # What was not yet written is of no use to a dead child.
                with contextlib.suppress(OSError):
                    stream.close()

    def release(self) -> None:
        """End the child and delete the folder."""
        self.stop()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder = None


def _write(child: subprocess.Popen[bytes], value: Any) -> None:
    assert child.stdin is not None
    data = marshal.dumps(value)
    child.stdin.write(len(data).to_bytes(8, "big") + data)
    child.stdin.flush()


def _read(child: subprocess.Popen[bytes], seconds: float) -> Any:
    assert child.stdout is not None
    deadline = time.monotonic() + seconds
    length = int.from_bytes(_exactly(child.stdout.fileno(), 8, deadline), "big")
    # The child runs our code; what it may be made to send are values of these few types only.
    return marshal.loads(_exactly(child.stdout.fileno(), length, deadline))  # noqa: S302


def _exactly(descriptor: int, length: int, deadline: float) -> bytes:
    parts: list[bytes] = []
    while length:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        part = os.read(descriptor, min(length, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
