"""Which files are built copies of others in the tree, and of which.

Four signals, each from content: a source map whose sources are in the tree; minified text; a bundle
that holds at least 60 % of the lines of at least five other files; a parallel tree, with the same
path from some folder on and similar identifiers. A copy stays readable and can be stale.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from phases.investigation.index.paths import extension, name
from phases.investigation.index.sourcemaps import map_of
from phases.investigation.index.words import IDENTIFIER
from phases.investigation.snapshot import Snapshot

SHARE_OF_LINES = 0.6
FILES_IN_BUNDLE = 5
SIMILAR_IDENTIFIERS = 0.6
SHARE_OF_NAMES = 0.6

_COMMON_LINE = 24
"""A line in more files than this says nothing about where it came from."""

_PREFERENCE = {"src": 0, "source": 0, "lib": 1}
_OUTPUT = {
    "es": 3, "esm": 3, "module": 3, "cjs": 4, "commonjs": 4, "umd": 4, "amd": 4, "browser": 5,
    "dist": 6, "build": 7, "out": 7, "min": 8,
}  # fmt: skip
_LARGEST = 2_000_000
_KEPT = re.compile(r"""\.([A-Za-z_$][\w$]{3,})|'([^'\n]{4,60})'|"([^"\n]{4,60})\"""")


@dataclass(frozen=True)
class Copy:
    """How a copy was recognised and what it was made of (paths, sorted; may be empty)."""

    signals: tuple[str, ...]
    origins: tuple[str, ...]


def find_copies(snapshot: Snapshot, candidates: list[str], minified: set[str]) -> dict[str, Copy]:
    """Return the built copies among `candidates`, by path."""
    found: dict[str, dict[str, set[str]]] = defaultdict(dict)
    readable = [path for path in candidates if snapshot.files[path].readable]
    for path in readable:
        if extension(path) == "py":
            continue
        if origins := _mapped(snapshot, path):
            found[path]["source_map"] = origins
        if path in minified:
            found[path]["minified"] = set()
    rest = [path for path in readable if path not in minified and _size(snapshot, path) <= _LARGEST]
    scripts = [path for path in rest if extension(path) != "py"]
    for path, origins in _bundles(snapshot, scripts, set(found)).items():
        found[path]["bundle"] = origins
    for path, origins in _parallel(snapshot, rest).items():
        found[path]["parallel_tree"] = origins
    _link_minified(snapshot, found, readable)
    return {path: _copy(signals, found) for path, signals in found.items()}


def _copy(signals: dict[str, set[str]], found: dict[str, dict[str, set[str]]]) -> Copy:
    """Origins that are copies themselves are of no use to a reader, unless there is no other."""
    origins = set().union(*signals.values())
    originals = {path for path in origins if path not in found}
    return Copy(tuple(sorted(signals)), tuple(sorted(originals or origins)))


def _size(snapshot: Snapshot, path: str) -> int:
    return snapshot.files[path].size


def _mapped(snapshot: Snapshot, path: str) -> set[str]:
    found = map_of(snapshot, path)
    return (
        {source for source, present in found.sources if present and source != path}
        if found
        else set()
    )


def _bundles(snapshot: Snapshot, paths: list[str], known: set[str]) -> dict[str, set[str]]:
    """Return the files that hold most of the lines of several others."""
    lines = {path: _telling_lines(snapshot, path) for path in paths}
    holders: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        for line in lines[path]:
            holders[line].append(path)
    found: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        if path in known or len(lines[path]) < 3:
            continue
        shared = Counter(
            other for line in lines[path] if len(holders[line]) <= _COMMON_LINE
            for other in holders[line] if other != path
        )  # fmt: skip
        for other, count in shared.items():
            larger = len(lines[other]) >= 1.5 * len(lines[path])
            if larger and count >= SHARE_OF_LINES * len(lines[path]):
                found[other].add(path)
    return {path: parts for path, parts in found.items() if len(parts) >= FILES_IN_BUNDLE}


