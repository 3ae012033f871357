"""From odd rows to the code that goes wrong on them: which lines decide by the odd column, and how.

Two questions, by the kind of finding: does a line take a part of a key for the whole, or does it
decide in a way that this kind of value breaks (`deciding.BREAKS`)? Only passing a value on or
showing it is no answer to either.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import NamedTuple

from phases.providers.offline import deciding
from phases.providers.offline import points as table
from phases.providers.offline.clues import Clues
from phases.providers.offline.corpus import Corpus
from phases.providers.offline.data import OF_KEYS, Odd, odd_rows

_UNTIED = 0.25
"""Odd rows that nothing ties to the report may be chance; they count like one search."""

_SECOND = 0.5
"""The second finding counts less: rows that are odd in one way often are in another."""

_ELSEWHERE = 0.6
"""A file that never names the table may mean a column of another one."""

_OTHER_TABLE = 0.15
"""A statement that names other tables only means their column of this name."""

_AFTER = 0.1
"""Comparing what was converted or made even before is the usual remedy."""

_QUIET = 0.4
"""A conversion that fails says so; without an error in the report it has rather worked."""

_LOUD = 0.25
"""An odd value that is known from a logged error was noticed by the code. If the report is about
something else than this error, the fault is rather in what was made of it.
"""

_MANY = 6
"""Lines beyond which a column is everywhere and each line says less."""

_DECLARES = re.compile(r"(?i)\b(create|index|unique|primary key|references)\b")
"""Lines that declare a column rather than look rows up by it."""


_FROM = re.compile(r"\b(?:from|join|update|into)\s+[\"'`\[]?(\w+)", re.I)
_STATEMENT = 6
"""Lines above in which the tables of a statement are looked for."""


class Use(NamedTuple):
    """A line that decides by an odd column. `way`: as in `deciding`, or `part` of a key."""

    path: str
    line: int
    points: float
    evidence: str
    way: str
    odd: Odd


class Tracer:
    """The uses of the odd columns of one request."""

    def __init__(self, clues: Clues, corpus: Corpus) -> None:
        self.clues = clues
        self.corpus = corpus
        self.most = table.POINTS.data

    @cached_property
    def odd(self) -> list[Odd]:
        """Odd rows, those that matter most first."""
        return odd_rows(self.clues, self.corpus)

    @cached_property
    def uses(self) -> list[Use]:
        """Every deciding line, the surest first."""
        found = []
        for at, odd in enumerate(self._followed()):
            loose = (1.0 if odd.codes else _UNTIED) * (_SECOND if at else 1.0)
            loose *= _LOUD if self.is_loud(odd) else 1.0
            own = self._of_part(odd) if self._is_part(odd) else self._of_values(odd)
            crowd = (_MANY / max(_MANY, len(own))) ** 0.5
            for use in own:  # one null empties the whole result, whosever it is
                share = 1.0 if use.way == deciding.NOT_IN else loose * crowd
                found.append(use._replace(points=round(use.points * share, 6)))
        return sorted(found, key=lambda u: (-u.points, u.path, u.line))

    def at(self, path: str, first: int, last: int) -> list[Use]:
        """Return the uses in a range of lines, the surest first."""
        return [u for u in self.uses if u.path == path and first <= u.line <= last]

    def row_of(self, odd: Odd) -> tuple[object, ...] | None:
        """Return the odd row that belongs to the report, else the first."""
        for code, link in odd.links:
            name, _, value = link.partition("=")
            if code != odd.codes[0]:
                continue
            at = odd.finding.names.index(name)
            for row in odd.finding.rows:
                if at < len(row) and str(row[at]) == value:
                    return row
        return next(iter(odd.finding.rows), None)

    def _followed(self) -> list[Odd]:
        """Return the findings worth following: one a column, the report's own before others; nulls
        of a column beside another oddness of it.
        """
        found: dict[tuple[object, ...], Odd] = {}
        tied = [odd for odd in self.odd if odd.codes]
        for odd in tied or self.odd[:3]:
            if odd.finding.kind in deciding.BREAKS and odd.finding.columns:
                null = odd.finding.kind == "rare_null"
                found.setdefault((odd.finding.columns, null), odd)
        return list(found.values())[:4]

    def _is_part(self, odd: Odd) -> bool:
        return odd.finding.kind in OF_KEYS and bool(self.corpus.rest_of_key(odd.finding.columns))

    # A part of a key ------------------------------------------------------------------------

    def _of_part(self, odd: Odd) -> list[Use]:
        """Lines that join or look up by an odd column without the rest of the declared key."""
        rest = self.corpus.rest_of_key(odd.finding.columns)
        found = []
        for uses in self.corpus.uses:
            wanted = all(column in uses.name for column in odd.finding.columns)
            for path, number, _ in uses.hits if is_expression(uses.name) and wanted else ():
                text = self.corpus.lines(path).get(number, "")
                complete = any(column in text for column in rest)
                joins = " join " in f" {text.lower()}"
                points = self.most * (1.0 if joins else 0.7) * (0.2 if complete else 1.0)
                if not _DECLARES.search(text):
                    found.append(Use(path, number, points, uses.evidence, "part", odd))
        return sorted(found, key=lambda u: (-u.points, u.path, u.line))[:_MANY]

    # Values ---------------------------------------------------------------------------------

    def _of_values(self, odd: Odd) -> list[Use]:
        """Lines that decide in a way that values of this kind break."""
        shares = deciding.BREAKS[odd.finding.kind]
        column = odd.finding.columns[0]
        converted = deciding.is_converted(column, self._texts(column))
        found: dict[tuple[str, int], Use] = {}
        for path in self._files(column):
            lines = self.corpus.lines(path)
            for item in deciding.decisions(column, lines, converted):
                share = shares.get(item.way, 0.0) * self._certainty(path, item, odd, lines)
                cited = self.corpus.quoting(path, item.line, item.line)
                old = found.get((path, item.line))
                if share > 0 and cited and (old is None or old.points < self.most * share):
                    use = Use(path, item.line, self.most * share, cited[0], item.way, odd)
                    found[path, item.line] = use
        return list(found.values())

    def _files(self, column: str) -> list[str]:
        role = self.clues.catalog.role
        names = [name.lower() for name in deciding.spellings(column)]
        return [
            path for path in self.corpus.paths
            if role(path) in ("source", "")
            and any(name in text.lower() for text in self.corpus.lines(path).values()
                    for name in names)
        ]  # fmt: skip

    def _texts(self, column: str) -> list[str]:
        return [text for path in self._files(column) for text in self.corpus.lines(path).values()]

    def _certainty(
        self, path: str, item: deciding.Decision, odd: Odd, lines: dict[int, str]
    ) -> float:
        """Return how sure it is that this line meets the odd values, and fails on them."""
        share = 1.0 if item.direct else _AFTER
        tables = self._tables_near(lines, item.line)
        if tables and odd.finding.table.lower() not in tables:
            share *= _OTHER_TABLE
        elif not self._speaks_of(odd.finding.table, path):
            share *= _ELSEWHERE
        if item.way == deciding.PARSE and not self.clues.errors:
            share *= _QUIET
        if item.way == deciding.JOIN and deciding.is_outer(lines.get(item.line, "")):
            share *= 0.0 if odd.finding.kind == "without_children" else 0.6
        return share

    def _tables_near(self, lines: dict[int, str], line: int) -> set[str]:
        """Return the tables that the statement around a line names."""
        around = " ".join(lines.get(n, "") for n in range(line - _STATEMENT, line + 3))
        known = {table.name.lower() for table in self.clues.case.tables}
        return {name.lower() for name in _FROM.findall(around)} & known

    def _speaks_of(self, table: str, path: str) -> bool:
        """Tell whether a file names a table, or a thing of it: `orders`, `order`, `Order`."""
        wanted = table.lower().replace("_", "").removesuffix("s").removesuffix("ie")
        text = "\n".join([path, *self.corpus.lines(path).values()]).lower().replace("_", "")
        return wanted in text

    def is_loud(self, odd: Odd) -> bool:
        """Tell whether all that ties odd rows to the case is an error that only the logs show."""
        quoted = set(self.clues.error_values)
        return bool(odd.codes) and self.clues.only_logged and set(odd.codes) <= quoted


def is_expression(query: str) -> bool:
    """Tell a regular expression of ours from a name or a text."""
    return query.startswith("(?i)")
