"""What a source consists of, be it folder, archive or git revision: files, and what is left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Member(NamedTuple):
    """One file. `chunks` must be read (or given up) before the next member is asked for."""

    path: str
    chunks: Iterator[bytes]


class Skipped(NamedTuple):
    """Something left out: a path (a folder ends in `/`), and a reason code of docs/format.md."""

    path: str
    reason: str
