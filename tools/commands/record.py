"""Reading the record as it is: log, show, verify, seal, recover."""

from __future__ import annotations

import time
from fnmatch import fnmatchcase
from functools import partial
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tools.commands.options import Case, Json, Record, flowing, given, possible
from tools.exits import AnswerIsNo, NotAllChecked, UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ledger.book import Book
    from ledger.events import Event
    from ledger.package import Package
    from ledger.reader import Head
    from ledger.verify import Report
    from projections.saw import Check


NARROW = 96
"""Columns of a terminal below which position, time, topic and text do not fit on a line."""


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    for command in (log, show, verify, seal, recover):
        app.command(help=flowing(command.__doc__ or ""))(command)


def log(
    case: Record,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="TOPIC",
            help="Only events of this kind, such as `request`, `request.sent` or `cache.*`; "
            "repeatable.",
        ),
    ] = None,
    after: Annotated[
        int,
        typer.Option(
            "--after", metavar="N", min=0, help="Begin after this position.", callback=possible
        ),
    ] = 0,
    limit: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--limit",
            metavar="N",
            min=0,
            help="Only the first N; default: all.",
            callback=possible,
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Stay and print events as they come, until Ctrl-C."),
    ] = False,
    json: Json = False,
) -> None:
    """Print the timeline of a case: each event in a line, in order."""
    from tools.output import head_json, print_json, say
    from tools.selecting import open_record

    with open_record(case) as record:
        moments = islice(_matching(_moments(record, after, follow), kind or []), limit)
        if json and not follow:
            events = [_moment_json(moment) for moment in moments]
            head = head_json(record.head)
            print_json({"case_id": record.case_id, "head": head, "events": events})
            if not events:
                _remark_on_kinds(kind, limit)
            return
        found = False
        for moment in moments:
            found = True
            print_json(_moment_json(moment)) if json else say(_moment_line(moment))
        if not found:
            _remark_on_kinds(kind, limit)


def show(
    case: Record,
    what: Annotated[
        str,
        typer.Argument(
            metavar="POSITION|ID",
            help="A position, or the ID of an artefact (S1), observation (O2), hypothesis (H1), "
            "context (C4), request (R5), action (A7) or evidence (E12), or a payload's sha256:….",
        ),
    ],
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Write the payload's or observation's bytes, nothing else."),
    ] = False,
    json: Json = False,
) -> None:
    """Show one event or thing in full: observation, context, request, action, evidence, payload."""
    from tools.output import print_json
    from tools.output import raw as write_raw
    from tools.selecting import open_record

    with open_record(case) as record:
        shown, payload = _look_up(record, what)
        if raw:
            if payload is None:
                raise UserError(f"{what}: has no payload; leave --raw out to see the event")
            write_raw(_bytes_of(what, payload))
        elif json:
            print_json(shown | ({"content": _readable(payload)} if payload else {}))
        else:
            _print_thing(shown, payload)


def verify(
    case: Record,
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="POSITION:CHAIN", help="A head kept elsewhere (`seal`)."),
    ] = None,
    json: Json = False,
) -> None:
    """Check the record: chain, payloads, anchor, requests rebuilt.

    Exit 1 if it was altered, 3 if derived files have a form that only a newer release makes.
    """
    from tools.output import print_json

    report, checks = _verified(case, _parse_head(head) if head else None)
    if json:
        print_json(_report_json(report, checks))
    else:
        _print_report(report, checks)
    if not report.ok or any(check.state == "differs" for check in checks):
        raise AnswerIsNo
    if report.uncompared:
        raise NotAllChecked


def seal(case: Record, json: Json = False) -> None:
    """Print the head, POSITION:CHAIN, to keep elsewhere: `verify --head` compares with it later."""
    from ledger.book import Book
    from ledger.checks import compare_with_anchor
    from tools.output import head_json, print_json, say
    from tools.selecting import open_record

    with open_record(case) as record:
        if isinstance(record, Book) and (problem := compare_with_anchor(record, record.anchor())):
            raise problem
        if json:
            print_json({"case_id": record.case_id, "head": head_json(record.head)})
        else:
            say(str(record.head))


