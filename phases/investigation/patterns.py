"""Regular expressions and path globs from a model, run by google-re2 in linear time.

Linear still has a factor: an automaton of 3,000 instructions over a megabyte takes 13 seconds (8 ns
for each instruction and byte were measured at worst, a hundredth of that usually). So a search has
a budget of instructions times bytes, the same on every machine; a clock is the last resort.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from phases.investigation.lines import Text

MAX_PROGRAM = 2_000
"""Largest compiled expression, in re2 instructions."""

WORK = 4_000_000_000
"""Instructions times bytes that one search may cost."""

SECONDS = 10.0
"""Time that one search may take, looked at after each piece."""

_PIECE = 100_000_000
"""Instructions times bytes between two looks at the clock: below a second at worst."""

_UNSUPPORTED = (
    "invalid perl operator", "invalid escape sequence", "invalid repetition size", "bad repetition",
    "invalid named capture",
)  # fmt: skip


class PatternRefused(Exception):
    """An expression that re2 does not support or that is too large; the message says which."""


class Pattern:
    """A compiled expression that is looked for line by line."""

    def __init__(
        self,
        expression: str,
        *,
        literal: bool = False,
        identifier: bool = False,
        ignore_case: bool = False,
    ) -> None:
        import re2

        options = re2.Options()
        options.never_nl = True  # a match never reaches over a line end
        options.log_errors = False
        options.case_sensitive = not ignore_case
        self._needle = expression.encode() if literal and not ignore_case else b""
        source = f"(?m:{expression})"
        if literal or identifier:
            source = re2.escape(expression)
        if identifier:
            source = rf"(?m:(?:^|[^\w$])({source})(?:$|[^\w$]))"
        self._group = 1 if identifier else 0
        try:
            self._regexp = re2.compile(source.encode("utf-8"), options)
        except re2.error as error:
            raise PatternRefused(_explain(error)) from None
        self.instructions = 1 if self._needle else int(self._regexp.programsize)
        if self.instructions > MAX_PROGRAM:
            raise PatternRefused(
                f"the expression compiles to {self.instructions} instructions, at most "
                f"{MAX_PROGRAM} are allowed: use smaller repetition counts or narrower classes"
            )

    def matches(self, text: Text, work: Work) -> Iterator[tuple[int, int]]:
        """Yield (line, column), 1-based, of the first match in each line that has one.

        One match a line: asking for all would be quadratic in the length of a line.

        Raises:
            WorkDone: when the budget is used up.
        """
        data, size = text.data, max(1000, _PIECE // self.instructions)
        for start, end in _pieces(data, size):
            work.charge(self.instructions * (end - start + 1))
            at = start
            while at <= end and (found := self._find(data, at, end)) >= 0:
                yield text.place(found)
                at = text.start_after(found)

    def _find(self, data: bytes, at: int, end: int) -> int:
        """Return where the first match starts, -1 if there is none."""
        if self._needle:
            return data.find(self._needle, at, end)
        found = self._regexp.search(data, at, end)
        return -1 if found is None else int(found.start(self._group))


def _pieces(data: bytes, size: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of runs of whole lines of about `size` bytes, without their last end."""
    start = 0
    while start < len(data):
        end = data.rfind(b"\n", start, start + size)
        if end < 0:
            end = data.find(b"\n", start + size)
        end = len(data) if end < 0 else end
        yield start, end
        start = end + 1


class WorkDone(Exception):
    """A search used up its budget; the arguments are the reason and the limit."""


class Work:
    """What is left of a search's budget."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = self.left = WORK if limit is None else limit
        self._deadline = time.monotonic() + SECONDS

    def charge(self, cost: int) -> None:
        """Take `cost` instructions times bytes.

        Raises:
            WorkDone: if there are not so many left, or the time is up.
        """
        self.left -= cost
        if self.left < 0:
            raise WorkDone("work", self.limit)
        if time.monotonic() > self._deadline:
            raise WorkDone("seconds", int(SECONDS))


def _explain(error: Any) -> str:
    text = error.args[0] if error.args else ""
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    if text.startswith(_UNSUPPORTED):
        return (
            f"{text}; expressions are RE2: no look-around, no back-references, no possessive or "
            "atomic groups, repetition counts up to 1000"
        )
    return f"not a regular expression: {text}"


@lru_cache(maxsize=64)
def glob(pattern: str) -> Any:
    """Return the compiled form of a path glob; call its `fullmatch` with a path in UTF-8.

    `*` and `?` stay within a part, `**` crosses parts, `[…]` is a class. A glob without `/` is
    looked for in the last part of a path, as in .gitignore.

    Raises:
        PatternRefused: if it cannot be compiled.
    """
    import re2

    text = pattern.removeprefix("./")
    prefix = "" if "/" in text else "(?:.*/)?"
    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True
    try:
        return re2.compile((prefix + "".join(_translate(text))).encode("utf-8"), options)
    except re2.error as error:
        raise PatternRefused(f"not a glob: {_explain(error)}") from None


def glob_matches(pattern: str, path: str) -> bool:
    """Tell whether a path matches a glob (see `glob`); an empty glob matches everything."""
    return not pattern or glob(pattern).fullmatch(path.encode("utf-8", "replace")) is not None


def _translate(text: str) -> Iterator[str]:
    import re2

    at = 0
    while at < len(text):
        rest = text[at:]
        close = rest.find("]", 2)
        if rest.startswith("**/"):
            yield "(?:.*/)?"
            at += 3
        elif rest.startswith("*"):
            stars = len(rest) - len(rest.lstrip("*"))
            yield ".*" if stars > 1 else "[^/]*"
            at += stars
        elif rest[0] == "?":
            yield "[^/]"
            at += 1
        elif rest[0] == "[" and close > 0:
            inside = rest[1:close].replace("\\", "\\\\").replace("[", "\\[")
            yield "[" + ("^" + inside[1:] if inside[0] in "!^" else inside) + "]"
            at += close + 1
        else:
            yield str(re2.escape(rest[0]))
            at += 1
