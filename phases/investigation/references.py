"""FILE references: an argument that names a file or artefact by a label of this very request.

Only arguments that name things are expanded; a query, an SQL text or a value that looks like a
label stays what it is. A label that the saved context does not hold stays too, and is then refused
as a path that is not in the snapshot.
"""

from __future__ import annotations

import re
from typing import Any

NAMING = frozenset({"path", "artifact", "database", "log"})
_LABEL = re.compile(r"[PM](?:[0-9]{1,6}|:[0-9a-f]{32})")


def expand(arguments: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with labels replaced by the path or artefact their definition names."""
    return {
        key: _named(key, value, shared) if key in NAMING else value
        for key, value in arguments.items()
    }


def is_label(value: str) -> bool:
    """Tell whether a string has the form of a provenance or metadata label."""
    return _LABEL.fullmatch(value) is not None


def _named(key: str, value: Any, shared: dict[str, Any]) -> Any:
    if not isinstance(value, str) or not is_label(value):
        return value
    definition = shared.get(value)
    if not isinstance(definition, dict):
        return value
    target = definition.get("path" if key == "path" else "artifact")
    return target if isinstance(target, str) else value
