"""Measurements over saved cases and packages: offline, without keys, nothing written back.

Here: what both have in common, and `measure consolidation`; the cache's is cache_measuring.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger.book import Book
from ledger.package import Package, verify_package
from ledger.verify import Report, verify_book
from projections import encodings
from projections.measuring import (
    Counter,
    Measured,
    Row,
    Size,
    added_up,
    by_phase,
    measure,
    phases_using,
    reduction,
)
from projections.tokens import ESTIMATOR, estimated_tokens
from projections.wording import counted
from tools.exits import AnswerIsNo, UserError
from tools.many import Broken, Cases, broken_json, over, row_files
from tools.output import note, print_json, say, table
from tools.selecting import is_zip
from tools.sharing import withheld_json, withheld_text
from tools.vocabulary import gemma_counter

if TYPE_CHECKING:
    from ledger.reader import RecordReader

HONESTY = (
    "Exact restoration does not prove that a model understands the encoded form as well.",
    "Token savings and quality need a paid live run.",
    "The offline analyst decodes first, so it proves neither.",
)
MILESTONE = "Baseline: the saved phase view as plain JSON, not the original case package."


class DoesNotVerify(AnswerIsNo):
    """A case that was to be measured is not what was written."""


@dataclass(frozen=True)
class Options:
    """What both measurements take beside the cases."""

    jobs: int = 1
    csv: Path | None = None
    jsonl: Path | None = None
    force: bool = False
    per_request: bool = False
    json: bool = False


@dataclass(frozen=True)
class Source:
    """The file that was measured: its SHA-256 before and after."""

    case: str
    before: str
    after: str

    def as_json(self) -> dict[str, Any]:
        return {"case": self.case, "sha256": {"before": self.before, "after": self.after}}


@dataclass(frozen=True)
class _Found:
    """One case under a candidate encoding; `requests` only if asked for."""

    source: Source
    rows: list[Row]
    requests: list[Measured]


@dataclass
class _Sum:
    """All cases together."""

    rows: list[Row]
    cases: list[_Found]
    broken: list[Broken]

    @property
    def requests(self) -> list[Measured]:
        return [request for case in self.cases for request in case.requests]


def measure_consolidation(
    cases: Cases, encoding: str, options: Options, *, every_phase: bool = False
) -> None:
    """Measure an encoding over saved requests and print the figures.

    Raises:
        UserError: there is no such encoding.
        AnswerIsNo: a case does not verify, or a request was not restored exactly.
    """
    if encoding not in encodings.VERSIONS:
        raise UserError(f"{encoding}: encodings are {', '.join(encodings.VERSIONS)}")
    phases = frozenset() if every_phase else phases_using(encoding)
    names = list(counters())
    work = partial(_measured, encoding, phases, options.per_request)
    total = _Sum([], [], [])
    with row_files(options.csv, options.jsonl, columns(names), force=options.force) as write:
        for found in over(cases, work, "measuring", jobs=options.jobs, quiet=options.json):
            if isinstance(found, Broken):
                total.broken.append(found)
                continue
            total.rows = added_up([*total.rows, *found.rows])
            total.cases.append(found)
            for row in found.rows:
                write(_flat(found.source.case, row, names))
    if options.json:
        print_json(_as_json(encoding, names, total))
    else:
        _print(encoding, names, total)
    end_well(total.broken, [case.source for case in total.cases])
    if any(row.exact != row.requests for row in total.rows):
        raise AnswerIsNo


def end_well(broken: Sequence[Broken], sources: Sequence[Source]) -> None:
    """Raise AnswerIsNo if a case was broken, or was changed while it was measured."""
    changed = [source.case for source in sources if source.before != source.after]
    for case in changed:
        note(f"{case}: was changed by somebody else while it was measured")
    if broken:
        note(f"{len(broken)} could not be measured")
    if broken or changed:
        raise AnswerIsNo


@contextmanager
def verified(path: Path) -> Iterator[RecordReader]:
    """Open a case or package that is what was written.

    Raises:
        DoesNotVerify: it is not.
        LedgerError: it cannot be opened.
    """
    if is_zip(path):
        with Package(path) as package:
            _require_verified(path, verify_package(package))
            if withheld := withheld_json(package):
                note(f"{path}: {withheld_text(withheld)}; requests among them are not measured")
            yield package
    else:
        with Book.open(path) as book:
            _require_verified(path, verify_book(book))
            yield book


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file as it is, hex; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:  # opening it will say why
        return ""


def counters() -> dict[str, Counter]:
    """Return the token counters of this machine by name."""
    found: dict[str, Counter] = {ESTIMATOR: estimated_tokens}
    gemma = gemma_counter()
    return found | ({"gemma3": gemma} if gemma else {})


def size_json(size: Size, names: Sequence[str]) -> dict[str, int]:
    """Return a size as every JSON document shows it."""
    return {"characters": size.characters, **dict(zip(names, size.tokens, strict=True))}


def columns(names: Sequence[str]) -> list[str]:
    """Return the columns of CSV and JSON lines of `measure consolidation`."""
    sizes = [f"{name}_{when}" for name in ("characters", *names) for when in ("before", "after")]
    return ["case", "phase", "requests", "exact", *sizes]


def _measured(encoding: str, phases: frozenset[str], per_request: bool, path: Path) -> _Found:
    before = file_digest(path)
    with verified(path) as reader:
        found = list(measure(reader, encoding, tuple(counters().values()), phases))
    source = Source(path.name, before, file_digest(path))
    return _Found(source, by_phase(found), found if per_request else [])


def _require_verified(path: Path, report: Report) -> None:
    if not report.ok:
        raise DoesNotVerify(f"{path}: does not verify: {report.first_damage(path)}")


def _flat(case: str, row: Row, names: Sequence[str]) -> dict[str, Any]:
    before, after = size_json(row.before, names), size_json(row.after, names)
    sizes = {
        f"{name}_{when}": size[name]
        for name in before
        for when, size in (("before", before), ("after", after))
    }
    return {
        "case": case,
        "phase": row.phase,
        "requests": row.requests,
        "exact": row.exact,
        **sizes,
    }


def _as_json(encoding: str, names: list[str], total: _Sum) -> dict[str, Any]:
    return {
        "encoding": encoding,
        "counters": names,
        "phases": _phases_json(total.rows, names),
        "requests": [
            {
                "request": item.request,
                "phase": item.phase,
                "protocol": item.protocol,
                "form": item.form,
                "exact": item.exact,
                **_sizes(item, names),
            }
            for item in total.requests
        ],
        "cases": [
            {**case.source.as_json(), "phases": _phases_json(case.rows, names)}
            for case in total.cases
        ],
        "broken": broken_json(total.broken),
        "says": [MILESTONE, *HONESTY],
    }


def _phases_json(rows: Sequence[Row], names: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "phase": row.phase,
            "requests": row.requests,
            "exact": row.exact,
            **_sizes(row, names),
        }
        for row in rows
    ]


def _sizes(item: Row | Measured, names: list[str]) -> dict[str, Any]:
    return {"before": size_json(item.before, names), "after": size_json(item.after, names)}


def _print(encoding: str, names: list[str], total: _Sum) -> None:
    headings = ["phase", "saved requests", "characters before", "after", "reduction"]
    for name in names:
        headings += [f"{name} before", "after", "reduction"]
    cells = [[row.phase, row.requests, *_reduced(row.before, row.after)] for row in total.rows]
    table(headings, cells)
    if total.requests:
        say()
        named = ["request", "protocol", "form", *headings[2:]]
        table(
            named,
            [
                [item.request, item.protocol, item.form, *_reduced(item.before, item.after)]
                for item in total.requests
            ],
        )
    exact = sum(row.exact for row in total.rows)
    requests = sum(row.requests for row in total.rows)
    say()
    say(f"{encoding}: {exact} of {counted(requests, 'request')} restored exactly.")
    for sentence in (MILESTONE, *HONESTY):
        say(sentence)


def _reduced(before: Size, after: Size) -> list[str]:
    """Return table cells: before, after and reduction, for characters and each counter."""
    cells: list[str] = []
    pairs = [(before.characters, after.characters), *zip(before.tokens, after.tokens, strict=True)]
    for old, new in pairs:
        cells += [f"{old:,}", f"{new:,}", f"{reduction(old, new):.1f} %"]
    return cells
