"""The diagnosis: places, mechanism, rows and verdicts, each with the evidence it rests on."""

from __future__ import annotations

from collections.abc import Iterator

from phases.providers.offline import story, wording
from phases.providers.offline.assess import Analysis
from phases.providers.offline.case import Case, Json
from phases.providers.offline.confidence import confidence, reason
from phases.providers.offline.data import Odd, row_key
from phases.providers.offline.limits import distinct, line, text
from phases.providers.offline.mechanism import mechanism
from phases.providers.offline.spots import Spot, calls, locate, story_of
from phases.providers.offline.story import Story
from phases.providers.offline.tracing import Use
from phases.providers.offline.words import is_identifier

METHOD = "Deterministic offline analyst; no language model was involved."


_NEAR = 0.15
"""A lead below which the second file must be named as a rival."""


def answer(case: Case) -> Json:
    """Return the diagnosis."""
    analysis = Analysis(case)
    spots = locate(analysis)
    if not spots or not analysis.corpus.paths or not analysis.carries(spots[0].place):
        return _insufficient(analysis)
    sure = confidence(analysis, spots[0].place)
    steps = mechanism(analysis, spots[0])
    found = sure >= 0.75 and any(step["evidence"] for step in steps)
    return {
        "outcome": "cause_found" if found else "cause_likely",
        "symptom": text(story.symptom(analysis.clues), 2000),
        "cause": text(_cause(analysis, spots[0])),
        "mechanism": steps,
        "locations": [_location(analysis, spot, at, spots[0]) for at, spot in enumerate(spots)],
        "data": _told_data(analysis, spots) + _rows(analysis),
        "hypotheses": _verdicts(analysis),
        "confidence": sure,
        "confidence_reason": text(reason(analysis)),
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
        "unknowns": [
            "Which code is responsible for what the report describes.",
            *map(line, _set_aside(analysis)),
        ],
        "checks": ["Add a stack trace, a log excerpt or the names of commands and functions used."],
        "method": METHOD,
        "information_needed": [],
    }


def _location(analysis: Analysis, spot: Spot, at: int, first: Spot) -> Json:
    shown = analysis.corpus.quoting(spot.place.path, spot.first, spot.last)
    same = spot.place is first.place or calls(analysis, spot, first)
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
        return f"The cause is about this place. {' '.join(story_of(analysis, spot).reasons(2, 2))}"
    if calls(analysis, spot, first) and first.function:
        name = f"`{first.function.qualified}`"
        if story_of(analysis, first).use is not None:
            return f"It calls {name} and goes on with the result: the fault shows here."
        return f"It calls {name}, so what goes wrong there may show here."
    if spot.place is first.place:
        return f"It stands in the same file. {story_of(analysis, spot).because(1)}"
    return story_of(analysis, spot).because(2)


def _cause(analysis: Analysis, spot: Spot) -> str:
    told = story_of(analysis, spot)
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


def _told_data(analysis: Analysis, spots: list[Spot]) -> list[Json]:
    """The decisive odd rows; those that the cause describes are not described again."""
    used = story_of(analysis, spots[0]).use if spots else None
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


def _unknowns(analysis: Analysis) -> list[str]:
    found = ["Nothing was run: whether the place named really decides the symptom was not tried."]
    second = analysis.places[1] if len(analysis.places) > 1 else None
    if second is not None and analysis.separation() < _NEAR:
        found.append(f"Whether {second.path} is the cause instead: it fits nearly as well.")
    for place in analysis.places[1:4]:
        if place.path not in analysis.corpus.read:
            found.append(f"What {place.path} does; it was found but not read.")
    found += _not_found(analysis)
    found += _set_aside(analysis)
    return [line(item) for item in found][:12]


def _set_aside(analysis: Analysis) -> Iterator[str]:
    """Logged errors that were not followed, each kind once."""
    kinds = {kind: where for kind, _, where in reversed(analysis.clues.set_aside)}
    for kind, where in list(kinds.items())[:2]:
        yield (
            f"Whether the logged {kind} in {where} plays a part: it is an outage, or about other "
            "things than those that the report names, and was set aside."
        )


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
    told = story_of(analysis, spot)
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
