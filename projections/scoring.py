"""Scores diagnoses against what is known to be true: ranks, symbols, rows, citations, calibration.

Pure. A truth is what somebody learned later (docs/guides/evaluation.md); it meets a diagnosis here
and nowhere else. Measures are those of bug localization: Acc@k counts cases with a faulty file
among the first k files named, MRR is the mean of 1/rank (0 without a rank); the Brier score is the
mean squared difference between the stated probability and what happened (Brier 1950).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Lines = Callable[[str], Sequence[str] | None]
"""Gives the lines of a file or log of the snapshot; None if it holds no such text."""

BOUNDS = (1, 3, 5, 10)
"""The k of Acc@k."""

FIRST_SYMBOLS = 5
"""Symbols among which a faulty function must be to count as a hit."""

BINS = ((0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.0))
"""Rows of the reliability table: lower end included, upper end only in the last one."""

_VALUE = re.compile(r"'([^']*)'|(?<![\w./-])([\w./-]*\d[\w./-]*)")
_SHORTEST = 4
"""Characters from which a value in words can be told from a count or a number of a list."""

_COLUMNS = 2
"""Columns from which a row that is shown can be told from others."""


class TruthRefused(ValueError):
    """A truth that nothing can be scored against: one sentence says what is wrong with it."""


@dataclass(frozen=True)
class Decisive:
    """Rows that matter: of a table, by an SQL condition; or a row told in words, without both."""

    table: str = ""
    where: str = ""
    words: str = ""


@dataclass(frozen=True)
class Truth:
    """What was faulty. Paths are spelled as the snapshot spells them; `functions`: PATH::NAME."""

    files: tuple[str, ...]
    functions: tuple[str, ...] = ()
    rows: tuple[Decisive, ...] = ()


@dataclass(frozen=True)
class Count:
    """So many, and so many of them good."""

    total: int = 0
    good: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.total + other.total, self.good + other.good)


@dataclass(frozen=True)
class Score:
    """How a diagnosis compares with the truth.

    Attributes:
        named: distinct files of the diagnosis, in its order.
        rank: place of the first faulty file among them; None if none is there.
        rank_of_all: place by which every faulty file was named; None if one is missing.
        functions: functions that the truth names and the snapshot's files have.
        function_rank: place of the first of them among the distinct symbols named.
        rows: decisive rows that the truth names, and those that cited evidence shows.
    """

    outcome: str
    confidence: float
    named: tuple[str, ...]
    rank: int | None
    rank_of_all: int | None
    functions: int
    function_rank: int | None
    rows: Count = field(default_factory=Count)

    def as_json(self) -> Json:
        """Return the members of a case's row in `evaluate --json` that are about its diagnosis."""
        return {
            "outcome": self.outcome,
            "confidence": self.confidence,
            "rank": self.rank,
            "rank_of_all": self.rank_of_all,
            "functions": self.functions,
            "function_rank": self.function_rank,
            "rows": vars(self.rows),
            "named": list(self.named),
        }


# The truth -------------------------------------------------------------------------------------


def truth_from(value: Any, paths: Iterable[str]) -> Truth:
    """Return a truth (the content of truth.json) in the snapshot's spelling.

    A path counts as a file of the snapshot if they are equal, or if exactly one file ends with it.
    Files that the snapshot does not have (a fix may add some) are left out.

    Raises:
        TruthRefused: it names no file, or none that the snapshot has.
    """
    known = list(paths)
    member = value if isinstance(value, dict) else {}
    wanted = _texts(member.get("files"))
    if not wanted:
        raise TruthRefused('truth.json names no faulty file: it needs "files": [PATH, …]')
    files = tuple(dict.fromkeys(path for name in wanted for path in _spelled(name, known)))
    if not files:
        raise TruthRefused(f"truth.json names {wanted[0]}, and the source has no such file")
    functions = [name.partition("::") for name in _texts(member.get("functions"))]
    return Truth(
        files,
        tuple(f"{p}::{name}" for path, _, name in functions for p in _spelled(path, known) if name),
        tuple(_rows_of(member)),
    )


def _spelled(name: str, known: Sequence[str]) -> list[str]:
    name = name.strip("/").removeprefix("./")
    if name in known:
        return [name]
    ending = [path for path in known if path.endswith(f"/{name}") or name.endswith(f"/{path}")]
    return ending if len(ending) == 1 else []


