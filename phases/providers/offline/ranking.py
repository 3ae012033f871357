"""Ranks files and functions by what the evidence shows. Each signal is one small function.

A signal gives (path, points, label, evidence IDs). Without its evidence a signal is silent, so a
rank always says what it rests on.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from phases.providers.offline import points as table
from phases.providers.offline.calls import Calls
from phases.providers.offline.clues import Clues, Linked
from phases.providers.offline.corpus import Corpus
from phases.providers.offline.data import Odd
from phases.providers.offline.outline import Definition
from phases.providers.offline.scoring import Pool, counts
from phases.providers.offline.telling import Telling
from phases.providers.offline.tracing import Tracer, Use, is_expression
from phases.providers.offline.words import is_identifier, split, stem, stems

_PACKAGING_FILES = """
setup.cfg setup.py pyproject.toml MANIFEST.in package.json meson.build CMakeLists.txt
"""
PACKAGING = frozenset(_PACKAGING_FILES.split())
"""Files that say what is installed."""

_CONSTANT = re.compile(
    r"^(?:export\s+)?(?:const\s+|let\s+|var\s+|static\s+)?([A-Za-z_$][\w$]*)\s*(?::[^=]+)?="
)
_ENTRY = re.compile(r"(^|/)(cli|__main__|main|commands?|console)\.\w+$")
"""Entry points only pass on; a report about a command says so."""

_ROLES = {"source": 1.0, "config": 0.55, "types": 0.3, "data": 0.3, "other": 0.4, "": 0.8}
"""How likely a file of a role is the fault, other things equal; others: hardly at all."""
_UNLIKELY = 0.12

_HANDLER = re.compile(r"^\s*(except\b|\}?\s*catch\b)|\.catch\(")

_NEAR = 3
"""Ranks count as 1 / (_NEAR + rank): the first places differ most."""


class Framed(NamedTuple):
    """A stack frame's place in the source. `nearness`: 0 is the innermost of our own."""

    path: str
    line: int
    name: str
    nearness: int
    observation: str
    own_fault: bool = False


