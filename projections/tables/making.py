"""From a case's events to rows. Two walks: what came of things, then a row for each event.

The state says what is so now; the events say when and how.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ledger import events as e
from ledger import topics
from ledger.canonical import from_bytes, to_bytes
from ledger.errors import CanonicalError, LedgerDamaged, PayloadWithheld
from ledger.reader import CaseReader, Entry
from ledger.reader import Row as Stored
from projections.contexts.parts import observation_texts
from projections.folding import fold
from projections.state import MALFORMED, State, fault
from projections.tables.forms import (
    ActionRow,
    ArtifactRow,
    AttemptRow,
    CacheRow,
    CaseRow,
    CostRow,
    EventRow,
    EvidenceRow,
    HypothesisRow,
    RequestRow,
    ResponseRow,
    Row,
    TextRow,
)
from projections.timeline import line

Key = tuple[str, int]


def rows(reader: CaseReader, ledger: int, name: str, *, words: bool = True) -> Iterator[Row]:
    """Yield the rows of a case, those of a table in the order of the ledger.

    Args:
        reader: a case or package.
        ledger: its number, the key by which its rows are found.
        name: what it is called.
        words: whether words of the case, of models and of people enter.

    Raises:
        LedgerDamaged: the record is not of our making.
        UnknownEvent: it has events of a newer release.
    """
    try:
        for row in _Case(reader, ledger, name).rows(words=words):
            if words:
                yield row
            elif not isinstance(row, TextRow):
                yield row.without_words()
    except (*MALFORMED, LookupError, OverflowError) as error:
        raise LedgerDamaged(
            f"{name}: the record is not one that tables can be made of ({fault(error)})"
        ) from None


@dataclass
class _Index:
    """Events that rows of other events need."""

    sent: dict[Key, e.RequestSent] = field(default_factory=dict)
    ended: dict[Key, e.RequestFailed | e.ResponseReceived | e.OutcomeUnknown] = field(
        default_factory=dict
    )
    judged: dict[Key, e.ResponseAccepted | e.ResponseRejected] = field(default_factory=dict)
    refused: dict[str, e.ActionRefused] = field(default_factory=dict)
    assessed: dict[str, int] = field(default_factory=dict)

    def note(self, event: e.Event) -> None:
        match event:
            case e.RequestSent():
                self.sent[event.request, event.attempt] = event
            case e.RequestFailed() | e.ResponseReceived() | e.OutcomeUnknown():
                self.ended[event.request, event.attempt] = event
            case e.ResponseAccepted() | e.ResponseRejected():
                self.judged[event.request, event.attempt] = event
            case e.ActionRefused():
                self.refused[event.action] = event
            case e.HypothesisAssessed():
                self.assessed[event.hypothesis] = self.assessed.get(event.hypothesis, 0) + 1
            case _:
                pass


class _Case:
    """One case being turned into rows. Two walks: what came of things, then the rows."""

    def __init__(self, reader: CaseReader, ledger: int, name: str) -> None:
        self._reader = reader
        self._ledger = ledger
        self._name = name
        self._upto = reader.head.position  # of a case that somebody is still writing
        self._index = _Index()
        self._state = fold(self._noted())

    def rows(self, *, words: bool) -> Iterator[Row]:
        """Yield the rows; without words, no payload is read."""
        yield self._case()
        texts = _observation_texts(self._state, self._reader) if words else {}
        for stored in self._reader.rows(self._upto):
            if stored.state is None:
                yield self._withheld(stored)
                continue
            event = topics.decode(stored.topic, stored.state, stored.position)
            yield self._event(stored.position, event, stored.state)
            if make := _THINGS.get(type(event)):
                yield from make(self, stored.position, event, words)
            if words:
                yield from self._texts(stored.position, event, texts)

    def _noted(self) -> Iterator[Entry]:
        for entry in self._reader.events(self._upto):
            self._index.note(entry.event)
            yield entry

    def _case(self) -> Row:
        state, diagnosis = self._state, self._state.diagnosis or {}
        label = state.labels[-1] if state.labels else None
        return CaseRow(
            id=self._ledger,
            name=self._name,
            case_id=state.case_id,
            trial_id=state.trial_id,
            title=state.title,
            opened_at=state.opened_at,
            position=self._upto,
            chain=self._reader.head.chain.hex(),
            revision=state.revision,
            package_id=state.package_id,
            generation=state.generation,
            outcome=_text(diagnosis.get("outcome")),
            confidence=_number(diagnosis.get("confidence")),
            cause=_text(diagnosis.get("cause")),
            ended=state.ended or None,
            stopped=state.stopped or None,
            attention=state.attention or None,
            verdict=label.verdict if label else None,
            verdict_note=label.note if label else None,
        )

    def _withheld(self, stored: Stored) -> Row:
        return EventRow(self._ledger, stored.position, None, stored.topic, None, 0, None, None)

    def _event(self, position: int, event: e.Event, state: bytes) -> Row:
        return EventRow(
            ledger=self._ledger,
            position=position,
            at=event.at,
            topic=event.TOPIC,
            request=getattr(event, "request", None) or None,
            bytes=len(state),
            line=line(event),
            state=state.decode(),
        )

    def _artifact(self, position: int, event: e.ArtifactAdded, words: bool) -> Iterator[Row]:
        content = event.content or event.tree
        yield ArtifactRow(
            ledger=self._ledger,
            artifact=event.artifact,
            position=position,
            kind=event.kind,
            name=event.name,
            revision=event.revision,
            media=event.media,
            digest=content.digest if content else None,
            bytes=content.size if content else None,
            lines=event.lines,
        )

    def _request(self, position: int, event: e.RequestPrepared, words: bool) -> Iterator[Row]:
        request = self._state.requests[event.request]
        context = self._state.contexts.get(event.context)
        versions = {name: _text(event.versions.get(name)) for name in _VERSIONS}
        yield RequestRow(
            ledger=self._ledger,
            request=event.request,
            position=position,
            at=event.at,
            phase=event.phase,
            protocol=event.protocol,
            **versions,
            form=event.form,
            form_reason=event.form_reason,
            context=event.context,
            revision=context.revision if context else None,
            hypothesis=(context.hypothesis or None) if context else None,
            corrects=event.corrects or None,
            status=request.status,
            attempts=len(request.attempts),
            document=event.document.digest,
            bytes=event.document.size,
            characters=event.characters,
            plain_characters=event.plain_characters,
            estimated_tokens=event.estimated_tokens,
            plain_estimated_tokens=event.plain_estimated_tokens,
        )

    def _attempt(self, position: int, event: e.RequestSent, words: bool) -> Iterator[Row]:
        ended = self._index.ended.get((event.request, event.attempt))
        failed = ended if isinstance(ended, e.RequestFailed) else None
        waited = None if isinstance(ended, e.OutcomeUnknown) else ended
        yield AttemptRow(
            ledger=self._ledger,
            request=event.request,
            attempt=event.attempt,
            position=position,
            at=event.at,
            provider=event.provider,
            model=event.model,
            endpoint=event.endpoint,
            document=event.document,
            wire=event.wire.digest if event.wire else None,
            content_id=event.cache or None,
            status=_ENDED[type(ended)],
            kind=failed.kind if failed else None,
            message=failed.message if failed else None,
            http_status=waited.status if waited else None,
            retryable=failed.retryable if failed else None,
            retry_after_ms=failed.retry_after_ms if failed else None,
            elapsed_ms=waited.elapsed_ms if waited else None,
        )

    def _response(self, position: int, event: e.ResponseReceived, words: bool) -> Iterator[Row]:
        judged = self._index.judged.get((event.request, event.attempt))
        rejected = judged if isinstance(judged, e.ResponseRejected) else None
        answer = judged.answer if judged else None
        yield ResponseRow(
            ledger=self._ledger,
            request=event.request,
            attempt=event.attempt,
            position=position,
            at=event.at,
            body=event.body.digest,
            bytes=event.body.size,
            complete=event.complete,
            elapsed_ms=event.elapsed_ms,
            http_status=event.status,
            verdict=_JUDGED[type(judged)],
            rejection=rejected.kind if rejected else None,
            problems=len(rejected.problems) if rejected else 0,
            correctable=rejected.correctable if rejected else None,
            answer=answer.digest if answer else None,
            answer_json=self._payload(answer) if answer and words else None,
        )

    def _cost(self, position: int, event: e.UsageMeasured, words: bool) -> Iterator[Row]:
        request = self._state.requests.get(event.request)
        sent = self._index.sent.get((event.request, event.attempt))
        yield CostRow(
            ledger=self._ledger,
            position=position,
            request=event.request,
            attempt=event.attempt,
            phase=request.phase if request else None,
            provider=sent.provider if sent else None,
            model=sent.model if sent else None,
            prompt=event.prompt,
            cached=event.cached,
            output=event.output,
            thoughts=event.thoughts,
            cost_nano_usd=event.cost_nano_usd,
        )

    def _cache(self, position: int, event: Any, words: bool) -> Iterator[Row]:
        """Yield an event of a cache: the columns are its fields."""
        told: dict[str, Any] = {n: _told(event, n) for n in CacheRow.columns()}
        if isinstance(event, e.CacheCreateUnknown):  # a sentence, where others have a code
            told |= {"reason": None, "message": event.reason}
        noun = event.TOPIC.partition("/")[0]
        told |= {"ledger": self._ledger, "position": position, "event": noun}
        yield CacheRow(**told)

    def _hypotheses(self, position: int, event: e.HypothesesProposed, words: bool) -> Iterator[Row]:
        for item in event.result["hypotheses"]:
            now = self._state.hypotheses[item["id"]]
            yield HypothesisRow(
                ledger=self._ledger,
                hypothesis=now.id,
                position=position,
                request=event.request,
                revision=event.revision,
                statement=item["statement"],
                mechanism=_text(item.get("mechanism")),
                likelihood=_number(item.get("likelihood")),
                state=now.state,
                notes=now.notes,
                questions=_json(now.questions),
                evidence=_json(now.evidence),
                assessments=self._index.assessed.get(now.id, 0),
                selected=now.id == self._state.selected,
            )

    def _action(self, position: int, event: e.ActionRequested, words: bool) -> Iterator[Row]:
        refused = self._index.refused.get(event.action)
        yield ActionRow(
            ledger=self._ledger,
            action=event.action,
            position=position,
            at=event.at,
            name=event.name,
            by=event.by,
            request=event.request or None,
            hypothesis=event.hypothesis or None,
            revision=event.revision,
            result=self._state.actions[event.action].result or None,
            refusal=refused.kind if refused else None,
            arguments=_json(event.arguments),
            expanded=_json(event.expanded),
        )

    def _evidence(self, position: int, event: e.EvidenceRecorded, words: bool) -> Iterator[Row]:
        yield EvidenceRow(
            ledger=self._ledger,
            evidence=event.evidence,
            position=position,
            at=event.at,
            action=event.action,
            kind=event.kind,
            hypothesis=event.hypothesis or None,
            document=event.content.digest,
            bytes=event.content.size,
            characters=event.characters,
            complete=event.complete,
            found=event.found,
            document_json=self._payload(event.content) if words else None,
        )

    def _payload(self, ref: e.Ref) -> str | None:
        """Return a payload's text; None if it is withheld in this copy."""
        try:
            return self._reader.payload(ref.digest).decode("utf-8", "backslashreplace")
        except PayloadWithheld:
            return None

    def _texts(
        self, position: int, event: e.Event, observations: Mapping[str, str]
    ) -> Iterator[Row]:
        def text(kind: str, thing: str, value: str) -> Row:
            return TextRow(self._ledger, position, kind, thing, value)

        yield text("event", event.TOPIC, line(event))
        match event:
            case e.ObservationsExtracted():
                for item in event.observations:
                    if item.id in observations:
                        yield text(item.kind, item.id, observations[item.id])
            case e.EvidenceRecorded():
                if document := self._payload(event.content):
                    yield text("evidence", event.evidence, _spoken_in(document))
            case (
                e.EntitiesResolved()
                | e.CaseInterpreted()
                | e.HypothesesProposed()
                | e.DiagnosisConcluded()
                | e.ChangeRequested()
                | e.PhaseAnswered()
            ):
                yield text(event.TOPIC.partition("/")[0], event.request, _words(event.result))
            case _:
                pass


