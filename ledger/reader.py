"""How everything above reads a case: events in order, payloads by digest; nothing else.

Implemented by `Book` (the case file) and by `Package` (the zip), passed in to pure projections,
which therefore need no files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ledger import chain
from ledger.events import Event


class Entry(NamedTuple):
    """An event and its place in the ledger (1-based)."""

    position: int
    event: Event


class Head(NamedTuple):
    """The end of a ledger: last position (0 for none) and chain value there (32 bytes)."""

    position: int
    chain: bytes

    def __str__(self) -> str:
        return f"{self.position}:{self.chain.hex()}"


EMPTY = Head(0, chain.ZERO)
"""The head of a ledger without events."""


class Row(NamedTuple):
    """One event as stored; in a copy made for sharing, state and nonce may be withheld."""

    position: int
    version: int
    case_id: str
    topic: str
    state: bytes | None
    nonce: bytes | None
    chain: bytes
    withheld_leaf: bytes | None = None

    def leaf(self) -> bytes:
        """Return what the event contributes to the chain, 32 bytes."""
        if self.state is None or self.nonce is None:
            assert self.withheld_leaf is not None
            return self.withheld_leaf
        return chain.leaf(self.case_id, self.position, self.topic, self.state, self.nonce)

    def stored(self) -> tuple[int, str, int, str, bytes | None, bytes | None, bytes]:
        """Return the values of the `event` table's columns, in their order."""
        return (
            *(self.position, self.case_id, self.version, self.topic),
            *(self.state, self.nonce, self.chain),
        )


class Withheld(NamedTuple):
    """What a copy made for sharing leaves out: states by position, payloads by digest."""

    positions: frozenset[int] = frozenset()
    payloads: frozenset[str] = frozenset()


class CaseReader(Protocol):
    """Read access to one case."""

    @property
    def case_id(self) -> str:
        """Identity of the bug under investigation."""

    @property
    def head(self) -> Head:
        """The last position and the chain value there."""

    def events(self, upto: int | None = None, *, after: int = 0) -> Iterator[Entry]:
        """Yield entries with `after` < position ≤ `upto`, in order.

        A gap in the positions is an event that is withheld; only a copy made for sharing has one.

        Raises:
            UnknownEvent: at a topic or field of a newer release.
            LedgerDamaged: at a state that is not what an event of its topic can hold.
        """

    def payload(self, digest: str) -> bytes:
        """Return a payload's bytes, checked against its digest.

        Raises:
            PayloadWithheld: if it is left out of a copy made for sharing.
            PayloadDamaged: if it is missing or different.
        """

    def rows(self, upto: int | None = None, *, after: int = 0) -> Iterator[Row]:
        """Yield events as stored, unknown topics included; for verification and packages."""


class RecordReader(CaseReader, Protocol):
    """Read access to the whole record, for packages."""

    def numbered_chunks(self, digest: str) -> Iterator[tuple[int, bytes]]:
        """Yield a payload's (number, chunk) in order; equal chunks have equal numbers."""

    def stored_payloads(self) -> Iterator[tuple[str, int]]:
        """Yield digest and size of every payload that is stored."""


@runtime_checkable
class SharedReader(RecordReader, Protocol):
    """A record that may have parts withheld."""

    @property
    def withheld(self) -> Withheld:
        """What is left out."""

    @property
    def stated(self) -> Mapping[str, Any]:
        """Identity of the whole record as its maker states it: what withheld events would say."""
