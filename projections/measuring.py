"""What an encoding would do to saved requests: sizes before and after, restoration proved.

Pure, and blind to content: it gives counts, never text. A character is a Unicode code point; all
messages count (system text, input, feedback), the output schema does not. The baseline is the saved
phase view as plain minified JSON under the same prompt without the encoding's explanation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import prompts
from ledger import canonical
from ledger.errors import LedgerError, PayloadWithheld
from ledger.events import RequestPrepared
from ledger.reader import CaseReader
from projections import encodings
from projections.requests import message_text, restored_view
from projections.saw import saved_document

Counter = Callable[[str], int]
"""Counts the tokens of a text."""


class Size(NamedTuple):
    """All messages of a request: code points, and tokens by each counter."""

    characters: int
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Measured:
    """One saved request under a candidate encoding. `exact`: its restoration is the same value."""

    request: str
    phase: str
    protocol: str
    form: str
    before: Size
    after: Size
    exact: bool


@dataclass(frozen=True)
class Row:
    """A phase: sums over its saved requests."""

    phase: str
    requests: int
    before: Size
    after: Size
    exact: int


def measure(
    reader: CaseReader, encoding: str, counters: tuple[Counter, ...], phases: frozenset[str]
) -> Iterator[Measured]:
    """Yield every saved request of some phases as an encoding would write it; not those that are
    withheld in a copy made for sharing.

    Args:
        reader: a case or package; nothing is written.
        encoding: name of the candidate.
        counters: token counters, in the order of `Size.tokens`.
        phases: the phases measured; empty for all.
    """
    for _, event in reader.events():
        if isinstance(event, RequestPrepared) and (not phases or event.phase in phases):
            with suppress(PayloadWithheld):
                document = saved_document(reader, event.request, event.document)
                yield _measured(event, document, encoding, counters)


def phases_using(encoding: str) -> frozenset[str]:
    """Return the phases whose newest protocol uses an encoding."""
    return frozenset(
        phase for phase, name in prompts.NEWEST.items() if prompts.card(name).encoding == encoding
    )


def by_phase(measured: Iterable[Measured]) -> list[Row]:
    """Return one row a phase, in the order in which the phases first occur."""
    return added_up(
        Row(item.phase, 1, item.before, item.after, int(item.exact)) for item in measured
    )


def added_up(rows: Iterable[Row]) -> list[Row]:
    """Return one row a phase from rows of several cases."""
    sums: dict[str, Row] = {}
    for row in rows:
        before = sums.get(row.phase)
        sums[row.phase] = row if before is None else _plus(before, row)
    return list(sums.values())


def reduction(before: int, after: int) -> float:
    """Return by how many per cent something got smaller."""
    return 100 * (before - after) / before if before else 0.0


def _measured(
    event: RequestPrepared, document: dict[str, Any], encoding: str, counters: tuple[Counter, ...]
) -> Measured:
    view = restored_view(document)
    feedback = [message_text(message["content"]) for message in document["messages"][1:]]
    explanation = prompts.explanation(encoding)
    system = _without_explanations(document["system"])
    candidate = encodings.VERSIONS[encoding]
    encoded = candidate.encode(view)
    explained = f"{system}\n\n{explanation}" if explanation else system
    return Measured(
        event.request,
        event.phase,
        event.protocol,
        encoded.form,
        _size([system, message_text(view), *feedback], counters),
        _size([explained, message_text(encoded.content), *feedback], counters),
        _restores(candidate, encoded.content, view),
    )


def _restores(candidate: encodings.Encoding, content: Any, view: Any) -> bool:
    try:
        return canonical.same(candidate.restore(content), view)
    except LedgerError:
        return False


def _without_explanations(system: str) -> str:
    for name in encodings.VERSIONS:
        if text := prompts.explanation(name):
            system = system.replace(f"{text}\n\n", "").replace(text, "")
    return system


def _size(texts: list[str], counters: tuple[Counter, ...]) -> Size:
    tokens = tuple(sum(map(counter, texts)) for counter in counters)
    return Size(sum(map(len, texts)), tokens)


def total_size(sizes: Iterable[Size], nothing: Size) -> Size:
    """Return the sum of sizes by the same counters; `nothing` if there are none."""
    return reduce(_sum, sizes, nothing)


def _plus(left: Row, right: Row) -> Row:
    return Row(
        left.phase,
        left.requests + right.requests,
        _sum(left.before, right.before),
        _sum(left.after, right.after),
        left.exact + right.exact,
    )


def _sum(left: Size, right: Size) -> Size:
    tokens = tuple(a + b for a, b in zip(left.tokens, right.tokens, strict=True))
    return Size(left.characters + right.characters, tokens)
