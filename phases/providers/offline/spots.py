"""The places that a diagnosis names: a file and a function of it, most likely first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from phases.providers.offline.assess import Analysis
from phases.providers.offline.outline import Definition
from phases.providers.offline.ranking import Place
from phases.providers.offline.story import Story

_MOST = 6
"""Locations that are named for a reason of their own."""

_FILES = 5
"""Files that are named if nothing but words leads to the first."""

_NEARLY = 0.35
"""Share of the best function's points from which another one of the file is worth reading."""

_ORDER = ((0, 0), (0, 1), (1, 0), (0, 2), (2, 0), (0, 3), (3, 0), (1, 1), (4, 0), (0, 4))
"""Which (file, function) stands where among the locations: breadth first, the best file deeper."""


class Spot(NamedTuple):
    """A place that is named: a file and, where it is known, a function of it."""

    place: Place
    function: Definition | None
    first: int
    last: int


def locate(analysis: Analysis) -> list[Spot]:
    """Return the places to name, most likely first."""
    places = analysis.places
    spots = [
        spot for file, function in _ORDER if file < len(places)
        for spot in _spots(analysis, places[file], function)
    ]  # fmt: skip
    spots = _with_callers(analysis, spots)
    named = [s for n, s in enumerate(spots) if n < 1 or _has_reason(analysis, s, spots[0])][:_MOST]
    return named + list(_others(analysis, named))


def _spots(analysis: Analysis, place: Place, rank: int) -> Iterator[Spot]:
    """Yield a file's function of a rank (0 is the best); the file alone if none of it is known."""
    if rank < len(place.functions):
        found = place.functions[rank][1]
        yield Spot(place, found, found.first, max(found.first, found.last))
    elif rank == 0:
        at = _pointed_line(analysis, place)
        yield Spot(place, None, at, at)


def _others(analysis: Analysis, named: list[Spot]) -> Iterator[Spot]:
    """Yield the next files, if nothing but words leads to the first: then a reader needs them."""
    if not named or analysis.points_directly(named[0].place):
        return
    known = {spot.place.path for spot in named}
    for place in analysis.places[:_FILES]:
        if place.path not in known:
            yield from _spots(analysis, place, 0)


def _has_reason(analysis: Analysis, spot: Spot, first: Spot) -> bool:
    """Tell whether a further place has a reason of its own: the call of the first place, something
    that points at it, or words that fit nearly as well. The best rivals are named in any case.
    """
    if spot.place is not first.place:
        told = story_of(analysis, spot)
        rival = spot.place in analysis.places[1:2] and spot.function in (None, *_best(spot.place))
        third = spot.place in analysis.places[2:3] and bool(told.words())
        return rival or third or told.has_own_reason
    if calls(analysis, spot, first) or story_of(analysis, spot).has_own_reason:
        return True
    points = spot.place.functions
    own = next((number for number, function in points if function == spot.function), 0.0)
    return own >= _NEARLY * max((number for number, _ in points), default=0.0)


def _best(place: Place) -> list[Definition]:
    return [function for _, function in place.functions[:1]]


def _with_callers(analysis: Analysis, spots: list[Spot]) -> list[Spot]:
    """Put the caller of code that decides by odd rows second: there the fault comes to light."""
    first = spots[0] if spots else None
    way = (
        analysis.ranker.structure.chains.get(first.function, ()) if first and first.function else ()
    )
    if first is None or len(way) < 2 or story_of(analysis, first).use is None:
        return spots
    caller = way[-2]
    places = [place for place in analysis.places if place.path == caller.path]
    found = [Spot(place, caller, caller.first, caller.last) for place in places]
    others = [spot for spot in spots[1:] if spot.function != caller]
    return [first, *found, *others]


def _pointed_line(analysis: Analysis, place: Place) -> int:
    """Return the line of a file that a search or a frame points at."""
    framed = [x.frame.line for x in analysis.clues.frames if x.path == place.path]
    if any(signal.kind == "packaging" for signal in place.signals):
        lines = analysis.corpus.lines(place.path)
        framed = [number for number in sorted(lines) if "packages" in lines[number]]
    hits = [
        at for ranking in analysis.corpus.rankings for path, at in ranking.hits
        if path == place.path
    ]  # fmt: skip
    return max(1, next(iter([*framed, *hits]), 1))


def calls(analysis: Analysis, caller: Spot, called: Spot) -> bool:
    """Tell whether the function of a place calls the function of another."""
    known = caller.function is not None and called.function is not None
    return known and called.function in analysis.ranker.structure.calls.called(caller.function)  # type: ignore[arg-type]


def story_of(analysis: Analysis, spot: Spot) -> Story:
    """Return what speaks for a place, in words."""
    return Story(analysis.ranker, spot.place, spot.function, (spot.first, spot.last))
