"""One case of an evaluation: its ledger and its truth meet here, after the analysis has ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ledger.book import Book
from ledger.canonical import from_bytes, same
from ledger.errors import CanonicalError, LedgerError
from ledger.events import RequestPrepared, RequestSent
from phases.investigation.actions import Evidence, perform
from phases.investigation.database import DatabaseRefused
from phases.investigation.snapshot import Snapshot
from phases.investigation.values import row_to_json
from projections.folding import fold
from projections.report import cited_ids, lines_shown, report, rows_shown
from projections.scoring import (
    Count,
    Decisive,
    Truth,
    TruthRefused,
    quoted_equal,
    rows_cited,
    score,
    truth_from,
)
from projections.spending import spending
from projections.state import State
from tools.exits import UserError
from tools.output import one_line

Json = dict[str, Any]

_DATABASE_LOOKS = ("describe_database", "profile_table", "query_database")
_MOST_ROWS = 1_000
"""Rows of the snapshot that a truth's condition may mean."""

_NONE = asdict(Count())
_UNSCORED: Mapping[str, Any] = {
    "case": "", "state": "failed", "reason": "", "answered_by": [], "outcome": None,
    "confidence": None, "rank": None, "rank_of_all": None, "functions": 0, "function_rank": None,
    "rows": _NONE, "citations": _NONE, "quotes": _NONE, "repeated": _NONE, "ended": None,
    "used": {}, "named": [],
}  # fmt: skip
"""The members of a row, in their order, with the values of a case that was not scored."""


def row(case: str, ledger: Path, truth: Path, *, failed: str, measured: Json) -> Json:
    """Return a case's row of `evaluate --json`; one that cannot be scored says why.

    Args:
        case: its name.
        ledger: its ledger, which may be missing.
        truth: its truth.json.
        failed: why its analysis did not end well, "" if it did.
        measured: `cpu_ms` and `peak_memory_bytes` of the analysis.
    """
    used = {"requests": None, "actions": None, "estimated_tokens": None, "cost_nano_usd": None,
            **measured}  # fmt: skip
    told = {**_UNSCORED, "case": case, "reason": failed or "there is no ledger", "used": used}
    if not ledger.exists():
        return told
    try:
        with Book.open(ledger) as book, Snapshot.of(book) as snapshot:
            state = fold(book.events())
            told |= {"answered_by": _answered_by(book), "ended": state.ended or None,
                     "used": {**used, **_used(book, state)}}  # fmt: skip
            if failed or state.diagnosis is None:
                return told | {"reason": failed or "it ended without a diagnosis"}
            known = truth_from(_truth(truth), snapshot.files)
            scored = _score(book, snapshot, state, known)
            return told | {"state": "scored", "reason": ""} | scored
    except (LedgerError, TruthRefused, UserError) as error:
        return told | {"reason": one_line(str(error), 500)}


def _truth(path: Path) -> Any:
    try:
        return from_bytes(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except CanonicalError as error:
        raise UserError(f"{path}: is no JSON ({error})") from None


def _answered_by(book: Book) -> list[str]:
    sent = [event for _, event in book.events() if isinstance(event, RequestSent)]
    return list(dict.fromkeys(f"{event.provider} {event.model}".strip() for event in sent))


def _used(book: Book, state: State) -> Json:
    prepared = {e.request: e for _, e in book.events() if isinstance(e, RequestPrepared)}
    sent = [event.request for _, event in book.events() if isinstance(event, RequestSent)]
    return {
        "requests": len(state.requests),
        "actions": state.spent.actions,
        "estimated_tokens": sum(prepared[request].estimated_tokens for request in sent),
        "cost_nano_usd": spending(book.events()).cost_nano_usd,
    }


def _score(book: Book, snapshot: Snapshot, state: State, truth: Truth) -> Json:
    assert state.diagnosis is not None
    shown = report(state, book)
    cited = cited_ids(state)
    documents = {
        name: from_bytes(book.payload(item.content.digest))
        for name, item in state.evidence.items()
        if name in cited
    }
    rows = [row for document in documents.values() for row in rows_shown(document)]
    quotes = [
        (quote["path"], line["line"], line["text"])
        for quote in shown["quotes"] for line in quote["lines"]
    ]  # fmt: skip
    quotes += [line for document in documents.values() for line in lines_shown(document)]
    found = rows_cited(truth, rows, lambda decisive: _rows_of(snapshot, decisive))
    return {
        **score(state.diagnosis, truth).as_json(),
        "rows": asdict(found),
        "citations": asdict(Count(len(cited), len(cited & set(shown["citations"])))),
        "quotes": asdict(quoted_equal(quotes, _lines_of(snapshot))),
        "repeated": asdict(_repeated(snapshot, state, documents)),
    }


def _lines_of(snapshot: Snapshot) -> Callable[[str], Sequence[str] | None]:
    def lines(name: str) -> Sequence[str] | None:
        item = snapshot.files.get(name) or snapshot.documents.get(name)
        return snapshot.text(item).lines if item and item.media == "text" else None

    return lines


def _repeated(snapshot: Snapshot, state: State, documents: Mapping[str, Json]) -> Count:
    """Take the cited looks at databases again: their rows must be the snapshot's still."""
    total = good = 0
    for name, document in documents.items():
        action = state.actions[state.evidence[name].action]
        if action.name in _DATABASE_LOOKS:
            again = perform(snapshot, action.name, dict(action.expanded))
            total += 1
            good += isinstance(again, Evidence) and same(again.document, document)
    return Count(total, good)


def _rows_of(snapshot: Snapshot, decisive: Decisive) -> list[Json]:
    """Return the rows that a truth means by a condition, from whichever database has the table."""
    name = decisive.table.replace('"', '""')
    statement = f'SELECT * FROM "{name}" WHERE {decisive.where}'  # read-only, in a guarded child
    said = "the case has no database"
    for item in snapshot.of_kind("database"):
        try:
            rows = snapshot.database(item.artifact).query(statement, rows=_MOST_ROWS)
        except DatabaseRefused as error:
            said = str(error)
            continue
        return [dict(zip(rows.columns, row_to_json(row), strict=True)) for row in rows.rows]
    raise TruthRefused(f"truth.json, rows of {decisive.table}: {said}")
