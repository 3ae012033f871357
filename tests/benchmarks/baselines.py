"""What plain retrieval reaches on the cases the analyst is scored on: same run, same snapshots.

    .venv/bin/python -P tests/benchmarks/baselines.py CASES [--truth DIR] [--keep DIR]

CASES holds evaluation folders (docs/guides/evaluation.md). The analyst runs by way of `evaluate`;
each baseline ranks the files of the very snapshots that it was given, from report and logs alone.
BM25 has k1 = 1.2 and b = 0.75; identifiers count whole and by their words.
"""

from __future__ import annotations

import argparse
import math
import re
import sqlite3
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ledger.book import Book
from ledger.canonical import from_bytes
from phases.investigation.index import CodeIndex
from phases.investigation.snapshot import Snapshot
from phases.providers.offline.frames import frames
from projections.scoring import BOUNDS, ranked, truth_from
from tools.evaluating import Evaluation, case_folders, evaluate
from tools.selecting import SUFFIX

K, B = 1.2, 0.75
WINDOW, STEP = 40, 20
"""Lines of a chunk, and between the starts of chunks."""

_UNRANKED = frozenset(["test", "docs", "example", "generated", "source_map", "built_copy", "types"])
_TOKEN = re.compile(r"[^\W\d]\w*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_CODE = re.compile(r"\b[A-Z]{1,4}-?\d[\w-]*\b|\b\d{4,}[-\d]*\b")


def tokens(text: str) -> list[str]:
    """Return the words of a text, identifiers whole and in parts, lower case."""
    found = []
    for token in _TOKEN.findall(text):
        parts = [part.lower() for part in _PART.findall(token)]
        found += parts if len(parts) < 2 else [token.lower(), *parts]
    return [word for word in found if len(word) > 1]


def bm25(documents: Mapping[str, Sequence[str]], query: Mapping[str, float]) -> dict[str, float]:
    """Return the score of each document for weighted words."""
    counted = {name: Counter(words) for name, words in documents.items()}
    seen = Counter(word for counts in counted.values() for word in counts if word in query)
    average = sum(map(len, documents.values())) / max(1, len(documents)) or 1.0
    rarity = {w: math.log(1 + (len(counted) - n + 0.5) / (n + 0.5)) for w, n in seen.items()}
    scores = {}
    for name, counts in counted.items():
        norm = K * (1 - B + B * len(documents[name]) / average)
        shared = [word for word in query if word in counts]
        scores[name] = sum(
            query[w] * rarity[w] * counts[w] * (K + 1) / (counts[w] + norm) for w in shared
        )
    return scores


@dataclass
class Case:
    """What a baseline may know: report, logs, databases and the texts of the snapshot."""

    report: str
    logs: str
    texts: dict[str, str]
    roles: dict[str, str]
    databases: list[bytes] = field(default_factory=list)

    @cached_property
    def query(self) -> dict[str, float]:
        return dict.fromkeys(tokens(self.report), 1.0)

    @cached_property
    def ranked_files(self) -> dict[str, str]:
        return {p: text for p, text in self.texts.items() if self.roles[p] not in _UNRANKED}

    def framed(self, text: str) -> list[str]:
        """Return the files of the stack frames in a text, the innermost first."""
        found = sorted(frames(text, ""), key=lambda frame: frame.depth)
        return list(dict.fromkeys(p for frame in found for p in self._ending(frame.path)))

    def _ending(self, wanted: str) -> list[str]:
        parts = [part for part in wanted.split("/") if part not in ("", ".", "..")]
        for length in range(len(parts), 0, -1):
            end = "/".join(parts[-length:])
            hits = [p for p in self.texts if p == end or p.endswith(f"/{end}")]
            if hits and (length > 1 or len(parts) == 1):
                return hits[:1]
        return []


def everything(case: Case) -> dict[str, float]:
    return bm25({path: tokens(text) for path, text in case.texts.items()}, case.query)


def without_tests_and_docs(case: Case) -> dict[str, float]:
    return bm25({path: tokens(text) for path, text in case.ranked_files.items()}, case.query)


def frames_only(case: Case) -> dict[str, float]:
    return {path: 1 / (1 + n) for n, path in enumerate(case.framed(case.report))}


def chunks(case: Case) -> dict[str, float]:
    """Chunks of lines, words of paths, identifiers of the report as they stand, frames."""
    return _combined(case, case.query)


def chunks_and_rows(case: Case) -> dict[str, float]:
    """The same with words of the database rows that hold a code of the report."""
    extra = dict.fromkeys(tokens(" ".join(_row_words(case))), 0.5)
    return _combined(case, {**extra, **case.query})


def _combined(case: Case, query: dict[str, float]) -> dict[str, float]:
    pieces = {
        f"{path}\0{at}": tokens("\n".join(lines[at : at + WINDOW]))
        for path, text in case.ranked_files.items()
        for lines in [text.split("\n")]
        for at in range(0, max(1, len(lines) - STEP), STEP)
    }
    best: dict[str, list[float]] = defaultdict(list)
    for name, score in bm25(pieces, query).items():
        best[name.partition("\0")[0]].append(score)
    scores = {path: sum(sorted(found)[-2:]) / 2 for path, found in best.items()}
    top = max(scores.values(), default=0.0) or 1.0
    paths = bm25({path: tokens(path) for path in scores}, query)
    most = max(paths.values(), default=0.0) or 1.0
    named = _identifiers(case)
    total = {
        p: s / top + 0.3 * paths[p] / most + 0.3 * named.get(p, 0.0) for p, s in scores.items()
    }
    for weight, text in ((0.5, case.report), (0.25, case.logs)):
        for rank, path in enumerate(case.framed(text)[:5]):
            if path in total:
                total[path] += weight / (1 + rank)
    return total


def _identifiers(case: Case) -> dict[str, float]:
    """Return, by file, the share of the report's identifiers that it holds, rare ones more."""
    wanted = {t for t in _TOKEN.findall(case.report) if "_" in t or len(_PART.findall(t)) > 1}
    holds = {p: wanted & set(_TOKEN.findall(text)) for p, text in case.ranked_files.items()}
    seen = Counter(word for words in holds.values() for word in words)
    scores = {path: sum(1 / seen[word] for word in words) for path, words in holds.items()}
    top = max(scores.values(), default=0.0) or 1.0
    return {path: score / top for path, score in scores.items()}


def _row_words(case: Case) -> Iterator[str]:
    codes = set(_CODE.findall(case.report))
    for data in case.databases:
        with tempfile.NamedTemporaryFile(suffix=".db") as file:
            file.write(data)
            file.flush()
            connection = sqlite3.connect(f"file:{file.name}?mode=ro", uri=True)
            yield from _matching(connection, codes)
            connection.close()


def _matching(connection: sqlite3.Connection, codes: set[str]) -> Iterator[str]:
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (table,) in tables:
        rows = connection.execute(f'SELECT * FROM "{table}" LIMIT 20000')
        names = [column[0] for column in rows.description]
        for row in rows:
            if codes & {str(value) for value in row}:
                yield " ".join([table, *names, *(v for v in row if isinstance(v, str))])
                break


BASELINES: Mapping[str, Callable[[Case], dict[str, float]]] = {
    "BM25 over all text": everything,
    "BM25 without tests and docs": without_tests_and_docs,
    "stack frames only": frames_only,
    "chunks, path tokens, identifiers, frames": chunks,
    "the same + words of matching DB rows": chunks_and_rows,
}


def case_of(book: Book, snapshot: Snapshot) -> Case:
    """Return what baselines know of a ledger's case."""
    roles = CodeIndex(snapshot).roles
    texts = {file.path: snapshot.text(file).text for file in snapshot.readable_files}
    said = {kind: "\n".join(snapshot.text(d).text for d in snapshot.of_kind(kind))
            for kind in ("report", "log")}  # fmt: skip
    stored = [book.payload(d.digest) for d in snapshot.of_kind("database")]
    return Case(said["report"], said["log"], texts, {p: roles[p].role for p in texts}, stored)


def ranks(ledger: Path, truth: Path) -> dict[str, int | None]:
    """Return the rank of the first faulty file by each baseline."""
    with Book.open(ledger) as book, Snapshot.of(book) as snapshot:
        faulty = set(truth_from(from_bytes(truth.read_bytes()), snapshot.files).files)
        case = case_of(book, snapshot)
    found = {}
    for name, method in BASELINES.items():
        scores = method(case)
        order = sorted((p for p in scores if scores[p] > 0), key=lambda p: (-scores[p], p))
        found[name] = next((n for n, path in enumerate(order, 1) if path in faulty), None)
    return found


def table(found: Mapping[str, Sequence[int | None]]) -> list[str]:
    """Return the Markdown table of methods and their ranks."""
    heads = [*(f"Acc@{k}" for k in BOUNDS), "MRR"]
    lines = [f"| method | {' | '.join(heads)} |", "| --- |" + " --- |" * len(heads)]
    for name, own in found.items():
        figures: dict[str, Any] = ranked(own, len(own))
        cells = [f"{100 * figures[f'acc_{k}'] / len(own):.1f}" for k in BOUNDS]
        lines.append(f"| {name} | {' | '.join(cells)} | {figures['mrr']:.3f} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", type=Path)
    parser.add_argument("--truth", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        keep = given.keep or Path(folder)
        asked = Evaluation(given.cases, truths=given.truth, only=tuple(given.only), keep=keep)
        result = evaluate(asked)
        found: dict[str, list[int | None]] = defaultdict(list)
        for case in case_folders(asked)[0]:
            for name, rank in ranks(keep / f"{case.name}{SUFFIX}", case.truth).items():
                found[name].append(rank)
    found["the offline analyst"] = [row["rank"] for row in result["cases"]]
    print(f"{len(result['cases'])} cases, file level, a hit is any faulty file\n")
    print("\n".join(table(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
