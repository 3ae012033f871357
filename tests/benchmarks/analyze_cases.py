"""Analyses case folders with the offline analyst and compares the diagnoses with the truth.

    .venv/bin/python -P tests/benchmarks/analyze_cases.py CASES MATERIALISED [--only NAME…]

CASES holds one folder a case with truth.json; MATERIALISED holds, under the same names, report.md,
source/, logs/ and db/ as they are taken in. Prints one row a case: requests, actions, CPU seconds,
megabytes of the ledger, rank of the first faulty file in the diagnosis, verify and saw --check.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CASELEDGER = Path(sys.executable).parent / "caseledger"


def analyse(case: Path, material: Path, out: Path) -> dict:
    """Run one case in processes of its own; return its row."""
    ledger = out / f"{case.name}.case"
    ledger.unlink(missing_ok=True)
    command = [CASELEDGER, "analyze", material / "report.md", "-o", ledger, "--json"]
    command += ["--source", material / "source"]
    for option, folder in (("--log", "logs"), ("--db", "db")):
        for path in sorted((material / folder).glob("*")) if (material / folder).is_dir() else ():
            command += [option, path]
    done, cpu = _timed(command)
    row = {"case": case.name, "exit": done.returncode, "cpu_s": round(cpu, 1)}
    if done.returncode:
        return row | {"error": done.stderr.strip().splitlines()[-1:]}
    report = json.loads(done.stdout)
    truth = json.loads((case / "truth.json").read_text())
    status = json.loads(_run([CASELEDGER, "status", ledger, "--json"]).stdout)
    paths = list(dict.fromkeys(item["path"] for item in report["diagnosis"]["locations"]))
    ranks = [n for n, path in enumerate(paths, 1) if _hits(path, truth["files"])]
    functions = [f"{item['path']}::{item['function']}" for item in report["diagnosis"]["locations"]]
    return row | {
        "requests": status["requests"],
        "actions": status["spent"]["actions"],
        "mb": round(ledger.stat().st_size / 1e6, 2),
        "outcome": report["diagnosis"]["outcome"],
        "confidence": report["diagnosis"]["confidence"],
        "rank": ranks[0] if ranks else None,
        "function": _function_rank(functions, truth.get("functions", [])),
        "verify": _run([CASELEDGER, "verify", ledger]).returncode == 0,
        "saw": _run([CASELEDGER, "saw", ledger, "all", "--check"]).returncode == 0,
        "first": paths[0] if paths else "",
        "ended": report["ended"],
    }


def _hits(path: str, files: list[str]) -> bool:
    return any(
        path == file or path.endswith("/" + file) or file.endswith("/" + path) for file in files
    )


def _function_rank(found: list[str], wanted: list[str]) -> int | None:
    for rank, name in enumerate(found, 1):
        path, _, function = name.partition("::")
        for truth in wanted:
            file, _, target = truth.partition("::")
            if (
                function
                and _hits(path, [file])
                and function.split(".")[-1] == target.split(".")[-1]
            ):
                return rank
    return None


def _timed(command: list) -> tuple[subprocess.CompletedProcess, float]:
    script = (
        "import resource,subprocess,sys;"
        "d=subprocess.run(sys.argv[1:],capture_output=True,text=True);"
        "u=resource.getrusage(resource.RUSAGE_CHILDREN);sys.stdout.write(d.stdout);"
        "sys.stderr.write(d.stderr+'\\n'+str(u.ru_utime+u.ru_stime));sys.exit(d.returncode)"
    )
    done = _run([sys.executable, "-P", "-c", script, *command])
    *lines, cpu = done.stderr.split("\n")
    done.stderr = "\n".join(lines)
    return done, float(cpu)


def _run(command: list) -> subprocess.CompletedProcess:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", type=Path)
    parser.add_argument("material", type=Path)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", type=Path, help="keep the ledgers here")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    cases = sorted(p.parent for p in options.cases.glob("*/truth.json"))
    cases = [c for c in cases if not options.only or c.name in options.only]
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.jobs) as pool:
        out = options.keep or Path(scratch)
        out.mkdir(parents=True, exist_ok=True)
        rows = list(pool.map(lambda c: analyse(c, options.material / c.name, out), cases))
    columns = [
        "case",
        "exit",
        "requests",
        "actions",
        "cpu_s",
        "mb",
        "rank",
        "function",
        "confidence",
    ]
    columns += ["outcome", "ended", "verify", "saw", "first"]
    for row in [dict(zip(columns, columns, strict=True)), *rows]:
        print("  ".join(str(row.get(c, "")).ljust(30 if c == "case" else 9) for c in columns))
    good = [row for row in rows if not row["exit"]]
    for bound in (1, 3, 5, 10):
        hits = sum(bool(row["rank"]) and row["rank"] <= bound for row in good)
        print(f"Acc@{bound}: {hits} of {len(rows)}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"peak memory of one process: {peak} MB")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if len(good) == len(rows) and all(r["verify"] and r["saw"] for r in good) else 1


if __name__ == "__main__":
    sys.exit(main())
