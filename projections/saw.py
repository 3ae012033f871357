"""Exactly what the model saw: archived bytes, and the check that they can be rebuilt today."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from ledger import canonical
from ledger.errors import LedgerDamaged, LedgerError, PayloadWithheld
from ledger.events import ContextCreated, Ref, RequestPrepared
from ledger.reader import CaseReader
from projections import aliases
from projections.requests import UnknownVersion, first_difference, render, restored_view
from projections.state import MALFORMED, fault

WITHHELD = "withheld in this copy"
"""Why a request of a copy made for sharing cannot be checked."""


class Check(NamedTuple):
    """What rebuilding one request showed."""

    request: str
    position: int
    state: Literal["same", "differs", "unchecked"]
    saved: str
    rebuilt: str = ""
    detail: str = ""


def check_request(
    reader: CaseReader, prepared: RequestPrepared, position: int, context_digest: str
) -> Check:
    """Rebuild a saved request from its context with its saved versions and compare.

    The archived document stays what it is: a difference is reported, never papered over.
    """
    saved = prepared.document.digest
    try:
        document = canonical.from_bytes(reader.payload(saved))
        context = canonical.from_bytes(reader.payload(context_digest))
        feedback = [message["content"] for message in document["messages"][1:]]
        rendered = render(prepared.protocol, context, feedback)
    except UnknownVersion as error:
        return Check(prepared.request, position, "unchecked", saved, detail=str(error))
    except PayloadWithheld:
        return Check(prepared.request, position, "unchecked", saved, detail=WITHHELD)
    except LedgerError as error:
        return Check(prepared.request, position, "differs", saved, detail=str(error))
    except MALFORMED:
        detail = f"request {prepared.request}: its payload is not a request document"
        return Check(prepared.request, position, "differs", saved, detail=detail)
    rebuilt = canonical.digest(rendered.document)
    if rebuilt == saved:
        return Check(prepared.request, position, "same", saved, rebuilt)
    path = first_difference(document, canonical.from_bytes(rendered.document))
    detail = (
        f"request {prepared.request}: rebuilt {rebuilt}, saved {saved}; first difference at {path}"
    )
    return Check(prepared.request, position, "differs", saved, rebuilt, detail)


def check_all(reader: CaseReader, upto: int | None = None) -> Iterator[Check]:
    """Yield a check of every saved request, in order."""
    contexts: dict[str, str] = {}
    for seen, (position, event) in enumerate(reader.events(upto), start=1):
        if isinstance(event, ContextCreated):
            contexts[event.context] = event.content.digest
        elif isinstance(event, RequestPrepared):
            saved = event.document.digest
            if event.context not in contexts and position != seen:  # its event may be withheld
                yield Check(event.request, position, "unchecked", saved, detail=WITHHELD)
            else:
                yield check_request(reader, event, position, contexts.get(event.context, ""))


def saved_document(reader: CaseReader, request: str, saved: Ref) -> dict[str, Any]:
    """Return a saved request document as a value.

    Raises:
        PayloadWithheld: it is left out of a copy made for sharing.
        LedgerDamaged: the payload is missing, altered, or no request document.
    """
    document = canonical.from_bytes(document_bytes(reader, request, saved))
    try:
        _ = document["protocol"], document["system"]
        _ = [message["content"] for message in document["messages"]]
        _ = document["messages"][0]
    except MALFORMED:
        raise LedgerDamaged(f"request {request}: its payload is not a request document") from None
    return dict(document)


def document_bytes(reader: CaseReader, request: str, saved: Ref, what: str = "document") -> bytes:
    """Return the archived bytes of a request document, or of a body that was sent.

    Raises:
        PayloadWithheld: they are left out of a copy made for sharing.
    """
    try:
        return reader.payload(saved.digest)
    except PayloadWithheld:
        raise PayloadWithheld(f"{request}: its {what} is {WITHHELD}") from None


def decoded(document: dict[str, Any]) -> dict[str, Any]:
    """Return what a request document says, encoding and labels of its view undone.

    Raises:
        UnknownVersion: its protocol is not in this release.
        LedgerDamaged: its content is not a view.
    """
    try:
        view = aliases.resolve(restored_view(document))
    except MALFORMED as error:
        raise LedgerDamaged(
            f"the content of a request is not a view of this program's making ({fault(error)})"
        ) from None
    return {
        "protocol": document["protocol"],
        "system": document["system"],
        "view": view,
        "feedback": [message["content"] for message in document["messages"][1:]],
    }
