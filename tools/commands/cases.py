"""Taking cases in and looking after them: new, amend, act, cases, label, erase."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tools.commands.options import Case, Json, Note, given
from tools.exits import Declined, UserError

if TYPE_CHECKING:
    from phases.intake import IntakeRequest, Summary
    from tools.progress import Teller

Report = Annotated[Path, typer.Argument(metavar="REPORT", help="The bug report: Markdown or text.")]
Source = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="DIR|ARCHIVE|GIT@REV",
        help="The project's source: a folder, an archive, or a git repository at a revision.",
    ),
]
Logs = Annotated[
    list[Path] | None, typer.Option("--log", metavar="FILE", help="A log file; repeatable.")
]
Databases = Annotated[
    list[Path] | None, typer.Option("--db", metavar="FILE", help="An SQLite database; repeatable.")
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include",
        metavar="PATTERN",
        help="Take in source files that are skipped otherwise (gitignore form); repeatable.",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="PATTERN", help="Skip these source files too; repeatable."),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar="NAME",
        help="Name of the case in the cases folder; default: of the source, or the report's "
        "folder.",
    ),
]
CaseFile = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE.case",
        help="The file of the case; default: in the cases folder.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    for command in (new, amend, act, cases, label, erase):
        app.command()(command)


def new(
    report: Report,
    source: Source = None,
    log: Logs = None,
    db: Databases = None,
    include: Include = None,
    exclude: Exclude = None,
    name: Name = None,
    output: CaseFile = None,
    json: Json = False,
) -> None:
    """Take a case in: copy report, source, logs and databases into a new ledger."""
    request = intake_request(report, source, log, db, include, exclude)
    path = place(output, name, report, source)
    summary = take_in(path, request, quiet=json)
    _print_intake(path, summary, json)


def amend(
    case: Case,
    observation: Annotated[
        list[str] | None,
        typer.Option(
            "--observation",
            metavar="TEXT",
            help="A fact, in your words; repeatable.",
            callback=given,
        ),
    ] = None,
    log: Logs = None,
    db: Databases = None,
    note: Note = "",
    abandon: Annotated[
        bool,
        typer.Option(
            "--abandon",
            help="Give up a request that is not answered yet; without it the command refuses.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Add facts to a case: they make a new revision, which `run` then analyses."""
    from ledger.book import Book
    from phases.intake import IntakeRequest
    from phases.opening import amend_case
    from tools.progress import telling
    from tools.selecting import find_case_file

    path = find_case_file(case)
    request = IntakeRequest(
        report=None,
        source=None,
        logs=tuple(log or ()),
        databases=tuple(db or ()),
        observations=tuple(observation or ()),
    )
    with Book.open_for_writing(path) as book, telling(quiet=json) as tell:
        summary = amend_case(book, request, note=note, abandon=abandon, progress=_taking(tell))
    _print_intake(path, summary, json)


def act(
    case: Case,
    name: Annotated[
        str,
        typer.Argument(metavar="ACTION", help="Such as search_code; `list` prints all of them."),
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE…",
            help="Arguments of the action; a value that is JSON is read as JSON.",
        ),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Put the action and its result on the ledger.")
    ] = False,
    json: Json = False,
) -> None:
    """Take a read-only look by hand: the same actions that a model has, the same results."""
    from tools.acting import list_actions, perform_by_hand
    from tools.selecting import find_case_file

    if name == "list":
        list_actions(json)
    else:
        perform_by_hand(find_case_file(case), name, arguments or [], record, json)


def cases(json: Json = False) -> None:
    """List the cases of the cases folder with outcome, confidence, requests and cost."""
    from tools.output import print_json, table
    from tools.overview import rows
    from tools.selecting import SUFFIX, cases_folder

    found = [row for path in sorted(cases_folder().glob(f"*{SUFFIX}")) for row in rows(path)]
    if json:
        print_json([row.as_json() for row in found])
    else:
        columns = ["case", "state", "confidence", "requests", "cost", "events", "title"]
        table(columns, [row.cells() for row in found], one_line_a_row=True)


