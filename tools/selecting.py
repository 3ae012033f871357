"""From what a user types to an open case: a path, a name or its beginning, or `last`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tools.exits import UserError

if TYPE_CHECKING:
    from ledger.book import Book
    from ledger.package import Package

SUFFIX = ".case"
FOLDER = ".caseledger"


def cases_folder() -> Path:
    """Return where cases without a path live: `$CASELEDGER_HOME`, else `.caseledger` here."""
    return Path(os.environ.get("CASELEDGER_HOME") or FOLDER)


def find_case(selector: str) -> Path:
    """Return the path of the case or package a user means.

    Raises:
        UserError: nothing, or more than one, matches.
    """
    path = Path(selector)
    if os.sep in selector or path.suffix in (SUFFIX, ".zip") or _is_file(path):
        return path
    if not selector:
        raise UserError("the name of the case is empty")
    cases = sorted(cases_folder().glob(f"*{SUFFIX}"))
    if selector == "last":
        if not cases:
            raise UserError(f"there is no case in {cases_folder()} yet; make one with `new`")
        return max(cases, key=lambda case: (case.stat().st_mtime_ns, case.name))
    matches = [case for case in cases if case.stem == selector]
    matches = matches or [case for case in cases if case.stem.startswith(selector)]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise UserError(f"{selector}: no such file, and no case in {cases_folder()} begins with it")
    names = sorted(case.stem for case in matches)
    shown = ", ".join(names[:4] + ["…"] * (len(names) > 4))
    raise UserError(f"{selector}: {len(names)} cases begin with it ({shown}); give more of it")


def find_case_file(selector: str) -> Path:
    """Return the path of a case that is written to, or read in a way that no package allows.

    Raises:
        UserError: nothing, or more than one, matches, or it is a package.
    """
    path = find_case(selector)
    if is_zip(path):
        raise UserError(f"{path}: is a package; import it first")
    return path


def case_file(path: Path) -> Path:
    """Return a path for a new case; refuse one that could not be found again by its name.

    Raises:
        UserError: it does not end in `.case`.
    """
    if path.suffix != SUFFIX:
        raise UserError(f"-o {path}: the file of a case ends in {SUFFIX}")
    return path


def case_name(name: str) -> str:
    """Return the name for a new case; refuse one that leads out of the cases folder.

    Raises:
        UserError: it has separators or control characters, or begins with a dot.
    """
    if name.startswith(".") or any(c in "/\\" or not c.isprintable() for c in name):
        raise UserError(
            f"--name {name}: a name has no /, no \\ and no control characters, and does not "
            "begin with a dot; give a path with -o"
        )
    return name


def _is_file(path: Path) -> bool:
    """Tell whether a file stands there; a folder may have the name of a case."""
    try:
        return path.is_file()
    except OSError:  # a name that no file system takes
        return False


def open_case(selector: str) -> Book:
    """Open a case file for reading."""
    from ledger.book import Book

    return Book.open(find_case_file(selector))


def open_record(selector: str) -> Book | Package:
    """Open a case file or, without importing it, a package for reading.

    Raises:
        PackageRefused: the package is not what its own events give: nothing of it is shown.
    """
    from ledger.book import Book

    path = find_case(selector)
    return open_package(path) if is_zip(path) else Book.open(path)


def open_package(path: Path) -> Package:
    """Open a package that verifies.

    Raises:
        PackageRefused: it does not verify: nothing of it is shown.
    """
    from ledger.package import Package
    from tools.packaging import require_verified

    package = Package(path)
    try:
        require_verified(package)
    except BaseException:
        package.close()
        raise
    return package


def is_zip(path: Path) -> bool:
    """Tell a package from a case file: by its name, or by its first bytes."""
    try:
        with path.open("rb") as file:
            return path.suffix == ".zip" or file.read(2) == b"PK"
    except OSError:
        return False


def prepared_cases_folder() -> Path:
    """Return the cases folder, made if it is not there, with a .gitignore that keeps cases out."""
    from ledger.errors import StorageError

    folder = cases_folder()
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, mode=0o700)
            (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"{folder}: the cases folder cannot be made ({error.strerror}); set CASELEDGER_HOME"
        ) from None
    return folder
