"""Ranked full-text search over passages of files: SQLite FTS5 in memory, BM25 over fields.

A passage is a run of lines; its fields are the words of its path, of the names defined in it, and
of its text. Built copies, source maps and minified text are left out, since they repeat the source.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from phases.investigation.index.paths import extension
from phases.investigation.index.roles import Role
from phases.investigation.index.symbols import quick_names
from phases.investigation.index.words import IDENTIFIER, terms
from phases.investigation.snapshot import Snapshot, SourceFile

PASSAGE = 60
"""Lines of a passage."""

LARGEST = 1_000_000
"""Bytes of the largest file that is ranked."""

TIERS = {
    "source": frozenset({"source", "config", "types", "other"}),
    "rest": frozenset({"test", "example", "docs", "data"}),
}
"""Roles that are ranked together: tests and docs repeat the words of a report and would win."""

_WEIGHTS = "3.0, 2.0, 1.0"
_MOST_TERMS = 200
_NUMBER = re.compile(r"\b[0-9]{2,18}\b")


@dataclass(frozen=True)
class Ranked:
    """A passage and its BM25 score (higher is better, comparable within one query only)."""

    path: str
    first: int
    last: int
    score: float


class TextSearch:
    """The index of one tier of a snapshot's files."""

    def __init__(self, snapshot: Snapshot, roles: Mapping[str, Role], tier: str) -> None:
        self.files = [
            file
            for file in snapshot.readable_files
            if file.size <= LARGEST
            and roles[file.path].role in TIERS[tier]
            and not roles[file.path].minified
        ]
        self._passages: list[tuple[str, int, int]] = []
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        # Not `detail=column`: bm25() needs positions and gives 0 to every passage without them.
        self._connection.execute(
            "CREATE VIRTUAL TABLE passage USING fts5(path, names, body, content='', "
            'tokenize="unicode61 remove_diacritics 0")'
        )
        self._connection.executemany(
            "INSERT INTO passage(rowid, path, names, body) VALUES (?, ?, ?, ?)",
            self._rows(snapshot),
        )

    def _rows(self, snapshot: Snapshot) -> Iterator[tuple[int, str, str, str]]:
        for file in self.files:
            path_words = _expanded(file.path)
            for first, part in _passages(snapshot, file):
                self._passages.append((file.path, first, first + len(part) - 1))
                text = "\n".join(part)
                names = " ".join(map(terms, quick_names(text, extension(file.path))))
                yield len(self._passages), path_words, names, _expanded(text)

    def rank(self, query: str, limit: int) -> list[Ranked]:
        """Return the best passages for the words of `query`; ties in order of path and line.

        The words are alternatives; an identifier also stands for its parts.
        """
        wanted = _wanted(query)
        if not wanted:
            return []
        match = " OR ".join(f'"{word}"' for word in wanted[:_MOST_TERMS])
        # Rounded, so that the last bit of a logarithm cannot turn two passages round.
        rows = self._connection.execute(
            f"SELECT rowid, round(-bm25(passage, {_WEIGHTS}), 6) AS score FROM passage "
            "WHERE passage MATCH ? ORDER BY score DESC, rowid LIMIT ?",
            (match, limit),
        )
        found = []
        for row, score in rows:
            path, first, last = self._passages[row - 1]
            found.append(Ranked(path, first, last, score))
        return found

    def best_line(self, snapshot: Snapshot, passage: Ranked, query: str) -> int:
        """Return the line (1-based) of a passage that holds most words of `query`, the first of
        equals.
        """
        lines = snapshot.text(snapshot.files[passage.path]).lines[passage.first - 1 : passage.last]
        wanted = set(_wanted(query))
        scores = [len(wanted.intersection(_expanded(line).split())) for line in lines]
        return passage.first + (scores.index(max(scores)) if scores else 0)


def _wanted(query: str) -> list[str]:
    found = " ".join(map(terms, IDENTIFIER.findall(query))).split()
    return list(dict.fromkeys([*found, *_numbers(query)]))


def _passages(snapshot: Snapshot, file: SourceFile) -> Iterator[tuple[int, list[str]]]:
    lines = snapshot.text(file).lines
    for start in range(0, len(lines), PASSAGE):
        yield start + 1, lines[start : start + PASSAGE]
    if not lines:
        yield 1, []


def _expanded(text: str) -> str:
    return " ".join(map(terms, IDENTIFIER.findall(text))) + " " + " ".join(_numbers(text))


def _numbers(text: str) -> list[str]:
    return _NUMBER.findall(text)
