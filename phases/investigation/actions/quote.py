"""Numbered lines of a text as evidence: blocks `{path, first, lines:[…]}`, with a window on long
lines.

A block of whole lines has just these members. Of a line that is longer than the window, a block of
its own shows the part from `column` on (1-based) and says how many `characters` the line has.
"""

from __future__ import annotations

from ledger.canonical import to_bytes
from ledger.events import JsonObject
from phases.investigation.actions.base import LINE_CHARACTERS, Tray
from phases.investigation.lines import Text

_BLOCK = 60
"""Characters a block costs beside its lines and name."""


class Quoter:
    """Collects line ranges of texts within a number of characters and gives them back as blocks."""

    def __init__(self, tray: Tray, member: str = "path", window: int = LINE_CHARACTERS) -> None:
        self.tray = tray
        self.member = member
        self.window = window
        self.names: list[str] = []
        self._texts: dict[str, Text] = {}
        self._lines: dict[str, dict[int, int]] = {}  # name → line → column the window should show

    def add(
        self, name: str, text: Text, first: int, last: int, columns: dict[int, int], cost: int = 0
    ) -> bool:
        """Add lines `first` … `last`; false if they do not fit.

        `cost`: characters of what a new name brings along, such as its provenance.
        """
        new = name not in self._lines
        known = self._lines.get(name, {})
        wanted = [n for n in range(max(1, first), min(last, len(text.lines)) + 1) if n not in known]
        price = sum(self._price(text, number) for number in wanted)
        if wanted and wanted[0] - 1 not in known:
            price += _BLOCK + len(name)
        if not self.tray.charge(price + (cost if new else 0)):
            return False
        if new:
            self.names.append(name)
            self._texts[name], self._lines[name] = text, {}
        for number in wanted:
            self._lines[name][number] = columns.get(number, 1)
        return True

    def _price(self, text: Text, number: int) -> int:
        line = text.lines[number - 1]
        extra = _BLOCK * 2 if len(line) > self.window else 0
        return len(to_bytes(line[: self.window]).decode("utf-8")) + 1 + extra

    def blocks(self) -> list[JsonObject]:
        """Return all blocks, names in the order in which they came, lines ascending."""
        return [block for name in self.names for block in self._blocks(name)]

    def _blocks(self, name: str) -> list[JsonObject]:
        blocks: list[JsonObject] = []
        lines = self._texts[name].lines
        for number in sorted(self._lines[name]):
            line = lines[number - 1]
            if len(line) > self.window:
                blocks.append(self._windowed(name, number, line))
                continue
            last = blocks[-1] if blocks else None
            if last and "column" not in last and last["first"] + len(last["lines"]) == number:
                last["lines"].append(line)
            else:
                blocks.append({self.member: name, "first": number, "lines": [line]})
        return blocks

    def _windowed(self, name: str, number: int, line: str) -> JsonObject:
        column = self._lines[name][number]
        start = max(0, min(column - 1, len(line) - 1))
        return {
            self.member: name, "first": number, "lines": [line[start : start + self.window]],
            "column": start + 1, "characters": len(line),
        }  # fmt: skip


def around(column: int, window: int = LINE_CHARACTERS) -> int:
    """Return the column at which a window starts that shows some text before `column`."""
    return max(1, column - window // 4)
