"""Times that log lines start with, as comparable text: `2024-06-28 02:00:15.123`.

Read as written: an offset or zone is not applied. Formats: ISO 8601 with blank or `T`,
`2024/06/28`, `28.06.2024`, Apache's `28/Jun/2024:02:00:15`, syslog's `Jun 28 02:00:15` (its year is
taken from the bound), seconds or milliseconds since 1970 at the start of a line, and a time of day
alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

_MONTHS = {
    name: f"{number:02d}"
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_CLOCK = r"(\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)"
_HEAD = 120
"""Characters at the start of a line in which a time is looked for."""

_BOUND = re.compile(
    r"(?:(\d{4})(?:[-/](\d{2})(?:[-/](\d{2})"
    r"(?:[ T](\d{2}(?::\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)?))?)?)?"
    r"|(\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?))(?:Z|[+-]\d{2}:?\d{2})?"
)


class Bound(NamedTuple):
    """One end of a window: `text` compares with the start of a line's time; "" is open."""

    text: str
    of_day: bool = False


def parse_bound(text: str) -> Bound:
    """Return the bound that a person or model wrote; Bound("") if it is none."""
    found = _BOUND.fullmatch(text.strip())
    if found is None:
        return Bound("")
    year, month, day, clock, of_day = found.groups()
    if of_day:
        return Bound(of_day.replace(",", "."), True)
    parts = "-".join(part for part in (year, month, day) if part)
    return Bound(parts + (f" {clock.replace(',', '.')}" if clock else ""))


def line_times(lines: list[str], window: tuple[Bound, Bound]) -> list[str]:
    """Return the time of each line ("" before the first that has one), in the form the window
    needs.
    """
    year = next((bound.text[:4] for bound in window if bound.text and not bound.of_day), "0000")
    of_day = any(bound.of_day for bound in window)
    day = next((b.text[:10] for b in window if len(b.text) >= 10 and not b.of_day), "")
    times, last = [], ""
    for line in lines:
        last = time_of(line[:_HEAD], year, day) or last
        times.append(last[11:] if of_day else last)
    return times


def time_of(head: str, year: str = "0000", day: str = "") -> str:
    """Return the time in the first characters of a line, "" if there is none."""
    for pattern, read in _FORMATS:
        if found := pattern.search(head):
            return read(found, year, day).replace(",", ".")
    return ""


def _epoch(found: re.Match[str], year: str, day: str) -> str:
    digits, fraction = found[1], found[2] or ""
    seconds = int(digits[:10])
    moment = datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%d %H:%M:%S") + ("." + digits[10:] if digits[10:] else fraction)


_Reader = Callable[[re.Match[str], str, str], str]
_FORMATS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (
        re.compile(rf"(?<!\d)(\d{{4}})[-/](\d{{2}})[-/](\d{{2}})[ T_]{_CLOCK}"),
        lambda m, y, d: f"{m[1]}-{m[2]}-{m[3]} {m[4]}",
    ),
    (
        re.compile(rf"(?<!\d)(\d{{2}})/([A-Z][a-z]{{2}})/(\d{{4}})[: ]{_CLOCK}"),
        lambda m, y, d: f"{m[3]}-{_MONTHS.get(m[2].lower(), '00')}-{m[1]} {m[4]}",
    ),
    (
        re.compile(rf"(?<!\d)(\d{{2}})\.(\d{{2}})\.(\d{{4}})[ T,]+{_CLOCK}"),
        lambda m, y, d: f"{m[3]}-{m[2]}-{m[1]} {m[4]}",
    ),
    (
        re.compile(rf"(?<!\d)(\d{{2}})/(\d{{2}})/(\d{{4}})[ T,]+{_CLOCK}"),
        lambda m, y, d: f"{m[3]}-{m[1]}-{m[2]} {m[4]}",
    ),
    (
        re.compile(
            rf"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {{1,2}}(\d{{1,2}}) {_CLOCK}"
        ),
        lambda m, y, d: f"{y}-{_MONTHS[m[1].lower()]}-{int(m[2]):02d} {m[3]}",
    ),
    (re.compile(r"^\W{0,2}(1\d{9}(?:\d{3})?)(\.\d{1,9})?\b"), _epoch),
    (
        re.compile(rf"^\W{{0,3}}{_CLOCK}(?=\D)"),
        lambda m, y, d: f"{d or '0000-00-00'} {m[1]}",
    ),
)
