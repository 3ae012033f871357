"""What a package holds beside the record: prompts, and derived files that `verify` can make again.

The record stays in `ledger`; rendering it is a matter for projections, and this joins the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import prompts
from ledger import canonical
from ledger.errors import CanonicalError, PackageRefused, PayloadWithheld
from ledger.events import RequestPrepared
from ledger.package import Package, verify_package
from ledger.reader import CaseReader, Head
from ledger.redacted import known_event
from ledger.verify import Finding, Report

FORMS = "derived/forms.json"
REPORT_FORM = 1
"""Number of the form of `derived/report.*`: raised with every change of their bytes, so that an
older package is not taken for an altered one."""

REQUESTS_FORM = 1


def prompt_members(reader: CaseReader) -> dict[str, bytes]:
    """Return package members `prompts/…` for every protocol that a case used and we know."""
    used = {prepared.protocol for prepared in _prepared(reader)}
    members: dict[str, bytes] = {}
    for name in sorted(used & set(prompts.protocols())):
        schema = prompts.card(name).schema
        for path, data in (prompts.prompt_file(name), prompts.schema_file(schema)):
            members[f"prompts/{path}"] = data
    return members


def derived_members(reader: CaseReader, *, requests: bool, report: bool) -> dict[str, bytes]:
    """Return package members `derived/…`: a pure function of the record.

    Args:
        reader: a record; what is withheld in a copy is left out.
        requests: every request document, as `saw` prints it.
        report: the report, as Markdown and as canonical JSON.
    """
    forms = {"report": REPORT_FORM} if report else {}
    forms |= {"requests": REQUESTS_FORM} if requests else {}
    members = {FORMS: _json(forms)} if forms else {}
    if report:
        members |= _report(reader)
    if requests:
        members |= _requests(reader)
    return members


def _json(value: object) -> bytes:
    return canonical.to_bytes(value) + b"\n"


def _report(reader: CaseReader) -> dict[str, bytes]:
    from tools.output import safe
    from tools.rendering import report_markdown
    from tools.reporting import report_json

    shown = report_json(reader)
    text = "".join(f"{safe(line)}\n" for line in report_markdown(shown))
    return {"derived/report.json": _json(shown), "derived/report.md": text.encode()}


def _requests(reader: CaseReader) -> dict[str, bytes]:
    members = {}
    for prepared in _prepared(reader):
        with suppress(PayloadWithheld):
            document = reader.payload(prepared.document.digest)
            members[f"derived/requests/{prepared.request}.json"] = document
    return members


def _prepared(reader: CaseReader) -> Iterator[RequestPrepared]:
    """Yield the requests, past events of a newer release."""
    for row in reader.rows():
        event = known_event(row)
        if isinstance(event, RequestPrepared):
            yield event


# Checking ---------------------------------------------------------------------------------------


def verify_whole(package: Package, sealed: Head | None = None) -> Report:
    """Check a package, its prompts and its derived files included."""
    report = verify_package(package, sealed)
    if report.ok:
        report.findings += _prompt_findings(package)
    if report.ok:
        _check_derived(package, report)
    return report


def require_verified(package: Package) -> None:
    """Refuse a package of which anything is not what its own events give.

    Raises:
        PackageRefused: one line with the first thing that is wrong.
    """
    report = verify_whole(package)
    if not report.ok:
        why = report.first_damage(package.path)
        raise PackageRefused(f"{package.path}: does not verify: {why}")


def _prompt_findings(package: Package) -> Iterator[Finding]:
    """Prompt files never change: one that we know has our bytes, or it was altered."""
    known = dict(_known_prompts())
    for name in package.members:
        if name.startswith("prompts/"):
            if name not in known:
                yield _unproved(name)
            elif package.member(name) != known[name]:
                yield _damage(f"{name} differs from the prompt of that name, which never changes")


def _known_prompts() -> Iterator[tuple[str, bytes]]:
    for name in prompts.protocols():
        for path, data in (
            prompts.prompt_file(name),
            prompts.schema_file(prompts.card(name).schema),
        ):
            yield f"prompts/{path}", data


def _check_derived(package: Package, report: Report) -> None:
    names = {name for name in package.members if name.startswith("derived/")}
    if not names:
        return
    forms = _forms(package)
    if isinstance(forms, str):
        report.damage(None, f"{FORMS} {forms}")
        return
    newer = {kind for kind, form in forms.items() if form > _OURS[kind]}
    made = forms.keys() - newer
    expected = derived_members(package, requests="requests" in made, report="report" in made)
    expected[FORMS] = _json(dict(sorted(forms.items())))
    for name in sorted(expected.keys() | names):
        if name not in names:
            report.damage(None, f"{name} is missing")
        elif name in expected:
            if package.member(name) != expected[name]:
                report.damage(None, f"{name} differs from what the events give")
        elif _kind(name) in newer:
            report.uncompared += 1
            report.warn(
                f"{name} has form {str(forms[_kind(name)])[:20]}, newer than form "
                f"{_OURS[_kind(name)]} of this release: not compared"
            )
        else:
            report.damage(None, f"{name} is not what any event gives")


_OURS = {"report": REPORT_FORM, "requests": REQUESTS_FORM}
_NEWEST = {"requests": REQUESTS_FORM}
"""Kinds that have no form but those up to this one, ever: the format page gives their bytes."""


def _kind(name: str) -> str:
    if name.startswith("derived/requests/"):
        return "requests"
    return "report" if name.startswith("derived/report.") else ""


def _forms(package: Package) -> dict[str, int] | str:
    """Return the forms of the derived files by kind, or what is wrong with what says them."""
    if FORMS not in package.members:
        return "is missing: it says what form the derived files have"
    try:
        forms = canonical.from_bytes(package.member(FORMS))
    except CanonicalError:
        forms = None
    if type(forms) is not dict or any(type(form) is not int for form in forms.values()):
        return "is not an object of kinds and numbers of forms"
    if not forms:
        return "names no kind of derived files"
    for kind, form in forms.items():
        if kind not in _OURS:
            return f"names the kind {kind[:80]!r}; there are {' and '.join(_OURS)}"
        if form < 1 or form > _NEWEST.get(kind, form):
            return f"gives {kind} the form {str(form)[:20]}; expected {_OURS[kind]}"
    return dict(forms)


def _damage(message: str) -> Finding:
    return Finding("damage", None, message)


def _unproved(name: str) -> Finding:
    return Finding("note", None, f"{name} is of another release: not compared")
