"""Scoring a provider, prompt or encoding on already fixed bugs: evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tools.commands.analysis import NoEgress, Protocols, Providers
from tools.commands.options import Json, given
from tools.exits import AnswerIsNo


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    app.command()(evaluate)


def evaluate(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Holds one folder for each case, with report, source and truth.json.",
        ),
    ],
    provider: Providers = None,
    protocol: Protocols = None,
    no_egress: NoEgress = None,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", min=1, help="How many cases are analysed at once.")
    ] = 1,
    truth: Annotated[
        Path | None,
        typer.Option(
            "--truth", metavar="DIR", help="Where NAME/truth.json is, if it is kept elsewhere."
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="Only this case; repeatable.")
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep", metavar="DIR", help="Keep the ledgers here; finished ones are not run again."
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against", metavar="FILE", help="Compare with an earlier result, written with -o."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Also write the result as JSON.",
            callback=given,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Analyse folders of already fixed bugs and score the diagnoses against what was fixed."""
    from tools.evaluating import Evaluation, evaluate
    from tools.output import print_json
    from tools.results import check_target, is_good, show, write
    from tools.running import Wanted

    if output:
        check_target(output)
    wanted = Wanted(provider or [], protocol or [], no_egress or [])
    asked = Evaluation(folder, wanted, truth, tuple(only or ()), jobs, keep, quiet=json)
    result = evaluate(asked, against)
    print_json(result) if json else show(result)
    if output:
        write(output, result)
    if not is_good(result):
        raise AnswerIsNo
