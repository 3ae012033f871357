"""Does a text quote another one? By words and phrases, whatever JSON has made of them.

A *fragment* of a text is a word that means something, or any three parts of words in a row. Words
are compared without case, as they stand and in parts (`itemTotal`, `item_total` and `item total`
have parts in common), at every depth of JSON escapes. Measuring errs on one side: a text that
quotes nothing can be taken for one that does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain

Phrase = tuple[str, str, str]

_ONE_BY_ONE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Letters of scripts that put no space between words: each stands for itself."""

_WORD = re.compile(r"\w+")
_PART = re.compile(
    rf"[{_ONE_BY_ONE}]|\d+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z{_ONE_BY_ONE}]+"
)
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_MEANS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_DEPTH = 8
"""Escapes inside escapes that are undone; no program of ours nests JSON texts deeper."""


class Fragments:
    """What can be recognised of texts: words and phrases."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.words: set[str] = set()
        self.phrases: set[Phrase] = set()
        for words, parts in map(_split, chain.from_iterable(map(unescaped, texts))):
            self.words.update(filter(_tells, chain(words, parts)))
            self.phrases.update(zip(parts, parts[1:], parts[2:], strict=False))

    def update(self, other: Fragments) -> None:
        """Add the fragments of other texts."""
        self.words |= other.words
        self.phrases |= other.phrases

    def common(self, texts: Iterable[str]) -> Fragments:
        """Return those that occur in texts of any length, of which nothing else is kept."""
        found = Fragments()
        for words, parts in map(_split, chain.from_iterable(map(unescaped, texts))):
            found.words |= self.words.intersection(chain(words, parts))
            triples = zip(parts, parts[1:], parts[2:], strict=False)
            found.phrases |= self.phrases.intersection(triples)
        return found

    def without(self, other: Fragments) -> Fragments:
        """Return those that the other has not."""
        left = Fragments()
        left.words = self.words - other.words
        left.phrases = self.phrases - other.phrases
        return left

    def meets(self, other: Fragments) -> bool:
        """Tell whether both have a fragment in common."""
        return not (self.words.isdisjoint(other.words) and self.phrases.isdisjoint(other.phrases))


def unescaped(text: str) -> Iterator[str]:
    """Yield a text as it stands, and with JSON escapes undone once, twice and so on."""
    yield text
    for _ in range(_DEPTH):
        if "\\" not in text:
            return
        before, text = text, _ESCAPE.sub(_character, text)
        if text == before:
            return
        yield text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def readings(data: bytes, encoding: str = "") -> Iterator[str]:
    """Yield bytes as every text they could be: in their encoding, else also as UTF-16."""
    with suppress(LookupError, ValueError):  # an encoding that nobody knows, or is none of text
        if encoding:
            yield data.decode(encoding, "replace")
            return
    yield data.decode("utf-8", "replace")
    if b"\0" in data:
        for start in (0, 1):
            yield data[start:].decode("utf-16-le", "replace")
            yield data[start:].decode("utf-16-be", "replace")


def _character(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else _MEANS.get(found[2], found[2])


def _split(text: str) -> tuple[list[str], list[str]]:
    parts = [part.casefold() for part in _PART.findall(text)]
    return _WORD.findall(text.casefold()), parts


def _tells(word: str) -> bool:
    """Tell whether a word alone can give something away: short ones occur everywhere."""
    return len(word) > 3 or (len(word) == 3 and any(map(str.isdigit, word)))
