"""Ranks files and functions by what the evidence shows: the signals of a file, added up."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from phases.providers.offline import points as table
from phases.providers.offline.clues import Clues
from phases.providers.offline.corpus import Corpus
from phases.providers.offline.data import Odd
from phases.providers.offline.outline import Definition
from phases.providers.offline.scoring import Pool
from phases.providers.offline.signals import Signal, Signals
from phases.providers.offline.structure import Structure, key
from phases.providers.offline.tracing import Tracer

_ENTRY = re.compile(r"(^|/)(cli|__main__|main|commands?|console)\.\w+$")
"""Entry points only pass on; a report about a command says so."""

_ROLES = {"source": 1.0, "config": 0.55, "types": 0.3, "data": 0.3, "other": 0.4, "": 0.8}
"""How likely a file of a role is the fault, other things equal; others: hardly at all."""
_UNLIKELY = 0.12
_OF_TOOLS = 0.3
"""Share for what stands in a hidden folder: settings and scripts of tools, nothing that is run."""


@dataclass
class Place:
    """A file with its points and its functions, best first."""

    path: str
    points: float = 0.0
    signals: list[Signal] = field(default_factory=list)
    functions: list[tuple[float, Definition]] = field(default_factory=list)

    @property
    def evidence(self) -> list[str]:
        """Evidence of the signals, the strongest first."""
        ordered = sorted(self.signals, key=lambda s: (-s.points, s.label))
        return list(dict.fromkeys(name for signal in ordered for name in signal.evidence))

    @property
    def labels(self) -> list[str]:
        """What speaks for the file, the strongest first."""
        ordered = sorted(self.signals, key=lambda s: (-s.points, s.label))
        return list(dict.fromkeys(signal.label for signal in ordered))


class Ranker:
    """Ranks the files of one request."""

    def __init__(self, clues: Clues, corpus: Corpus) -> None:
        self.clues = clues
        self.corpus = corpus
        self.tracer = Tracer(clues, corpus)
        self.points = table.POINTS
        self.structure = Structure(clues, corpus)
        self.signals = Signals(clues, corpus, self.structure, self.tracer, self.points)

    def places(self) -> list[Place]:
        """Return the files that something speaks for, most likely first."""
        found: dict[str, Place] = {}
        for signal in self.signals.all():
            if signal.points > 0 and signal.path:
                place = found.setdefault(signal.path, Place(signal.path))
                place.signals.append(signal)
        pool = self.structure.pool
        for place in found.values():
            weight = self._weight(place.path)
            place.functions = self._functions(place.path, pool)
            place.points = round(weight * _sum(place.signals), 6)
        return sorted(found.values(), key=lambda p: (-p.points, p.path))

    def _weight(self, path: str) -> float:
        weight = _ROLES.get(self.clues.catalog.role(path), _UNLIKELY)
        if any(part.startswith(".") for part in path.split("/")[:-1]):
            weight *= _OF_TOOLS
        passing_on = _ENTRY.search(path) and not self.clues.runs_commands
        return weight * 0.8 if passing_on else weight

    def _functions(self, path: str, pool: Pool) -> list[tuple[float, Definition]]:
        """Return the functions of a file with their points, best first."""
        found = []
        for item in self.structure.leaves(path):
            points = pool.score(key(item), self.clues.weights) + self._extra(item)
            found.append((round(points, 6), item))
        found.sort(key=lambda pair: (-pair[0], pair[1].first, pair[1].qualified))
        unique: dict[str, tuple[float, Definition]] = {}
        for pair in found:  # overloads share a name: the longest has the code
            old = unique.get(pair[1].qualified)
            longer = old is not None and _length(pair[1]) > _length(old[1])
            if old is None or longer:
                unique[pair[1].qualified] = (max(pair[0], old[0] if old else 0.0), pair[1])
        return list(unique.values())

    def _extra(self, item: Definition) -> float:
        """Frames, names and odd columns point at functions directly; in shares of the best text."""
        share = 0.0
        for framed in self.structure.framed:
            if self.structure.is_in(framed, item):
                full = self.points.own_fault_in if framed.own_fault else self.points.in_frame
                share = max(share, full / (1 + 0.5 * framed.nearness))
        for use in self.tracer.uses:
            if use.path == item.path and item.first <= use.line <= item.last:
                share = max(share, use.points / self.points.data)
            elif use.path == item.path and self.structure.holds_constant(item, use.line):
                share = max(share, self.points.on_constant * use.points / self.points.data)
        names = {name.rpartition(".")[2] for name in self.clues.symbols}
        if item.name in names:
            share += self.points.named
        elif any(len(name) > 4 and name in item.name for name in names):
            share += self.points.named_like
        way = self.structure.chains.get(item, ())
        if len(way) > 1:  # the fault is often a step further in than what a user calls
            share += self.points.called / (len(way) - 1)
        return share * self.structure.best_text

    @property
    def odd(self) -> list[Odd]:
        """Odd rows, those that matter most first."""
        return self.tracer.odd


def _length(item: Definition) -> int:
    return item.last - item.first


def _sum(signals: list[Signal]) -> float:
    """Add up signals; several of one kind count less and less, so that none drowns the others."""
    grouped: dict[str, list[float]] = defaultdict(list)
    for signal in signals:
        grouped[signal.kind].append(signal.points)
    total = 0.0
    for kind, points in sorted(grouped.items()):
        if kind == "search":
            total += sum(points)
            continue
        if kind == "data":
            total += max(points)
            continue
        total += sum(p / (1 + n) for n, p in enumerate(sorted(points, reverse=True)))
    return total
