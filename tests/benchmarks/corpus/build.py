"""Builds the corpus on which encodings are measured: phase views of our own cases.

    .venv/bin/python -P tests/benchmarks/corpus/build.py [--out FOLDER]

Analyses the two business cases and the example with the offline analyst, takes the last saved
request of each phase, restores its view, and writes it in three densities (densities.py) to one
file named by its SHA-256. What an analyst asks for changes between releases, so another corpus has
another name; figures name the corpus they were measured on.
"""

from __future__ import annotations

import argparse
import lzma
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ledger import canonical
from ledger.book import Book
from ledger.events import RequestPrepared
from projections import aliases
from projections.requests import restored_view
from projections.saw import saved_document
from tests.benchmarks.corpus.densities import DENSITIES

ROOT = Path(__file__).resolve().parents[3]
FOLDER = Path(__file__).resolve().parent
CASES = {
    "invoice": ROOT / "tests/cases/mp-invoice-wrong-open-amount",
    "renewal": ROOT / "tests/cases/mp-renewal-missing-invoices",
    "parcel": ROOT / "docs/examples/parcel-returns",
}
PHASES = {
    "case_interpretation_resolved": "interpretation",
    "hypotheses": "hypotheses",
    "investigation_project": "investigation",
    "diagnosis_early": "diagnosis_early",
    "diagnosis": "diagnosis",
    "change_request": "change_request",
}
CASELEDGER = Path(sys.executable).parent / "caseledger"


class Document(NamedTuple):
    """One view of the corpus."""

    case: str
    phase: str
    density: str
    view: Any

    @property
    def name(self) -> str:
        return f"{self.case}/{self.phase}/{self.density}"


def load(folder: Path = FOLDER) -> list[Document]:
    """Return the documents of the committed corpus, its digest checked."""
    (path,) = folder.glob("*.json.xz")
    data = path.read_bytes()
    assert canonical.digest(data).removeprefix("sha256:") == path.name.split(".")[0]
    return [Document(*item) for item in canonical.from_bytes(lzma.decompress(data))]


def views(case: Path) -> dict[str, Any]:
    """Return the resolved view of the last request of each phase of a case ledger."""
    found: dict[str, Any] = {}
    with Book.open(case) as book:
        for _, event in book.events():
            if isinstance(event, RequestPrepared):
                phase = PHASES.get(event.protocol.rsplit("_v", 1)[0])
                if phase:
                    document = saved_document(book, event.request, event.document)
                    found[phase] = aliases.resolve(restored_view(document))
    return found


def documents(ledgers: dict[str, Path]) -> Iterator[Document]:
    """Yield every phase of every case in every density."""
    for case, ledger in ledgers.items():
        for phase, view in views(ledger).items():
            for density, show in DENSITIES.items():
                yield Document(case, phase, density, show(view))


def analyse(name: str, material: Path, scratch: Path) -> Path:
    """Run the offline analyst on a copy of a case, its database built anew; return the ledger."""
    copy = scratch / name
    shutil.copytree(material, copy)
    if not list((copy / "db").glob("*.db")):
        (copy / "db").mkdir(exist_ok=True)
        # the business cases write app.db beside themselves
        subprocess.run([sys.executable, "make_db.py"], cwd=copy, check=True)
        for path in copy.glob("*.db"):
            path.rename(copy / "db" / path.name)
    command: list[Any] = [CASELEDGER, "analyze", copy / "report.md", "--source", copy / "source"]
    for option, folder in (("--log", "logs"), ("--db", "db")):
        for path in sorted((copy / folder).iterdir()):
            command += [option, path]
    ledger = scratch / f"{name}.case"
    subprocess.run([*command, "-o", ledger], check=True, capture_output=True)
    return ledger


def main() -> int:
    """Build the corpus and print its name and size."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=FOLDER)
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as scratch:
        ledgers = {name: analyse(name, path, Path(scratch)) for name, path in CASES.items()}
        plain = canonical.to_bytes([list(document) for document in documents(ledgers)])
    data = lzma.compress(plain, preset=9 | lzma.PRESET_EXTREME)
    path = out / f"{canonical.digest(data).removeprefix('sha256:')}.json.xz"
    path.write_bytes(data)
    for old in set(out.glob("*.json.xz")) - {path}:
        old.unlink()
    print(f"{path.name}: {len(plain):,} bytes as {len(data):,}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
