"""Corrections: what was complained about is dropped, the rest stays.

The analyst is deterministic, so asking it again gives the same answer; a complaint can only mean
that an item has to go. The innermost list item on the problem's path is the smallest thing to drop.
"""

from __future__ import annotations

import re
from typing import Any

from phases.providers.offline.case import Json, as_dict, as_str, dicts

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_NEEDED = frozenset({"predicts", "refuted_by"})
"""Lists that may not be empty: without them their item goes too."""


def corrected(phase: str, answer: Json, feedback: list[Any]) -> Json:
    """Return an answer after its corrections, oldest first."""
    for content in feedback:
        problems = dicts(as_dict(as_dict(content).get("correction")).get("problems"))
        paths = [_steps(as_str(problem.get("path"))) for problem in problems]
        for steps in sorted(filter(None, paths), key=_order, reverse=True):
            _drop(answer, steps)
    return _sound(phase, answer) if feedback else answer


def _steps(path: str) -> list[str | int]:
    return [int(m[2]) if m[2] else m[1] for m in _STEP.finditer(path.removeprefix("$"))]


def _order(steps: list[str | int]) -> list[tuple[int, str]]:
    """Order paths so that dropping from the end shifts no earlier index."""
    return [(step, "") if isinstance(step, int) else (0, step) for step in steps]


def _drop(answer: Json, steps: list[str | int]) -> None:
    """Drop the innermost list item on a path."""
    node: Any = answer
    last: tuple[list[Any], int] | None = None
    for step in steps:
        if isinstance(node, list) and isinstance(step, int) and step < len(node):
            last, node = (node, step), node[step]
        elif isinstance(node, dict) and step in node:
            node = node[step]
        else:
            break
    if last is not None:
        del last[0][last[1]]
    _prune(answer)


def _prune(node: Any) -> None:
    """Drop items whose required lists have become empty."""
    for value in node.values() if isinstance(node, dict) else node:
        if isinstance(value, list):
            value[:] = [item for item in value if not _hollow(item)]
        if isinstance(value, dict | list):
            _prune(value)


def _hollow(item: Any) -> bool:
    return isinstance(item, dict) and any(item.get(key) == [] for key in _NEEDED)


def _sound(phase: str, answer: Json) -> Json:
    """Keep the promises that an answer makes as a whole after items were dropped."""
    if phase == "investigation" and not answer["actions"]:
        why = "Nothing that may be asked for is left."
        answer["conclusion"] = {"ready": True, "why": why}
    if phase == "diagnosis":
        bare = not answer["locations"] and not answer["data"]
        if bare or not any(step["evidence"] for step in answer["mechanism"]):
            answer["outcome"] = "insufficient_evidence"
            answer["confidence"] = min(answer["confidence"], 0.1)
    if phase == "diagnosis_early" and answer["verdict"] == "reject" and not answer["missing"]:
        answer["verdict"] = "accept"
    return answer
