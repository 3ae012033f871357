"""The one error of the intake, and how names are shown in it.

A message is one line: what, where, what to do. Names come from archives and file systems, so
everything that could move a terminal's cursor or reverse its text is escaped.
"""

from __future__ import annotations

import os
from pathlib import Path

MAX_SHOWN = 200
"""Longest name in a message, in characters; a longer one is cut in its middle."""


class IntakeError(Exception):
    """Bad input: what it is, where, and what to do; one line."""


def shown(name: str | Path) -> str:
    """Return a name fit for one line on a terminal: control and format characters escaped."""
    text = "".join(ch if ch.isprintable() else _escaped(ch) for ch in str(name))
    if len(text) <= MAX_SHOWN:
        return text
    half = MAX_SHOWN // 2
    return f"{text[:half]}…{text[-half:]}"


def reason_of(error: OSError) -> str:
    """Return why the operating system refused, in its words, without a path."""
    return os.strerror(error.errno).lower() if error.errno else str(error)


def _escaped(ch: str) -> str:
    code = ord(ch)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that os.fsdecode could not decode
        return f"\\x{code - 0xDC00:02x}"
    return ch.encode("unicode_escape").decode("ascii")
