"""Paths inside a source tree: `/` between parts, never absolute."""

from __future__ import annotations

from collections.abc import Iterable


def parent(path: str) -> str:
    """Return the folder of a path, "" at the root."""
    return path.rpartition("/")[0]


def name(path: str) -> str:
    """Return the last part of a path."""
    return path.rpartition("/")[2]


def extension(path: str) -> str:
    """Return the lower-case extension without its dot, "" if there is none."""
    stem, dot, last = name(path).rpartition(".")
    return last.lower() if dot and stem else ""


def normalise(path: str) -> str | None:
    """Resolve `.` and `..`; None if the path leaves the tree."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def suffix_match(paths: Iterable[str], wanted: str) -> str:
    """Return the path that shares the most last parts with `wanted`, at least its last two ("" if
    none).

    With equal lengths the shortest path wins, then the first. A path of one part must match whole.
    """
    parts = [part for part in wanted.split("/") if part not in ("", ".", "..")]
    best, best_key = "", (0, 0)
    for path in paths:
        if not parts or not path.endswith(parts[-1]):
            continue
        own = path.split("/")
        shared = 0
        while shared < min(len(own), len(parts)) and own[-1 - shared] == parts[-1 - shared]:
            shared += 1
        enough = shared >= 2 or (shared == 1 and len(own) == 1) or (shared == 1 == len(parts))
        if enough and (key := (shared, -len(own))) > best_key:
            best, best_key = path, key
    return best
