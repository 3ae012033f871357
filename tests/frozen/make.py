"""Makes packages of analysed cases that every later release must rebuild byte for byte.

    .venv/bin/python -P tests/frozen/make.py NAME [--protocol PROTOCOL]… [--until PHASE] [--gemini]

NAME is `example` or a case of tests/cases. The package is written to tests/frozen/cases/ under the
name and the pinned protocols, with the digests of its requests beside it; what is there already is
never replaced. Then `tools/freeze.py list` adds both to FROZEN.sha256.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(__file__).parent / "cases"
CASELEDGER = Path(sys.executable).parent / "caseledger"


def material(name: str, scratch: Path) -> list[str]:
    """Return the arguments that take a case in."""
    if name == "example":
        folder = ROOT / "docs" / "examples" / "parcel-returns"
        databases = [folder / "db" / "app.db"]
    else:
        folder = ROOT / "tests" / "cases" / name
        subprocess.run([sys.executable, "-B", folder / "make_db.py"], cwd=scratch, check=True)
        databases = sorted(scratch.rglob("*.db"))
    options = ["--source", folder / "source"]
    options += [part for log in sorted((folder / "logs").iterdir()) for part in ("--log", log)]
    options += [part for db in databases for part in ("--db", db)]
    return [str(folder / "report.md"), *map(str, options)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name")
    parser.add_argument("--protocol", action="append", default=[])
    parser.add_argument("--until", default="")
    parser.add_argument("--max-requests", default="")
    parser.add_argument("--gemini", action="store_true", help="ask the local Gemini server")
    options = parser.parse_args()
    suffix = "".join(f"-{protocol.rpartition('_')[2]}" for protocol in options.protocol)
    suffix += f"-until-{options.until}" if options.until else ""
    suffix += f"-{options.max_requests}-requests" if options.max_requests else ""
    suffix += "-gemini" if options.gemini else ""
    target = CASES / f"{options.name}{suffix}.zip"
    if target.exists():
        raise SystemExit(f"{target.name} is frozen; it is never made again")
    with tempfile.TemporaryDirectory() as scratch:
        ledger = Path(scratch) / "frozen.case"
        _run("new", *material(options.name, Path(scratch)), "-o", str(ledger))
        pins = [part for protocol in options.protocol for part in ("--protocol", protocol)]
        stops = ["--until", options.until] if options.until else []
        stops += ["--max-requests", options.max_requests] if options.max_requests else []
        if options.gemini:
            _run_gemini("run", str(ledger), *pins, *stops)
        else:
            _run("run", str(ledger), *pins, *stops)
        _run("export", str(ledger), "-o", str(target))
        checks = json.loads(_run("saw", str(target), "all", "--check", "--json"))
    digests = {check["request"]: check["saved"] for check in checks}
    assert all(check["state"] == "same" for check in checks), checks
    target.with_suffix(".json").write_text(json.dumps(digests, indent=1) + "\n")
    print(f"{target.name}: {len(digests)} requests, {target.stat().st_size} bytes")
    return 0


def _run_gemini(*arguments: str) -> None:
    """Run with the native API, the offline analyst answering behind the local server."""
    from tests.gemini.analyst import Analyst
    from tests.gemini.server import GeminiServer

    with GeminiServer() as server:
        server.responder = Analyst()
        os.environ |= {"GEMINI_API_KEY": server.key, "CASELEDGER_GEMINI__BASE_URL": server.url}
        _run(*arguments, "--provider", "gemini:gemini-2.5-flash")


def _run(*arguments: str) -> str:
    done = subprocess.run([CASELEDGER, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
