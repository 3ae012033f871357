"""A child that is meant to be killed: it writes without end and acknowledges what is done.

    python -P tests/crash/writer.py append|create|export|import PATH SEED

It says `ready` once everything is imported, waits for a line, then works. `append` adds
transactions to the case PATH and acknowledges each with the new head; the others fill the folder
PATH (`create` from nothing, `export` from source.case, `import` from source.zip in it) and
acknowledge each finished file by its name.
"""

from __future__ import annotations

import itertools
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from ledger import canonical, packing
from ledger import recorder as _loaded_now  # noqa: F401 - before `ready`, not in the middle
from ledger.book import Book
from ledger.package import Package, restore
from tests.support import OPENED, evidence


def append(path: Path, rng: random.Random) -> Iterator[str]:
    with Book.open_for_writing(path) as book:
        for _ in itertools.count():
            yield str(_transaction(book, rng))


def create(folder: Path, rng: random.Random) -> Iterator[str]:
    for number in itertools.count():
        path = folder / f"{number}.case"
        if path.exists():
            continue
        with Book.create(path) as book:
            book.append(OPENED)
            for _ in range(5):
                _transaction(book, rng)
        yield path.name


def export(folder: Path, rng: random.Random) -> Iterator[str]:
    with Book.open(folder / "source.case") as book:
        for number in itertools.count():
            path = folder / f"{number % 3}.zip"
            packing.write(book, path, overwrite=True)
            yield path.name


def import_(folder: Path, rng: random.Random) -> Iterator[str]:
    for number in itertools.count():
        path = folder / f"{number}.case"
        if path.exists():
            continue
        with Package(folder / "source.zip") as package:
            restore(package, path)
        yield path.name


def _transaction(book: Book, rng: random.Random) -> object:
    count, first = rng.randint(1, 5), book.head.position
    payloads = [_payload(rng) for _ in range(count)]
    events = [
        evidence(first + n, data, action=f"T{first}", kind=f"{n + 1} of {count}")
        for n, data in enumerate(payloads)
    ]
    return book.append(*events, payloads=payloads)


def _payload(rng: random.Random) -> bytes:
    """50 bytes to 80 KB, small ones more often: bytes, or JSON that shares parts with others."""
    size = int(50 * 1600 ** rng.random())
    if rng.random() < 0.5:
        return rng.randbytes(size)
    parts = [_part(rng.randrange(200)) for _ in range(size // 1500)]
    return canonical.to_bytes({"nonce": rng.getrandbits(64), "parts": parts})


def _part(seed: int) -> dict[str, object]:
    return {"id": seed, "text": random.Random(seed).randbytes(700).hex()}


WORK = {"append": append, "create": create, "export": export, "import": import_}


def main(mode: str, path: str, seed: str) -> None:
    os.write(1, b"ready\n")
    sys.stdin.readline()
    for done in WORK[mode](Path(path), random.Random(int(seed))):
        os.write(1, f"{done}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
