"""Everything the observations give away, gathered once: title, terms with weights, frames, names,
errors, codes, and the search queries a person would type.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import cached_property

from phases.providers.offline import report
from phases.providers.offline.case import Case, Observation
from phases.providers.offline.catalog import Catalog
from phases.providers.offline.frames import Frame, frames, without_frames
from phases.providers.offline.mentions import Mention, error_lines, mentions, records
from phases.providers.offline.words import STOP, TOKEN, is_identifier, split, stem, stems

QUERY = 1000
"""Characters that a search query may have."""

_FROM_CONTRAST = 0.4
"""Sentences about what works tell where the fault is not."""

_FROM_DIFFERENCE = 2.0
"""Words that only what came or only what was expected has: the rest of an output is right."""

_FROM_COMMON = 0.2
"""Words that both have."""

_FROM_TITLE, _FROM_TICKS, _FROM_PROSE, _FROM_CODE, _FROM_LOG = 3.0, 2.0, 1.0, 0.6, 0.4
_VARIABLE = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\d+|<[^>]*>|\{[^}]*\}|\[[^\]]*\]")
_TOLD = re.compile(
    r"'[^']*'|\"[^\"]*\"|`[^`]*`|[:;=|>]|\d[\w.,-]*|<[^>]*>|[\[({][^\])}]*[\])}]|\S*/\S*"
)
"""What varies in a line that a program prints: values, paths, and what stands around a colon."""
_SAYING = re.compile(r"(?:[A-Za-z][A-Za-z'-]+ ){2,}[A-Za-z'-]+|[A-Z][a-z]+ [a-z]+")
_IN_QUOTES = re.compile(r"[\"“]([A-Z][^\"“”\n]{10,100})[\"”]")
_TYPED = re.compile(
    r"^\s*([$>%#]|>>>|\.\.\.)\s|^\s*(File \"|at |Traceback |The above |During handling )"
    r"|\bline \d+\b|^\s*(pip|npm|npx|git|python3?|node|tar|curl|cd) "
)
"""Lines that a person typed, or that the language prints by itself."""

_OWN = re.compile(
    r"^(?:async )?(?:def|class|function\*?) +(\w+)|^(?:export )?(?:const|let|var) +(\w+) *="
)
_SHIPS = re.compile(
    r"\b(sdist|wheel|tarball|source (archive|distribution|package)|package data|MANIFEST\.in"
    r"|packag(ed|ing))s?\b|\.tar\.gz\b|\.whl\b|\bnpm pack\b",
    re.IGNORECASE,
)
_LACKS = re.compile(
    r"\b(miss(es|ing)|gone|lacks?|absent|left out|not (included|there|shipped|installed|found)"
    r"|no longer (included|there|shipped|installed))\b",
    re.IGNORECASE,
)
_LANGUAGE = frozenset(
    ["IndexError", "KeyError", "NameError", "UnboundLocalError", "TypeError", "AttributeError",
     "ZeroDivisionError", "RecursionError", "ReferenceError", "RangeError"]
)  # fmt: skip
_OUTAGE = re.compile(
    r"Timeout|Connection|BrokenPipe|Unreachable|DNS|SMTP|Socket|\b(ECONN\w+|ETIMEDOUT|ENOSPC|EMFILE)\b"
    r"|No space left|Too many open files|is locked|temporarily unavailable|timed out|deadlock",
    re.IGNORECASE,
)
_LOGGER = re.compile(r"(?<![\w./])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?![\w./(])")
_DIGIT = re.compile(r"\d+")
_QUOTED = re.compile(r"'([^'\n]{1,80})'|\"([^\"\n]{1,80})\"")
_NO_MODULE = re.compile(
    r"[Nn]o module named '?(?P<module>[\w.]+)"
    r"|cannot import name '?(?P<name>\w+)'? from '(?P<package>[\w.]+)"
)
_TICKED = re.compile(r"`([^`\n]{2,200})`")
_QUOTED_CODE = re.compile(r"`[^`\n]*`")
_MARKUP = re.compile(r"<([a-zA-Z][\w-]*)[^<>]{0,300}>[^<>]{0,500}</\1\s*>|</?[a-zA-Z][^<>]{0,300}>")
_SIGNATURE = re.compile(r"\(.*\)$")
_PLAIN = re.compile(r"(?<![\w.-])[a-z_]\w{2,}(?![\w.-])")
_VALUE = r"[A-Za-z](?:[\w.-]{0,30}\w)?"
_CHOICE = re.compile(  # an argument or setting; an option
    rf"(?<![\w.-])([a-z_]\w+)\s*=\s*['\"]({_VALUE})['\"]"
    rf"|(?<![\w-])--([a-z][\w-]+)[ =]['\"]?({_VALUE})"
)
_SPELLED = re.compile(r"[A-Za-z][\w]*(?:-\w+)*")
_ENVIRONMENT = 0.1
"""Versions and platforms are in every report and say nothing about the place."""

_OUTPUTS = ("observed", "expected")
"""Sections that show what came and what should have."""


@dataclass(frozen=True)
class Linked:
    """A stack frame and its file in the tree ("" if it has none)."""

    frame: Frame
    path: str


class Clues:
    """What can be read off the observations of a case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.catalog = Catalog(case)

    @cached_property
    def blocks(self) -> list[Observation]:
        """The report without the stack frames of other packages: their words are not its words."""
        return [
            replace(item, text=without_frames(item.text, self.catalog.is_foreign))
            for item in self.case.report
        ]

    @cached_property
    def pieces(self) -> list[report.Piece]:
        return report.pieces(self.blocks)

    @cached_property
    def title(self) -> str:
        return report.title(self.pieces)

    @cached_property
    def mentions(self) -> dict[str, list[Mention]]:
        """Mentions by observation."""
        own = [*self.blocks, *self.case.logs]
        return {item.id: mentions(item.text[:60_000]) for item in own}

    @cached_property
    def frames(self) -> list[Linked]:
        """Frames of report and logs, the report's first; the same frame once."""
        seen: dict[tuple[str, int, str], Linked] = {}
        for item in [*self.case.report, *self._telling_logs]:
            for frame in frames(item.text, item.id):
                key = (frame.path, frame.line, frame.name)
                old = seen.get(key)
                if old is None or frame.depth < old.frame.depth:
                    seen[key] = Linked(frame, self.catalog.of_frame(frame))
        return list(seen.values())

    @cached_property
    def errors(self) -> list[tuple[str, str, str]]:
        """(type, message, observation) of each error, once; those set aside left out."""
        return self._errors([*self.case.report, *self._telling_logs])

    @staticmethod
    def _errors(observations: list[Observation]) -> list[tuple[str, str, str]]:
        found = {
            (kind, message): item.id
            for item in reversed(observations)
            for kind, message in error_lines(item.text)
        }
        ordered = reversed(list(found.items()))
        return [(kind, message, where) for (kind, message), where in ordered]

    @cached_property
    def set_aside(self) -> list[tuple[str, str, str]]:
        """Logged errors that have nothing to do with what the report is about, as `errors`."""
        kept = {item.id for item in self._telling_logs}
        return self._errors([item for item in self.case.logs if item.id not in kept])

    @cached_property
    def _telling_logs(self) -> list[Observation]:
        """The logs without excerpts of errors that are about something else: an outage of network,
        disk or locks, or records of other things of the same kind as those that the report names.
        """
        if self._errors(self.case.report):
            return self.case.logs
        return [item for item in self.case.logs if not self._is_elsewhere(item)]

    def _is_elsewhere(self, item: Observation) -> bool:
        failed = [r for r in records(item.text[:60_000]) if error_lines(r) or frames(r, item.id)]
        return bool(failed) and all(map(self._is_of_others, failed))

    def _is_of_others(self, record: str) -> bool:
        if _OUTAGE.search(record) and "most recent call first" not in record:
            return True  # a dump of the stacks is made on a time-out, and is about this program
        shapes = {_DIGIT.sub("9", code) for code in self.codes}
        named = {m.name for m in mentions(record) if m.kind == "identifier"}
        alike = {name for name in named if _DIGIT.sub("9", name) in shapes}
        return bool(alike) and not alike & set(self.codes)

    def module_of(self, record: str) -> str:
        """Return the file that wrote a log record, by the name of its logger; "" if unknown."""
        for match in _LOGGER.finditer(record[:160]):
            found = self.catalog.modules(match[1]) or self.catalog.named_like(
                match[1].rpartition(".")[2]
            )
            if found:
                return found[0]
        return ""

    @cached_property
    def symbols(self) -> list[str]:
        """Names in code that the report gives, most often named first; frames' functions after."""
        counts: dict[str, float] = defaultdict(float)
        for item in self.blocks:
            for mention in self.mentions[item.id]:
                if mention.kind == "symbol" and mention.name.lower() not in STOP:
                    counts[mention.name] += 1 + (mention.name in self.title)
                elif mention.kind == "configuration" and "-" in mention.name.strip("-"):
                    counts[mention.name.strip("-").replace("-", "_")] += 0.5
        for name in self.reporters_own & set(counts):
            del counts[name]
        return sorted(counts, key=lambda name: (-counts[name], name))[:60]

    @cached_property
    def reporters_own(self) -> frozenset[str]:
        """Names that the report's own example defines at its top: they are not the program's.
        Methods may be hooks that the program calls, and stay.
        """
        found = [m for piece in self.pieces if piece.code and (m := _OWN.match(piece.text))]
        return frozenset(m[1] or m[2] for m in found)

    @cached_property
    def meant_symbols(self) -> list[str]:
        """The symbols that the report names as code in its prose, or that the tree has: what only
        stands in markup or in an example may be anybody's.
        """
        prose = " ".join(_MARKUP.sub(" ", p.text) for p in self.pieces if not p.code)
        ticked = {_SIGNATURE.sub("", text.strip()) for text in _TICKED.findall(prose)}
        bare = _TICKED.sub(" ", prose)
        told = {m.name for m in mentions(bare[:60_000]) if m.kind == "symbol"}
        framed = {x.frame.name.rpartition(".")[2] for x in self.frames if x.path}
        return [
            name for name in self.symbols
            if name in ticked or name in told or (is_identifier(name) and name in prose)
            or name.rpartition(".")[2] in framed
            or self.catalog.modules(name) or self.catalog.named_like(name.rpartition(".")[2])
        ]  # fmt: skip

    @cached_property
    def codes(self) -> list[str]:
        """Codes of business things, the report's first and oftenest: AB-1204, 2031-55."""
        counts: dict[str, float] = defaultdict(float)
        for item in self.case.report:
            for mention in self.mentions[item.id]:
                if mention.kind == "identifier":
                    counts[mention.name] += 1 + 2 * (mention.name in self.title)
        return sorted(counts, key=lambda name: (-counts[name], name))[:20]

    @cached_property
    def contrast(self) -> frozenset[str]:
        """Codes that the report names only for comparison, as working."""
        prose = [p for p in self.pieces if not p.code]
        works = " ".join(p.text for p in prose if report.tells_what_works(p.text))
        others = [p.text for p in self.pieces if p.code or not report.tells_what_works(p.text)]
        return frozenset(
            code for code in self.codes
            if code in works and not any(code in text for text in others)
        )  # fmt: skip

    @cached_property
    def unaffected(self) -> frozenset[str]:
        """Stems that stand only in sentences about what works."""
        prose = [p for p in self.pieces if not p.code]
        works = [p for p in prose if report.tells_what_works(p.text)]
        others = [p for p in self.pieces if p not in works]
        return frozenset(s for p in works for s in stems(p.text)) - frozenset(
            s for p in others for s in stems(p.text)
        )

    @cached_property
    def weights(self) -> dict[str, float]:
        """Weight of each word stem: where it stands in the report says how much it means."""
        found: dict[str, float] = defaultdict(float)
        for piece in self.pieces:
            if self._is_output(piece):
                self._weigh_output(found, piece.text)
                continue
            weight = _FROM_CODE if piece.code else _FROM_PROSE
            if piece.section == "title":
                weight = _FROM_TITLE
            elif piece.section == "environment":
                weight = _ENVIRONMENT
            elif not piece.code and report.tells_what_works(piece.text):
                weight = _FROM_CONTRAST
            self._raise(found, piece.text, weight)
        for name in self.symbols:
            self._raise(found, name, _FROM_TICKS)
        for kind, message, _ in self.errors:
            self._raise(found, f"{kind} {message}", _FROM_PROSE)
        for item in self.case.logs:
            if len(item.text) < 20_000:
                self._raise(found, item.text, _FROM_LOG)
        return dict(found)

    def _is_output(self, piece: report.Piece) -> bool:
        """Tell whether a piece is output that can be compared with what was expected."""
        return piece.code and piece.section in _OUTPUTS and bool(self.difference)

    def _weigh_output(self, found: dict[str, float], text: str) -> None:
        words = dict.fromkeys(stems(text))
        self._raise(found, " ".join(w for w in words if w in self.difference), _FROM_DIFFERENCE)
        self._raise(found, " ".join(w for w in words if w not in self.difference), _FROM_COMMON)

    @cached_property
    def told(self) -> frozenset[str]:
        """Stems of what the report tells in words: code, names and output left out."""
        prose = [p for p in self.pieces if not p.code and p.section != "environment"]
        found = [s for p in prose for s in stems(_QUOTED_CODE.sub(" ", p.text))]
        return frozenset(word for word in found if not word.isdigit())

    @cached_property
    def difference(self) -> frozenset[str]:
        """Stems that occur oftener in what came than in what was expected, or the other way; none
        unless the report shows both as code.
        """
        came, wanted = (
            Counter(s for p in self.pieces if p.code and p.section == kind for s in stems(p.text))
            for kind in _OUTPUTS
        )
        return frozenset((came - wanted) + (wanted - came)) if came and wanted else frozenset()

    @staticmethod
    def _raise(found: dict[str, float], text: str, weight: float) -> None:
        for word in stems(text):
            if not word.isdigit():
                found[word] = max(found[word], weight)

    @cached_property
    def queries(self) -> dict[str, str]:
        """Search queries by name: different cuts of the report fail in different cases."""
        prose = [p.text for p in self.pieces if not p.code and p.section != "environment"]
        everything = [p.text for p in self.pieces if p.section != "environment"]
        errors = [f"{kind} {message}" for kind, message, _ in self.errors[:4]]
        made = {
            "report": _query([self.title, *everything]),
            "title": _query([self.title]),
            "prose": _query([self.title, *prose]),
            "names": _query([*self.symbols, *errors]),
            "difference": _query(self._differing),
        }
        names = {query: name for name, query in reversed(made.items()) if query}
        return {name: query for query, name in reversed(names.items())}

    @property
    def _differing(self) -> list[str]:
        """Return the tokens of outputs that only one side has, in order."""
        shown = [p.text for p in self.pieces if p.code and p.section in _OUTPUTS]
        tokens = [token for text in shown for token in TOKEN.findall(text)]
        return [token for token in tokens if self.difference & set(stems(token))]

    @cached_property
    def messages(self) -> list[str]:
        """Constant parts of error messages, as the code that raises them spells them."""
        found = []
        for _, message, _ in self.errors:
            parts = [part.strip(" :.,;()") for part in _VARIABLE.split(message)]
            longest = max(parts, key=len, default="")
            if len(longest) >= 10 and " " in longest:
                found.append(longest[:120])
        return list(dict.fromkeys(found))[:4]

    @cached_property
    def error_values(self) -> list[str]:
        """Values that error messages quote, exactly as they stand there, blanks included."""
        found = [
            match[1] or match[2]
            for _, message, _ in self.errors
            for match in _QUOTED.finditer(message)
        ]
        return list(dict.fromkeys(value for value in found if len(value) > 1))[:20]

    @cached_property
    def language_error(self) -> bool:
        """Whether the report's error is one that the language raises for a slip in code."""
        said = {item.id for item in self.case.report}
        return any(kind in _LANGUAGE for kind, _, where in self.errors if where in said)

    @cached_property
    def missing_modules(self) -> list[str]:
        """Modules that could not be imported although the tree has them: not installed with it."""
        found = []
        for kind, message, _ in self.errors:
            match = _NO_MODULE.search(message)
            if match and ("Module" in kind or "Import" in kind):
                name = match["module"] or f"{match['package']}.{match['name']}"
                found += [name] if self._is_module(name) else []
        return list(dict.fromkeys(found))

    @cached_property
    def lacks_files(self) -> bool:
        """Whether the report is about something that is not in what was packaged."""
        prose = [p for p in self.pieces if not p.code and p.section != "environment"]
        ships = sum(1 + (p.section == "title") for p in prose if _SHIPS.search(p.text))
        return ships > 1 and any(_LACKS.search(p.text) for p in prose)

    def _is_module(self, name: str) -> bool:
        """Tell whether the tree has a module: itself, not just the package that it would be in."""
        stem = name.replace(".", "/")
        return any(
            path.endswith((f"{stem}.py", f"{stem}/__init__.py"))
            for path in self.catalog.modules(f"{name}.x")
        )

    @cached_property
    def runs_commands(self) -> bool:
        """Whether the report speaks of a command line at all."""
        text = " ".join(item.text for item in self.case.report).lower()
        return "command" in text or " --" in text or "python -m" in text or "cli" in text.split()

    @cached_property
    def as_written(self) -> dict[str, str]:
        """Word of the report by its stem, as the report first spells it; of a name its part."""
        found: dict[str, str] = {}
        for piece in [p for p in self.pieces if not p.code]:
            for token in TOKEN.findall(piece.text):
                for word in split(token):
                    found.setdefault(stem(word), _as_noun(token) if token.isalpha() else word)
        return found

    @cached_property
    def only_logged(self) -> bool:
        """Whether errors stand in the logs only: the report is about something that is quieter."""
        said = {item.id for item in self.case.report}
        return bool(self.errors) and not any(where in said for _, _, where in self.errors)

    @cached_property
    def entries(self) -> list[str]:
        """Names that the report gives of what was run: symbols, and the words of commands."""
        typed = [p.text for p in self.pieces if p.code]
        typed += [m[1] for item in self.case.report for m in _TICKED.finditer(item.text)]
        words = [word for text in typed for word in _PLAIN.findall(text)]
        named = [name.rpartition(".")[2] for name in self.symbols]
        return list(dict.fromkeys([*named, *words]))[:200]

    @cached_property
    def printed(self) -> list[str]:
        """Constant parts of sentences that the program printed, as the report shows or quotes them:
        whoever writes them is near the fault.
        """
        shown = [p.text for p in self.pieces if p.code and p.section != "expected"]
        prose = [p.text for p in self.pieces if not p.code and p.section != "environment"]
        texts = [text for line in prose for text in _IN_QUOTES.findall(line)]
        texts += [text for text in shown if not _TYPED.search(text)]
        found = [
            part.strip(" .,!?") for text in texts for part in _TOLD.split(text[:300])
            if _SAYING.fullmatch(part.strip(" .,!?")) and len(part.strip()) >= 12
        ]  # fmt: skip
        known = " ".join(self.messages)
        return [text for text in dict.fromkeys(found) if text not in known][:3]

    @cached_property
    def choices(self) -> list[tuple[str, str]]:
        """(name, value) of arguments and options that choose something: `dialect="sqlite"`,
        `--format csv`; those of output and of what works left out.
        """
        own = [p for p in report.without_what_works(self.pieces) if p.section not in _OUTPUTS]
        found = [m for piece in own for m in _CHOICE.finditer(piece.text[:2000])]
        return list(dict.fromkeys((m[1] or m[3], m[2] or m[4]) for m in found))[:20]

    @cached_property
    def spelled(self) -> frozenset[str]:
        """Words and hyphenated words as the report spells them, lower case."""
        return frozenset(
            word.lower() for item in self.case.report for word in _SPELLED.findall(item.text)
        )


def _query(texts: list[str]) -> str:
    """Return the telling words of texts, once each, as long as a query may be."""
    found: dict[str, None] = {}
    for text in texts:
        for token in TOKEN.findall(text):
            if token.lower() not in STOP and not token.isdigit() and len(token) > 1:
                found.setdefault(token)
    query = ""
    for token in found:
        if len(query) + len(token) + 1 > QUERY:
            break
        query += f" {token}"
    return query.strip()


def _as_noun(token: str) -> str:
    """Return a word as it stands inside a sentence; names with capitals inside keep them."""
    return token.lower() if token.istitle() else token


def identifiers(texts: list[str]) -> list[str]:
    """Return the tokens of texts that can only be names in code."""
    return [token for text in texts for token in TOKEN.findall(text) if is_identifier(token)]
