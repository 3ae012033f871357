"""Definitions in source text: one entry for every language, and what a symbol is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from phases.investigation.index.paths import extension
from phases.investigation.lines import Text

LARGEST = 1_500_000
"""Characters of the largest file whose syntax is read; beyond it, patterns are used."""

SCRIPTS = frozenset({"js", "cjs", "mjs", "jsx", "ts", "tsx", "mts", "cts"})

MOST_OUTER = 300
"""Characters of the names around a symbol that are still put before it."""

_NAMED = re.compile(
    r"\b(?:def|class|function\*?|interface|struct|enum|trait|module|func|fn|type)\s+([^\W\d][\w$]*)"
)
_SCRIPT = re.compile(
    r"^[ \t]*(?:async |static )*([^\W\d][\w$]*) ?\([^()\n]*\) ?\{"
    r"|\b([^\W\d][\w$]*) ?[:=] ?(?:async )?(?:function\b|\([^()\n]*\) ?=>)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Symbol:
    """A definition. `qualified` has the names around it, `A.method`; lines are 1-based,
    inclusive.
    """

    name: str
    qualified: str
    kind: str
    first: int
    last: int


def symbols_of(path: str, text: Text) -> list[Symbol]:
    """Return the definitions in a file, by first line; unknown languages have none."""
    from phases.investigation.index import javascript, languages, plain, python

    kind = extension(path)
    found: Iterable[Symbol]
    if len(text.text) > LARGEST:
        found = plain.symbols(kind, text)
    elif kind in ("py", "pyw", "pyi"):
        found = python.symbols(text)
    elif kind in javascript.GRAMMARS:
        found = javascript.symbols(kind, text)
    elif languages.available(kind):
        found = languages.symbols(kind, text)
    else:
        found = plain.symbols(kind, text)
    return sorted(found, key=lambda symbol: (symbol.first, -symbol.last, symbol.qualified))


def read_by(path: str, text: Text) -> str:
    """Return how a file's definitions were found: `syntax tree` or `patterns`."""
    from phases.investigation.index import javascript, languages

    kind = extension(path)
    known = kind in ("py", "pyw", "pyi") or kind in javascript.GRAMMARS or languages.available(kind)
    return "syntax tree" if known and len(text.text) <= LARGEST else "patterns"


def qualify(outer: str, name: str) -> str:
    """Return a name with the names around it; endless nesting does not make endless names."""
    return f"{outer}.{name}" if outer and len(outer) <= MOST_OUTER else name


def quick_names(text: str, extension: str) -> list[str]:
    """Return names that are probably defined in a piece of text, cheaply, for ranking."""
    found = _NAMED.findall(text)
    if extension in SCRIPTS:
        found += [one or two for one, two in _SCRIPT.findall(text)]
    return found
