"""One case as one file: export, import."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tools.commands.options import Case, Force, Json, given
from tools.exits import UserError


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    app.command()(export)
    app.command(name="import")(import_)


def export(
    case: Case,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE.zip",
            help="Default: NAME.zip in this folder; NAME-redacted.zip with --redacted.",
            callback=given,
        ),
    ] = None,
    with_requests: Annotated[
        bool, typer.Option("--with-requests", help="Add every request as `saw` prints it.")
    ] = False,
    with_report: Annotated[
        bool, typer.Option("--with-report", help="Add the report, as Markdown and JSON.")
    ] = False,
    redacted: Annotated[
        bool,
        typer.Option(
            "--redacted",
            help="Make a copy for sharing: sources, logs and databases, or what --withhold names, "
            "are left out with all that quotes them. It still verifies; it cannot be imported.",
        ),
    ] = False,
    withhold: Annotated[
        list[str] | None,
        typer.Option(
            "--withhold",
            metavar="WHAT",
            help="Artefact S2, evidence E12, request R5, a kind (source, log, database, report, "
            "observation) or position #57; repeatable.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="ARTEFACT",
            help="Keep this artefact although it has lines in common with a withheld one.",
        ),
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write a case as one zip: the same case, the same bytes; `import` makes it a case again."""
    from tools.exporting import Wanted, export_case
    from tools.selecting import find_case_file

    if (withhold or keep) and not redacted:
        raise UserError("--withhold and --keep go with --redacted")
    path = find_case_file(case)
    name = f"{path.stem}{'-redacted' if redacted else ''}.zip"
    wanted = Wanted(with_requests, with_report, redacted, withhold or [], keep or [])
    export_case(path, output or Path(name), wanted, force=force, json=json)


def import_(
    package: Annotated[
        Path, typer.Argument(metavar="FILE.zip", help="A package that `export` wrote.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE.case", help="Default: in the cases folder."),
    ] = None,
    json: Json = False,
) -> None:
    """Make a case of a package again, with the same head; the package is verified first."""
    from tools.exporting import import_package
    from tools.output import head_json, print_json, say
    from tools.selecting import SUFFIX, case_file, prepared_cases_folder

    target = case_file(output) if output else None
    target = target or prepared_cases_folder() / f"{package.stem}{SUFFIX}"
    head = import_package(package, target)
    if json:
        print_json(
            {
                "case": str(target),
                "head": head_json(head),
            }
        )
    else:
        say(f"{target}: {head.position} events, verified; head {head}")
