"""From a raw answer to facts or a rejection: finish, format, schema, citations, content.

All problems found go into one rejection, named after the first check that failed; nothing is
repaired. Content is checked only in an answer of the right shape.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

import prompts
from ledger import canonical
from ledger.errors import CanonicalError
from ledger.events import Problem
from phases import citations
from phases.phase import Json, find
from phases.providers.base import Reply

MAX_PROBLEMS = 40
MAX_CHARACTERS = 2_000_000
MAX_DEPTH = 64
"""Bounds of an answer: beyond them nobody looks at it; its raw bytes are on the ledger."""

MAX_REPEATED = 200_000
"""Bytes of a rejected answer that is repeated in its correction; of a longer one, problems only."""

FED_BACK = frozenset({"format", "schema", "identity", "content"})
"""Kinds that feedback can help with; a cut-off or blocked answer is never fed back."""


@dataclass(frozen=True)
class Rejection:
    """Why an answer was not accepted."""

    kind: str
    problems: tuple[Problem, ...]
    answer: Json | None = None

    @property
    def correctable(self) -> bool:
        return self.kind in FED_BACK


def read_answer(reply: Reply, protocol: str, context: Json) -> Json | Rejection:
    """Return the answer as JSON if it passes every check against its saved context."""
    if reply.finish != "stop" or not reply.text:
        kind = reply.finish if reply.finish != "stop" else "empty"
        message = f"the answer did not end normally: {kind} {reply.detail}".strip()
        return Rejection("finish", (Problem(code=kind, message=_safe(message)),))
    try:
        answer = _parsed(reply.text)
    except CanonicalError as error:
        return Rejection("format", (Problem(code="not_json", message=_safe(str(error))),))
    card = prompts.card(protocol)
    phase = find(card.phase)
    schema = _schema_problems(answer, card)
    identity = citations.check(answer, context)
    content = [] if schema else phase.check(answer, context)
    if problems := [*schema, *identity, *content][:MAX_PROBLEMS]:
        kind = "schema" if schema else "identity" if identity else "content"
        shown = answer if isinstance(answer, dict) else None
        return Rejection(kind, tuple(map(_storable, problems)), shown)
    assert isinstance(answer, dict)
    return answer


def feedback(rejection_kind: str, problems: tuple[Problem, ...], request: str, answer: Any) -> Json:
    """Return the content of the feedback message that goes with a correction."""
    return {
        "correction": {
            "of": request,
            "kind": rejection_kind,
            "problems": [problem.model_dump() for problem in problems],
            "rejected_answer": answer,
            "rule": (
                "Answer again in full, as one JSON object under the same schema. Keep what was "
                "right. "
                "Cite only original IDs that the input holds: O in observations, F in facts, N in "
                "entities, E, O, F or N in evidence, H for a hypothesis, S for a database; never "
                "labels or structural references. Copy paths exactly."
            ),
        }
    }


def _parsed(text: str) -> Any:
    """Return an answer's text as a JSON value.

    Raises:
        CanonicalError: it is none, or longer or deeper than any sensible answer.
    """
    if len(text) > MAX_CHARACTERS:
        raise CanonicalError(f"{len(text)} characters, at most {MAX_CHARACTERS} may be")
    value = canonical.from_bytes(text.encode("utf-8", "surrogatepass"))
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [below for node in level for below in _members(node)]
    if level:
        raise CanonicalError(f"nested deeper than {MAX_DEPTH} levels")
    return value


def _members(node: Any) -> Iterable[Any]:
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


def _schema_problems(answer: Any, card: prompts.Card) -> tuple[Problem, ...]:
    model = find(card.phase).answers[card.schema]
    try:
        model.model_validate_json(canonical.to_bytes(answer))
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        return tuple(
            Problem(
                code=str(item["type"]),
                message=str(item["msg"]),
                path="$" + "".join(_step(part) for part in item["loc"]),
            )
            for item in found[:MAX_PROBLEMS]
        )
    except CanonicalError as error:  # nested too deep and the like
        return (Problem(code="not_json", message=str(error)),)
    return _surrogates(answer, "$")


def _surrogates(node: Any, path: str) -> tuple[Problem, ...]:
    """A lone surrogate is valid JSON and breaks storage later."""
    text = canonical.to_bytes(node).decode()
    if "\\ud" not in text:
        return ()
    try:
        _encode_all(node)
    except UnicodeEncodeError:
        return (Problem(code="surrogate", message="the answer holds a lone surrogate", path=path),)
    return ()


def _encode_all(node: Any) -> None:
    if isinstance(node, str):
        node.encode()
    elif isinstance(node, list):
        for item in node:
            _encode_all(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            key.encode()
            _encode_all(value)


def _step(part: int | str) -> str:
    return f"[{part}]" if isinstance(part, int) else f".{part}"


def _storable(problem: Problem) -> Problem:
    return Problem(code=problem.code, message=_safe(problem.message), path=_safe(problem.path))


def _safe(text: str) -> str:
    """Return model-made text as an event can hold it: no lone surrogates, bounded."""
    return text.encode("utf-8", "backslashreplace").decode()[:1000]