def recover(
    case: Case,
    accept_head: Annotated[
        bool, typer.Option("--accept-head", help="Go on although the head differs from its anchor.")
    ] = False,
    reason: Annotated[
        str, typer.Option("--reason", help="Why, for the record.", callback=given)
    ] = "",
    json: Json = False,
) -> None:
    """Say whether the head differs from its anchor; with --accept-head, go on from it.

    The anchor (FILE.case.head) holds the latest position and chain hash that were acknowledged. A
    head that differs from it means that events are lost or were altered; --accept-head puts on the
    record that the case goes on without them. They stay lost.
    """
    from ledger.book import Book
    from tools.output import print_json, say
    from tools.selecting import find_case_file

    path = find_case_file(case)
    if not accept_head:
        with Book.open_for_writing(path) as book:
            state = f"{path}: nothing to recover, the head is {book.head}"
        print_json({"accepted": None}) if json else say(state)
        return
    accepted = Book.recover(path, reason=reason)
    if json:
        print_json({"accepted": accepted.model_dump(mode="json") if accepted else None})
    elif accepted is None:
        say(f"{path}: nothing to accept, the ledger agrees with its anchor")
    else:
        say(
            f"{path}: accepted position {accepted.position}; "
            f"the anchor knew {accepted.anchor_position}. Recorded as head.accepted."
        )


# What they share --------------------------------------------------------------------------------


class _Moment(NamedTuple):
    """A place of the ledger; `event` is None where it is withheld in this copy."""

    position: int
    topic: str
    event: Event | None


def _moments(record: Book | Package, after: int, follow: bool) -> Iterator[_Moment]:
    from ledger.book import Book

    yield from _so_far(record, after)
    position = max(after, record.head.position)
    while follow and isinstance(record, Book):
        time.sleep(0.3)
        record.refresh()
        yield from _so_far(record, position)
        position = max(position, record.head.position)


def _so_far(record: Book | Package, after: int) -> Iterator[_Moment]:
    """Yield events in order, withheld ones in their places."""
    from tools.sharing import hidden_rows

    shown = (_Moment(n, event.TOPIC, event) for n, event in record.events(after=after))
    hidden = [_Moment(n, row.topic, None) for n, row in hidden_rows(record, after=after).items()]
    return merge(shown, hidden, key=attrgetter("position"))


def _matching(moments: Iterator[_Moment], kinds: list[str]) -> Iterator[_Moment]:
    for moment in moments:
        topic = moment.topic.partition("/")[0]
        noun = topic.partition(".")[0]
        if not kinds or any(kind == noun or fnmatchcase(topic, kind) for kind in kinds):
            yield moment


def _moment_line(moment: _Moment) -> str:
    """Return an event as a line; for a narrow terminal, what happened stands below its time."""
    from projections.timeline import line
    from tools.output import indented, one_line, terminal_width

    event, topic = moment.event, moment.topic.partition("/")[0]
    at = event.at.replace("T", " ")[:23] if event else ""
    text = one_line(line(event), 160) if event else "withheld"
    width = terminal_width()
    if width is not None and width < NARROW:
        return f"{moment.position:>5}  {at}\n{indented(f'{topic}  {text}', width, ' ' * 7)}"
    return f"{moment.position:>5}  {at:<23}  {topic:<24} {text}"


def _moment_json(moment: _Moment) -> dict[str, Any]:
    if moment.event is None:
        return {"position": moment.position, "topic": moment.topic, "withheld": True}
    return _as_json(moment.position, moment.event)


def _remark_on_kinds(kinds: list[str] | None, limit: int | None) -> None:
    from tools.output import note

    if kinds and limit != 0:
        note(f"no event of kind {', '.join(kinds)}; kinds are topics such as request.sent")


def _as_json(position: int, event: Event) -> dict[str, Any]:
    return {
        "position": position,
        "topic": event.TOPIC,
        **event.model_dump(mode="json", exclude_defaults=True),
    }


