"""The change request: file, function, lines, the change in words, a test, data repair, risks."""

from __future__ import annotations

from phases.providers.offline import wording
from phases.providers.offline.assess import Analysis
from phases.providers.offline.case import Case, Json, as_dict, as_int, as_str, dicts, strings
from phases.providers.offline.limits import distinct, line, text
from phases.providers.offline.telling import Telling, telling_lines


def answer(case: Case) -> Json:
    """Return the change request for a diagnosis."""
    analysis = Analysis(case)
    diagnosis = as_dict(case.view.get("diagnosis"))
    locations = dicts(diagnosis.get("locations"))
    expected = as_str(as_dict(case.interpretation.get("expected")).get("statement"))
    chosen = locations[:1] + [x for x in locations[1:3] if x.get("role") == "contributing"][:1]
    return {
        "title": line(f"Correct: {analysis.clues.title or 'the reported behaviour'}", 200),
        "summary": text(_summary(diagnosis, expected)),
        "changes": [_change(analysis, item, expected, at) for at, item in enumerate(chosen)],
        "tests": [_test(analysis, locations[0], expected)] if locations else [],
        "data_repair": _repairs(analysis),
        "risks": _risks(analysis, locations),
        "acceptance": _acceptance(analysis, expected),
        "out_of_scope": _out_of_scope(locations, chosen),
        "information_needed": [],
    }


def _summary(diagnosis: Json, expected: str) -> str:
    confidence = diagnosis.get("confidence")
    sure = f" Confidence of the place: {confidence}." if isinstance(confidence, float | int) else ""
    cause = as_str(diagnosis.get("cause")) or "No cause was found."
    wanted = f" Expected instead: {expected}" if expected else ""
    return f"{cause}{wanted}{sure} No language model was involved; read the places before changing."


def _change(analysis: Analysis, location: Json, expected: str, at: int) -> Json:
    path, function = as_str(location.get("path")), as_str(location.get("function"))
    first = max(1, as_int(location.get("first_line"), 1))
    last = max(first, as_int(location.get("last_line"), first))
    shown = telling_lines(analysis.clues, analysis.corpus, path, first, last)
    cited = [*(s.evidence for s in shown), *strings(location.get("evidence"))]
    return {
        "path": path or "-",
        "function": function[:300],
        "first_line": first,
        "last_line": last,
        "what": text(_what(analysis, path, function, shown, expected, at), 2000),
        "why": text(as_str(location.get("why")) or "the diagnosis names this place", 1000),
        "evidence": _known(analysis, cited),
    }


def _what(
    analysis: Analysis, path: str, function: str, shown: list[Telling], expected: str, at: int
) -> str:
    parts, name = [], function or path
    if at > 0:
        parts.append(f"If the first place turns out not to decide it, check {name}.")
    for odd in analysis.decisive[:1]:
        rest = ", ".join(analysis.corpus.rest_of_key(odd.finding.columns))
        with_rest = f" (with {rest})" if rest else ""
        parts.append(f"In {name}, {wording.change(odd.finding)}{with_rest}.")
        for use in analysis.deciding(path)[:1]:
            text_there = analysis.corpus.lines(use.path).get(use.line, "").strip()
            parts.append(f"Line {use.line} does not: {text_there}")
    if analysis.clues.errors and not parts:
        kind, message, _ = analysis.clues.errors[0]
        said = f" ({message})" if message else ""
        parts.append(f"In {name}, handle the case that now ends in {kind}{said}.")
    if shown:
        places = "; ".join(f"line {s.line}: {s.text.strip()}" for s in shown)
        parts.append(f"Correct what is decided there; look first at {places}.")
    wanted = expected or analysis.clues.title
    parts.append(f"Afterwards this must hold: {wanted}")
    return " ".join(parts)


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
    codes = analysis.clues.codes[:3]
    rows = f" Use rows like those of {', '.join(codes)}." if codes else ""
    steps = [p.text.strip() for p in analysis.clues.pieces if p.section == "steps" or p.code][:6]
    return {
        "where": line(tested[0] if tested else where),
        "arrange": text(
            f"As the report does: {' / '.join(steps) or analysis.clues.title}{rows}", 2000
        ),
        "expect": text(expected or f"no longer: {analysis.clues.title}", 1500),
    }


def _repairs(analysis: Analysis) -> list[Json]:
    return [
        {
            "what": text(f"{odd.finding.table}: {wording.repair(odd.finding)}", 1000),
            "why": text(f"{', '.join(odd.finding.columns)} {odd.finding.says}.", 1000),
            "evidence": [odd.finding.evidence],
        }
        for odd in analysis.decisive[:3]
        if wording.repair(odd.finding)
    ]


def _risks(analysis: Analysis, locations: list[Json]) -> list[str]:
    found = ["The place was found by comparing texts and data, not by running the code."]
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
        found.append(f"As the report expects: {expected}")
    if analysis.clues.errors:
        found.append(f"{analysis.clues.errors[0][0]} no longer arises for the reported input.")
    found.append("All existing tests pass.")
    return [line(item) for item in found]


def _out_of_scope(locations: list[Json], chosen: list[Json]) -> list[str]:
    others = distinct(as_str(x.get("path")) for x in locations if x not in chosen)
    named = {as_str(x.get("path")) for x in chosen}
    return [line(f"{path}: only related by its words") for path in others if path not in named][:5]
