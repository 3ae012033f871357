"""A case as one HTML page: no scripts, nothing loaded, everything of the case as text.

The report comes from its Markdown through markdown-it, which escapes HTML; all else is escaped
here. A content security policy forbids the page everything but its own style.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

from ledger.canonical import from_bytes
from ledger.errors import LedgerDamaged, PayloadWithheld
from ledger.reader import CaseReader
from projections.folding import fold
from projections.state import MALFORMED, Request, State, fault
from projections.timeline import line
from projections.wording import counted
from tools.output import money, one_line, safe, spoken
from tools.overview import status_json
from tools.rendering import evidence_lines, report_markdown
from tools.reporting import report_json
from tools.version import program

MOST_EVENTS = 20_000
MOST_LINES = 2_000
"""Lines of one evidence item on the page; `show` prints all."""

_BRACKETS = re.compile(r"\[((?:[A-Z]\d+)(?:, [A-Z]\d+)*)\]")
_CITED = re.compile(r"<li><strong>([A-Z]\d+)</strong>|<li>\n<p><strong>([A-Z]\d+)</strong>")
_ID = re.compile(r"[A-Z]\d+")

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --link: #0b57d0; }
@media (prefers-color-scheme: dark) { :root { --link: #8ab4f8; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
nav { position: sticky; top: 0; background: Canvas; padding: .5rem 0; z-index: 1; }
nav { border-bottom: 1px solid var(--line); display: flex; gap: 1rem; flex-wrap: wrap; }
a { color: var(--link); } h1 { line-height: 1.2; }
pre, code { font: 13px/1.45 ui-monospace, monospace; } code { background: var(--soft); }
pre { background: var(--soft); padding: .75rem; overflow-x: auto; } pre code { background: none; }
table { border-collapse: collapse; font-size: 14px; display: block; overflow-x: auto; }
td, th { border-bottom: 1px solid var(--line); padding: .2rem .6rem; text-align: left; }
td, th { vertical-align: top; } td.n { text-align: right; font-variant-numeric: tabular-nums; }
details { border: 1px solid var(--line); border-radius: 4px; margin: .4rem 0; }
details { padding: .3rem .6rem; } details pre { margin: .4rem 0; white-space: pre-wrap; }
summary { cursor: pointer; overflow-wrap: anywhere; } :target { outline: 2px solid var(--link); }
footer { margin-top: 3rem; font-size: 13px; opacity: .75; }
"""


def report_page(reader: CaseReader) -> str:
    """Return the report as a page."""
    report = report_json(reader)
    return _page(_title(report), [_report(report, anchors=True)], reader)


def case_page(reader: CaseReader) -> str:
    """Return the whole case as a page: report, state, what was seen, requests, timeline.

    Raises:
        LedgerDamaged: something in it is not of our making.
    """
    try:
        return _case_page(reader)
    except MALFORMED as error:
        raise LedgerDamaged(
            f"this case is not what a page can be made of ({fault(error)})"
        ) from None


def _case_page(reader: CaseReader) -> str:
    state = fold(reader.events())
    report = report_json(reader)
    parts = [
        _menu(),
        _section("report", "", _report(report, anchors=False)),
        _section("state", "State", _state(reader, state)),
        _section("material", "What was handed in", _material(report, state)),
        _section("evidence", "Evidence", "".join(_evidence(reader, state))),
        _section("requests", "Requests", _requests(reader, state)),
        _section("timeline", "Timeline", _timeline(reader)),
    ]
    return _page(_title(report), parts, reader)


def _title(report: Mapping[str, Any]) -> str:
    return one_line(report["title"] or report["case_id"], 200)


def _page(title: str, parts: Iterable[str], reader: CaseReader) -> str:
    head = reader.head
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
            *parts,
            f"<footer>Case {_text(reader.case_id)}, head {head.position} "
            f"<code>{head.chain.hex()}</code>, by {_text(program())}. "
            "Compare the head with one kept elsewhere: caseledger verify --head.</footer>",
            "</body>\n</html>\n",
        ]
    )


def _menu() -> str:
    names = ("report", "state", "material", "evidence", "requests", "timeline")
    return "<nav>" + "".join(f'<a href="#{n}">{n.capitalize()}</a>' for n in names) + "</nav>"


def _section(name: str, title: str, body: str) -> str:
    heading = f"<h2>{title}</h2>\n" if title else ""
    return f'<section id="{name}">\n{heading}{body}\n</section>'


def _report(report: Mapping[str, Any], *, anchors: bool) -> str:
    """Return the report; citations link to what they cite, on this page."""
    from markdown_it import MarkdownIt

    markdown = "\n".join(safe(text) for text in report_markdown(report))
    html = MarkdownIt("commonmark", {"html": False}).disable(["link", "image", "autolink"])
    body = str(html.render(markdown))
    known = set(report["citations"])
    body = _BRACKETS.sub(lambda found: f"[{_linked(found[1], known)}]", body)
    return _CITED.sub(lambda found: _cited(found, anchors=anchors), body)


