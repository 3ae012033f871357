"""Decides whether a return was handed over in time and what it is worth."""

from __future__ import annotations

import logging
import sqlite3
from datetime import UTC, datetime, time, timedelta

from parcel_returns.config import Settings
from parcel_returns.db import scans
from parcel_returns.models import (
    Assessment,
    Basis,
    EventCode,
    Order,
    Outcome,
    ParcelReturn,
    ScanEvent,
    format_timestamp,
)

log = logging.getLogger(__name__)

END_OF_DAY = time(23, 59, 59, tzinfo=UTC)


class NotAssessable(ValueError):
    """The return has no scan that could decide the assessment."""


def return_deadline(order: Order, settings: Settings) -> datetime:
    """The last moment at which goods of the order can be handed over."""
    last_day = (order.delivered_at + timedelta(days=settings.window_days)).date()
    if settings.season.contains(order.placed_at.date()):
        last_day = max(last_day, settings.season.return_until)
    return datetime.combine(last_day, END_OF_DAY)


def assess(conn: sqlite3.Connection, item: ParcelReturn, settings: Settings) -> Assessment:
    """Assess a return that has reached the warehouse."""
    deadline = return_deadline(item.order, settings)
    outcome, basis = _outcome(conn, item, deadline)
    goods = item.goods_cents
    deduction = 0
    if outcome is Outcome.LATE:
        deduction = _percentage(goods, settings.late_deduction_percent)
    return Assessment(
        outcome=outcome,
        basis=basis,
        deadline=deadline,
        goods_cents=goods,
        deduction_cents=deduction,
    )


def _outcome(
    conn: sqlite3.Connection, item: ParcelReturn, deadline: datetime
) -> tuple[Outcome, Basis]:
    if not scans.has_event(conn, item.return_id, EventCode.ACCEPTED):
        return _outcome_by_receipt(conn, item, deadline), Basis.RECEIPT
    acceptance = scans.acceptance_until(conn, item.return_id, deadline)
    if acceptance is None:
        log.warning(
            "%s: not handed over until %s, late", item.return_no, format_timestamp(deadline)
        )
        return Outcome.LATE, Basis.ACCEPTANCE
    log.info(
        "%s: handed over %s, deadline %s, in time",
        item.return_no,
        format_timestamp(acceptance.scanned_at),
        format_timestamp(deadline),
    )
    _check_point(conn, item, acceptance)
    return Outcome.IN_TIME, Basis.ACCEPTANCE


def _outcome_by_receipt(
    conn: sqlite3.Connection, item: ParcelReturn, deadline: datetime
) -> Outcome:
    received = scans.receipt(conn, item.return_id)
    if received is None:
        raise NotAssessable(f"{item.return_no} has neither an acceptance nor a goods-in scan")
    log.warning(
        "%s: hand-over was never scanned, goods-in scan of %s decides",
        item.return_no,
        format_timestamp(received.scanned_at),
    )
    return Outcome.IN_TIME if received.scanned_at <= deadline else Outcome.LATE


def _check_point(conn: sqlite3.Connection, item: ParcelReturn, acceptance: ScanEvent) -> None:
    if acceptance.point_code is None:
        return
    closed_on = scans.closed_on(conn, acceptance.point_code)
    if closed_on is not None and acceptance.scanned_at.date() > closed_on:
        log.warning(
            "%s: handed over at %s, which is closed since %s",
            item.return_no,
            acceptance.point_code,
            closed_on.isoformat(),
        )


def _percentage(cents: int, percent: int) -> int:
    return (cents * percent + 50) // 100
