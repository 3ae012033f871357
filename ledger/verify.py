"""Is the record what was written? Chain, payloads, anchor, a head kept elsewhere.

Whether saved requests can be rebuilt is a question for projections; the command joins the two.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ledger import chain, storage, topics
from ledger.book import Book
from ledger.checks import compare_with_anchor
from ledger.errors import (
    LedgerDamaged,
    LedgerError,
    PayloadWithheld,
    StorageError,
    UnknownEvent,
)
from ledger.events import CaseOpened, Event, names_payloads
from ledger.reader import EMPTY, CaseReader, Head, Row
from ledger.trees import needed_payloads

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
    are there and were checked.
    """

    head: Head = EMPTY
    events: int = 0
    payloads: int = 0
    withheld_events: int = 0
    withheld_payloads: int = 0
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

    documents = _check_record(book, report, check, sealed, exact=False)
    try:
        with storage.translated(book.path):
            _check_orphans(book, report, documents, checked)
    except LedgerError as error:
        report.damage(None, str(error))
    return report


def verify_record(
    reader: CaseReader, check: Callable[[str], int], sealed: Head | None = None
) -> Report:
    """Check the chain, the states and the payloads of a record that somebody else may have made.

    A case file's states are the bytes that were hashed when this program wrote them. Here they must
    also be the bytes that this program would write: no second spelling, no member twice.

    Args:
        reader: the record.
        check: returns the size of a payload, or raises PayloadDamaged.
        sealed: a head kept elsewhere, which the record must contain.
    """
    report = Report()
    _check_record(reader, report, check, sealed, exact=True)
    return report


def _check_record(
    reader: CaseReader,
    report: Report,
    check: Callable[[str], int],
    sealed: Head | None,
    *,
    exact: bool,
) -> Mapping[str, int | None]:
    """Walk the events once; return the payloads that they need: digest, size or None if bad."""
    documents: dict[str, int | None] = {}
    at_seal: bytes | None = None
    for row in _linked_rows(reader, report):
        if sealed and row.position == sealed.position:
            at_seal = row.chain
        event = _decode(row, report, exact=exact)
        if event is not None:
            _check_payloads(row.position, event, reader, report, check, documents)
    report.payloads = sum(size != _WITHHELD for size in documents.values())
    _check_seal(report, sealed, at_seal)
    return documents


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


def _decode(row: Row, report: Report, *, exact: bool) -> Event | None:
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
    if exact and not topics.is_canonical(row.topic, row.state, event):
        report.damage(row.position, f"position {row.position}: its state is not canonical JSON")
        return None
    if event is None:
        return None
    claimed = event.case_id if isinstance(event, CaseOpened) else None
    if claimed != (row.case_id if row.position == 1 else None):
        report.damage(row.position, f"position {row.position}: {row.topic} does not belong here")
    return event


def _check_payloads(
    position: int,
    event: Event,
    reader: CaseReader,
    report: Report,
    check: Callable[[str], int],
    documents: dict[str, int | None],
) -> None:
    if not names_payloads(event):
        return
    try:
        for ref in needed_payloads(event, reader.payload):
            if ref.digest not in documents:
                documents[ref.digest] = None
                try:
                    documents[ref.digest] = check(ref.digest)
                except PayloadWithheld:
                    documents[ref.digest] = _WITHHELD
                except LedgerError as error:
                    report.damage(position, f"position {position}: {error}")
            size = documents[ref.digest]
            if size not in (None, _WITHHELD, ref.size):
                report.damage(
                    position,
                    f"position {position}: payload {ref.digest} has {size} bytes, not {ref.size}",
                )
    except PayloadWithheld:  # a tree document: what its files are is left out with it
        pass
    except LedgerError as error:  # the tree document itself
        report.damage(position, f"position {position}: {error}")


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
            stored = storage.stored_schema(book.connection)
    except LedgerError as error:
        report.damage(None, str(error))
        return
    if stored != storage.expected_schema():
        report.damage(None, "tables, indexes or triggers are not those of format 1")


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
        report.warn(
            "the head anchor is missing or unreadable: a missing tail could not be seen; "
            "compare with a sealed head or a package"
        )
    elif problem := compare_with_anchor(book, known):
        report.damage(problem.position, str(problem))
