"""How sure the analyst is, and why it says so.

The confidence is the probability that the first file is the faulty one: a logistic curve of what
leads to it (odd rows that explain the report, the innermost line of a trace, or words alone), its
lead before the second file, and how much the report tells in words: where it only shows input and
output, words lead astray. Words alone never make it high. Its numbers were set by hand in round
steps, on the open cases, the first group of tests/cases/packages and fresh defects; what they were
checked on is in docs/benchmarks.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from phases.providers.offline.assess import Analysis
from phases.providers.offline.ranking import Place
from projections.wording import counted


class _Odds(NamedTuple):
    """Log odds that the first file is the faulty one.

    Attributes:
        base: if it leads by nothing and the report tells nothing.
        lead: more for the whole of its points by which it leads.
        told: more if the report tells much in words.
    """

    base: float
    lead: float
    told: float


_EXPLAINED = _Odds(2.5, 1.5, 0.0)
"""Odd rows, what was not packaged or a caught error explain the report there."""

_POINTED = _Odds(0.7, 1.5, 1.0)
"""The innermost line of a trace, or the text of an error, is there: right in three of four."""

_WORDS = _Odds(-1.7, 4.5, 2.1)
"""Only words lead there."""

_CHOSEN = 1.5
"""More if an argument of the report chooses the file among its siblings."""

_LITTLE, _MUCH = 8, 30
"""Telling words of a report that say nothing of the place yet, and that are enough."""

_BY_WORDS = 0.74
"""The most that words alone are worth: below what counts as a cause that was found."""

_UNTIED = 0.6
"""Log odds that a place loses if a database is attached and nothing in it leads there."""

_UNREAD = 1.5
"""Log odds that a place loses if its lines were not read."""


def confidence(analysis: Analysis, first: Place) -> float:
    """Return how probably the first file is the faulty one; see the module's docstring."""
    odds, most = _odds(analysis, first)
    told = (len(analysis.clues.told) - _LITTLE) / (_MUCH - _LITTLE)
    score = odds.base + odds.lead * analysis.separation() + odds.told * min(1.0, max(0.0, told))
    if odds is _WORDS and any(signal.kind == "chosen" for signal in first.signals):
        score += _CHOSEN
    if odds is _WORDS and "database" in analysis.case.kinds.values():
        score -= _UNTIED
    if first.path not in analysis.corpus.read:
        score -= _UNREAD
    return round(min(most, 1 / (1 + math.exp(-score))), 2)


def _odds(analysis: Analysis, place: Place) -> tuple[_Odds, float]:
    """Return the odds by what leads to a place, and the most that is ever stated for it."""
    if analysis.explains(place):
        return _EXPLAINED, 0.95
    return (_POINTED, 0.95) if analysis.points_directly(place) else (_WORDS, _BY_WORDS)


def reason(analysis: Analysis) -> str:
    """Return what the confidence rests on: the signals, in words, and how near the next file is."""
    first, lead = analysis.places[0], analysis.separation()
    parts = [
        f"The number is the probability that {first.path} is the faulty file, not that the "
        f"function is. For the file speak, the strongest first: {'; '.join(_signals(first))}."
    ]
    if len(analysis.places) > 1:
        second = analysis.places[1]
        near = "far behind" if lead >= 0.3 else "behind" if lead >= 0.1 else "hardly behind"
        parts.append(
            f"The next file, {second.path}, is {near} ({round(100 * lead)} % fewer points)."
        )
    else:
        parts.append("No other file was found to compare it with, which counts as a small lead.")
    if len(first.functions) > 1:
        inner = round(100 * analysis.inner_separation())
        parts.append(f"In the file, the next function has {inner} % fewer points than the best.")
    direct = (
        "something does"
        if analysis.points_directly(first)
        else "nothing does, so it cannot be high"
    )
    parts.append(
        "The number follows from the lead of the first file, from how much the report tells in "
        f"words ({counted(len(analysis.clues.told), 'telling word')}) and from whether "
        "something points at the file directly (odd rows, the innermost line of a stack trace, the "
        f"text of an error); here {direct}. Nothing was run."
    )
    return " ".join(parts)


def _signals(place: Place) -> list[str]:
    """Return the labels of a place, one a kind and without words for words."""
    found: dict[str, str] = {}
    for signal in sorted(place.signals, key=lambda s: (-s.points, s.label)):
        found.setdefault(signal.kind, f"it {signal.label}")
    return list(found.values())[:6]
