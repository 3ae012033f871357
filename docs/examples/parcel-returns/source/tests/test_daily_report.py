"""Tests of the daily report."""

from __future__ import annotations

import unittest
from datetime import date

from parcel_returns.models import Basis, Outcome, Settlement
from parcel_returns.reports import daily

RUN = date(2025, 2, 3)


class DailyReportTest(unittest.TestCase):
    def test_empty_run(self) -> None:
        self.assertEqual(daily.render(RUN, []), "Settlements of 2025-02-03: none\n")

    def test_summary_counts_late_returns(self) -> None:
        entries = [
            Settlement(1, "R-1", RUN, Outcome.IN_TIME, Basis.ACCEPTANCE, 5000, 0, 5000),
            Settlement(2, "R-2", RUN, Outcome.LATE, Basis.RECEIPT, 1000, 200, 800),
        ]
        values = dict(daily.summary(entries))
        self.assertEqual(values["of these late"], "1")
        self.assertEqual(values["refunds"], "58.00")
        self.assertIn("R-2", daily.render(RUN, entries))
