"""A strict validator for the few words of JSON schema that arguments of actions use.

A library would bring two compiled dependencies and a tenth of a second at start for what is a page
here; a test holds its verdicts equal to those of `jsonschema`. Stricter in three ways: `1.0` is no
integer, a string must be encodable (no lone surrogates), and defaults are filled in.
"""

from __future__ import annotations

from typing import Any

from ledger.canonical import to_bytes
from ledger.errors import CanonicalError
from ledger.events import JsonObject, Problem

_TYPES: dict[str, type] = {
    "string": str, "integer": int, "boolean": bool, "object": dict, "array": list,
}  # fmt: skip


def check(value: Any, schema: JsonObject) -> list[Problem]:
    """Return everything that is wrong with `value`, in the order of the schema; [] if it fits."""
    try:
        to_bytes(value)
    except CanonicalError as error:
        return [Problem(code="not_json", message=f"the arguments are not JSON: {error}")]
    return list(_check(value, schema, "$"))


def with_defaults(value: JsonObject, schema: JsonObject) -> JsonObject:
    """Return the arguments in the order of the schema, with its defaults filled in."""
    return {
        name: value[name] if name in value else part["default"]
        for name, part in schema["properties"].items()
        if name in value or "default" in part
    }


def _check(value: Any, schema: JsonObject, path: str) -> list[Problem]:
    expected: str = schema["type"]
    kind: Any = type(value)
    if kind is not _TYPES[expected]:
        found = kind.__name__
        return [Problem(code="type", message=f"expected {expected}, found {found}", path=path)]
    if expected == "object":
        return _check_object(value, schema, path)
    if expected == "string":
        return _check_string(value, schema, path)
    if expected == "integer":
        return _check_integer(value, schema, path)
    return []


def _check_object(value: JsonObject, schema: JsonObject, path: str) -> list[Problem]:
    properties = schema["properties"]
    problems = [
        Problem(code="missing", message=f"the argument {name} is missing", path=f"{path}.{name}")
        for name in schema["required"]
        if name not in value
    ]
    for name, item in value.items():
        where = f"{path}.{shown(name, 60)}"
        if name in properties:
            problems += _check(item, properties[name], where)
        else:
            known = ", ".join(properties)
            text = f"there is no argument {shown(name, 60)}; known: {known}"
            problems.append(Problem(code="unknown", message=text, path=where))
        if len(problems) >= 20:
            break
    return problems


def _check_string(value: str, schema: JsonObject, path: str) -> list[Problem]:
    problems = []
    low, high = schema.get("minLength", 0), schema.get("maxLength", 10_000)
    if not low <= len(value) <= high:
        text = f"has {len(value)} characters, expected {low} to {high}"
        problems.append(Problem(code="length", message=text, path=path))
    if "enum" in schema and value not in schema["enum"]:
        text = f"expected one of {', '.join(schema['enum'])}, found {shown(value, 60)}"
        problems.append(Problem(code="value", message=text, path=path))
    if any("\ud800" <= character <= "\udfff" for character in value):
        problems.append(Problem(code="surrogate", message="holds a lone surrogate", path=path))
    return problems


def _check_integer(value: int, schema: JsonObject, path: str) -> list[Problem]:
    low, high = schema["minimum"], schema["maximum"]
    if low <= value <= high:
        return []
    found = str(value) if abs(value) < 10**30 else "a number of more than 30 digits"
    return [Problem(code="range", message=f"expected {low} to {high}, found {found}", path=path)]


def shown(text: str, limit: int) -> str:
    """Return a text as it may stand in a message: short, on one line, encodable."""
    clean = text.encode("utf-8", "backslashreplace").decode("utf-8")
    quoted = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in clean[:limit])
    return quoted + ("…" if len(clean) > limit else "")
