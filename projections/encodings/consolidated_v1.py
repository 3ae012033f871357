"""Encoding consolidated_v1: what repeats in a view stands once. Lossless.

Repeated values become `$ref`, objects of repeated keys `$record` or rows of a `$table`, source-line
records `$lines`. The smallest candidate by estimated tokens is chosen, the plain view among them.
Grammar, decoding rules and the reasons: docs/encodings/consolidated_v1.md.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ledger import canonical
from ledger.errors import CanonicalError
from projections.encodings.consolidated import grammar, graph, plan, reader, writer
from projections.encodings.consolidated.grammar import ConsolidatedError
from projections.encodings.types import Encoded
from projections.tokens import hundredths

MAX_CHARACTERS = 64_000_000
"""What definitions and common values of one document may expand to, in characters."""

LARGE = 16_000
CLEARLY = 5
"""From how many characters on both texts need not be estimated to see which is less, if the plan by
its own costs saves so many hundredths of a token for each of them: about a seventh of the view."""

__all__ = ["MAX_CHARACTERS", "ConsolidatedError", "encode", "restore"]


def encode(view: Any) -> Encoded:
    """Return the view in its smallest form.

    Forms: `plain`, the view itself; `consolidated`, the envelope; `literal`, a view that looks like
    an envelope itself, escaped. A candidate with more characters than the plain one does not count.

    Raises:
        CanonicalError: the value has no canonical bytes; or it looks like an envelope and nests so
            deeply that it cannot be escaped.
    """
    plain = _Candidate.of("plain", view)
    if _is_envelope(view):
        plain = _Candidate.of("literal", {grammar.MARK: grammar.VERSION, grammar.LITERAL: view})
    with _collector_paused():
        nodes = graph.build(view)
        chosen = plan.plan(nodes)
        content = writer.write(nodes, chosen)
    try:
        envelope = _Candidate.of("consolidated", content)
    except CanonicalError:
        return Encoded(plain.content, plain.form, "the envelope would be nested too deeply")
    if envelope.characters > plain.characters:
        return Encoded(plain.content, plain.form, "the envelope would have more characters")
    clear = plain.characters >= LARGE and chosen.saved >= CLEARLY * plain.characters
    if not clear and plain.key() <= envelope.key():
        return Encoded(plain.content, plain.form, "the envelope would have more estimated tokens")
    return Encoded(envelope.content, envelope.form, "fewest estimated tokens")


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep the garbage collector from searching, again and again, what is all still needed.

    Without it, the time for large views grows with the power 1.2 to 1.3 of their size.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Candidate(NamedTuple):
    """One way to write a view."""

    form: str
    content: Any
    data: bytes
    characters: int

    @classmethod
    def of(cls, form: str, content: Any) -> _Candidate:
        data = canonical.to_bytes(content)
        return cls(form, content, data, len(data.decode()))

    def key(self) -> tuple[int, int]:
        """Return estimated tokens, then characters: the smaller, the better."""
        return hundredths(self.data), self.characters


def restore(content: Any, limit: int = MAX_CHARACTERS) -> Any:
    """Return the view of a message's content; shared values come back as one object.

    Args:
        content: a JSON value, as `encode` returned it or read from its bytes.
        limit: the most characters that definitions and common values may expand to.

    Raises:
        ConsolidatedError: it has the mark of an envelope and breaks its grammar or a bound.
    """
    if not _is_envelope(content):
        return content
    with _collector_paused():
        return reader.read(content, limit)


def _is_envelope(value: Any) -> bool:
    return type(value) is dict and grammar.MARK in value
