"""Chooses the excerpts of a log that get an ID: what looks like trouble, and what the report names.

A choice, always the same for the same report and log, of lines to point at; the whole log stays
readable through actions. A short log is one excerpt. Of a long one: lines with an error, a warning
or an exception, of each pattern (digits aside) the first two and the last; lines with an identifier
of the report, rare ones first; each with a little context, a traceback whole.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from phases.intake.observations import Lines
from phases.intake.text import count_lines

WHOLE = 60
"""Lines up to which a log is one excerpt."""
MAX_EXCERPTS = 60
"""Excerpts of one log."""
MAX_EXCERPT_LINES = 80
"""Lines of one excerpt; a longer traceback is cut."""
CONTEXT = 2
"""Lines before and after a chosen one."""
MAX_IDENTIFIERS = 200
"""Identifiers of the report that are looked for, the first ones."""
MAX_LINES = 300_000
"""Lines with trouble, and with identifiers, that are looked at."""
RARE = 10
"""Lines with an identifier up to which it is a strong sign."""
COMMON = 50
"""Lines with an identifier beyond which it tells nothing."""
WINDOW = 2000
"""Bytes of a line that are looked at from its beginning: a line may be very long."""

_TROUBLE = (
    rb"(?i)\b(?:error|err|critical|fatal|severe|exception|traceback|panic|failed|failure|failing"
    rb"|warn|warning|denied|refused|timeout|timed out|deadlock|segfault"
    rb"|abort(?:ed)?|corrupt(?:ed)?)\b"
    rb"|[A-Za-z](?:Error|Exception)\b"
)
_SEVERE = (
    rb"(?i)\b(?:error|critical|fatal|severe|traceback|panic|segfault|exception)\b"
    rb"|(?:Error|Exception)\b"
)
_WORD = re.compile(r"[^\W_][\w.:/#$@-]{2,79}")
_TELLING = re.compile(r"\d|_|[a-z][A-Z]|\w[.:/#-]\w")
_DATE_OR_NUMBER = re.compile(r"[\d.,:/T+Z-]*|v?\d+(\.\d+)+\w*|\d{4}-\d\d-\d\d.*")
_NUMBER_ID = re.compile(r"\d{2,}[-/_]\d{3,}|\d{5,}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d\d[.:/-]\d\d[.:/-]\d\d")
_DIGITS = re.compile(rb"[0-9a-fA-F]*\d[0-9a-fA-F]*")


class _Line(NamedTuple):
    number: int  # 1-based
    start: int  # offset of its first byte


def identifiers(report: str) -> list[str]:
    """Return words of a report that name something particular: codes, paths, symbols; no dates."""
    found: dict[str, None] = {}
    for match in _WORD.finditer(report):
        word = match[0].rstrip(".:/#$@-")
        if len(word) >= 4 and _is_telling(word):
            found.setdefault(word)
            if len(found) == MAX_IDENTIFIERS:
                break
    return list(found)


def log_excerpts(log: bytes, names: list[str]) -> list[Lines]:
    """Return the excerpts of a log (UTF-8, lines end in LF), in order.

    `names` are the identifiers of the report.
    """
    total = count_lines(log, "utf-8")
    if not total:
        return []
    if total <= WHOLE:
        return [Lines(1, total)]
    weights: dict[_Line, float] = defaultdict(float)
    for found in (_troubles(log), _mentions(log, names)):
        for line, weight in found.items():
            weights[line] += weight
    if not weights:
        return [Lines(1, 20), Lines(total - 19, total)]
    best = sorted(weights, key=lambda line: (-weights[line], line.number))
    return _picked(log, total, best)


def _is_telling(word: str) -> bool:
    if _DATE.match(word):
        return False
    if _DATE_OR_NUMBER.fullmatch(word):
        return bool(_NUMBER_ID.fullmatch(word))
    return bool(_TELLING.search(word))


def _lines_with(log: bytes, pattern: Any) -> Iterator[_Line]:
    """Yield the lines that a pattern matches in, each once: a line may be the whole log."""
    position, number = 0, 1
    for _ in range(MAX_LINES):
        match = pattern.search(log, position)
        if match is None:
            return
        number += log.count(b"\n", position, match.start())
        start = max(position, log.rfind(b"\n", position, match.start()) + 1)
        yield _Line(number, start)
        position = log.find(b"\n", match.end()) + 1
        if not position:
            return
        number += 1


def _window(log: bytes, start: int) -> bytes:
    """Return the first WINDOW bytes of the line that begins at `start`."""
    return log[start : start + WINDOW].split(b"\n", 1)[0]


def _troubles(log: bytes) -> dict[_Line, float]:
    """Return lines that look like trouble, of each pattern the first two and the last."""
    alike: dict[bytes, list[_Line]] = {}
    for line in _lines_with(log, _pattern(_TROUBLE)):
        group = alike.setdefault(_DIGITS.sub(b"0", _window(log, line.start)[:200]), [])
        if len(group) < 3:
            group.append(line)
        else:
            group[2] = line
    severe = _pattern(_SEVERE)
    return {
        line: 3.0 if severe.search(_window(log, line.start)) else 1.0
        for group in alike.values()
        for line in group
    }


def _mentions(log: bytes, names: list[str]) -> dict[_Line, float]:
    """Return lines with an identifier that is rare in this log."""
    if not names:
        return {}
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    words = b"|".join(re.escape(name).encode("utf-8") for name in longest_first)
    pattern = _pattern(rb"\b(?:" + words + rb")\b")
    where: dict[bytes, list[_Line]] = defaultdict(list)
    for line in _lines_with(log, pattern):
        for word in {match.group(0) for match in pattern.finditer(_window(log, line.start))}:
            if len(where[word]) <= COMMON:
                where[word].append(line)
    weights: dict[_Line, float] = defaultdict(float)
    for lines in where.values():
        if len(lines) <= COMMON:
            for line in lines:
                weights[line] += 4.0 if len(lines) <= RARE else 2.0
    return weights


def _picked(log: bytes, total: int, best: list[_Line]) -> list[Lines]:
    """Return the best lines with their context, what touches as one excerpt."""
    covered: set[int] = set()
    picks = 0
    for line in best:
        around = _around(log, total, line)
        if not covered.issuperset(around):
            covered.update(around)
            picks += 1
            if picks == MAX_EXCERPTS:
                break
    return _runs(sorted(covered))


def _runs(numbers: list[int]) -> list[Lines]:
    runs: list[Lines] = []
    for number in numbers:
        last = runs[-1] if runs else None
        if last and number == last.last + 1 and number - last.first < MAX_EXCERPT_LINES:
            runs[-1] = Lines(last.first, number)
        else:
            runs.append(Lines(number, number))
    return runs


def _around(log: bytes, total: int, line: _Line) -> range:
    """Return a line's number with those of its context; a traceback whole, as far as it fits."""
    last, end = line.number, log.find(b"\n", line.start) + 1
    framed = False
    while end and last - line.number < MAX_EXCERPT_LINES - 2 * CONTEXT - 1:
        window = _window(log, end)
        inner = window[:1].isspace() or window.startswith(_CONTINUED)
        if not inner and not (framed and _EXCEPTION.match(window)):
            break
        last, framed = last + 1, inner
        end = log.find(b"\n", end) + 1
    return range(max(1, line.number - CONTEXT), min(total, last + CONTEXT) + 1)


_CONTINUED = (b"Traceback", b"Caused by", b"During handling", b"The above exception")
_EXCEPTION = re.compile(rb"[A-Za-z_][\w.]{0,100}(:|$)")


@functools.cache
def _pattern(pattern: bytes) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 64 << 20
    return re2.compile(pattern, options)
