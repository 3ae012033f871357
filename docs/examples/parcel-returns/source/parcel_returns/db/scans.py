"""Queries on the scan events of the carrier and on collection points."""

from __future__ import annotations

import sqlite3
from datetime import date, datetime

from parcel_returns.models import EventCode, ScanEvent, format_timestamp, parse_timestamp

_COLUMNS = "scan_id, return_id, event_code, point_code, scanned_at"


def list_for_return(conn: sqlite3.Connection, return_id: int) -> list[ScanEvent]:
    """All scans of a return in the order in which they were delivered."""
    rows = conn.execute(
        f"SELECT {_COLUMNS} FROM scan_events WHERE return_id = ? ORDER BY scan_id",
        (return_id,),
    )
    return [_to_event(row) for row in rows]


def has_event(conn: sqlite3.Connection, return_id: int, code: EventCode) -> bool:
    """Whether the return has at least one scan with this code."""
    row = conn.execute(
        "SELECT 1 FROM scan_events WHERE return_id = ? AND event_code = ? LIMIT 1",
        (return_id, code.value),
    ).fetchone()
    return row is not None


def acceptance_until(
    conn: sqlite3.Connection, return_id: int, deadline: datetime
) -> ScanEvent | None:
    """The first hand-over at a collection point that is not after ``deadline``."""
    row = conn.execute(
        f"""
        SELECT {_COLUMNS}
          FROM scan_events
         WHERE return_id = ? AND event_code = ? AND scanned_at <= ?
         ORDER BY scanned_at
         LIMIT 1
        """,
        (return_id, EventCode.ACCEPTED.value, format_timestamp(deadline)),
    ).fetchone()
    return None if row is None else _to_event(row)


def receipt(conn: sqlite3.Connection, return_id: int) -> ScanEvent | None:
    """The goods-in scan of the warehouse."""
    row = conn.execute(
        f"""
        SELECT {_COLUMNS}
          FROM scan_events
         WHERE return_id = ? AND event_code = ?
         ORDER BY scan_id
         LIMIT 1
        """,
        (return_id, EventCode.RECEIVED.value),
    ).fetchone()
    return None if row is None else _to_event(row)


def closed_on(conn: sqlite3.Connection, point_code: str) -> date | None:
    """The day a collection point was closed, or None while it is open."""
    row = conn.execute(
        "SELECT closed_on FROM collection_points WHERE point_code = ?", (point_code,)
    ).fetchone()
    if row is None or row["closed_on"] is None:
        return None
    return date.fromisoformat(row["closed_on"])


def _to_event(row: sqlite3.Row) -> ScanEvent:
    return ScanEvent(
        scan_id=row["scan_id"],
        return_id=row["return_id"],
        event_code=row["event_code"],
        point_code=row["point_code"],
        scanned_at=parse_timestamp(row["scanned_at"]),
    )
