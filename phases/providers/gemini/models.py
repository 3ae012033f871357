"""What models can cache: a dated table. A model that is not in it is asked; the service decides."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

MARGIN_SECONDS = 30
"""A cache that expires within this is not used: a request in flight would lose it."""


@dataclass(frozen=True)
class Capability:
    """What a family of models can do.

    Attributes:
        family: beginning of the models' names.
        explicit: whether caches can be created; None if nobody knows.
        minimum_tokens: smallest cache; 0 if nobody knows.
        as_of: when the row was read, `YYYY-MM-DD`.
        source: where.
    """

    family: str
    explicit: bool | None
    minimum_tokens: int
    as_of: str = "2026-11-30"
    source: str = "ai.google.dev/gemini-api/docs/generate-content/caching"

    def stating(self, minimum_tokens: int) -> Capability:
        """Return the row with the minimum that the service itself stated."""
        return replace(self, minimum_tokens=minimum_tokens, source="the service's refusal")

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


ROWS = (
    Capability("gemini-2.5-", explicit=True, minimum_tokens=2048),
    Capability("gemini-3", explicit=True, minimum_tokens=4096),
    Capability("gemini-4-", explicit=False, minimum_tokens=4096),
)
UNKNOWN = Capability("", explicit=None, minimum_tokens=0, source="not in the table")


def capability(model: str) -> Capability:
    """Return the row of a model."""
    bare = model.removeprefix("models/")
    return next((row for row in ROWS if bare.startswith(row.family)), UNKNOWN)
