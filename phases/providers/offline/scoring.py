"""How well pieces of text fit the report: BM25 over functions, words weighted by where they stood.

The pool is what was read, so the weights of words come from the evidence too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from phases.providers.offline.words import stems

K, B = 1.2, 0.6
NAME = 3
"""How often a word of a definition's own name counts: a name says what the code is for."""


class Pool:
    """Documents to be compared, each as counts of word stems."""

    def __init__(self, documents: Mapping[str, Counter[str]]) -> None:
        self.documents = documents
        self.frequency: Counter[str] = Counter()
        for counts in documents.values():
            self.frequency.update(set(counts))
        total = sum(sum(counts.values()) for counts in documents.values())
        self.average = total / max(1, len(documents)) or 1.0

    def rarity(self, stem: str) -> float:
        """Return the inverse document frequency of a stem in this pool."""
        seen = self.frequency.get(stem, 0)
        return math.log(1 + (len(self.documents) - seen + 0.5) / (seen + 0.5))

    def score(self, name: str, weights: Mapping[str, float]) -> float:
        """Return how well a document fits the weighted words."""
        counts = self.documents[name]
        length = sum(counts.values())
        norm = K * (1 - B + B * length / self.average)
        total = sum(
            weights[stem] * self.rarity(stem) * count * (K + 1) / (count + norm)
            for stem, count in counts.items()
            if stem in weights
        )
        return round(total, 9)

    def shared(self, name: str, weights: Mapping[str, float], most: int = 8) -> list[str]:
        """Return the words that a document has in common with the report, the telling first."""
        own = [stem for stem in self.documents[name] if stem in weights]
        own.sort(key=lambda stem: (-weights[stem] * self.rarity(stem), stem))
        return own[:most]


def counts(name: str, text: str) -> Counter[str]:
    """Return the stems of a definition's text, its name counted more."""
    found = Counter(stems(text))
    for stem in stems(name):
        found[stem] += NAME
    return found
