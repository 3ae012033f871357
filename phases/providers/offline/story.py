"""What is said about a place in plain sentences: what meets what, and why it is named.

The analyst compares texts, the structure of code and data; it runs nothing. So a sentence says what
was seen and where, quotes the line, and leaves open what only running the code can tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from phases.providers.offline import deciding, wording
from phases.providers.offline.case import as_dict, as_str
from phases.providers.offline.clues import Clues
from phases.providers.offline.data import Odd, shown
from phases.providers.offline.outline import Definition
from phases.providers.offline.ranking import Place, Ranker
from phases.providers.offline.signals import Signal
from phases.providers.offline.telling import Telling, telling_lines
from phases.providers.offline.tracing import Use
from projections.wording import counted

_QUOTED = 220
"""Characters of a quotation."""

_SURE = 0.4
"""A line that is less likely to decide than this share of the surest one is not spoken of."""


def quote(text: str, limit: int = _QUOTED) -> str:
    """Return words of the report or a line of code in quotation marks, on one line."""
    flat = " ".join(text.split())
    flat = flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"
    return f"“{flat}”"


def code(text: str, limit: int = 400) -> str:
    """Return a line of code as code, as it stands; only its end may be cut."""
    flat = text.strip()
    flat = flat if len(flat) <= limit else flat[: limit - 1] + "…"
    return f"`` {flat} ``" if "`" in flat else f"`{flat}`"


def says(who: str, words: str, limit: int = _QUOTED) -> str:
    """Return a quotation as a sentence: `The report expects: “…”`, with one stop at its end."""
    said = quote(words, limit)
    return f"{who}: {said}" if said[:-1].endswith((".", "!", "?", "…")) else f"{who}: {said}."


def sentence(words: str) -> str:
    """Return words as a sentence: a capital first, a stop at the end."""
    words = words.strip()
    words = words[:1].upper() + words[1:] if words[:1].isalpha() else words
    return words if words.endswith((".", "!", "?", "…", ".”", "!”", "?”")) else f"{words}."


def listed(items: list[str], most: int = 4) -> str:
    """Return items as a person lists them: a, b and c."""
    items = items[:most]
    return (
        items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""
    )


_OF_PLACES = frozenset(["frame", "defines", "callee", "caught", "reached", "message", "packaging"])
"""Kinds of signals that are about a place in a file, not about its words."""


class Story:
    """The sentences about one place."""

    def __init__(
        self, ranker: Ranker, place: Place, function: Definition | None, lines: tuple[int, int]
    ) -> None:
        self.ranker = ranker
        self.place = place
        self.function = function
        self.lines = lines

    # Names ----------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The function and its file, or the file alone."""
        if self.function is None:
            return self.place.path
        return f"`{self.function.qualified}` in {self.place.path}"

    @property
    def short(self) -> str:
        return f"`{self.function.qualified}`" if self.function else self.place.path

    # Data -----------------------------------------------------------------------------------

    @property
    def use(self) -> Use | None:
        """The line of this place that decides by an odd column, the surest one."""
        tracer, ranker = self.ranker.tracer, self.ranker
        least = _SURE * max((use.points for use in tracer.uses), default=0.0)
        for use in tracer.uses:
            if use.path != self.place.path or use.points < least:
                continue
            if self.function is None or ranker.structure.user_of(use) == self.function:
                return use
        return None

    def why_it_breaks(self, use: Use) -> str:
        """Return the reason for which a line goes wrong on the odd rows."""
        if use.way == "part":
            rest = listed(self.ranker.corpus.rest_of_key(use.odd.finding.columns))
            line = self.ranker.corpus.lines(use.path).get(use.line, "")
            joins = re.search(r"\bjoin\b", line, re.I)
            found = (
                "rows that do not belong together meet" if joins else "it may mean other rows too"
            )
            return (
                f"this takes {listed(list(use.odd.finding.columns))} alone for a key, which is "
                f"complete only together with {rest}, so {found}"
            )
        kind = use.odd.finding.kind
        return deciding.reason(kind, use.way) or wording.meaning(use.odd.finding)

    # Code -----------------------------------------------------------------------------------

    @property
    def told(self) -> list[Telling]:
        """The lines of the place to look at first."""
        caught = next((s for s in self.place.signals if s.kind == "caught"), None)
        after = self.ranker.structure.after_catch(self.place.path, self.lines) if caught else []
        if after:
            return after
        clues, corpus = self.ranker.clues, self.ranker.corpus
        return telling_lines(clues, corpus, self.place.path, *self.lines)

    def words(self, most: int = 5) -> list[str]:
        """Return the words that the function, or what is known of the file, shares with the
        report, as the report spells them.
        """
        clues, ranker = self.ranker.clues, self.ranker
        stems = ranker.structure.shared_words(self.place.path, self.function)
        spelled = [clues.as_written.get(stem, "") for stem in stems]
        return [f"“{word}”" for word in dict.fromkeys(spelled) if len(word) > 2][:most]

    @property
    def lines_to_read(self) -> str:
        """The numbers of the lines to look at first: `line 3 and line 9`."""
        return listed([f"line {item.line}" for item in self.told])

    def because(self, most: int = 2) -> str:
        """Return why the place is named: the strongest reasons as sentences."""
        return " ".join(self.reasons(0, most)) or "A search with the report's words led here."

    def reasons(self, first: int, most: int) -> list[str]:
        """Return at most so many reasons as sentences, from the given one on."""
        return list(self._reasons())[first : first + most]

    @property
    def has_own_reason(self) -> bool:
        """Whether something points at this very place: a deciding line, a frame, its name."""
        name = f"`{self.function.name}`" if self.function else ""
        own = [s for s in self.place.signals if s.kind in _OF_PLACES and self._is_own(s)]
        return self.use is not None or any(
            re.search(r"\bline \d", s.label) or (name and name in s.label) for s in own
        )

    def _reasons(self) -> Iterator[str]:
        use = self.use
        if use is not None:
            line = self.ranker.corpus.lines(use.path).get(use.line, "")
            columns = f"{use.odd.finding.table}.{listed(list(use.odd.finding.columns))}"
            yield sentence(f"line {use.line} decides by {columns}, {code(line)}: "
                           f"{self.why_it_breaks(use)}")  # fmt: skip
        texts = False
        for signal in sorted(self.place.signals, key=lambda s: (-s.points, s.label)):
            if signal.kind in ("search", "text", "path"):
                if not texts and (said := self._of_texts()):
                    yield said
                texts = True
            elif signal.kind not in ("data", "uses") and self._is_own(signal):
                yield sentence(f"{self._subject(signal)} {signal.label}")

    def _subject(self, signal: Signal) -> str:
        """Return what a signal is about: the function itself, or only its file."""
        of_file = signal.kind in ("defines", "callee", "chosen", "message", "module")
        own = self.function is not None and f"`{self.function.name}`" in signal.label
        return "its file" if self.function is not None and of_file and not own else "it"

    def _is_own(self, signal: Signal) -> bool:
        """Tell whether a file's signal is about this function, as far as that can be told."""
        if signal.kind == "reached":
            return self.use is not None
        first, last = self.lines
        numbers = [int(n) for n in re.findall(r"\bline (\d+)", signal.label)]
        return self.function is None or not numbers or any(first <= n <= last for n in numbers)

    def _of_texts(self) -> str:
        words = self.words()
        if not words:
            return "A search with the report's words led to this file."
        noun = "word" if len(words) == 1 else "words"
        return f"It shares the {noun} {listed(words, 5)} with the report."


