"""Definitions in lines that evidence quotes: name, first and last line, from the text alone.

The whole file is rarely on the ledger, so this reads what is there: indentation for Python, opening
lines and the closing brace of the same indentation for brace languages.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

_PYTHON = re.compile(r"^(\s*)(?:async\s+)?(def|class)\s+([^\W\d]\w*)")
_BRACES = (
    re.compile(
        r"^(\s*)(?:export\s+)?(?:default\s+)?(?:async\s+)?(function)\s*\*?\s*([A-Za-z_$][\w$]*)"
    ),
    re.compile(r"^(\s*)(?:export\s+)?(?:default\s+)?(?:abstract\s+)?(class)\s+([A-Za-z_$][\w$]*)"),
    re.compile(
        r"^(\s*)(?:export\s+)?(const|let|var)\s+([A-Za-z_$][\w$]*)\s*=\s*(?:async\s*)?"
        r"(?:function\b|\([^()]*\)\s*=>|[A-Za-z_$][\w$]*\s*=>)"
    ),
    re.compile(r"^(\s*)((?:[A-Za-z_$][\w$]*\.)+)([A-Za-z_$][\w$]*)\s*=\s*(?:async\s+)?function\b"),
    re.compile(
        r"^(\s+)((?:(?:static|async|get|set|public|private|protected)\s+)*)"
        r"(?!(?:if|for|while|switch|catch|return|function|else|do|try|with)\b)"
        r"(#?[A-Za-z_$][\w$]*)\s*\([^;]*\)\s*(?::\s*[\w<>\[\]| ]+)?\s*\{\s*$"
    ),
    re.compile(r"^(\s+)()([A-Za-z_$][\w$]*)\s*:\s*(?:async\s+)?function\b"),
)
_BEGINS_PROSE = re.compile(r"^[rRuU]?(\"\"\"|'''|/\*)")
_CLOSERS = (")", "]", "}", "#", '"""', "'''", "//", "*")


@dataclass(frozen=True)
class Definition:
    """A function, method or class; lines 1-based and inclusive, as far as they are known."""

    path: str
    qualified: str
    kind: str
    first: int
    last: int

    @property
    def name(self) -> str:
        return self.qualified.rpartition(".")[2]


def outline(path: str, lines: Mapping[int, str]) -> list[Definition]:
    """Return the definitions in known lines of a file, by first line."""
    python = path.endswith((".py", ".pyi", ".pyx", ".pyw"))
    numbers = sorted(lines)
    starts = [(n, found) for n in numbers if (found := _opening(lines[n], python))]
    definitions: list[Definition] = []
    stack: list[tuple[int, str, int]] = []  # indentation, qualified name, last line
    for number, (indent, kind, name) in starts:
        last = _end(lines, numbers, number, indent, python)
        while stack and (stack[-1][0] >= indent or stack[-1][2] < number):
            stack.pop()
        qualified = f"{stack[-1][1]}.{name}" if stack else name
        stack.append((indent, qualified, last))
        definitions.append(Definition(path, qualified, kind, number, last))
    return definitions


def prose(lines: Mapping[int, str], first: int, last: int) -> set[int]:
    """Return the lines of a range that are documentation: docstrings and block comments.

    A string in triple quotes is one only where it stands by itself after the line that opens a
    definition; a query in such quotes is code.
    """
    found: set[int] = set()
    closer, opened = "", False
    for number in range(first, last + 1):
        text = lines.get(number, "").strip()
        if closer:
            found.add(number)
            closer = "" if closer in text else closer
            continue
        if match := _BEGINS_PROSE.match(text):
            mark = match[1]
            if mark == "/*" or opened:
                found.add(number)
                end = "*/" if mark == "/*" else mark
                closer = "" if end in text[match.end() :] else end
        if text:
            opened = text.endswith(":")
    return found


def _opening(text: str, python: bool) -> tuple[int, str, str] | None:
    patterns = (_PYTHON,) if python else _BRACES
    for pattern in patterns:
        if match := pattern.match(text[:400]):
            kind = "class" if match[2] == "class" else "function"
            return len(match[1].expandtabs(4)), kind, match[3]
    return None


def _end(
    lines: Mapping[int, str], numbers: list[int], start: int, indent: int, python: bool
) -> int:
    """Return the last known line of a definition: before the next line that is not deeper."""
    last, at, previous = start, bisect_right(numbers, start), start
    for number in numbers[at:]:
        text = lines[number]
        if number != previous + 1:
            break  # what stands between is not known
        previous = number
        if not text.strip():
            continue
        own = len(text[: len(text) - len(text.lstrip())].expandtabs(4))
        stripped = text.lstrip()
        if own <= indent:
            if not python and stripped.startswith("}"):
                return number
            if stripped.startswith(_CLOSERS) and own == indent:
                last = number
                continue
            break
        last = number
    return last
