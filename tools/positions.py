"""From what a user types to a position of a ledger: a number, `head`, or a request."""

from __future__ import annotations

import re

from ledger.events import RequestPrepared
from ledger.reader import CaseReader
from projections.naming import find
from tools.exits import UserError

HEAD = "head"


def position_of(record: CaseReader, at: str) -> int:
    """Return the position a user means: a number, `head`, or `R5`: before R5's context was made.

    Raises:
        UserError: there is no such position or request.
    """
    last = record.head.position
    if at == HEAD:
        return last
    if re.fullmatch(r"R\d+", at):
        return _before(record, at)
    if not (at.isascii() and at.isdecimal()):
        raise UserError(f"{at}: is neither a position (1 to {last}), nor a request such as R5")
    if len(at) > 18 or not 1 <= int(at) <= last:
        raise UserError(f"{at}: the ledger has positions 1 to {last}")
    return int(at)


def _before(record: CaseReader, request: str) -> int:
    prepared = find(record.events(), request)
    context = (
        prepared.event.context if prepared and isinstance(prepared.event, RequestPrepared) else ""
    )
    created = find(record.events(), context)
    if created is None:
        raise UserError(f"{request}: no such request; `log --kind request` lists them")
    return created.position - 1
