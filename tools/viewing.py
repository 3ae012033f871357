"""Writing the page of a case, and opening it."""

from __future__ import annotations

import tempfile
import webbrowser
from pathlib import Path

from ledger.files import new_file
from tools.pages import case_page
from tools.selecting import find_case, open_record


def write_page(case: str, output: Path | None, *, force: bool) -> Path:
    """Write the page of a case; return where.

    Raises:
        CaseExists: something stands there, and it was not said to replace it.
    """
    with open_record(case) as record:
        page = case_page(record)
    path = output or _temporary(case)
    with new_file(path, overwrite=force or output is None) as file:
        file.write(page.encode())
    return path


def open_page(path: Path) -> bool:
    """Open a page in the user's browser; tell whether there was one."""
    return webbrowser.open(path.absolute().as_uri())


def _temporary(case: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="caseledger-"))
    return folder / f"{find_case(case).stem}.html"
