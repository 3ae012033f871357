"""Another decoder of consolidated_v1, written from docs/encodings/consolidated_v1.md alone.

Slow, recursive and copying, without bounds: only for envelopes that tests made.
"""

from __future__ import annotations

import copy
from typing import Any


class Refused(Exception):
    """The envelope breaks the grammar."""


def decode(content: Any) -> Any:
    """Return the view of a content."""
    if not isinstance(content, dict) or "$consolidated" not in content:
        return content
    _check(type(content["$consolidated"]) is int and content["$consolidated"] == 1)
    keys = set(content) - {"$consolidated"}
    if keys == {"literal"}:
        return content["literal"]
    _check(keys - {"shapes", "shared"} == {"data"})
    shapes, shared = content.get("shapes", []), content.get("shared", [])
    _check(isinstance(shapes, list) and isinstance(shared, list))
    decoder = _Decoder(shapes)
    for item in shared:
        decoder.shared.append(decoder.value(item, True))
    view = decoder.value(content["data"], True)
    _check(decoder.used == set(range(len(shared))))
    _check(decoder.used_shapes == set(range(len(shapes))))
    return view


class _Decoder:
    def __init__(self, shapes: list[Any]) -> None:
        self.raw = shapes
        self.shared: list[Any] = []
        self.read: dict[int, Any] = {}
        self.used: set[int] = set()
        self.used_shapes: set[int] = set()

    def value(self, raw: Any, shapes: bool) -> Any:
        if isinstance(raw, list):
            return [self.value(item, shapes) for item in raw]
        if not isinstance(raw, dict):
            return raw
        if len(raw) == 1:
            ((key, inner),) = raw.items()
            form = {
                "$ref": self.ref,
                "$lit": self.lit,
                "$record": self.record,
                "$table": self.table,
                "$lines": self.lines,
            }.get(key)
            if form:
                return form(inner, shapes)
        return {key: self.value(item, shapes) for key, item in raw.items()}

    def ref(self, raw: Any, shapes: bool) -> Any:
        _check(type(raw) is int and 0 <= raw < len(self.shared))
        self.used.add(raw)
        return copy.deepcopy(self.shared[raw])

    def lit(self, raw: Any, shapes: bool) -> Any:
        if isinstance(raw, dict):
            return {key: self.value(item, shapes) for key, item in raw.items()}
        _check(isinstance(raw, list))
        return self.value(raw, shapes)

    def heads(self, raw: Any, shapes: bool, by_number: bool = True) -> list[Any]:
        if isinstance(raw, list):
            return self.columns(raw, shapes)
        _check(by_number and shapes and type(raw) is int and 0 <= raw < len(self.raw))
        self.used_shapes.add(raw)
        if raw not in self.read:
            _check(isinstance(self.raw[raw], list))
            self.read[raw] = self.columns(self.raw[raw], False)
        return self.read[raw]

    def columns(self, raw: list[Any], shapes: bool) -> list[Any]:
        out: list[Any] = []
        for item in raw:
            if isinstance(item, str):
                out.append((item, "value", None))
            elif isinstance(item, dict) and item:
                out += [(k, "common", self.value(v, shapes)) for k, v in item.items()]
            else:
                _check(isinstance(item, list) and bool(item) and isinstance(item[0], str))
                out.append((item[0], "nested", self.columns(item[1:], shapes)))
        _check(len({name for name, *_ in out}) == len(out))
        return out

    def build(self, columns: list[Any], values: list[Any]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, kind, more in columns:
            if kind == "value":
                out[name] = copy.deepcopy(values.pop(0))
            elif kind == "common":
                out[name] = copy.deepcopy(more)
            else:
                out[name] = self.build(more, values)
        return out

    def row(self, columns: list[Any], raw: Any, shapes: bool) -> dict[str, Any]:
        _check(isinstance(raw, list) and len(raw) == _width(columns))
        return self.build(columns, [self.value(item, shapes) for item in raw])

    def record(self, raw: Any, shapes: bool) -> Any:
        _check(isinstance(raw, list) and len(raw) == 2 and type(raw[0]) is int)
        return self.row(self.heads(raw[0], shapes), raw[1], shapes)

    def table(self, raw: Any, shapes: bool) -> Any:
        _check(isinstance(raw, list) and len(raw) == 2)
        columns = self.heads(raw[0], shapes)
        _check(isinstance(raw[1], list))
        return [
            self.row(columns, row, shapes) if isinstance(row, list) else self.value(row, shapes)
            for row in raw[1]
        ]

    def lines(self, raw: Any, shapes: bool) -> Any:
        _check(isinstance(raw, list) and len(raw) == 2)
        columns = self.heads(raw[0], shapes)
        width = _width(columns)
        _check(isinstance(raw[1], list) and width >= 2)
        out = []
        for block in raw[1]:
            _check(isinstance(block, list) and width <= len(block) <= width + 9)
            values = [self.value(item, shapes) for item in block]
            *before, first = values[: width - 1]
            _check(type(first) is int)
            for n, text in enumerate(values[width - 1 :]):
                out.append(self.build(columns, [*before, first + n, text]))
        return out


def _width(columns: list[Any]) -> int:
    return sum(
        1 if kind == "value" else _width(more) if kind == "nested" else 0
        for _, kind, more in columns
    )


def _check(holds: bool) -> None:
    if not holds:
        raise Refused
