"""Where each part of a saved request comes from, and what was left out, by which policy."""

from __future__ import annotations

from dataclasses import dataclass

from ledger import canonical
from ledger import events as e
from ledger.errors import LedgerDamaged
from ledger.reader import CaseReader
from projections.explaining.left_out import LeftOut, left_out
from projections.explaining.parts import Part, feedback, member, part
from projections.explaining.trail import Json, Trail, Where, trail_of
from projections.requests import restored_view
from projections.saw import saved_document
from projections.state import MALFORMED, fault
from projections.tokens import ESTIMATOR

__all__ = ["Explanation", "LeftOut", "Part", "Where", "explain"]


@dataclass(frozen=True)
class Explanation:
    """A saved request taken apart. Sizes of the whole are those that `request.prepared` records."""

    position: int
    prepared: e.RequestPrepared
    context_position: int
    parts: tuple[Part, ...]
    left_out: tuple[LeftOut, ...]

    def as_json(self) -> Json:
        prepared = self.prepared
        return {
            "request": prepared.request,
            "position": self.position,
            "context": prepared.context,
            "context_position": self.context_position,
            "phase": prepared.phase,
            "protocol": prepared.protocol,
            "versions": prepared.versions,
            "form": prepared.form,
            "characters": prepared.characters,
            "plain_characters": prepared.plain_characters,
            "estimated_tokens": prepared.estimated_tokens,
            "plain_estimated_tokens": prepared.plain_estimated_tokens,
            "estimator": ESTIMATOR,
            "parts": [part.as_json() for part in self.parts],
            "left_out": [item._asdict() for item in self.left_out],
        }


def explain(reader: CaseReader, request: str) -> Explanation:
    """Return what a request is made of.

    Raises:
        KeyError: there is no such request.
        UnknownVersion: the protocol of the request is not in this release.
        LedgerDamaged: the request, its context or the record is not of our making.
    """
    trail = trail_of(reader, request)
    try:
        return _explain(reader, trail)
    except MALFORMED as error:
        raise LedgerDamaged(
            f"request {request}: it is not what a request of this program is made of "
            f"({fault(error)})"
        ) from None


def _explain(reader: CaseReader, trail: Trail) -> Explanation:
    prepared = trail.prepared
    document = saved_document(reader, prepared.request, prepared.document)
    view = restored_view(document)
    context = canonical.from_bytes(reader.payload(trail.context.content.digest))
    parts = (
        part("system", f"prompt {prepared.protocol}", document["system"], [trail.at]),
        part("schema", f"output schema of {prepared.protocol}", document["schema"], [trail.at]),
        *(member(trail, name, value) for name, value in view.items()),
        *feedback(trail, document["messages"][1:]),
    )
    left = tuple(left_out(reader, trail, context, view))
    return Explanation(trail.at.position, prepared, trail.context_at.position, parts, left)
