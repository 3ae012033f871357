"""Definitions in other languages, by patterns: good enough to find where a name is defined.

With the extra `languages` installed, languages.py reads some of them better.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from phases.investigation.index.symbols import Symbol, qualify
from phases.investigation.lines import Text

_NAME = r"([^\W\d][\w$]*)"
_PUB = r"(?:pub(?:\([^)]*\))?\s+)?"
_EXPORT = r"(?:export\s+)?(?:default\s+)?"
_C_LIKE = (
    (
        re.compile(
            r"\s*(?:[\w@]+\s+){0,6}(?:class|interface|struct|enum|union|record|namespace|trait)"
            rf"\s+{_NAME}"
        ),
        "class",
    ),
    (
        re.compile(
            rf"\s*(?:[\w:<>\[\],.*&?~]+\s+){{1,6}}[*&]*(?:[\w:]+::)?~?{_NAME}\s*\([^;]*$"
        ),
        "function",
    ),
)  # fmt: skip
_PATTERNS: dict[str, tuple[tuple[re.Pattern[str], str], ...]] = {
    "go": (
        (re.compile(rf"func\s+(?:\([^)]*\)\s*)?{_NAME}\s*[\[(]"), "function"),
        (re.compile(rf"type\s+{_NAME}\s"), "type"),
    ),
    "rb": (
        (re.compile(rf"\s*def\s+(?:self\.)?{_NAME}"), "method"),
        (re.compile(rf"\s*(?:class|module)\s+(?:\w+::)*{_NAME}"), "class"),
    ),
    "php": (
        (re.compile(rf"\s*(?:\w+\s+)*function\s+&?{_NAME}\s*\("), "function"),
        (re.compile(rf"\s*(?:abstract |final )*(?:class|interface|trait|enum)\s+{_NAME}"), "class"),
    ),
    "rs": (
        (re.compile(rf"\s*{_PUB}(?:async |unsafe |const )*fn\s+{_NAME}"), "function"),
        (re.compile(rf"\s*{_PUB}(?:struct|enum|trait|mod|type)\s+{_NAME}"), "type"),
    ),
    "sql": (
        (
            re.compile(
                r"\s*create\s+(?:or\s+replace\s+)?(?:unique\s+|temp\s+|temporary\s+|virtual\s+)*"
                rf"(?:table|view|index|trigger|function|procedure)\s+(?:if\s+not\s+exists\s+)?[\"`\[]?(?:\w+\.)?{_NAME}",
                re.IGNORECASE,
            ),
            "definition",
        ),
    ),
    "js": (
        (re.compile(rf"\s*{_EXPORT}(?:async\s+)?function\s*\*?\s*{_NAME}"), "function"),
        (re.compile(rf"\s*{_EXPORT}class\s+{_NAME}"), "class"),
    ),
    "py": ((re.compile(rf"\s*(?:async\s+)?(?:def|class)\s+{_NAME}"), "function"),),
}  # fmt: skip
_SAME = {"mjs": "js", "cjs": "js", "ts": "js", "tsx": "js", "jsx": "js", "pyx": "py", "pxd": "py"}
_BRACES = frozenset((
    "c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx", "java", "cs", "kt", "scala", "swift",
    "dart", "m", "mm", "groovy",
))  # fmt: skip
_NOT_NAMES = frozenset((
    "if", "for", "while", "switch", "catch", "return", "else", "new", "do", "sizeof", "throw",
    "using",
))  # fmt: skip
_LONGEST = 400


def symbols(extension: str, text: Text) -> Iterator[Symbol]:
    """Yield what looks like a definition; its last line is where the next one as far left
    starts.
    """
    patterns = _PATTERNS.get(_SAME.get(extension, extension))
    if patterns is None:
        patterns = _C_LIKE if extension in _BRACES else ()
    found: list[tuple[int, int, str, str]] = []
    for number, line in enumerate(text.lines if patterns else (), 1):
        for pattern, kind in patterns:
            match = pattern.match(line) if len(line) <= _LONGEST else None
            if match and match[1] not in _NOT_NAMES and line.split(None, 1)[0] not in _NOT_NAMES:
                found.append((len(line) - len(line.lstrip()), number, match[1], kind))
                break
    yield from _spans(found, len(text.lines))


def _spans(found: list[tuple[int, int, str, str]], total: int) -> Iterator[Symbol]:
    open_: list[tuple[int, int, str, str]] = []  # indent, first, qualified, kind
    for indent, number, name, kind in [*found, (-1, total + 1, "", "")]:
        while open_ and indent <= open_[-1][0]:
            _, first, qualified, what = open_.pop()
            yield Symbol(qualified.rpartition(".")[2], qualified, what, first, number - 1)
        outer = open_[-1][2] if open_ else ""
        open_.append((indent, number, qualify(outer, name), kind))
