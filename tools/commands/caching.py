"""What remote caches did: cache ls, cache why."""

from __future__ import annotations

from typing import Annotated

import typer

from tools.commands.options import Json, Record

cache = typer.Typer(
    name="cache",
    help="Say what caches kept at a provider did, and why a request missed one: from the record.",
    no_args_is_help=True,
)


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    cache.command()(ls)
    cache.command()(why)
    app.add_typer(cache)


def ls(case: Record, json: Json = False) -> None:
    """List the caches kept at a provider, what they saved, and the decision of every attempt."""
    from tools.caching import decision_rows, list_lines, listed
    from tools.output import print_json, say, table
    from tools.selecting import open_record

    with open_record(case) as record:
        shown = listed(record)
    if json:
        print_json(shown)
        return
    if shown["decisions"]:
        columns = ["attempt", "decision", "reason", "outcome", "prompt", "cached"]
        table(columns, decision_rows(shown))
    for line in list_lines(shown):
        say(line)


def why(
    case: Record,
    request: Annotated[
        str, typer.Argument(metavar="REQUEST", help="R5; default: every attempt.")
    ] = "",
    json: Json = False,
) -> None:
    """Say why a request read a cache or did not: what the record shows, and at which position."""
    from tools.caching import explained, why_lines
    from tools.output import print_json, say
    from tools.selecting import open_record

    with open_record(case) as record:
        found = explained(record, request)
    if json:
        print_json(found)
        return
    for line in why_lines(found, one=bool(request)):
        say(line)
