"""Protocol + canonical context → request document; and back: rebuild a saved one and check it.

Pure: the prompt text and the archived context determine every byte. A saved request is rebuilt with
the versions it names, whatever is newest today.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import prompts
from ledger import canonical
from ledger.errors import CanonicalError, LedgerDamaged, LedgerError
from projections import aliases, encodings, views
from projections.tokens import ESTIMATOR, estimated_tokens

FORMAT = 1

Json = dict[str, Any]


class UnknownVersion(Exception):
    """A request names a version this release does not have: unchecked, not bad."""


class FellBack(NamedTuple):
    """An encoding could not prove its inverse for this document."""

    encoding: str
    stage: str
    reason: str
    path: str = ""


class Rendered(NamedTuple):
    """A request document and what `request.prepared` records about it."""

    document: bytes
    versions: dict[str, str]
    form: str
    reason: str
    characters: int
    plain_characters: int
    estimated_tokens: int
    plain_estimated_tokens: int
    estimator: str
    fell_back: FellBack | None


def render(protocol: str, context: Json, feedback: Sequence[Json] = ()) -> Rendered:
    """Return the request document of a protocol over a canonical context.

    Args:
        protocol: its name, such as `hypotheses_v2`.
        context: the archived canonical context.
        feedback: content of the feedback messages of corrections, oldest first.

    Raises:
        UnknownVersion: the protocol or one of its versions is not in this release.
    """
    card = _card(protocol)
    view = model_view(protocol, context)
    encoded, fell_back = _encode(card.encoding, view)
    messages = [encoded.content, *feedback]
    plain = [view, *feedback]
    document = {
        "format": FORMAT,
        "protocol": protocol,
        "system": card.text,
        "schema": prompts.schema(card.schema),
        "messages": [{"role": "user", "content": content} for content in messages],
    }
    texts = [card.text, *map(_text, messages)]
    plain_texts = [card.text, *map(_text, plain)]
    tokens = {text: estimated_tokens(text) for text in {*texts, *plain_texts}}
    return Rendered(
        canonical.to_bytes(document),
        {
            "view": card.view,
            "alias": card.alias,
            "encoding": card.encoding,
            "partition": card.partition,
        },
        encoded.form,
        encoded.reason,
        sum(map(len, texts)),
        sum(map(len, plain_texts)),
        sum(tokens[text] for text in texts),
        sum(tokens[text] for text in plain_texts),
        ESTIMATOR,
        fell_back,
    )


def model_view(protocol: str, context: Json) -> Json:
    """Return what a protocol shows of a context, before encoding.

    Raises:
        UnknownVersion: the protocol or one of its versions is not in this release.
    """
    card = _card(protocol)
    try:
        view, alias = views.VERSIONS[card.view], aliases.VERSIONS[card.alias]
    except KeyError as error:
        raise UnknownVersion(f"version {error} is not known to this release") from None
    return alias(view(context))


def restored_view(document: Json) -> Json:
    """Return the model view of a request document: its content decoded, labels still in place.

    Raises:
        UnknownVersion: the protocol is not in this release.
        LedgerDamaged: the content is not a view.
    """
    encoding = _encoding(_card(document["protocol"]).encoding)
    view = encoding.restore(document["messages"][0]["content"])
    if not isinstance(view, dict):
        raise LedgerDamaged("the content of a request is not a view of this program's making")
    return view


def system_with_schema(document: Json) -> str:
    """Return the system text with the output schema as text at its end."""
    words = prompts.wire("output_schema_v1")
    return f"{document['system']}\n\n{words}\n{message_text(document['schema'])}"


def message_text(content: Any) -> str:
    """Return the text a provider sends for a message's content."""
    return _text(content)


def _text(content: Any) -> str:
    return canonical.to_bytes(content).decode()


def _card(protocol: str) -> prompts.Card:
    try:
        return prompts.card(protocol)
    except prompts.PromptError as error:
        raise UnknownVersion(str(error)) from None


def _encoding(name: str) -> encodings.Encoding:
    try:
        return encodings.VERSIONS[name]
    except KeyError:
        raise UnknownVersion(f"encoding {name!r} is not known to this release") from None


def _encode(name: str, view: Json) -> tuple[encodings.Encoded, FellBack | None]:
    """Encode a view and prove the inverse for this very view; else the plain view and why."""
    encoding = _encoding(name)
    stage = "encode"
    try:
        encoded = encoding.encode(view)
        stage = "restore"
        restored = encoding.restore(encoded.content)
        stage = "compare"
        if canonical.same(restored, view):
            return encoded, None
        problem = FellBack(
            name, stage, "restored to another value", first_difference(restored, view)
        )
    except (LedgerError, ValueError, RecursionError) as error:
        problem = FellBack(name, stage, f"{type(error).__name__}: {error}")
    return encodings.Encoded(view, "plain", "fell_back"), problem


def first_difference(left: Any, right: Any, path: str = "$") -> str:
    """Return the JSON path at which two values first differ; empty if they are the same."""
    if isinstance(left, dict) and isinstance(right, dict):
        if list(left) != list(right):
            odd = next((key for key in [*left, *right] if (key in left) != (key in right)), None)
            return f"{path}.{odd}" if odd is not None else f"{path} (order of members)"
        return next(
            (
                found
                for key in left
                if (found := first_difference(left[key], right[key], f"{path}.{key}"))
            ),
            "",
        )
    if isinstance(left, list) and isinstance(right, list):
        for index, (a, b) in enumerate(zip(left, right, strict=False)):
            if found := first_difference(a, b, f"{path}[{index}]"):
                return found
        return f"{path}[{min(len(left), len(right))}]" if len(left) != len(right) else ""
    try:
        return "" if canonical.same(left, right) else path
    except CanonicalError:
        return path
