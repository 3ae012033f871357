"""A record as a copy made for sharing shows it: states and payloads left out, their places kept.

What has to go with what is a question for projections; this leaves out what it is told to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from ledger import topics
from ledger.errors import PayloadWithheld, UnknownEvent
from ledger.events import CaseForked, CaseOpened, Event, ObservationsExtracted
from ledger.reader import Entry, Head, RecordReader, Row, Withheld
from ledger.trees import needed_payloads


class Redacted:
    """A record with parts left out. Implements `SharedReader`; what it reads from stays open."""

    def __init__(self, whole: RecordReader, withheld: Withheld) -> None:
        self._whole = whole
        self._left_out = withheld
        self._stated = record_identity(whole.rows())
        self._withheld = self._as_seen()

    @property
    def case_id(self) -> str:
        """Identity of the bug under investigation."""
        return self._whole.case_id

    @property
    def head(self) -> Head:
        """The head of the whole record."""
        return self._whole.head

    @property
    def withheld(self) -> Withheld:
        """What is left out, as far as the copy shows: not what withheld events alone name."""
        return self._withheld

    @property
    def stated(self) -> Mapping[str, Any]:
        """Identity of the whole record."""
        return self._stated

    def events(self, upto: int | None = None, *, after: int = 0) -> Iterator[Entry]:
        """Yield entries with `after` < position ≤ `upto`; withheld ones are left out."""
        for entry in self._whole.events(upto, after=after):
            if entry.position not in self._left_out.positions:
                yield entry

    def rows(self, upto: int | None = None, *, after: int = 0) -> Iterator[Row]:
        """Yield rows, of withheld ones topic, leaf and chain value."""
        for row in self._whole.rows(upto, after=after):
            if row.position in self._left_out.positions:
                yield row._replace(state=None, nonce=None, withheld_leaf=row.leaf())
            else:
                yield row

    def payload(self, digest: str) -> bytes:
        """Return a payload, checked against its digest.

        Raises:
            PayloadWithheld: if it is left out.
        """
        self._refuse(digest)
        return self._whole.payload(digest)

    def numbered_chunks(self, digest: str) -> Iterator[tuple[int, bytes]]:
        """Yield a payload's (number, chunk) in order."""
        self._refuse(digest)
        return self._whole.numbered_chunks(digest)

    def stored_payloads(self) -> Iterator[tuple[str, int]]:
        """Yield digest and size of every payload of the whole record."""
        return self._whole.stored_payloads()

    def _refuse(self, digest: str) -> None:
        if digest in self._left_out.payloads:
            raise PayloadWithheld(f"payload {digest} is withheld in this copy")

    def _as_seen(self) -> Withheld:
        named: set[str] = set()
        for row in self.rows():
            event = known_event(row)
            if event is not None:
                with suppress(PayloadWithheld):  # a tree: its files are not to be seen
                    named.update(ref.digest for ref in needed_payloads(event, self.payload))
            elif row.state is not None:  # of a newer release: it may need any of them
                return self._left_out
        return self._left_out._replace(payloads=self._left_out.payloads & named)


def record_identity(rows: Iterable[Row], stated: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return `trial_id`, `package_id` and `generation` of a record (docs/format.md, "Identities").

    Args:
        rows: all of them.
        stated: the values that withheld events would give.
    """
    found: dict[str, Any] = {"trial_id": "", "package_id": None, "generation": 0}
    for row in rows:
        event = known_event(row)
        hidden = row.topic if row.state is None else ""
        if isinstance(event, (CaseOpened, CaseForked)):  # a fork has an identity of its own
            found["trial_id"] = event.trial_id
        elif hidden in (CaseOpened.TOPIC, CaseForked.TOPIC) and stated:
            found["trial_id"] = stated["trial_id"]
        elif found["generation"]:
            continue
        elif isinstance(event, ObservationsExtracted):
            found |= {"package_id": event.package_id, "generation": row.position}
        elif hidden == ObservationsExtracted.TOPIC and stated:
            found |= {"package_id": stated["package_id"], "generation": row.position}
    return found


def known_event(row: Row) -> Event | None:
    """Return the event, None for one of a newer release or a withheld one."""
    if row.state is None:
        return None
    try:
        return topics.decode(row.topic, row.state, row.position)
    except UnknownEvent:
        return None
