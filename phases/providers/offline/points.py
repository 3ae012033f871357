"""What each signal is worth: the analyst's weights, all in one table.

A signal speaks for a file with so many points; the sum ranks the files. They were set by hand, in
round steps. What each brings, and what happens with others, is measured by
tests/benchmarks/ablation.py (docs/benchmarks.md), which puts another table in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


def _searches() -> Mapping[str, float]:
    return MappingProxyType(
        {
            "report": 2.0,
            "title": 1.0,
            "prose": 0.8,
            "names": 0.9,
            "difference": 1.0,
            "data": 1.0,
            "inside": 0.0,
        }
    )


def _spellings() -> Mapping[str, float]:
    return MappingProxyType({"title": 0.8, "code": 0.5, "text": 0.3})


@dataclass(frozen=True)
class Points:
    """Points of the signals for files, and shares of the best text for functions.

    Attributes:
        search: of the first file that a search finds, by what the search asked for.
        chance: share of a search that odd rows suggested if nothing ties them to the report.
        frame: the innermost frame of our own code: right in three of four traces.
        only_logged: share of `frame` if only logs show the error, so the report is about something
            else.
        own_fault: the innermost frame of a trace if it is ours and the language itself complains
            there, about an index, a key, a name or a type: nobody raised that on purpose.
        defines: the only definition of a name of the report: often only the way in to the fault.
        plain_word: share of `defines` for a name that is a plain word: `date` is defined by chance.
        message: the only file that holds the constant part of an error's text.
        printed: the only file that writes a sentence which the report shows as output.
        uses: the only file that uses a name of the report.
        module, module_in_log: a module or file that the report, or a log, names.
        path: most for words of the report in a path.
        spelled: a folder or file name that the report spells out, by where it does.
        chosen: a file that an argument of the report chooses among its siblings: `lang="es"` means
            lang_es, `dialect="sqlite"` means dialects/sqlite.
        works: share of `path` for a file named like what the report says works.
        packaging: the file that declares what is installed, when a module of the tree is missing.
        packaged: the same when the report misses something else in a package.
        data: a line that surely goes wrong on odd rows of the report. More than all signals from
            words together usually give: it explains the report, they only resemble it.
        reached: a surely deciding line that is called from what the report names: it takes part.
        callee: the best definition of a function that a named function calls: one step inwards.
        caught: the function that caught an error which the report does not speak of.
        logged, logged_reach: the module that logged what the report names last; what it calls.
        text: the function whose words fit best, of all that were read.
        in_frame: share of the best text for a function that the innermost frame is in.
        own_fault_in: the same where the language itself complains there.
        on_constant: share of a deciding line for a function that uses its constant.
        named, named_like: shares for a function that the report names, or whose name holds one.
        called: share for a function that one named by the report calls, less for each step more.
    """

    search: Mapping[str, float] = field(default_factory=_searches)
    chance: float = 0.4
    frame: float = 2.4
    only_logged: float = 0.5
    own_fault: float = 6.0
    defines: float = 0.9
    plain_word: float = 0.4
    message: float = 1.4
    printed: float = 1.2
    uses: float = 0.35
    module: float = 0.5
    module_in_log: float = 0.15
    path: float = 1.5
    spelled: Mapping[str, float] = field(default_factory=_spellings)
    chosen: float = 2.5
    works: float = 0.3
    packaging: float = 14.0
    packaged: float = 9.0
    data: float = 6.0
    reached: float = 1.5
    callee: float = 1.5
    caught: float = 2.5
    logged: float = 1.5
    logged_reach: float = 0.8
    text: float = 1.5
    in_frame: float = 0.8
    own_fault_in: float = 1.6
    on_constant: float = 0.9
    named: float = 0.2
    named_like: float = 0.15
    called: float = 0.3


POINTS = Points()
"""The table in force; read when a request is answered."""
