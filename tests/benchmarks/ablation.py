"""What each heuristic of the offline analyst brings: every one is switched off in turn.

    .venv/bin/python -P tests/benchmarks/ablation.py off CASES [--truth DIR] [-o FILE]
    .venv/bin/python -P tests/benchmarks/ablation.py weights CASES [--truth DIR] --keep LEDGERS

CASES holds evaluation folders (docs/guides/evaluation.md). `off` takes each case in once and then
analyses it anew under each variant: a variant is a row of VARIANTS, values put in place of others
in this process, so the product needs no switches. `weights` keeps the looks that were taken and
only adds the points of the last request up again: how often each signal decides, what weights
chosen anew would give, and what weights chosen *without* a case give on it (leave one out).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import prompts
from ledger.book import Book
from ledger.canonical import from_bytes
from phases.intake import IntakeRequest
from phases.investigation.snapshot import Snapshot
from phases.opening import open_case
from phases.providers.offline import (
    clues,
    data,
    looks,
    points,
    ranking,
    scoring,
    signals,
    structure,
    tracing,
    words,
)
from phases.providers.offline.assess import Analysis
from phases.providers.offline.case import Case
from phases.providers.offline.signals import Signal
from projections.aliases import resolve
from projections.folding import fold
from projections.requests import restored_view
from projections.scoring import Score, Truth, ranked, score, truth_from
from tools.evaluating import Evaluation, Folder, case_folders
from tools.exits import NeedsAttention
from tools.running import Wanted, run_case

Patch = tuple[Any, str, Any]
Json = dict[str, Any]

_TABLE = points.POINTS
_NONE = 1e-9
"""Points that never decide; 0 would divide."""


def _never(*_: Any) -> Iterator[Any]:
    return iter(())


def _points(**changed: Any) -> tuple[Patch, ...]:
    return ((points, "POINTS", replace(_TABLE, **changed)),)


def _search(*names: str) -> tuple[Patch, ...]:
    return _points(search={**_TABLE.search, **dict.fromkeys(names, 0.0)})


def _told(**values: Any) -> tuple[Patch, ...]:
    return tuple((clues.Clues, name, value) for name, value in values.items())


def _planner(*stages: str) -> tuple[Patch, ...]:
    return tuple((looks.Planner, stage, _never) for stage in stages)


@dataclass(frozen=True)
class Variant:
    """One heuristic that is switched off."""

    name: str
    patches: tuple[Patch, ...]

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        before = [(where, name, getattr(where, name)) for where, name, _ in self.patches]
        try:
            for where, name, value in self.patches:
                setattr(where, name, value)
            yield
        finally:
            for where, name, value in before:
                setattr(where, name, value)


def _both(name: str, value: Any, *modules: ModuleType) -> tuple[Patch, ...]:
    return tuple((module, name, value) for module in modules)


VARIANTS = (
    Variant("search: the whole report", _search("report")),
    Variant("search: the title", _search("title")),
    Variant("search: prose without code", _search("prose")),
    Variant("search: names and errors", _search("names")),
    Variant("search: words that differ between outputs", _search("difference")),
    Variant("search: words that odd rows suggest", _search("data")),
    Variant("stack frames", _points(frame=0.0, own_fault=0.0)),
    Variant("slips the language itself reports", _points(own_fault=_TABLE.frame)),
    Variant("definitions of names", _points(defines=0.0)),
    Variant("less for plain words as names", _points(plain_word=1.0)),
    Variant("the text of an error", _points(message=0.0)),
    Variant("rare uses of a name", _points(uses=0.0)),
    Variant("modules that are named", _points(module=0.0, module_in_log=0.0)),
    Variant("words in paths", _points(path=0.0)),
    Variant("names in paths, spelled out", _points(spelled=dict.fromkeys(_TABLE.spelled, 0.0))),
    Variant("files that an argument chooses", _points(chosen=0.0)),
    Variant("less for what is said to work", _points(works=1.0)),
    Variant("what is packaged", _points(packaging=0.0)),
    Variant("lines that decide by odd rows", _points(data=_NONE)),
    Variant("reached from what is named", _points(reached=0.0)),
    Variant("what named functions call", _points(callee=0.0)),
    Variant("caught errors", _points(caught=0.0)),
    Variant("best function of what was read", _points(text=0.0)),
    Variant("functions: in a frame", _points(in_frame=0.0)),
    Variant("functions: that are named", _points(named=0.0, named_like=0.0)),
    Variant("roles of files", ((ranking, "_ROLES", {}), (ranking, "_UNLIKELY", 1.0))),
    Variant("the title counts more", ((clues, "_FROM_TITLE", 1.0),)),
    Variant("names in code count more", ((clues, "_FROM_TICKS", 1.0),)),
    Variant("sentences on what works count less", ((clues, "_FROM_CONTRAST", 1.0),)),
    Variant("words that only one output has",
            ((clues, "_FROM_DIFFERENCE", clues._FROM_CODE),
             (clues, "_FROM_COMMON", clues._FROM_CODE))),
    Variant("frames of other packages left out",
            ((clues, "without_frames", lambda text, unwanted: text),)),
    Variant("a definition's name counts more", ((scoring, "NAME", 0),)),
    Variant("forms of one word", _both("stem", lambda word: word, words, clues)),
    Variant("words of identifiers", _both("split", lambda name: (name.lower(),), words, clues)),
    Variant("looks: databases", _planner("_data", "_trace_data")),
    Variant("looks: from odd rows to code", _planner("_trace_data")),
    Variant("looks: lines of frames, texts of errors", _planner("_follow")),
    Variant("looks: symbols", _planner("_named", "_inwards")),
    Variant("looks: reading candidates", _planner("_read")),
    Variant("odd values break decisions", ((tracing.deciding, "BREAKS", {}),)),
    Variant("odd rows tied to the report by questions",
            ((data, "_asked", lambda *_: {}), *_planner("_tie"))),
    Variant("what the report tells is no odd value", ((data, "_is_symptom", lambda *_: False),)),
    Variant("sentences that the program printed", _told(printed=[])),
    Variant("names of the reporter's own example left out", _told(reporters_own=frozenset())),
    Variant("what a package lacks", _told(lacks_files=False)),
    Variant("logged errors about other things set aside",
            ((clues.Clues, "_is_elsewhere", lambda *_: False),)),
    Variant("less for errors that only logs show", _points(only_logged=1.0)),
    Variant("modules that logged what the report names", _points(logged=0.0, logged_reach=0.0)),
    Variant("looks: what logging functions call", _planner("_acting")),
    Variant("looks: small programs read whole", ((looks, "READ_OF_SMALL", looks.READ),)),
    Variant("files without functions compared whole",
            ((structure.Structure, "parts", structure.Structure.leaves),)),
    Variant("hidden folders", ((ranking, "_OF_TOOLS", 1.0),)),
    Variant("the package's own name in paths", ((signals, "_COMMON", 2.0),)),
    Variant("functions: called from a named one", _points(called=0.0)),
    Variant("functions: where the language complains", _points(own_fault_in=_TABLE.in_frame)),
)  # fmt: skip
"""What is switched off, by name."""


# Off -------------------------------------------------------------------------------------------


def taken_in(folder: Folder, target: Path) -> None:
    """Take a case in, once for all variants."""
    request = IntakeRequest(
        report=folder.report, source=str(folder.source) if folder.source else None,
        logs=folder.logs, databases=folder.databases,
    )  # fmt: skip
    open_case(target, request, program="ablation")


def analysed(fresh: Path, truth: Path, work: Path) -> Score | None:
    """Analyse a copy of a case as the analyst is now; None if it gives no diagnosis."""
    path = work / "x.case"
    for end in ("", ".head"):
        shutil.copyfile(f"{fresh}{end}", f"{path}{end}")
    with contextlib.suppress(NeedsAttention):
        run_case(path, Wanted(), quiet=True)
    with Book.open(path) as book, Snapshot.of(book) as snapshot:
        diagnosis = fold(book.events()).diagnosis
        known = truth_from(from_bytes(truth.read_bytes()), snapshot.files)
    return score(diagnosis, known) if diagnosis else None


def switched_off(
    asked: Evaluation, names: Sequence[str], every: int = 1
) -> dict[str, dict[str, Json]]:
    """Return rank, function rank and confidence by variant and case; variant "" is the analyst."""
    folders = case_folders(asked)[0][::every]
    found: dict[str, dict[str, Json]] = defaultdict(dict)
    wanted = [v for v in (Variant("", ()), *VARIANTS) if not names or v.name in ("", *names)]
    with tempfile.TemporaryDirectory() as work:
        for folder in folders:
            fresh = Path(work) / f"{folder.name}.case"
            taken_in(folder, fresh)
            for variant in wanted:
                with variant.applied():
                    one = analysed(fresh, folder.truth, Path(work))
                found[variant.name][folder.name] = {
                    "rank": one and one.rank, "function": one and one.function_rank,
                    "confidence": one.confidence if one else 0.0,
                }  # fmt: skip
            sys.stderr.write(f"  {folder.name}\n")
    return found


def off_table(found: Mapping[str, Mapping[str, Json]]) -> list[str]:
    """Return the Markdown table: what the analyst loses without each heuristic, and where."""
    whole = found[""]
    lines = ["| without | Acc@1 | MRR | function among five | worse on | better on |",
             "| --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    order = sorted(found, key=lambda name: (name != "", _mrr(found[name])))
    for name in order:
        own = found[name]
        worse = [f"{case} {_change(whole[case], own[case])}" for case in own
                 if _late(own[case]) > _late(whole[case])]  # fmt: skip
        better = [f"{case} {_change(whole[case], own[case])}" for case in own
                  if _late(own[case]) < _late(whole[case])]  # fmt: skip
        first = sum(row["rank"] == 1 for row in own.values())
        five = sum((row["function"] or 99) <= 5 for row in own.values())
        cells = [name or "(nothing: the analyst)", f"{first}", f"{_mrr(own):.3f}", f"{five}",
                 _some(worse), _some(better)]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _mrr(rows: Mapping[str, Json]) -> float:
    return float(ranked([row["rank"] for row in rows.values()], len(rows))["mrr"])


def _late(row: Json) -> int:
    return row["rank"] or 99


def _change(before: Json, after: Json) -> str:
    return f"{before['rank'] or '–'}→{after['rank'] or '–'}"


def _some(names: list[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


# Weights ---------------------------------------------------------------------------------------

FACTORS = (0.0, 0.5, 0.7, 1.0, 1.4, 2.0)
"""By what a kind of signal may be multiplied when weights are chosen anew."""


@dataclass(frozen=True)
class Added:
    """The signals of a case's last request: by file its weight and (kind, points) pairs."""

    name: str
    files: Mapping[str, tuple[float, tuple[tuple[str, float], ...]]]
    faulty: frozenset[str]

    def rank(self, factors: Mapping[str, float]) -> int | None:
        """Return the rank of the first faulty file with kinds of signals scaled."""
        scores = {
            path: weight * _sum(pairs, factors) for path, (weight, pairs) in self.files.items()
        }
        found = [(-scores[path], path) for path in self.faulty if path in scores]
        if not found:
            return None
        best = min(found)
        return 1 + sum((-value, path) < best for path, value in scores.items())


