"""Stack frames as Python and JavaScript print them, outermost and innermost known.

Forms: Python tracebacks (chained, with a log prefix), faulthandler ("most recent call first"),
V8 traces in all their spellings. Installed paths are cut to what the source tree can hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

_PYTHON = re.compile(
    r'File "(?P<path>[^"\n]{1,400})", line (?P<line>\d{1,7})(?:,? in (?P<name>[^\s(]{1,200}))?'
)
_SCRIPT = re.compile(
    r"^\s*(?:.{0,80}?\s)?at (?:async )?(?:(?P<new>new )?(?P<name>[^\s()]+(?: \[as [^\]]+\])?) )?"
    r"\(?(?P<path>(?:file://)?[^\s():]{1,400}?(?::\d+){0,0}):(?P<line>\d{1,7}):(?P<column>\d{1,7})\)?"
)
_FIRST = re.compile(r"most recent call first", re.IGNORECASE)
_LAST = re.compile(r"Traceback \(most recent call last\)")
_INSTALLED = re.compile(r".*/(?:site-packages|dist-packages)/(?P<rest>.+)")
_MODULES = re.compile(r".*/node_modules/(?P<package>(?:@[^/]+/)?[^/]+)/(?P<rest>.+)")
_SYSTEM = re.compile(r"^(<|node:|internal/|/usr/lib/python|.*/lib/python[\d.]+/(?!site-|dist-))")

MOST = 400


@dataclass(frozen=True)
class Frame:
    """One frame. `depth`: 0 is where it went wrong. `installed`: `path` is complete from the
    package's root on, so a file of the tree must end with all of it.
    """

    path: str
    line: int
    column: int
    name: str
    depth: int
    installed: bool
    observation: str


def frames(text: str, observation: str) -> list[Frame]:
    """Return the frames of a text, trace by trace; those of the runtime itself left out."""
    found: list[Frame] = []
    trace: list[Frame] = []
    innermost_first = False
    for row in text.split("\n"):
        if _FIRST.search(row) or _LAST.search(row):
            found += _deep(trace, innermost_first)
            trace, innermost_first = [], bool(_FIRST.search(row))
            continue
        if match := _PYTHON.search(row[:2000]):
            trace.append(_frame(match, observation))
        elif match := _SCRIPT.match(row[:2000]):
            if not trace or not trace[-1].column:
                found += _deep(trace, innermost_first)
                trace, innermost_first = [], True
            trace.append(_frame(match, observation))
        elif trace and trace[-1].column:
            found += _deep(trace, True)
            trace, innermost_first = [], False
    found += _deep(trace, innermost_first)
    return [frame for frame in found if not _SYSTEM.match(frame.path)][:MOST]


def without_frames(text: str, unwanted: Callable[[Frame], bool]) -> str:
    """Return a text without the frames of a kind and without the lines of code below them."""
    kept: list[str] = []
    dropping = False
    for row in text.split("\n"):
        match = _PYTHON.search(row[:2000]) or _SCRIPT.match(row[:2000])
        if match:
            dropping = unwanted(_frame(match, ""))
        elif dropping:
            dropping = row.startswith("    ")
        if not dropping:
            kept.append(row)
    return "\n".join(kept)


def is_runtime(frame: Frame) -> bool:
    """Tell whether a frame belongs to the language's own runtime or library."""
    return bool(_SYSTEM.match(frame.path))


def _deep(trace: list[Frame], innermost_first: bool) -> list[Frame]:
    ordered = trace if innermost_first else trace[::-1]
    return [replace(frame, depth=depth) for depth, frame in enumerate(ordered)]


def _frame(match: re.Match[str], observation: str) -> Frame:
    groups = match.groupdict()
    path = groups["path"].removeprefix("file://").replace("\\", "/")
    installed = _MODULES.match(path) or _INSTALLED.match(path)
    if installed:
        path = installed["rest"]
    name = re.sub(r" \[as .*\]$", "", groups.get("name") or "").strip("<>")
    return Frame(
        path, int(groups["line"]), int(groups.get("column") or 0),
        "" if name in ("module", "anonymous", "string") else name, 0, bool(installed), observation,
    )  # fmt: skip
