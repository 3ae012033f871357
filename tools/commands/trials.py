"""A case at any moment, and what became of it elsewhere: replay, fork, diff, request explain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tools.commands.options import Json, Note, Record, flowing, possible
from tools.exits import AnswerIsNo

if TYPE_CHECKING:
    from ledger.book import Book
    from ledger.package import Package
    from tools.differing import Compared

request = typer.Typer(
    name="request", help="Say where the parts of a saved request come from.", no_args_is_help=True
)


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    for command in (replay, fork, diff):
        app.command(help=flowing(command.__doc__ or ""))(command)
    request.command()(explain)
    app.add_typer(request)


def replay(
    case: Record,
    at: Annotated[
        str,
        typer.Option("--at", metavar="N|R5", help="A position; R5: before R5's context was made."),
    ] = "head",
    step: Annotated[
        bool,
        typer.Option(
            "--step", help="Print every event up to there and what it changed in the state."
        ),
    ] = False,
    after: Annotated[
        int,
        typer.Option(
            "--after",
            metavar="N",
            min=0,
            help="With --step: begin after this position.",
            callback=possible,
        ),
    ] = 0,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Rebuild every request saved by then; exit 1 if one differs or none could be.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Show a case as it was at a position: its state, and what the model had seen by then.

    Everything comes from the record: no provider is asked, nothing is written.
    """
    from projections.replay import walk
    from tools import trials
    from tools.output import print_json, say
    from tools.positions import position_of
    from tools.sawing import is_denied
    from tools.selecting import open_record

    with open_record(case) as record:
        position = position_of(record, at)
        shown = trials.replayed(record, position)
        checks = trials.checks_upto(record, position) if check else []
        if json:
            moments = walk(record, position, after) if step else ()
            shown["steps"] = [trials.step_json(moment) for moment in moments] if step else None
            shown["checks"] = [item._asdict() for item in checks] if check else None
            print_json(shown)
        elif step:
            for moment in walk(record, position, after):
                say(trials.step_line(moment))
        else:
            for line in trials.replay_lines(shown):
                say(line)
        if check and not json:
            say(trials.checks_line(checks))
    if is_denied(checks):
        raise AnswerIsNo


def fork(
    case: Record,
    at: Annotated[
        str,
        typer.Option("--at", metavar="N|R5", help="A position; R5: before R5's context was made."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE.case",
            help="Default: NAME-fork-N.case in the cases folder.",
        ),
    ] = None,
    note: Note = "",
    json: Json = False,
) -> None:
    """Make a new ledger that shares a case's history up to a position, to go on differently.

    The rows up to there are copied as they are; then case.forked names the origin and gives the
    fork a trial of its own. The origin is not touched. `run` goes on from there, under the
    configuration and provider that it is given.

    Any position after the intake will do. A request that is open there is finished under the
    configuration it was made under: an answer that had arrived is read, one that had been sent for
    counts as unknown and goes out again (run.unknown_outcome). Inside a step, what the rest of that
    step recorded is not there, and `run` takes the step again. To ask R5 anew under another
    provider, protocol or budget, use --at R5.
    """
    from tools.output import print_json, say
    from tools.positions import position_of
    from tools.selecting import SUFFIX, case_file, find_case, open_record, prepared_cases_folder
    from tools.trials import fork_lines, fork_record

    with open_record(case) as record:
        position = position_of(record, at)
        name = f"{find_case(case).stem}-fork-{position}{SUFFIX}"
        target = case_file(output) if output else prepared_cases_folder() / name
        forked = fork_record(record, target, position, note)
    if json:
        print_json(forked)
    else:
        for line in fork_lines(forked):
            say(line)


def diff(
    case: Record,
    left: Annotated[
        str,
        typer.Argument(metavar="A|CASE2", help="A position, a request (R4), or another case."),
    ],
    right: Annotated[
        str | None,
        typer.Argument(metavar="B|CASE2", help="A position or request to compare A with."),
    ] = None,
    other: Annotated[
        str | None,
        typer.Argument(metavar="B", help="After CASE A CASE2: the position or request of CASE2."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Print every difference, and values in full.")
    ] = False,
    json: Json = False,
) -> None:
    """Compare two positions, two requests or two cases, by JSON path; exit 1 if they differ.

    `diff CASE 17 57` compares states, `diff CASE R4 R7` what the model saw, encoding and labels
    undone, `diff CASE CASE2` findings, requests, usage and configuration. `diff CASE R4 CASE2 R4`
    compares requests of two trials.
    """
    from tools.differing import compared_lines
    from tools.output import print_json, say
    from tools.selecting import open_record

    with open_record(case) as record:
        compared = _compared(record, left, right, other)
    if json:
        print_json(compared.as_json(full=full))
    else:
        for line in compared_lines(compared, full=full):
            say(line)
    if not compared.same:
        raise AnswerIsNo


def _compared(record: Book | Package, left: str, right: str | None, other: str | None) -> Compared:
    from tools.differing import compare, compare_cases
    from tools.selecting import open_record

    if right is not None and other is None:
        return compare(record, left, record, right)
    with open_record(left if right is None else right) as second:
        if other is None:
            return compare_cases(record, second)
        return compare(record, left, second, other)


def explain(
    case: Record,
    request: Annotated[str, typer.Argument(metavar="REQUEST", help="R5, or `last`.")] = "last",
    json: Json = False,
) -> None:
    """Say for each part of a request which events put it there, and what was left out and why."""
    from tools.explaining import explanation_lines, explanation_of
    from tools.output import print_json, say
    from tools.selecting import open_record

    with open_record(case) as record:
        explained = explanation_of(record, request)
    if json:
        print_json(explained.as_json())
    else:
        for line in explanation_lines(explained):
            say(line)
