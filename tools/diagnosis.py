"""What this machine has and lacks, without loading anything heavy; a network only if asked."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

WAL_RESET_FIXED = (3, 51, 3)
OLDEST_SQLITE = (3, 37, 0)  # STRICT tables


class Check(NamedTuple):
    """One look at the machine; `missing` is what the program cannot work without."""

    name: str
    state: Literal["ok", "warning", "missing", "absent"]
    detail: str


def examine() -> list[Check]:
    """Return all checks."""
    return [
        _python(),
        _sqlite(),
        Check(
            "zlib", "ok", f"{zlib.ZLIB_RUNTIME_VERSION}; packages are byte-equal under one build"
        ),
        *(
            _library(name)
            for name in ("eventsourcing", "pydantic", "orjson", "sqlite_utils", "rich")
        ),
        *(_library(name) for name in ("re2", "tree_sitter", "charset_normalizer", "pathspec")),
        _library("google.genai", needed="for Gemini"),
        _program("git", "source as GIT@REV"),
        _cases_folder(),
    ]


def examine_provider(specification: str) -> list[Check]:
    """Return whether a provider could answer: key, address, model. Nothing is spent."""
    from phases.providers import ProviderConfigurationError, open_provider
    from tools.configuration import effective

    try:
        provider = open_provider(specification, effective().settings)
        found = provider.checks()
    except ProviderConfigurationError as error:
        return [Check(specification, "missing", str(error))]
    if not found:
        return [Check(specification, "ok", f"{provider.model}, in this process")]
    return [
        Check(f"{specification} {check.what}", "ok" if check.ok else "missing", check.detail)
        for check in found
    ]


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return Check("python", "ok" if sys.version_info >= (3, 11) else "missing", version)


def _sqlite() -> Check:
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        return Check("sqlite", "missing", f"{version}; 3.37 or newer is needed")
    if sqlite3.sqlite_version_info < WAL_RESET_FIXED:
        detail = (
            f"{version}; before 3.51.3 two connections writing at once can damage a WAL, which the "
            "lock on each case prevents: write to cases with this program only"
        )
        return Check("sqlite", "warning", detail)
    return Check("sqlite", "ok", version)


def _library(name: str, needed: str = "") -> Check:
    parent = name.partition(".")[0]
    present = find_spec(parent) is not None and (parent == name or find_spec(name) is not None)
    if present:
        return Check(name, "ok", needed)
    return Check(name, "missing", "install the program again in an environment of its own")


def _program(name: str, needed: str) -> Check:
    path = shutil.which(name)
    return Check(name, "ok" if path else "absent", f"for {needed}")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # it stands in a folder that is closed to us
        return False


def _cases_folder() -> Check:
    from tools.selecting import cases_folder

    folder = cases_folder()
    nearest = next(path for path in (folder, *folder.absolute().parents) if _exists(path))
    if not os.access(nearest, os.W_OK):
        return Check("cases folder", "missing", f"{folder} cannot be written; set CASELEDGER_HOME")
    free = shutil.disk_usage(nearest).free // 2**20
    return Check("cases folder", "ok" if free > 200 else "warning", f"{folder}, {free} MB free")
