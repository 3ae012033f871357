"""Regular expressions and path globs from a model, run by google-re2 in linear time.

Linear still has a factor: an automaton of 3,000 instructions over a megabyte takes 13 seconds (8 ns
for each instruction and byte were measured at worst). So there is a budget of instructions times
bytes, which is the same on every machine, rather than a clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from phases.investigation.lines import Text

MAX_PROGRAM = 2_000
"""Largest compiled expression, in re2 instructions."""

WORK = 1_000_000_000
"""Instructions times bytes that one search may cost; below 10 s at worst, usually milliseconds."""

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
        self.instructions = int(self._regexp.programsize)
        if self.instructions > MAX_PROGRAM:
            raise PatternRefused(
                f"the expression compiles to {self.instructions} instructions, at most "
                f"{MAX_PROGRAM} are allowed: use smaller repetition counts or narrower classes"
            )

    def matches(self, text: Text) -> Iterator[tuple[int, int]]:
        """Yield (line, column), 1-based, of the first match in each line that has one.

        One match a line: asking for all would be quadratic in the length of a line.
        """
        data, at = text.data, 0
        end = len(data) if data.endswith(b"\n") else len(data) + 1  # an end starts no new line
        while at < end and (found := self._regexp.search(data, at)) is not None:
            start = found.start(self._group)
            if start >= end:
                return
            yield text.place(start)
            at = text.start_after(start) if start < len(data) else end


class Work:
    """What is left of a search's budget."""

    def __init__(self, limit: int = WORK) -> None:
        self.left = limit
        self.limit = limit

    def allows(self, pattern: Pattern, text: Text) -> bool:
        """Charge searching `text`; false if that would exceed the budget."""
        self.left -= pattern.instructions * len(text.data)
        return self.left >= 0


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
