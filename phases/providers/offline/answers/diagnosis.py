"""The diagnosis: places, mechanism, rows and verdicts, each with the evidence it rests on.

The confidence is the probability that the first file is the faulty one: a logistic curve of what
leads to it (odd rows that explain the report, the innermost line of a trace, or words alone), its
lead before the second file, and how much the report tells in words: where it only shows input and
output, words lead astray. Words alone never make it high. Its numbers were set by hand in round
steps, on the open cases and on fresh defects; what they were checked on is in docs/benchmarks.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from phases.providers.offline import story, wording
from phases.providers.offline.assess import Analysis
from phases.providers.offline.case import Case, Json
from phases.providers.offline.data import Odd, row_key
from phases.providers.offline.limits import distinct, line, text
from phases.providers.offline.outline import Definition
from phases.providers.offline.ranking import Place
from phases.providers.offline.story import Story
from phases.providers.offline.tracing import Use
from phases.providers.offline.words import is_identifier

METHOD = "Deterministic offline analyst; no language model was involved."


class _Odds(NamedTuple):
    """Log odds that the first file is the faulty one.

    Attributes:
        base: if it leads by nothing and the report tells nothing.
        lead: more for the whole of its points by which it leads.
        told: more if the report tells much in words.
    """

    base: float
    lead: float
    told: float


_EXPLAINED = _Odds(2.5, 1.5, 0.0)
"""Odd rows, what was not packaged or a caught error explain the report there."""

_POINTED = _Odds(0.7, 1.5, 1.0)
"""The innermost line of a trace, or the text of an error, is there: right in three of four."""

_WORDS = _Odds(-1.5, 2.5, 2.5)
"""Only words lead there."""

_CHOSEN = 1.5
"""More if an argument of the report chooses the file among its siblings."""

_LITTLE, _MUCH = 8, 30
"""Telling words of a report that say nothing of the place yet, and that are enough."""

_BY_WORDS = 0.74
"""The most that words alone are worth: below what counts as a cause that was found."""

_MOST = 6
"""Locations that are named for a reason of their own."""

_FILES = 5
"""Files that are named if nothing but words leads to the first."""

_NEARLY = 0.35
"""Share of the best function's points from which another one of the file is worth reading."""

_UNREAD = 1.5
"""Log odds that a place loses if its lines were not read."""

_NEAR = 0.15
"""A lead below which the second file must be named as a rival."""

_SERIOUS = re.compile(r"\b(WARN(ING)?|ERROR|CRITICAL|FATAL)\b")

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
    if not spots or not analysis.corpus.paths or not analysis.carries(spots[0].place):
        return _insufficient(analysis)
    confidence = _confidence(analysis, spots)
    mechanism = _mechanism(analysis, spots[0])
    found = confidence >= 0.75 and any(step["evidence"] for step in mechanism)
    return {
        "outcome": "cause_found" if found else "cause_likely",
        "symptom": text(story.symptom(analysis.clues), 2000),
        "cause": text(_cause(analysis, spots[0])),
        "mechanism": mechanism,
        "locations": [_location(analysis, spot, at, spots[0]) for at, spot in enumerate(spots)],
        "data": _told_data(analysis, spots) + _rows(analysis),
        "hypotheses": _verdicts(analysis),
        "confidence": confidence,
        "confidence_reason": text(_reason(analysis)),
        "unknowns": _unknowns(analysis),
        "checks": _checks(analysis, spots[0]),
        "method": METHOD,
        "information_needed": [],
    }


