"""Builds db/app.db and logs/app.log of this example; same bytes in every run.

The rows of orders, returns and scans come from a generator with a fixed seed.  Settlements and
log lines are what the service in source/ itself writes when it is run on these rows, day by day,
on a simulated clock.  Run it on the unpatched source:

    python make_db.py            writes db/app.db and logs/app.log beside this file
    python make_db.py --out DIR  writes DIR/db/app.db and DIR/logs/app.log
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import random
import sqlite3
import sys
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "source"))

from parcel_returns import cli, db  # noqa: E402
from parcel_returns.models import format_timestamp as extended  # noqa: E402

SEED = 20250319
SNAPSHOT = datetime(2025, 3, 19, 10, 0, tzinfo=UTC)
FIRST_RUN = date(2025, 1, 6)
FIRST_LOGGED_RUN = date(2025, 3, 10)
FIRST_RETURN_NO = 118
NEW_TERMINALS_FROM = datetime(2025, 3, 3, tzinfo=UTC)
NEW_TERMINALS = {"CP-012": 2, "CP-031": 1}

CATEGORIES = {
    "kitchen": ("Kettle", "Toaster", "Pan", "Knife set", "Scale", "Grater"),
    "garden": ("Hose", "Rake", "Lantern", "Planter", "Glove pair", "Shears"),
    "textile": ("Blanket", "Curtain", "Cushion", "Towel set", "Rug", "Apron"),
    "lighting": ("Desk lamp", "Floor lamp", "Fairy lights", "Wall light", "Lamp shade", "Spot"),
}
COLOURS = ("black", "white", "green", "grey", "blue")
REASONS = ("unwanted", "wrong size", "damaged", "not as described", "arrived late")


class Clock:
    """Simulated time; every log record moves it on by a few milliseconds."""

    def __init__(self) -> None:
        self.now = datetime.combine(FIRST_RUN, time(6), tzinfo=UTC)
        self.rng = random.Random(SEED + 1)
        self.factory = logging.getLogRecordFactory()

    def record(self, *args: object, **kwargs: object) -> logging.LogRecord:
        self.now += timedelta(milliseconds=self.rng.randint(1, 14))
        entry = self.factory(*args, **kwargs)
        entry.created = self.now.timestamp()
        entry.msecs = self.now.microsecond // 1000
        return entry


def basic(moment: datetime) -> str:
    return moment.strftime("%Y%m%dT%H%M%SZ")


def day_time(rng: random.Random, day: date, first: int, last: int) -> datetime:
    start = datetime.combine(day, time(first), tzinfo=UTC)
    return start + timedelta(seconds=rng.randrange((last - first) * 3600))


def add_products(conn: sqlite3.Connection, rng: random.Random) -> list[tuple[int, int]]:
    products = []
    for category, names in CATEGORIES.items():
        for name in names:
            for colour in COLOURS:
                number = len(products) + 1
                price = rng.randint(8, 159) * 100 + rng.choice((90, 95, 50, 0))
                if number == 17:
                    price = 5990
                if number == 64:
                    price = 2500
                blank = " " if number in (23, 71, 108) else ""
                sku = f"{category[0].upper()}{1000 + number * 7}"
                row = (number, sku, f"{name}, {colour}{blank}", category, price)
                conn.execute("INSERT INTO products VALUES (?, ?, ?, ?, ?)", row)
                products.append((number, price))
    return products


def add_points(conn: sqlite3.Connection, rng: random.Random) -> list[str]:
    closed = {9: "2025-02-28", 27: "2025-02-14"}
    codes = []
    for number in range(1, 41):
        code = f"CP-{number:03d}"
        opened = date(2019, 1, 1) + timedelta(days=rng.randrange(1900))
        kind = rng.choice(("kiosk", "kiosk", "supermarket", "petrol station", "locker"))
        conn.execute(
            "INSERT INTO collection_points VALUES (?, ?, ?, ?, ?)",
            (code, kind, f"{rng.randrange(10, 98)}{rng.randrange(1000):03d}",
             opened.isoformat(), closed.get(number)),
        )
        codes.append(code)
    return codes


def add_orders(
    conn: sqlite3.Connection, rng: random.Random, products: list[tuple[int, int]]
) -> tuple[list[tuple[int, datetime, datetime, list[tuple[int, int]]]], int]:
    """Orders with their lines; the second value is the id of the reported order."""
    drafts = []
    day = date(2024, 12, 9)
    while day <= date(2025, 3, 12):
        for _ in range(rng.randint(7, 11)):
            placed = day_time(rng, day, 6, 23)
            delivered = day_time(rng, day + timedelta(days=rng.randint(1, 4)), 8, 18)
            picked = rng.sample(products, rng.choice((1, 1, 1, 2, 2, 3)))
            drafts.append((placed, delivered, picked, False))
        day += timedelta(days=1)
    drafts.append((
        datetime(2025, 2, 9, 19, 4, 51, tzinfo=UTC),
        datetime(2025, 2, 12, 13, 26, 40, tzinfo=UTC),
        [products[16], products[63]],
        True,
    ))
    drafts.sort(key=lambda draft: draft[0])
    orders, reported, line_id = [], 0, 0
    for order_id, (placed, delivered, picked, special) in enumerate(drafts, start=1):
        channel = "app" if special else rng.choice(("web", "web", "web", "app", "phone"))
        if rng.random() < 0.01:
            channel = channel.upper()
        number = f"{placed:%y}-{40000 + order_id * 13 + rng.randrange(12)}"
        conn.execute(
            "INSERT INTO orders VALUES (?, ?, ?, ?, ?)",
            (order_id, number, channel, extended(placed), extended(delivered)),
        )
        lines = []
        for product_id, price in picked:
            line_id += 1
            quantity = 1 if special else rng.choice((1, 1, 1, 1, 2))
            conn.execute(
                "INSERT INTO order_lines VALUES (?, ?, ?, ?, ?)",
                (line_id, order_id, product_id, quantity, price),
            )
            lines.append((line_id, quantity))
        orders.append((order_id, placed, delivered, lines))
        if special:
            reported = order_id
    return orders, reported


def closing_day(placed: datetime, delivered: datetime) -> date:
    last = (delivered + timedelta(days=30)).date()
    if date(2024, 11, 15) <= placed.date() <= date(2024, 12, 24):
        last = max(last, date(2025, 1, 31))
    return last


def plan_return(
    rng: random.Random, placed: datetime, delivered: datetime
) -> tuple[datetime, datetime]:
    """Times of registration and hand-over."""
    last = closing_day(placed, delivered)
    if rng.random() < 0.09:
        accepted = day_time(rng, last + timedelta(days=rng.randint(1, 8)), 8, 20)
    else:
        days = min(int(rng.triangular(2, 31, 14)), (last - delivered.date()).days)
        accepted = day_time(rng, delivered.date() + timedelta(days=days), 8, 20)
    ago = timedelta(days=rng.randint(0, 4), seconds=rng.randrange(1800, 30000))
    return max(accepted - ago, delivered + timedelta(hours=2)), accepted


def add_returns(
    conn: sqlite3.Connection,
    rng: random.Random,
    orders: list[tuple[int, datetime, datetime, list[tuple[int, int]]]],
    reported: int,
    points: list[str],
) -> None:
    weights = [10 if code in NEW_TERMINALS else 3 for code in points]
    drafts = []
    for order_id, placed, delivered, lines in orders:
        if order_id != reported and rng.random() >= 0.74:
            continue
        registered, accepted = plan_return(rng, placed, delivered)
        point = rng.choices(points, weights)[0]
        transit = day_time(rng, accepted.date() + timedelta(days=1), 1, 23)
        goods_in = day_time(rng, transit.date() + timedelta(days=rng.randint(1, 4)), 6, 15)
        if order_id == reported:
            registered = datetime(2025, 3, 11, 8, 14, 9, tzinfo=UTC)
            accepted = datetime(2025, 3, 12, 17, 48, 3, tzinfo=UTC)
            transit = datetime(2025, 3, 13, 4, 20, 37, tzinfo=UTC)
            goods_in = datetime(2025, 3, 17, 9, 35, 12, tzinfo=UTC)
            point = "CP-031"
        if not datetime(2025, 1, 2, tzinfo=UTC) <= registered < SNAPSHOT:
            continue
        unscanned = order_id != reported and rng.random() < 0.05
        drafts.append((registered, accepted, transit, goods_in, point, unscanned, order_id, lines))
    drafts.sort(key=lambda draft: draft[0])
    events, line_id = [], 0
    for return_id, draft in enumerate(drafts, start=1):
        registered, accepted, transit, goods_in, point, unscanned, order_id, lines = draft
        conn.execute(
            "INSERT INTO returns VALUES (?, ?, ?, ?, ?)",
            (return_id, f"R-2025-{FIRST_RETURN_NO + return_id:05d}", order_id,
             extended(registered), goods_in.date().isoformat() if goods_in < SNAPSHOT else None),
        )
        if order_id != reported:
            lines = sorted(rng.sample(lines, rng.randint(1, len(lines))))
        for order_line_id, quantity in lines:
            line_id += 1
            conn.execute(
                "INSERT INTO return_lines VALUES (?, ?, ?, ?, ?)",
                (line_id, return_id, order_line_id, rng.randint(1, quantity),
                 rng.choice(REASONS)),
            )
        events.append((registered, return_id, "LABEL_CREATED", None, None, extended(registered)))
        if not unscanned:
            unit = rng.randint(1, 2)
            if order_id == reported:
                unit = NEW_TERMINALS[point]
            new = NEW_TERMINALS.get(point) == unit and accepted >= NEW_TERMINALS_FROM
            terminal = f"{'HT3' if new else 'HT2'}-{point[3:]}-{unit}"
            text = basic(accepted) if new else extended(accepted)
            events.append((accepted, return_id, "ACCEPTED", point, terminal, text))
        events.append((transit, return_id, "IN_TRANSIT", None, f"HUB-{rng.randint(1, 6)}",
                       extended(transit)))
        if order_id != reported and rng.random() < 0.02:
            again = transit + timedelta(hours=3)
            events.append((again, return_id, "RELABELLED", None, "HUB-2", extended(again)))
        events.append((goods_in, return_id, "RECEIVED", None, "WH-1", extended(goods_in)))
    events = sorted(event for event in events if event[0] < SNAPSHOT)
    for scan_id, (_, return_id, code, point, terminal, text) in enumerate(events, start=1):
        conn.execute(
            "INSERT INTO scan_events VALUES (?, ?, ?, ?, ?, ?)",
            (scan_id, return_id, code, point, terminal, text),
        )


def call(*argv: str, now: datetime | None = None) -> None:
    """Run a command of the service and drop what it prints."""
    sink = io.StringIO()
    with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        cli.main(argv, now=now)


def simulate(path: Path, log_path: Path, reported_no: str) -> None:
    """Run the service day by day, as the scheduler and the support desk would."""
    clock = Clock()
    rng = random.Random(SEED + 2)
    logging.setLogRecordFactory(clock.record)
    with contextlib.closing(sqlite3.connect(path)) as conn:
        arrived = conn.execute(
            "SELECT return_no, received_on, substr(registered_at, 1, 10) FROM returns"
        ).fetchall()
        relabelled = dict(conn.execute(
            "SELECT return_no, scanned_at FROM scan_events JOIN returns USING (return_id) "
            "WHERE event_code = 'RELABELLED'"
        ))
    base = ("--db", str(path), "--log-file")
    day = FIRST_RUN
    while day < SNAPSHOT.date():
        logged = day >= FIRST_LOGGED_RUN
        target = str(log_path) if logged else os.devnull
        text = day.isoformat()
        if logged:
            known = [row for row in arrived if row[2] < text]
            recent = [row[0] for row in known if row[2] >= (day - timedelta(14)).isoformat()]
            moments = sorted(day_time(rng, day, 7, 19) for _ in range(rng.randint(20, 36)))
            for moment in moments:
                if moment > clock.now:
                    clock.now = moment
                number = rng.choice(recent)
                number = number if rng.random() > 0.03 else number.replace("2025", "2024")
                if relabelled.get(number, "") <= extended(moment):
                    call(*base, target, "show", number)
                settled = [row[0] for row in known if row[1] and row[1] < text]
                if rng.random() < 0.25:
                    clock.now += timedelta(seconds=rng.randint(15, 80))
                    call(*base, target, "assess", rng.choice(settled[-80:]))
        clock.now = datetime.combine(day, time(21, 30, 1), tzinfo=UTC)
        if text in ("2025-03-13", "2025-03-17"):
            waits = {"2025-03-13": 412, "2025-03-17": 1290}
            with patched_wait(clock, waits[text]):
                call(*base, target, "settle", "--date", text, now=clock.now)
        else:
            call(*base, target, "settle", "--date", text, now=clock.now)
        clock.now = datetime.combine(day, time(21, 45, 1), tzinfo=UTC)
        call(*base, target, "report", "--date", text)
        day += timedelta(days=1)
    for minute, command in ((6, "show"), (9, "assess"), (41, "show"), (43, "assess")):
        clock.now = datetime.combine(day, time(8, minute, 17), tzinfo=UTC)
        call(*base, str(log_path), command, reported_no)
    logging.setLogRecordFactory(clock.factory)
    for handler in list(logging.getLogger("parcel_returns").handlers):
        handler.close()


@contextlib.contextmanager
def patched_wait(clock: Clock, milliseconds: int):
    """Let the service see a wait for the write lock."""
    original = db.time.monotonic
    ticks = iter((0.0, milliseconds / 1000))

    def monotonic() -> float:
        value = next(ticks, None)
        if value:
            clock.now += timedelta(milliseconds=milliseconds)
        return original() if value is None else value

    db.time.monotonic = monotonic
    try:
        yield
    finally:
        db.time.monotonic = original


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE)
    out = parser.parse_args().out
    path, log_path = out / "db" / "app.db", out / "logs" / "app.log"
    for target in (path, log_path):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
    for name in [name for name in os.environ if name.startswith("PARCEL_RETURNS_")]:
        del os.environ[name]
    rng = random.Random(SEED)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as conn:
        db.prepare(conn)
        db.create_schema(conn)
        conn.execute("BEGIN")
        products = add_products(conn, rng)
        points = add_points(conn, rng)
        orders, reported = add_orders(conn, rng, products)
        add_returns(conn, rng, orders, reported, points)
        conn.execute("COMMIT")
        reported_no = conn.execute(
            "SELECT return_no FROM returns WHERE order_id = ?", (reported,)
        ).fetchone()[0]
    simulate(path, log_path, reported_no)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute("VACUUM")
    print(f"reported return {reported_no}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
