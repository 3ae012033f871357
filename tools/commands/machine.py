"""The machine and the configuration: doctor, config."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tools.commands.options import Json
from tools.exits import AnswerIsNo

if TYPE_CHECKING:
    from tools.diagnosis import Check


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    for command in (config, doctor):
        app.command()(command)


def config(json: Json = False) -> None:
    """Print every setting, its value and where the value came from."""
    from tools.configuration import effective, flat_values
    from tools.output import print_json, table

    found = effective()
    values = flat_values(found.settings)
    if json:
        print_json({n: {"value": v, "origin": found.origins[n]} for n, v in values.items()})
    else:
        table(
            ["setting", "value", "from"],
            [(n, _text(v), found.origins[n]) for n, v in values.items()],
        )


def doctor(
    provider: Annotated[
        list[str] | None,
        typer.Option(
            "--provider",
            metavar="NAME",
            help="Also ask this provider whether key, address and model are good, which costs "
            "nothing; repeatable.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Say what this machine lacks; exit 1 if something that is needed is missing."""
    from tools.diagnosis import examine, examine_provider
    from tools.output import print_json, table

    checks = examine()
    for name in provider or []:
        checks += examine_provider(name)
    if json:
        print_json({"ok": _all_well(checks), "checks": [check._asdict() for check in checks]})
    else:
        table(["check", "state", "detail"], checks)
    if not _all_well(checks):
        raise AnswerIsNo


def _all_well(checks: list[Check]) -> bool:
    return all(check.state != "missing" for check in checks)


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
