"""What another encoding, or a cached prefix, would have saved: measure consolidation, cache."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tools.commands.options import Force, Json

measure = typer.Typer(
    name="measure",
    help="Measure over saved cases: offline, without a key, nothing written back.",
    no_args_is_help=True,
)

Cases = Annotated[
    list[str] | None,
    typer.Argument(metavar="CASE…", help="Cases or packages, or folders of them."),
]
Folder = Annotated[
    Path | None, typer.Option("--folder", metavar="DIR", help="All packages and cases in it.")
]
Jobs = Annotated[int, typer.Option("--jobs", metavar="N", min=1, help="Processes at work.")]
Csv = Annotated[
    Path | None, typer.Option("--csv", metavar="FILE", help="Also write the rows as CSV.")
]
Jsonl = Annotated[
    Path | None, typer.Option("--jsonl", metavar="FILE", help="Also write the rows as JSON lines.")
]
PerRequest = Annotated[bool, typer.Option("--per-request", help="Also a row for each request.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    measure.command()(consolidation)
    measure.command()(cache)
    app.add_typer(measure)


def consolidation(
    cases: Cases = None,
    encoding: Annotated[str, typer.Option("--encoding", help="The candidate.")] = "consolidated_v1",
    all_phases: Annotated[
        bool, typer.Option("--all-phases", help="Also phases that do not use it by default.")
    ] = False,
    folder: Folder = None,
    jobs: Jobs = 1,
    csv: Csv = None,
    jsonl: Jsonl = None,
    force: Force = False,
    per_request: PerRequest = False,
    json: Json = False,
) -> None:
    """Project saved requests through an encoding: sizes before and after, restoration proved."""
    from tools.many import find_cases
    from tools.measuring import Options, measure_consolidation

    options = Options(jobs, csv, jsonl, force, per_request, json)
    found = find_cases(cases or (), folder)
    measure_consolidation(found, encoding, options, every_phase=all_phases)


def cache(
    cases: Cases = None,
    package: Annotated[
        Path | None, typer.Option("--package", metavar="PACKAGE", help="A package or case.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="REPORT.json", help="Also write a report.")
    ] = None,
    protocol: Annotated[
        str, typer.Option("--protocol", help="The investigation protocol views are rebuilt with.")
    ] = "investigation_project_v11",
    partition: Annotated[
        str, typer.Option("--partition", help="What divides the views.")
    ] = "stable_case_v1",
    folder: Folder = None,
    jobs: Jobs = 1,
    csv: Csv = None,
    jsonl: Jsonl = None,
    force: Force = False,
    per_request: PerRequest = False,
    json: Json = False,
) -> None:
    """Divide saved investigation views into a stable prefix and live input: sizes, proof."""
    from tools.cache_measuring import measure_cache
    from tools.many import find_cases
    from tools.measuring import Options

    options = Options(jobs, csv, jsonl, force, per_request, json)
    found = find_cases([*(cases or ()), *([str(package)] if package else [])], folder)
    measure_cache(found, protocol, partition, options, output=output)
