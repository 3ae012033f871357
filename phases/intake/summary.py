"""What an intake took, skipped, catalogued and replaced, for people and for `--json`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from phases.intake.errors import shown
from projections.wording import counted

EXAMPLES = 3
"""Names shown for each reason."""


@dataclass
class Tally:
    """How many, and the first few."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, example: str, count: int = 1) -> None:
        """Count `count` more, with an example."""
        self.count += count
        if len(self.examples) < EXAMPLES:
            self.examples.append(example)

    def __str__(self) -> str:
        more = ", …" if self.count > len(self.examples) else ""
        return f"{self.count:,} ({', '.join(map(shown, self.examples))}{more})"


@dataclass
class Summary:
    """Filled while `take` runs; complete when its iterator is exhausted."""

    taken: list[dict[str, Any]] = field(default_factory=list)
    skipped: dict[str, Tally] = field(default_factory=dict)
    catalogued: dict[str, Tally] = field(default_factory=dict)
    replaced: dict[str, Tally] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    observations: int = 0

    def took(self, artifact: str, kind: str, name: str, size: int, **numbers: int) -> None:
        """Note an artefact: its ID, kind, name, bytes, and numbers such as lines or files."""
        entry = {"artifact": artifact, "kind": kind, "name": name, "bytes": size}
        self.taken.append(entry | numbers)

    def skip(self, entries: Iterable[tuple[str, str]]) -> None:
        """Note what was left out: pairs of path and reason."""
        for path, reason in entries:
            self.skipped.setdefault(reason, Tally()).add(path)

    def render(self) -> list[str]:
        """Return the summary as plain lines."""
        lines = [_line(entry) for entry in self.taken]
        for title, tallies in (
            ("skipped", self.skipped),
            ("catalogued only", self.catalogued),
            ("secrets replaced", self.replaced),
        ):
            lines += [f"{title}, {kind}: {tallies[kind]}" for kind in sorted(tallies)]
        return [*lines, *(f"note: {note}" for note in self.notes)]

    def as_json(self) -> dict[str, Any]:
        """Return the summary as a JSON object."""
        return {
            "taken": self.taken,
            "skipped": _plain(self.skipped),
            "catalogued": _plain(self.catalogued),
            "replaced": _plain(self.replaced),
            "notes": self.notes,
            "observations": self.observations,
        }


def _line(entry: dict[str, Any]) -> str:
    numbers = [counted(entry["bytes"], "byte")]
    numbers += [counted(entry[f"{x}s"], x) for x in ("line", "file", "table") if entry.get(f"{x}s")]
    return f"{entry['artifact']} {entry['kind']} {shown(entry['name'])}: {', '.join(numbers)}"


def _plain(tallies: dict[str, Tally]) -> dict[str, Any]:
    return {
        kind: {"count": tallies[kind].count, "examples": tallies[kind].examples}
        for kind in sorted(tallies)
    }
