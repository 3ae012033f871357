"""Cases as tables for SQL: tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tools.commands.options import Force, Json, given


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    app.command()(tables)


def tables(
    cases: Annotated[
        list[str], typer.Argument(metavar="CASE…", help="Cases or packages, or folders of them.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE.db",
            help="The SQLite file to make.",
            callback=given,
        ),
    ],
    with_text: Annotated[
        bool,
        typer.Option(
            "--with-text/--no-text",
            help="Whether texts of cases, models and people go into the file.",
        ),
    ] = True,
    force: Force = False,
    json: Json = False,
) -> None:
    """Put cases into one SQLite file of tables and views, for SQL and Datasette."""
    from tools.many import find_cases
    from tools.tabulating import make_tables

    make_tables(find_cases(cases), output, words=with_text, force=force, json=json)
