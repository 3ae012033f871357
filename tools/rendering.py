"""Evidence and reports as text for people. Everything of the case is shown as text, never run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from projections.wording import counted
from tools.output import one_line, safe, spoken
from tools.sharing import withheld_text

Json = Mapping[str, Any]

# What Markdown or HTML would act on: inside a word an underscore does nothing.
_MARKUP = re.compile(r"[\\`*<\[]|(?<!\w)_|_(?!\w)")
_AT_START = re.compile(r"\A(?:[#>+~=-]|\d+(?=[.)]))")


def evidence_lines(document: Json) -> Iterator[str]:
    """Yield the lines of an evidence document or a refusal."""
    if "refused" in document:
        yield f"refused: {document['refused']}" if "problems" in document else "refused"
        for problem in document.get("problems") or document["refused"]:
            yield f"  {problem['path']} {problem['message']}".replace("   ", "  ")
        return
    page = document.get("page")
    if page:
        total = page.get("total", f"at least {page.get('total_at_least')}")
        yield f"{page['returned']} of {total}, from {page['offset']}"
    if not document["found"]:
        yield f"nothing found; covered: {_inline(document['covered'])}"
    if cut := document.get("cut_off"):
        yield f"cut off: {cut['reason']} ({cut['limit']})"
    yield from _result(document["result"], 0)


def _result(node: Any, depth: int) -> Iterator[str]:
    pad = "  " * depth
    if isinstance(node, dict):
        if "lines" in node and "first" in node:
            yield f"{pad}{node.get('path') or node.get('artifact')}"
            for number, line in enumerate(node["lines"], start=node["first"]):
                yield f"{pad}{number:>6}  {safe(line)}"
            return
        if _is_table(node):
            yield f"{pad}{' | '.join(map(str, node['columns']))}"
            for row in node["rows"]:
                yield f"{pad}{' | '.join(_inline(value) for value in row)}"
            node = {k: v for k, v in node.items() if k not in ("columns", "rows")}
        for key, value in node.items():
            if key in ("provenance", "metadata"):
                continue
            if isinstance(value, dict | list) and value:
                yield f"{pad}{key}:"
                yield from _result(value, depth + 1)
            elif value not in ({}, [], None):
                yield f"{pad}{key}: {_inline(value)}"
    elif isinstance(node, list):
        for item in node:
            if isinstance(item, dict):
                yield from _item(item, depth)
            else:
                yield f"{pad}{_inline(item)}"
    else:
        yield f"{pad}{_inline(node)}"


def _item(item: dict[str, Any], depth: int) -> Iterator[str]:
    shown = {k: v for k, v in item.items() if k not in ("provenance", "metadata")}
    if all(not isinstance(value, dict | list) for value in shown.values()):
        yield "  " * depth + "  ".join(f"{k}={_inline(v)}" for k, v in shown.items())
    else:
        yield from _result(shown, depth)


def _is_table(node: Json) -> bool:
    columns = node.get("columns")
    return (
        isinstance(columns, list)
        and all(isinstance(name, str) for name in columns)
        and isinstance(node.get("rows"), list)
        and all(isinstance(row, list) for row in node["rows"])
    )


def _inline(value: Any) -> str:
    if isinstance(value, str):
        return one_line(value, 300)
    from ledger.canonical import to_bytes

    return one_line(to_bytes(value).decode("utf-8", "replace"), 300)


def report_markdown(report: Json) -> Iterator[str]:
    """Yield the lines of a report as Markdown."""
    yield f"# {_text(report['title'] or report['case_id'])}"
    yield ""
    if report["withheld"]:
        yield from _withheld(report["withheld"])
    diagnosis = report["diagnosis"]
    if report["needs"]:
        yield from _needs(report)
    if diagnosis is None:
        yield from _no_diagnosis(report)
        return
    yield from _diagnosis(report, diagnosis)
    yield from _judgement(diagnosis)
    if report["change_request"]:
        yield from _change_request(report["change_request"])
    yield from _citations(report["citations"])


def _withheld(withheld: Json) -> Iterator[str]:
    yield f"*A copy made for sharing: {withheld_text(withheld)}.*"
    yield ""


def _no_diagnosis(report: Json) -> Iterator[str]:
    if "diagnosis.concluded/1" in (report["withheld"] or {}).get("topics", ()):
        yield "The diagnosis is withheld."
        return
    yield "There is no diagnosis yet."
    yield ""
    where = f"position {report['position']}, revision {report['revision']}"
    yield f"State: {_text(report['standing'])} ({where}). Next: {_text(report['next'])}."
    yield ""
    considered = [
        f"{h['id']} **{h['state']}**: {_text(h['statement'])} {_text(h['notes'])}".rstrip()
        for h in report["hypotheses"]
    ]
    if considered:
        yield "## Considered so far"
        yield ""
        yield from (f"* {line}" for line in considered)
        yield ""


def _needs(report: Json) -> Iterator[str]:
    yield "## Information needed"
    yield ""
    for need in report["needs"]:
        yield f"* {_text(need['what'])} ({_text(need['why'])})"
    yield ""
    yield "Add it with `caseledger amend`, then `run` again."
    yield ""


def _diagnosis(report: Json, diagnosis: Json) -> Iterator[str]:
    words = spoken(diagnosis["outcome"]).capitalize()
    yield f"**{words}**, confidence {confidence(diagnosis['confidence'])}. "
    yield f"{_text(diagnosis['method'])}"
    yield ""
    yield from _section("Symptom", [diagnosis["symptom"]])
    yield from _section("Cause", [diagnosis["cause"]])
    if diagnosis["mechanism"]:
        yield "## How it comes about"
        yield ""
        for number, step in enumerate(diagnosis["mechanism"], start=1):
            yield f"{number}. {_text(step['step'])}{_ids(step['evidence'])}"
        yield ""
    if diagnosis["locations"]:
        yield "## Where"
        yield ""
        for number, location in enumerate(diagnosis["locations"]):
            yield from _location(report, number, location)
    if diagnosis["data"]:
        yield "## In the data"
        yield ""
        for item in diagnosis["data"]:
            where = f"{item['database']} `{_code(item['table'])}`"
            said = f"{_text(item['rows'])}. {_text(item['meaning'])}"
            yield f"* {where}: {said}{_ids(item['evidence'])}"
        yield ""


def _location(report: Json, number: int, location: Json) -> Iterator[str]:
    function = f", `{_code(location['function'])}`" if location["function"] else ""
    lines = f"{location['first_line']}–{location['last_line']}"
    yield (
        f"{number + 1}. `{_code(location['path'])}`{function}, lines {lines} "
        f"({location['role']}): {_text(location['why'])}{_ids(location['evidence'])}"
    )
    for quote in report["quotes"]:
        if quote["location"] == number and number < 3:
            yield ""
            yield from _fenced(f"{line['line']:>5}  {line['text']}" for line in quote["lines"])
            if quote["omitted"]:
                yield f"   … {counted(quote['omitted'], 'more line')}"
    yield ""


def _judgement(diagnosis: Json) -> Iterator[str]:
    if diagnosis["hypotheses"]:
        yield "## What was considered"
        yield ""
        for item in diagnosis["hypotheses"]:
            pro, contra = _ids(item["evidence_for"]), _ids(item["evidence_against"])
            against = f" Against:{contra}" if contra else ""
            why = f"{_text(item['why'])}{pro}{against}"
            yield f"* {item['hypothesis']} **{item['verdict']}**: {why}"
        yield ""
    yield from _section("How sure", [diagnosis["confidence_reason"]])
    yield from _section("Still unknown", diagnosis["unknowns"], bullets=True)
    yield from _section("To check in production", diagnosis["checks"], bullets=True)


def _change_request(change: Json) -> Iterator[str]:
    yield f"## Change request: {_text(change['title'])}"
    yield ""
    yield _text(change["summary"])
    yield ""
    for item in change["changes"]:
        function = f", `{_code(item['function'])}`" if item["function"] else ""
        where = f"`{_code(item['path'])}`{function}, lines {item['first_line']}–{item['last_line']}"
        yield f"* {where}: {_text(item['what'])} {_text(item['why'])}{_ids(item['evidence'])}"
    yield ""
    tests = [f"{t['where']}: {t['arrange']} Expect: {t['expect']}" for t in change["tests"]]
    yield from _section("Tests to add", tests, bullets=True, level=3)
    repairs = [f"{r['what']} {r['why']}" for r in change["data_repair"]]
    yield from _section("Data repair", repairs, bullets=True, level=3)
    yield from _section("Risks", change["risks"], bullets=True, level=3)
    yield from _section("Done when", change["acceptance"], bullets=True, level=3)
    yield from _section("Out of scope", change["out_of_scope"], bullets=True, level=3)


def _citations(citations: Json) -> Iterator[str]:
    if not citations:
        return
    yield "## Cited"
    yield ""
    yield "`caseledger show CASE ID` shows each in full."
    yield ""
    for name, item in citations.items():
        if item.get("withheld"):
            yield f"* **{name}** {item['kind']}: withheld in this copy"
        elif item["kind"] == "evidence":
            found = "" if item["found"] else ", nothing found"
            asked = ", ".join(f"{k}: {_inline(v)}" for k, v in item["arguments"].items())
            yield f"* **{name}** {item['action']} `{_code(one_line(asked, 160))}`{found}"
        else:
            yield f"* **{name}** {item['kind']}: {_text(one_line(str(item['text']), 240))}"
    yield ""


def confidence(value: float) -> str:
    """Return a probability in words and number."""
    scale = ((0.85, "high"), (0.6, "fair"), (0.35, "low"))
    word = next((word for bound, word in scale if value >= bound), "very low")
    return f"{word} ({value:.0%})"


def _section(
    title: str, paragraphs: list[str], *, bullets: bool = False, level: int = 2
) -> Iterator[str]:
    if not paragraphs:
        return
    yield f"{'#' * level} {title}"
    yield ""
    for paragraph in paragraphs:
        yield f"{'* ' if bullets else ''}{_text(paragraph)}"
    yield ""


def _fenced(lines: Iterator[str]) -> Iterator[str]:
    yield "   ~~~~~text"
    for line in lines:
        yield f"   {safe(line)}"
    yield "   ~~~~~"


def _ids(names: list[str]) -> str:
    return f" [{', '.join(names)}]" if names else ""


def _text(text: str) -> str:
    """Return text of the case or a model as one paragraph in which Markdown and HTML do nothing."""
    plain = safe(" ".join(text.split()))
    spans = plain.split("`")
    if len(spans) % 2 and len(spans) > 1:  # paired: code spans, in which nothing acts
        return "`".join(s if n % 2 else _inert(s) for n, s in enumerate(spans))
    return _inert(plain)


def _inert(plain: str) -> str:
    return _AT_START.sub(r"\\\g<0>", _MARKUP.sub(r"\\\g<0>", plain))


def _code(text: str) -> str:
    return one_line(text, 300).replace("`", "'")
