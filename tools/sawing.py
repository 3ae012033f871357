"""Finding saved requests and what the model saw in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ledger.events import RequestPrepared, RequestSent
from ledger.reader import CaseReader
from projections.saw import Check, check_all, decoded, document_bytes, saved_document
from projections.wording import counted
from tools.exits import UserError


def document_of(reader: CaseReader, name: str) -> bytes:
    """Return the archived bytes of a request, checked against their digest."""
    prepared = prepared_request(reader, name)[1]
    return document_bytes(reader, prepared.request, prepared.document)


def wire_of(reader: CaseReader, name: str, attempt: int | None) -> bytes:
    """Return the body that left for an attempt, the latest by default.

    The content ID stands where a cache handle stood. Providers in this process get the document
    itself.

    Raises:
        UserError: there is no such attempt.
    """
    prepared = prepared_request(reader, name)[1]
    sent = [
        event
        for _, event in reader.events()
        if isinstance(event, RequestSent) and event.request == prepared.request
    ]
    chosen = [event for event in sent if attempt in (None, event.attempt)]
    if not chosen:
        which = f"attempt {attempt}" if attempt else "attempt"
        raise UserError(
            f"{prepared.request}: it has {counted(len(sent), 'attempt')}, no {which} was sent"
        )
    wire = chosen[-1].wire
    if wire is None:
        return document_bytes(reader, prepared.request, prepared.document)
    return document_bytes(reader, prepared.request, wire, "body")


def decoded_view(reader: CaseReader, name: str) -> dict[str, Any]:
    """Return the model view of a request with encoding and labels undone, and its feedback."""
    return decoded(_saved(reader, name))


def _saved(reader: CaseReader, name: str) -> dict[str, Any]:
    prepared = prepared_request(reader, name)[1]
    return saved_document(reader, prepared.request, prepared.document)


def checks_of(reader: CaseReader, name: str) -> Iterator[Check]:
    """Yield the check of one request, or of all."""
    wanted = "all" if name == "all" else prepared_request(reader, name)[1].request
    for check in check_all(reader):
        if wanted in ("all", check.request):
            yield check


def is_denied(checks: Sequence[Check]) -> bool:
    """Tell whether rebuilding says no: one differs, or nothing could be rebuilt to compare."""
    states = [check.state for check in checks]
    return "differs" in states or ("unchecked" in states and "same" not in states)


def check_remark(checks: Sequence[Check]) -> str:
    """Return in words what rebuilding showed."""
    if not checks:
        return "no request is saved yet"
    states = Counter(check.state for check in checks)
    said = f"{states['same']} of {counted(len(checks), 'request')} rebuilt byte for byte"
    said += f", {states['differs']} different" if states["differs"] else ""
    said += f", {states['unchecked']} could not be rebuilt" if states["unchecked"] else ""
    return f"{said}: nothing is affirmed" if not states["same"] else said


def prepared_request(reader: CaseReader, name: str) -> tuple[int, RequestPrepared]:
    """Return a request by its ID, or the `last` one, with its position.

    Raises:
        UserError: there is no such request.
    """
    found = None
    for position, event in _prepared(reader):
        if name in ("last", event.request):
            found = position, event
    if found is None:
        raise UserError(f"{name}: no such request; `log --kind request` lists them")
    return found


def _prepared(reader: CaseReader) -> Iterator[tuple[int, RequestPrepared]]:
    for position, event in reader.events():
        if isinstance(event, RequestPrepared):
            yield position, event
