"""Cases for whole runs: the README's example, and two real bugs of published packages.

The packages are fetched by pip, pinned by hash, and never stored here; the reports are in our
words, after github.com/kiorky/croniter and github.com/simonw/sqlite-utils.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from phases.intake import IntakeRequest
from phases.opening import open_case
from tests.phases.scripting import ticking

EXAMPLE = Path(__file__).parents[4] / "docs/examples/parcel-returns"

LEAP_DAY = """# Scheduler crashes on 29 February

We have a leap-day job with the cron line `15 22 29 2 *`. On start the scheduler asks for the
previous run time. On the 29th of February 2024 the service could not be started at all, because
that question ends in an exception. It has worked on every other day, also with this job.

## Expected

2020-02-29 22:15 as the previous run.

## Observed

```
Traceback (most recent call last):
  File "/srv/app/run/repro.py", line 7, in <module>
    d = croniter("15 22 29 2 *", start).get_prev(datetime)
  File "/srv/app/venv/lib/python3/site-packages/croniter/croniter.py", line 204, in get_prev
    return self._get_next(ret_type or self._ret_type, is_prev=True)
  File "/srv/app/venv/lib/python3/site-packages/croniter/croniter.py", line 289, in _get_next
    result = self._calc(self.cur, expanded,
  File "/srv/app/venv/lib/python3/site-packages/croniter/croniter.py", line 563, in _calc
    raise CroniterBadDateError("failed to find prev date")
croniter.croniter.CroniterBadDateError: failed to find prev date
```

Asking for the next run works. Versions: croniter 2.0.1, Python 3.11.7.
"""

ACCENTS = """# Search does not find names with accents inside JSON columns

The table `contact` has a JSON column `address`. Old rows were written by a PHP importer, new rows
are inserted with sqlite-utils by passing a dict for `address`. A search such as
`address like '%Köln%'` finds only the old rows. In the new rows the umlaut is stored as an escape
sequence. A plain text column (`name`) of the same row is stored with its accent.

## Observed

```
found: [(2, 'Jörg', '{"city": "Köln", "zip": "50667"}')]
stored: {"city": "K\\u00f6ln", "zip": "50668"}
```

## Expected

Rows 2 and 10. Versions: sqlite-utils 3.6, Python 3.11.7.
"""


class Published(NamedTuple):
    """A release as its index has it."""

    requirement: str
    sha256: str


def example(folder: Path) -> IntakeRequest:
    return IntakeRequest(
        report=EXAMPLE / "report.md",
        source=str(EXAMPLE / "source"),
        logs=tuple(sorted((EXAMPLE / "logs").glob("*"))),
        databases=tuple(sorted((EXAMPLE / "db").glob("*"))),
    )


def leap_day(folder: Path) -> IntakeRequest:
    (folder / "report.md").write_text(LEAP_DAY)
    return IntakeRequest(
        report=folder / "report.md",
        source=str(
            fetched(
                Published(
                    "croniter==2.0.1",
                    "d199b2ec3ea5e82988d1f72022433c5f9302b3b3ea9e6bfd6a1518f6ea5e700a",
                ),
                folder,
            )
        ),
    )


def accents(folder: Path) -> IntakeRequest:
    (folder / "report.md").write_text(ACCENTS)
    connection = sqlite3.connect(folder / "app.db")
    with connection:
        connection.execute("create table contact (id integer primary key, name text, address text)")
        rows = [
            (1, "Ana", '{"city": "Málaga", "zip": "29001"}'),
            (2, "Jörg", '{"city": "Köln", "zip": "50667"}'),
            (10, "Zoé", '{"city": "K\\u00f6ln", "zip": "50668"}'),
        ]
        connection.executemany("insert into contact values (?, ?, ?)", rows)
    connection.close()
    return IntakeRequest(
        report=folder / "report.md",
        source=str(
            fetched(
                Published(
                    "sqlite-utils==3.6",
                    "582a9bcf4b6cb32ee2efa4a0d8f79ec630e8965ca93c69ceaaa7d424e1c01560",
                ),
                folder,
            )
        ),
        databases=(folder / "app.db",),
    )


CASES: Mapping[str, Callable[[Path], IntakeRequest]] = {
    "example": example,
    "croniter-leap-day": leap_day,
    "sqlite-utils-accents": accents,
}


def taken_in(name: str, folder: Path) -> Path:
    """Lay a case out in a folder and take it in; return its ledger."""
    path = folder / f"{name}.case"
    open_case(path, CASES[name](folder), program="tests", sources=ticking())
    return path


def fetched(release: Published, folder: Path) -> Path:
    """Return the unpacked source distribution of a release."""
    name = release.requirement.partition("==")[0]
    (folder / "wanted.txt").write_text(f"{release.requirement} --hash=sha256:{release.sha256}\n")
    options = ["--quiet", "--no-deps", "--require-hashes", "--no-binary", name]
    command = [sys.executable, "-P", "-m", "pip", "download", *options, "-r", "wanted.txt"]
    subprocess.run([*command, "-d", "."], cwd=folder, check=True, timeout=300)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as members:
        members.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.is_dir())
