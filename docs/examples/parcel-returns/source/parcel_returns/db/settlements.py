"""Queries on settlements, the one table the service owns."""

from __future__ import annotations

import sqlite3
from datetime import date, datetime

from parcel_returns.models import Basis, Outcome, Settlement, format_timestamp


def add(conn: sqlite3.Connection, settlement: Settlement, settled_at: datetime) -> None:
    """Store a settlement; there is at most one for each return."""
    conn.execute(
        """
        INSERT INTO settlements (return_id, run_date, outcome, basis,
                                 goods_cents, deduction_cents, refund_cents, settled_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            settlement.return_id,
            settlement.run_date.isoformat(),
            settlement.outcome.value,
            settlement.basis.value,
            settlement.goods_cents,
            settlement.deduction_cents,
            settlement.refund_cents,
            format_timestamp(settled_at),
        ),
    )


def find_for_return(conn: sqlite3.Connection, return_id: int) -> Settlement | None:
    """The settlement of a return, or None while it is open."""
    found = _select(conn, "s.return_id = ?", return_id)
    return found[0] if found else None


def list_for_run(conn: sqlite3.Connection, run_date: date) -> list[Settlement]:
    """All settlements of the run of one day."""
    return _select(conn, "s.run_date = ?", run_date.isoformat())


def _select(conn: sqlite3.Connection, condition: str, value: int | str) -> list[Settlement]:
    rows = conn.execute(
        f"""
        SELECT s.return_id, r.return_no, s.run_date, s.outcome, s.basis,
               s.goods_cents, s.deduction_cents, s.refund_cents
          FROM settlements AS s
          JOIN returns AS r ON r.return_id = s.return_id
         WHERE {condition}
         ORDER BY s.settlement_id
        """,
        (value,),
    )
    return [
        Settlement(
            return_id=row["return_id"],
            return_no=row["return_no"],
            run_date=date.fromisoformat(row["run_date"]),
            outcome=Outcome(row["outcome"]),
            basis=Basis(row["basis"]),
            goods_cents=row["goods_cents"],
            deduction_cents=row["deduction_cents"],
            refund_cents=row["refund_cents"],
        )
        for row in rows
    ]
