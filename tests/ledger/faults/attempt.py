"""A child that tries one thing as an ordinary user and tells how it went.

    python -P tests/ledger/faults/attempt.py read|append|create|export|import PATH

Started by root, it gives up its rights first (root may write anywhere). Prints one JSON object:
`{"head": position}` or `{"error": class, "message": text}`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from ledger import packing
from ledger import recorder as _loaded_now  # noqa: F401 - nobody may not read the interpreter
from ledger.book import Book
from ledger.errors import LedgerError
from ledger.package import Package, restore
from tests.support import evidence, make_case

NOBODY = 65534


def read(path: Path) -> int:
    with Book.open(path) as book:
        return len(list(book.events()))


def append(path: Path) -> int:
    with Book.open_for_writing(path) as book:
        return book.append(evidence(1, b"by nobody"), payloads=[b"by nobody"]).position


def create(path: Path) -> int:
    make_case(path)
    return 3


def export(path: Path) -> int:
    with Book.open(path) as book:
        packing.write(book, path.with_suffix(".zip"))
        return book.head.position


def import_(path: Path) -> int:
    with Package(path.with_name("source.zip")) as package:
        return restore(package, path).position


ACTIONS = {"read": read, "append": append, "create": create, "export": export, "import": import_}


def main(action: str, path: str) -> None:
    "".encode("cp437")  # zipfile needs it, and nobody may not read the interpreter's files
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        outcome = {"head": ACTIONS[action](Path(path))}
    except LedgerError as error:
        outcome = {"error": type(error).__name__, "message": str(error)}
    sys.stdout.write(json.dumps(outcome))


if __name__ == "__main__":
    main(*sys.argv[1:])
