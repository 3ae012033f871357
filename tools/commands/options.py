"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

Case = Annotated[
    str, typer.Argument(metavar="CASE", help="Path, name, beginning of a name, or `last`.")
]
Record = Annotated[
    str,
    typer.Argument(
        metavar="CASE", help="Path of a case or package, name, beginning of a name, or `last`."
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document (docs/json-output.md).")
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that stands there.")]
