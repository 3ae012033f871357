"""A child that holds a case until its input ends.

python -P tests/ledger/faults/hold.py exclusive|writer PATH
"""

from __future__ import annotations

import sqlite3
import sys


def exclusive(path: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    wait()


def writer(path: str) -> None:
    from ledger.book import Book

    with Book.open_for_writing(path):
        wait()


def wait() -> None:
    sys.stdout.write("held\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    {"exclusive": exclusive, "writer": writer}[sys.argv[1]](sys.argv[2])
