"""What another encoding, or a cached prefix, would have saved: measure consolidation, cache."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tools.commands.options import Force, Json, flowing, given

measure = typer.Typer(
    name="measure",
    help="Measure saved cases: without network or key; the cases are only read.",
    no_args_is_help=True,
)

Cases = Annotated[
    list[str] | None,
    typer.Argument(metavar="CASE…", help="Cases or packages, or folders of them."),
]
Folder = Annotated[
    Path | None,
    typer.Option("--folder", metavar="DIR", help="Measure all packages and cases of a folder."),
]
Jobs = Annotated[
    int, typer.Option("--jobs", metavar="N", min=1, help="How many cases are measured at once.")
]
Csv = Annotated[
    Path | None,
    typer.Option("--csv", metavar="FILE", help="Also write the rows as CSV.", callback=given),
]
Jsonl = Annotated[
    Path | None,
    typer.Option(
        "--jsonl", metavar="FILE", help="Also write the rows as JSON lines.", callback=given
    ),
]
PerRequest = Annotated[
    bool, typer.Option("--per-request", help="Also print a row for each request.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    measure.command()(consolidation)
    measure.command(help=flowing(cache.__doc__ or ""))(cache)
    app.add_typer(measure)


def consolidation(
    cases: Cases = None,
    encoding: Annotated[
        str, typer.Option("--encoding", metavar="NAME", help="The encoding that is tried.")
    ] = "consolidated_v1",
    all_phases: Annotated[
        bool,
        typer.Option("--all-phases", help="Also measure phases that do not use it by default."),
    ] = False,
    folder: Folder = None,
    jobs: Jobs = 1,
    csv: Csv = None,
    jsonl: Jsonl = None,
    force: Force = False,
    per_request: PerRequest = False,
    json: Json = False,
) -> None:
    """Say how an encoding would change the size of saved requests; prove that it loses nothing."""
    from tools.many import find_cases
    from tools.measuring import Options, measure_consolidation

    options = Options(jobs, csv, jsonl, force, per_request, json)
    found = find_cases(cases or (), folder)
    measure_consolidation(found, encoding, options, every_phase=all_phases)


def cache(
    cases: Cases = None,
    package: Annotated[
        Path | None, typer.Option("--package", metavar="PACKAGE", help="One more package or case.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", metavar="REPORT.json", help="Also write the result as JSON.", callback=given
        ),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol",
            metavar="PROTOCOL",
            help="The investigation protocol that views are rebuilt with.",
        ),
    ] = "investigation_project_v11",
    partition: Annotated[
        str,
        typer.Option(
            "--partition", metavar="NAME", help="What divides a view into prefix and live input."
        ),
    ] = "stable_case_v1",
    folder: Folder = None,
    jobs: Jobs = 1,
    csv: Csv = None,
    jsonl: Jsonl = None,
    force: Force = False,
    per_request: PerRequest = False,
    json: Json = False,
) -> None:
    """Say how much of each saved investigation request a cached prefix would hold.

    Each view, what the model was shown, is divided into a prefix that stays the same from request
    to request and live input; it is proved that the two give the view again.
    """
    from tools.cache_measuring import measure_cache
    from tools.many import find_cases
    from tools.measuring import Options

    options = Options(jobs, csv, jsonl, force, per_request, json)
    found = find_cases([*(cases or ()), *([str(package)] if package else [])], folder)
    measure_cache(found, protocol, partition, options, output=output)