def _sum(pairs: Sequence[tuple[str, float]], factors: Mapping[str, float]) -> float:
    """Add points up as the analyst does."""
    scaled = [
        Signal("", p * factors.get(kind, 1.0), kind.partition(" ")[0], "", ()) for kind, p in pairs
    ]
    return ranking._sum(scaled)


def _kind(signal: Signal) -> str:
    spelled = signal.kind == "path" and signal.label.endswith("as the report")
    return "path spelled" if spelled else signal.kind


def added(ledger: Path, truth: Path) -> Added | None:
    """Return the signals that the diagnosis of a finished ledger rests on."""
    with Book.open(ledger) as book, Snapshot.of(book) as snapshot:
        state = fold(book.events())
        requests = [r for r in state.requests.values() if r.phase == "diagnosis"]
        if not requests:
            return None
        document = from_bytes(book.payload(requests[-1].document.digest))
        known: Truth = truth_from(from_bytes(truth.read_bytes()), snapshot.files)
    view = restored_view(document)
    analysis = Analysis(Case(resolve(view if isinstance(view.get("shared"), dict)
                                     else {**view, "shared": {}})))  # fmt: skip
    files = {
        place.path: (
            analysis.ranker._weight(place.path),
            tuple((_kind(signal), signal.points) for signal in place.signals),
        )
        for place in analysis.places
    }
    return Added(ledger.stem, files, frozenset(known.files))


