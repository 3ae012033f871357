"""What of a source tree is left out, and why: patterns of the user, .gitignore, and known folders.

Order of precedence: version control is never taken; `--exclude` wins over `--include`; `--include`
wins over everything else. Packages (archives) are taken whole but for version control,
dependencies, files of secrets and `--exclude`: their `build/` may be their code (yargs).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from phases.intake.errors import IntakeError, shown
from phases.intake.limits import MAX_IGNORE_PATTERNS

VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".bzr", "CVS", "_darcs", ".jj"})
DEPENDENCIES = frozenset({"node_modules", "bower_components", "jspm_packages"})
ENVIRONMENTS = frozenset({".venv", ".tox", ".nox", ".pixi", ".direnv"})
CACHES = frozenset(
    {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".eggs",
     ".ipynb_checkpoints", ".gradle", ".next", ".nuxt", ".turbo", ".parcel-cache", ".nyc_output",
     ".svelte-kit", ".cache", ".sass-cache"}
)  # fmt: skip
BESIDE: dict[str, tuple[str, ...]] = {
    "build": ("pyproject.toml", "setup.py", "setup.cfg"),
    "dist": ("pyproject.toml", "setup.py", "setup.cfg"),
    "target": ("Cargo.toml", "pom.xml"),
}
"""Folders that a build writes, if one of these files stands beside them."""

SECRET_FILES = frozenset(
    {".env", ".netrc", "_netrc", ".pgpass", ".git-credentials", ".pypirc", ".htpasswd",
     "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"}
)  # fmt: skip
_ENV_TEMPLATE = re.compile(r"example|sample|template|dist|defaults?|schema|test")
_POSIX_ENVIRONMENT = frozenset({"bin", "lib", "lib64", "include", "share", "Lib", "Scripts"})


class Patterns:
    """Patterns in the language of .gitignore. Matching takes linear time (google-re2)."""

    def __init__(self, lines: Iterable[str]) -> None:
        import pathspec

        kept = [line for line in lines if _is_usable(line)]
        self.lines = tuple(kept)
        self._spec: Any = None
        if kept:
            self._spec = pathspec.GitIgnoreSpec.from_lines(kept, backend="re2")

    def decides(self, path: str) -> bool | None:
        """Tell whether a path (a folder ends in `/`) is matched; None: no pattern speaks of it."""
        return None if self._spec is None else self._spec.check_file(path).include

    def may_match_below(self, folder: str) -> bool:
        """Tell whether a pattern with folders in it could match something inside `folder`."""
        return any(_leads_into(line, folder.split("/")) for line in self.lines)


class Rules:
    """The user's `--include` and `--exclude`, and what holds by default."""

    def __init__(self, include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()) -> None:
        self.include = _of_user(include, "--include")
        self.exclude = _of_user(exclude, "--exclude")

    def in_package(self, path: str) -> tuple[str, str] | None:
        """Return what a file of a package or revision is left out with (path, reason), or None."""
        parts = path.split("/")
        for n, part in enumerate(parts[:-1], 1):
            folder = "/".join(parts[:n]) + "/"
            if part in VERSION_CONTROL:
                return folder, "version_control"
            if self.exclude.decides(folder):
                return folder, "excluded"
            if part in DEPENDENCIES and not self.include.decides(path):
                return folder, "dependencies"
        if self.exclude.decides(path):
            return path, "excluded"
        if is_secret_file(parts[-1]) and not self.include.decides(path):
            return path, "secret_file"
        return None


def folder_reason(name: str, inside: frozenset[str], beside: frozenset[str], top: bool) -> str:
    """Return why a folder is left out by default, or ``: names in it, names beside it."""
    if name in DEPENDENCIES:
        return "dependencies"
    if "pyvenv.cfg" in inside or "conda-meta" in inside or name in ENVIRONMENTS:
        return "environment"
    if top and "pyvenv.cfg" in beside and name in _POSIX_ENVIRONMENT:
        return "environment"  # the environment was made in the project's own folder
    if name in CACHES or name.endswith(".egg-info") or "CACHEDIR.TAG" in inside:
        return "build"
    if not beside.isdisjoint(BESIDE.get(name, ())) and "__init__.py" not in inside:
        return "build"
    return ""


def is_secret_file(name: str) -> bool:
    """Tell whether a file is there to hold secrets; templates of such files are not."""
    if name in SECRET_FILES:
        return True
    return name.startswith(".env.") and not _ENV_TEMPLATE.search(name)


def ignore_file(text: str, path: str) -> Patterns:
    """Return the patterns of a .gitignore file; lines that are no pattern mean nothing, as to git.

    Raises:
        IntakeError: for more patterns than anybody writes.
    """
    lines = text.split("\n")
    if len(lines) > MAX_IGNORE_PATTERNS:
        raise IntakeError(
            f"source: {shown(path)} has more than {MAX_IGNORE_PATTERNS:,} lines;"
            " shorten it, or leave it out of the source"
        )
    return Patterns(line.rstrip("\r") for line in lines)


def _of_user(lines: tuple[str, ...], option: str) -> Patterns:
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#") or not _is_usable(line):
            raise IntakeError(f"{option} {shown(line)}: is no pattern; write it as in .gitignore")
    return Patterns(lines)


def _is_usable(line: str) -> bool:
    """Tell whether a line is a pattern that can be matched; comments and blanks are."""
    import re2
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    options = re2.Options()
    options.log_errors = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            regex = GitIgnoreSpecPattern(line).regex
        if regex is not None:
            re2.compile(regex.pattern, options)
    except (ValueError, re.error, re2.error):
        return False
    return True


def _leads_into(pattern: str, folder: list[str]) -> bool:
    parts = pattern.strip().strip("/").split("/")
    if len(parts) <= 1:
        return False
    for n, name in enumerate(folder):
        if n >= len(parts):
            return False
        if parts[n] == "**":
            return True
        if not fnmatchcase(name, parts[n]):
            return False
    return len(parts) > len(folder)
