"""Command line of the service."""

from __future__ import annotations

import argparse
import json
import logging
import sqlite3
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from parcel_returns import __version__, db, log_setup
from parcel_returns.config import ConfigError, Settings, load_settings
from parcel_returns.db import returns, scans, settlements
from parcel_returns.models import EventCode, ParcelReturn, format_amount, format_timestamp
from parcel_returns.reports import daily
from parcel_returns.services import eligibility, settlement

log = logging.getLogger(__name__)

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2


class CommandError(Exception):
    """A command cannot be carried out."""


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="parcel_returns", description="Parcel returns")
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--db", type=Path, required=True, help="path of the database")
    parser.add_argument("--log-file", help="path of the log, instead of standard error")
    commands = parser.add_subparsers(dest="command", required=True)

    show = commands.add_parser("show", help="print a return with its scans")
    show.add_argument("return_no")

    assess = commands.add_parser("assess", help="assess a return without settling it")
    assess.add_argument("return_no")
    assess.add_argument("--json", action="store_true", help="print JSON")

    settle = commands.add_parser("settle", help="settle all returns received up to a day")
    settle.add_argument("--date", type=date.fromisoformat, required=True)
    settle.add_argument("--dry-run", action="store_true", help="store nothing")

    report = commands.add_parser("report", help="print the report on a settlement run")
    report.add_argument("--date", type=date.fromisoformat, required=True)
    return parser


def main(argv: Sequence[str] | None = None, now: datetime | None = None) -> int:
    args = build_parser().parse_args(argv)
    try:
        settings = load_settings()
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_USAGE
    log_setup.configure(settings.log_level, args.log_file or settings.log_file)
    read_only = args.command != "settle" or args.dry_run
    try:
        with db.connect(args.db, read_only=read_only) as conn:
            if args.command == "show":
                text = show_return(conn, args.return_no)
            elif args.command == "assess":
                text = assess_return(conn, args.return_no, settings, as_json=args.json)
            elif args.command == "settle":
                moment = now or datetime.now(UTC)
                result = settlement.run(conn, args.date, settings, moment, dry_run=args.dry_run)
                text = daily.render(args.date, result.settled)
            else:
                log.info("report for %s", args.date.isoformat())
                text = daily.render(args.date, settlements.list_for_run(conn, args.date))
    except (CommandError, db.DatabaseError, eligibility.NotAssessable) as error:
        log.error("%s failed: %s", args.command, error)
        print(f"error: {error}", file=sys.stderr)
        return EXIT_FAILED
    print(text, end="" if text.endswith("\n") else "\n")
    return EXIT_OK


def show_return(conn: sqlite3.Connection, return_no: str) -> str:
    """A return with its goods, scans and settlement."""
    item = _find(conn, return_no)
    log.info("show %s", item.return_no)
    received = "-" if item.received_on is None else item.received_on.isoformat()
    lines = [
        f"return     {item.return_no}",
        f"order      {item.order.order_no} ({item.order.channel.lower()})",
        f"delivered  {format_timestamp(item.order.delivered_at)}",
        f"received   {received}",
        f"goods      {format_amount(item.goods_cents)}",
    ]
    lines.extend(
        f"  {line.quantity} x {line.sku}  {line.title}  {format_amount(line.total_cents)}"
        for line in item.lines
    )
    lines.append("scans")
    for event in scans.list_for_return(conn, item.return_id):
        if event.event_code not in set(EventCode):
            log.warning("%s: unknown scan code %s", item.return_no, event.event_code)
        moment = format_timestamp(event.scanned_at)
        lines.append(f"  {moment}  {event.event_code:<14} {event.point_code or '-'}")
    settled = settlements.find_for_return(conn, item.return_id)
    if settled is None:
        lines.append("settlement none")
    else:
        lines.append(
            f"settlement {settled.run_date.isoformat()} {settled.outcome.value}, "
            f"deduction {format_amount(settled.deduction_cents)}, "
            f"refund {format_amount(settled.refund_cents)}"
        )
    return "\n".join(lines)


def assess_return(
    conn: sqlite3.Connection, return_no: str, settings: Settings, *, as_json: bool
) -> str:
    """The assessment of a return by the rules as they are now."""
    item = _find(conn, return_no)
    log.info("assess %s", item.return_no)
    found = eligibility.assess(conn, item, settings)
    values = {
        "return_no": item.return_no,
        "deadline": format_timestamp(found.deadline),
        "outcome": found.outcome.value,
        "basis": found.basis.value,
        "goods": format_amount(found.goods_cents),
        "deduction": format_amount(found.deduction_cents),
        "refund": format_amount(found.refund_cents),
    }
    if as_json:
        return json.dumps(values, indent=2)
    return "\n".join(f"{name:<10} {value}" for name, value in values.items())


def _find(conn: sqlite3.Connection, return_no: str) -> ParcelReturn:
    item = returns.find_by_number(conn, return_no.strip().upper())
    if item is None:
        raise CommandError(f"no return {return_no}")
    return item
