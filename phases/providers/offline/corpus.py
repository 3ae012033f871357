"""What the evidence shows, by kind: source lines, ranked hits, definitions, rows, log lines.

Everything keeps the ID of the evidence it came from: what is not here cannot be cited.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from phases.providers.offline.case import Case, Json, as_dict, as_int, as_str, dicts, strings
from phases.providers.offline.outline import Definition, outline


@dataclass(frozen=True)
class Ranking:
    """A ranked search: its query, its files in order (best first), and the lines it pointed at."""

    evidence: str
    query: str
    role: str
    glob: str
    hits: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Uses:
    """Where a name or text occurs. `total`: hits, possibly more than are listed."""

    evidence: str
    name: str
    total: int
    hits: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True)
class Finding:
    """Odd rows that a profile shows."""

    evidence: str
    database: str
    table: str
    kind: str
    columns: tuple[str, ...]
    says: str
    total: int
    names: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    where: str = ""


@dataclass(frozen=True)
class Rows:
    """The rows of a query."""

    evidence: str
    database: str
    tables: tuple[str, ...]
    names: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    sql: str


@dataclass(frozen=True)
class LogLine:
    """A line of a log."""

    evidence: str
    artifact: str
    line: int
    text: str


class Corpus:
    """The evidence of a case."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def _of(self, *actions: str) -> list[tuple[str, Json, Json]]:
        """Return (ID, arguments, result) of each evidence of these actions."""
        return [
            (as_str(item.get("id")), as_dict(item.get("arguments")), as_dict(item.get("result")))
            for item in self.case.evidence
            if as_str(item.get("action")) in actions
        ]

    def done(self, name: str, arguments: Json) -> bool:
        """Tell whether an action with these arguments (or the same and more) was asked for."""
        earlier = [
            (as_str(item.get("action")), as_dict(item.get("arguments")))
            for item in [*self.case.evidence, *self.case.refused]
        ]
        return any(
            action == name and all(old.get(key) == value for key, value in arguments.items())
            for action, old in earlier
        )

    @cached_property
    def asked(self) -> int:
        """Actions asked for so far."""
        return len(self.case.evidence) + len(self.case.refused)

    @cached_property
    def rankings(self) -> list[Ranking]:
        return [
            Ranking(
                name, as_str(arguments.get("query")), as_str(arguments.get("role")),
                as_str(arguments.get("glob")),
                tuple(
                    (as_str(h.get("path")), as_int(h.get("line"), 1))
                    for h in dicts(result.get("hits"))
                ),
            )
            for name, arguments, result in self._of("search_code")
            if arguments.get("mode") == "ranked"
        ]  # fmt: skip

    @cached_property
    def uses(self) -> list[Uses]:
        """References and literal or identifier searches."""
        found = []
        for item in self.case.evidence:
            arguments, result = as_dict(item.get("arguments")), as_dict(item.get("result"))
            action = as_str(item.get("action"))
            searched = action == "search_code" and arguments.get("mode") != "ranked"
            if not searched and action != "find_references":
                continue
            page = as_dict(item.get("page"))
            hits = tuple(
                (as_str(h.get("path")), as_int(h.get("line"), 1), as_str(h.get("use")))
                for h in dicts(result.get("hits"))
            )
            total = as_int(page.get("total"), as_int(page.get("total_at_least"), len(hits)))
            name = as_str(arguments.get("name")) or as_str(arguments.get("query"))
            found.append(Uses(as_str(item.get("id")), name, total, hits))
        return found

    @cached_property
    def symbols(self) -> list[tuple[str, str, Definition]]:
        """(evidence, name asked for, definition) of each definition that was found."""
        return [
            (
                name, as_str(arguments.get("name")),
                Definition(
                    as_str(s.get("path")), as_str(s.get("qualified")) or as_str(s.get("name")),
                    as_str(s.get("kind")), as_int(s.get("first"), 1), as_int(s.get("last"), 1),
                ),
            )
            for name, arguments, result in self._of("find_symbol")
            for s in dicts(result.get("symbols"))
        ]  # fmt: skip

    @cached_property
    def _shown(self) -> dict[str, dict[int, tuple[str, str]]]:
        found: dict[str, dict[int, tuple[str, str]]] = defaultdict(dict)
        for item in self.case.evidence:
            read = as_str(item.get("action")) == "read_lines"
            for block in dicts(as_dict(item.get("result")).get("blocks")):
                path, first = as_str(block.get("path")), as_int(block.get("first"), 1)
                for offset, text in enumerate(strings(block.get("lines")) if path else []):
                    if read or first + offset not in found[path]:
                        found[path][first + offset] = (text, as_str(item.get("id")))
        return dict(found)

    def lines(self, path: str) -> dict[int, str]:
        """Return the known lines of a file."""
        return {number: text for number, (text, _) in self._shown.get(path, {}).items()}

    def quoting(self, path: str, first: int, last: int) -> list[str]:
        """Return the IDs of evidence that shows lines of a range, in order of lines."""
        shown = self._shown.get(path, {})
        found = [shown[n][1] for n in range(first, min(last, first + 4000) + 1) if n in shown]
        return list(dict.fromkeys(found))

    @cached_property
    def read(self) -> dict[str, list[str]]:
        """Files of which lines were read on purpose, and the evidence."""
        found: dict[str, list[str]] = defaultdict(list)
        for name, arguments, result in self._of("read_lines"):
            if dicts(result.get("blocks")):
                found[as_str(arguments.get("path"))].append(name)
        return dict(found)

    @cached_property
    def _outlines(self) -> dict[str, list[Definition]]:
        return {}

    def definitions(self, path: str) -> list[Definition]:
        """Return the definitions of a file that the evidence shows; exact ones win."""
        if path not in self._outlines:
            exact = {(d.qualified, d.first): d for _, _, d in self.symbols if d.path == path}
            for item in outline(path, self.lines(path)):
                if not any(d.first == item.first for d in exact.values()):
                    exact[(item.qualified, item.first)] = item
            self._outlines[path] = sorted(exact.values(), key=lambda d: (d.first, -d.last))
        return self._outlines[path]

    def enclosing(self, path: str, line: int) -> Definition | None:
        """Return the innermost known definition around a line, functions before classes."""
        around = [d for d in self.definitions(path) if d.first <= line <= d.last]
        return max(around, key=lambda d: (d.first, -d.last), default=None)

    @cached_property
    def paths(self) -> list[str]:
        """Every file that evidence shows lines of or points at."""
        pointed = [path for ranking in self.rankings for path, _ in ranking.hits]
        used = [path for uses in self.uses for path, _, _ in uses.hits]
        defined = [d.path for _, _, d in self.symbols]
        return list(dict.fromkeys(p for p in [*self._shown, *pointed, *used, *defined] if p))

    # Databases and logs ---------------------------------------------------------------------

    @cached_property
    def profiled(self) -> dict[tuple[str, str], str]:
        """(database, table) → evidence of its profile."""
        return {
            (as_str(result.get("database")), as_str(arguments.get("table"))): name
            for name, arguments, result in self._of("profile_table")
        }

    @cached_property
    def described(self) -> dict[str, str]:
        """Database → evidence of its description."""
        return {
            as_str(result.get("database")): name
            for name, _, result in self._of("describe_database")
        }

    @cached_property
    def findings(self) -> list[Finding]:
        return [
            Finding(
                name, as_str(result.get("database")), as_str(f.get("table")), as_str(f.get("kind")),
                tuple(strings(f.get("odd"))), as_str(f.get("says")), as_int(f.get("total")),
                tuple(strings(f.get("columns"))), _rows(f.get("rows")),
                as_str(f.get("where")),
            )
            for name, _, result in self._of("profile_table")
            for f in dicts(result.get("findings"))
        ]  # fmt: skip

    def usual(self, finding: Finding) -> list[object]:
        """Return values of a finding's column in the sample of its table that are not odd ones."""
        column = finding.columns[0] if finding.columns else ""
        odd = {
            row[at] for row in finding.rows for at, name in enumerate(finding.names)
            if name == column and at < len(row)
        }  # fmt: skip
        for name, _, result in self._of("profile_table"):
            sample = as_dict(result.get("sample"))
            names = strings(sample.get("columns"))
            if name == finding.evidence and column in names:
                at = names.index(column)
                values = [row[at] for row in _rows(sample.get("rows")) if at < len(row)]
                return [v for v in values if v is not None and v not in odd]
        return []

    @cached_property
    def keys(self) -> list[tuple[str, list[str]]]:
        """(table, columns) of each declared unique key that profiles or descriptions show."""
        found = []
        for _, arguments, result in self._of("profile_table"):
            listed = result.get("unique")
            for key in listed if isinstance(listed, list) else []:
                found.append((as_str(arguments.get("table")), strings(key)))
        return found

    def rest_of_key(self, columns: tuple[str, ...]) -> list[str]:
        """Return the other columns of declared keys that some columns are only a part of."""
        found = [
            other for _, key in self.keys if len(key) > 1 and set(columns) & set(key)
            for other in key if other not in columns
        ]  # fmt: skip
        return list(dict.fromkeys(found))

    @cached_property
    def queried(self) -> list[Rows]:
        return [
            Rows(
                name, as_str(result.get("database")),
                tuple(strings(as_dict(result.get("provenance")).get("tables"))),
                tuple(strings(result.get("columns"))), _rows(result.get("rows")),
                as_str(arguments.get("sql")),
            )
            for name, arguments, result in self._of("query_database")
        ]  # fmt: skip

    @cached_property
    def log_lines(self) -> list[LogLine]:
        return [
            LogLine(
                name, as_str(block.get("artifact")), as_int(block.get("first"), 1) + offset, text
            )
            for name, _, result in self._of("search_log", "read_log")
            for block in dicts(result.get("blocks"))
            for offset, text in enumerate(strings(block.get("lines")))
        ]  # fmt: skip

    @cached_property
    def negatives(self) -> list[tuple[str, str, str]]:
        """(evidence, action, what was looked for) of complete searches without a result."""
        return [
            (
                as_str(item.get("id")), as_str(item.get("action")),
                as_str(as_dict(item.get("arguments")).get("query"))
                or as_str(as_dict(item.get("arguments")).get("name")),
            )
            for item in self.case.evidence
            if item.get("found") is False and item.get("complete") is True
        ]  # fmt: skip


def _rows(value: object) -> tuple[tuple[object, ...], ...]:
    rows = value if isinstance(value, list) else []
    return tuple(tuple(map(_plain, row)) for row in rows if isinstance(row, list))


def _plain(value: object) -> object:
    """Return a value that can be compared and hashed: blobs and the like are objects."""
    return value if isinstance(value, str | int | float) or value is None else str(value)
