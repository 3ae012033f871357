"""What an encoding gives back."""

from __future__ import annotations

from typing import Any, NamedTuple


class Encoded(NamedTuple):
    """A message's content, the form that was chosen for it, and why."""

    content: Any
    form: str
    reason: str