def label(
    case: Case,
    verdict: Annotated[str, typer.Argument(metavar="right|wrong|partly", help="Your verdict.")],
    note: Annotated[str, typer.Option("--note", help="In your words.", callback=given)] = "",
    json: Json = False,
) -> None:
    """Record a person's verdict on the diagnosis."""
    from typing import get_args

    from ledger.book import Book
    from ledger.events import OutcomeLabelled, Verdict
    from projections.folding import fold
    from tools.output import print_json, say
    from tools.selecting import find_case_file

    path = find_case_file(case)
    if verdict not in get_args(Verdict):
        raise UserError(f"{verdict}: a verdict is right, wrong or partly")
    with Book.open_for_writing(path) as book:
        if fold(book.events()).diagnosis is None:
            raise UserError("there is no diagnosis yet to be right or wrong; run the case first")
        event = OutcomeLabelled.model_validate(
            {"at": book.sources.now(), "verdict": verdict, "note": note}
        )
        head = book.append(event)
    if json:
        print_json({"case": str(path), "verdict": verdict, "position": head.position})
    else:
        say(f"recorded at position {head.position}: {verdict}")


def erase(
    case: Case,
    yes: Annotated[bool, typer.Option("--yes", help="Remove it without asking.")] = False,
    json: Json = False,
) -> None:
    """Remove a case and its anchor (FILE.case.head). Packages made of it stay."""
    from tools.erasing import check_is_case, erase_case
    from tools.output import print_json, say
    from tools.selecting import find_case_file

    path = find_case_file(case)
    check_is_case(path)
    if not yes:
        _confirm_removal(path)
    removed = [str(file) for file in erase_case(path)]
    if json:
        print_json({"removed": removed})
        return
    for file in removed:
        say(f"removed {file}")


def _confirm_removal(path: Path) -> None:
    import sys

    from tools.output import safe

    refusal = f"{path}: not removed; pass --yes"
    if not sys.stdin.isatty():
        raise UserError(refusal)
    sys.stderr.write(safe(f"Remove {path} for good? [y/N] "))
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Declined(refusal)


# What `analyze` shares -------------------------------------------------------------------------


def intake_request(
    report: Path,
    source: str | None,
    log: list[Path] | None,
    db: list[Path] | None,
    include: list[str] | None,
    exclude: list[str] | None,
) -> IntakeRequest:
    """Return what the options ask to take in."""
    from phases.intake import IntakeRequest

    return IntakeRequest(
        report=report,
        source=source,
        logs=tuple(log or ()),
        databases=tuple(db or ()),
        include=tuple(include or ()),
        exclude=tuple(exclude or ()),
    )


def take_in(path: Path, request: IntakeRequest, *, quiet: bool) -> Summary:
    """Create the case, showing progress; say so if there is no source to look into."""
    from phases.opening import open_case
    from tools.output import note
    from tools.progress import telling
    from tools.version import program

    with telling(quiet=quiet) as tell:
        summary = open_case(path, request, program=program(), progress=_taking(tell))
    if request.source is None:
        known = "the report, logs and databases" if request.logs or request.databases else ""
        note(f"  without --source the analysis can only read {known or 'the report'}")
    return summary


def place(output: Path | None, name: str | None, report: Path, source: str | None) -> Path:
    """Return the path of a new case: as asked for, else in the cases folder."""
    from tools.selecting import case_file, case_name

    given = case_name(name) if name else default_name(report, source)
    return case_file(output) if output else _place_for(given)


def _place_for(name: str) -> Path:
    """Return a path in the cases folder; a name that is taken gets a number."""
    from tools.selecting import SUFFIX, prepared_cases_folder

    folder = prepared_cases_folder()
    number, path = 1, folder / f"{name}{SUFFIX}"
    while path.exists():
        number += 1
        path = folder / f"{name}-{number}{SUFFIX}"
    return path


def default_name(report: Path, source: str | None) -> str:
    """Return a name for a case: the source's, else the folder of the report."""
    import re

    text = Path((source or "").rpartition("@")[0] or source or "").name
    if text in ("", "source", "src", "."):
        text = report.resolve().parent.name or "case"
    text = re.sub(r"\.(zip|whl|tgz|tar(\.\w+)?)$", "", text)
    return re.sub(r"[^\w.-]+", "-", text).strip("-.") or "case"


def _taking(tell: Teller) -> Callable[[str, int, int | None], None]:
    def progress(what: str, done: int, total: int | None) -> None:
        if done and done % 100 == 0:
            tell(f"taking in {what}: {done:,}{f' of {total:,}' if total else ''}")
        elif not done:
            tell(f"taking in {what}")

    return progress


def _print_intake(path: Path, summary: Summary, json: bool) -> None:
    from tools.output import print_json, say

    if json:
        shown: dict[str, Any] = {"case": str(path), **summary.as_json()}
        print_json(shown)
        return
    for line in summary.render():
        say(line)
    say(f"case: {path}")
