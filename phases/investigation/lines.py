"""A text artefact and its numbered lines; what a line is, `ledger.lines` says."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from ledger.lines import split_lines, unify


class Text:
    """A decoded text artefact, its line ends made line feeds; lines and columns are 1-based."""

    def __init__(self, text: str) -> None:
        self.text = unify(text)

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends."""
        return split_lines(self.text)

    @cached_property
    def data(self) -> bytes:
        """The text in UTF-8, for searching and parsing."""
        return self.text.encode("utf-8", "replace")

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
        """Return where the line after the one at `offset` starts; past the data for the last."""
        end = self.data.find(b"\n", offset)
        return len(self.data) + 1 if end < 0 else end + 1

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
