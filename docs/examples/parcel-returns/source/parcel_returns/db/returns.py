"""Queries on returns, their orders and lines."""

from __future__ import annotations

import sqlite3
from datetime import date

from parcel_returns.models import Order, ParcelReturn, ReturnLine, parse_timestamp

_SELECT = """
    SELECT r.return_id, r.return_no, r.received_on,
           o.order_id, o.order_no, o.channel, o.placed_at, o.delivered_at
      FROM returns AS r
      JOIN orders AS o ON o.order_id = r.order_id
"""


def find_by_number(conn: sqlite3.Connection, return_no: str) -> ParcelReturn | None:
    """The return with this number, as printed on the label."""
    row = conn.execute(_SELECT + " WHERE r.return_no = ?", (return_no,)).fetchone()
    return None if row is None else _to_return(conn, row)


def received_and_open(conn: sqlite3.Connection, run_date: date) -> list[ParcelReturn]:
    """Returns that reached the warehouse up to ``run_date`` and are not settled."""
    rows = conn.execute(
        _SELECT
        + """
          LEFT JOIN settlements AS s ON s.return_id = r.return_id
         WHERE r.received_on <= ? AND s.return_id IS NULL
         ORDER BY r.return_id
        """,
        (run_date.isoformat(),),
    ).fetchall()
    return [_to_return(conn, row) for row in rows]


def _lines(conn: sqlite3.Connection, return_id: int) -> tuple[ReturnLine, ...]:
    rows = conn.execute(
        """
        SELECT p.sku, p.title, rl.quantity, ol.unit_price_cents
          FROM return_lines AS rl
          JOIN order_lines AS ol ON ol.order_line_id = rl.order_line_id
          JOIN products AS p ON p.product_id = ol.product_id
         WHERE rl.return_id = ?
         ORDER BY rl.return_line_id
        """,
        (return_id,),
    )
    return tuple(
        ReturnLine(
            sku=row["sku"],
            title=row["title"].strip(),
            quantity=row["quantity"],
            unit_price_cents=row["unit_price_cents"],
        )
        for row in rows
    )


def _to_return(conn: sqlite3.Connection, row: sqlite3.Row) -> ParcelReturn:
    received_on = row["received_on"]
    return ParcelReturn(
        return_id=row["return_id"],
        return_no=row["return_no"],
        order=Order(
            order_id=row["order_id"],
            order_no=row["order_no"],
            channel=row["channel"],
            placed_at=parse_timestamp(row["placed_at"]),
            delivered_at=parse_timestamp(row["delivered_at"]),
        ),
        received_on=None if received_on is None else date.fromisoformat(received_on),
        lines=_lines(conn, row["return_id"]),
    )
