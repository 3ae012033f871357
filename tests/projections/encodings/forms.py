"""Ways to look at what an encoding writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ledger.canonical import from_bytes, to_bytes
from projections.encodings.consolidated import costs, graph, plan, writer


def sent(content: Any) -> Any:
    """Return a content as whoever reads the message gets it."""
    return from_bytes(to_bytes(content))


def characters(value: Any) -> int:
    return len(to_bytes(value).decode())


def envelope(view: Any) -> Any:
    """Return the envelope of a view even where the plain view is smaller."""
    nodes = graph.build(view)
    return writer.write(nodes, plan.plan(nodes))


@contextmanager
def cheap_forms() -> Iterator[None]:
    """Make every form cheap, so that small values take all of them."""
    names = ("RECORD", "TABLE", "LINES", "BLOCK", "REFERENCE", "DEFINITION", "ROW", "NUMBER")
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(costs, name, 1)
        patch.setattr(plan, "TRIFLING", 0)
        yield
