"""The settlement run of a day."""

from __future__ import annotations

import logging
import sqlite3
from dataclasses import dataclass, field
from datetime import date, datetime

from parcel_returns import db
from parcel_returns.config import Settings
from parcel_returns.db import returns, settlements
from parcel_returns.models import ParcelReturn, Settlement, format_amount
from parcel_returns.services import eligibility

log = logging.getLogger(__name__)


@dataclass
class RunResult:
    """What a settlement run did."""

    run_date: date
    settled: list[Settlement] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @property
    def refund_cents(self) -> int:
        return sum(entry.refund_cents for entry in self.settled)


def run(
    conn: sqlite3.Connection,
    run_date: date,
    settings: Settings,
    now: datetime,
    *,
    dry_run: bool = False,
) -> RunResult:
    """Settle all returns that reached the warehouse up to ``run_date``."""
    result = RunResult(run_date)
    candidates = returns.received_and_open(conn, run_date)
    log.info("run for %s: %d returns to settle", run_date.isoformat(), len(candidates))
    for item in candidates:
        try:
            result.settled.append(_settle(conn, item, run_date, settings))
        except eligibility.NotAssessable as error:
            log.error("not settled: %s", error)
            result.skipped.append(item.return_no)
    if not dry_run:
        with db.transaction(conn, warn_after_ms=settings.lock_warning_ms):
            for entry in result.settled:
                settlements.add(conn, entry, now)
    log.info(
        "run for %s finished: %d settled, %d skipped, refunds %s%s",
        run_date.isoformat(),
        len(result.settled),
        len(result.skipped),
        format_amount(result.refund_cents),
        " (dry run)" if dry_run else "",
    )
    return result


def _settle(
    conn: sqlite3.Connection, item: ParcelReturn, run_date: date, settings: Settings
) -> Settlement:
    assessment = eligibility.assess(conn, item, settings)
    if assessment.refund_cents > settings.review_limit_cents:
        log.warning(
            "%s: refund %s is above the review limit",
            item.return_no,
            format_amount(assessment.refund_cents),
        )
    log.info(
        "%s: goods %s, deduction %s, refund %s",
        item.return_no,
        format_amount(assessment.goods_cents),
        format_amount(assessment.deduction_cents),
        format_amount(assessment.refund_cents),
    )
    return Settlement(
        return_id=item.return_id,
        return_no=item.return_no,
        run_date=run_date,
        outcome=assessment.outcome,
        basis=assessment.basis,
        goods_cents=assessment.goods_cents,
        deduction_cents=assessment.deduction_cents,
        refund_cents=assessment.refund_cents,
    )
