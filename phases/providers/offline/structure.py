"""What the code read so far shows: where frames stand, who calls whom, whose a line is."""

from __future__ import annotations

import re
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from phases.providers.offline.calls import Calls
from phases.providers.offline.clues import Clues, Linked
from phases.providers.offline.corpus import Corpus
from phases.providers.offline.outline import Definition
from phases.providers.offline.scoring import Pool, counts
from phases.providers.offline.telling import Telling
from phases.providers.offline.tracing import Use
from phases.providers.offline.words import stems

_CONSTANT = re.compile(
    r"^(?:export\s+)?(?:const\s+|let\s+|var\s+|static\s+)?([A-Za-z_$][\w$]*)\s*(?::[^=]+)?="
)

_CONSTANTS = re.compile(r"(?<![\w.])[A-Za-z]{2,}(?: [A-Za-z]{2,})+(?![\w.])")
"""Words of a log line that stand together, as its format spells them."""

_HANDLER = re.compile(r"^\s*(except\b|\}?\s*catch\b)|\.catch\(")


class Framed(NamedTuple):
    """A stack frame's place in the source. `nearness`: 0 is the innermost of our own."""

    path: str
    line: int
    name: str
    nearness: int
    observation: str
    own_fault: bool = False


class Acted(NamedTuple):
    """A log record about a code of the report, and the file whose logger wrote it."""

    path: str
    text: str
    evidence: str


class Structure:
    """The structure of the code that one request shows."""

    def __init__(self, clues: Clues, corpus: Corpus) -> None:
        self.clues = clues
        self.corpus = corpus

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

    def is_in(self, framed: Framed, item: Definition) -> bool:
        """Tell whether a frame is in a function: by its line, or by its name if the line is in
        none of that name, as where the snapshot is another version.
        """
        if framed.path != item.path:
            return False
        if item.first <= framed.line <= item.last:
            return True
        name = framed.name.rpartition(".")[2]
        return name == item.name and not any(
            d.name == name and d.first <= framed.line <= d.last for d in self.leaves(item.path)
        )

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
        return Calls(self.corpus, [d for p in self.corpus.paths if self.is_ours(p)
                                   for d in self.leaves(p)])  # fmt: skip

    @cached_property
    def chains(self) -> dict[Definition, tuple[Definition, ...]]:
        """What is called from the functions that the report names, and the way there."""
        return self.calls.chains(d for name in self.clues.entries for d in self.calls.named(name))

    @cached_property
    def acted(self) -> dict[str, list[Acted]]:
        """The log records about each code of the report, in order, where their module is known."""
        found: dict[str, list[Acted]] = {}
        lines = {(x.artifact, x.line): x for x in self.corpus.log_lines}
        for _, item in sorted(lines.items()):
            for code in self.clues.codes[:6]:
                if code in item.text and code not in self.clues.contrast:
                    path = self.clues.module_of(item.text)
                    if path and self.is_ours(path):
                        found.setdefault(code, []).append(Acted(path, item.text, item.evidence))
        return found

    @cached_property
    def acting_chains(self) -> dict[Definition, tuple[Definition, ...]]:
        """What is called by functions that wrote the last log record about a code, and the way."""
        starts: dict[Definition, None] = {}
        for found in self.acted.values():
            texts = _pairs(found[-1].text)
            for item in self.leaves(found[-1].path):
                lines = self.corpus.lines(item.path)
                body = "\n".join(lines.get(n, "") for n in range(item.first, item.last + 1))
                if any(text in body for text in texts):
                    starts[item] = None
        return self.calls.chains(starts)

    def is_ours(self, path: str) -> bool:
        return self.clues.catalog.role(path) in ("source", "")

    def user_of(self, use: Use) -> Definition | None:
        """Return the function that a deciding line belongs to: around it, or using its constant."""
        own = [d for d in self.leaves(use.path) if d.first <= use.line <= d.last]
        users = own or [d for d in self.leaves(use.path) if self.holds_constant(d, use.line)]
        return max(users, key=lambda d: d.first, default=None) if own else next(iter(users), None)

    def catches(self, linked: Linked) -> bool:
        """Tell whether a handler follows a line in its function."""
        around = self.corpus.enclosing(linked.path, linked.frame.line)
        last = around.last if around else linked.frame.line + 12
        return bool(self.handlers(linked.path, linked.frame.line, last))

    def handlers(self, path: str, first: int, last: int) -> list[int]:
        lines = self.corpus.lines(path)
        return [n for n in range(first, last + 1) if _HANDLER.search(lines.get(n, ""))]

    def after_catch(self, path: str, within: tuple[int, int]) -> list[Telling]:
        """Return the line that catches errors in a range, and the first that runs after it."""
        lines = self.corpus.lines(path)
        for handler in self.handlers(path, *within)[:1]:
            depth = _indent(lines[handler])
            below = (n for n in range(handler + 1, within[1] + 1) if lines.get(n, "").strip())
            after = next((n for n in below if _indent(lines[n]) <= depth), handler)
            return [
                Telling(n, lines[n], cited) for n in dict.fromkeys((handler, after))
                for cited in self.corpus.quoting(path, n, n)[:1]
            ]  # fmt: skip
        return []

    def leaves(self, path: str) -> list[Definition]:
        """Return functions, and classes that show no function of their own."""
        all_ = self.corpus.definitions(path)
        starts = [d.first for d in all_]
        return [
            d for d in all_
            if d.kind != "class" or not any(d.first < first <= d.last for first in starts)
        ]  # fmt: skip

    def parts(self, path: str) -> list[Definition]:
        """Return the functions of a file; of one that has none and was read (a template, a query, a
        style) the file itself, unnamed.
        """
        found = self.leaves(path)
        known = self.corpus.lines(path)
        if found or not known or path not in self.corpus.read or self.corpus.definitions(path):
            return found
        return [Definition(path, "", "file", min(known), max(known))]

    @cached_property
    def pool(self) -> Pool:
        """The words of every function of what was read, and of files that have none."""
        documents = {}
        for path in self.corpus.paths:
            lines = self.corpus.lines(path)
            for item in self.parts(path):
                body = "\n".join(
                    lines[n] for n in range(item.first, min(item.last, item.first + 400) + 1)
                    if n in lines
                )  # fmt: skip
                documents[key(item)] = counts(item.qualified, body)
        return Pool(documents)

    def shared_words(self, path: str, function: Definition | None) -> list[str]:
        """Return the stems that a function, or the best one of a file, shares with the report."""
        pool = self.pool
        own = [d for d in self.parts(path) if function is None or d == function]
        best = max(own, key=lambda d: pool.score(key(d), self.clues.weights), default=None)
        return pool.shared(key(best), self.clues.weights) if best else []

    def holds_constant(self, item: Definition, line: int) -> bool:
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
    def best_text(self) -> float:
        pool, weights = self.pool, self.clues.weights
        return max((pool.score(name, weights) for name in pool.documents), default=0.0)


def key(item: Definition) -> str:
    """Return the name of a function in the pool."""
    return f"{item.path}\0{item.first}\0{item.qualified}"


def _pairs(text: str) -> list[str]:
    """Return neighbouring words of a log line: some of them are its format's, some are values."""
    runs = [run.split() for run in _CONSTANTS.findall(text)]
    return [f"{one} {two}" for run in runs for one, two in pairwise(run)]


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())
