"""Words of texts and identifiers: `openItems`, `open_items` and `OpenItems` are open + items."""

from __future__ import annotations

import re
from functools import lru_cache

TOKEN = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*|\d{2,}")
"""A name, dotted or not, or a number."""

_HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")

_STOP_WORDS = """
a about above actual after again all also although always am an and another any are as at be
because been before behaviour behavior being below between both bug but by can cannot case
could describe described did do does doing done down during each either else even ever every
expected fact few file first for four from further get gets getting give given gives goes
going got had happen happens has have having he her here hers him his how however i if in
instead into is issue it its itself just know known last later least less like line look looks
made make makes many may maybe me might more most much must my need needs never new next no
none nor not nothing now observed of off often on once one only or other others otherwise
ought our ours out over own per please problem quite rather report reported right said same
say says second see seems seen several she should shows since so some something still step
steps such take than that the their them then there these they thing things third this those
though three through thus to together too took toward two under until up upon us use used user
uses using very version versions want was way we well went were what when whenever where
whether which while who whom whose why will with within without work works would wrong yet you
your yours january february march april june july august september october november december
python node linux windows
"""
STOP = frozenset(_STOP_WORDS.split())
"""Words that say nothing about a place in source text: grammar, and what every report says."""


@lru_cache(maxsize=100_000)
def split(identifier: str) -> tuple[str, ...]:
    """Return the lower-case words of an identifier: `HTTPServer2` → http, server, 2."""
    return tuple(part.lower() for part in _HUMPS.findall(identifier))


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Return a word without the endings that English grammar adds, so that `renames` finds
    `rename`.

    Deliberately crude: it must only map forms of one word together, not give a dictionary word.
    """
    for ending in ("ations", "ation", "ings", "ing", "ied", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            base = word[: -len(ending)]
            return (base + "y") if ending in ("ied", "ies") else base.rstrip("e")
    return word.rstrip("e") if len(word) > 3 else word


def stems(text: str) -> list[str]:
    """Return the stems of all words of a text that say something, in order, repeats included."""
    return [
        stem(word)
        for token in TOKEN.findall(text)
        for word in split(token)
        if len(word) > 1 and word not in STOP
    ]


def is_identifier(token: str) -> bool:
    """Tell whether a word can only be a name in code: dotted, snake_case, camelCase."""
    return bool(re.search(r"[._]|[a-z0-9][A-Z]", token)) and bool(re.search(r"[A-Za-z]{2}", token))