def _linked(names: str, known: set[str]) -> str:
    return _ID.sub(
        lambda found: f'<a href="#{found[0]}">{found[0]}</a>' if found[0] in known else found[0],
        names,
    )


def _cited(found: re.Match[str], *, anchors: bool) -> str:
    name = found[1] or found[2]
    if anchors:
        return found[0].replace("<li>", f'<li id="{name}">')
    return found[0].replace(f"<strong>{name}</strong>", f'<a href="#{name}">{name}</a>')


def _state(reader: CaseReader, state: State) -> str:
    shown = status_json(reader, state)
    usage = shown["usage"]
    attempts = f"{counted(usage['attempts'], 'attempt')}, {usage['failed']} failed"
    rows = [
        ("State", shown["standing"]),
        ("Revision", shown["revision"]),
        ("Hypotheses", "; ".join(f"{h['id']} {h['state']}" for h in shown["hypotheses"])),
        (
            "Requests",
            f"{shown['requests']}, {attempts}",
        ),
        ("Evidence", shown["evidence"]),
        ("Cost", money(usage["cost_nano_usd"])),
        ("Next", shown["next"]),
    ]
    cells = "".join(f"<tr><th>{name}</th><td>{_text(value)}</td></tr>" for name, value in rows)
    return f"<table>{cells}</table>{''.join(_hypotheses(state))}"


def _hypotheses(state: State) -> Iterator[str]:
    for item in state.hypotheses.values():
        head = f"{item.id} {item.state}: {one_line(str(item.value['statement']), 200)}"
        yield _details(item.id, head, [str(item.value.get("mechanism", "")), item.notes])


def _material(report: Mapping[str, Any], state: State) -> str:
    artifacts = [
        _details(a.artifact, f"{a.artifact} {a.kind}: {a.name}", [a.media]) for a in state.artifacts
    ]
    facts = [
        _details(str(f["id"]), f"{f['id']} fact: {one_line(str(f['statement']), 160)}", [])
        for f in state.facts
    ]
    entities = [
        _details(str(n["id"]), f"{n['id']} entity: {one_line(str(n.get('name', '')), 160)}", [])
        for n in state.entities
    ]
    cited = [
        _details(name, f"{name} observation", [str(item.get("text", "withheld in this copy"))])
        for name, item in report["citations"].items()
        if name.startswith("O")
    ]
    return "".join([*artifacts, *cited, *entities, *facts])


def _evidence(reader: CaseReader, state: State) -> Iterator[str]:
    for item in state.evidence.values():
        action = state.actions.get(item.action)
        asked = f"{action.name} {dict(action.expanded)}" if action else item.kind
        found = "" if item.found else " (nothing found)"
        yield _details(item.id, f"{item.id} {one_line(asked, 200)}{found}", _content(reader, item))


def _content(reader: CaseReader, item: Any) -> list[str]:
    try:
        document = from_bytes(reader.payload(item.content.digest))
    except PayloadWithheld:
        return ["withheld in this copy"]
    lines = list(evidence_lines(document))
    if len(lines) > MOST_LINES:
        left = len(lines) - MOST_LINES
        lines = [
            *lines[:MOST_LINES],
            f"… {counted(left, 'more line')}: caseledger show CASE {item.id}",
        ]
    return ["\n".join(lines)]


def _requests(reader: CaseReader, state: State) -> str:
    rows = [_request(state, request) for request in state.requests.values()]
    names = ("request", "phase", "protocol", "attempts", "became", "document")
    return _table(names, rows)


def _request(state: State, request: Request) -> list[object]:
    asked = ", ".join(f"{a.provider} {a.status}" for a in request.attempts)
    return [
        request.id,
        spoken(request.phase),
        request.protocol,
        asked,
        request.status,
        f"{request.document.digest[:19]}… {request.document.size:,} bytes",
    ]


def _timeline(reader: CaseReader) -> str:
    rows: list[list[object]] = []
    for position, event in reader.events():
        if len(rows) == MOST_EVENTS:
            rows.append([f"{position}…", "", "more events: caseledger log CASE", ""])
            break
        topic = event.TOPIC.partition("/")[0]
        rows.append([position, event.at[:19].replace("T", " "), topic, one_line(line(event), 300)])
    return _table(("position", "time (UTC)", "event", ""), rows)


def _table(names: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = "".join(f"<th>{_text(name)}</th>" for name in names)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"


def _details(name: str, summary: str, texts: list[str]) -> str:
    anchor = f' id="{name}"' if _ID.fullmatch(name) else ""
    body = "".join(f"<pre>{_text(text)}</pre>" for text in texts if text)
    return f"<details{anchor}><summary>{_text(summary)}</summary>{body}</details>\n"


def _text(value: object) -> str:
    return escape(safe(str(value)))
