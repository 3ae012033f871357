"""From a state to a saved request: context, document, events. Nothing is sent here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import prompts
from ledger import canonical
from ledger.events import ContextCreated, EncodingFellBack, Event, Ref, RequestPrepared
from ledger.reader import CaseReader
from phases.reading import feedback
from phases.settings import Settings
from projections.contexts import Material, builder
from projections.requests import Json, Rendered, UnknownVersion, render
from projections.saw import saved_document
from projections.state import Request, State

PLAIN = "plain_v1"


class Prepared(NamedTuple):
    """Events of one transaction and the payloads they name."""

    events: tuple[Event, ...]
    payloads: tuple[bytes, ...]


def begin(
    state: State,
    reader: CaseReader,
    phase: str,
    settings: Settings,
    material: Callable[[], Material],
    now: str,
) -> Prepared:
    """Return a new context and its first request, under the newest or the pinned protocol."""
    protocol = settings.protocols.get(phase, prompts.NEWEST[phase])
    context = _marked(builder(phase)(state, reader, material()), protocol)
    data = canonical.to_bytes(context)
    assert state.configuration is not None
    created = ContextCreated(
        at=now,
        context=f"C{len(state.contexts) + 1}",
        phase=phase,
        revision=state.revision,
        protocol=protocol,
        configuration=state.configuration.digest,
        content=reference(data),
        hypothesis=state.selected if phase == "investigation" else "",
    )
    rendered = render(protocol, context)
    events = _events(state, created.context, phase, protocol, rendered, "", now)
    return Prepared((created, *events), (data, rendered.document))


def correct(state: State, reader: CaseReader, rejected: Request, now: str) -> Prepared:
    """Return a correction: a new request on the same context and protocol, one message longer."""
    answer = (
        canonical.from_bytes(reader.payload(rejected.answer.digest)) if rejected.answer else None
    )
    message = feedback(_kind(rejected), rejected.problems, rejected.id, answer)
    rendered = _render_again(state, reader, rejected, message)
    events = _events(
        state, rejected.context, rejected.phase, rejected.protocol, rendered, rejected.id, now
    )
    return Prepared(events, (rendered.document,))


def can_be_rebuilt(state: State, reader: CaseReader, request: Request) -> bool:
    """Tell whether this release gives the very bytes of a saved request."""
    try:
        rendered = _render_again(state, reader, request)
    except UnknownVersion:
        return False
    return canonical.digest(rendered.document) == request.document.digest


def _render_again(state: State, reader: CaseReader, request: Request, *more: Json) -> Rendered:
    """Render a saved request from its context and feedback, with more feedback at its end."""
    content = state.contexts[request.context].content
    messages = saved_document(reader, request.id, request.document)["messages"]
    earlier = [message["content"] for message in messages[1:]]
    context = canonical.from_bytes(reader.payload(content.digest))
    return render(request.protocol, context, [*earlier, *more])


def _marked(context: dict[str, Any], protocol: str) -> dict[str, Any]:
    """Return a new context that names the codec its protocol uses; plain ones carry no marker."""
    encoding = prompts.card(protocol).encoding
    return context if encoding == PLAIN else {**context, "model_encoding": encoding}


def reference(data: bytes) -> Ref:
    """Return the reference of a payload."""
    return Ref(digest=canonical.digest(data), size=len(data))


def _kind(rejected: Request) -> str:
    return rejected.rejection or "content"


def _events(
    state: State,
    context: str,
    phase: str,
    protocol: str,
    rendered: Rendered,
    corrects: str,
    now: str,
) -> tuple[Event, ...]:
    prepared = RequestPrepared(
        at=now,
        request=f"R{len(state.requests) + 1}",
        context=context,
        phase=phase,
        protocol=protocol,
        versions=rendered.versions,
        form=rendered.form,
        form_reason=rendered.reason,
        document=reference(rendered.document),
        characters=rendered.characters,
        plain_characters=rendered.plain_characters,
        estimated_tokens=rendered.estimated_tokens,
        plain_estimated_tokens=rendered.plain_estimated_tokens,
        estimator=rendered.estimator,
        corrects=corrects,
    )
    fell = rendered.fell_back
    if fell is None:
        return (prepared,)
    note = EncodingFellBack(
        at=now,
        context=context,
        encoding=fell.encoding,
        stage=fell.stage,
        reason=fell.reason,
        path=fell.path,
    )
    return note, prepared
