"""Source maps, version 3: from a place in a built file back to the place in its original.

Format: ECMA-426. Mappings are base-64 VLQ: `;` starts a generated line, `,` a segment of up to five
differences (generated column, source, original line, original column, name).
"""

from __future__ import annotations

import re
from base64 import b64decode
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from ledger.canonical import from_bytes
from ledger.errors import CanonicalError
from phases.investigation.index.paths import normalise, parent, suffix_match
from phases.investigation.snapshot import Snapshot

_DIGITS = {
    character: value
    for value, character in enumerate(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    )
}
_COMMENT = re.compile(r"[#@]\s*sourceMappingURL=(\S+)")
_TAIL = 2_000_000
_MOST_SEGMENTS = 5_000_000


@dataclass(frozen=True)
class Origin:
    """A place in an original, 1-based. `path` is a path of the snapshot if `present`."""

    path: str
    line: int
    column: int
    present: bool


@dataclass(frozen=True)
class SourceMap:
    """The sources of a built file (paths of the snapshot where they are in it) and its mappings."""

    sources: list[tuple[str, bool]]
    mappings: str

    def origin(self, line: int, column: int) -> Origin | None:
        """Return where the text at a place (1-based) came from."""
        rows = self._decoded
        if not 1 <= line <= len(rows) or not rows[line - 1]:
            return None
        row = rows[line - 1]
        at = bisect_right(row, column - 1, key=lambda segment: segment[0]) - 1
        _, source, original, original_column = row[max(at, 0)]
        if not 0 <= source < len(self.sources):
            return None
        path, present = self.sources[source]
        return Origin(path, original + 1, original_column + 1, present)

    @cached_property
    def _decoded(self) -> list[list[tuple[int, int, int, int]]]:
        return decode_mappings(self.mappings)


def decode_mappings(mappings: str) -> list[list[tuple[int, int, int, int]]]:
    """Return for each generated line its (column, source, original line, original column), 0-based.

    Segments without a source are left out; decoding stops at the first malformed character.
    """
    rows: list[list[tuple[int, int, int, int]]] = []
    source = line = column = segments = 0
    for text in mappings.split(";"):
        generated, row = 0, list[tuple[int, int, int, int]]()
        for segment in text.split(",") if text else ():
            values = _values(segment)
            segments += 1
            if values is None or segments > _MOST_SEGMENTS:
                return [*rows, sorted(row)]
            generated += values[0] if values else 0
            if len(values) >= 4:
                source, line, column = source + values[1], line + values[2], column + values[3]
                row.append((generated, source, line, column))
        rows.append(sorted(row))
    return rows


def _values(segment: str) -> list[int] | None:
    values, value, shift = [], 0, 0
    for character in segment:
        digit = _DIGITS.get(character)
        if digit is None or shift > 60:
            return None
        value |= (digit & 31) << shift
        shift += 5
        if not digit & 32:
            values.append(-(value >> 1) if value & 1 else value >> 1)
            value = shift = 0
    return values


def map_of(snapshot: Snapshot, path: str) -> SourceMap | None:
    """Return the source map of a built file: named in its last lines, beside it, or inside it."""
    file = snapshot.files.get(path)
    if file is None or not file.readable:
        return None
    text = snapshot.text(file).text
    names = _COMMENT.findall(text, max(0, len(text) - _TAIL))
    if names and names[-1].startswith("data:"):
        return _parse(snapshot, path, _inline(names[-1]))
    named = normalise(f"{parent(path)}/{unquote(names[-1])}") if names else ""
    for candidate in (named, f"{path}.map"):
        beside = snapshot.files.get(candidate or "")
        if beside is not None and beside.readable:
            return _parse(snapshot, candidate or "", snapshot.text(beside).data)
    return None


def _inline(url: str) -> bytes:
    head, _, body = url.partition(",")
    try:
        return b64decode(body) if head.endswith(";base64") else unquote(body).encode("utf-8")
    except ValueError:
        return b""


def _parse(snapshot: Snapshot, where: str, data: bytes) -> SourceMap | None:
    try:
        value = from_bytes(data.removeprefix(b")]}'").strip())
    except CanonicalError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("mappings"), str):
        return None
    root = value.get("sourceRoot")
    root = f"{root}/" if isinstance(root, str) and root else ""
    names = value.get("sources")
    if not isinstance(names, list):
        return None
    return SourceMap(
        [_locate(snapshot, where, f"{root}{name}") for name in names], value["mappings"]
    )


def _locate(snapshot: Snapshot, where: str, name: str) -> tuple[str, bool]:
    """Return (path, whether it is in the tree) of a source that a map at `where` names."""
    plain = re.sub(r"^[a-z][a-z0-9+.-]*:/*", "", name.partition("?")[0])
    near = normalise(f"{parent(where)}/{plain}")
    if near is not None and near in snapshot.files:
        return near, True
    found = suffix_match(snapshot.files, plain)
    return (found, True) if found else (plain, False)
