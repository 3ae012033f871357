"""A child that dies at every boundary of a script: one death at each, and what is left of each.

    python -P tests/crash/boundaries.py create|append|export|import FOLDER

FOLDER holds what the script starts from (`start.case`, `start.zip`). A boundary is the moment
before and after every SQLite statement, commits included, and before and after every call that
changes the file system (link, rename, unlink, fsync, the anchor's write). For boundary n, a copy
of the process works in FOLDER/n and ends there without any clean-up, like a kill. One more lives on
in FOLDER/whole. In each folder, `acknowledged` holds what was done; FOLDER/deaths.json lists
the folders.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

from ledger import packing
from ledger import recorder as _loaded_now  # noqa: F401 - once, not in every copy
from ledger.book import Book
from ledger.clock import Sources
from ledger.package import Package, restore
from tests.support import AT, OPENED, evidence

FIXED = Sources(now=lambda: AT, random_bytes=bytes)
"""Same events, same nonces: an undisturbed and a resumed case have the same head."""

TRANSACTIONS = 4
"""Of two events each, after the first event."""
CHANGES = ("link", "rename", "replace", "unlink", "fsync", "pwrite", "ftruncate", "open", "close")


def steps(book: Book) -> Iterator[str]:
    """Append what is missing of the script's transactions; yield the head after each."""
    if book.head.position == 0:
        yield str(book.append(OPENED))
    while (number := (book.head.position - 1) // 2) < TRANSACTIONS:
        payloads = [b'[%d,"%s"]' % (number, b"x" * size) for size in (40, 9000)]
        events = [
            evidence(2 * number + n, data, kind=f"{n + 1} of 2") for n, data in enumerate(payloads)
        ]
        yield str(book.append(*events, payloads=payloads))


def create(folder: Path) -> Iterator[str]:
    with Book.create(folder / "a.case", sources=FIXED) as book:
        done = list(steps(book))
    yield done[-1]


def append(folder: Path) -> Iterator[str]:
    with Book.open_for_writing(folder / "a.case", sources=FIXED) as book:
        yield from steps(book)


def export(folder: Path) -> Iterator[str]:
    with Book.open(folder / "a.case") as book:
        yield packing.write(book, folder / "a.zip")


def import_(folder: Path) -> Iterator[str]:
    with Package(folder / "a.zip") as package:
        yield str(restore(package, folder / "a.case", sources=FIXED))


SCRIPTS = {"create": create, "append": append, "export": export, "import": import_}
STARTS = {
    "create": (),
    "append": ("a.case", "a.case.head"),
    "export": ("a.case", "a.case.head"),
    "import": ("a.zip",),
}


class Boundaries:
    """Counts boundaries and ends the process at one of them."""

    def __init__(self, last: int) -> None:
        self.passed: list[str] = []
        self.last = last

    def reach(self, name: str) -> None:
        self.passed.append(name)
        if len(self.passed) == self.last:
            os._exit(9)

    def watch(self) -> None:
        """Make every boundary call `reach`."""
        for name in CHANGES:
            setattr(os, name, self._around(name, getattr(os, name)))
        connect, boundaries = sqlite3.connect, self

        class Connection(sqlite3.Connection):
            def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
                cursor = super().execute(statement, *arguments)
                boundaries.reach(f"after {statement}")
                return cursor

            def close(self) -> None:
                boundaries.reach("before close")
                super().close()
                boundaries.reach("after close")

        def watched(*arguments: Any, **options: Any) -> sqlite3.Connection:
            connection = connect(*arguments, factory=Connection, **options)
            connection.set_trace_callback(lambda text: self.reach(f"before {text[:60]}"))
            return connection

        sqlite3.connect = watched  # type: ignore[assignment]

    def _around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def watched(*arguments: Any, **options: Any) -> Any:
            self.reach(f"before {name}")
            result = call(*arguments, **options)
            self.reach(f"after {name}")
            return result

        return watched


def live(mode: str, folder: Path, last: int) -> list[str]:
    """Work in `folder` up to the boundary `last` in a copy of this process.

    Returns:
        The boundaries it passed; none if it died.
    """
    folder.mkdir()
    for name in STARTS[mode]:
        shutil.copy(folder.parent / name.replace("a.", "start."), folder / name)
    acknowledged = os.open(folder / "acknowledged", os.O_WRONLY | os.O_CREAT)
    receive, send = os.pipe()
    if os.fork() == 0:
        boundaries = Boundaries(last)
        boundaries.watch()
        for done in SCRIPTS[mode](folder):
            os.write(acknowledged, f"{done}\n".encode())
        os.write(send, json.dumps(boundaries.passed).encode())
        os._exit(0)
    os.close(send)
    os.close(acknowledged)
    with os.fdopen(receive) as pipe:
        passed = json.loads(pipe.read() or "[]")
    os.wait()
    return list(passed)


def main(mode: str, folder: str) -> None:
    passed = live(mode, Path(folder) / "whole", -1)
    names = ["whole"]
    for number in range(1, len(passed) + 1):
        names.append(str(number))
        assert live(mode, Path(folder) / names[-1], number) == [], "it outlived its death"
    (Path(folder) / "deaths.json").write_text(json.dumps(names))


if __name__ == "__main__":
    main(*itertools.islice(sys.argv, 1, None))
