"""Cuts a report into blocks and a log into excerpts: line ranges to cite, nothing summarised.

A block is a paragraph, a heading with what follows it, a group of list items, a fenced or indented
code block, or a traceback, whatever blank lines these hold. Lines are those of `ledger.lines`.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

MAX_BLOCKS = 400
"""Blocks of one report; beyond it neighbours are joined, so that no line is without a block."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(\s|$)")
_ITEM = re.compile(r"\s{0,8}([-*+]|\d{1,9}[.)])\s")
_INDENTED = re.compile(r"( {4}|\t)\s*\S")
_TRACEBACK = re.compile(r"\s*Traceback \(most recent call last\):")
_CHAINED = ("The above exception was", "During handling of the above")


class Lines(NamedTuple):
    """A range of lines, 1-based, the last included."""

    first: int
    last: int


def report_blocks(lines: list[str]) -> list[Lines]:
    """Return the blocks of a report, in order; together they hold every line that is not blank."""
    blocks: list[Lines] = []
    at = 0
    while at < len(lines):
        if _blank(lines, at):
            at += 1
            continue
        end = _block_end(lines, at)
        last = end
        while _blank(lines, last - 1):
            last -= 1
        blocks.append(Lines(at + 1, last))
        at = end
    return _joined(blocks, MAX_BLOCKS)


def _block_end(lines: list[str], at: int) -> int:
    """Return the index after the block that begins at `at`."""
    if _HEADING.match(lines[at]) or _underlined(lines, at):
        below = _skip_blank(lines, at + (1 if _HEADING.match(lines[at]) else 2))
        if below == len(lines) or _HEADING.match(lines[below]) or _underlined(lines, below):
            return min(below, len(lines))
        return _body_end(lines, below)
    return _body_end(lines, at)


def _body_end(lines: list[str], at: int) -> int:
    fence = _FENCE.match(lines[at])
    if fence:
        return _fence_end(lines, at, fence[1])
    if _TRACEBACK.match(lines[at]):
        return _traceback_end(lines, at)
    if _ITEM.match(lines[at]):
        return _list_end(lines, at)
    if _INDENTED.match(lines[at]):
        return _indented_end(lines, at)
    end = at + 1
    while end < len(lines) and not _blank(lines, end) and not _opens(lines, end):
        end += 1
    return end


def _opens(lines: list[str], at: int) -> bool:
    """Tell whether a line begins a block although no blank line stands before it."""
    line = lines[at]
    return bool(_FENCE.match(line) or _HEADING.match(line) or _TRACEBACK.match(line))


def _underlined(lines: list[str], at: int) -> bool:
    """Tell whether a line is a heading by the line of = or - below it."""
    if at + 1 >= len(lines) or _blank(lines, at) or _opens(lines, at):
        return False
    rule = lines[at + 1].strip()
    return len(rule) >= 3 and (not rule.strip("=") or not rule.strip("-"))


def _fence_end(lines: list[str], at: int, fence: str) -> int:
    for end in range(at + 1, len(lines)):
        line = lines[end].strip()
        if line.startswith(fence) and not line.strip(fence[0]):
            return end + 1
    return len(lines)


def _traceback_end(lines: list[str], at: int) -> int:
    """Return the end of a traceback with all that are chained to it."""
    end = _one_traceback_end(lines, at)
    while True:
        below = _skip_blank(lines, end)
        if below < len(lines) and lines[below].strip().startswith(_CHAINED):
            below = _skip_blank(lines, below + 1)
            end = below if below < len(lines) else len(lines)
        if below >= len(lines) or below != end or not _TRACEBACK.match(lines[below]):
            return end
        end = _one_traceback_end(lines, below)


def _one_traceback_end(lines: list[str], at: int) -> int:
    indent = _indent(lines[at])
    end = at + 1
    while end < len(lines) and not _blank(lines, end) and _indent(lines[end]) > indent:
        end += 1
    while end < len(lines) and not _blank(lines, end) and not _opens(lines, end):
        end += 1  # the exception's message, which may have lines of its own
    return end


def _skip_blank(lines: list[str], at: int) -> int:
    while at < len(lines) and _blank(lines, at):
        at += 1
    return at


def _list_end(lines: list[str], at: int) -> int:
    end = at + 1
    while end < len(lines):
        if _blank(lines, end):
            below = _skip_blank(lines, end)
            # A loose list goes on after blank lines with an item or with indented text.
            if below == len(lines) or not (_ITEM.match(lines[below]) or lines[below][:2].isspace()):
                return end
            end = below
        elif _HEADING.match(lines[end]) or (_opens(lines, end) and not lines[end][:1].isspace()):
            return end
        else:
            end += 1
    return end


def _indented_end(lines: list[str], at: int) -> int:
    end = at + 1
    while end < len(lines) and (_blank(lines, end) or _INDENTED.match(lines[end])):
        end += 1
    return end


def _blank(lines: list[str], at: int) -> bool:
    return not lines[at] or lines[at].isspace()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(blocks: list[Lines], most: int) -> list[Lines]:
    """Join neighbours so that at most `most` blocks remain."""
    if len(blocks) <= most:
        return blocks
    size = math.ceil(len(blocks) / most)
    groups = (blocks[n : n + size] for n in range(0, len(blocks), size))
    return [Lines(group[0].first, group[-1].last) for group in groups]
