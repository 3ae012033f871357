"""How the input leads to the symptom, step by step, each with the evidence it rests on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from phases.providers.offline import story
from phases.providers.offline.assess import Analysis
from phases.providers.offline.case import Json
from phases.providers.offline.limits import distinct, text
from phases.providers.offline.outline import Definition
from phases.providers.offline.spots import Spot, story_of

_SERIOUS = re.compile(r"\b(WARN(ING)?|ERROR|CRITICAL|FATAL)\b")


def mechanism(analysis: Analysis, spot: Spot) -> list[Json]:
    """Return the steps, at most twelve; the last is what the report sees."""
    steps = [*_data_steps(analysis, spot), *_caught_steps(analysis, spot)]
    steps += [*_code_steps(analysis, spot), *_way_steps(analysis, spot), *_log_steps(analysis)]
    for kind, _, where in analysis.clues.errors[:1]:
        steps.append(_step(f"This ends in {kind}.", [where]))
    seen = _step("The report sees the symptom.", [o.id for o in analysis.case.report[:1]])
    return [*steps, seen][:12]


def _data_steps(analysis: Analysis, spot: Spot) -> Iterator[Json]:
    """Odd rows that matter, and the line of the place that decides by them."""
    told = story_of(analysis, spot)
    use = told.use
    tied = [odd for odd in analysis.decisive[:1] if odd.codes]
    for odd in [use.odd] if use is not None else tied:
        yield _step(story.rows_named(odd), [odd.finding.evidence])
    if use is not None:
        shown = story.code(analysis.corpus.lines(use.path).get(use.line, ""))
        yield _step(f"{told.short} decides by it in line {use.line}, {shown}.", [use.evidence])


def _code_steps(analysis: Analysis, spot: Spot) -> Iterator[Json]:
    """The lines of the place to look at first; if none is known, why it is named."""
    told = story_of(analysis, spot)
    if told.use is not None:
        return
    for item in told.told:
        said = f"This is likely decided in {told.short}; line {item.line} reads"
        yield _step(f"{said} {story.code(item.text)}", [item.evidence])
    if not told.told:
        yield _step(f"{told.name} handles what the report describes.", spot.place.evidence[:6])


def _way_steps(analysis: Analysis, spot: Spot) -> Iterator[Json]:
    """How what the report names comes to the place: the calls, each with its line."""
    way = analysis.ranker.structure.chains.get(spot.function, ()) if spot.function else ()
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
        for framed in analysis.ranker.structure.framed[:1]:
            shown = analysis.corpus.lines(framed.path).get(framed.line, "")
            reads = f", {story.code(shown)}" if shown.strip() else ""
            cited = analysis.corpus.quoting(framed.path, framed.line, framed.line)[:1]
            said = f"The logged error is raised in {framed.path}, line {framed.line}{reads}"
            yield _step(said, [*cited, framed.observation])
        said = f"{spot.place.path} {signal.label}: what becomes of the rest of the work is decided"
        yield _step(f"{said} after that.", list(signal.evidence))


def _step(said: str, evidence: list[str]) -> Json:
    return {"step": text(said, 1500), "evidence": distinct(evidence, 12)}
