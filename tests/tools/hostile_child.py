"""Runs every reading command on every package of a folder, in little memory; prints what came out.

    python -P hostile_child.py FOLDER

One JSON document on stdout: package → command → code, lines of stdout and stderr, what was left.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import tempfile
from pathlib import Path

import typer

from tools import cli

MEMORY = 1_500_000_000
SECONDS = 120

COMMANDS = {
    "verify": ["verify", "@"],
    "import": ["import", "@", "-o", "out/imported.case"],
    "log": ["log", "@"],
    "show": ["show", "@", "1"],
    "report": ["report", "@"],
    "saw": ["saw", "@", "R1"],
    "status": ["status", "@"],
    "seal": ["seal", "@"],
}


class Stream(io.TextIOWrapper):
    """A text stream with a buffer below it, as stdout has."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="backslashreplace")

    def lines(self) -> list[str]:
        self.flush()
        return self.buffer.getvalue().decode().splitlines()  # type: ignore[attr-defined]


def attempt(package: Path, arguments: list[str]) -> dict[str, object]:
    out, err = Stream(), Stream()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.run([str(package) if part == "@" else part for part in arguments])
    left = [path for folder in ("out", "tmp") for path in Path(folder).rglob("*")]
    for path in left:
        path.unlink()
    names = sorted(path.name for path in left)
    return {"code": int(code), "out": out.lines(), "err": err.lines(), "left": names}


def main(folder: Path) -> None:
    # Built once: building it for each of some hundred calls would take longer than the calls.
    cli.app = typer.main.get_command(cli.app)  # type: ignore[assignment]
    packages = sorted(folder.glob("*.zip"))
    os.chdir(folder)
    Path("out").mkdir()
    Path("tmp").mkdir()
    tempfile.tempdir = str(Path("tmp").absolute())
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    found = {
        package.stem: {name: attempt(package, parts) for name, parts in COMMANDS.items()}
        for package in packages
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
