"""Finding saved requests and what the model saw in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledger.events import RequestPrepared
from ledger.reader import CaseReader
from projections import aliases
from projections.requests import restored_view
from projections.saw import Check, check_all, saved_document
from tools.exits import UserError


def document_of(reader: CaseReader, name: str) -> bytes:
    """Return the archived bytes of a request, checked against their digest."""
    return reader.payload(_find(reader, name)[1].document.digest)


def decoded_view(reader: CaseReader, name: str) -> dict[str, Any]:
    """Return the model view of a request with encoding and labels undone, and its feedback."""
    document = _saved(reader, name)
    return {
        "protocol": document["protocol"],
        "system": document["system"],
        "view": aliases.resolve(restored_view(document)),
        "feedback": [message["content"] for message in document["messages"][1:]],
    }


def _saved(reader: CaseReader, name: str) -> dict[str, Any]:
    prepared = _find(reader, name)[1]
    return saved_document(reader, prepared.request, prepared.document)


def checks_of(reader: CaseReader, name: str) -> Iterator[Check]:
    """Yield the check of one request, or of all."""
    wanted = "all" if name == "all" else _find(reader, name)[1].request
    for check in check_all(reader):
        if wanted in ("all", check.request):
            yield check


def _find(reader: CaseReader, name: str) -> tuple[int, RequestPrepared]:
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
