"""Text as numbered lines, as the intake counts them.

A line ends with a line feed and nothing else; a carriage return before it belongs to the line. So a
quoted line is exactly what the snapshot holds. (`str.splitlines` also cuts at form feeds.)
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property


class Text:
    """A decoded text artefact; line numbers and columns are 1-based."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def lines(self) -> list[str]:
        """The lines without line feeds; one at the very end of the text starts no new line."""
        lines = self.text.split("\n")
        if not lines[-1]:
            lines.pop()
        return lines

    @cached_property
    def data(self) -> bytes:
        """The text in UTF-8 for searching and parsing: the same lines, ended by line feeds only.

        So `$` and a parser do not stumble over a carriage return.
        """
        return self.text.replace("\r\n", "\n").encode("utf-8", "replace")

    @cached_property
    def _starts(self) -> list[int]:
        data, starts, at = self.data, [0], -1
        while (at := data.find(b"\n", at + 1)) >= 0:
            starts.append(at + 1)
        return starts

    def place(self, offset: int) -> tuple[int, int]:
        """Return (line, column), both 1-based, of a byte offset into `data`; columns in
        characters.
        """
        line = bisect_right(self._starts, offset)
        start = self._starts[line - 1]
        return line, len(self.data[start:offset].decode("utf-8", "replace")) + 1

    def start_after(self, offset: int) -> int:
        """Return the byte offset at which the line after the one that holds `offset` starts."""
        end = self.data.find(b"\n", offset)
        return len(self.data) if end < 0 else end + 1

    def longest(self) -> int:
        """Return the number of characters of the longest line."""
        return max(map(len, self.lines), default=0)


def decode(data: bytes, encoding: str) -> Text:
    """Decode an artefact with the encoding the intake recorded; latin-1 if that does not fit."""
    try:
        text = data.decode(encoding or "utf-8")
        text.encode("utf-8")  # some codecs produce lone surrogates, which no document may hold
    except (LookupError, ValueError):
        text = data.decode("latin-1")
    return Text(text)
