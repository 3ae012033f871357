"""The command line in this process, in a folder of its own, with cases made once."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from phases import providers
from tests.phases.scripting import make_case, write_inputs
from tools import cli


class Result(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Result]


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with `fresh.case`, `small.case` (analysed) and `small.zip`; do not change."""
    folder = tmp_path_factory.mktemp("home")
    fresh = make_case(folder, "fresh")
    for end in ("", ".head"):
        shutil.copyfile(f"{fresh}{end}", f"{folder / 'small.case'}{end}")
    before = dict(os.environ)
    os.environ["XDG_CONFIG_HOME"] = str(folder / "none")
    try:
        assert cli.run(["run", str(folder / "small.case"), "--json"]) == 0
        assert cli.run(["export", str(folder / "small.case"), "-o", str(folder / "small.zip")]) == 0
    finally:
        os.environ.clear()
        os.environ.update(before)
    return folder


@pytest.fixture
def desk(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with inputs and copies of the cases, nothing of this machine around."""
    for variable in [name for name in os.environ if name.startswith("CASELEDGER_")]:
        monkeypatch.delenv(variable)
    cases = tmp_path / ".caseledger"
    cases.mkdir()
    for name in ("fresh.case", "fresh.case.head", "small.case", "small.case.head"):
        shutil.copyfile(home / name, cases / name)
    shutil.copyfile(home / "small.zip", tmp_path / "small.zip")
    write_inputs(tmp_path)
    write_inputs(tmp_path / "bugs/cart")
    (tmp_path / "bugs/cart/truth.json").write_text('{"files": ["shop/cart.py"]}')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    table = {**providers._MODULES, "scripted": "tests.tools.scripted_provider"}
    monkeypatch.setattr(providers, "_MODULES", table)
    return tmp_path


@pytest.fixture
def call(desk: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command; return its code and what it printed."""

    def run(*arguments: str) -> Result:
        capsys.readouterr()
        code = cli.run(list(arguments))
        return Result(code, *capsys.readouterr())

    return run
