"""Printing: text for people, JSON for programs; case data never reaches a terminal raw."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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


def terminal_width() -> int | None:
    """Return the columns of the terminal that stdout is; None if it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def indented(text: str, width: int, indent: str) -> str:
    """Return text wrapped at words for a terminal, each line after an indent."""
    return textwrap.fill(
        text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, one_line_a_row: bool = False
) -> None:
    """Print a table: aligned for a terminal, tab separated otherwise.

    A terminal that is too narrow for columns that can be read gets each row as a block: the first
    cell, then `heading: cell` for the others. Nothing is left out for want of width.

    Args:
        columns: the headings.
        rows: the cells.
        one_line_a_row: cut long cells (not those of the first column) instead of folding them.
    """
    cells = [[one_line(str(cell), 2000) for cell in row] for row in rows]
    width = terminal_width()
    if width is None:
        for row in (columns, *cells):
            say("\t".join(row))
    elif widths := _widths(columns, cells, width, cut=one_line_a_row):
        _aligned(columns, cells, widths, cut=one_line_a_row)
    else:
        _blocks(columns, cells, width)


_GAP = 2
"""Blanks between columns."""

_CUT, _TEXT, _WORD = 12, 20, 32
"""The least that a column keeps: of a cell that may be cut, of a text, of its longest word."""


def _widths(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int, *, cut: bool
) -> list[int]:
    """Return the width of each column, empty if they cannot be read side by side."""
    full, least = [], []
    for number, column in enumerate(zip(columns, *rows, strict=True)):
        longest = max(map(_columns, column))
        words = max((_columns(word) for cell in column for word in cell.split()), default=0)
        kept = max(_columns(column[0]), _CUT) if cut else max(min(words, _WORD), _TEXT)
        full.append(longest)
        least.append(longest if cut and number == 0 else min(longest, kept))
    spare = width - sum(least) - _GAP * (len(columns) - 1)
    if spare < 0:
        return []
    for number, wanted in enumerate(full):
        more = min(wanted - least[number], spare)
        least[number] += more
        spare -= more
    return least


def _columns(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _aligned(
    columns: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], *, cut: bool
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for column, width in zip(columns, widths, strict=True):
        shown.add_column(
            Text(column), width=width, overflow="ellipsis" if cut else "fold", no_wrap=cut
        )
    for row in rows:
        shown.add_row(*map(Text, row))
    Console(width=sum(widths) + _GAP * len(widths)).print(shown)


def _blocks(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> None:
    """Print each row as a block, as many cells on a line as it takes."""
    for first, *others in rows:
        say(first)
        line = ""
        for heading, cell in zip(columns[1:], others, strict=True):
            pair = f"{heading}: {cell}" if heading else cell
            if line and cell and len(line) + _GAP + len(pair) + 2 > width:
                say(indented(line, width, "  "))
                line = ""
            line += f"{'  ' if line else ''}{pair}" if cell else ""
        if line:
            say(indented(line, width, "  "))


def money(nano_usd: int | None) -> str:
    """Return an amount in US dollars; `unmeasured` if the provider did not say."""
    return "unmeasured" if nano_usd is None else _dollars(nano_usd)


def _dollars(nano_usd: int) -> str:
    """A loss has its sign before the dollar."""
    return f"{'-' if nano_usd < 0 else ''}${abs(nano_usd) / 1e9:.4f}"
