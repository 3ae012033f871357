"""The change request: file, function, lines, the change in words, a test, data repair, risks."""

from __future__ import annotations

import re

from phases.providers.offline import story, wording
from phases.providers.offline.assess import Analysis
from phases.providers.offline.case import Case, Json, as_dict, as_int, as_str, dicts, strings
from phases.providers.offline.limits import distinct, line, text
from phases.providers.offline.ranking import Place
from phases.providers.offline.story import Story
from phases.providers.offline.tracing import Use

_NO_LONGER = "What the report complains about no longer happens."
_TRACE = re.compile(r"\s*(Traceback|File \"|at \S|\w+(\.\w+)*(Error|Exception)\b|raise\b)")
"""Lines of a trace tell what happened, not what was done."""


def answer(case: Case) -> Json:
    """Return the change request for a diagnosis."""
    analysis = Analysis(case)
    diagnosis = as_dict(case.view.get("diagnosis"))
    locations = dicts(diagnosis.get("locations"))
    expected = story.expected(analysis.clues)
    chosen = locations[:1]
    if locations and not _told(analysis, locations[0]).use:
        chosen += [x for x in locations[1:3] if x.get("role") == "contributing"][:1]
    return {
        "title": line(_title(analysis, locations), 200),
        "summary": text(_summary(diagnosis, locations)),
        "changes": [_change(analysis, item, at) for at, item in enumerate(chosen)],
        "tests": [_test(analysis, locations[0], expected)] if locations else [],
        "data_repair": _repairs(analysis),
        "risks": _risks(analysis, locations),
        "acceptance": _acceptance(analysis, expected),
        "out_of_scope": _out_of_scope(locations, chosen),
        "information_needed": [],
    }


def _told(analysis: Analysis, location: Json) -> Story:
    """Return what can be said about a location of the diagnosis, by this context's evidence."""
    path, function = as_str(location.get("path")), as_str(location.get("function"))
    first = max(1, as_int(location.get("first_line"), 1))
    last = max(first, as_int(location.get("last_line"), first))
    place = next((p for p in analysis.places if p.path == path), Place(path))
    known = [d for d in analysis.corpus.definitions(path) if d.qualified == function]
    return Story(analysis.ranker, place, next(iter(known), None), (first, last))


def _title(analysis: Analysis, locations: list[Json]) -> str:
    """Return an imperative about the code."""
    if not locations:
        return f"Find and correct the code behind: {analysis.clues.title or 'the report'}"
    told = _told(analysis, locations[0])
    name = as_str(locations[0].get("function")) or as_str(locations[0].get("path"))
    kinds = {signal.kind for signal in told.place.signals}
    if told.use is not None and told.use.way == "part":
        key = [*analysis.corpus.rest_of_key(told.use.odd.finding.columns),
               *told.use.odd.finding.columns]  # fmt: skip
        return f"Go by the whole key ({story.listed(key)}) in {name}"
    if told.use is not None:
        return f"{wording.title(told.use.odd.finding, told.use.way)} in {name}"
    if "packaging" in kinds:
        return (
            f"Declare {story.listed(analysis.clues.missing_modules)} among the packages in {name}"
        )
    if "caught" in kinds:
        return f"Do not carry on as if nothing had happened after the caught error in {name}"
    for kind, _, _ in analysis.clues.errors[:1]:
        return f"Handle the case in {name} that ends in {kind.rpartition('.')[2]}"
    return f"Correct what {name} decides where the report says: {analysis.clues.title}"


def _summary(diagnosis: Json, locations: list[Json]) -> str:
    """Return where to change something and how sure that is; the cause is in the diagnosis."""
    if not locations:
        return "The diagnosis names no place, so there is nothing to change yet."
    confidence = diagnosis.get("confidence")
    path, function = as_str(locations[0].get("path")), as_str(locations[0].get("function"))
    place = f"`{function}` in {path}" if function else path
    sure = (
        f" That {path} is the file has a probability of about {round(100 * confidence)} %."
        if isinstance(confidence, float | int) else ""
    )  # fmt: skip
    return (
        f"Change {place}, where the diagnosis sees the cause.{sure} No language model was "
        "involved; read the place before changing it."
    )


def _change(analysis: Analysis, location: Json, at: int) -> Json:
    told = _told(analysis, location)
    first, last = told.lines
    cited = [*(s.evidence for s in told.told), *strings(location.get("evidence"))]
    return {
        "path": told.place.path or "-",
        "function": as_str(location.get("function"))[:300],
        "first_line": first,
        "last_line": last,
        "what": text(_what(analysis, told, location, at), 2000),
        "why": f"The diagnosis names this place {'further on' if at else 'first'} and says why.",
        "evidence": _known(analysis, cited),
    }


