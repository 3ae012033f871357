"""One case as one file: export, import."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tools.commands.options import Case, Force, Json


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    app.command()(export)
    app.command(name="import")(import_)


def export(
    case: Case,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE.zip", help="Default: NAME.zip here."),
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write a portable package: deterministic bytes, readable with stock unzip."""
    from ledger import packing
    from tools.output import head_json, print_json, say
    from tools.packaging import prompt_members
    from tools.selecting import find_case, open_case

    path = find_case(case)
    target = output or Path(f"{path.stem}.zip")
    with open_case(str(path)) as book:
        identity = packing.write(book, target, extra=prompt_members(book), overwrite=force)
        head = book.head
    if json:
        print_json(
            {
                "package": str(target),
                "identity": identity,
                "bytes": target.stat().st_size,
                "head": head_json(head),
            }
        )
    else:
        say(f"{target}: {target.stat().st_size} bytes, {head.position} events, identity {identity}")
        say("It holds everything that was taken in: report, logs, source and databases.")


def import_(
    package: Annotated[Path, typer.Argument(metavar="FILE.zip", help="The package.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE.case", help="Default: in the cases folder."),
    ] = None,
    json: Json = False,
) -> None:
    """Rebuild the ledger of a package, with the same head; verified first."""
    from ledger.package import Package, restore
    from tools.output import head_json, print_json, say
    from tools.selecting import SUFFIX, case_file, prepared_cases_folder

    with Package(package) as opened:
        target = (
            case_file(output) if output else prepared_cases_folder() / f"{package.stem}{SUFFIX}"
        )
        head = restore(opened, target)
    if json:
        print_json(
            {
                "case": str(target),
                "head": head_json(head),
            }
        )
    else:
        say(f"{target}: {head.position} events, verified; head {head}")
