r"""How paths are written: relative, `/` between parts, always valid Unicode, never ambiguous.

A file name is bytes. One that is UTF-8 is written as it is; each byte that is not, and each
backslash, becomes `\xNN`, so that two names never become one and the name can be computed back.
"""

from __future__ import annotations

import os
import re
import unicodedata
from typing import Any

from phases.intake.errors import IntakeError, shown
from phases.intake.limits import MAX_FILES, MAX_NAME, MAX_PARTS

_ESCAPED = re.compile("[\\\\\ud800-\udfff]")
_DRIVE = re.compile(r"[A-Za-z]:")


def written(name: str) -> str:
    """Return a name from the file system (`os.fsdecode` form) as it is written in a tree."""
    if not _ESCAPED.search(name):
        return name
    return _ESCAPED.sub(lambda match: f"\\x{os.fsencode(match[0])[0]:02x}", name)


class MemberNames:
    """Checks the member names of one archive as they come; each at most once as a file.

    `archive` names the archive in messages. Every refusal is an IntakeError of one line.
    """

    def __init__(self, archive: str) -> None:
        self._archive = archive
        self._top: dict[str, Any] = {}  # a folder is a dict, a file the name it was given
        self._count = 0

    def accept(self, name: str, *, folder: bool = False) -> str:
        """Return the relative path of a member; `` for the archive's own top folder."""
        self._count += 1
        if self._count > MAX_FILES:
            raise self.refusal(f"has more than {MAX_FILES:,} members")
        parts = self._parts(name)
        if not parts:
            if folder:
                return ""
            raise self._bad(name, "has no name")
        self._enter(name, parts, folder)
        return "/".join(parts)

    def _enter(self, name: str, parts: list[str], folder: bool) -> None:
        # Two spellings of one name are two files on one system and one on another.
        keys = [unicodedata.normalize("NFC", part) for part in parts]
        place = self._top
        for key in keys[:-1]:
            place = place.setdefault(key, {})
            if isinstance(place, str):
                raise self._bad(name, f"lies below {shown(place)}, which is a file")
        there = place.get(keys[-1])
        if there is None:
            place[keys[-1]] = {} if folder else name
        elif not (folder and isinstance(there, dict)):
            other = there if isinstance(there, str) else "a folder"
            what = "occurs twice" if other == name else f"is also {shown(other)}"
            raise self._bad(name, f"{what}; unpack it and give the folder")

    def top(self) -> str:
        """Return the one folder that holds everything, or ``.

        A folder that is itself a Python package is not stripped: its name is part of the program.
        """
        if len(self._top) != 1:
            return ""
        ((name, below),) = self._top.items()
        return name if isinstance(below, dict) and "__init__.py" not in below else ""

    def link(self, path: str, target: str, *, hard: bool = False) -> None:
        """Refuse a link that leads outside the archive."""
        base = [] if hard else path.split("/")[:-1]
        depth = len(base)
        if target.startswith("/") or _DRIVE.match(target) or "\\" in target:
            depth = -1
        for part in target.split("/"):
            if depth < 0:
                break
            depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            raise self._bad(path, f"is a link to {shown(target)}, outside the archive")

    def refusal(self, what: str) -> IntakeError:
        """Return the error for the archive as a whole."""
        return IntakeError(f"source {self._archive}: {what}; nothing was taken in")

    def _bad(self, name: str, what: str) -> IntakeError:
        return self.refusal(f"member {shown(name)} {what}")

    def _parts(self, name: str) -> list[str]:
        if "\0" in name:
            raise self._bad(name, "has a NUL in its name")
        if len(os.fsencode(name)) > MAX_NAME:
            raise self._bad(name, f"has a name of more than {MAX_NAME:,} bytes")
        if "\\" in name:
            raise self._bad(name, "has a backslash in its name; pack it with / between folders")
        if name.startswith("/") or _DRIVE.match(name):
            raise self._bad(name, "has an absolute name")
        parts = [written(part) for part in name.split("/") if part not in ("", ".")]
        if ".." in parts:
            raise self._bad(name, "leads outside the archive")
        if len(parts) > MAX_PARTS:
            raise self._bad(name, f"lies more than {MAX_PARTS} folders deep")
        return parts
