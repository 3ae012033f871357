"""What tests of several folders share: sample events, and children that are started alike."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ledger import canonical
from ledger.book import Book
from ledger.events import CaseOpened, EvidenceRecorded, Ref

AT = "2024-05-17T09:30:00.000000Z"
CASE_ID = "bug-17"

OPENED = CaseOpened(at=AT, case_id=CASE_ID, trial_id="trial-1", title="A bug", program="tests")


def ref(data: bytes) -> Ref:
    """Return the reference that an event holds to a payload."""
    return Ref(digest=canonical.digest(data), size=len(data))


def evidence(
    number: int, data: bytes, *, action: str = "A1", kind: str = "read"
) -> EvidenceRecorded:
    """Return an event that names `data` as its payload."""
    return EvidenceRecorded(
        at=AT,
        evidence=f"E{number}",
        action=action,
        kind=kind,
        content=ref(data),
        characters=len(data),
        complete=True,
        found=True,
    )


def make_case(path: Path, events: int = 3) -> Path:
    """Create a closed case of `events` events, one payload for each but the first."""
    with Book.create(path) as book:
        book.append(OPENED)
        for number in range(1, events):
            data = f"evidence {number}\n".encode() * 200
            book.append(evidence(number, data), payloads=[data])
    return path


def python(script: Path, *arguments: object) -> list[str]:
    """Return the command of a child: this interpreter, nothing of the folder on its path."""
    return [sys.executable, "-P", str(script), *map(str, arguments)]


def start(script: Path, *arguments: object) -> subprocess.Popen[bytes]:
    """Start a child that is spoken to over pipes."""
    return subprocess.Popen(
        python(script, *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
