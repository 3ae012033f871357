"""Whatever an answer cites must exist in the exact context it was given.

IDs are found by the member they stand in; paths must be ones the context shows. A structural
reference or a P/M label cited as evidence is a problem with its own words, because a model that
does it has to be told what to cite instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

from ledger.events import Problem
from phases.investigation.references import is_label

LISTS = {
    "observations": "O",
    "facts": "F",
    "entities": "N",
    "alternatives": "H",
    "evidence": "EOFN",
    "evidence_for": "EOFN",
    "evidence_against": "EOFN",
}
SINGLE = {"hypothesis": "H", "selected_hypothesis": "H", "database": "S"}
NOT_CITATIONS = frozenset({"arguments"})
NOT_SHOWN = frozenset({"rows", "arguments", "problems"})
"""Members of a context whose `id` and `path` are data, or places in an answer."""

MOST = 200
"""Problems that are looked for; nobody reads more."""

_ID = re.compile(r"[A-Z][0-9]{1,9}")


class Known(NamedTuple):
    """IDs and paths that a context holds."""

    ids: frozenset[str]
    paths: frozenset[str]
    databases: frozenset[str]


def known_in(context: dict[str, Any]) -> Known:
    """Return every ID and every path of a canonical context."""
    ids: set[str] = set()
    paths: set[str] = set()
    _collect(context, ids, paths)
    artifacts = context["sources"]["artifacts"]
    databases = {item["id"] for item in artifacts if item["kind"] == "database"}
    return Known(frozenset(ids), frozenset(paths), frozenset(databases))


def check(answer: dict[str, Any], context: dict[str, Any]) -> list[Problem]:
    """Return a problem for each citation that the context does not hold."""
    found = chain(_problems(answer, known_in(context), "$"), _ranges(answer, "$"))
    return list(islice(found, MOST))


def _problems(node: Any, known: Known, path: str) -> Iterator[Problem]:
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from _problems(item, known, f"{path}[{index}]")
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        here = f"{path}.{key}"
        if key in LISTS and _all_text(value):
            for index, name in enumerate(value):
                yield from _cited(name, LISTS[key], known, f"{here}[{index}]")
        elif key in SINGLE and isinstance(value, str):
            yield from _cited(value, SINGLE[key], known, here)
        elif key == "path" and isinstance(value, str):
            yield from _file(value, known, here)
        elif key not in NOT_CITATIONS:
            yield from _problems(value, known, here)


def _cited(name: str, letters: str, known: Known, path: str) -> Iterator[Problem]:
    if is_label(name) or name.startswith("$"):
        message = f"{name!r} is a label of this request, not a source; cite original IDs"
        yield Problem(code="label_cited", message=message, path=path)
    elif not _ID.fullmatch(name) or name not in known.ids:
        message = f"{name!r} does not exist in this context; cite IDs that it holds"
        yield Problem(code="unknown_id", message=message, path=path)
    elif name[0] not in letters or (letters == "S" and name not in known.databases):
        message = f"{name!r} is not the kind of thing this member cites ({', '.join(letters)})"
        yield Problem(code="wrong_kind", message=message, path=path)


def _file(value: str, known: Known, path: str) -> Iterator[Problem]:
    if value not in known.paths:
        message = f"{value!r} is not a path that this context shows; copy one exactly"
        yield Problem(code="unknown_path", message=message, path=path)


def _ranges(node: Any, path: str) -> Iterator[Problem]:
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from _ranges(item, f"{path}[{index}]")
    elif isinstance(node, dict):
        first, last = node.get("first_line"), node.get("last_line")
        if isinstance(first, int) and isinstance(last, int) and last < first:
            message = f"last_line {last} is before first_line {first}"
            yield Problem(code="line_range", message=message, path=f"{path}.last_line")
        for key, value in node.items():
            if key not in NOT_CITATIONS:
                yield from _ranges(value, f"{path}.{key}")


def _all_text(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _collect(node: Any, ids: set[str], paths: set[str]) -> None:
    if isinstance(node, list):
        for item in node:
            _collect(item, ids, paths)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key == "id" and isinstance(value, str) and _ID.fullmatch(value):
                ids.add(value)
            elif key == "path" and isinstance(value, str):
                paths.add(value)
            elif key not in NOT_SHOWN:
                _collect(value, ids, paths)
