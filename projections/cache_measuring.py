"""What a stable prefix would take out of saved investigation requests: sizes, content IDs, proof.

Pure, and blind to content: it gives counts and digests, never text. Each saved request is paired
with its archived context, a detached view is rebuilt from that under one protocol, whatever the
request was saved with, and divided by one partition, which proves that the parts join to exactly
this view. Nothing is sent or changed.

A character is a Unicode code point of the text as a provider transports it, inside a JSON string
with its escapes and quotes; tokens are those of the text itself. System text, output schema and
feedback messages are not counted: they are the same on both sides.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import prompts
from ledger import canonical
from ledger.errors import LedgerDamaged, PayloadWithheld
from ledger.events import ContextCreated, RequestPrepared
from ledger.reader import CaseReader
from projections import aliases, partitions, views
from projections.measuring import Counter, Size, total_size
from projections.requests import message_text, model_view
from projections.saw import saved_document
from projections.state import MALFORMED, fault
from projections.views import investigation_ordered_v1

Json = dict[str, Any]

PHASE = "investigation"
PROTOCOL = "investigation_project_v11"
PARTITION = "stable_case_v1"

FULL_HISTORY = ("investigation_full_v1", "investigation_ordered_v1")
"""Views that show all evidence; the focused ones are never candidates for the cache."""

SEQUENTIAL = "sequential_v1"
"""The aliases that the overhead of others is measured against."""

_REASONS = (
    "the view is not an object",
    "stable members are missing",
    "shared is not an object",
    "shared defines",
    "labels without a definition",
    "the parts join to another view",
)
"""What partitions say first; what they say next may be text of the case."""


@dataclass(frozen=True)
class Measured:
    """One saved request and its detached view.

    Attributes:
        request: its ID.
        protocol: the one it was saved with; `unknown` if this release does not have it.
        presentation: `original` if the detached view is what was sent, else `rebuilt_v11`, …
        view: digest of the detached view.
        historical: the complete saved phase view, as sent.
        complete: the detached view as one document.
        live: what would be sent with each request: the live document and the fixed sentence that
            joins the parts; all of the view if it does not divide.
        prefix: the prefix document; nothing if the view does not divide.
        prefix_id: its content ID; empty if there is none.
        exact: the parts were joined and gave this view, byte for byte.
        fallback: why the view does not divide; empty if it does.
        alias_overhead: by how much its labels make the view longer than sequential ones would.
        labels: digest and label of every shared definition.
    """

    request: str
    protocol: str
    presentation: str
    view: str
    historical: Size
    complete: Size
    live: Size
    prefix: Size
    prefix_id: str
    exact: bool
    fallback: str
    alias_overhead: Size
    labels: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Prefix:
    """One prefix of a case and how many of its requests share it."""

    id: str
    requests: int
    size: Size


@dataclass(frozen=True)
class Summary:
    """A case, or several: sums over saved requests.

    Attributes:
        rebuilt: requests whose detached view is not what was sent.
        prefixes: in the order in which they first occur; each would be created once.
        stable: the prefix, counted once a request: what inline sending would transmit.
        relabelled: definitions that have different labels in different requests of a case.
        fallbacks: requests that are sent as one document, by reason.
    """

    requests: int
    rebuilt: int
    exact: int
    prefixes: tuple[Prefix, ...]
    historical: Size
    complete: Size
    live: Size
    stable: Size
    alias_overhead: Size
    relabelled: int
    fallbacks: Mapping[str, int]


def full_history_protocols() -> list[str]:
    """Return the investigation protocols whose views a full-history cache may hold."""
    cards = map(prompts.card, prompts.protocols())
    return [card.name for card in cards if card.phase == PHASE and card.view in FULL_HISTORY]


def measure(
    reader: CaseReader,
    counters: tuple[Counter, ...],
    protocol: str = PROTOCOL,
    partition: str = PARTITION,
) -> Iterator[Measured]:
    """Yield every saved investigation request as a protocol and a partition would have it.

    Args:
        reader: a case or package; nothing is written.
        counters: token counters, in the order of `Size.tokens`.
        protocol: one of `full_history_protocols()`.
        partition: one of `partitions.VERSIONS`.

    Raises:
        LedgerDamaged: a request without its context, or payloads that are not of our making.
    """
    measuring = _Measuring(counters, protocol, partition)
    contexts: dict[str, str] = {}
    for _, event in reader.events():
        if isinstance(event, ContextCreated):
            contexts[event.context] = event.content.digest
        elif isinstance(event, RequestPrepared) and event.phase == PHASE:
            try:
                saved = saved_document(reader, event.request, event.document)
                context = _context(reader, event, contexts)
            except PayloadWithheld:  # in a copy made for sharing
                continue
            try:
                yield measuring.measured(event, saved, context)
            except MALFORMED as error:
                raise LedgerDamaged(
                    f"request {event.request}: its context is not one that {protocol} can show "
                    f"({fault(error)})"
                ) from None


def summary(measured: Iterable[Measured], counters: int) -> Summary:
    """Return the sums over the requests of one case; `counters` is the number of counters."""
    found = list(measured)
    nothing = Size(0, (0,) * counters)
    prefixes = {item.prefix_id: item.prefix for item in found if item.prefix_id}
    uses = Tally(item.prefix_id for item in found)
    return Summary(
        requests=len(found),
        rebuilt=sum(item.presentation != "original" for item in found),
        exact=sum(item.exact for item in found),
        prefixes=tuple(Prefix(name, uses[name], size) for name, size in prefixes.items()),
        historical=total_size((item.historical for item in found), nothing),
        complete=total_size((item.complete for item in found), nothing),
        live=total_size((item.live for item in found), nothing),
        stable=total_size((item.prefix for item in found), nothing),
        alias_overhead=total_size((item.alias_overhead for item in found), nothing),
        relabelled=_relabelled(found),
        fallbacks=dict(Tally(item.fallback for item in found if item.fallback)),
    )


def plus(left: Summary, right: Summary) -> Summary:
    """Return the sums over two cases; each has its own prefixes and labels."""
    return Summary(
        requests=left.requests + right.requests,
        rebuilt=left.rebuilt + right.rebuilt,
        exact=left.exact + right.exact,
        prefixes=left.prefixes + right.prefixes,
        historical=total_size((right.historical,), left.historical),
        complete=total_size((right.complete,), left.complete),
        live=total_size((right.live,), left.live),
        stable=total_size((right.stable,), left.stable),
        alias_overhead=total_size((right.alias_overhead,), left.alias_overhead),
        relabelled=left.relabelled + right.relabelled,
        fallbacks=dict(Tally(left.fallbacks) + Tally(right.fallbacks)),
    )


def _relabelled(found: list[Measured]) -> int:
    labels = set[tuple[str, str]]().union(*(item.labels for item in found))
    return sum(uses > 1 for uses in Tally(definition for definition, _ in labels).values())


def _context(reader: CaseReader, event: RequestPrepared, contexts: Mapping[str, str]) -> Json:
    try:
        context = canonical.from_bytes(reader.payload(contexts[event.context]))
    except KeyError:
        raise LedgerDamaged(f"request {event.request}: its context is not on the ledger") from None
    if not isinstance(context, dict):
        raise LedgerDamaged(f"request {event.request}: its context is not an object")
    return context


class _Measuring:
    """One candidate over the requests of a case."""

    def __init__(self, counters: tuple[Counter, ...], protocol: str, partition: str) -> None:
        self._counters = counters
        self._protocol = protocol
        self._partition = partition
        self._rebuilt = "rebuilt_" + protocol.rpartition("_")[2]
        self._prefixes: dict[str, Size] = {}  # tokens are counted once a prefix

    def measured(self, event: RequestPrepared, saved: Json, context: Json) -> Measured:
        sent = saved["messages"][0]["content"]
        shown = model_view(self._protocol, context)
        original = event.protocol == self._protocol and canonical.same(shown, sent)
        view = _in_order(self._protocol, shown)
        complete = self._size(view)
        parts = partitions.VERSIONS[self._partition].partition(view)
        split = _travelling(parts)
        return Measured(
            request=event.request,
            protocol=event.protocol if event.protocol in prompts.protocols() else "unknown",
            presentation="original" if original else self._rebuilt,
            view=canonical.digest(canonical.to_bytes(view)),
            historical=self._size(sent),
            complete=complete,
            live=self._live(split.live) if split else complete,
            prefix=self._prefix(split.prefix) if split else self._nothing,
            prefix_id=split.prefix["id"] if split else "",
            exact=isinstance(parts, partitions.Split),
            fallback=_reason(parts.reason) if isinstance(parts, partitions.Whole) else "",
            alias_overhead=_difference(complete, self._size(_sequential(context))),
            labels=_labels(view),
        )

    @property
    def _nothing(self) -> Size:
        return Size(0, tuple(0 for _ in self._counters))

    def _prefix(self, prefix: Json) -> Size:
        if prefix["id"] not in self._prefixes:
            self._prefixes[prefix["id"]] = self._size(prefix)
        return self._prefixes[prefix["id"]]

    def _live(self, live: Json) -> Size:
        sentence = self._text_size(prompts.wire(self._partition))
        return total_size((self._size(live),), sentence)

    def _size(self, content: Any) -> Size:
        return self._text_size(message_text(content))

    def _text_size(self, text: str) -> Size:
        tokens = tuple(counter(text) for counter in self._counters)
        return Size(len(message_text(text)), tokens)


def _travelling(parts: partitions.Split | partitions.Whole) -> partitions.Split | None:
    """Return the parts if they would be sent as two documents: not with an empty prefix."""
    return parts if isinstance(parts, partitions.Split) and parts.prefix["input"] else None


def _in_order(protocol: str, view: Json) -> Json:
    """Return a view in the order of members and definitions that partitions keep.

    v10's order is another one; which labels it gives is what a comparison is about.
    """
    if prompts.card(protocol).view == "investigation_ordered_v1":
        return view
    ordered = investigation_ordered_v1.show(view)
    return {**ordered, "shared": dict(sorted(ordered["shared"].items()))}


def _sequential(context: Json) -> Json:
    return aliases.VERSIONS[SEQUENTIAL](views.VERSIONS["investigation_ordered_v1"](context))


def _difference(left: Size, right: Size) -> Size:
    tokens = tuple(a - b for a, b in zip(left.tokens, right.tokens, strict=True))
    return Size(left.characters - right.characters, tokens)


def _labels(view: Json) -> frozenset[tuple[str, str]]:
    shared = view["shared"]
    return frozenset(
        (canonical.digest(canonical.to_bytes(value)), label) for label, value in shared.items()
    )


def _reason(text: str) -> str:
    """Return what a partition said, without anything of the case."""
    known = next((reason for reason in _REASONS if reason in text), None)
    if known:
        return known
    name = re.match(r"[A-Za-z]+Error(?=: )", text)
    return name[0] if name else "another reason"
