"""What another encoding would have saved: measure consolidation."""

from __future__ import annotations

from typing import Annotated

import typer

from tools.commands.options import Json

measure = typer.Typer(
    name="measure",
    help="Measure encodings over saved cases: offline, without a key, nothing written back.",
    no_args_is_help=True,
)


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    measure.command()(consolidation)
    app.add_typer(measure)


def consolidation(
    cases: Annotated[list[str], typer.Argument(metavar="CASE…", help="Cases or packages.")],
    encoding: Annotated[str, typer.Option("--encoding", help="The candidate.")] = "consolidated_v1",
    all_phases: Annotated[
        bool, typer.Option("--all-phases", help="Also phases that do not use it by default.")
    ] = False,
    per_request: Annotated[
        bool, typer.Option("--per-request", help="Also a row for each request.")
    ] = False,
    json: Json = False,
) -> None:
    """Project saved requests through an encoding: sizes before and after, restoration proved."""
    from tools.measuring import measure_consolidation

    measure_consolidation(
        cases, encoding, every_phase=all_phases, per_request=per_request, json=json
    )
