"""Tests of the assessment, on a database in memory."""

from __future__ import annotations

import sqlite3
import unittest
from datetime import UTC, datetime

from parcel_returns import db
from parcel_returns.config import Settings
from parcel_returns.db import returns
from parcel_returns.models import Assessment, Basis, Outcome
from parcel_returns.services import eligibility


class EligibilityTest(unittest.TestCase):
    def setUp(self) -> None:
        self.conn = sqlite3.connect(":memory:", isolation_level=None)
        self.addCleanup(self.conn.close)
        db.prepare(self.conn)
        db.create_schema(self.conn)
        self.conn.execute("INSERT INTO products VALUES (1, 'K-1', 'Kettle', 'kitchen', 4995)")
        self.conn.execute(
            "INSERT INTO collection_points VALUES ('CP-1', 'kiosk', '10000', '2020-01-01', NULL)"
        )

    def add_return(self, *scans: tuple[str, str], placed_at: str = "2025-02-01T08:00:00Z") -> None:
        self.conn.execute(
            "INSERT INTO orders VALUES (1, 'O-1', 'web', ?, '2025-02-05T15:00:00Z')", (placed_at,)
        )
        self.conn.execute("INSERT INTO order_lines VALUES (1, 1, 1, 2, 4995)")
        self.conn.execute(
            "INSERT INTO returns VALUES (1, 'R-1', 1, '2025-02-10T08:00:00Z', '2025-03-12')"
        )
        self.conn.execute("INSERT INTO return_lines VALUES (1, 1, 1, 1, 'unwanted')")
        self.conn.executemany(
            "INSERT INTO scan_events (return_id, event_code, point_code, scanned_at) "
            "VALUES (1, ?, 'CP-1', ?)",
            scans,
        )

    def assess(self) -> Assessment:
        item = returns.find_by_number(self.conn, "R-1")
        assert item is not None
        return eligibility.assess(self.conn, item, Settings())

    def test_window_closes_at_the_end_of_the_last_day(self) -> None:
        self.add_return(("ACCEPTED", "2025-03-07T23:59:59Z"), ("RECEIVED", "2025-03-12T09:00:00Z"))
        found = self.assess()
        self.assertEqual(found.deadline, datetime(2025, 3, 7, 23, 59, 59, tzinfo=UTC))
        self.assertEqual((found.outcome, found.deduction_cents), (Outcome.IN_TIME, 0))

    def test_late_hand_over_costs_a_fifth(self) -> None:
        self.add_return(("ACCEPTED", "2025-03-08T00:00:00Z"), ("RECEIVED", "2025-03-12T09:00:00Z"))
        with self.assertLogs("parcel_returns", "WARNING"):
            found = self.assess()
        self.assertEqual(found.outcome, Outcome.LATE)
        self.assertEqual((found.deduction_cents, found.refund_cents), (999, 3996))

    def test_goods_in_decides_without_hand_over_scan(self) -> None:
        self.add_return(("RECEIVED", "2025-03-12T09:00:00Z"))
        with self.assertLogs("parcel_returns", "WARNING"):
            found = self.assess()
        self.assertEqual((found.outcome, found.basis), (Outcome.LATE, Basis.RECEIPT))

    def test_holiday_season_never_shortens_the_window(self) -> None:
        self.add_return(
            ("ACCEPTED", "2025-03-01T10:00:00Z"), placed_at="2024-12-20T10:00:00Z"
        )
        self.assertEqual(self.assess().outcome, Outcome.IN_TIME)