def _insufficient(analysis: Analysis) -> Json:
    return {
        "outcome": "insufficient_evidence",
        "symptom": text(story.symptom(analysis.clues), 2000),
        "cause": "The evidence leads to no cause: nothing that was looked at fits the report.",
        "mechanism": [],
        "locations": [],
        "data": _told_data(analysis, []),
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
    places = analysis.places
    spots = [
        spot for file, function in _ORDER if file < len(places)
        for spot in _spots(analysis, places[file], function)
    ]  # fmt: skip
    spots = _with_callers(analysis, spots)
    named = [s for n, s in enumerate(spots) if n < 1 or _has_reason(analysis, s, spots[0])][:_MOST]
    return named + list(_others(analysis, named))


def _spots(analysis: Analysis, place: Place, rank: int) -> Iterator[Spot]:
    """Yield a file's function of a rank (0 is the best); the file alone if none of it is known."""
    if rank < len(place.functions):
        found = place.functions[rank][1]
        yield Spot(place, found, found.first, max(found.first, found.last))
    elif rank == 0:
        at = _pointed_line(analysis, place)
        yield Spot(place, None, at, at)


def _others(analysis: Analysis, named: list[Spot]) -> Iterator[Spot]:
    """Yield the next files, if nothing but words leads to the first: then a reader needs them."""
    if not named or analysis.points_directly(named[0].place):
        return
    known = {spot.place.path for spot in named}
    for place in analysis.places[:_FILES]:
        if place.path not in known:
            yield from _spots(analysis, place, 0)


def _has_reason(analysis: Analysis, spot: Spot, first: Spot) -> bool:
    """Tell whether a further place has a reason of its own: the call of the first place, something
    that points at it, or words that fit nearly as well. The best rivals are named in any case.
    """
    if spot.place is not first.place:
        told = _story(analysis, spot)
        rival = spot.place in analysis.places[1:2] and spot.function in (None, *_best(spot.place))
        third = spot.place in analysis.places[2:3] and bool(told.words())
        return rival or third or told.has_own_reason
    if _calls(analysis, spot, first) or _story(analysis, spot).has_own_reason:
        return True
    points = spot.place.functions
    own = next((number for number, function in points if function == spot.function), 0.0)
    return own >= _NEARLY * max((number for number, _ in points), default=0.0)


def _best(place: Place) -> list[Definition]:
    return [function for _, function in place.functions[:1]]


def _with_callers(analysis: Analysis, spots: list[Spot]) -> list[Spot]:
    """Put the caller of code that decides by odd rows second: there the fault comes to light."""
    first = spots[0] if spots else None
    way = analysis.ranker.chains.get(first.function, ()) if first and first.function else ()
    if first is None or len(way) < 2 or _story(analysis, first).use is None:
        return spots
    caller = way[-2]
    places = [place for place in analysis.places if place.path == caller.path]
    found = [Spot(place, caller, caller.first, caller.last) for place in places]
    others = [spot for spot in spots[1:] if spot.function != caller]
    return [first, *found, *others]


def _pointed_line(analysis: Analysis, place: Place) -> int:
    """Return the line of a file that a search or a frame points at."""
    framed = [x.frame.line for x in analysis.clues.frames if x.path == place.path]
    if any(signal.kind == "packaging" for signal in place.signals):
        lines = analysis.corpus.lines(place.path)
        framed = [number for number in sorted(lines) if "packages" in lines[number]]
    hits = [
        at for ranking in analysis.corpus.rankings for path, at in ranking.hits
        if path == place.path
    ]  # fmt: skip
    return max(1, next(iter([*framed, *hits]), 1))


def _location(analysis: Analysis, spot: Spot, at: int, first: Spot) -> Json:
    shown = analysis.corpus.quoting(spot.place.path, spot.first, spot.last)
    same = spot.place is first.place or _calls(analysis, spot, first)
    role = "faulty" if at == 0 else "contributing" if same else "affected"
    return {
        "path": spot.place.path,
        "function": spot.function.qualified[:300] if spot.function else "",
        "first_line": spot.first,
        "last_line": spot.last,
        "role": role,
        "why": text(_why(analysis, spot, first, at), 1000),
        "evidence": distinct([*shown[:4], *spot.place.evidence[:6]], 12),
    }


def _why(analysis: Analysis, spot: Spot, first: Spot, at: int) -> str:
    """Return why a place is named: its own reasons, or what it has to do with the first."""
    if at == 0:
        return f"The cause is about this place. {' '.join(_story(analysis, spot).reasons(2, 2))}"
    if _calls(analysis, spot, first) and first.function:
        name = f"`{first.function.qualified}`"
        if _story(analysis, first).use is not None:
            return f"It calls {name} and goes on with the result: the fault shows here."
        return f"It calls {name}, so what goes wrong there may show here."
    if spot.place is first.place:
        return f"It stands in the same file. {_story(analysis, spot).because(1)}"
    return _story(analysis, spot).because(2)


def _calls(analysis: Analysis, caller: Spot, called: Spot) -> bool:
    known = caller.function is not None and called.function is not None
    return known and called.function in analysis.ranker.calls.called(caller.function)  # type: ignore[arg-type]


def _story(analysis: Analysis, spot: Spot) -> Story:
    return Story(analysis.ranker, spot.place, spot.function, (spot.first, spot.last))


# What is said ----------------------------------------------------------------------------------


def _cause(analysis: Analysis, spot: Spot) -> str:
    told = _story(analysis, spot)
    parts = [f"The fault is most likely in {told.name} ({_lines(spot)})."]
    if told.use is not None:
        parts += [story.rows_said(analysis.ranker, told.use.odd), _meets(analysis, told, told.use)]
    else:
        parts += _by_code(analysis, told)
    for kind, message, _ in analysis.clues.errors[:1]:
        seen = "logs show" if analysis.clues.only_logged else "report shows"
        parts.append(f"The error that the {seen} is {kind}" + (f": {message}." if message else "."))
    return " ".join(parts)


def _by_code(analysis: Analysis, told: Story) -> list[str]:
    """Return why a place is named that no odd rows explain, what to read, and odd rows if any."""
    caught = any(signal.kind == "caught" for signal in told.place.signals)
    parts = [told.because(1 if caught else 2)]
    if caught:
        parts.append("So what the error does beyond the row that raised it is decided here.")
    parts += [f"To be read first: {told.lines_to_read}."] if told.told else []
    for odd in [odd for odd in analysis.decisive if odd.codes][:1]:
        rows = story.lower(story.rows_said(analysis.ranker, odd))
        parts.append(f"Data takes part: {rows}")
    return parts


def _lines(spot: Spot) -> str:
    return f"lines {spot.first} to {spot.last}" if spot.last > spot.first else f"line {spot.first}"


def _meets(analysis: Analysis, told: Story, use: Use) -> str:
    """Return what in the data meets what in the code, and how it goes wrong."""
    line = analysis.corpus.lines(use.path).get(use.line, "")
    return (
        f"{told.short} decides by this column in line {use.line}, {story.code(line)}: "
        f"{told.why_it_breaks(use)}."
    )


def _mechanism(analysis: Analysis, spot: Spot) -> list[Json]:
    steps = [*_data_steps(analysis, spot), *_caught_steps(analysis, spot)]
    steps += [*_code_steps(analysis, spot), *_way_steps(analysis, spot), *_log_steps(analysis)]
    for kind, _, where in analysis.clues.errors[:1]:
        steps.append(_step(f"This ends in {kind}.", [where]))
    seen = _step("The report sees the symptom.", [o.id for o in analysis.case.report[:1]])
    return [*steps, seen][:12]


def _data_steps(analysis: Analysis, spot: Spot) -> Iterator[Json]:
    """Odd rows that matter, and the line of the place that decides by them."""
    told = _story(analysis, spot)
    use = told.use
    tied = [odd for odd in analysis.decisive[:1] if odd.codes]
    for odd in [use.odd] if use is not None else tied:
        yield _step(story.rows_named(odd), [odd.finding.evidence])
    if use is not None:
        shown = story.code(analysis.corpus.lines(use.path).get(use.line, ""))
        yield _step(f"{told.short} decides by it in line {use.line}, {shown}.", [use.evidence])


def _code_steps(analysis: Analysis, spot: Spot) -> Iterator[Json]:
    """The lines of the place to look at first; if none is known, why it is named."""
    told = _story(analysis, spot)
    if told.use is not None:
        return
    for item in told.told:
        said = f"This is likely decided in {told.short}; line {item.line} reads"
        yield _step(f"{said} {story.code(item.text)}", [item.evidence])
    if not told.told:
        yield _step(f"{told.name} handles what the report describes.", spot.place.evidence[:6])


def _way_steps(analysis: Analysis, spot: Spot) -> Iterator[Json]:
    """How what the report names comes to the place: the calls, each with its line."""
    way = analysis.ranker.chains.get(spot.function, ()) if spot.function else ()
    for caller, called in list(pairwise(way))[::-1][:3]:
        for number, shown, evidence in _call_lines(analysis, caller, called)[:1]:
            said = f"`{caller.qualified}` in {caller.path} calls `{called.name}` in line {number}"
            yield _step(f"{said}, {story.code(shown)}", [evidence])


def _call_lines(
    analysis: Analysis, caller: Definition, called: Definition
) -> list[tuple[int, str, str]]:
    lines, corpus = analysis.corpus.lines(caller.path), analysis.corpus
    call = re.compile(rf"(?<![\w$]){re.escape(called.name)}\s*\(")
    return [
        (number, lines[number], cited)
        for number in range(caller.first + 1, caller.last + 1)
        if call.search(lines.get(number, ""))
        for cited in corpus.quoting(caller.path, number, number)
    ]


def _log_steps(analysis: Analysis) -> Iterator[Json]:
    """What the logs say about what the report names; warnings and errors before other lines."""
    codes = [c for odd in analysis.decisive[:1] for c in odd.codes] or analysis.clues.codes[:1]
    held = [item for item in analysis.corpus.log_lines if any(c in item.text for c in codes[:1])]
    held.sort(key=lambda item: (not _SERIOUS.search(item.text), item.artifact, item.line))
    for item in held[:1]:
        said = f"The log {item.artifact} says in its line {item.line}"
        yield _step(f"{said}: {story.code(item.text)}", [item.evidence])


def _caught_steps(analysis: Analysis, spot: Spot) -> Iterator[Json]:
    """Where a logged error was raised, and that the place caught it and went on."""
    for signal in spot.place.signals:
        if signal.kind != "caught":
            continue
        for framed in analysis.ranker.framed[:1]:
            shown = analysis.corpus.lines(framed.path).get(framed.line, "")
            reads = f", {story.code(shown)}" if shown.strip() else ""
            cited = analysis.corpus.quoting(framed.path, framed.line, framed.line)[:1]
            said = f"The logged error is raised in {framed.path}, line {framed.line}{reads}"
            yield _step(said, [*cited, framed.observation])
        said = f"{spot.place.path} {signal.label}: what becomes of the rest of the work is decided"
        yield _step(f"{said} after that.", list(signal.evidence))


def _step(said: str, evidence: list[str]) -> Json:
    return {"step": text(said, 1500), "evidence": distinct(evidence, 12)}


def _told_data(analysis: Analysis, spots: list[Spot]) -> list[Json]:
    """The decisive odd rows; those that the cause describes are not described again."""
    used = _story(analysis, spots[0]).use if spots else None
    tied = [odd for odd in analysis.decisive if odd.codes][:1] if spots else []
    in_cause = [used.odd] if used else tied
    return [_data(analysis, odd, odd in in_cause) for odd in _told_of(analysis)]


def _data(analysis: Analysis, odd: Odd, in_cause: bool) -> Json:
    finding = odd.finding
    keys = [row_key(finding.names, row, finding.columns) for row in finding.rows[:7]]
    said = "The cause describes these rows." if in_cause else story.rows_said(analysis.ranker, odd)
    return {
        "database": finding.database,
        "table": line(finding.table),
        "rows": line("; ".join(keys) or f"{finding.total} rows"),
        "meaning": text(f"{said} {story.sentence(wording.meaning(finding))}", 1500),
        "evidence": [finding.evidence],
    }


def _told_of(analysis: Analysis) -> list[Odd]:
    """Return the decisive odd rows, each column of a table once: one oddness has several kinds."""
    used = {use.odd.finding.columns for use in analysis.ranker.tracer.uses if use.points >= 1}
    found: dict[tuple[str, tuple[str, ...]], Odd] = {}
    for at, odd in enumerate(analysis.decisive):
        if at == 0 or not used or odd.finding.columns in used:
            found.setdefault((odd.finding.table, odd.finding.columns), odd)
    return list(found.values())


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
    """Return how probably the first file is the faulty one; see the module's docstring."""
    first = spots[0].place
    odds, most = _odds(analysis, first)
    told = (len(analysis.clues.told) - _LITTLE) / (_MUCH - _LITTLE)
    score = odds.base + odds.lead * analysis.separation() + odds.told * min(1.0, max(0.0, told))
    if odds is _WORDS and any(signal.kind == "chosen" for signal in first.signals):
        score += _CHOSEN
    if first.path not in analysis.corpus.read:
        score -= _UNREAD
    return round(min(most, 1 / (1 + math.exp(-score))), 2)


def _odds(analysis: Analysis, place: Place) -> tuple[_Odds, float]:
    """Return the odds by what leads to a place, and the most that is ever stated for it."""
    if analysis.explains(place):
        return _EXPLAINED, 0.95
    return (_POINTED, 0.95) if analysis.points_directly(place) else (_WORDS, _BY_WORDS)


def _reason(analysis: Analysis) -> str:
    """Return what the confidence rests on: the signals, in words, and how near the next file is."""
    first, lead = analysis.places[0], analysis.separation()
    parts = [
        f"The number is the probability that {first.path} is the faulty file, not that the "
        f"function is. For the file speak, the strongest first: {'; '.join(_signals(first))}."
    ]
    if len(analysis.places) > 1:
        second = analysis.places[1]
        near = "far behind" if lead >= 0.3 else "behind" if lead >= 0.1 else "hardly behind"
        parts.append(
            f"The next file, {second.path}, is {near} ({round(100 * lead)} % fewer points)."
        )
    else:
        parts.append("No other file was found to compare it with, which counts as a small lead.")
    if len(first.functions) > 1:
        inner = round(100 * analysis.inner_separation())
        parts.append(f"In the file, the next function has {inner} % fewer points than the best.")
    direct = (
        "something does"
        if analysis.points_directly(first)
        else "nothing does, so it cannot be high"
    )
    parts.append(
        "The number follows from the lead of the first file, from how much the report tells in "
        f"words ({story.count(len(analysis.clues.told), 'telling word')}) and from whether "
        "something points at the file directly (odd rows, the innermost line of a stack trace, the "
        f"text of an error); here {direct}. Nothing was run."
    )
    return " ".join(parts)


def _signals(place: Place) -> list[str]:
    """Return the labels of a place, one a kind and without words for words."""
    found: dict[str, str] = {}
    for signal in sorted(place.signals, key=lambda s: (-s.points, s.label)):
        found.setdefault(signal.kind, f"it {signal.label}")
    return list(found.values())[:6]


def _unknowns(analysis: Analysis) -> list[str]:
    found = ["Nothing was run: whether the place named really decides the symptom was not tried."]
    second = analysis.places[1] if len(analysis.places) > 1 else None
    if second is not None and analysis.separation() < _NEAR:
        found.append(f"Whether {second.path} is the cause instead: it fits nearly as well.")
    for place in analysis.places[1:4]:
        if place.path not in analysis.corpus.read:
            found.append(f"What {place.path} does; it was found but not read.")
    found += _not_found(analysis)
    return [line(item) for item in found][:12]


def _not_found(analysis: Analysis) -> Iterator[str]:
    """What was looked for in vain and would have mattered: databases, codes, names in code."""
    databases = [name for name, kind in analysis.case.kinds.items() if kind == "database"]
    if databases and not analysis.corpus.profiled:
        yield "What the database holds; no table was profiled."
    for _, action, what in analysis.corpus.negatives:
        if action == "search_log" and what in analysis.clues.codes[:1]:
            yield f"What happened to {what} at run time; the logs do not name it."
        elif action == "find_symbol" and is_identifier(what) and _is_called(analysis, what):
            yield f"What `{what}` is: the report names it like a function, but the source has none."


def _is_called(analysis: Analysis, name: str) -> bool:
    """Tell whether the report uses a name as one uses a function's: with a bracket after it."""
    last = name.rpartition(".")[2]
    return any(f"{last}(" in item.text for item in analysis.case.report)


def _checks(analysis: Analysis, spot: Spot) -> list[str]:
    told = _story(analysis, spot)
    at = told.use.line if told.use else next((t.line for t in told.told), spot.first)
    found = [
        f"Repeat the reported steps and stop in {told.name} at line {at}; look at the values there."
        if spot.function else f"Read {spot.place.path} from line {at} on."
    ]  # fmt: skip
    for odd in _told_of(analysis)[:2]:
        finding = odd.finding
        columns = story.listed([f"{finding.table}.{name}" for name in finding.columns])
        found.append(f"Look in production for rows whose {columns} {story.plain(finding.says)}.")
    if analysis.clues.errors:
        kind = analysis.clues.errors[0][0]
        found.append(f"See whether {kind} stops once the place is corrected.")
    return distinct(map(line, found), 12)
