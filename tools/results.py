"""Results of evaluations: read, written, judged as a whole, printed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ledger.canonical import from_bytes
from ledger.errors import CanonicalError
from ledger.files import new_file
from projections.scoring import BOUNDS, FIRST_SYMBOLS
from projections.wording import counted
from tools.exits import UserError
from tools.output import money, note, say, spoken, table
from tools.rendering import confidence

Json = dict[str, Any]

_COLUMNS = ("case", "file", "function", "confidence", "outcome", "requests", "actions", "tokens",
            "CPU", "memory")  # fmt: skip


def earlier(path: Path) -> list[Json]:
    """Return the rows of an earlier result.

    Raises:
        UserError: it cannot be read, or is not what `evaluate --json` prints.
    """
    try:
        rows = from_bytes(path.read_bytes())["cases"]
        if not all(map(_is_row, rows)):
            raise KeyError("cases")
    except OSError as error:
        raise UserError(f"--against {path}: cannot be read ({error.strerror})") from None
    except (CanonicalError, KeyError, TypeError, ValueError):
        raise UserError(
            f"--against {path}: is not a result of `evaluate`; make one with -o FILE"
        ) from None
    return list(rows)


def _is_row(row: Json) -> bool:
    """Tell whether a row can be compared; one that was not scored stands for nothing found."""
    if row["state"] != "scored":
        return isinstance(row["case"], str)
    ranks = row["rank"], row["function_rank"]
    known = type(row["rows"]["good"]) is int and isinstance(row["case"], str)
    return known and all(rank is None or type(rank) is int for rank in ranks)


def check_target(path: Path) -> None:
    """Refuse, before anything is run, a result file that could not be written afterwards.

    Raises:
        UserError: its folder is missing or closed, or it is a file of another kind.
    """
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"-o {path}: the folder {path.parent} is missing or cannot be written")
    if path.exists():
        try:
            earlier(path)
        except UserError:
            raise UserError(
                f"-o {path}: stands there and is no earlier result; choose another name"
            ) from None


def write(path: Path, result: Json) -> None:
    """Write a result as JSON; the file appears whole or not at all, in place of an earlier one.

    Raises:
        StorageError: it cannot be written there.
    """
    import orjson

    with new_file(path, overwrite=True) as file:
        file.write(orjson.dumps(result, option=orjson.OPT_INDENT_2) + b"\n")
    note(f"  result: {path}")


def is_good(result: Json) -> bool:
    """Tell whether every case was scored, everything cited is so, and nothing got worse."""
    totals = result["summary"]
    exact = all(
        totals[name]["good"] == totals[name]["total"]
        for name in ("citations", "quotes", "repeated")
    )
    worse = result["compared"] is not None and bool(result["compared"]["worse"])
    return totals["scored"] == totals["cases"] and exact and not worse


# Printing --------------------------------------------------------------------------------------


def show(result: Mapping[str, Any]) -> None:
    """Print a result for people: a row a case, what could not be scored, figures, comparison."""
    table(_COLUMNS, [_cells(row) for row in result["cases"]], one_line_a_row=True)
    for row in result["cases"]:
        if row["state"] != "scored":
            say(f"{row['case']}: not scored: {row['reason']}")
    for name in result["without_truth"]:
        say(f"{name}: left out, it has no truth.json")
    say()
    table(["measure", "figure"], list(_figures(result["summary"])))
    say()
    _show_calibration(result["summary"]["calibration"])
    if result["compared"] is not None:
        say()
        _show_comparison(result["compared"])


def _cells(row: Mapping[str, Any]) -> tuple[object, ...]:
    if row["state"] != "scored":
        return (row["case"], "not scored", *[""] * (len(_COLUMNS) - 2))
    used = row["used"]
    function = row["function_rank"] or "missed" if row["functions"] else ""
    return (
        row["case"], row["rank"] or "missed", function, confidence(row["confidence"]),
        spoken(row["outcome"]), used["requests"], used["actions"],
        f"{used['estimated_tokens']:,}", _seconds(used["cpu_ms"]), _megabytes(used),
    )  # fmt: skip


def _figures(totals: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    cases = totals["cases"]
    yield "cases scored", f"{totals['scored']} of {cases}"
    for name, what in (("any_file", "a faulty file"), ("all_files", "every faulty file")):
        found = totals[name]
        for bound in BOUNDS:
            yield f"{what} among the first {bound}", _share(found[f"acc_{bound}"], cases)
        yield f"{what}, mean reciprocal rank", f"{found['mrr']:.3f}"
    functions, rows = totals["functions"], totals["rows"]
    yield "a faulty function first", _share(functions["first"], functions["cases"])
    among = f"a faulty function among the first {FIRST_SYMBOLS} symbols"
    yield among, _share(functions["among_five"], functions["cases"])
    yield "a decisive row cited", _share(rows["cited"], rows["cases"])
    for name, what in (
        ("citations", "citations that resolve"),
        ("quotes", "quoted lines that equal the snapshot's"),
        ("repeated", "cited looks at databases that give the same again"),
    ):
        yield what, _share(totals[name]["good"], totals[name]["total"])
    yield from _use(totals["used"])


def _use(used: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in ("requests", "actions", "estimated_tokens"):
        yield spoken(name), "unmeasured" if used[name] is None else f"{used[name]:,}"
    yield "cost", money(used["cost_nano_usd"])
    yield "CPU, all cases", _seconds(used["cpu_ms"])
    yield "CPU, the slowest case", _seconds(used["most_cpu_ms"])
    yield "memory, the largest case", _megabytes(used)


def _share(good: int, total: int) -> str:
    return f"{good:,} of {total:,} ({100 * good / total:.1f} %)" if total else "none known"


def _seconds(milliseconds: int | None) -> str:
    return "unmeasured" if milliseconds is None else f"{milliseconds / 1000:.1f} s"


def _megabytes(used: Mapping[str, Any]) -> str:
    size = used["peak_memory_bytes"]
    return "unmeasured" if size is None else f"{size / 1e6:.0f} MB"


def _show_calibration(found: Mapping[str, Any]) -> None:
    if not found["cases"]:
        return
    table(
        ["confidence", "cases", "stated on average", "first file faulty"],
        [
            (f"{row['from']:.1f} to {row['to']:.1f}", row["cases"],
             f"{100 * row['mean_confidence']:.0f} %", f"{100 * row['share_right']:.0f} %")
            for row in found["table"]
        ],
    )  # fmt: skip
    better = found["brier"] < found["brier_of_base_rate"]
    say(
        f"Brier score {found['brier']:.3f}; always stating the share that was right "
        f"({100 * found['share_right']:.0f} %) would give {found['brier_of_base_rate']:.3f}: "
        f"the stated confidence is {'better' if better else 'no better'}."
    )


def _show_comparison(found: Mapping[str, Any]) -> None:
    for name in ("better", "worse"):
        for change in found[name]:
            before, after = (_standing(change, moment) for moment in ("before", "after"))
            say(f"{name}: {change['case']}, {change['what']}: {before} → {after}")
    net = ", ".join(f"{what} {number:+d}" for what, number in found["net"].items())
    say(f"against {found['with']}, {counted(found['cases'], 'case')} in both: {net}")
    for name, what in (("only_before", "only there"), ("only_now", "only here")):
        if found[name]:
            say(f"{what}: {', '.join(found[name])}")


def _standing(change: Mapping[str, Any], moment: str) -> str:
    value = change[moment]
    if change["what"] == "rows":
        return f"{value or 0} cited"
    return "missed" if value is None else f"rank {value}"
