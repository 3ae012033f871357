"""What the evidence does to each hypothesis, whoever proposed it: read from its own words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from phases.providers.offline import story
from phases.providers.offline.case import Case, Json, as_str, strings
from phases.providers.offline.clues import Clues
from phases.providers.offline.corpus import Corpus
from phases.providers.offline.data import Odd, matching_rows
from phases.providers.offline.deciding import NOT_IN
from phases.providers.offline.outline import Definition
from phases.providers.offline.ranking import Place, Ranker
from phases.providers.offline.tracing import Use
from phases.providers.offline.words import stem, stems
from projections.wording import counted

_DATA = re.compile(r"\b(rows?|tables?|databases?)\b")
_EXPLAINS = frozenset(["packaging", "caught"])
"""Kinds of signals that explain a report by themselves."""

_TELLING = frozenset(["callee", "chosen", "data", "defines", "frame", "module", "reached"])
"""Kinds of signals that name a file or a function of it, but do not point at the fault."""

_GRAMMAR = frozenset(
    stem(word)
    for word in [
        "return",
        "class",
        "import",
        "function",
        "const",
        "self",
        "true",
        "false",
        "null",
        "def",
        "test",
        "main",
    ]
)
"""What every source says."""

_SETTINGS = ("configuration", "packaging", "environment", "setting")
_CLEAR = 3.2
"""Score from which odd rows count although they hold nothing that the report names."""

_ALONE = 0.1
"""Lead of a candidate without a rival: that nothing else was found says little for it."""

_COPY = ("built copy", "built file", "stale build")


@dataclass(frozen=True)
class Verdict:
    """Where a hypothesis stands. `weight` compares hypotheses; it is no probability."""

    id: str
    state: str
    weight: float
    why: str
    supporting: tuple[str, ...]
    against: tuple[str, ...]


class Analysis:
    """Everything that is derived from one request, each part once."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.clues = Clues(case)
        self.corpus = Corpus(case)
        self.ranker = Ranker(self.clues, self.corpus)
        self.places: list[Place] = self.ranker.places()
        self.odd: list[Odd] = self.ranker.odd
        self.rows = matching_rows(self.clues, self.corpus)

    @property
    def decisive(self) -> list[Odd]:
        """Odd rows that explain the report: a line surely fails on them, they hold its codes, or
        they break a key in few rows.
        """
        sure = [use.odd for use in self.ranker.tracer.uses if use.way == NOT_IN]
        named = [odd for odd in self.odd if odd.codes]
        others = named or [odd for odd in self.odd if odd.score >= _CLEAR]
        return [*sure[:1], *(odd for odd in others if odd not in sure)][:4]

    def deciding(self, path: str) -> list[Use]:
        """Return the lines of a file that decide by an odd column, the surest two."""
        found = [use for use in self.ranker.tracer.uses if use.path == path]
        return [use for use in found if use.points >= 0.3 * found[0].points][:2]

    def separation(self) -> float:
        """Return by how much the first file leads the second, 0 to 1."""
        return _lead([place.points for place in self.places[:2]])

    def inner_separation(self) -> float:
        """Return by how much the first file's best function leads its second, 0 to 1."""
        return _lead([points for place in self.places[:1] for points, _ in place.functions[:2]])

    def points_directly(self, place: Place) -> bool:
        """Tell whether more than words points at a file: the innermost of our own lines on a
        trace, the text of an error, what was not packaged, or a line that decides by odd rows of
        the report.
        """
        direct = any(signal.kind == "message" for signal in place.signals)
        return direct or self.is_innermost(place) or self.explains(place)

    def explains(self, place: Place) -> bool:
        """Tell whether a place explains the report: it decides by odd rows that the report names,
        swallows the logged error, or declares what is installed while a module is missing.
        """
        kinds = {signal.kind for signal in place.signals}
        tied = any(
            u.path == place.path and (u.odd.codes or u.way == NOT_IN)
            for u in self.ranker.tracer.uses
        )
        return bool(kinds & _EXPLAINS) or ("data" in kinds and tied)

    def is_innermost(self, place: Place) -> bool:
        """Tell whether the innermost of our own lines on a trace is in a file; an error that only
        the logs show points at nothing that the report is about.
        """
        return not self.clues.only_logged and any(
            f.path == place.path and f.nearness == 0 for f in self.ranker.structure.framed
        )

    def carries(self, place: Place) -> bool:
        """Tell whether anything beyond a chance hit of a search speaks for a file."""
        kinds = {signal.kind for signal in place.signals}
        if kinds & _TELLING or self.points_directly(place):
            return True
        shared = set(self.ranker.structure.shared_words(place.path, None)) - _GRAMMAR
        named = {s for d in self.corpus.definitions(place.path) for s in stems(d.name)}
        named |= set(stems(place.path))
        return len(shared) > 1 or bool(shared & named)

    def story(self, place: Place, function: Definition | None = None) -> story.Story:
        """Return what can be said about a place, by default about its best function."""
        function = function or next((d for _, d in place.functions), None)
        lines = (function.first, function.last) if function else (1, 1)
        return story.Story(self.ranker, place, function, lines)

    def verdicts(self) -> list[Verdict]:
        """Return a verdict for every hypothesis, in their order."""
        return [self._verdict(item) for item in self.case.hypotheses]

    def _verdict(self, item: Json) -> Verdict:
        words = f"{as_str(item.get('statement'))} {' '.join(strings(item.get('predicts')))}".lower()
        statement = as_str(item.get("statement")).lower()
        name, prior = as_str(item["id"]), item.get("likelihood")
        prior = prior if isinstance(prior, float | int) else 0.3
        if any(word in statement for word in _COPY):
            return self._on_copies(name, prior)
        if any(word in statement for word in _SETTINGS):
            return self._on_settings(name, prior)
        if _DATA.search(statement) and self.case.tables + list(self.corpus.profiled):
            return self._on_data(name, prior)
        paths = [p for p in self.places if p.path.lower() in words]
        return self._on_code(name, prior, paths, statement)

    def _on_data(self, name: str, prior: float) -> Verdict:
        found = self.decisive
        profiles = tuple(self.corpus.profiled.values())
        if found:
            cited = tuple(dict.fromkeys(odd.finding.evidence for odd in found))
            why = story.rows_named(found[0]) + self._decided(found[0])
            weight = prior + (0.5 if found[0].codes else 0.2)
            explains = found[0].codes or any(use.odd == found[0] for use in self.uses)
            state = "supported" if explains else "open"
            return Verdict(name, state, weight, why + self.set_aside, cited, ())
        if profiles:
            why = (
                f"{counted(len(profiles), 'table')} {'was' if len(profiles) == 1 else 'were'} "
                "profiled; no odd rows have to do with what the report names."
            )
            state = "open" if self.odd else "refuted"
            return Verdict(name, state, prior * 0.4, why, (), profiles[:6])
        return Verdict(name, "open", prior, "No table was profiled yet.", (), ())

    def _decided(self, odd: Odd) -> str:
        """Return where code decides by an odd column, as a sentence after a blank."""
        uses = [use for use in self.uses if use.odd == odd]
        if self.ranker.tracer.is_loud(odd):
            return " The code noticed: the logs show the error that this leads to."
        if not uses:
            return " No code was found that would go wrong on it."
        return f" {uses[0].path} decides by this column in line {uses[0].line}."

    @property
    def uses(self) -> list[Use]:
        """Lines that decide by an odd column, the sure ones."""
        return [use for use in self.ranker.tracer.uses if use.points >= 1]

    @property
    def set_aside(self) -> str:
        """The odd rows that have nothing to do with the report, as a sentence after a blank."""
        chosen = {odd.finding.columns for odd in self.decisive}
        others = [
            f"{odd.finding.table}.{story.listed(list(odd.finding.columns))}"
            for odd in self.odd if odd.finding.columns not in chosen and not odd.codes
        ]  # fmt: skip
        names = list(dict.fromkeys(others))
        if not names or not self.decisive[0].codes:
            return ""
        return (
            f" Other oddities ({story.listed(names, 5)}) were set aside: their rows do not hold "
            "what the report names."
        )

    def _on_settings(self, name: str, prior: float) -> Verdict:
        catalog = self.clues.catalog
        config = [p for p in self.places[:5] if catalog.role(p.path) == "config"]
        if config and config[0] is self.places[0]:
            why = f"{config[0].path} fits the report better than any source file."
            return Verdict(name, "supported", prior + 0.3, why, tuple(config[0].evidence[:4]), ())
        if self.places and self.corpus.read:
            why = (
                f"{self.places[0].path} fits the report better than any configuration file that "
                "was found; that settings play no part is not proved."
            )
            return Verdict(name, "open", prior * 0.5, why, (), tuple(self.places[0].evidence[:3]))
        return Verdict(name, "open", prior, "Configuration files were not compared yet.", (), ())

    def _on_copies(self, name: str, prior: float) -> Verdict:
        traced = [x for x in self.clues.frames if self.clues.catalog.role(x.path) == "built_copy"]
        if traced:
            seen = (traced[0].frame.observation,)
            why = (
                f"A stack trace names the built file {traced[0].path}; its source was not compared."
            )
            return Verdict(name, "open", prior + 0.1, why, seen, ())
        why = "Nothing that was found names a built file."
        return Verdict(name, "open", prior * 0.5, why, (), ())

    def _on_code(self, name: str, prior: float, named: list[Place], statement: str) -> Verdict:
        if not self.places:
            return Verdict(name, "open", prior, "No source was found for it yet.", (), ())
        first = self.places[0]
        defined = [
            d.path for _, asked, d in self.corpus.symbols if asked and asked.lower() in statement
        ]
        hits = named or [p for p in self.places if p.path in defined] or [first]
        best = min(hits, key=lambda place: self.places.index(place))
        rank = self.places.index(best) + 1
        cited = tuple(best.evidence[:6])
        if rank == 1:
            read = best.path in self.corpus.read
            why = f"{best.path} fits the report best of the files that were compared."
            return Verdict(name, "supported" if read else "open", prior + 0.3, why, cited, ())
        against = tuple(first.evidence[:3])
        why = f"{best.path} fits the report less well than {first.path}: it comes {_ordinal(rank)} "
        why += "among the files that were compared."
        if self.clues.only_logged and any(signal.kind == "frame" for signal in best.signals):
            why += (
                " The logged error goes through it, but the report is about more than this error."
            )
        state = "refuted" if rank > 8 else "open"
        return Verdict(name, state, prior / (1 + 0.3 * rank), why, cited[:2], against)


def _lead(points: list[float]) -> float:
    if not points or points[0] <= 0:
        return 0.0
    return round(1 - points[1] / points[0], 4) if len(points) > 1 else _ALONE


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in (11, 12, 13) else 0)
    return f"{number}{ending or 'th'}"
