"""The report of a case: diagnosis and change request, every citation resolved to what it cites.

Quoted source lines and rows are copied from evidence documents on the ledger, never from the
model's words, so a quotation equals the snapshot's text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

from ledger.canonical import from_bytes
from ledger.errors import LedgerDamaged, PayloadWithheld
from ledger.reader import CaseReader
from projections.contexts.parts import observation_texts
from projections.state import MALFORMED, State, fault

MAX_QUOTED_LINES = 24
MAX_QUOTED_ROWS = 8

KINDS = {
    "O": "observation",
    "S": "artefact",
    "F": "fact",
    "N": "entity",
    "H": "hypothesis",
    "E": "evidence",
}
"""What can be cited, by the letter of its ID."""

Json = dict[str, Any]


def report(state: State, reader: CaseReader) -> Json:
    """Return the report as a JSON object (docs/json-output.md).

    Raises:
        LedgerDamaged: diagnosis, evidence or observations are not of our making.
    """
    try:
        return _report(state, reader)
    except MALFORMED as error:
        raise LedgerDamaged(
            f"the findings of this case are not what a report can be made of ({fault(error)})"
        ) from None


def _report(state: State, reader: CaseReader) -> Json:
    documents = _Documents(state, reader)
    diagnosis = state.diagnosis
    return {
        "case_id": reader.case_id,
        "trial_id": state.trial_id,
        "title": state.title,
        "revision": state.revision,
        "position": state.position,
        "complete": "change_request" in state.done,
        "ended": state.ended,
        "needs": list(state.needs),
        "interpretation": state.interpretation,
        "diagnosis": diagnosis,
        "change_request": state.change_request,
        "hypotheses": [
            {"id": h.id, "statement": h.value["statement"], "state": h.state, "notes": h.notes}
            for h in state.hypotheses.values()
        ],
        "quotes": [
            {"location": number, **quote}
            for number, location in enumerate((diagnosis or {}).get("locations", ()))
            if (quote := documents.quote(location))
        ],
        "citations": {
            name: described
            for name in sorted(cited_ids(state), key=_by_kind)
            if (described := documents.describe(name))
        },
        "labels": [{"verdict": label.verdict, "note": label.note} for label in state.labels],
    }


class _Documents:
    """What IDs stand for, loaded when cited."""

    def __init__(self, state: State, reader: CaseReader) -> None:
        self._state = state
        self._reader = reader
        self._evidence: dict[str, Json] = {}
        self._texts = observation_texts(state, reader)

    def evidence(self, name: str) -> Json:
        if name not in self._evidence:
            item = self._state.evidence[name]
            self._evidence[name] = from_bytes(self._reader.payload(item.content.digest))
        return self._evidence[name]

    def shown(self, name: str) -> Json:
        """Return an evidence document, an empty one if it is withheld in this copy."""
        try:
            return self.evidence(name)
        except PayloadWithheld:
            return {}

    def quote(self, location: Json) -> Json | None:
        """Return the lines of a location that cited or any other evidence holds."""
        names = [n for n in location["evidence"] if n in self._state.evidence]
        names += [n for n in self._state.evidence if n not in names]
        wanted = range(
            location["first_line"],
            min(location["last_line"], location["first_line"] + MAX_QUOTED_LINES - 1) + 1,
        )
        found: dict[int, tuple[str, str]] = {}
        for name in names:
            for path, number, line in lines_shown(self.shown(name)):
                if path == location["path"] and number in wanted:
                    found.setdefault(number, (line, name))
        if not found:
            return None
        return {
            "path": location["path"],
            "lines": [{"line": n, "text": found[n][0]} for n in sorted(found)],
            "evidence": sorted({name for _, name in found.values()}, key=_by_kind),
            "omitted": max(0, location["last_line"] - wanted.stop + 1),
        }

    def describe(self, name: str) -> Json | None:
        """Return in short what an ID cites; None if it is none of this case."""
        state = self._state
        if name in state.evidence:
            return self._describe_evidence(name)
        if name in self._texts:
            return {"kind": "observation", "text": self._texts[name]}
        if any(observation.id == name for observation in state.observations):
            return {"kind": "observation", "withheld": True}
        for kind, items in (("fact", state.facts), ("entity", state.entities)):
            for item in items:
                if item["id"] == name:
                    return {"kind": kind, "text": item.get("statement") or item.get("name")}
        if name in state.hypotheses:
            return {"kind": "hypothesis", "text": state.hypotheses[name].value["statement"]}
        for artifact in state.artifacts:
            if artifact.artifact == name:
                return {"kind": artifact.kind, "text": artifact.name}
        return {"kind": KINDS[name[0]], "withheld": True} if state.withheld else None

    def _describe_evidence(self, name: str) -> Json:
        document = self.shown(name)
        if not document:
            return {"kind": "evidence", "withheld": True}
        described = {
            "kind": "evidence",
            "action": document["action"],
            "arguments": dict(self._state.actions[self._state.evidence[name].action].expanded),
            "found": document["found"],
            "complete": document["complete"],
        }
        rows = list(rows_shown(document))[:MAX_QUOTED_ROWS]
        return described | ({"rows": rows} if rows else {})


def lines_shown(node: Any) -> Iterator[tuple[str, int, str]]:
    """Yield (file or log, line number, text) of the blocks in an evidence document."""
    if isinstance(node, list):
        for item in node:
            yield from lines_shown(item)
    elif isinstance(node, dict):
        place = node.get("path") or node.get("artifact")
        if isinstance(place, str) and "first" in node and "column" not in node:
            for number, text in enumerate(node.get("lines", ()), start=node["first"]):
                yield place, number, text
        for key, value in node.items():
            if key not in ("rows", "arguments", "lines"):
                yield from lines_shown(value)


def rows_shown(node: Any) -> Iterator[Json]:
    """Yield rows with their column names from wherever an evidence document holds them."""
    if isinstance(node, list):
        for item in node:
            yield from rows_shown(item)
    elif isinstance(node, dict):
        columns, rows = node.get("columns"), node.get("rows")
        if _is_names(columns) and isinstance(rows, list):
            for row in rows:
                if isinstance(row, list) and len(row) == len(columns):
                    yield dict(zip(columns, row, strict=True))
        for key, value in node.items():
            if key not in ("rows", "arguments"):
                yield from rows_shown(value)


def _is_names(columns: Any) -> TypeGuard[list[str]]:
    return isinstance(columns, list) and all(isinstance(name, str) for name in columns)


def cited_ids(state: State) -> set[str]:
    """Return every ID that diagnosis and change request cite, whether or not it exists."""
    found: set[str] = set()
    for document in (state.diagnosis, state.change_request):
        _collect(document, found)
    return found


def _collect(node: Any, found: set[str]) -> None:
    if isinstance(node, dict):
        for value in node.values():
            _collect(value, found)
    elif isinstance(node, list):
        for item in node:
            _collect(item, found)
    elif isinstance(node, str) and node[:1] in KINDS and node[1:].isdecimal():
        found.add(node)


def _by_kind(name: str) -> tuple[str, int]:
    return name[0], int(name[1:])
