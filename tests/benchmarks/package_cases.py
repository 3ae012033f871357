"""Real bugs of published packages, laid out for `caseledger evaluate`.

    .venv/bin/python -P tests/benchmarks/package_cases.py make DIR [--only NAME…] [--group first]
    .venv/bin/caseledger evaluate DIR -o RESULT.json --keep LEDGERS

tests/cases/packages holds reports, logs, databases and truths in our own words; `make` fetches the
releases themselves by name and version with pip and npm, takes them only if their SHA-256 is the
one of case.json, and unpacks them. Nothing of a release runs. A case that is there already stays
as it is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from phases.intake.limits import MIB

HERE = Path(__file__).parent
CASES = HERE.parent / "cases/packages"
CHILD = HERE / "fetch_child.py"
GROUPS = ("first", "second")

MAX_RELEASE = 64 * MIB
"""Bytes of a release; the largest has 24 MB."""

STUCK = 300
"""Seconds after which a download is given up."""

MAX_UNPACKED, MAX_FILES = 512 * MIB, 20_000
"""Bytes and members of a release, unpacked."""


class CaseError(Exception):
    """A case that cannot be made, said in one line."""


@dataclass(frozen=True)
class Release:
    """A published file, as case.json pins it."""

    ecosystem: str
    package: str
    version: str
    filename: str
    sha256: str
    group: str

    @classmethod
    def of(cls, case: Path) -> Release:
        found = json.loads((case / "case.json").read_text("utf-8"))
        return cls(**{name: found[name] for name in cls.__dataclass_fields__})


def cases(only: Sequence[str] = (), group: str = "") -> list[Path]:
    """Return the folders of the cases, by name.

    Raises:
        CaseError: there is no case of a name that was asked for.
    """
    found = sorted(path.parent for path in CASES.glob("*/case.json"))
    if missing := set(only) - {case.name for case in found}:
        raise CaseError(f"{min(missing)}: there is no such case in {CASES}")
    named = [case for case in found if not only or case.name in only]
    return [case for case in named if not group or Release.of(case).group == group]


def make(folder: Path, chosen: Sequence[Path], cache: Path) -> Iterator[str]:
    """Lay cases out; yield the name of each that was not there yet, when it is.

    Raises:
        CaseError: a release cannot be fetched, is another one, or cannot be unpacked.
    """
    for path in (folder, cache):
        path.mkdir(parents=True, exist_ok=True)
    for case in chosen:
        if not (folder / case.name).exists():
            lay_out(case, folder / case.name, cache)
            yield case.name


def lay_out(case: Path, target: Path, cache: Path) -> None:
    """Write the evaluation folder of a case, in whole or not at all."""
    archive = fetched(Release.of(case), cache)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{case.name}-") as work:
        made = Path(work) / case.name
        made.mkdir()
        for name in ("report.md", "truth.json"):
            shutil.copyfile(case / name, made / name)
        if (case / "console.log").exists():
            (made / "logs").mkdir()
            shutil.copyfile(case / "console.log", made / "logs/console.log")
        unpack(archive, made / "source")
        write_databases(case, made)
        made.replace(target)


def write_databases(case: Path, made: Path) -> None:
    """Copy the databases of a case, or let its own script write them into `db/`."""
    if (case / "db").is_dir():
        shutil.copytree(case / "db", made / "db")
    if (case / "make_db.py").exists():
        command = [sys.executable, "-P", str(case / "make_db.py")]
        subprocess.run(command, cwd=made, check=True, timeout=STUCK)


def unpack(archive: Path, target: Path) -> None:
    """Write what an archive (tar, compressed) holds, without its top folder.

    The intake's reader refuses a name that occurs twice; there are releases on npm that have one.

    Raises:
        CaseError: the archive is too large, damaged, none, or a member leads out of it.
    """
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        inside = Path(folder) / "all"
        try:
            with tarfile.open(archive) as tar:
                _bound(archive, (member.size for member in tar))
                tar.extractall(inside, filter="data")  # refuses what leads outside, and devices
        except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
            raise CaseError(f"{archive}: cannot be unpacked ({error})") from None
        tops = list(inside.iterdir())
        (tops[0] if len(tops) == 1 and tops[0].is_dir() else inside).rename(target)


def _bound(archive: Path, sizes: Iterable[int]) -> None:
    """Refuse an archive as soon as its members are more, or larger, than releases are."""
    for count, total in enumerate(accumulate(sizes), 1):
        if count > MAX_FILES or total > MAX_UNPACKED:
            raise CaseError(f"{archive}: unpacks to more than {MAX_UNPACKED:,} bytes")


# Releases --------------------------------------------------------------------------------------


def fetched(release: Release, cache: Path) -> Path:
    """Return the file of a release, downloaded if it is not there.

    Raises:
        CaseError: it cannot be fetched, or is not the file that is pinned.
    """
    wanted = cache / release.filename
    if not wanted.exists():
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            got = Path(folder) / release.filename
            said = _downloaded(release, got)
            if said or not got.exists():
                raise CaseError(
                    f"{release.filename}: cannot be fetched ({said or 'it has another name'}); "
                    f"is this machine online, and does its index have {release.package}?"
                )
            _check(got, release)
            got.replace(wanted)
    _check(wanted, release)
    return wanted


def _check(path: Path, release: Release) -> None:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != release.sha256:
        raise CaseError(
            f"{path}: is not the file that case.json pins (SHA-256 {found[:12]}…, not "
            f"{release.sha256[:12]}…); it was not used; if it is in the cache, delete it"
        )


def _downloaded(release: Release, target: Path) -> str:
    """Run the client of the release's index; return what it said went wrong, or ""."""
    if release.ecosystem == "npm":
        command = ["npm", "pack", "--loglevel=error", "--ignore-scripts", "--fetch-retries=1"]
        command += [f"{release.package}@{release.version}"]
    else:
        command = [sys.executable, "-P", str(CHILD), release.package, release.filename]
        command += [target.name, str(MAX_RELEASE)]
    try:
        ended = subprocess.run(
            command, cwd=target.parent, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", timeout=STUCK, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        return f"{command[0]} is not installed"
    except subprocess.TimeoutExpired:
        return f"no answer within {STUCK} s"
    lines = ended.stderr.strip().splitlines() or [f"{command[0]} ended with {ended.returncode}"]
    said = lines[0 if release.ecosystem == "npm" else -1]  # npm's further lines name its log
    return said[:300] if ended.returncode else ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    making = parser.add_subparsers(dest="command", required=True).add_parser("make")
    making.add_argument("folder", type=Path)
    making.add_argument("--only", nargs="*", default=[], metavar="NAME")
    making.add_argument("--group", choices=GROUPS, default="")
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    making.add_argument("--cache", type=Path, default=default / "caseledger-packages")
    asked: Any = parser.parse_args(arguments)
    try:
        chosen = cases(asked.only, asked.group)
        made = 0
        for name in make(asked.folder, chosen, asked.cache):
            print(name, flush=True)
            made += 1
    except CaseError as error:
        print(f"package_cases: {error}", file=sys.stderr)
        return 1
    print(f"{made} cases made, {len(chosen) - made} were there")
    return 0


if __name__ == "__main__":
    sys.exit(main())
