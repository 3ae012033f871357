"""Exports, verifies and imports cases, and says what that takes.

    python -P tests/benchmarks/bench_packages.py CASE.case …

Each goes there and back: export, verify, import, export again, with requests and report. Anything
but the same head, the same bytes and a clean verification ends it. A copy for sharing withholds
sources, logs and databases. Prints a row of docs/benchmarks.md for each case: size of the ledger,
of the package, of the package with requests and report, of the copy; CPU seconds of export, verify,
import, and of finding what quotes what is withheld.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ledger import packing
from ledger.book import Book
from ledger.package import Package, restore
from ledger.reader import RecordReader
from ledger.redacted import Redacted
from ledger.verify import verify_book
from projections.redaction import redaction
from projections.saw import check_all
from tools.packaging import derived_members, prompt_members, verify_whole


class Row(NamedTuple):
    """One case: counts, bytes, CPU seconds."""

    name: str
    events: int
    payloads: int
    ledger: int
    package: int
    full: int
    shared: int
    export: float
    verify: float
    restore: float
    redact: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each case, and the sum."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("cases", nargs="+", type=Path, metavar="CASE.case")
    rows = []
    for case in parser.parse_args(arguments).cases:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measured(case, Path(folder)))
        print(_line(rows[-1]), flush=True)
    sums = [sum(column) for column in zip(*(row[1:] for row in rows), strict=True)]
    print(_line(Row(f"all {len(rows)}", *sums)))


def measured(case: Path, folder: Path) -> Row:
    """Take one case there and back; return what it took."""
    plain, there, again, shared = (folder / f"{name}.zip" for name in "abcd")
    with Book.open(case) as book:
        write(book, plain, full=False)
        with cpu() as export:
            write(book, there)
        with cpu() as redact:
            copy = Redacted(book, redaction(book).withheld)
        write(copy, shared)
        head, events, payloads = book.head, book.head.position, len(list(book.stored_payloads()))
    with Package(there) as package:
        with cpu() as verify:
            assert verify_whole(package).findings == []
            assert {check.state for check in check_all(package)} == {"same"}
        with cpu() as back:
            assert restore(package, folder / "back.case") == head
    with Book.open(folder / "back.case") as book:
        assert verify_book(book).findings == []
        write(book, again)
    assert again.read_bytes() == there.read_bytes()
    with Package(shared) as package:
        assert verify_whole(package).findings == []
        assert package.head == head
    sizes = [path.stat().st_size for path in (case, plain, there, shared)]
    times = [seconds[0] for seconds in (export, verify, back, redact)]
    return Row(case.stem, events, payloads, *sizes, *times)


def write(record: RecordReader, path: Path, *, full: bool = True) -> None:
    """Write a package, with requests and report unless it shall be plain."""
    extra = prompt_members(record) | derived_members(record, requests=full, report=full)
    packing.write(record, path, extra=extra)


@contextmanager
def cpu() -> Iterator[list[float]]:
    """Yield a list that holds the CPU seconds of the block when it has ended."""
    start, seconds = time.process_time(), [0.0]
    yield seconds
    seconds[0] = time.process_time() - start


def _line(row: Row) -> str:
    megabytes = [f"{size / 1e6:.2f}" for size in row[3:7]]
    seconds = [f"{value:.2f}" for value in row[7:]]
    return f"| {' | '.join([row.name, str(row.events), str(row.payloads), *megabytes, *seconds])} |"


if __name__ == "__main__":
    main()
