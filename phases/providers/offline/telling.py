"""The lines of a function that a reader should look at first, quoted as they are."""

from __future__ import annotations

import re
from typing import NamedTuple

from phases.providers.offline.clues import Clues
from phases.providers.offline.corpus import Corpus
from phases.providers.offline.outline import prose
from phases.providers.offline.words import stems

_DECIDES = re.compile(
    r"\b(if|elif|else|return|raise|except|catch|throw|for|while|join|where|select|not|is None|and"
    r"|or)\b|[=!<>]=|\?",
    re.IGNORECASE,
)
_SAYS = re.compile(r"^\s*[rbfu]?[\"'`]")
_TELLS = re.compile(r"\b(help|error|log(ger)?|warn(ing)?|print|console)\w*\s*[.(=]")
"""Texts for people repeat the report's words, but decide nothing."""

_COMMENT = re.compile(r"^\s*(#|//|\*|/\*|\"\"\"|''')")


class Telling(NamedTuple):
    """A line of source. `evidence`: what shows it."""

    line: int
    text: str
    evidence: str


def telling_lines(
    clues: Clues, corpus: Corpus, path: str, first: int, last: int, most: int = 2
) -> list[Telling]:
    """Return the lines of a range that share most with the report; lines that decide count more,
    and a line that a stack trace names counts most.
    """
    framed = {x.frame.line for x in clues.frames if x.path == path}
    scored: list[tuple[float, int, str]] = []
    lines = corpus.lines(path)
    documentation = prose(lines, first, last)
    for number, text in lines.items():
        heading = number == first < last  # it names the definition, but decides nothing
        if not first <= number <= last or not text.strip() or heading:
            continue
        shared = sum(clues.weights.get(stem, 0.0) for stem in dict.fromkeys(stems(text)))
        if number in documentation or any(p.search(text) for p in (_COMMENT, _SAYS, _TELLS)):
            shared *= 0.1
        elif _DECIDES.search(text):
            shared = shared * 1.4 + 0.2
        scored.append((-(shared + 20 * (number in framed)), number, text))
    best = sorted(sorted(scored)[:most], key=lambda item: item[1])
    return [
        Telling(number, text, cited)
        for _, number, text in best
        for cited in corpus.quoting(path, number, number)[:1]
    ]
