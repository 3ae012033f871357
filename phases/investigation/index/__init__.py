"""The code index: roles of files, symbols, references, ranked search, source maps.

Built in memory from the snapshot's texts, each part when it is first asked for; never stored.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property

from phases.investigation.index.roles import Role, assign_roles
from phases.investigation.index.search import Ranked, TextSearch
from phases.investigation.index.sourcemaps import Origin, SourceMap, map_of
from phases.investigation.index.symbols import Symbol, symbols_of
from phases.investigation.lines import Text
from phases.investigation.snapshot import Snapshot, SourceFile

_KEPT = 2
_built: OrderedDict[str, CodeIndex] = OrderedDict()


class CodeIndex:
    """Everything the actions know about the source tree of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._symbols: dict[str, list[Symbol]] = {}
        self._searches: dict[str, TextSearch] = {}
        self._maps: dict[str, SourceMap | None] = {}

    @cached_property
    def roles(self) -> dict[str, Role]:
        """The role of each file of the tree."""
        return assign_roles(self.snapshot)

    @cached_property
    def copies(self) -> dict[str, list[str]]:
        """Original path → paths of its built copies, sorted."""
        found: dict[str, list[str]] = {}
        for path, role in sorted(self.roles.items()):
            for origin in role.origins:
                found.setdefault(origin, []).append(path)
        return found

    def search(self, tier: str = "source") -> TextSearch:
        """Return the ranked full-text search over a tier of files (see `search.TIERS`)."""
        if tier not in self._searches:
            self._searches[tier] = TextSearch(self.snapshot, self.roles, tier)
        return self._searches[tier]

    def text(self, path: str) -> Text:
        """Return the text of a readable file."""
        return self.snapshot.text(self.snapshot.files[path])

    def symbols(self, path: str) -> list[Symbol]:
        """Return the definitions in a file, in order of their first line."""
        if path not in self._symbols:
            minified = self.roles[path].minified
            self._symbols[path] = [] if minified else symbols_of(path, self.text(path))
        return self._symbols[path]

    def enclosing(self, path: str, line: int) -> Symbol | None:
        """Return the innermost definition around a line."""
        around = [s for s in self.symbols(path) if s.first <= line <= s.last]
        return max(around, key=lambda s: (s.first, -s.last), default=None)

    def rank(self, query: str, limit: int = 50, tier: str = "source") -> list[Ranked]:
        """Return the passages that match the words of `query` best, best first."""
        return self.search(tier).rank(query, limit)

    def origin(self, path: str, line: int, column: int) -> Origin | None:
        """Map a place (1-based) of a built or minified file to its original through the source
        map.
        """
        if path not in self._maps:
            self._maps[path] = map_of(self.snapshot, path)
        found = self._maps[path]
        return found.origin(line, column) if found else None

    def ordered(self, files: list[SourceFile]) -> list[SourceFile]:
        """Return files in the order in which a reader wants them: by role, then by path."""
        return sorted(files, key=lambda file: (self.roles[file.path].rank, file.path))


def index_of(snapshot: Snapshot) -> CodeIndex:
    """Return the index of a snapshot; the same material in one process is indexed once."""
    index = _built.pop(snapshot.digest, None)
    if index is None:
        index = CodeIndex(snapshot)
    index.snapshot = snapshot  # texts come from the reader that is open now
    _built[snapshot.digest] = index
    while len(_built) > _KEPT:
        _built.popitem(last=False)
    return index


__all__ = ["CodeIndex", "Origin", "Ranked", "Role", "Symbol", "index_of"]
