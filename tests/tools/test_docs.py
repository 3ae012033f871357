"""What the documents say about the program is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

from phases.settings import Settings
from tools.cli import app
from tools.configuration import flat_values
from tools.exits import ExitCode

ROOT = Path(__file__).parents[2]
CLI = (ROOT / "docs/cli.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")


def commands() -> set[str]:
    return set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def every_command() -> dict[str, Any]:
    """Return commands and sub-commands (`measure consolidation`) by name."""
    found: dict[str, Any] = {}
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        found |= {f"{name} {n}": c for n, c in inner.items()} if inner else {name: command}
    return found


def section(title: str) -> str:
    return CLI.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def spans(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_every_command_is_in_the_list_and_nothing_else() -> None:
    listed = set()
    for line in section("Commands").splitlines():
        if line.startswith("| `"):
            listed |= {span.split()[0] for span in spans(line.split(" | ")[0])}
    assert listed == commands()


def test_every_exit_code_is_in_the_table_and_nothing_else() -> None:
    listed = {int(n) for n in re.findall(r"^\| (\d+) \|", section("Exit codes"), re.MULTILINE)}
    assert listed == {int(code) for code in ExitCode}


def test_every_setting_is_in_the_table_with_its_default() -> None:
    listed = dict(re.findall(r"^\| `([\w.]+)` \| (.+?) \|", section("Configuration"), re.MULTILINE))
    values = flat_values(Settings())
    assert set(listed) == set(values)
    for name, value in values.items():
        shown = ", ".join(value) if isinstance(value, list) else str(value or "none")
        assert listed[name].strip("`") == (shown or "none"), name


def test_every_option_that_a_document_mentions_exists() -> None:
    known = {
        option
        for command in every_command().values()
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    } | {"--help"}
    for text in (CLI, README):
        mentioned = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", text))
        assert mentioned <= known, mentioned - known


def console_lines() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def test_console_blocks_of_the_readme_mention_existing_commands_and_scripts_only() -> None:
    lines = console_lines()
    assert lines
    for line in lines:
        program, *rest = line.split()
        if program == "sh":
            assert (ROOT / rest[0]).is_file(), line
        else:
            assert program.rpartition("/")[2] == "caseledger", line
            assert rest[0] in commands(), line


def test_commands_in_the_readmes_table_exist() -> None:
    table = README.split("| you want to |", 1)[1].split("\n\n", 1)[0]
    for line in table.splitlines()[2:]:
        for span in spans(line.split(" | ")[1]):
            if not span.startswith("-"):
                assert span.split()[0] in commands(), span


def test_every_command_explains_itself() -> None:
    for name, command in every_command().items():
        assert command.help, name
        for parameter in command.params:
            assert getattr(parameter, "help", ""), (name, parameter.name)


def test_every_option_is_in_the_document() -> None:
    """Each long option, or its short form, stands in docs/cli.md."""
    written = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", CLI))
    for name, command in every_command().items():
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert written & set(parameter.opts), (name, parameter.opts)


def test_every_command_takes_json() -> None:
    for name, command in every_command().items():
        assert any("--json" in parameter.opts for parameter in command.params), name
