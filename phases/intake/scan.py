"""Walks a source folder: regular files only, links never followed, everything left out is named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from phases.intake.errors import IntakeError, reason_of, shown
from phases.intake.files import chunks_of, open_regular
from phases.intake.limits import MAX_IGNORE_FILE
from phases.intake.members import Member, Skipped
from phases.intake.names import written
from phases.intake.rules import (
    VERSION_CONTROL,
    Patterns,
    Rules,
    folder_reason,
    ignore_file,
    is_secret_file,
)


class _Folder(NamedTuple):
    where: str  # as the system knows it
    path: str  # as the tree writes it, with `/` at its end; `` for the top
    ignores: tuple[tuple[str, Patterns], ...]  # (folder, its .gitignore), outermost first
    mode: str = "rules"  # `all` (included by name), `some` (only what --include names) or `rules`
    reason: str = ""  # why the rest of a folder of mode `some` is left out


def walk(root: Path, rules: Rules) -> Iterator[Member | Skipped]:
    """Yield the files of a folder and what is left out, in a fixed order.

    Raises:
        IntakeError: if the folder itself cannot be listed.
    """
    # A stack of our own: folders may be nested deeper than Python's.
    stack = [_Folder(os.fspath(root), "", ())]
    while stack:
        folder = stack.pop()
        try:
            entries = _entries(folder.where)
        except OSError as error:
            if not folder.path:
                raise IntakeError(
                    f"source {shown(root)}: cannot be listed: {reason_of(error)}"
                ) from None
            yield Skipped(folder.path, "unreadable")
            continue
        names = frozenset(entry.name for entry in entries)
        folder = _with_ignores(folder, names)
        below: list[_Folder] = []
        for entry in entries:
            path = folder.path + written(entry.name)
            if entry.is_dir(follow_symlinks=False):
                decided = _folder(entry, path, folder, names, rules)
                if isinstance(decided, Skipped):
                    yield decided
                else:
                    below.append(decided)
            else:
                yield from _file(entry, path, folder, rules)
        stack.extend(reversed(below))


def _entries(where: str) -> list[os.DirEntry[str]]:
    with os.scandir(where) as found:
        return sorted(found, key=lambda entry: entry.name)


def _with_ignores(folder: _Folder, names: frozenset[str]) -> _Folder:
    if ".gitignore" not in names or folder.mode == "all":
        return folder
    try:
        with open_regular(os.path.join(folder.where, ".gitignore"), follow=False) as file:  # noqa: PTH118 - surrogates
            data = file.read(MAX_IGNORE_FILE)
    except OSError:
        return folder  # the file itself will be recorded as unreadable
    patterns = ignore_file(data.decode("utf-8", "replace"), folder.path + ".gitignore")
    return folder._replace(ignores=(*folder.ignores, (folder.path, patterns)))


def _folder(
    entry: os.DirEntry[str], path: str, parent: _Folder, beside: frozenset[str], rules: Rules
) -> _Folder | Skipped:
    where = path + "/"
    if entry.name in VERSION_CONTROL:
        return Skipped(where, "version_control")
    if rules.exclude.decides(where):
        return Skipped(where, "excluded")
    child = _Folder(entry.path, where, parent.ignores, parent.mode, parent.reason)
    if parent.mode == "all" or rules.include.decides(where):
        return child._replace(mode="all")
    if parent.mode == "some":
        return child
    reason = folder_reason(entry.name, _inside(entry.path), beside, not parent.path)
    if not reason and _ignored(where, parent):
        reason = "ignored"
    if not reason:
        return child
    if rules.include.may_match_below(path):
        return child._replace(mode="some", reason=reason)
    return Skipped(where, reason)


def _file(
    entry: os.DirEntry[str], path: str, folder: _Folder, rules: Rules
) -> Iterator[Member | Skipped]:
    reason = _file_reason(entry, path, folder, rules)
    if reason:
        yield Skipped(path, reason)
        return
    try:
        file = open_regular(entry.path, follow=False)
    except OSError:
        yield Skipped(path, "unreadable")
        return
    with file:
        yield Member(path, chunks_of(file))


def _file_reason(entry: os.DirEntry[str], path: str, folder: _Folder, rules: Rules) -> str:
    if rules.exclude.decides(path):
        return "excluded"
    if entry.name in VERSION_CONTROL:  # a work tree's .git is a file
        return "version_control"
    included = folder.mode == "all" or bool(rules.include.decides(path))
    if not included:
        if folder.mode == "some":
            return folder.reason
        if _ignored(path, folder):
            return "ignored"
        if is_secret_file(entry.name):
            return "secret_file"
    if entry.is_symlink():
        return "link"
    return "" if entry.is_file(follow_symlinks=False) else "special"


def _ignored(path: str, folder: _Folder) -> bool:
    """Tell what git would: the .gitignore nearest to the path that speaks of it decides."""
    for where, patterns in reversed(folder.ignores):
        decided = patterns.decides(path[len(where) :])
        if decided is not None:
            return decided
    return False


def _inside(where: str) -> frozenset[str]:
    """Return which telling names a folder holds."""
    tell = ("pyvenv.cfg", "conda-meta", "CACHEDIR.TAG", "__init__.py")
    return frozenset(name for name in tell if os.path.lexists(os.path.join(where, name)))  # noqa: PTH118
