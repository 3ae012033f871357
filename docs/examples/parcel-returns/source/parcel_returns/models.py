"""Data classes and value helpers shared by all layers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum


class EventCode(StrEnum):
    """Scan events the service knows."""

    LABEL_CREATED = "LABEL_CREATED"
    ACCEPTED = "ACCEPTED"
    IN_TRANSIT = "IN_TRANSIT"
    RECEIVED = "RECEIVED"


class Outcome(StrEnum):
    """Result of the assessment of a return."""

    IN_TIME = "in_time"
    LATE = "late"


class Basis(StrEnum):
    """The scan that decided the assessment."""

    ACCEPTANCE = "acceptance"
    RECEIPT = "receipt"


@dataclass(frozen=True)
class Order:
    order_id: int
    order_no: str
    channel: str
    placed_at: datetime
    delivered_at: datetime


@dataclass(frozen=True)
class ReturnLine:
    sku: str
    title: str
    quantity: int
    unit_price_cents: int

    @property
    def total_cents(self) -> int:
        return self.quantity * self.unit_price_cents


@dataclass(frozen=True)
class ParcelReturn:
    return_id: int
    return_no: str
    order: Order
    received_on: date | None
    lines: tuple[ReturnLine, ...]

    @property
    def goods_cents(self) -> int:
        return sum(line.total_cents for line in self.lines)


@dataclass(frozen=True)
class ScanEvent:
    scan_id: int
    return_id: int
    event_code: str
    point_code: str | None
    scanned_at: datetime


@dataclass(frozen=True)
class Assessment:
    outcome: Outcome
    basis: Basis
    deadline: datetime
    goods_cents: int
    deduction_cents: int

    @property
    def refund_cents(self) -> int:
        return self.goods_cents - self.deduction_cents


@dataclass(frozen=True)
class Settlement:
    return_id: int
    return_no: str
    run_date: date
    outcome: Outcome
    basis: Basis
    goods_cents: int
    deduction_cents: int
    refund_cents: int


def parse_timestamp(text: str) -> datetime:
    """Read an ISO 8601 timestamp; one without an offset is taken as UTC."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC)


def format_timestamp(moment: datetime) -> str:
    """Write a timestamp as ISO 8601 in UTC with a precision of one second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_amount(cents: int) -> str:
    """Write cents as a decimal amount, ``8490`` as ``84.90``."""
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02d}"