# Odd rows --------------------------------------------------------------------------------------


def rows_said(ranker: Ranker, odd: Odd) -> str:
    """Return what is odd, with an example, a usual value, and what ties it to the report."""
    finding = odd.finding
    said = f"in table {finding.table}, {counted(finding.total, 'row')} "
    said += "is" if finding.total == 1 else "are"
    said += f" not like the others: {listed(list(finding.columns))} {plain(finding.says)}"
    return sentence(f"{said}{_examples(ranker, odd)}") + tied(odd)


def rows_named(odd: Odd) -> str:
    """Return in a few words which rows are odd, for where they were or will be described."""
    finding = odd.finding
    held = (
        f"; {'it has' if finding.total == 1 else 'they have'} to do with {listed(odd_codes(odd))}"
    )
    said = f"{counted(finding.total, 'row')} of table {finding.table} "
    said += "is" if finding.total == 1 else "are"
    return f"{said} odd in {listed(list(finding.columns))}{held if odd.codes else ''}."


def odd_codes(odd: Odd) -> list[str]:
    """Return what the report names and odd rows hold, as it is shown."""
    return [shown(value) for value in odd.codes]


def plain(says: str) -> str:
    """Return what a profile says without its notation for shapes."""
    return says.partition("; usual:")[0]


def _examples(ranker: Ranker, odd: Odd) -> str:
    finding = odd.finding
    if len(finding.columns) != 1 or finding.kind not in _OF_VALUES:
        return ""
    at = finding.names.index(finding.columns[0]) if finding.columns[0] in finding.names else -1
    row = ranker.tracer.row_of(odd)
    if at < 0 or row is None or at >= len(row):
        return ""
    usual = [v for v in ranker.corpus.usual(finding) if v != row[at]]
    others = f", where others hold {shown(usual[0])}" if usual else ""
    return f" ({shown(row[at])}{others})"


_OF_VALUES = frozenset(
    ["odd_shape", "mixed_types", "stray_blanks", "spelling_variants", "rare_value"]
)
"""Kinds whose values are worth showing beside a usual one."""


def tied(odd: Odd) -> str:
    """Return how odd rows belong to what the report names, as a sentence after a blank."""
    if not odd.codes:
        return ""
    for code_, link in odd.links:
        if code_ == odd.codes[0]:
            which = "It" if odd.finding.total == 1 else "One of them"
            return f" {which} belongs to {code_} of the report ({link})."
    holds = "It holds" if odd.finding.total == 1 else "They include"
    return f" {holds} {listed(odd_codes(odd))}, which the case is about."


# The report ------------------------------------------------------------------------------------


def symptom(clues: Clues) -> str:
    """Return what the report sees and what it expects, in its own words."""
    said = as_str(as_dict(clues.case.interpretation.get("symptom")).get("statement"))
    title = clues.title.strip()
    rest = said.removeprefix(title).lstrip(". ")
    parts = [says("The report says", title or said, 400)]
    if rest and title:
        parts.append(says("Observed", rest, 700))
    if wanted := expected(clues):
        parts.append(says("Expected", wanted, 500))
    return " ".join(parts)


def expected(clues: Clues) -> str:
    """Return what the report expects, "" if it does not say."""
    found = as_dict(clues.case.interpretation.get("expected"))
    statement = as_str(found.get("statement"))
    return statement if found.get("observations") else ""


def lower(words: str) -> str:
    """Return a sentence so that it can follow a colon."""
    return words[:1].lower() + words[1:]