def _rows_of(member: Json) -> Iterator[Decisive]:
    """Yield the decisive rows: `rows`, or what `database_evidence` holds in older folders."""
    older = member.get("database_evidence")
    older = older.get("rows") if isinstance(older, dict) else older
    listed = member.get("rows", older)
    for item in listed if isinstance(listed, list) else []:
        if isinstance(item, str):
            yield Decisive(words=item)
        elif isinstance(item, dict) and isinstance(item.get("table"), str):
            yield Decisive(item["table"], str(item.get("where") or "1"))


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


# A diagnosis against it ------------------------------------------------------------------------


def score(diagnosis: Mapping[str, Any], truth: Truth) -> Score:
    """Return how a diagnosis compares with the truth; its rows are judged by `rows_cited`."""
    named = tuple(dict.fromkeys(item["path"] for item in diagnosis["locations"]))
    ranks = [named.index(path) + 1 if path in named else None for path in truth.files]
    found = [rank for rank in ranks if rank is not None]
    return Score(
        diagnosis["outcome"],
        float(diagnosis["confidence"]),
        named,
        min(found, default=None),
        max(found) if len(found) == len(ranks) else None,
        len(truth.functions),
        _function_rank(diagnosis["locations"], truth.functions),
    )


def _function_rank(locations: Sequence[Mapping[str, Any]], wanted: Sequence[str]) -> int | None:
    symbols = dict.fromkeys(f"{x['path']}::{x['function']}" for x in locations if x["function"])
    for rank, symbol in enumerate(symbols, 1):
        if any(_same_function(symbol, target) for target in wanted):
            return rank
    return None


def _same_function(one: str, two: str) -> bool:
    """Tell whether two symbols are one: the same file and name; the class only if both name it."""
    (path, _, name), (other_path, _, other) = one.partition("::"), two.partition("::")
    own, others = name.split("."), other.split(".")
    shared = min(len(own), len(others), 2)
    return path == other_path and own[-shared:] == others[-shared:]


def rows_cited(
    truth: Truth, shown: Sequence[Mapping[str, Any]], rows_of: Callable[[Decisive], list[Json]]
) -> Count:
    """Return how many decisive rows there are, and how many of them cited evidence shows.

    Args:
        truth: what was faulty.
        shown: the rows of cited evidence, by column.
        rows_of: gives the rows of the snapshot that a place with a condition means.
    """
    cited = [_is_shown(place, shown, rows_of) for place in truth.rows]
    return Count(len(cited), sum(cited))


def _is_shown(
    place: Decisive, shown: Sequence[Mapping[str, Any]], rows_of: Callable[[Decisive], list[Json]]
) -> bool:
    """Tell whether a row that is shown is one of those meant, as far as its columns go."""
    if place.words:
        values = values_of(place.words)
        return any(str(value) in values for row in shown for value in row.values())
    meant = rows_of(place)
    wide = [row for row in shown if len(row) >= _COLUMNS]
    return any(row.items() <= full.items() for row in wide for full in meant)


def values_of(words: str) -> frozenset[str]:
    """Return the values in a row told in words: quoted texts, codes, dates and long numbers."""
    found = {quoted or bare for quoted, bare in _VALUE.findall(words)}
    return frozenset(value for value in found if len(value) >= _SHORTEST)


def quoted_equal(quotes: Iterable[tuple[str, int, str]], lines: Lines) -> Count:
    """Return how many (file, 1-based line, text) there are, and how many equal the snapshot's."""
    total = good = 0
    for path, number, text in quotes:
        known = lines(path)
        total += 1
        good += known is not None and 0 < number <= len(known) and known[number - 1] == text
    return Count(total, good)


# All of them together --------------------------------------------------------------------------


def summary(rows: Sequence[Mapping[str, Any]]) -> Json:
    """Return the figures over all rows of `evaluate --json`; a case that failed counts as missed.

    Sums are over what was measured, None if nothing was.
    """
    scored = [row for row in rows if row["state"] == "scored"]
    with_functions = [row for row in scored if row["functions"]]
    with_rows = [row for row in scored if row["rows"]["total"]]
    return {
        "cases": len(rows),
        "scored": len(scored),
        "any_file": ranked([row["rank"] for row in scored], len(rows)),
        "all_files": ranked([row["rank_of_all"] for row in scored], len(rows)),
        "functions": {
            "cases": len(with_functions),
            "first": sum(row["function_rank"] == 1 for row in with_functions),
            "among_five": sum(
                (row["function_rank"] or FIRST_SYMBOLS + 1) <= FIRST_SYMBOLS
                for row in with_functions
            ),
        },
        "rows": {
            "cases": len(with_rows),
            "cited": sum(row["rows"]["good"] > 0 for row in with_rows),
        },
        "citations": _added(scored, "citations"),
        "quotes": _added(scored, "quotes"),
        "repeated": _added(scored, "repeated"),
        "calibration": calibration([(row["confidence"], row["rank"] == 1) for row in scored]),
        "used": {name: _used(rows, name, how) for name, how in _USED.items()},
    }


