"""The diagnosis: places, mechanism, rows and verdicts, each with the evidence it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from phases.providers.offline import wording
from phases.providers.offline.assess import Analysis
from phases.providers.offline.case import Case, Json, as_dict, as_str
from phases.providers.offline.data import Odd, row_key
from phases.providers.offline.limits import distinct, line, text
from phases.providers.offline.outline import Definition
from phases.providers.offline.ranking import Place
from phases.providers.offline.telling import telling_lines

METHOD = "Deterministic offline analyst; no language model was involved."

_ORDER = ((0, 0), (0, 1), (1, 0), (0, 2), (2, 0), (0, 3), (3, 0), (1, 1), (4, 0), (0, 4))
"""Which (file, function) stands where among the locations: breadth first, the best file deeper."""


class Spot(NamedTuple):
    """A place that is named: a file and, where it is known, a function of it."""

    place: Place
    function: Definition | None
    first: int
    last: int


def answer(case: Case) -> Json:
    """Return the diagnosis."""
    analysis = Analysis(case)
    spots = locate(analysis)
    if not spots or not analysis.corpus.paths:
        return _insufficient(analysis)
    confidence = _confidence(analysis, spots)
    symptom = as_str(as_dict(case.interpretation.get("symptom")).get("statement"))
    mechanism = _mechanism(analysis, spots[0])
    found = confidence >= 0.75 and any(step["evidence"] for step in mechanism)
    return {
        "outcome": "cause_found" if found else "cause_likely",
        "symptom": text(symptom or analysis.clues.title, 2000),
        "cause": text(_cause(analysis, spots[0])),
        "mechanism": mechanism,
        "locations": [_location(analysis, spot, at) for at, spot in enumerate(spots)],
        "data": [_data(analysis, odd) for odd in analysis.decisive] + _rows(analysis),
        "hypotheses": _verdicts(analysis),
        "confidence": confidence,
        "confidence_reason": text(_reason(analysis)),
        "unknowns": _unknowns(analysis),
        "checks": _checks(analysis, spots[0]),
        "method": METHOD,
        "information_needed": [],
    }


def _insufficient(analysis: Analysis) -> Json:
    symptom = as_str(as_dict(analysis.case.interpretation.get("symptom")).get("statement"))
    return {
        "outcome": "insufficient_evidence",
        "symptom": text(symptom or analysis.clues.title, 2000),
        "cause": "The evidence leads to no cause: nothing that was looked at fits the report.",
        "mechanism": [],
        "locations": [],
        "data": [_data(analysis, odd) for odd in analysis.decisive],
        "hypotheses": _verdicts(analysis),
        "confidence": 0.0,
        "confidence_reason": "No place in the source is supported by evidence.",
        "unknowns": ["Which code is responsible for what the report describes."],
        "checks": ["Add a stack trace, a log excerpt or the names of commands and functions used."],
        "method": METHOD,
        "information_needed": [],
    }


# Places ----------------------------------------------------------------------------------------


def locate(analysis: Analysis) -> list[Spot]:
    """Return the places to name, most likely first."""
    spots: list[Spot] = []
    for file, function in _ORDER:
        if file < len(analysis.places):
            place = analysis.places[file]
            if function < len(place.functions):
                found = place.functions[function][1]
                spots.append(Spot(place, found, found.first, max(found.first, found.last)))
            elif function == 0:
                at = _pointed_line(analysis, place)
                spots.append(Spot(place, None, at, at))
    return spots[:10]


def _pointed_line(analysis: Analysis, place: Place) -> int:
    """Return the line of a file that a search or a frame points at."""
    framed = [x.frame.line for x in analysis.clues.frames if x.path == place.path]
    hits = [
        at for ranking in analysis.corpus.rankings for path, at in ranking.hits
        if path == place.path
    ]  # fmt: skip
    return max(1, next(iter([*framed, *hits]), 1))


def _location(analysis: Analysis, spot: Spot, at: int) -> Json:
    shown = analysis.corpus.quoting(spot.place.path, spot.first, spot.last)
    role = (
        "faulty" if at == 0 else "contributing" if spot.place is analysis.places[0] else "affected"
    )
    return {
        "path": spot.place.path,
        "function": spot.function.qualified[:300] if spot.function else "",
        "first_line": spot.first,
        "last_line": spot.last,
        "role": role,
        "why": text("; ".join(spot.place.labels[:4]) or "it was found by search", 1000),
        "evidence": distinct([*shown[:4], *spot.place.evidence[:6]], 12),
    }


# What is said ----------------------------------------------------------------------------------


def _named(spot: Spot) -> str:
    return f"{spot.function.qualified} in {spot.place.path}" if spot.function else spot.place.path


def _cause(analysis: Analysis, spot: Spot) -> str:
    parts = [
        f"The fault is most likely in {_named(spot)} (lines {spot.first} to {spot.last}): "
        f"{'; '.join(spot.place.labels[:3])}."
    ]
    for odd in analysis.decisive[:1]:
        finding = odd.finding
        named = f", among them {', '.join(odd.codes)}" if odd.codes else ""
        parts.append(
            f"It depends on data: {finding.table}.{', '.join(finding.columns)} {finding.says} "
            f"({finding.total} rows{named}), so that {wording.meaning(finding)}."
        )
    if analysis.clues.errors:
        kind, message, _ = analysis.clues.errors[0]
        parts.append(f"The error seen is {kind}" + (f": {message}." if message else "."))
    return " ".join(parts)


def _mechanism(analysis: Analysis, spot: Spot) -> list[Json]:
    steps = [*_data_steps(analysis, spot), *_code_steps(analysis, spot)]
    for kind, message, where in analysis.clues.errors[:1]:
        steps.append(_step(f"This ends in {kind}" + (f": {message}" if message else "."), [where]))
    symptom = as_str(as_dict(analysis.case.interpretation.get("symptom")).get("statement"))
    cited = [o.id for o in analysis.case.report[:1]]
    return [*steps, _step(f"The report sees: {symptom or analysis.clues.title}", cited)][:12]


def _data_steps(analysis: Analysis, spot: Spot) -> Iterator[Json]:
    """Odd rows that matter, and the lines of the place that go by half of their key."""
    for odd in analysis.decisive[:2]:
        finding = odd.finding
        columns, meaning = ", ".join(finding.columns), wording.meaning(finding)
        said = f"In {finding.table}, {columns} {finding.says}; {meaning}."
        yield _step(said, [finding.evidence])
    for path, number, _, evidence in analysis.joined_alone(spot.place.path):
        shown = analysis.corpus.lines(path).get(number, "").strip()
        rest = ", ".join(analysis.corpus.rest_of_key(analysis.decisive[0].finding.columns))
        said = f"{path}, line {number} goes by it without the rest of the key ({rest}): {shown}"
        yield _step(said, [evidence])


def _code_steps(analysis: Analysis, spot: Spot) -> Iterator[Json]:
    """The lines of the place to look at first; if none is known, why it is named."""
    shown = telling_lines(analysis.clues, analysis.corpus, spot.place.path, spot.first, spot.last)
    for told in shown:
        where = f"{_named(spot)}, line {told.line}, is where it is likely decided"
        yield _step(f"{where}: {told.text.strip()}", [told.evidence])
    if not shown:
        why = "; ".join(spot.place.labels[:3])
        said = f"{_named(spot)} handles what the report describes: {why}."
        yield _step(said, spot.place.evidence[:6])


def _step(said: str, evidence: list[str]) -> Json:
    return {"step": text(said, 1500), "evidence": distinct(evidence, 12)}


def _data(analysis: Analysis, odd: Odd) -> Json:
    finding = odd.finding
    keys = [row_key(finding.names, row, finding.columns) for row in finding.rows[:6]]
    named = f"; it concerns {', '.join(odd.codes)} of the report" if odd.codes else ""
    return {
        "database": finding.database,
        "table": line(finding.table),
        "rows": line("; ".join(keys) or f"{finding.total} rows"),
        "meaning": text(
            f"{', '.join(finding.columns)} {finding.says}{named}: {wording.meaning(finding)}.", 1500
        ),
        "evidence": [finding.evidence],
    }


def _rows(analysis: Analysis) -> list[Json]:
    """The rows that the report names, as a query showed them."""
    return [
        {
            "database": rows.database,
            "table": line(", ".join(rows.tables) or "result of a query"),
            "rows": line(
                "; ".join(row_key(rows.names, row, rows.names[:5]) for row in rows.rows[:5])
            ),
            "meaning": f"The rows that the report is about ({', '.join(codes)}).",
            "evidence": [rows.evidence],
        }
        for rows, codes in analysis.rows[:4]
    ]


def _verdicts(analysis: Analysis) -> list[Json]:
    return [
        {
            "hypothesis": verdict.id,
            "verdict": verdict.state,
            "why": text(verdict.why, 1500),
            "evidence_for": distinct(verdict.supporting, 12),
            "evidence_against": distinct(verdict.against, 12),
        }
        for verdict in analysis.verdicts()[:8]
    ]


def _confidence(analysis: Analysis, spots: list[Spot]) -> float:
    """Return how sure the first file is: a logistic curve over lead and kinds of signals."""
    first = spots[0].place
    direct = bool({"frame", "data", "message", "packaging"} & {s.kind for s in first.signals})
    score = -0.2 + 4.5 * analysis.separation() + 0.4 * direct
    if first.path not in analysis.corpus.read:
        score -= 1.5
    return round(min(0.95, 1 / (1 + math.exp(-score))), 2)


def _reason(analysis: Analysis) -> str:
    first, lead = analysis.places[0], analysis.separation()
    second = f" before {analysis.places[1].path}" if len(analysis.places) > 1 else ""
    return (
        f"{len({s.kind for s in first.signals})} kinds of signals point to {first.path}, with a "
        f"lead of {round(100 * lead)} %{second}. The confidence follows from lead and signals by a "
        "fixed rule."
    )


def _unknowns(analysis: Analysis) -> list[str]:
    found = ["Nothing was run: whether the place named really decides the symptom was not tried."]
    if analysis.separation() < 0.15 and len(analysis.places) > 1:
        found.append(f"Whether {analysis.places[1].path} is the cause instead; the lead is small.")
    for place in analysis.places[1:4]:
        if place.path not in analysis.corpus.read:
            found.append(f"What {place.path} does; it was found but not read.")
    databases = [name for name, kind in analysis.case.kinds.items() if kind == "database"]
    if databases and not analysis.corpus.profiled:
        found.append("What the database holds; no table was profiled.")
    looked_for = [n for n in analysis.corpus.negatives if not n[2].startswith("(?i)")]
    for _, action, what in looked_for[:3]:
        found.append(f"{what or 'Something'} was not found ({action}).")
    return [line(item) for item in found][:12]


def _checks(analysis: Analysis, spot: Spot) -> list[str]:
    found = [f"Run the reported steps with a breakpoint in {_named(spot)}, line {spot.first}."]
    for odd in analysis.decisive[:2]:
        finding = odd.finding
        found.append(
            f"Look whether the production table {finding.table} has such rows: {finding.says}."
        )
    if analysis.clues.errors:
        found.append(
            f"Look whether {analysis.clues.errors[0][0]} stops once the place is corrected."
        )
    return [line(item) for item in found][:12]