def kinds_of(cases: Sequence[Added]) -> list[str]:
    return sorted({kind for case in cases for _, pairs in case.files.values() for kind, _ in pairs})


def mean(cases: Sequence[Added], factors: Mapping[str, float]) -> float:
    """Return the mean reciprocal rank; equal ones are told apart by how many firsts are right."""
    found = [case.rank(factors) for case in cases]
    firsts = sum(rank == 1 for rank in found)
    return sum(1 / rank for rank in found if rank) / len(cases) + 1e-6 * firsts


def chosen(cases: Sequence[Added], kinds: Sequence[str], rounds: int = 2) -> dict[str, float]:
    """Return factors chosen on some cases: one kind after the other, the best of FACTORS; 1 if
    nothing is better.
    """
    factors = dict.fromkeys(kinds, 1.0)
    best = mean(cases, factors)
    for _ in range(rounds):
        for kind in kinds:
            for factor in FACTORS:
                tried = {**factors, kind: factor}
                if (value := mean(cases, tried)) > best + 1e-9:
                    best, factors = value, tried
    return factors


def left_out(cases: Sequence[Added], kinds: Sequence[str]) -> list[int | None]:
    """Return each case's rank with weights that were chosen without it."""
    return [case.rank(chosen([c for c in cases if c is not case], kinds)) for case in cases]


