"""Copies made for sharing: making one, and saying what is withheld in one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ledger.reader import CaseReader, RecordReader, Row, SharedReader
from ledger.redacted import Redacted
from projections.wording import counted
from tools.exits import UserError


class Copy(NamedTuple):
    """A record with parts left out, and the names of what was asked for."""

    record: Redacted
    roots: tuple[str, ...]


def shared_copy(record: RecordReader, withhold: Sequence[str], keep: Sequence[str]) -> Copy:
    """Return a record without what is to be withheld and all that quotes it.

    Raises:
        UserError: there is no such thing, or an artefact that is kept holds lines of a withheld
            one and `keep` does not name it.
    """
    from projections.redaction import NoSuchPart, redaction

    try:
        found = redaction(record, withhold)
    except NoSuchPart as error:
        raise UserError(str(error)) from None
    for name, lines in found.shared.items():
        if name not in keep:
            raise UserError(
                f"{name} has {counted(lines, 'line')} in common with what is withheld; leave it "
                f"out too (--withhold {name}) or say that it stays (--keep {name})"
            )
    return Copy(Redacted(record, found.withheld), found.roots)


def hidden_rows(reader: CaseReader, upto: int | None = None, *, after: int = 0) -> dict[int, Row]:
    """Return the withheld events of a record by position; none for a whole one."""
    if not isinstance(reader, SharedReader) or not reader.withheld.positions:
        return {}
    return {row.position: row for row in reader.rows(upto, after=after) if row.state is None}


def withheld_json(reader: CaseReader) -> dict[str, Any] | None:
    """Return what is withheld in a copy, None for a whole record (docs/json-output.md)."""
    if not isinstance(reader, SharedReader) or not any(reader.withheld):
        return None
    topics = Counter(row.topic for row in hidden_rows(reader).values())
    return {
        "events": len(reader.withheld.positions),
        "payloads": len(reader.withheld.payloads),
        "topics": dict(sorted(topics.items())),
    }


def withheld_text(withheld: Mapping[str, Any]) -> str:
    """Return what is withheld in words: `14 events and 33 payloads withheld`."""
    events = counted(withheld["events"], "event")
    return f"{events} and {counted(withheld['payloads'], 'payload')} withheld"
