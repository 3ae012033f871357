"""What speaks for a file. Each signal is one small function.

A signal gives (path, points, kind, label, evidence IDs). Without its evidence a signal is silent,
so a rank always says what it rests on.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from phases.providers.offline.case import CatalogFile
from phases.providers.offline.clues import Clues, Linked
from phases.providers.offline.corpus import Corpus
from phases.providers.offline.outline import Definition
from phases.providers.offline.points import Points
from phases.providers.offline.structure import Structure, key
from phases.providers.offline.tracing import Tracer, is_expression
from phases.providers.offline.words import is_identifier, split, stem, stems

_PACKAGING_FILES = """
setup.cfg setup.py pyproject.toml MANIFEST.in package.json meson.build CMakeLists.txt
"""
PACKAGING = frozenset(_PACKAGING_FILES.split())
"""Files that say what is installed."""

_DECLARES = re.compile(r"packages|include|exclude|artifacts|sdist|package[-_]?data|\"files\"")

_COMMON = 0.25
"""Share of the source files below a name from which it tells nothing: the package's own is one."""

_NEAR = 3
"""Ranks count as 1 / (_NEAR + rank): the first places differ most."""


class Signal(NamedTuple):
    """Points for a file and why."""

    path: str
    points: float
    kind: str
    label: str
    evidence: tuple[str, ...]