def folds(cases: Sequence[Added], kinds: Sequence[str], parts: int) -> list[int | None]:
    """Return each case's rank with weights chosen without its package: whole packages are left
    out, `parts` times.
    """
    packages = sorted({case.name.rpartition("-")[0] for case in cases})
    found: dict[str, int | None] = {}
    for part in range(min(parts, len(packages))):
        out = set(packages[part::parts])
        own = [case for case in cases if case.name.rpartition("-")[0] in out]
        factors = chosen([case for case in cases if case not in own], kinds)
        found |= {case.name: case.rank(factors) for case in own}
    return [found[case.name] for case in cases]


def deciding(cases: Sequence[Added], kinds: Sequence[str]) -> list[str]:
    """Return, by kind of signal: in how many cases it speaks for a faulty file, in how many it
    brings it to the first place, and in how many it keeps it from there.
    """
    lines = ["| signal | speaks for the faulty file | first because of it | first without it |",
             "| --- | --- | --- | --- |"]  # fmt: skip
    ones: dict[str, float] = {}
    for kind in kinds:
        count: Counter[str] = Counter()
        for case in cases:
            pairs = [p for path in case.faulty & set(case.files) for p in case.files[path][1]]
            count["speaks"] += any(name == kind and value > 0 for name, value in pairs)
            with_it, without = case.rank(ones), case.rank({kind: 0.0})
            count["for"] += with_it == 1 and without != 1
            count["against"] += with_it != 1 and without == 1
        lines.append(f"| {kind} | {count['speaks']} | {count['for']} | {count['against']} |")
    return lines


