"""Evaluation: folders of already fixed bugs, each analysed in a process of its own, then scored.

A truth is opened only here, after the analysis of its case has ended; the analysing process gets
paths of report, source, logs and databases and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledger.book import Book
from ledger.errors import LedgerError
from phases.pinned import pinned_settings
from phases.settings import Settings
from projections.folding import fold
from projections.scoring import compared, summary
from tools.exits import UserError
from tools.judging import row
from tools.output import one_line
from tools.progress import counting
from tools.results import earlier
from tools.running import Wanted, check_wanted, settings_wanted
from tools.selecting import SUFFIX
from tools.version import program

Json = dict[str, Any]

REPORTS = ("report.md", "report.txt")
TRUTH = "truth.json"
_ARCHIVES = (".zip", ".whl", ".tgz", ".tar", ".tar.gz", ".tar.bz2", ".tar.xz")
_SIDE_FILES = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database; the intake reads it with the database."""

_PROGRAM = "from tools.cli import main; main()"


@dataclass(frozen=True)
class Folder:
    """The folder of one case: what is taken in, and where its truth is."""

    name: str
    report: Path
    source: Path | None
    logs: tuple[Path, ...]
    databases: tuple[Path, ...]
    truth: Path


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` was asked for. `keep`: folder of the ledgers, None for a temporary one."""

    folder: Path
    wanted: Wanted = field(default_factory=Wanted)
    truths: Path | None = None
    only: tuple[str, ...] = ()
    jobs: int = 1
    keep: Path | None = None
    quiet: bool = False


@dataclass(frozen=True)
class Ended:
    """How the analysis of a case ended. `reason`: why not well, "" if well; None: unmeasured."""

    reason: str = ""
    cpu_ms: int | None = None
    peak_memory_bytes: int | None = None


def evaluate(asked: Evaluation, against: Path | None = None) -> Json:
    """Analyse and score every case of a folder; return the document of `evaluate --json`.

    Raises:
        UserError: there are no cases, or the earlier result is none.
    """
    before = earlier(against) if against else None
    settings = settings_wanted(asked.wanted)
    found, without = case_folders(asked)
    with _ledgers(asked.keep) as ledgers:
        if not all(_is_finished(_ledger(folder, ledgers)) for folder in found):
            check_wanted(asked.wanted)
        ended = _analysed(asked, settings, found, ledgers)
        rows = [_scored(folder, ledgers, ended[folder.name]) for folder in found]
    return {
        "program": program(),
        "cases": rows,
        "summary": summary(rows),
        "without_truth": without,
        "compared": None if before is None else {"with": str(against), **compared(before, rows)},
    }


# Folders ---------------------------------------------------------------------------------------


def case_folders(asked: Evaluation) -> tuple[list[Folder], list[str]]:
    """Return the cases of a folder by name, and the names of those without a truth.

    Raises:
        UserError: there is no case with a truth, or none of a name that was asked for.
    """
    if not asked.folder.is_dir():
        raise UserError(f"{asked.folder}: is no folder; give the folder that holds the cases")
    found = [case for path in sorted(asked.folder.iterdir()) for case in _case(path, asked.truths)]
    names = {case.name for case in found}
    if missing := [name for name in asked.only if name not in names]:
        raise UserError(f"--only {missing[0]}: {asked.folder} has no such case")
    chosen = [case for case in found if not asked.only or case.name in asked.only]
    with_truth = [case for case in chosen if case.truth.is_file()]
    if not with_truth:
        place = asked.truths or asked.folder
        raise UserError(
            f"{asked.folder}: no case to evaluate; a case is a folder with {REPORTS[0]}, source/ "
            f"and, here or in --truth, {TRUTH} ({place}/NAME/{TRUTH})"
        )
    return with_truth, [case.name for case in chosen if case not in with_truth]


def _case(path: Path, truths: Path | None) -> Iterator[Folder]:
    reports = [path / name for name in REPORTS if (path / name).is_file()]
    if reports:
        yield Folder(
            path.name,
            reports[0],
            _source(path),
            _files(path / "logs"),
            _files(path / "db"),
            (truths / path.name if truths else path) / TRUTH,
        )


def _source(path: Path) -> Path | None:
    if (path / "source").is_dir():
        return path / "source"
    archives = [path / f"source{ending}" for ending in _ARCHIVES]
    return next((archive for archive in archives if archive.is_file()), None)


def _files(folder: Path) -> tuple[Path, ...]:
    listed = sorted(folder.iterdir()) if folder.is_dir() else []
    return tuple(
        path for path in listed
        if path.is_file() and not path.name.startswith(".") and not path.name.endswith(_SIDE_FILES)
    )  # fmt: skip


# Analysing -------------------------------------------------------------------------------------


@contextlib.contextmanager
def _ledgers(keep: Path | None) -> Iterator[Path]:
    """Yield the folder of the ledgers: one that stays, or one that goes."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="caseledger-") as folder:
            yield Path(folder)
        return
    try:
        keep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--keep {keep}: cannot be made ({error.strerror})") from None
    yield keep


def _analysed(
    asked: Evaluation, settings: Settings, found: list[Folder], ledgers: Path
) -> dict[str, Ended]:
    """Analyse what is not finished yet; return how each case ended, by name.

    Nothing is scored before all have ended: a process inherits its parent's peak of memory when it
    starts (Linux, getrusage), so this one stays small until the last child is started.
    """
    children = _Children()
    ended: dict[str, Ended] = {}
    with (
        counting(len(found), "evaluated", quiet=asked.quiet) as tell,
        ThreadPoolExecutor(asked.jobs) as pool,
    ):
        waiting: dict[Future[Ended], Folder] = {
            pool.submit(_analyse, folder, ledgers, asked.wanted, settings, children): folder
            for folder in found
        }
        try:
            for future in as_completed(waiting):
                name = waiting[future].name
                ended[name] = future.result()
                tell(name)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            children.stop()
            raise
    return ended


def _analyse(
    folder: Folder, ledgers: Path, wanted: Wanted, settings: Settings, children: _Children
) -> Ended:
    ledger = _ledger(folder, ledgers)
    if not ledger.exists():
        return children.run(["analyze", *_intake(folder), "-o", str(ledger), *_options(wanted)])
    if differs := _made_otherwise(ledger, wanted, settings):
        return Ended(differs)
    if _is_finished(ledger):
        return Ended()
    ended = children.run(["run", str(ledger), *_options(wanted)])
    return Ended(ended.reason)  # what the earlier part used is not known


def _intake(folder: Folder) -> list[str]:
    """Return what is taken in: never the folder itself, which holds the truth."""
    arguments = [str(folder.report)]
    arguments += ["--source", str(folder.source)] if folder.source else []
    for option, paths in (("--log", folder.logs), ("--db", folder.databases)):
        for path in paths:
            arguments += [option, str(path)]
    return arguments


def _options(wanted: Wanted) -> list[str]:
    given = (
        ("--provider", wanted.providers),
        ("--protocol", wanted.protocols),
        ("--no-egress", wanted.no_egress),
    )
    return [text for option, values in given for value in values for text in (option, value)]


def _ledger(folder: Folder, ledgers: Path) -> Path:
    return ledgers / f"{folder.name}{SUFFIX}"


def _is_finished(ledger: Path) -> bool:
    if not ledger.exists():
        return False
    try:
        with Book.open(ledger) as book:
            return "change_request" in fold(book.events()).done
    except LedgerError:
        return False  # `run` says what is wrong with it


def _made_otherwise(ledger: Path, wanted: Wanted, settings: Settings) -> str:
    """Return why a kept ledger is none of this evaluation, "" if it is.

    Protocols and what stays on this machine must be the same. Providers are compared only if they
    were named on the command line: kept ledgers can be scored without naming them again.
    """
    try:
        with Book.open(ledger) as book:
            configuration = fold(book.events()).configuration
            made = pinned_settings(book, configuration.digest) if configuration else None
    except LedgerError:
        return ""  # scoring says what is wrong with it
    if made and wanted.providers and list(made.providers) != wanted.providers:
        return f"the kept ledger was made with {', '.join(made.providers)}; use another --keep"
    if made and made.protocols != settings.protocols:
        return f"the kept ledger was made with {_protocols(made)}; use another --keep"
    if made and set(made.no_egress) != set(settings.no_egress):
        return f"the kept ledger was made with {_kept_here(made)}; use another --keep"
    return ""


def _protocols(made: Settings) -> str:
    return f"--protocol {', '.join(made.protocols.values())}" if made.protocols else "no --protocol"


def _kept_here(made: Settings) -> str:
    return f"--no-egress {', '.join(made.no_egress)}" if made.no_egress else "no --no-egress"


class _Children:
    """The analysing processes; they end with the evaluation, however that ends."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def run(self, arguments: list[str]) -> Ended:
        """Run the program; return how it ended and what it used, its own children included."""
        command = [sys.executable, "-P", "-c", _PROGRAM, *arguments, "--json"]
        with tempfile.TemporaryFile() as said:
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said
            )
            self._running.add(child)
            if self._stopped:
                child.terminate()
            _, status, used = os.wait4(child.pid, 0)
            self._running.discard(child)
            child.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            reason = _reason(child.returncode, said.read())
        cpu = round(1000 * (used.ru_utime + used.ru_stime))
        unit = 1 if sys.platform == "darwin" else 1024
        return Ended(reason, cpu, used.ru_maxrss * unit)

    def stop(self) -> None:
        """End what still runs; what it recorded stays."""
        self._stopped = True
        for child in list(self._running):
            child.terminate()


def _reason(code: int, said: bytes) -> str:
    if code == 0:
        return ""
    lines = said.decode("utf-8", "replace").strip().splitlines()
    last = one_line(lines[-1].removeprefix("caseledger: "), 500) if lines else ""
    if code < 0:
        return f"the process was ended by signal {-code}" + (f"; it said: {last}" if last else "")
    return last or f"the process ended with exit code {code}"


def _scored(folder: Folder, ledgers: Path, ended: Ended) -> Json:
    measured = {"cpu_ms": ended.cpu_ms, "peak_memory_bytes": ended.peak_memory_bytes}
    ledger = _ledger(folder, ledgers)
    return row(folder.name, ledger, folder.truth, failed=ended.reason, measured=measured)