class Signal(NamedTuple):
    """Points for a file and why."""

    path: str
    points: float
    kind: str
    label: str
    evidence: tuple[str, ...]


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

    def places(self) -> list[Place]:
        """Return the files that something speaks for, most likely first."""
        found: dict[str, Place] = {}
        for signal in self._signals():
            if signal.points > 0 and signal.path:
                place = found.setdefault(signal.path, Place(signal.path))
                place.signals.append(signal)
        pool = self._pool()
        for place in found.values():
            weight = self._weight(place.path)
            place.functions = self._functions(place.path, pool)
            place.points = round(weight * _sum(place.signals), 6)
        return sorted(found.values(), key=lambda p: (-p.points, p.path))

    def _weight(self, path: str) -> float:
        weight = _ROLES.get(self.clues.catalog.role(path), _UNLIKELY)
        passing_on = _ENTRY.search(path) and not self.clues.runs_commands
        return weight * 0.8 if passing_on else weight

    def _signals(self) -> Iterator[Signal]:
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
        chance = purpose == "data" and not any(odd.codes for odd in self.odd)
        return self.points.search[purpose] * (self.points.chance if chance else 1.0)

    def _frames(self) -> Iterator[Signal]:
        """Frames are a boost: the innermost of ours most, callers less."""
        best: dict[str, Signal] = {}
        for place in self.framed:
            full = self.points.own_fault if place.own_fault else self.points.frame
            points = full / (1 + 0.4 * place.nearness)
            label = f"stands in the stack trace, at line {place.line}"
            shown = self.corpus.quoting(place.path, place.line, place.line)
            signal = Signal(place.path, points, "frame", label, (*shown[:1], place.observation))
            if place.path not in best or points > best[place.path].points:
                best[place.path] = signal
        yield from best.values()

    @cached_property
    def framed(self) -> list[Framed]:
        """Where stack frames are in the source, the innermost first.

        A frame of a built copy is taken to the source by the name of its function.
        """
        own = [linked for linked in self.clues.frames if linked.path]
        depths = sorted({linked.frame.depth for linked in own})
        found = []
        for linked in own:
            frame, nearness = linked.frame, depths.index(linked.frame.depth)
            if self.clues.catalog.role(linked.path) != "built_copy":
                own_fault = frame.depth == 0 and self.clues.language_error
                place = (linked.path, frame.line, frame.name, nearness, frame.observation)
                found.append(Framed(*place, own_fault))
                continue
            last = frame.name.rpartition(".")[2]
            found += [
                Framed(d.path, d.first, d.name, nearness, frame.observation)
                for _, asked, d in self.corpus.symbols
                if asked == last and self.clues.catalog.role(d.path) == "source"
            ]
        return sorted(found, key=lambda f: (f.nearness, f.path, f.line))

    def _symbols(self) -> Iterator[Signal]:
        """A name of the report that is defined in few places. Plain words such as `date` are
        defined by chance.
        """
        places: dict[str, list[tuple[str, Definition]]] = defaultdict(list)
        for name, asked, definition in self.corpus.symbols:
            if asked in self.inner_names:
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
            message = uses.name in self.clues.messages
            kind = "message" if message else "uses"
            weight = self.points.message if message else self.points.uses
            label = f"holds the error's text, “{uses.name}”" if message else f"uses `{uses.name}`"
            if is_expression(uses.name):
                continue
            for path in ours:
                yield Signal(path, weight / len(ours) ** 0.7, kind, label, (uses.evidence,))

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
                if len(name) >= 5 and name in self.clues.spelled and self._spread(name) <= 0.1:
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
    def _in_paths(self) -> dict[str, int]:
        found: dict[str, int] = defaultdict(int)
        for file in self.clues.case.files:
            for word in dict.fromkeys(stems(file.path.replace("/", " "))):
                found[word] += 1
        return found

    def _spread(self, name: str) -> float:
        """Return the share of files below a folder or name."""
        return self._named_parts.get(name, 0) / max(1, len(self.clues.case.files))

    @cached_property
    def _named_parts(self) -> dict[str, int]:
        found: dict[str, int] = defaultdict(int)
        for file in self.clues.case.files:
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
        if not self._is_ours(path):
            return False
        folder, _, file = path.rpartition("/")
        own = {*split(file.rpartition(".")[0])}
        around = {*own, *split(folder.rpartition("/")[2])}
        said = {stem(word) for word in around}
        return {*split(value)} <= own and {stem(word) for word in split(name)} <= said

    def _packaging(self) -> Iterator[Signal]:
        """A module of the tree that cannot be imported was not packaged: no one declares it."""
        for module in self.clues.missing_modules:
            for path in self.corpus.read:
                lines = self.corpus.lines(path)
                if path.rpartition("/")[2] in PACKAGING and any(
                    "packages" in x for x in lines.values()
                ):
                    cited = tuple(self.corpus.read[path][:2])
                    yield Signal(
                        path,
                        self.points.packaging,
                        "packaging",
                        f"declares which packages are installed, and `{module}` cannot be imported",
                        cited,
                    )

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
            definition = self.user_of(use)
            way = self.chains.get(definition, ()) if definition else ()
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
        pool, weights = self._pool(), self.clues.weights
        for name, caller in self.inner_names.items():
            found = [(e, d) for e, asked, d in self.corpus.symbols if asked == name]
            ours = [(e, d) for e, d in found if self._is_ours(d.path) and d.path != caller.path]
            scores = {d: pool.score(_key(d), weights) for _, d in ours if _key(d) in pool.documents}
            top = max(scores.values(), default=0.0)
            for evidence, item in ours:
                share = scores.get(item, 0.0) / top if top > 0 else 0.0
                label = f"defines `{item.name}`, which `{caller.name}` calls"
                yield Signal(item.path, self.points.callee * share**2, "callee", label, (evidence,))

    @cached_property
    def inner_names(self) -> dict[str, Definition]:
        """Name → caller of calls that functions named by the report make by a word of its title,
        where no definition of that name was asked for by the report itself.
        """
        title = set(stems(self.clues.title))
        own = {name.rpartition(".")[2] for name in self.clues.symbols}
        found: dict[str, Definition] = {}
        for start in [d for name in own for d in self.calls.named(name)]:
            for name in self.calls.names_in(start):
                if name not in own and len(name) > 4 and title & set(stems(name)):
                    found.setdefault(name, start)
        return dict(sorted(found.items())[:2])

    @cached_property
    def calls(self) -> Calls:
        """Who calls whom, of what was read."""
        return Calls(self.corpus, [d for p in self.corpus.paths if self._is_ours(p)
                                   for d in self._leaves(p)])  # fmt: skip

    @cached_property
    def chains(self) -> dict[Definition, tuple[Definition, ...]]:
        """What is called from the functions that the report names, and the way there."""
        return self.calls.chains(d for name in self.clues.entries for d in self.calls.named(name))

    def _is_ours(self, path: str) -> bool:
        return self.clues.catalog.role(path) in ("source", "")

    def user_of(self, use: Use) -> Definition | None:
        """Return the function that a deciding line belongs to: around it, or using its constant."""
        own = [d for d in self._leaves(use.path) if d.first <= use.line <= d.last]
        users = own or [d for d in self._leaves(use.path) if self._holds_constant(d, use.line)]
        return max(users, key=lambda d: d.first, default=None) if own else next(iter(users), None)

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
            if linked.path and self._catches(linked):
                label = f"catches the logged error in line {linked.frame.line} and goes on"
                shown = self.corpus.quoting(linked.path, linked.frame.line, linked.frame.line)
                yield Signal(linked.path, self.points.caught, "caught", label, (*shown[:1], where))

    def _catches(self, linked: Linked) -> bool:
        """Tell whether a handler follows a line in its function."""
        around = self.corpus.enclosing(linked.path, linked.frame.line)
        last = around.last if around else linked.frame.line + 12
        return bool(self._handlers(linked.path, linked.frame.line, last))

    def _handlers(self, path: str, first: int, last: int) -> list[int]:
        lines = self.corpus.lines(path)
        return [n for n in range(first, last + 1) if _HANDLER.search(lines.get(n, ""))]

    def after_catch(self, path: str, within: tuple[int, int]) -> list[Telling]:
        """Return the line that catches errors in a range, and the first that runs after it."""
        lines = self.corpus.lines(path)
        for handler in self._handlers(path, *within)[:1]:
            depth = _indent(lines[handler])
            below = (n for n in range(handler + 1, within[1] + 1) if lines.get(n, "").strip())
            after = next((n for n in below if _indent(lines[n]) <= depth), handler)
            return [
                Telling(n, lines[n], cited) for n in dict.fromkeys((handler, after))
                for cited in self.corpus.quoting(path, n, n)[:1]
            ]  # fmt: skip
        return []

    @property
    def odd(self) -> list[Odd]:
        """Odd rows, those that matter most first."""
        return self.tracer.odd

    def _texts(self) -> Iterator[Signal]:
        """The best function of what was read, against the best of all."""
        pool, weights = self._pool(), self.clues.weights
        best: dict[str, tuple[float, Definition]] = {}
        for path in self.corpus.read:
            scored = [(pool.score(_key(d), weights), d) for d in self._leaves(path)]
            if scored:
                best[path] = max(scored, key=lambda pair: (pair[0], -pair[1].first))
        top = max((score for score, _ in best.values()), default=0.0)
        for path, (score, definition) in best.items():
            if top > 0:
                cited = self.corpus.quoting(path, definition.first, definition.last)[:2]
                label = f"holds `{definition.qualified}`, which shares many words with the report"
                yield Signal(
                    path, self.points.text * (score / top) ** 2, "text", label, tuple(cited)
                )

    # Functions ------------------------------------------------------------------------------

    def _pool(self) -> Pool:
        if not hasattr(self, "_pooled"):
            documents = {}
            for path in self.corpus.paths:
                lines = self.corpus.lines(path)
                for item in self._leaves(path):
                    body = "\n".join(
                        lines[n] for n in range(item.first, min(item.last, item.first + 400) + 1)
                        if n in lines
                    )  # fmt: skip
                    documents[_key(item)] = counts(item.qualified, body)
            self._pooled = Pool(documents)
        return self._pooled

    def shared_words(self, path: str, function: Definition | None) -> list[str]:
        """Return the stems that a function, or the best one of a file, shares with the report."""
        pool = self._pool()
        own = [d for d in self._leaves(path) if function is None or d == function]
        best = max(own, key=lambda d: pool.score(_key(d), self.clues.weights), default=None)
        return pool.shared(_key(best), self.clues.weights) if best else []

    def _leaves(self, path: str) -> list[Definition]:
        """Return functions, and classes that show no function of their own."""
        all_ = self.corpus.definitions(path)
        starts = [d.first for d in all_]
        return [
            d for d in all_
            if d.kind != "class" or not any(d.first < first <= d.last for first in starts)
        ]  # fmt: skip

    def _functions(self, path: str, pool: Pool) -> list[tuple[float, Definition]]:
        """Return the functions of a file with their points, best first."""
        found = []
        for item in self._leaves(path):
            points = pool.score(_key(item), self.clues.weights) + self._extra(item)
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
        for framed in self.framed:
            inside = framed.path == item.path and item.first <= framed.line <= item.last
            if inside or (framed.path == item.path and framed.name.rpartition(".")[2] == item.name):
                share = max(share, self.points.in_frame / (1 + 0.5 * framed.nearness))
        for use in self.tracer.uses:
            if use.path == item.path and item.first <= use.line <= item.last:
                share = max(share, use.points / self.points.data)
            elif use.path == item.path and self._holds_constant(item, use.line):
                share = max(share, self.points.on_constant * use.points / self.points.data)
        names = {name.rpartition(".")[2] for name in self.clues.symbols}
        if item.name in names:
            share += self.points.named
        elif any(len(name) > 4 and name in item.name for name in names):
            share += self.points.named_like
        return share * self._best_text

    def _holds_constant(self, item: Definition, line: int) -> bool:
        """Tell whether a function uses the module-level constant that a line belongs to: queries
        and patterns often stand above the function that runs them.
        """
        lines = self.corpus.lines(item.path)
        for number in range(line, max(0, line - 60), -1):
            if match := _CONSTANT.match(lines.get(number, " ")):
                within = range(item.first, item.last + 1)
                name = re.compile(rf"(?<![\w$]){re.escape(match[1])}(?![\w$])")
                return any(name.search(lines.get(n, "")) for n in within)
        return False

    @cached_property
    def _best_text(self) -> float:
        pool, weights = self._pool(), self.clues.weights
        return max((pool.score(name, weights) for name in pool.documents), default=0.0)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _by_way_of(way: tuple[Definition, ...]) -> str:
    """Return the steps between the ends of a chain of calls."""
    between = ", ".join(f"`{d.name}`" for d in way[1:-1])
    return f", by way of {between}" if between else ""


def _length(item: Definition) -> int:
    return item.last - item.first


def _key(item: Definition) -> str:
    return f"{item.path}\0{item.first}\0{item.qualified}"


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
