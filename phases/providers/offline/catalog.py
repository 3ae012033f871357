"""Ties what a text names to what the catalogs list: files by path, modules by name, tables."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from phases.providers.offline.case import Case, Column, Table
from phases.providers.offline.frames import Frame, is_runtime
from phases.providers.offline.words import split

_INDEX_NAMES = ("__init__.py", "index.js", "index.ts", "index.mjs", "index.cjs")
_CODE = (".py", ".js", ".ts", ".mjs", ".cjs", ".jsx", ".tsx")
_NOT_OURS = frozenset({"test", "docs", "example", "generated", "source_map"})


class Catalog:
    """Look-ups over the catalogs of one case."""

    def __init__(self, case: Case) -> None:
        self.case = case

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for file in self.case.files:
            found[file.path.rpartition("/")[2]].append(file.path)
        return found

    def role(self, path: str) -> str:
        """Return a file's role, "" for one that no catalog lists."""
        file = self.case.file.get(path)
        return file.role if file else ""

    def by_suffix(self, wanted: str, least: int = 1, whole: bool = False) -> list[str]:
        """Return the files that share most last parts with a path, best first.

        Args:
            wanted: a path as somebody wrote it.
            least: parts that must be shared; a path of fewer parts must be shared whole.
            whole: every part of `wanted` must be shared.
        """
        key = (wanted, least, whole)
        if key not in self._suffixes:
            self._suffixes[key] = self._by_suffix(wanted, least, whole)
        return self._suffixes[key]

    @cached_property
    def _suffixes(self) -> dict[tuple[str, int, bool], list[str]]:
        return {}

    def _by_suffix(self, wanted: str, least: int, whole: bool) -> list[str]:
        parts = [
            part for part in wanted.replace("\\", "/").split("/") if part not in ("", ".", "..")
        ]
        if not parts:
            return []
        need = len(parts) if whole else min(least, len(parts))
        scored = []
        for path in self._by_name.get(parts[-1], []):
            own = path.split("/")
            shared = 0
            while shared < min(len(own), len(parts)) and own[-1 - shared] == parts[-1 - shared]:
                shared += 1
            if shared >= need or shared == len(own):
                scored.append((-shared, self.role(path) in _NOT_OURS, len(own), path))
        best = min(scored, default=(0, False, 0, ""))[0]
        return [path for score, _, _, path in sorted(scored) if score == best]

    def of_frame(self, frame: Frame) -> str:
        """Return the file of a stack frame, "" if it is not in the tree.

        An installed path is complete from the package on, so all of it must be there: another
        package's `util/compat.py` is not ours.
        """
        found = self.by_suffix(frame.path, least=2, whole=frame.installed)
        return found[0] if found else ""

    def is_foreign(self, frame: Frame) -> bool:
        """Tell whether a stack frame surely is another package's: the catalog may be cut off."""
        if is_runtime(frame):
            return True
        package = frame.path.split("/")[0]
        return frame.installed and not self.of_frame(frame) and package not in self._folders

    @cached_property
    def _folders(self) -> set[str]:
        return {part for file in self.case.files for part in file.path.split("/")[:-1]}

    def modules(self, dotted: str) -> list[str]:
        """Return the files that a dotted name may mean: `a.b.c` → a/b/c.py, a/b.py and so on; also
        the name a logger writes.
        """
        parts = dotted.split(".")
        found: list[str] = []
        for length in range(len(parts), 0, -1):
            stem = "/".join(parts[:length])
            if length == 1 and len(parts) == 1:
                break
            names = [stem + ending for ending in _CODE] + [f"{stem}/{n}" for n in _INDEX_NAMES]
            for name in names:
                found += self.by_suffix(name, whole=True) if length > 1 else []
            if found:
                break
        return list(dict.fromkeys(found))[:5]

    def named_like(self, name: str) -> list[str]:
        """Return source files whose name is this name: `Uploader` → uploader.py, up_loader.js."""
        wanted = "".join(split(name))
        return self._by_stem.get(wanted, [])[:5] if len(wanted) > 2 else []

    @cached_property
    def _by_stem(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for file in self.case.files:
            if file.role not in _NOT_OURS:
                stem = file.path.rpartition("/")[2].split(".")[0]
                found["".join(split(stem))].append(file.path)
        return found

    def tables_named(self, name: str) -> list[Table]:
        """Return tables with this name, singular or plural, however it is spelled."""
        wanted = _plain(name)
        return [t for t in self.case.tables if wanted and _plain(t.name) == wanted]

    def columns_named(self, name: str) -> list[tuple[Table, Column]]:
        """Return (table, column) for each column with this name."""
        wanted = name.lower()
        return [(t, c) for t in self.case.tables for c in t.columns if c.name.lower() == wanted]


def _plain(name: str) -> str:
    joined = "".join(split(name))
    return joined[:-3] + "y" if joined.endswith("ies") else joined.removesuffix("s")
