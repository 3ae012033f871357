"""Printing: text for people, JSON for programs; case data never reaches a terminal raw."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

# Control characters, bidirectional overrides, invisible marks and lone surrogates: what could
# drive a terminal or reorder what a reader sees.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def safe(text: str) -> str:
    """Return text with everything that could drive a terminal shown as an escape."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str, width: int = 100) -> str:
    """Return text as one safe line of at most `width` characters; a cut is shown as `…`."""
    line = safe(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 1] + "…"


def say(text: str = "") -> None:
    """Print a line of text for people to stdout."""
    sys.stdout.write(safe(text) + "\n")


def note(text: str) -> None:
    """Print a remark to stderr, beside the answer."""
    sys.stderr.write(safe(text) + "\n")


def print_json(value: Any) -> None:
    """Print one JSON document to stdout: indented for a terminal, else one line."""
    import orjson

    options = orjson.OPT_APPEND_NEWLINE | (orjson.OPT_INDENT_2 if sys.stdout.isatty() else 0)
    try:
        data = orjson.dumps(value, option=options)
    except TypeError:  # integers over 64 bits and lone surrogates: exact, but not for orjson
        from ledger.canonical import to_bytes

        data = to_bytes(value) + b"\n"
    # Inside strings `\uXXXX` means the same character, and drives no terminal.
    raw(safe(data.decode()).encode())


def raw(data: bytes) -> None:
    """Write bytes to stdout exactly."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table: aligned for a terminal, tab separated otherwise."""
    if not sys.stdout.isatty():
        say("\t".join(columns))
        for row in rows:
            say("\t".join(one_line(str(cell), 2000) for cell in row))
        return
    _rich_table(columns, rows)


def _rich_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as RichTable

    shown: Table = RichTable(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        shown.add_column(column, overflow="fold")
    for row in rows:
        shown.add_row(*(escape(one_line(str(cell), 2000)) for cell in row))
    Console().print(shown)
