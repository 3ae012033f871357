"""Measures the ledger against the goals of docs/benchmarks.md, each beside its plain counterpart.

    python -P tests/benchmarks/bench_ledger.py [--quick] [--only NAME …] [--json FILE]
                                               [--markdown FILE]

Both sides of a ratio are measured in one run, in turns, so that a busy machine slows both. A figure
is a median unless it says otherwise; `least` is the smallest. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ledger import canonical, chain, payloads, storage, topics
from ledger import recorder as _loaded_now  # noqa: F401 - loading it is not part of an append
from ledger.book import Book
from ledger.events import Event, EvidenceRecorded
from ledger.reader import Row
from ledger.recorder import INSERT
from ledger.verify import verify_book
from tests.benchmarks import workload
from tests.benchmarks.growing_requests import documents

MACHINE = "2 cores, Linux, Python 3.11, SQLite 3.40"
PAYLOAD = 80_000


@dataclass(frozen=True)
class Figure:
    """One row of the table. `goal` is None for what is only reported."""

    what: str
    measured: str
    value: float
    goal: float | None = None
    unit: str = "×"

    @property
    def met(self) -> bool | None:
        return None if self.goal is None else self.value <= self.goal


class Times(NamedTuple):
    """Seconds of one side of a comparison."""

    values: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def __str__(self) -> str:
        return f"{_time(self.median)} (least {_time(min(self.values))})"


def in_turns(rounds: int, *sides: Callable[[], object]) -> list[Times]:
    """Run each side once a round, starting with another one each round; return their times."""
    times: list[list[float]] = [[] for _ in sides]
    for number in range(rounds):
        for offset in range(len(sides)):
            side = (number + offset) % len(sides)
            gc.collect()
            times[side].append(_seconds(sides[side]))
    return [Times(values) for values in times]


# Append -----------------------------------------------------------------------------------------


class Prepared(NamedTuple):
    """What one append comes down to: rows for the three tables."""

    event: tuple[Any, ...]
    chunks: list[tuple[Any, ...]]
    document: list[tuple[Any, ...]]


def append(folder: Path, *, quick: bool) -> Iterator[Figure]:
    for what, size in (("small event", 0), ("80 KB payload", PAYLOAD)):
        appends = _appends(size, 60 if quick else 400)
        rows = _rows_of(folder / f"{size}-model.case", appends)
        yield from _compare_appends(folder, what, appends, rows)


def _appends(size: int, count: int) -> list[tuple[Event, list[bytes]]]:
    prose = workload.Prose(seed=3)
    if not size:
        return [(workload.small_event(number), []) for number in range(count)]
    made: list[tuple[Event, list[bytes]]] = []
    for number in range(count):
        data = prose.document(size)
        event = EvidenceRecorded(
            at=workload.AT,
            evidence=f"E{number}",
            action=f"A{number}",
            kind="read_file",
            content=workload.reference(data),
            characters=len(data),
            complete=True,
            found=True,
        )
        made.append((event, [data]))
    return made


def _rows_of(path: Path, appends: Sequence[tuple[Event, list[bytes]]]) -> list[Prepared]:
    """Append to a case; return the rows that each append stored."""
    rows = []
    with _case(path) as book:
        connection, last = book.connection, 0
        for event, contents in appends:
            head = book.append(event, payloads=contents)
            chunks = connection.execute("SELECT * FROM chunk WHERE id > ?", (last,)).fetchall()
            last = chunks[-1][0] if chunks else last
            digests = [(hashlib.sha256(data).digest(),) for data in contents]
            rows.append(
                Prepared(
                    connection.execute(
                        "SELECT * FROM event WHERE position = ?", (head.position,)
                    ).fetchone(),
                    chunks,
                    [
                        connection.execute(
                            "SELECT * FROM document WHERE digest = ?", digest
                        ).fetchone()
                        for digest in digests
                    ],
                )
            )
    return rows


class Stopwatch:
    """Times the preparation inside appends: encode, digest, cut, compress."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def __enter__(self) -> Stopwatch:
        self._saved = topics.encode, payloads.cut, payloads.compress, payloads.hashlib
        topics.encode = self._timed(topics.encode)
        payloads.cut = self._timed(payloads.cut)
        payloads.compress = self._timed(payloads.compress)
        payloads.hashlib = types.SimpleNamespace(sha256=self._timed(hashlib.sha256))
        return self

    def __exit__(self, *exc: object) -> None:
        topics.encode, payloads.cut, payloads.compress, payloads.hashlib = self._saved

    def taken(self) -> float:
        """Return the seconds since the last call."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    def _timed(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return work(*arguments, **options)
            finally:
                self._seconds += time.perf_counter() - start

        return timed


def _compare_appends(
    folder: Path, what: str, appends: Sequence[tuple[Event, list[bytes]]], rows: list[Prepared]
) -> Iterator[Figure]:
    """Append and insert in turns: the same rows in two files on the same disk."""
    whole, prepared, raw = Times([]), Times([]), Times([])
    with (
        Stopwatch() as watch,
        _case(folder / "ours.case") as book,
        closing(_raw_case(folder / "raw.case")) as connection,
    ):
        for (event, contents), inserted in zip(appends, rows, strict=True):
            raw.values.append(_seconds(partial(_insert, connection, inserted)))
            watch.taken()
            whole.values.append(_seconds(partial(book.append, event, payloads=contents)))
            prepared.values.append(watch.taken())
    for used in folder.glob("*.case*"):
        used.unlink()
    storing = Times([a - b for a, b in zip(whole.values, prepared.values, strict=True)])
    yield Figure(
        f"append, {what}, without preparation, against sqlite3",
        f"{storing} against {raw}",
        storing.median / raw.median,
        1.05,
    )
    yield Figure(
        f"append, {what}: what the ledger adds to sqlite3",
        "difference of the medians",
        (storing.median - raw.median) * 1000,
        unit=" ms",
    )
    yield Figure(
        f"preparation of {what}: encode, digest, cut, compress",
        str(prepared),
        prepared.median * 1000,
        unit=" ms",
    )


def _insert(connection: sqlite3.Connection, rows: Prepared) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO chunk VALUES (?, ?, ?, ?, ?)", rows.chunks)
    connection.executemany("INSERT INTO document VALUES (?, ?, ?)", rows.document)
    connection.execute(INSERT, rows.event)
    connection.execute("COMMIT")


def _case(path: Path) -> Book:
    workload.write_case(path, iter([([workload.opening()], [])]))
    return Book.open_for_writing(path)


def _raw_case(path: Path) -> sqlite3.Connection:
    """A database with the same schema and pragmas, without a ledger."""
    storage.create_file(path).close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    storage.enter_wal(connection)
    return connection


# Replay, verify, reopen -------------------------------------------------------------------------


def streams(folder: Path, *, quick: bool) -> Iterator[Figure]:
    for count in (1_000, 10_000) if quick else (1_000, 10_000, 100_000):
        path = workload.write_case(folder / f"{count}.case", workload.long_stream(count))
        rounds = max(7, min(15, 200_000 // count))
        yield from _replay(path, count, rounds)
        yield from _reopen(path, count)


def _replay(path: Path, count: int, rounds: int) -> Iterator[Figure]:
    with Book.open(path) as book:
        ours, raw, verifying, linking = in_turns(
            rounds,
            lambda: _exhaust(book.events()),
            lambda: _raw_replay(path),
            lambda: verify_book(book),
            lambda: _chain_only(book.rows()),
        )
        assert verify_book(book).ok
    yield Figure(
        f"replay of {count:,} events against raw read + orjson + pydantic",
        f"{ours} against {raw}",
        ours.median / raw.median,
        1.0,
    )
    growth = _child_growth("replay", path)
    yield Figure(f"memory growth of that replay, {count:,}", "RSS of a child", growth, 5, " MB")
    yield Figure(
        f"verify of {count:,} events against raw replay",
        f"{verifying} against {raw}",
        verifying.median / raw.median,
        2.0,
    )
    growth = _child_growth("verify", path)
    yield Figure(f"memory growth of verify, {count:,}", "RSS of a child", growth, unit=" MB")
    yield Figure(f"chain alone, {count:,}", f"{linking} against {raw}", linking.median / raw.median)


def _raw_replay(path: Path) -> None:
    """What a reader without a ledger would do: rows as they come, parsed and validated."""
    registry = topics.REGISTRY
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        for _, topic, state in connection.execute(
            "SELECT position, topic, state FROM event ORDER BY position"
        ):
            registry[topic].model_validate(orjson.loads(state))


def _chain_only(rows: Iterator[Row]) -> None:
    value = chain.ZERO
    for row in rows:
        value = chain.link(value, row.leaf())
        assert value == row.chain


def _reopen(path: Path, count: int) -> Iterator[Figure]:
    def reading() -> None:
        Book.open(path).close()

    def writing() -> None:
        Book.open_for_writing(path).close()

    def raw() -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("SELECT max(position) FROM event").fetchone()

    reader, writer, plain = in_turns(50, reading, writing, raw)
    for what, times in (("reading", reader), ("writing", writer)):
        yield Figure(
            f"open and close for {what}, {count:,} events",
            f"{times}; sqlite3 {plain}",
            times.median * 1000,
            5,
            " ms",
        )


# Size, and one request out of many --------------------------------------------------------------


def sizes(folder: Path, *, quick: bool) -> Iterator[Figure]:
    for count, goal in ((13, 90), (60, 300)):
        made = documents(count)
        total = sum(map(len, made)) / 1000
        for what, steps, limit in (
            ("payloads alone", _without_events(made), None),
            ("contexts and request documents", _requests_only(made), goal),
            ("a whole investigation around them", workload.investigation(made), goal),
            ("the same with HTTP bodies", workload.investigation(made, wire=True), None),
        ):
            path = folder / "sized.case"
            path.unlink(missing_ok=True)
            workload.write_case(path, steps)
            size, share = path.stat().st_size / 1000, _shares(path)
            if what == "payloads alone":
                size = share["chunk"] + share["document"]
            yield Figure(
                f"stored for {count} requests: {what}",
                f"of {total:.0f} KB; " + ", ".join(f"{k} {v:.0f}" for k, v in share.items()),
                size,
                limit,
                " KB",
            )


def _requests_only(made: list[bytes]) -> Iterator[workload.Step]:
    """Keep the events that name a context or a request, and the opening."""
    for events, contents in workload.investigation(made):
        if events[0].TOPIC in ("case.opened/1", "context.created/1"):
            yield events, contents


def _without_events(made: list[bytes]) -> Iterator[workload.Step]:
    """Keep contexts only; the figure leaves the event table out."""
    for events, contents in _requests_only(made):
        yield events[:1], contents[:1]


def _shares(path: Path) -> dict[str, float]:
    """Return KB of pages by table, indexes counted with their tables."""
    shares = {"chunk": 0.0, "document": 0.0, "event": 0.0, "schema": 0.0}
    with closing(sqlite3.connect(path)) as connection:
        query = (
            "SELECT coalesce(tbl_name, 'schema'), sum(pgsize) FROM dbstat "
            "LEFT JOIN sqlite_schema USING (name) GROUP BY 1"
        )
        with suppress(sqlite3.OperationalError):  # an SQLite without dbstat
            shares |= {name: size / 1000 for name, size in connection.execute(query)}
    return shares


def request(folder: Path, *, quick: bool) -> Iterator[Figure]:
    """Fetch a context and its request document, render the one again, compare it with the other."""
    made = documents(60)
    path = workload.write_case(folder / "sixty.case", workload.investigation(made))
    with Book.open(path) as book:
        prepared = [e.event for e in book.events() if e.event.TOPIC == "request.prepared/1"][-1]
        created = [e.event for e in book.events() if e.event.TOPIC == "context.created/1"][-1]
        system = canonical.from_bytes(book.payload(prepared.document.digest))["system"]

        def rebuild() -> None:
            context = book.payload(created.content.digest)
            saved = book.payload(prepared.document.digest)
            assert workload.request_document(context, system) == saved

        fetching, rebuilding, verifying = in_turns(
            20, lambda: book.payload(prepared.document.digest), rebuild, lambda: verify_book(book)
        )
    yield Figure("fetch the last of 60 requests", str(fetching), fetching.median * 1000, 20, " ms")
    yield Figure(
        "rebuild it from its context and compare",
        str(rebuilding),
        rebuilding.median * 1000,
        20,
        " ms",
    )
    yield Figure(
        "verify the case of 60 requests", str(verifying), verifying.median * 1000, unit=" ms"
    )


# The command line -------------------------------------------------------------------------------


def commands(folder: Path, *, quick: bool) -> Iterator[Figure]:
    program = Path(sys.executable).with_name("caseledger")
    path = workload.write_case(folder / "a.case", workload.investigation(documents(13)))
    for arguments in (["--help"], ["log", str(path)], ["verify", str(path)]):
        command = [sys.executable, "-P", str(program), *arguments]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            reason = (done.stdout + done.stderr).decode().strip().rpartition("\n")[2]
            print(f"skipped: caseledger {arguments[0]}: {reason}", file=sys.stderr)
            continue
        times = Times([_cpu_seconds(command) for _ in range(3 if quick else 9)])
        yield Figure(
            f"CPU of `caseledger {arguments[0]}`", str(times), times.median * 1000, 600, " ms"
        )
        loaded = _google_modules([sys.executable, "-P", "-X", "importtime", *command[2:]])
        yield Figure(
            f"modules of google loaded by `{arguments[0]}`", "-X importtime", loaded, 0, ""
        )


def _cpu_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _google_modules(command: list[str]) -> int:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    names = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line]
    assert "site" in names, "-X importtime gave nothing"
    return sum(name == "google" or name.startswith("google.") for name in names)


# Putting it together ----------------------------------------------------------------------------

PARTS = {
    "append": append,
    "streams": streams,
    "sizes": sizes,
    "request": request,
    "commands": commands,
}


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    if options.child:
        _report_growth(*options.child)
        return
    figures: list[Figure] = []
    for name in options.only or PARTS:
        folder = Path(tempfile.mkdtemp(prefix="caseledger-bench-", dir=options.folder))
        try:
            for figure in PARTS[name](folder, quick=options.quick):
                print(_line(figure), flush=True)
                figures.append(figure)
        finally:
            shutil.rmtree(folder)
    if options.json:
        rows = [asdict(figure) | {"met": figure.met} for figure in figures]
        options.json.write_bytes(orjson.dumps(rows, option=orjson.OPT_INDENT_2) + b"\n")
    if options.markdown:
        options.markdown.write_text(_markdown(figures) + _other_sections(options.markdown))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no 100,000 events")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="parts to measure")
    parser.add_argument("--folder", type=Path, help="where cases are made: the disk to measure")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--markdown", type=Path, help="write docs/benchmarks.md here")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _child_growth(what: str, path: Path) -> float:
    """Return by how many MB a fresh process grows at most while it does one thing."""
    command = [sys.executable, "-P", __file__, "--child", what, str(path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _report_growth(what: str, path: str) -> None:
    with Book.open(path) as book:
        _exhaust(book.events(500))  # caches fill, validators are built
        verify_book(book) if book.head.position <= 1000 else None
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts from here
        before = _status("VmRSS")
        _exhaust(book.events()) if what == "replay" else verify_book(book)
        print((_status("VmHWM") - before) / 1024)


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise LookupError(name)


def _exhaust(items: Iterator[object]) -> None:
    for _ in items:
        pass


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _value(value: float, unit: str) -> str:
    return f"{value:.2f}{unit}" if value < 10 and unit else f"{value:.0f}{unit}"


def _line(figure: Figure) -> str:
    goal = "" if figure.goal is None else f"≤ {figure.goal:g}{figure.unit}"
    met = {None: "", True: "met", False: "MISSED"}[figure.met]
    value = _value(figure.value, figure.unit)
    return f"{figure.what:66} {value:>10} {goal:>10} {met:7} {figure.measured}"


def _other_sections(page: Path) -> str:
    """Return what stands below the ledger's figures: other benchmarks' sections."""
    _, heading, rest = page.read_text().partition("\n## ") if page.exists() else ("", "", "")
    return heading + rest


def _markdown(figures: Sequence[Figure]) -> str:
    rows = [
        f"| {f.what} | {_value(f.value, f.unit)} | "
        f"{'' if f.goal is None else f'≤ {f.goal:g}{f.unit}'} | "
        f"{ {None: '', True: 'yes', False: '**no**'}[f.met] } | {f.measured} |"
        for f in figures
    ]
    return _PAGE.format(machine=MACHINE, rows="\n".join(rows))


_PAGE = """\
# Benchmarks

What the ledger costs, each figure beside what the same work costs without it. Measured on
{machine}, by

```
.venv/bin/python -P tests/benchmarks/bench_ledger.py --markdown docs/benchmarks.md
```

Both sides of a ratio are measured in one run, in turns. Times are medians, the least one in
brackets. KB and MB of stored bytes are thousands and millions. *Preparation* is what any store of
this content has to do first: encode the event and prove that it reads back, compute digests, cut
the payload and compress it. The requests are those of `tests/benchmarks/growing_requests.py`;
a whole investigation has thirteen events a request (`tests/benchmarks/workload.py`).

| what | figure | goal | met | measured |
| --- | --- | --- | --- | --- |
{rows}

Kills and faults are tests, not benchmarks: `tests/crash` and `tests/ledger/faults`. The full count
of kills: `.venv/bin/python -m pytest tests/crash -m slow`.
"""


if __name__ == "__main__":
    main()
