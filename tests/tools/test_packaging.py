"""Five flat packages: nobody else has their names, and a bug's own source is never run for them."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

OURS = ("ledger", "projections", "phases", "prompts", "tools")
CASELEDGER = Path(sys.executable).with_name("caseledger")
TRAP = "from pathlib import Path\nPath({mark!r}).write_text(__name__)\n"
QUIET = [["--help"], ["log", "small"], ["verify", "small"], ["saw", "small"], ["run", "fresh"]]


def test_no_installed_distribution_has_one_of_our_names() -> None:
    owners = packages_distributions()
    for name in OURS:
        assert set(owners.get(name, ["caseledger"])) == {"caseledger"}, name


@pytest.fixture
def trapped(desk: Path) -> Path:
    """Return a folder that holds packages of our names and of libraries', which leave a mark."""
    for name in (*OURS, "typer", "rich", "pydantic", "json", "sqlite3"):
        package = desk / "evil" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(TRAP.format(mark=str(desk / "mark")))
    (desk / "evil" / "sitecustomize.py").write_text(TRAP.format(mark=str(desk / "mark")))
    return desk


def test_started_inside_hostile_source_the_program_runs_none_of_it(trapped: Path) -> None:
    folder = trapped / "evil"
    home = str(trapped / ".caseledger")
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"CASELEDGER_HOME": home}
    commands = [
        ["analyze", str(trapped / "report.md"), "--source", ".", "--db", str(trapped / "shop.db")],
        ["act", "small", "query_database", "sql=SELECT 1 AS one"],  # starts a child process
    ]
    for command in commands:
        done = subprocess.run(
            [CASELEDGER, *command], cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert not (trapped / "mark").exists()


def test_quiet_commands_never_import_the_client_of_a_remote_provider(desk: Path) -> None:
    program = (
        "import sys\n"
        "from tools.cli import run\n"
        f"codes = [run(command) for command in {QUIET!r}]\n"
        "loaded = {name for name in sys.modules if name.partition('.')[0] in ('google', 'httpx')}\n"
        "sys.stderr.write(f'{codes} {sorted(loaded)}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], cwd=desk, capture_output=True, text=True, check=True
    )
    assert done.stderr.endswith("[0, 0, 0, 0, 0] []")
