"""Names of the forms, bounds, and the one error of consolidated_v1."""

from __future__ import annotations

from collections.abc import Sequence

from ledger.errors import LedgerError

MARK = "$consolidated"
VERSION = 1

REF = "$ref"
RECORD = "$record"
TABLE = "$table"
LINES = "$lines"
LIT = "$lit"
FORMS = frozenset({REF, RECORD, TABLE, LINES, LIT})

SHAPES = "shapes"
SHARED = "shared"
DATA = "data"
LITERAL = "literal"

LINES_IN_A_BLOCK = 10
"""A reader counts at most nine lines from a block's first number."""


def collides(names: Sequence[str]) -> bool:
    """Tell whether an object with these keys would be read as a form."""
    return len(names) == 1 and names[0] in FORMS


class ConsolidatedError(LedgerError):
    """A consolidated document breaks its grammar or a bound; nothing of it is to be trusted."""
