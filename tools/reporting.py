"""The report of a case: the same document for `report`, for `analyze` and inside a package."""

from __future__ import annotations

from typing import Any

from ledger.reader import CaseReader
from projections.folding import fold
from projections.report import report
from tools.overview import next_move, standing
from tools.sharing import withheld_json


def report_json(reader: CaseReader) -> dict[str, Any]:
    """Return the report as a JSON object (docs/json-output.md)."""
    state = fold(reader.events())
    shown = report(state, reader)
    return shown | {
        "standing": standing(state),
        "next": next_move(state),
        "withheld": withheld_json(reader),
    }