class Signals:
    """The signals of one request."""

    def __init__(
        self, clues: Clues, corpus: Corpus, structure: Structure, tracer: Tracer, points: Points
    ) -> None:
        self.clues = clues
        self.corpus = corpus
        self.structure = structure
        self.tracer = tracer
        self.points = points

    def all(self) -> Iterator[Signal]:
        """Yield every signal, one kind after the other."""
        yield from self._searches()
        yield from self._frames()
        yield from self._symbols()
        yield from self._uses()
        yield from self._modules()
        yield from self._paths()
        yield from self._chosen()
        yield from self._packaging()
        yield from self._decisions()
        yield from self._reached()
        yield from self._callees()
        yield from self._caught()
        yield from self._logged()
        yield from self._texts()

    def purpose(self, query: str, glob: str) -> str:
        """Return what a search was for, recognised by its words."""
        if glob:
            return "inside"
        named = {words: name for name, words in self.clues.queries.items()}
        return named.get(query, "data")

    def _searches(self) -> Iterator[Signal]:
        for ranking in self.corpus.rankings:
            weight = self._query_weight(self.purpose(ranking.query, ranking.glob))
            order = list(dict.fromkeys(path for path, _ in ranking.hits))
            for rank, path in enumerate(order, 1):
                points = weight * (_NEAR + 1) / (_NEAR + rank)
                yield Signal(
                    path,
                    points,
                    "search",
                    "was found by a search with the report's words",
                    (ranking.evidence,),
                )

    def _query_weight(self, purpose: str) -> float:
        """Return what a search counts; one that odd rows suggested less if they may be chance."""
        chance = purpose == "data" and not any(odd.codes for odd in self.tracer.odd)
        return self.points.search[purpose] * (self.points.chance if chance else 1.0)

    def _frames(self) -> Iterator[Signal]:
        """Frames are a boost: the innermost of ours most, callers less."""
        best: dict[str, Signal] = {}
        for place in self.structure.framed:
            full = self.points.own_fault if place.own_fault else self.points.frame
            full *= self.points.only_logged if self.clues.only_logged else 1.0
            points = full / (1 + 0.4 * place.nearness)
            label = f"stands in the stack trace, at line {place.line}"
            shown = self.corpus.quoting(place.path, place.line, place.line)
            signal = Signal(place.path, points, "frame", label, (*shown[:1], place.observation))
            if place.path not in best or points > best[place.path].points:
                best[place.path] = signal
        yield from best.values()

    def _symbols(self) -> Iterator[Signal]:
        """A name of the report that is defined in few places. Plain words such as `date` are
        defined by chance.
        """
        places: dict[str, list[tuple[str, Definition]]] = defaultdict(list)
        for name, asked, definition in self.corpus.symbols:
            if asked in self.structure.inner_names:
                continue
            places[asked].append((name, definition))
        for asked, found in places.items():
            ours = [x for x in found if self.clues.catalog.role(x[1].path) in ("source", "")]
            paths = {d.path: evidence for evidence, d in reversed(ours)}
            sure = 1.0 if is_identifier(asked) else self.points.plain_word
            for path, evidence in sorted(paths.items()):
                points = sure * self.points.defines / len(paths) ** 0.7
                yield Signal(
                    path,
                    points,
                    "defines",
                    f"defines `{asked}`, which the report names",
                    (evidence,),
                )

    def _uses(self) -> Iterator[Signal]:
        """A name or text that occurs in few files says more than one that is everywhere."""
        for uses in self.corpus.uses:
            paths = dict.fromkeys(path for path, _, _ in uses.hits)
            ours = [p for p in paths if self.clues.catalog.role(p) in ("source", "config", "")]
            kind, weight, label = self._kind_of_use(uses.name)
            if is_expression(uses.name):
                continue
            for path in ours:
                yield Signal(path, weight / len(ours) ** 0.7, kind, label, (uses.evidence,))

    def _kind_of_use(self, text: str) -> tuple[str, float, str]:
        if text in self.clues.messages:
            return "message", self.points.message, f"holds the error's text, “{text}”"
        if text in self.clues.printed:
            return "printed", self.points.printed, f"writes “{text}”, which the report shows"
        return "uses", self.points.uses, f"uses `{text}`"

    def _modules(self) -> Iterator[Signal]:
        """Modules that report or log name with dots: `shop.basket` is shop/basket.py."""
        traced = {linked.frame.path.rpartition("/")[2] for linked in self.clues.frames}
        for item in self.clues.case.observations:
            said = item.source == "report"
            points = self.points.module if said else self.points.module_in_log
            for mention in self.clues.mentions[item.id]:
                if mention.kind == "symbol" and "." in mention.name:
                    for path in self.clues.catalog.modules(mention.name)[:1]:
                        if not path.endswith(("__init__.py", "index.js")):
                            yield Signal(
                                path,
                                points,
                                "module",
                                f"is the module `{mention.name}` that is named",
                                (item.id,),
                            )
                elif mention.kind == "file" and mention.name.rpartition("/")[2] not in traced:
                    for path in self.clues.catalog.by_suffix(mention.name, 2)[:2]:
                        yield Signal(
                            path, points, "module", f"is named as `{mention.name}`", (item.id,)
                        )

    def _paths(self) -> Iterator[Signal]:
        """Words of the report that stand in the path itself; rare ones, and folders spelled out."""
        weights = self.clues.weights
        observed = tuple(item.id for item in self.clues.case.report[:1])
        for path in self.corpus.paths:
            words = dict.fromkeys(stems(path.rpartition(".")[0].replace("/", " ")))
            shared = sum(weights.get(word, 0.0) * self._rare(word) for word in words)
            points = self.points.path * min(1.0, shared / 6)
            if self.clues.unaffected & set(stems(path.rpartition("/")[2].partition(".")[0])):
                points *= self.points.works
            yield Signal(path, points, "path", "has words of the report in its path", observed)
            for part in dict.fromkeys(path.lower().split("/")):
                name = part.partition(".")[0]
                if len(name) >= 5 and name in self.clues.spelled and self._spread(name) <= _COMMON:
                    points = self.points.spelled[self._where_spelled(name)]
                    label = f"has “{name}” in its path, as the report"
                    yield Signal(path, points, "path", label, observed)

    def _where_spelled(self, name: str) -> str:
        """Return where the report spells a name: in its title, as code, or in its text."""
        if name in {word.lower() for word in self.clues.title.split()}:
            return "title"
        ticked = any(f"`{name}`" in item.text.lower() for item in self.clues.case.report)
        return "code" if ticked else "text"

    def _rare(self, stem: str) -> float:
        """Return how telling a word is in paths: the package's own name is in all of them."""
        return 1 / float(max(1, self._in_paths.get(stem, 1)) ** 0.5)

    @cached_property
    def _ours(self) -> list[CatalogFile]:
        """The files that are compared: how rare a name is among tests says nothing."""
        return [f for f in self.clues.case.files if f.role in ("source", "")]

    @cached_property
    def _in_paths(self) -> dict[str, int]:
        found: dict[str, int] = defaultdict(int)
        for file in self.clues.case.files:
            for word in dict.fromkeys(stems(file.path.replace("/", " "))):
                found[word] += 1
        return found

    def _spread(self, name: str) -> float:
        """Return the share of files below a folder or name."""
        return self._named_parts.get(name, 0) / max(1, len(self._ours))

    @cached_property
    def _named_parts(self) -> dict[str, int]:
        found: dict[str, int] = defaultdict(int)
        for file in self._ours:
            for name in {part.partition(".")[0] for part in file.path.lower().split("/")}:
                found[name] += 1
        return found

    def _chosen(self) -> Iterator[Signal]:
        """Files that an argument of the report chooses among siblings: `lang="es"` is lang_es."""
        observed = tuple(item.id for item in self.clues.case.report[:1])
        for name, value in self.clues.choices:
            found = [f.path for f in self.clues.case.files if self._is_chosen(f.path, name, value)]
            for path in found:
                points = self.points.chosen / len(found) ** 0.7
                label = f"is what `{name}={value}` chooses among its siblings"
                yield Signal(path, points, "chosen", label, observed)

    def _is_chosen(self, path: str, name: str, value: str) -> bool:
        """Tell whether the last parts of a path say what an argument is for, and its value."""
        if not self.structure.is_ours(path):
            return False
        folder, _, file = path.rpartition("/")
        own = {*split(file.rpartition(".")[0])}
        around = {*own, *split(folder.rpartition("/")[2])}
        said = {stem(word) for word in around}
        return {*split(value)} <= own and {stem(word) for word in split(name)} <= said

    def _packaging(self) -> Iterator[Signal]:
        """A module of the tree that cannot be imported was not packaged: no one declares it. What
        the report misses in a package was not declared either.
        """
        why = [(self.points.packaging, "packaging", f"`{module}` cannot be imported")
               for module in self.clues.missing_modules]  # fmt: skip
        if self.clues.lacks_files and not why:
            why = [(self.points.packaged, "packaged", "the report misses something in it")]
        for points, kind, reason in why:
            for path in self.corpus.read:
                texts = self.corpus.lines(path).values()
                if path.rpartition("/")[2] in PACKAGING and any(map(_DECLARES.search, texts)):
                    label = f"declares what is packaged, and {reason}"
                    yield Signal(path, points, kind, label, tuple(self.corpus.read[path][:2]))

    def _decisions(self) -> Iterator[Signal]:
        """Lines that decide by an odd column in a way that its odd values break."""
        for use in self.tracer.uses:
            columns = ", ".join(use.odd.finding.columns)
            label = f"decides by {columns} in line {use.line}"
            cited = (use.evidence, use.odd.finding.evidence)
            yield Signal(use.path, use.points, "data", label, cited)

    def _reached(self) -> Iterator[Signal]:
        """Code that decides by an odd column and is called from what the report names."""
        best: dict[str, Signal] = {}
        for use in self.tracer.uses:
            definition = self.structure.user_of(use)
            way = self.structure.chains.get(definition, ()) if definition else ()
            if not way:
                continue
            share = use.points / self.points.data
            label = f"is called from `{way[0].name}`, which the report names" + _by_way_of(way)
            cited = [e for d in way[:3] for e in self.corpus.quoting(d.path, d.first, d.last)[:1]]
            signal = Signal(use.path, self.points.reached * share, "reached", label, tuple(cited))
            if use.path not in best or signal.points > best[use.path].points:
                best[use.path] = signal
        yield from best.values()

    def _callees(self) -> Iterator[Signal]:
        """Definitions of what the named functions call by a word of the report's title: users name
        the way in, and the fault is often a step further.
        """
        pool, weights = self.structure.pool, self.clues.weights
        for name, caller in self.structure.inner_names.items():
            found = [(e, d) for e, asked, d in self.corpus.symbols if asked == name]
            ours = [
                (e, d) for e, d in found if self.structure.is_ours(d.path) and d.path != caller.path
            ]
            scores = {d: pool.score(key(d), weights) for _, d in ours if key(d) in pool.documents}
            top = max(scores.values(), default=0.0)
            for evidence, item in ours:
                share = scores.get(item, 0.0) / top if top > 0 else 0.0
                label = f"defines `{item.name}`, which `{caller.name}` calls"
                yield Signal(item.path, self.points.callee * share**2, "callee", label, (evidence,))

    def _caught(self) -> Iterator[Signal]:
        """An error that only the logs show was caught: the trace begins in the function that did,
        and what this function does next is what the user sees.
        """
        outermost: dict[str, Linked] = {}
        for linked in self.clues.frames if self.clues.only_logged else ():
            old = outermost.get(linked.frame.observation)
            if old is None or linked.frame.depth > old.frame.depth:
                outermost[linked.frame.observation] = linked
        for where, linked in outermost.items():
            if linked.path and self.structure.catches(linked):
                label = f"catches the logged error in line {linked.frame.line} and goes on"
                shown = self.corpus.quoting(linked.path, linked.frame.line, linked.frame.line)
                yield Signal(linked.path, self.points.caught, "caught", label, (*shown[:1], where))

    def _logged(self) -> Iterator[Signal]:
        """Modules that logged something about what the report names; the last to do so most. What
        they call takes part.
        """
        acted = self.structure.acted
        last = {found[-1].path for found in acted.values()}
        seen: dict[str, Signal] = {}
        for code, found in acted.items():
            for item in found:
                points = self.points.logged * (1.0 if item.path in last else 0.4)
                label = f"wrote log lines about {code}"
                seen.setdefault(item.path, Signal(item.path, points, "logged", label,
                                                  (item.evidence,)))  # fmt: skip
        yield from seen.values()
        for definition, way in self.structure.acting_chains.items():
            if len(way) > 1 and definition.path not in seen:
                label = f"is called from `{way[0].name}`, which logged what the report names"
                cited = self.corpus.quoting(definition.path, definition.first, definition.last)
                points = self.points.logged_reach / (len(way) - 1)
                yield Signal(definition.path, points, "log reach", label, tuple(cited[:1]))

    def _texts(self) -> Iterator[Signal]:
        """The best function of what was read, against the best of all."""
        pool, weights = self.structure.pool, self.clues.weights
        best: dict[str, tuple[float, Definition]] = {}
        for path in self.corpus.read:
            scored = [(pool.score(key(d), weights), d) for d in self.structure.parts(path)]
            if scored:
                best[path] = max(scored, key=lambda pair: (pair[0], -pair[1].first))
        top = max((score for score, _ in best.values()), default=0.0)
        for path, (score, definition) in best.items():
            if top > 0:
                cited = self.corpus.quoting(path, definition.first, definition.last)[:2]
                named = f"holds `{definition.qualified}`, which " if definition.qualified else ""
                label = f"{named}shares many words with the report"
                yield Signal(
                    path, self.points.text * (score / top) ** 2, "text", label, tuple(cited)
                )


def _by_way_of(way: tuple[Definition, ...]) -> str:
    """Return the steps between the ends of a chain of calls."""
    between = ", ".join(f"`{d.name}`" for d in way[1:-1])
    return f", by way of {between}" if between else ""
