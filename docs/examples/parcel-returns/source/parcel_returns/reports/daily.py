"""Daily report on a settlement run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from parcel_returns.models import Basis, Outcome, Settlement, format_amount

_HEADER = ("return", "outcome", "basis", "goods", "deduction", "refund")
_ROW = "{:<14} {:<8} {:<11} {:>10} {:>10} {:>10}"


def render(run_date: date, entries: Sequence[Settlement]) -> str:
    """The report as text, with one row for each settlement and a summary."""
    if not entries:
        return f"Settlements of {run_date.isoformat()}: none\n"
    lines = [f"Settlements of {run_date.isoformat()}", "", _ROW.format(*_HEADER)]
    lines.extend(
        _ROW.format(
            entry.return_no,
            entry.outcome.value,
            entry.basis.value,
            format_amount(entry.goods_cents),
            format_amount(entry.deduction_cents),
            format_amount(entry.refund_cents),
        )
        for entry in entries
    )
    lines.append("")
    lines.extend(f"{label:<24} {value:>10}" for label, value in summary(entries))
    return "\n".join(lines) + "\n"


def summary(entries: Sequence[Settlement]) -> list[tuple[str, str]]:
    """Label and value of each line of the summary."""
    late = [entry for entry in entries if entry.outcome is Outcome.LATE]
    by_receipt = [entry for entry in entries if entry.basis is Basis.RECEIPT]
    return [
        ("settled", str(len(entries))),
        ("of these late", str(len(late))),
        ("decided by goods-in scan", str(len(by_receipt))),
        ("goods", format_amount(sum(entry.goods_cents for entry in entries))),
        ("deductions", format_amount(sum(entry.deduction_cents for entry in entries))),
        ("refunds", format_amount(sum(entry.refund_cents for entry in entries))),
    ]
