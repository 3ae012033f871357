"""What a text mentions: names in code, files, errors, codes, values, commands, moments."""

from __future__ import annotations

import re
from dataclasses import dataclass

from phases.providers.offline.words import STOP, is_identifier

_TICKS = re.compile(r"`([^`\n]{1,200})`")
_CALL = re.compile(r"\b([^\W\d][\w.]*[^\W_]|[^\W\d]{2,})\(")
_NAME = re.compile(r"(?<![\w/.@-])@?([^\W\d]\w*(?:\.[^\W\d]\w*)+|[^\W\d]\w*_\w+|_\w{2,}"
                   r"|[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*)")  # fmt: skip
_PATH = re.compile(r"(?<![\w:/.-])((?:[\w.@~-]+/)*[\w.@~-]+\.(?:[a-z][a-z0-9]{0,4}|[cmt]?[jt]sx?))"
                   r"(?::(\d{1,6}))?\b")  # fmt: skip
_FOLDER = re.compile(r"(?<![\w:/.<])((?:[\w.@-]+/){1,8}[\w.@-]+)(?![\w/])")
_ERROR = re.compile(
    r"\b((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Failure|Timeout|Interrupt))\b"
)
_ERROR_LINE = re.compile(
    r"^\s*(?:.{0,60}?\b)?((?:[\w]+\.)*[A-Z]\w*(?:Error|Exception|Warning)|[A-Z]\w*Exit)"
    r"(?:: (.{1,300}))?\s*$"
)
_RAISED = re.compile(r"^((?:[a-z_]\w*\.)+[A-Z]\w+)(?:: (.{1,300}))?\s*$")
"""The last line of a traceback names its class with the module, whatever the class is called."""

_CODE = re.compile(r"(?<![\w.-])([A-Z]{1,6}[-_/]?\d[\w/-]*\d|[A-Z]{1,6}-\d+|\d{2,6}[-/]\d{3,10}"
                   r"|[A-Z]{2,6}-[A-Z0-9]{2,}(?:-\w+)*|#\d{2,10})(?![\w-])")  # fmt: skip
_DATE = re.compile(
    r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?"
)
_WORDY_DATE = re.compile(
    r"\b(\d{1,2}\.? (?:January|February|March|April|May|June|July|August|September|October"
    r"|November|December)(?: \d{4})?)\b"
)
_AMOUNT = re.compile(r"(?<![\w.,-])(\d{1,3}(?:[.,\u202f ]\d{3})*[.,]\d{2}|\d+(?:[.,]\d+)? ?"
                     r"(?:ms|s|sec|seconds|minutes|hours|days|kB|KB|MB|GB|EUR|USD|%|€|\$))"
                     r"(?![\w])")  # fmt: skip
_VERSION = re.compile(r"\b([A-Za-z][\w.-]{1,40}) (v?\d+(?:\.\d+){1,3}(?:[a-z]+\d*)?)\b")
_OPTION = re.compile(r"(?<![\w-])(--[a-z][\w-]{1,40})\b")
_ENVIRONMENT = re.compile(r"\b([A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+)\b")
_COMMAND = re.compile(
    r"^\s*(?:\$|>|%)\s+(.{3,200})$|^((?:python3?|node|npm|npx|pip|git|curl) .{3,200})$"
)
_RECORD = re.compile(
    r"^\W{0,2}(\d{4}-\d\d-\d\d|\d\d[:/.]\d\d[:/.]\d\d|[A-Z][a-z]{2} +\d+ \d\d:|[A-Z]{4,8}\b)"
)
_ENDINGS = """
py pyi pyx js mjs cjs jsx ts tsx json toml cfg ini yaml yml md rst txt sql html css c h cpp go
rs rb java kt sh db sqlite csv log xml env lock map vue php cs
"""
_KNOWN_ENDINGS = frozenset(_ENDINGS.split())


@dataclass(frozen=True)
class Mention:
    """A thing that a text names. `kind` as in the entity schema."""

    name: str
    kind: str
    line: int = 0


def mentions(text: str) -> list[Mention]:
    """Return what a text mentions, in order of kind and place, repeats included."""
    found: list[Mention] = []
    found += _files(text)
    found += [Mention(m[1], "error") for m in _ERROR.finditer(text)]
    found += _names(text)
    found += [Mention(m[1].strip("#"), "identifier") for m in _codes(text)]
    found += [Mention(m[0], "moment") for m in _DATE.finditer(text)]
    found += [Mention(m[1], "moment") for m in _WORDY_DATE.finditer(text)]
    found += [Mention(m[1].strip(), "value") for m in _AMOUNT.finditer(text)]
    found += [Mention(f"{m[1]} {m[2]}", "package") for m in _VERSION.finditer(text)]
    found += [Mention(m[1], "configuration") for m in _OPTION.finditer(text)]
    found += [Mention(m[1], "configuration") for m in _ENVIRONMENT.finditer(text)]
    found += _commands(text)
    return found


def _files(text: str) -> list[Mention]:
    found = []
    for match in _PATH.finditer(text):
        path = match[1]
        ending = path.rpartition(".")[2]
        if ending in _KNOWN_ENDINGS and not path.startswith("."):
            found.append(Mention(path, "file", int(match[2] or 0)))
    found += [
        Mention(m[1], "file") for m in _FOLDER.finditer(text)
        if "." in m[1].rpartition("/")[2] and m[1].rpartition(".")[2] in _KNOWN_ENDINGS
    ]  # fmt: skip
    return found


def _names(text: str) -> list[Mention]:
    found: list[Mention] = []
    for match in _TICKS.finditer(text):
        inner = match[1].strip().removesuffix("()")
        if re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", inner) and inner.lower() not in STOP:
            found.append(Mention(inner, "symbol"))
    for match in _CALL.finditer(text):
        if match[1].lower() not in STOP and len(match[1]) > 2:
            found.append(Mention(match[1], "symbol"))
    for match in _NAME.finditer(text):
        if match[1].rpartition(".")[2] not in _KNOWN_ENDINGS and is_identifier(match[1]):
            found.append(Mention(match[1].strip("."), "symbol"))
    return [m for m in found if not _ERROR.fullmatch(m.name)]


def _codes(text: str) -> list[re.Match[str]]:
    return [m for m in _CODE.finditer(text) if not _DATE.match(m[1]) and not _is_date(m[1])]


def _is_date(code: str) -> bool:
    return bool(
        re.fullmatch(r"\d{4}[-/]\d\d([-/]\d\d)?|\d\d[-/]\d{4}|(UTF|ISO|SHA|RFC)-?\d+", code)
    )


def _commands(text: str) -> list[Mention]:
    found = []
    for row in text.split("\n"):
        if match := _COMMAND.match(row):
            found.append(Mention((match[1] or match[2]).strip(), "command"))
    return found


def records(text: str) -> list[str]:
    """Return the records of a log excerpt: a line with a time and what stands below it."""
    found: list[str] = []
    for row in text.split("\n"):
        if _RECORD.match(row) or not found:
            found.append(row)
        else:
            found[-1] += f"\n{row}"
    return found


def error_lines(text: str) -> list[tuple[str, str]]:
    """Return (type, message) of each line that ends a traceback or names an error."""
    found = []
    for row in text.split("\n"):
        if match := _ERROR_LINE.match(row[:1000]) or _RAISED.match(row[:1000]):
            found.append((match[1], (match[2] or "").strip()))
    return found