def _look_up(
    record: Book | Package, what: str
) -> tuple[dict[str, Any], Callable[[], bytes | str] | None]:
    """Return what a position, ID or digest names, as JSON, and how to get its payload or text."""
    from ledger.events import ObservationsExtracted
    from projections.naming import find
    from projections.wording import counted
    from tools.sharing import hidden_rows

    if what.startswith("sha256:"):
        if all(digest != what for digest, _ in record.stored_payloads()):
            raise UserError(f"{what}: no such payload in this case")
        return {"digest": what}, partial(record.payload, what)
    if what.isdecimal():
        return _at_position(record, what), None
    thing = find(record.events(), what)
    if thing is None:
        hidden = len(hidden_rows(record))
        more = f"; {counted(hidden, 'event')} withheld in this copy" if hidden else ""
        raise UserError(f"{what}: no such ID in this case; `log` lists what there is{more}")
    shown = {"id": thing.id, **_as_json(thing.position, thing.event)}
    if thing.value is not None:
        shown = {"id": thing.id, "position": thing.position, **thing.value}
    if isinstance(thing.event, ObservationsExtracted):
        return shown, partial(_observed, record, thing.id)
    return shown, partial(record.payload, thing.payload.digest) if thing.payload else None


def _observed(record: Book | Package, name: str) -> str:
    """Return the lines of the report or log that an observation names."""
    from ledger.errors import PayloadWithheld
    from projections.contexts.parts import observation_texts
    from projections.folding import fold

    try:
        return observation_texts(fold(record.events()), record)[name]
    except KeyError:
        raise PayloadWithheld(f"{name}: its text is withheld in this copy") from None


def _at_position(record: Book | Package, what: str) -> dict[str, Any]:
    from tools.sharing import hidden_rows

    position = int(what[:19])
    entry = next(record.events(position, after=position - 1), None)
    if entry is not None and len(what) <= 19:
        return _as_json(*entry)
    row = hidden_rows(record, position, after=position - 1).get(position)
    if row is None:
        raise UserError(f"{what}: the ledger ends at position {record.head.position}")
    return _moment_json(_Moment(position, row.topic, None)) | {
        "leaf": row.leaf().hex(),
        "chain": row.chain.hex(),
    }


def _bytes_of(what: str, payload: Callable[[], bytes | str]) -> bytes:
    from ledger.errors import PayloadWithheld

    try:
        data = payload()
        return data.encode() if isinstance(data, str) else data
    except PayloadWithheld:
        raise PayloadWithheld(f"{what}: its payload is withheld in this copy") from None


def _readable(payload: Callable[[], bytes | str]) -> Any:
    """Return a payload as the JSON value it is, else as text, else as base64; or that it is not
    there.
    """
    import base64

    from ledger.canonical import from_bytes
    from ledger.errors import CanonicalError, PayloadWithheld

    try:
        data = payload()
        return data if isinstance(data, str) else from_bytes(data)
    except PayloadWithheld:
        return {"withheld": True}
    except CanonicalError:
        pass
    assert isinstance(data, bytes)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _print_thing(shown: dict[str, Any], payload: Callable[[], bytes | str] | None) -> None:
    from tools.output import say

    for line in _indented(shown):
        say(line)
    if payload is None:
        return
    say("")
    content = _readable(payload)
    for line in content.splitlines() if isinstance(content, str) else _indented(content):
        say(line)


def _indented(value: Any) -> list[str]:
    import json as standard  # for people only: indentation; nothing here is hashed or sent

    text = standard.dumps(value, ensure_ascii=False, indent=2)  # noqa: TID251
    return text.split("\n")


def _parse_head(text: str) -> Head:
    from ledger.reader import Head

    position, _, value = text.partition(":")
    try:
        head = Head(int(position), bytes.fromhex(value))
    except ValueError:
        head = Head(0, b"")
    if head.position < 1 or len(head.chain) != 32:
        raise UserError(f"--head {text}: expected POSITION:CHAIN as `seal` prints it")
    return head