def _telling_lines(snapshot: Snapshot, path: str) -> set[str]:
    """Return the lines by which a file can be recognised; imports change when it is bundled."""
    stripped = (line.strip() for line in snapshot.text(snapshot.files[path]).lines)
    return {
        line
        for line in stripped
        if len(line) >= 8
        and not line.startswith(("import ", "export {", "//", "*", "/*", "require("))
    }


def _parallel(snapshot: Snapshot, paths: list[str]) -> dict[str, set[str]]:
    """Return the files with a twin in a preferred tree."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in paths:
        stem = name(path).partition(".")[0]
        groups[("py" if extension(path) == "py" else "js", stem)].append(path)
    found: dict[str, set[str]] = {}
    for (family, _), twins in sorted(groups.items()):
        if 1 < len(twins) <= 40:
            found |= _twins(snapshot, family, sorted(twins, key=_preference))
    return found


def _twins(snapshot: Snapshot, family: str, twins: list[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for at, path in enumerate(twins):
        for better in twins[:at]:
            if better in found or not _same_place(better, path):
                continue
            if _alike(snapshot, family, better, path):
                found[path] = {better}
                break
    return found


def _preference(path: str) -> tuple[int, int, str]:
    """Order of trees: src, lib, root, then what build tools write."""
    folders = path.lower().split("/")[:-1]
    worst = max((_OUTPUT[part] for part in folders if part in _OUTPUT), default=-1)
    best = min((_PREFERENCE[part] for part in folders if part in _PREFERENCE), default=2)
    return (worst if worst >= 0 else best, len(folders), path)


def _same_place(one: str, two: str) -> bool:
    """Tell whether two paths differ only in one leading part, one of them in an output folder."""
    left, right = _places(one), _places(two)
    outputs = _OUTPUT.keys() | _PREFERENCE.keys()
    return any(
        a == b and (x | y) & outputs and x != y for a, x in left for b, y in right
    )  # fmt: skip


def _places(path: str) -> list[tuple[str, frozenset[str]]]:
    """Return (path without its leading tree folders, those folders), for none, one and two of
    them.
    """
    folders = path.split("/")[:-1]
    stem = name(path).partition(".")[0]
    return [
        (
            "/".join([*folders[:at], *folders[at + count :], stem]),
            frozenset(folders[at : at + count]),
        )
        for count in (0, 1, 2)
        for at in range(min(2, len(folders) - count + 1))
    ]


def _alike(snapshot: Snapshot, family: str, one: str, two: str) -> bool:
    if snapshot.files[one].digest == snapshot.files[two].digest:
        return _size(snapshot, one) > 100
    if family == "py":
        return False  # a package may well hold two modules with the same vocabulary
    left, right = _identifiers(snapshot, one), _identifiers(snapshot, two)
    return min(len(left), len(right)) >= 8 and len(left & right) >= SIMILAR_IDENTIFIERS * len(
        left | right
    )


def _identifiers(snapshot: Snapshot, path: str) -> set[str]:
    found: Iterable[str] = IDENTIFIER.findall(snapshot.text(snapshot.files[path]).text)
    return {identifier for identifier in found if len(identifier) > 2}


def _link_minified(
    snapshot: Snapshot, found: dict[str, dict[str, set[str]]], paths: list[str]
) -> None:
    """Link minified files without a usable map by the names and texts that minifying keeps."""
    loose = [path for path, signals in found.items() if set(signals) == {"minified"}]
    if not loose:
        return
    scripts = [path for path in paths if extension(path) != "py" and path not in found]
    kept = {path: _kept_names(snapshot, path) for path in [*scripts, *loose]}
    for path in loose:
        found[path]["minified"] = {
            other
            for other in scripts
            if len(kept[other]) >= 5
            and len(kept[other] & kept[path]) >= SHARE_OF_NAMES * len(kept[other])
        }


def _kept_names(snapshot: Snapshot, path: str) -> set[str]:
    found = _KEPT.findall(snapshot.text(snapshot.files[path]).text)
    return {next(filter(None, groups)) for groups in found}
