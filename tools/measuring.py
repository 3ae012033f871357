"""Measurements over saved cases and packages: offline, without keys, nothing written back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ledger.book import Book
from ledger.package import Package, verify_package
from ledger.verify import Report, verify_book
from projections import encodings
from projections.measuring import (
    Counter,
    Measured,
    Row,
    by_phase,
    measure,
    phases_using,
    reduction,
)
from projections.tokens import ESTIMATOR, estimated_tokens
from tools.exits import AnswerIsNo, UserError
from tools.output import note, print_json, say, table
from tools.selecting import find_case, is_zip
from tools.vocabulary import gemma_counter

HONESTY = (
    "Exact restoration does not prove that a model understands the encoded form as well.",
    "Token savings and quality need a paid live run.",
    "The offline analyst decodes first, so it proves neither.",
)
MILESTONE = "Baseline: the saved phase view as plain JSON, not the original case package."


def measure_consolidation(
    selectors: list[str],
    encoding: str,
    *,
    every_phase: bool = False,
    per_request: bool = False,
    json: bool = False,
) -> None:
    """Measure an encoding over saved requests and print the figures.

    Raises:
        UserError: there is no such encoding or case.
        AnswerIsNo: a case does not verify, or a request was not restored exactly.
    """
    if encoding not in encodings.VERSIONS:
        raise UserError(f"{encoding}: encodings are {', '.join(encodings.VERSIONS)}")
    counters = _counters()
    phases = frozenset() if every_phase else phases_using(encoding)
    found: list[Measured] = []
    for selector in selectors:
        found += _measured(find_case(selector), encoding, tuple(counters.values()), phases)
    rows = by_phase(found)
    if json:
        print_json(_as_json(encoding, counters, rows, found if per_request else []))
    else:
        _print(encoding, counters, rows, found if per_request else [])
    if not all(item.exact for item in found):
        raise AnswerIsNo


def _measured(
    path: Path, encoding: str, counters: tuple[Counter, ...], phases: frozenset[str]
) -> list[Measured]:
    if is_zip(path):
        with Package(path) as package:
            _require_verified(path, verify_package(package))
            return list(measure(package, encoding, counters, phases))
    with Book.open(path) as book:
        _require_verified(path, verify_book(book))
        return list(measure(book, encoding, counters, phases))


def _require_verified(path: Path, report: Report) -> None:
    if not report.ok:
        note(f"{path}: does not verify: {report.findings[0].message}")
        raise AnswerIsNo


def _counters() -> dict[str, Counter]:
    counters: dict[str, Counter] = {ESTIMATOR: estimated_tokens}
    gemma = gemma_counter()
    return counters | ({"gemma3": gemma} if gemma else {})


def _as_json(
    encoding: str, counters: dict[str, Counter], rows: list[Row], requests: list[Measured]
) -> dict[str, Any]:
    names = list(counters)
    return {
        "encoding": encoding,
        "counters": names,
        "phases": [
            {
                "phase": row.phase,
                "requests": row.requests,
                "exact": row.exact,
                **_sizes(row.before, row.after, names),
            }
            for row in rows
        ],
        "requests": [
            {
                "request": item.request,
                "phase": item.phase,
                "protocol": item.protocol,
                "form": item.form,
                "exact": item.exact,
                **_sizes(item.before, item.after, names),
            }
            for item in requests
        ],
        "says": [MILESTONE, *HONESTY],
    }


def _sizes(before: Any, after: Any, names: list[str]) -> dict[str, Any]:
    return {
        "before": {"characters": before.characters, **dict(zip(names, before.tokens, strict=True))},
        "after": {"characters": after.characters, **dict(zip(names, after.tokens, strict=True))},
    }


def _print(
    encoding: str, counters: dict[str, Counter], rows: list[Row], requests: list[Measured]
) -> None:
    columns = ["phase", "saved requests", "characters before", "after", "reduction"]
    for name in counters:
        columns += [f"{name} before", "after", "reduction"]
    table(columns, [[row.phase, row.requests, *_cells(row.before, row.after)] for row in rows])
    if requests:
        say()
        named = ["request", "protocol", "form", *columns[2:]]
        cells = [[i.request, i.protocol, i.form, *_cells(i.before, i.after)] for i in requests]
        table(named, cells)
    exact, total = sum(row.exact for row in rows), sum(row.requests for row in rows)
    say()
    say(f"{encoding}: {exact} of {total} requests restored exactly.")
    for sentence in (MILESTONE, *HONESTY):
        say(sentence)


def _cells(before: Any, after: Any) -> list[str]:
    cells: list[str] = []
    pairs = [(before.characters, after.characters), *zip(before.tokens, after.tokens, strict=True)]
    for old, new in pairs:
        cells += [f"{old:,}", f"{new:,}", f"{reduction(old, new):.1f} %"]
    return cells
