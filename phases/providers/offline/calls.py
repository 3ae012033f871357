"""Who calls whom, among the definitions that were read: by name, as a reader would follow them.

A call is a known definition's name before a bracket. Names that many definitions share say nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from phases.providers.offline.corpus import Corpus
from phases.providers.offline.outline import Definition

_CALL = re.compile(r"(?:([\w$]+)\.)?([A-Za-z_$][\w$]*)\s*\(")
_SHARED = 3
"""Definitions of one name beyond which a call by it is anybody's."""

_LONGEST = 400
"""Lines of a definition that are looked at."""

DEPTH = 4
"""Calls that are followed inwards."""


class Calls:
    """The calls between some definitions."""

    def __init__(self, corpus: Corpus, leaves: Iterable[Definition]) -> None:
        self._corpus = corpus
        self._by_name: dict[str, list[Definition]] = defaultdict(list)
        for leaf in leaves:
            self._by_name[leaf.name].append(leaf)
        self._called: dict[Definition, list[Definition]] = {}

    def named(self, name: str) -> list[Definition]:
        """Return the definitions of a name, none if many share it."""
        found = self._by_name.get(name.rpartition(".")[2], [])
        return found if len(found) <= _SHARED else []

    def called(self, caller: Definition) -> list[Definition]:
        """Return what a definition calls, in order, once each."""
        if caller not in self._called:
            found: dict[Definition, None] = {}
            lines = self._corpus.lines(caller.path)
            for number in range(caller.first + 1, min(caller.last, caller.first + _LONGEST) + 1):
                for match in _CALL.finditer(lines.get(number, "")[:2000]):
                    found.update(dict.fromkeys(self._meant(match[1] or "", match[2], caller)))
            found.pop(caller, None)
            self._called[caller] = list(found)
        return self._called[caller]

    def names_in(self, caller: Definition) -> list[str]:
        """Return the names that a definition calls as methods of something else, known or not."""
        lines = self._corpus.lines(caller.path)
        texts = [lines.get(n, "")[:2000] for n in range(caller.first + 1, caller.last + 1)]
        calls = [m for text in texts[:_LONGEST] for m in _CALL.finditer(text)]
        return list(dict.fromkeys(m[2] for m in calls if m[1] not in (None, "this", "self")))

    def modules_in(self, caller: Definition) -> list[str]:
        """Return the names before the dot of what a definition calls: modules, among others."""
        lines = self._corpus.lines(caller.path)
        texts = [lines.get(n, "")[:2000] for n in range(caller.first + 1, caller.last + 1)]
        calls = [m for text in texts[:_LONGEST] for m in _CALL.finditer(text)]
        return list(dict.fromkeys(m[1] for m in calls if m[1] not in (None, "this", "self")))

    def _meant(self, owner: str, name: str, caller: Definition) -> list[Definition]:
        """Return what a call may mean: of the module named before the dot, else of the same file,
        else anything of this name.
        """
        found = self.named(name)
        module = [d for d in found if owner and _stem(d.path) == owner]
        same = [d for d in found if d.path == caller.path]
        return module or same or found

    def chains(self, starts: Iterable[Definition]) -> dict[Definition, tuple[Definition, ...]]:
        """Return, for what some definitions reach, the shortest way to it, both ends included."""
        ways: dict[Definition, tuple[Definition, ...]] = {start: (start,) for start in starts}
        edge = list(ways)
        for _ in range(DEPTH):
            fresh = []
            for caller in edge:
                for target in self.called(caller):
                    if target not in ways:
                        ways[target] = (*ways[caller], target)
                        fresh.append(target)
            edge = fresh
        return ways


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]
