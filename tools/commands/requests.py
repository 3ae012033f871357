"""What the model saw, and the words it was given: saw, prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tools.commands.options import Json, Record
from tools.exits import AnswerIsNo, UserError

if TYPE_CHECKING:
    from prompts import Card


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    for command in (saw, prompts):
        app.command()(command)


def saw(
    case: Record,
    request: Annotated[
        str, typer.Argument(metavar="REQUEST", help="R5, `last`, or `all` with --check.")
    ] = "last",
    decoded: Annotated[
        bool, typer.Option("--decoded", help="The view as JSON, with encoding and labels undone.")
    ] = False,
    wire: Annotated[
        bool,
        typer.Option(
            "--wire",
            help="The body that left this machine; a cache's content ID stands for its handle.",
        ),
    ] = False,
    at_attempt: Annotated[
        int | None,
        typer.Option("--at-attempt", metavar="N", help="The body of attempt N; default: the last."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Rebuild it and compare; exit 1 if one differs, or if none could be rebuilt.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Print exactly what the model saw: the archived bytes, digest checked."""
    from tools.output import note, print_json, say
    from tools.sawing import (
        check_remark,
        checks_of,
        decoded_view,
        document_of,
        is_denied,
        wire_of,
    )
    from tools.selecting import open_record

    with open_record(case) as record:
        if check:
            found = list(checks_of(record, request))
            if json:
                print_json([item._asdict() for item in found])
            else:
                for item in found:
                    say(f"{item.request} {item.state} {item.saved} {item.detail}".rstrip())
                note(check_remark(found))
            if is_denied(found):
                raise AnswerIsNo
            return
        if request == "all":
            raise UserError("`all` goes with --check; name one request to see it")
        if wire or at_attempt is not None:
            _write(wire_of(record, request, at_attempt))
        elif decoded:
            print_json(decoded_view(record, request))
        else:
            _write(document_of(record, request))


def _write(document: bytes) -> None:
    """Write exact bytes; to a terminal, which some of them could drive, as safe text."""
    import sys

    from tools.output import note, raw, say

    if sys.stdout.isatty():
        say(document.decode())
        note("shown for a terminal; pipe it to get the exact bytes")
    else:
        raw(document)


def prompts(
    protocol: Annotated[
        str | None, typer.Argument(metavar="PROTOCOL", help="Print the text of this one.")
    ] = None,
    json: Json = False,
) -> None:
    """List the versions of prompts and what each is used with, or print one prompt."""
    import prompts as words
    from tools.output import print_json, say, table

    if protocol:
        card = words.card(protocol)
        print_json(card._asdict()) if json else say(card.text)
        return
    cards = [words.card(name) for name in words.protocols()]
    if json:
        print_json([c._asdict() | {"newest": words.NEWEST.get(c.phase) == c.name} for c in cards])
        return
    columns = ["protocol", "phase", "view", "alias", "encoding", "partition", "schema"]
    rows = [
        [*(getattr(card, "name" if c == "protocol" else c) for c in columns), _newest(card)]
        for card in cards
    ]
    table([*columns, ""], rows)


def _newest(card: Card) -> str:
    import prompts as words

    return "newest" if words.NEWEST.get(card.phase) == card.name else ""