_USED: Mapping[str, Callable[[list[int]], int]] = {
    "requests": sum,
    "actions": sum,
    "estimated_tokens": sum,
    "cost_nano_usd": sum,
    "cpu_ms": sum,
    "most_cpu_ms": max,
    "peak_memory_bytes": max,
}


def _used(
    rows: Sequence[Mapping[str, Any]], name: str, how: Callable[[list[int]], int]
) -> int | None:
    found = [row["used"][name.removeprefix("most_")] for row in rows if row["used"]]
    known = [value for value in found if value is not None]
    return int(how(known)) if known else None


def _added(rows: Sequence[Mapping[str, Any]], name: str) -> Json:
    return vars(sum((Count(**row[name]) for row in rows), Count()))


def ranked(ranks: Sequence[int | None], cases: int) -> Json:
    """Return Acc@k as counts, and the mean reciprocal rank over `cases`."""
    found = [rank for rank in ranks if rank is not None]
    counts = {f"acc_{bound}": sum(rank <= bound for rank in found) for bound in BOUNDS}
    mean = sum(1 / rank for rank in found) / cases if cases else 0.0
    return {**counts, "mrr": round(mean, 4)}


def calibration(stated: Sequence[tuple[float, bool]]) -> Json:
    """Return the Brier score of (probability, whether it came true), beside that of always stating
    the share that came true, and the reliability table.
    """
    if not stated:
        return {"cases": 0, "share_right": None, "mean_confidence": None, "brier": None,
                "brier_of_base_rate": None, "table": []}  # fmt: skip
    share = _mean([float(right) for _, right in stated])
    return {
        "cases": len(stated),
        "share_right": round(share, 4),
        "mean_confidence": round(_mean([p for p, _ in stated]), 4),
        "brier": round(_mean([(p - right) ** 2 for p, right in stated]), 4),
        "brier_of_base_rate": round(share * (1 - share), 4),
        "table": list(_reliability(stated)),
    }


def _reliability(stated: Sequence[tuple[float, bool]]) -> Iterator[Json]:
    for low, high in BINS:
        own = [
            (p, right) for p, right in stated
            if low <= p < high or (p == high == BINS[-1][1])
        ]  # fmt: skip
        if own:
            yield {
                "from": low,
                "to": high,
                "cases": len(own),
                "mean_confidence": round(_mean([p for p, _ in own]), 4),
                "share_right": round(_mean([float(right) for _, right in own]), 4),
            }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


# One evaluation against an earlier one ---------------------------------------------------------

_MEASURES = ("file", "function", "rows")
_LATE = 10**9
"""Rank of what was not named at all."""


def compared(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> Json:
    """Return what got better and worse for the cases that both evaluations have.

    A rank that is smaller is better; a case that could not be analysed has none.
    """
    old, new = ({row["case"]: row for row in rows} for rows in (before, now))
    both = [name for name in new if name in old]
    changes = [change for name in both for change in _changes(old[name], new[name])]
    better = [change for change, good in changes if good]
    worse = [change for change, good in changes if not good]
    return {
        "cases": len(both),
        "better": better,
        "worse": worse,
        "net": {what: _net(what, better, worse) for what in _MEASURES},
        "only_before": [name for name in old if name not in new],
        "only_now": [name for name in new if name not in old],
    }


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[Json, bool]]:
    for what in _MEASURES:
        before, after = _standing(old, what), _standing(new, what)
        if _badness(what, before) != _badness(what, after):
            change = {"case": new["case"], "what": what, "before": before, "after": after}
            yield change, _badness(what, after) < _badness(what, before)


def _badness(what: str, standing: int | None) -> int:
    return -(standing or 0) if what == "rows" else standing or _LATE


def _standing(row: Mapping[str, Any], what: str) -> int | None:
    if row["state"] != "scored":
        return None
    if what == "rows":
        return int(row["rows"]["good"])
    rank = row["rank" if what == "file" else "function_rank"]
    return None if rank is None else int(rank)


def _net(what: str, better: Sequence[Json], worse: Sequence[Json]) -> int:
    return len([c for c in better if c["what"] == what]) - len(
        [c for c in worse if c["what"] == what]
    )
