"""What events say of each other and of their own chain: whether it is so.

A record whose chain was computed anew verifies as a chain; these are the statements in it that the
record itself can prove or disprove (docs/format.md, "What a reader checks").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ledger.errors import LedgerError
from ledger.events import (
    ArtifactAdded,
    CaseForked,
    CaseOpened,
    Event,
    ObservationsExtracted,
    RequestPrepared,
    RequestSent,
)
from ledger.reader import EMPTY, Head, Row
from ledger.trees import package_id, tree_files


class Agreement:
    """Follows a record from its first row on and says where it contradicts itself.

    What is withheld in a copy made for sharing says nothing, and nothing is held against it.
    """

    def __init__(self, payload: Callable[[str], bytes]) -> None:
        self._payload = payload
        self._before: Row | None = None
        self._trial: str | None = None
        self._artifacts: dict[str, ArtifactAdded] = {}
        self._documents: dict[str, str] = {}  # request: digest of its document
        self._material: str | None = None
        self._all_seen = True  # no artefact is withheld so far

    def next(self, row: Row, event: Event | None) -> str | None:
        """Take the next row, None for an event that is withheld, unknown or malformed.

        Returns: what does not agree with the record before it.
        """
        check = _CHECKS.get(type(event))
        problem = check(self, event) if check else None
        if event is None:
            self._pass_over(row)
        self._before = row
        return problem

    def _pass_over(self, row: Row) -> None:
        if row.topic == ArtifactAdded.TOPIC:
            self._all_seen = False
        elif row.topic in (CaseOpened.TOPIC, CaseForked.TOPIC):
            self._trial = None

    def _opened(self, event: CaseOpened) -> None:
        self._trial = event.trial_id

    def _added(self, event: ArtifactAdded) -> str | None:
        if event.artifact in self._artifacts:
            return f"there is an artefact {event.artifact[:80]!r} already"
        self._artifacts[event.artifact] = event
        return None

    def _extracted(self, event: ObservationsExtracted) -> str | None:
        if self._material is None:
            self._material = self._computed() or event.package_id
        if event.package_id != self._material:
            return (
                f"package_id is {event.package_id[:80]}, the material of revision 1 gives "
                f"{self._material}"
            )
        return None

    def _computed(self) -> str | None:
        """Return the identity of revision 1's material; None if parts of it are not there."""
        if not self._all_seen:
            return None
        first = [event for event in self._artifacts.values() if event.revision == 1]
        trees = {}
        try:
            for event in first:
                if event.tree is not None:
                    files = tree_files(self._payload(event.tree.digest))
                    trees[event.tree.digest] = {"files": files}
        except LedgerError:  # withheld; or damaged, which has been reported at the artefact
            return None
        return package_id(first, trees)

    def _prepared(self, event: RequestPrepared) -> None:
        self._documents[event.request] = event.document.digest

    def _sent(self, event: RequestSent) -> str | None:
        prepared = self._documents.get(event.request, event.document)
        if event.document == prepared:
            return None
        return f"{event.request} was prepared as {prepared}, and sent as {event.document[:80]}"

    def _forked(self, event: CaseForked) -> str | None:
        before = Head(self._before.position, self._before.chain) if self._before else EMPTY
        trial, self._trial = self._trial, event.trial_id
        if (event.origin_position, event.origin_chain) != (before.position, before.chain.hex()):
            return (
                f"origin is {event.origin_position}:{event.origin_chain[:80]}, "
                f"the history before it ends at {before}"
            )
        if trial is not None and trial != event.origin_trial_id:
            return (
                f"origin_trial_id is {event.origin_trial_id[:80]!r}, the trial was {trial[:80]!r}"
            )
        return None


_CHECKS: Mapping[type[Any], Callable[[Agreement, Any], str | None]] = {
    CaseOpened: Agreement._opened,
    ArtifactAdded: Agreement._added,
    ObservationsExtracted: Agreement._extracted,
    RequestPrepared: Agreement._prepared,
    RequestSent: Agreement._sent,
    CaseForked: Agreement._forked,
}
