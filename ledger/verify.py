"""Is the record what was written? Chain, payloads, anchor, a head kept elsewhere.

Whether saved requests can be rebuilt is a question for projections; the command joins the two.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from ledger import chain, storage, topics
from ledger.agreement import Agreement
from ledger.book import Book
from ledger.checks import compare_with_anchor
from ledger.errors import (
    LedgerDamaged,
    LedgerError,
    PayloadWithheld,
    StorageError,
    UnknownEvent,
)
from ledger.events import CaseOpened, Event, Ref, names_payloads
from ledger.reader import EMPTY, CaseReader, Head, Row
from ledger.trees import needed_payloads

LARGEST_APPEND = 100
"""A process that was killed between commit and anchor leaves the anchor one append behind; none of
an analysis has so many events."""

_WITHHELD = -1
"""Stands for the size of a payload that is not there to be measured."""


class Finding(NamedTuple):
    """One thing verification has to say; `position` names an event where there is one."""

    kind: Literal["damage", "warning", "note"]
    position: int | None
    message: str


@dataclass
class Report:
    """What was looked at and what was found. `ok` means no damage.

    `events` counts withheld ones, whose place in the chain is proved; `payloads` counts those that
    are there and were checked; `uncompared` derived files of a form that this release cannot make.
    """

    head: Head = EMPTY
    events: int = 0
    payloads: int = 0
    withheld_events: int = 0
    withheld_payloads: int = 0
    uncompared: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not any(finding.kind == "damage" for finding in self.findings)

    @property
    def first_bad_position(self) -> int | None:
        """The lowest position that a damage names."""
        return min(
            (f.position for f in self.findings if f.kind == "damage" and f.position is not None),
            default=None,
        )

    def first_damage(self, path: Path) -> str:
        """Return the damage found first, without the name of the file, which the caller gives."""
        damage = next(finding for finding in self.findings if finding.kind == "damage")
        return damage.message.replace(f"{path}: ", "")

    def damage(self, position: int | None, message: str) -> None:
        self.findings.append(Finding("damage", position, message))

    def warn(self, message: str) -> None:
        self.findings.append(Finding("warning", None, message))


def verify_book(book: Book, sealed: Head | None = None) -> Report:
    """Check a case file: SQLite's own integrity, schema, chain, payloads, orphans, anchor.

    Args:
        book: an open case.
        sealed: a head kept elsewhere (`seal`), which the record must contain.
    """
    known = book.anchor()  # before the events: a commit comes before its anchor
    with book.at_one_moment():
        report = _verified_now(book, sealed)
    _check_anchor(book, known, report)
    return report


def _verified_now(book: Book, sealed: Head | None) -> Report:
    report = Report()
    _check_sqlite(book, report)
    checked: set[int] = set()

    def check(digest: str) -> int:
        with storage.translated(book.path):
            return book.payloads.check(digest, checked)

    documents = _check_record(book, report, check, sealed)
    try:
        with storage.translated(book.path):
            _check_orphans(book, report, documents, checked)
    except LedgerError as error:
        report.damage(None, str(error))
    return report


def verify_record(
    reader: CaseReader, check: Callable[[str], int], sealed: Head | None = None
) -> Report:
    """Check the chain, the states and the payloads of a record, as for a case file and a package.

    States must be the bytes that this program would write: no second spelling, no member twice.

    Args:
        reader: the record.
        check: returns the size of a payload, or raises PayloadDamaged.
        sealed: a head kept elsewhere, which the record must contain.
    """
    report = Report()
    _check_record(reader, report, check, sealed)
    return report


def _check_record(
    reader: CaseReader, report: Report, check: Callable[[str], int], sealed: Head | None
) -> Mapping[str, int | None]:
    """Walk the events once; return the payloads that they need: digest, size or None if bad."""
    payloads, agreement = _PayloadCheck(reader, report, check), Agreement(reader.payload)
    at_seal: bytes | None = None
    for row in _linked_rows(reader, report):
        if sealed and row.position == sealed.position:
            at_seal = row.chain
        event = _decode(row, report)
        if event is not None and names_payloads(event):
            payloads.of_event(row.position, event)
        if problem := agreement.next(row, event):
            report.damage(row.position, f"position {row.position}: {row.topic}: {problem}")
    report.payloads = sum(size != _WITHHELD for size in payloads.sizes.values())
    _check_seal(report, sealed, at_seal)
    return payloads.sizes


def _linked_rows(reader: CaseReader, report: Report) -> Iterator[Row]:
    """Yield rows while recomputing the chain; report the first position where it breaks."""
    value, expected, broken, last = chain.ZERO, 0, False, None
    case_id = reader.case_id
    try:
        for row in reader.rows():
            expected += 1
            if not broken and (problem := _row_problem(row, expected, case_id)):
                report.damage(expected, problem)
                broken = True
            value = chain.link(value, row.leaf())
            if not broken and value != row.chain:
                report.damage(
                    expected,
                    f"position {expected}: the chain is {row.chain.hex()}, "
                    f"the record gives {value.hex()}: this event or its place was altered",
                )
                broken = True
            last = row
            yield row
    except (LedgerDamaged, StorageError) as error:
        report.damage(expected + 1, f"position {expected + 1} cannot be read: {error}")
        broken = True
    report.events = expected
    report.head = Head(last.position, last.chain) if last else EMPTY
    if not broken and report.head != reader.head:
        report.damage(expected + 1, f"the record ends at {report.head}, not at {reader.head}")


def _row_problem(row: Row, expected: int, case_id: str) -> str | None:
    if row.position != expected:
        return f"position {expected} is missing: the next one is {row.position}"
    if row.version != row.position:
        return f"position {expected}: its stream version is {row.version}"
    if row.case_id != case_id:
        return f"position {expected}: belongs to case {row.case_id!r}, not {case_id!r}"
    return None


def _decode(row: Row, report: Report) -> Event | None:
    if row.state is None:  # withheld: its leaf has proved its place
        return None
    event = None
    try:
        event = topics.decode(row.topic, row.state, row.position)
    except UnknownEvent as error:
        report.findings.append(Finding("note", row.position, f"unchecked: {error}"))
    except LedgerError as error:
        report.damage(row.position, str(error))
        return None
    if not topics.is_canonical(row.topic, row.state, event):
        report.damage(
            row.position,
            f"position {row.position}: its state is not the canonical JSON of its event: fields "
            "in order, none with its default, each value in its one spelling",
        )
        return None
    if event is None:
        return None
    if row.position == 1 or type(event) is CaseOpened:
        claimed = event.case_id if isinstance(event, CaseOpened) else None
        if claimed != (row.case_id if row.position == 1 else None):
            problem = f"position {row.position}: {row.topic} does not belong here"
            report.damage(row.position, problem)
    return event


class _PayloadCheck:
    """Checks the payloads that events need, each once."""

    def __init__(self, reader: CaseReader, report: Report, check: Callable[[str], int]) -> None:
        self._reader, self._report, self._check = reader, report, check
        self._said: set[str] = set()
        self.sizes: dict[str, int | None] = {}
        """By digest; None for a payload that is damaged."""

    def of_event(self, position: int, event: Event) -> None:
        """Check what an event needs; report damage at its position."""
        try:
            for ref in needed_payloads(event, self._reader.payload):
                self._check_one(position, ref)
        except PayloadWithheld:  # a tree document: what its files are is left out with it
            pass
        except LedgerError as error:  # the tree document itself
            self._damage(position, str(error))

    def _check_one(self, position: int, ref: Ref) -> None:
        if ref.digest not in self.sizes:
            self.sizes[ref.digest] = self._size(position, ref.digest)
        size = self.sizes[ref.digest]
        if size not in (None, _WITHHELD, ref.size):
            self._damage(position, f"payload {ref.digest} has {size} bytes, not {ref.size}")

    def _size(self, position: int, digest: str) -> int | None:
        try:
            return self._check(digest)
        except PayloadWithheld:
            return _WITHHELD
        except LedgerError as error:
            self._damage(position, str(error))
            return None

    def _damage(self, position: int, message: str) -> None:
        if message not in self._said:  # a file that cannot be read is said once, not per payload
            self._said.add(message)
            self._report.damage(position, f"position {position}: {message}")


def _check_seal(report: Report, sealed: Head | None, at_seal: bytes | None) -> None:
    if sealed is None:
        return
    if at_seal is None:
        end = report.head.position
        report.damage(end + 1, f"the sealed head is at {sealed.position}, the record ends at {end}")
    elif at_seal != sealed.chain:
        report.damage(
            sealed.position,
            f"position {sealed.position}: the chain is {at_seal.hex()}, the sealed head says "
            f"{sealed.chain.hex()}: the record up to here is not the one that was sealed",
        )


def _check_sqlite(book: Book, report: Report) -> None:
    try:
        with storage.translated(book.path):
            for (line,) in book.connection.execute("PRAGMA quick_check(10)"):
                if line != "ok":
                    report.damage(None, f"SQLite: {' '.join(line.split())}")
            if problem := storage.schema_problem(book.connection):
                report.damage(None, problem)
    except LedgerError as error:
        report.damage(None, str(error))


def _check_orphans(
    book: Book, report: Report, documents: Container[str], chunks: Container[int]
) -> None:
    # With events of a newer release in the record, what they need is not known.
    if any(f.kind == "note" for f in report.findings) or not report.ok:
        return
    for (name,) in book.connection.execute("SELECT digest FROM document ORDER BY digest"):
        if f"sha256:{name.hex()}" not in documents:
            report.damage(None, f"payload sha256:{name.hex()} is named by no event")
    for (number,) in book.connection.execute("SELECT id FROM chunk ORDER BY id"):
        if number not in chunks:
            report.damage(None, f"chunk {number} belongs to no payload")


def _check_anchor(book: Book, known: Head | None, report: Report) -> None:
    if known is None:
        report.warn(f"the head anchor is missing or unreadable: {_UNSEEN}")
    elif problem := compare_with_anchor(book, known):
        report.damage(problem.position, str(problem))
    elif not known.position or report.head.position - known.position > LARGEST_APPEND:
        report.warn(
            f"the head anchor knows position {known.position}, the ledger ends at "
            f"{report.head.position}: {_UNSEEN}"
        )


_UNSEEN = "a missing tail could not be seen; compare with a sealed head or a package"
