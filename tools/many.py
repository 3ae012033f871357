"""Many cases at once: which are meant, in how many processes, and what becomes of a broken one.

A worker process reads one case at a time and hands back what was found, so that memory follows the
largest case and not their number. Workers are spawned with Python's safe path: nothing of the
folder the user stands in is imported.
"""

from __future__ import annotations

import csv
import io
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ledger import canonical
from ledger.book import Book
from ledger.errors import LedgerError, StorageError
from ledger.files import new_file
from ledger.package import Package
from tools.exits import AnswerIsNo, UserError, exit_code
from tools.output import note
from tools.progress import counting
from tools.selecting import SUFFIX, find_case, is_zip

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

T = TypeVar("T")
RowWriter = Callable[[Mapping[str, Any]], None]

AHEAD = 4
"""Cases handed out for each worker before the first result is waited for."""


class Cases(NamedTuple):
    """What a user means. `tolerant`: a broken one is named, and the rest is done."""

    paths: list[Path]
    tolerant: bool


class Broken(NamedTuple):
    """A case that could not be read or does not verify. `message` may hold text of the case."""

    path: Path
    kind: str
    message: str


def find_cases(selectors: Sequence[str], folder: Path | None = None) -> Cases:
    """Return the cases and packages that are named, or stand in a folder that is named.

    Raises:
        UserError: nothing is named, nothing matches, or a folder holds none.
    """
    folders = [folder] if folder else []
    paths: list[Path] = []
    tolerant = folder is not None
    for selector in selectors:
        if _is_folder(selector):
            folders.append(Path(selector))
            tolerant = True
        else:
            paths.append(find_case(selector))
    for named in folders:
        paths += _once(_in_folder(named))
    if not paths:
        raise UserError("name a case, a package, or a folder of them (--folder)")
    return Cases(paths, tolerant or len(paths) > 1)


def _once(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield each record once: a package of a case that is there too has the same head."""
    cases = {_chain(path): path for path in paths if not is_zip(path)}
    for path in paths:
        same = cases.get(_chain(path)) if is_zip(path) else None
        if same is None:
            yield path
        else:
            note(f"{path}: holds the same record as {same}; left out")


def _chain(path: Path) -> bytes:
    """Return the chain value of a record's head; something unique if it cannot be read."""
    try:
        with Package(path) if is_zip(path) else Book.open(path) as reader:
            return reader.head.chain
    except (OSError, LedgerError):
        return str(path).encode()  # the work on it says why


def over(
    cases: Cases, work: Callable[[Path], T], what: str, *, jobs: int = 1, quiet: bool = False
) -> Iterator[T | Broken]:
    """Yield what work finds in each case, in their order, or that it is broken.

    A single case that is not tolerated to be broken raises its own error.

    Args:
        cases: from `find_cases`.
        work: reads one case; with more than one job it is pickled.
        what: the work in a word, for the progress.
        jobs: processes at work at the same time; 1 is this one.
        quiet: show no progress.
    """
    if not cases.tolerant:
        yield _alone(work, cases.paths[0])
        return
    guarded = partial(_guarded, work)
    if jobs > 1:
        found = _in_processes(guarded, cases.paths, min(jobs, len(cases.paths)))
    else:
        found = map(guarded, cases.paths)
    with counting(len(cases.paths), what, quiet=quiet) as done:
        for path, one in zip(cases.paths, found, strict=True):
            done(path.name)
            if isinstance(one, Broken):
                note(f"{one.path}: {one.message.removeprefix(f'{one.path}: ')}")
            yield one


def broken_json(broken: Sequence[Broken]) -> list[dict[str, str]]:
    """Return the broken cases for a report: without messages, which may quote a case."""
    return [{"case": one.path.name, "kind": one.kind} for one in broken]


@contextmanager
def row_files(
    csv_file: Path | None, jsonl_file: Path | None, columns: Sequence[str], *, force: bool
) -> Iterator[RowWriter]:
    """Yield a function that writes a row to a CSV and to a JSON lines file, as far as asked for.

    The files get their names when the block ends well.

    Raises:
        CaseExists: one of them is there already, and not `force`.
    """
    writers: list[RowWriter] = []
    with ExitStack() as files:
        if csv_file:
            raw = files.enter_context(new_file(csv_file, overwrite=force))
            text = io.TextIOWrapper(raw, "utf-8", newline="", write_through=True)
            files.callback(text.detach)
            table = csv.DictWriter(text, columns, lineterminator="\n")
            table.writeheader()
            writers.append(table.writerow)
        if jsonl_file:
            lines = files.enter_context(new_file(jsonl_file, overwrite=force))
            writers.append(lambda row: _write_line(lines, row))
        yield lambda row: _each(writers, row)


def _each(writers: Sequence[RowWriter], row: Mapping[str, Any]) -> None:
    for write in writers:
        write(row)


def _write_line(file: Any, row: Mapping[str, Any]) -> None:
    file.write(canonical.to_bytes(dict(row)) + b"\n")


def _is_folder(selector: str) -> bool:
    """Tell whether a selector names a folder and no case; a case may have the name of a folder."""
    try:
        return Path(selector).is_dir() and find_case(selector).is_dir()
    except UserError:
        return True


def _in_folder(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder")
    found = sorted(path for path in folder.iterdir() if path.suffix in (SUFFIX, ".zip"))
    if not found:
        raise UserError(f"{folder}: holds no package (.zip) and no case ({SUFFIX})")
    return found


def _alone(work: Callable[[Path], T], path: Path) -> T:
    try:
        return work(path)
    except AnswerIsNo as error:  # the command line says no more than no
        note(str(error))
        raise


def _guarded(work: Callable[[Path], T], path: Path) -> T | Broken:
    try:
        return work(path)
    except Exception as error:
        if exit_code(error) is None:
            raise  # a defect of ours
        return Broken(path, type(error).__name__, str(error))


def _in_processes(work: Callable[[Path], T], paths: Sequence[Path], jobs: int) -> Iterator[T]:
    from concurrent.futures.process import BrokenProcessPool

    with _pool(jobs) as pool:
        waiting = deque[Any]()
        try:
            for path in paths:
                waiting.append(pool.submit(work, path))
                if len(waiting) >= AHEAD * jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise StorageError(
                "a worker process ended before its work did (out of memory?); "
                "run again with --jobs 1"
            ) from None


@contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"  # -P for the workers
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _begin_worker)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


def _begin_worker() -> None:
    """Leave Ctrl-C to the parent, and do not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
