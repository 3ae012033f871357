"""Database values as JSON: docs/format.md, "Database values"."""

from __future__ import annotations

import math
from base64 import b64encode
from typing import Any

Value = Any
"""A value in the child's short form: None, int, float, str, or (form, first part, total)."""


def to_json(value: Value) -> Any:
    """Return the JSON form of a value that database_child.py sent."""
    if type(value) is float and math.isinf(value):
        return {"real": "inf" if value > 0 else "-inf"}
    if type(value) is not tuple:
        return value
    form, part, total = value
    if form == "text":
        return {"text": part, "characters": total}
    if form == "blob":
        return {"blob": b64encode(part).decode("ascii"), "bytes": total}
    whole = {"text_bytes": b64encode(part).decode("ascii")}
    return whole if len(part) == total else {**whole, "bytes": total}


def row_to_json(row: list[Value]) -> list[Any]:
    """Return a row's values as JSON, in the order of its columns."""
    return [to_json(value) for value in row]
