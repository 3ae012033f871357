"""Name and version of the program, as ledgers record it."""

from __future__ import annotations

from importlib.metadata import version


def program() -> str:
    """Return `caseledger` and the installed version."""
    return f"caseledger {version('caseledger')}"
