"""Printing: text for people, JSON for programs; case data never reaches a terminal raw."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from ledger.reader import Head

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
    """Print a remark to stderr, beside the answer; if nobody reads it any more, work goes on."""
    try:
        sys.stderr.write(safe(text) + "\n")
        sys.stderr.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def spoken(name: str) -> str:
    """Return a name of the program (`change_request`) as words."""
    return name.replace("_", " ")


def head_json(head: Head) -> dict[str, Any]:
    """Return a head as every JSON document shows it (docs/json-output.md)."""
    return {"position": head.position, "chain": head.chain.hex()}


def print_json(value: Any) -> None:
    """Print one JSON document to stdout: indented for a terminal, else one line."""
    raw(json_bytes(value, indent=sys.stdout.isatty()))


def json_bytes(value: Any, *, indent: bool) -> bytes:
    """Return a JSON document that drives no terminal, with a line feed at its end."""
    import orjson

    options = orjson.OPT_APPEND_NEWLINE | (orjson.OPT_INDENT_2 if indent else 0)
    try:
        data = orjson.dumps(value, option=options)
    except TypeError:  # integers over 64 bits and lone surrogates: exact, but not for orjson
        from ledger.canonical import to_bytes

        data = to_bytes(value) + b"\n"
    # Inside strings `\uXXXX` means the same character, and drives no terminal.
    return safe(data.decode()).encode()


def raw(data: bytes) -> None:
    """Write bytes to stdout exactly."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, one_line_a_row: bool = False
) -> None:
    """Print a table: aligned for a terminal, tab separated otherwise.

    Args:
        columns: the headings.
        rows: the cells.
        one_line_a_row: in a narrow terminal, cut cells (not those of the first column) instead of
            folding them.
    """
    if not sys.stdout.isatty():
        say("\t".join(columns))
        for row in rows:
            say("\t".join(one_line(str(cell), 2000) for cell in row))
        return
    _rich_table(columns, list(rows), one_line_a_row)


def _rich_table(columns: Sequence[str], rows: Sequence[Sequence[object]], cut: bool) -> None:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    shown: Table = RichTable(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(columns):
        # A column that must not wrap keeps its width as long as others can give way.
        shown.add_column(
            Text(column, no_wrap=cut),
            overflow="ellipsis" if cut and number else "fold",
            no_wrap=cut and not number,
        )
    for row in rows:
        shown.add_row(*(Text(one_line(str(cell), 2000), no_wrap=cut or None) for cell in row))
    Console().print(shown)


def money(nano_usd: int | None) -> str:
    """Return an amount in US dollars; `unmeasured` if the provider did not say."""
    return "unmeasured" if nano_usd is None else _dollars(nano_usd)


def _dollars(nano_usd: int) -> str:
    """A loss has its sign before the dollar."""
    return f"{'-' if nano_usd < 0 else ''}${abs(nano_usd) / 1e9:.4f}"
