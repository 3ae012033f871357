"""The main job: analyze, run, status, report, view."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tools.commands import cases
from tools.commands.options import Case, Force, Json, Record, given
from tools.exits import UserError

Providers = Annotated[
    list[str] | None,
    typer.Option(
        "--provider",
        metavar="NAME",
        help="Who answers: offline, gemini or openai_compatible, each with :MODEL if you like, or "
        "recorded:CASE. Repeat it to name who takes over. Default: the setting `providers`.",
    ),
]
Until = Annotated[
    str,
    typer.Option(
        "--until",
        metavar="PHASE",
        help="Stop when this phase is done: entity_resolution, case_interpretation, hypotheses, "
        "investigation, diagnosis or change_request.",
    ),
]
MaxRequests = Annotated[
    int | None,
    typer.Option(
        "--max-requests",
        metavar="N",
        min=1,
        help="Stop after N requests of this run; each attempt counts, failed ones too.",
    ),
]
Protocols = Annotated[
    list[str] | None,
    typer.Option(
        "--protocol",
        metavar="PROTOCOL",
        help="Use this version of a phase's prompt (`prompts` lists them); repeatable. "
        "Default: the newest.",
    ),
]
NoEgress = Annotated[
    list[str] | None,
    typer.Option(
        "--no-egress",
        metavar="KIND",
        help="Keep source, log or db out of new requests to remote providers; repeatable.",
    ),
]
Format = Annotated[
    str, typer.Option("--format", metavar="md|json|html", help="How to print the report.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    for command in (analyze, run, status, report, view):
        app.command()(command)


def analyze(
    report: cases.Report,
    source: cases.Source = None,
    log: cases.Logs = None,
    db: cases.Databases = None,
    include: cases.Include = None,
    exclude: cases.Exclude = None,
    name: cases.Name = None,
    output: cases.CaseFile = None,
    provider: Providers = None,
    protocol: Protocols = None,
    no_egress: NoEgress = None,
    json: Json = False,
) -> None:
    """Take a case in, analyse it and print the report: new, run and report in one go."""
    from tools.output import note
    from tools.running import Wanted, check_wanted, run_case

    wanted = Wanted(provider or [], protocol or [], no_egress or [])
    check_wanted(wanted)
    request = cases.intake_request(report, source, log, db, include, exclude)
    path = cases.place(output, name, report, source)
    summary = cases.take_in(path, request, quiet=json)
    for line in summary.render():
        note(f"  {line}")
    note(f"  case: {path}")
    run_case(path, wanted, quiet=json)
    _print_report(str(path), "json" if json else "md")


def run(
    case: Case,
    provider: Providers = None,
    until: Until = "",
    max_requests: MaxRequests = None,
    protocol: Protocols = None,
    no_egress: NoEgress = None,
    add_budget: Annotated[
        list[str] | None,
        typer.Option(
            "--add-budget",
            metavar="WHAT=N",
            help="Raise a limit of the investigation: requests=N, actions=N or characters=N (of "
            "evidence); repeatable.",
        ),
    ] = None,
    resend: Annotated[
        bool,
        typer.Option(
            "--resend", help="Send a request again whose outcome is unknown after a crash."
        ),
    ] = False,
    renew: Annotated[
        bool,
        typer.Option(
            "--renew",
            help="Make a request that is prepared and not sent anew, by today's settings.",
        ),
    ] = False,
    preview: Annotated[
        bool,
        typer.Option(
            "--preview",
            help="Say what would leave this machine and what it may cost; send nothing.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Start the analysis, or go on from where it stands. It may be killed at any moment."""
    from tools.output import print_json, say, spoken
    from tools.running import Wanted, preview_run, run_case
    from tools.selecting import find_case_file

    wanted = Wanted(
        provider or [],
        protocol or [],
        no_egress or [],
        until=until,
        max_requests=max_requests,
        resend=resend,
        renew=renew,
        add_budget=add_budget or [],
    )
    path = find_case_file(case)
    if preview:
        shown = preview_run(path, wanted)
        if json:
            print_json(shown)
        else:
            for line in shown["lines"]:
                say(line)
        return
    stopped = run_case(path, wanted, quiet=json)
    if json:
        print_json({"case": str(path), "reason": stopped.reason, "detail": stopped.detail})
    else:
        say(f"{spoken(stopped.reason)}{': ' + stopped.detail if stopped.detail else ''}")
        say(f"caseledger report {path}")


def status(case: Record, json: Json = False) -> None:
    """Where one case stands: phase, hypotheses, budget, cost, next step."""
    from projections.folding import fold
    from tools.output import print_json, say
    from tools.overview import status_json, status_lines
    from tools.selecting import open_record

    with open_record(case) as record:
        shown = status_json(record, fold(record.events()))
    if json:
        print_json(shown)
        return
    for line in status_lines(shown):
        say(line)


def report(case: Record, format: Format = "md", json: Json = False) -> None:
    """Print diagnosis and change request, with citations that resolve."""
    _print_report(case, "json" if json else format)


def view(
    case: Record,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE.html",
            help="Default: a temporary file.",
            callback=given,
        ),
    ] = None,
    force: Force = False,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open it in the browser.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the whole case as one page in the browser: no scripts, nothing is loaded."""
    from tools.output import print_json, say
    from tools.viewing import open_page, write_page

    path = write_page(case, output, force=force)
    opened = not no_browser and not json and open_page(path)
    if json:
        print_json({"page": str(path)})
    else:
        say(f"{path}{'' if opened else ': open it in a browser'}")


def _print_report(case: str, form: str) -> None:
    from tools.output import print_json, raw, say
    from tools.rendering import report_markdown
    from tools.reporting import report_json
    from tools.selecting import open_record

    if form not in ("md", "json", "html"):
        raise UserError(f"--format {form}: a report is printed as md, json or html")
    with open_record(case) as record:
        if form == "html":
            from tools.pages import report_page

            raw(report_page(record).encode())
            return
        shown = report_json(record)
    if form == "json":
        print_json(shown)
        return
    for line in report_markdown(shown):
        say(line)
