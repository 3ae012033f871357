"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

_OPTION = re.compile(r"-[A-Za-z]|--[A-Za-z][\w-]*(=\S*)?")


def given(parameter: typer.CallbackParam, value: Any) -> Any:
    """Return the value of an option; refuse another option in its place: it was forgotten.

    Raises:
        typer.BadParameter: the value looks like an option.
    """
    for one in value if isinstance(value, list) else [value]:
        if one is not None and _OPTION.fullmatch(str(one)):
            name = parameter.opts[-1]
            raise typer.BadParameter(
                f"{one} is an option, not a value; what comes after {name} is missing",
                param_hint=f"'{name}'",
            )
    return value


_LAST = 2**62
"""No position is greater: what SQLite and `islice` take, with room to add one."""


def possible(value: int | None) -> int | None:
    """Return a position or number of events; refuse one that no ledger can have.

    Raises:
        typer.BadParameter: it is too large.
    """
    if value is not None and value > _LAST:
        raise typer.BadParameter("no ledger has so many events")
    return value


def flowing(text: str) -> str:
    """Return paragraphs as one line each: a terminal wraps them where it ends, not where we did."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


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
Note = Annotated[str, typer.Option("--note", help="Why, for the record.", callback=given)]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that stands there.")]
