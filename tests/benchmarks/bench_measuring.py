"""Measures `measure cache` over a folder of many packages: throughput, and memory by their number.

    python -P tests/benchmarks/bench_measuring.py PACKAGE.zip … [--packages 20 200] [--jobs 1 2]

The folder holds copies of the packages given, each under a name of its own. Memory is the highest
sum of resident pages of the command and its workers, looked at every 50 ms; with two processes what
they share is counted twice. The columns: packages, jobs, packages a second, packages a CPU second,
memory. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

COMMAND = Path(sys.executable).with_name("caseledger")
EVERY = 0.05


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row of docs/benchmarks.md for each number of packages and of jobs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("given", nargs="+", type=Path, metavar="PACKAGE.zip")
    parser.add_argument("--packages", nargs="+", type=int, default=[20, 200])
    parser.add_argument("--jobs", nargs="+", type=int, default=[1, 2])
    options = parser.parse_args(arguments)
    for number, jobs in itertools.product(options.packages, options.jobs):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            size = _fill(Path(folder), options.given, number)
            seconds, busy, memory = _measured(Path(folder), jobs)
        cells = [
            *(f"{number} packages, {size / 1e6:.0f} MB", str(jobs)),
            *(f"{number / seconds:.2f}", f"{number / busy:.2f}", f"{memory / 2**20:.0f} MiB"),
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


def _fill(folder: Path, given: Sequence[Path], number: int) -> int:
    """Copy packages in turn until there are enough; return their bytes."""
    size = 0
    for index, source in zip(range(number), itertools.cycle(given), strict=False):
        target = folder / f"{index:04}-{source.name}"
        shutil.copyfile(source, target)
        size += target.stat().st_size
    return size


def _measured(folder: Path, jobs: int) -> tuple[float, float, int]:
    """Run the command; return its seconds, CPU seconds and highest bytes in memory."""
    command = [COMMAND, "measure", "cache", "--folder", folder, "--jobs", str(jobs), "--json"]
    start, before, highest = time.perf_counter(), _busy(), 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            highest = max(highest, sum(map(_resident, _tree(process.pid))))
            time.sleep(EVERY)
    if process.returncode:
        raise SystemExit(f"the command ended with {process.returncode}")
    return time.perf_counter() - start, _busy() - before, highest


def _busy() -> float:
    """Return the CPU seconds of all children that have ended, their own included."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _tree(pid: int) -> list[int]:
    """Return a process and its descendants, as far as they still live."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(other for child in children for other in _tree(int(child)))]


def _resident(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS")), 0)


if __name__ == "__main__":
    main()