def _verified(case: str, sealed: Head | None) -> tuple[Report, list[Check]]:
    """Return what the ledger says of itself, and every saved request rebuilt.

    Raises:
        LedgerError: the file cannot be read at all: another kind of file, or a newer format.
    """
    from ledger.book import Book
    from ledger.errors import LedgerDamaged, NewerFormat, NotALedger, NotAPackage, PackageRefused
    from ledger.package import Package
    from ledger.verify import Report, verify_book
    from tools.packaging import verify_whole
    from tools.selecting import find_case, is_zip

    path = find_case(case)
    try:
        if is_zip(path):
            with Package(path) as package:
                report = verify_whole(package, sealed)
                return report, _rebuilt(package, report)
        with Book.open(path) as book:
            report = verify_book(book, sealed)
            return report, _rebuilt(book, report)
    except NotAPackage as error:  # bad input where one is taken, and here what cannot be read
        raise NotALedger(str(error)) from None
    except (LedgerDamaged, PackageRefused) as error:
        if isinstance(error, NewerFormat):
            raise
        report = Report()
        report.damage(getattr(error, "position", None), str(error))
        return report, []


def _rebuilt(record: Book | Package, report: Report) -> list[Check]:
    """Return every saved request rebuilt; events that do not follow from each other are damage."""
    from ledger.errors import LedgerDamaged, UnknownEvent
    from projections.folding import fold
    from projections.saw import check_all

    if not report.ok:
        return []
    try:
        fold(record.events())
        return list(check_all(record))
    except LedgerDamaged as error:
        report.damage(error.position, str(error))
    except UnknownEvent:  # of a newer release; verification has said so
        pass
    return []


def _report_json(report: Report, checks: list[Check]) -> dict[str, Any]:
    from tools.output import head_json

    states = [check.state for check in checks]
    return {
        "ok": report.ok,
        "first_bad_position": report.first_bad_position,
        "head": head_json(report.head),
        "events": report.events,
        "payloads": report.payloads,
        "requests": {state: states.count(state) for state in ("same", "differs", "unchecked")},
        "withheld": {"events": report.withheld_events, "payloads": report.withheld_payloads},
        "uncompared": report.uncompared,
        "findings": [finding._asdict() for finding in report.findings]
        + [
            {"kind": "damage", "position": check.position, "message": check.detail}
            for check in checks
            if check.state == "differs"
        ],
    }


def _print_report(report: Report, checks: list[Check]) -> None:
    from projections.saw import WITHHELD
    from tools.output import say
    from tools.sharing import withheld_text

    for finding in report.findings:
        say(f"{finding.kind}: {finding.message}")
    if not report.ok and not report.events:  # it could not even be opened
        return
    if report.ok and (report.withheld_events or report.withheld_payloads):
        events, payloads = report.withheld_events, report.withheld_payloads
        say(f"redacted: {withheld_text({'events': events, 'payloads': payloads})}")
    for check in checks:
        if check.state != "same" and check.detail != WITHHELD:
            say(f"{check.request} {check.state}: {check.detail}")
    counts = (
        f"{report.events} events, {report.payloads} payloads{_rebuilt_text(checks)}, "
        f"head {report.head}"
    )
    if any(check.state == "differs" for check in checks):
        say(f"differs: {counts}")
    elif report.ok and report.uncompared:
        say(f"ok but for {report.uncompared} derived files that were not compared: {counts}")
    elif report.ok:
        say(f"ok: {counts}")
    else:
        where = report.first_bad_position
        say(f"damaged{f' at position {where}' if where else ''}: {counts}")


def _rebuilt_text(checks: list[Check]) -> str:
    from projections.saw import WITHHELD

    if not checks:
        return ""
    same = sum(check.state == "same" for check in checks)
    hidden = sum(check.detail == WITHHELD for check in checks)
    unchecked = f" ({hidden} unchecked: what they need is withheld)" if hidden else ""
    return f", {same} of {len(checks)} requests rebuilt byte for byte{unchecked}"
