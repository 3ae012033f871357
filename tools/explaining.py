"""What `request explain` prints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice

from ledger.reader import CaseReader
from projections.explaining import Explanation, LeftOut, Part, Where, explain
from tools.output import spoken
from tools.sawing import prepared_request

NAMES = 12
"""Names or positions shown on a line; `--json` has all."""


def explanation_of(record: CaseReader, request: str) -> Explanation:
    """Return a request taken apart.

    Raises:
        UserError: there is no such request.
    """
    _, prepared = prepared_request(record, request)
    return explain(record, prepared.request)


def explanation_lines(explained: Explanation) -> Iterator[str]:
    """Yield the lines of `request explain`."""
    prepared = explained.prepared
    versions = ", ".join(f"{name} {value}" for name, value in prepared.versions.items())
    yield (
        f"{prepared.request} {spoken(prepared.phase)} with {prepared.protocol} ({versions}), "
        f"prepared at {explained.position} from {prepared.context} at {explained.context_position}"
    )
    yield (
        f"sent as {prepared.form}: {prepared.characters:,} characters, about "
        f"{prepared.estimated_tokens:,} tokens; plain {prepared.plain_characters:,} and "
        f"{prepared.plain_estimated_tokens:,}. Parts are measured before encoding:"
    )
    for part in explained.parts:
        yield from _part_lines(part, 0)
    yield "left out:" if explained.left_out else "left out: nothing"
    for item in explained.left_out:
        yield _left_out_line(item)


def _part_lines(part: Part, depth: int) -> Iterator[str]:
    name = "  " * depth + part.part
    came = _events(part.events) or "empty"
    yield (
        f"  {name:<46} {part.characters:>9,} ch {part.estimated_tokens:>7,} tok  {part.by}: {came}"
    )
    for inner in part.parts:
        yield from _part_lines(inner, depth + 1)


def _events(events: tuple[Where, ...]) -> str:
    """Return events by topic, `artifact.added 2 3 4`, at most so many positions of each."""
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for where in events:
        by_topic[where.topic.partition("/")[0]].append(where.position)
    return ", ".join(f"{topic} {_few(map(str, found))}" for topic, found in by_topic.items())


def _left_out_line(item: LeftOut) -> str:
    names = f": {_few(item.names, ', ')}" if item.names else ""
    return f"  {spoken(item.kind):<12} {item.number} {item.what} [{item.policy}]{names}"


def _few(names: Iterator[str] | tuple[str, ...], between: str = " ") -> str:
    listed = list(names)
    shown = between.join(islice(listed, NAMES))
    return shown + (f"{between}… {len(listed) - NAMES} more" if len(listed) > NAMES else "")