def _what(analysis: Analysis, told: Story, location: Json, at: int) -> str:
    name = as_str(location.get("function")) or told.place.path
    parts = [f"Only if the first place turns out not to decide it: check {name}."] if at else []
    if told.use is not None:
        parts.append(_at_the_use(analysis, told.use, name))
    else:
        if analysis.clues.errors and not at:
            kind = analysis.clues.errors[0][0]
            parts.append(f"In {name}, handle the case that now leads to {kind}.")
        if told.told:
            parts.append(f"Read first {told.lines_to_read}; correct what is decided there.")
    return " ".join(parts) or f"Correct in {name} what leads to the symptom."


def _at_the_use(analysis: Analysis, use: Use, name: str) -> str:
    """Return what to change at the line that decides by an odd column."""
    rest = analysis.corpus.rest_of_key(use.odd.finding.columns) if use.way == "part" else []
    with_rest = f" (with {story.listed(rest)})" if rest else ""
    change = wording.change(use.odd.finding, use.way)
    return f"In {name}, {change}{with_rest}. Line {use.line} does not do so yet."


def _known(analysis: Analysis, cited: list[str]) -> list[str]:
    """Keep citations that this context holds."""
    known = {as_str(item.get("id")) for item in analysis.case.evidence}
    known |= {item.id for item in analysis.case.observations}
    return distinct((name for name in cited if name in known), 12)


def _test(analysis: Analysis, location: Json, expected: str) -> Json:
    path = as_str(location.get("path"))
    stem, _, ending = path.rpartition("/")[2].rpartition(".")
    script = ending in ("js", "mjs", "cjs", "ts", "tsx", "jsx")
    where = f"test/{stem or 'bug'}.test.{ending}" if script else f"tests/test_{stem or 'bug'}.py"
    tested = [p for p in analysis.corpus.paths if stem and stem in p and "test" in p]
    return {
        "where": line(tested[0] if tested else where),
        "arrange": text(_arranged(analysis), 2000),
        "expect": text(story.sentence(expected) if expected else _NO_LONGER, 1500),
    }


def _arranged(analysis: Analysis) -> str:
    """Return as sentences what a test sets up: the report's steps, else its example in code."""
    clues = analysis.clues
    steps = [p for p in clues.pieces if p.section == "steps" and p.text.strip()] or [
        p for p in clues.pieces
        if p.code and p.section not in ("observed", "expected") and not _TRACE.match(p.text)
    ]  # fmt: skip
    told = [story.sentence(p.text) for p in steps[:6] if not p.code]
    typed = [story.code(p.text) for p in steps[:6] if p.code and p.text.strip()]
    parts = ["Set up the case that the report describes."] if not told and not typed else []
    parts += ["Do what the report did.", *told] if told else []
    parts += [f"Run what the report ran: {story.listed(typed, 6)}."] if typed else []
    codes = clues.codes[:3] if analysis.case.tables else []
    if codes:
        parts.append(f"Use rows like those of {story.listed(codes)}.")
    return " ".join(parts)


def _repairs(analysis: Analysis) -> list[Json]:
    return [
        {
            "what": text(f"Table {odd.finding.table}: {wording.repair(odd.finding)}", 1000),
            "why": text(f"{story.rows_named(odd)} The diagnosis describes it.", 1000),
            "evidence": [odd.finding.evidence],
        }
        for odd in analysis.decisive[:1]
        if wording.repair(odd.finding)
    ]


def _risks(analysis: Analysis, locations: list[Json]) -> list[str]:
    found = ["The place was found by comparing texts, code and data; nothing was run."]
    names = {as_str(x.get("function")).rpartition(".")[2] for x in locations[:1]} - {""}
    for uses in analysis.corpus.uses:
        if uses.name in names and uses.total > 1:
            found.append(f"{uses.name} is used in {uses.total} places; they share the change.")
    if analysis.decisive:
        found.append("Rows that are wrong already stay wrong until they are repaired.")
    found.append("Callers may rely on today's behaviour; read them before changing a signature.")
    return [line(item) for item in found][:10]


def _acceptance(analysis: Analysis, expected: str) -> list[str]:
    found = ["The new test fails before the change and passes after it."]
    if expected:
        found.append("What the report expects happens for the reported input.")
    if analysis.clues.errors and not analysis.clues.only_logged:
        found.append(f"{analysis.clues.errors[0][0]} no longer arises for the reported input.")
    found.append("All existing tests pass.")
    return [line(item) for item in found]


def _out_of_scope(locations: list[Json], chosen: list[Json]) -> list[str]:
    named = {as_str(x.get("path")) for x in chosen}
    others = distinct(as_str(x.get("path")) for x in locations)
    said = "fits the report less well; the diagnosis says why it is named"
    return [line(f"{path}: {said}.") for path in others if path not in named][:5]