_HEAD = ("| weights | Acc@1 | Acc@3 | MRR |", "| --- | --- | --- | --- |")


def weights(asked: Evaluation, also: Evaluation | None) -> list[str]:
    """Return the report on weights over kept ledgers."""
    cases = _finished(asked)
    kinds = kinds_of(cases)
    lines = [*deciding(cases, kinds), "", *_HEAD]
    many = len(cases) > 60
    anew = chosen(cases, kinds)
    lines += [
        _figures("as they are", [case.rank({}) for case in cases]),
        _figures("all equal in kind (each kind's largest is 1)", _level(cases)),
        _figures("chosen anew on these cases", [case.rank(anew) for case in cases]),
        _figures("chosen without the case's package" if many else "chosen without the case",
                 folds(cases, kinds, 15) if many else left_out(cases, kinds)),
    ]  # fmt: skip
    lines += ["", f"Chosen anew: {_told(anew)}."]
    if also is not None:
        others = _finished(also)
        theirs = chosen(others, kinds_of(others))
        lines += [
            "", f"Chosen on the {len(others)} other cases: {_told(theirs)}.", "", *_HEAD,
            _figures("chosen on the other cases", [case.rank(theirs) for case in cases]),
            _figures("chosen here, on the other cases", [case.rank(anew) for case in others]),
            _figures("as they are, on the other cases", [case.rank({}) for case in others]),
        ]  # fmt: skip
    return lines


def _level(cases: Sequence[Added]) -> list[int | None]:
    """Return ranks when the largest signal of every kind counts the same."""
    found = []
    for case in cases:
        most: dict[str, float] = defaultdict(float)
        for _, pairs in case.files.values():
            for kind, value in pairs:
                most[kind] = max(most[kind], value)
        found.append(case.rank({kind: 1 / value for kind, value in most.items() if value > 0}))
    return found


def _told(factors: Mapping[str, float]) -> str:
    changed = [f"{kind} × {factor:g}" for kind, factor in factors.items() if factor != 1.0]
    return ", ".join(changed) or "as they are"


def _figures(name: str, found: Sequence[int | None]) -> str:
    got = ranked(found, len(found))
    return f"| {name} | {got['acc_1']} of {len(found)} | {got['acc_3']} | {got['mrr']:.3f} |"


def _finished(asked: Evaluation) -> list[Added]:
    assert asked.keep is not None
    pairs = [(asked.keep / f"{f.name}.case", f.truth) for f in case_folders(asked)[0]]
    found = [added(ledger, truth) for ledger, truth in pairs if ledger.exists()]
    return [case for case in found if case is not None]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("off", "weights"):
        own = commands.add_parser(name)
        own.add_argument("cases", type=Path)
        own.add_argument("--truth", type=Path)
        own.add_argument("--only", nargs="*", default=[])
        if name == "off":
            own.add_argument("--variant", nargs="*", default=[])
            own.add_argument("--every", type=int, default=1, help="Only every n-th case.")
            own.add_argument("-o", "--output", type=Path)
            continue
        own.add_argument("--keep", type=Path, required=True, help="ledgers of `evaluate --keep`")
        own.add_argument("--also", nargs="*", type=Path, help="CASES LEDGERS [TRUTH] to compare")
    given = parser.parse_args()
    asked = Evaluation(given.cases, truths=given.truth, only=tuple(given.only))
    if given.command == "off":
        found = switched_off(asked, given.variant, given.every)
        if given.output:
            given.output.write_text(json.dumps(found, indent=1) + "\n")
        print("\n".join(off_table(found)))
        return 0
    also = None
    if given.also:
        cases, keep, *rest = given.also
        also = Evaluation(cases, truths=rest[0] if rest else None, keep=keep)
    print("\n".join(weights(replace(asked, keep=given.keep), also)))
    return 0


for _name in prompts.protocols():
    prompts.card(_name)

if __name__ == "__main__":
    sys.exit(main())