_VERSIONS = ("view", "alias", "encoding", "partition")

_ENDED: Mapping[type, str] = {
    type(None): "sent",
    e.RequestFailed: "failed",
    e.ResponseReceived: "received",
    e.OutcomeUnknown: "unknown",
}

_JUDGED: Mapping[type, str | None] = {
    type(None): None,
    e.ResponseAccepted: "accepted",
    e.ResponseRejected: "rejected",
}

_THINGS: Mapping[type[e.Event], Callable[[_Case, int, Any, bool], Iterator[Row]]] = {
    e.ArtifactAdded: _Case._artifact,
    e.RequestPrepared: _Case._request,
    e.RequestSent: _Case._attempt,
    e.ResponseReceived: _Case._response,
    e.UsageMeasured: _Case._cost,
    e.HypothesesProposed: _Case._hypotheses,
    e.ActionRequested: _Case._action,
    e.EvidenceRecorded: _Case._evidence,
    **{event: _Case._cache for event in e.EVENTS if event.TOPIC.startswith("cache.")},
}
"""What an event puts into tables, beside its own row."""


def _observation_texts(state: State, reader: CaseReader) -> dict[str, str]:
    try:
        return observation_texts(state, reader)
    except PayloadWithheld:  # a copy made for sharing may withhold them
        return {}


def _told(event: e.Event, name: str) -> Any:
    """Return a field of an event; None if it has none of this name, or an empty text."""
    value = getattr(event, name, None)
    return None if value == "" else value


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _json(value: Any) -> str:
    return to_bytes(value).decode()


def _spoken_in(document: str) -> str:
    """Return the words of a JSON text; a text that is not JSON is all words."""
    try:
        return _words(from_bytes(document.encode()))
    except CanonicalError:
        return document


def _words(value: Any) -> str:
    """Return every text and number in a JSON value, in order, one a line: what a search finds."""
    found: list[str] = []
    nodes = [value]
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict):
            nodes.extend(reversed(node.values()))
        elif isinstance(node, list | tuple):
            nodes.extend(reversed(node))
        elif isinstance(node, str | int | float) and not isinstance(node, bool):
            found.append(str(node))
    return "\n".join(found)
