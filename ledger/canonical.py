"""Value to bytes and back: the one road to every byte that is hashed, frozen or sent.

The standard library's json writes and reads here. orjson does not, on purpose: it changed how it
spells exponents in 3.11.7, writes NaN as null, reads 2**64 as a float and lets the last of two
equal keys win. Python's `==` is not JSON equality either (`1 == True == 1.0`), so values are
compared by their canonical bytes: `same(a, b)`. Exact definition: docs/format.md, "Bytes".
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Any, NoReturn

from ledger.errors import CanonicalError

MAX_DEPTH = 200
"""Deepest nesting of arrays and objects; a scalar has depth 0."""

MAX_INTEGER_DIGITS = 4300
"""Longest integer, in decimal digits: what Python reads and writes without a changed setting."""

_INTEGER_BOUND = 10**MAX_INTEGER_DIGITS
_JOINING_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def to_bytes(value: Any) -> bytes:
    r"""Return the canonical UTF-8 bytes of a JSON value: minified, insertion order kept.

    A lone surrogate is written as its `\udXXX` escape. A tuple is written as an array.

    Raises:
        CanonicalError: for anything that would not come back exactly: a key that is no string, NaN
            or infinity, an integer of more than 4,300 digits, nesting over 200 levels, two adjacent
            surrogates that would join on reading, or a type that JSON does not have.
    """
    _check(value)
    text = _ENCODER.encode(value)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        if _JOINING_SURROGATES.search(text):
            raise CanonicalError(
                "two adjacent surrogates would join into one character on reading"
            ) from None
        return text.encode("utf-8", "backslashreplace")


def from_bytes(data: bytes) -> Any:
    """Return the JSON value in `data`, exactly: big integers, key order, lone surrogates.

    Raises:
        CanonicalError: for bytes that are not one strict JSON document: invalid UTF-8, duplicate
            keys, NaN, infinity (also as an overflowing number), trailing text, nesting over 200.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CanonicalError(f"not UTF-8: byte {error.start} cannot be decoded") from None
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise CanonicalError(f"nested deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise CanonicalError(
            f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except ValueError as error:
        if isinstance(error, CanonicalError):
            raise
        raise CanonicalError(f"an integer has more than {MAX_INTEGER_DIGITS} digits") from None
    _check(value)
    return value


def same(left: Any, right: Any) -> bool:
    """Tell whether two values are the same JSON value: type, sign and key order included."""
    return to_bytes(left) == to_bytes(right)


def digest(data: bytes) -> str:
    """Return the SHA-256 of `data`, tagged with how it was made: `sha256:` and 64 hex digits."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _check(value: Any) -> None:
    """Refuse what `json` would write without a word but not read back as the same value.

    Level by level rather than recursively, so that hostile depth cannot exhaust the stack.
    """
    level, depth = [value], 0
    while level:
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is str or kind is bool or item is None:
                continue
            if kind is dict:
                for key in item:
                    if type(key) is not str:
                        raise CanonicalError(f"an object has the key {key!r}, which is no string")
                below.extend(item.values())
            elif kind is list or kind is tuple:
                below.extend(item)
            elif kind is int:
                if not -_INTEGER_BOUND < item < _INTEGER_BOUND:
                    raise CanonicalError(f"an integer has more than {MAX_INTEGER_DIGITS} digits")
            elif kind is float:
                if not math.isfinite(item):
                    raise CanonicalError(f"{item} is not a JSON number")
            else:
                raise CanonicalError(f"{kind.__name__} is not a JSON type")
        depth += any(type(item) in (dict, list, tuple) for item in level)
        if depth > MAX_DEPTH:
            raise CanonicalError(f"nested deeper than {MAX_DEPTH} levels")
        level = below


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        # A dictionary keeps the last of equal keys: not list.count, an object may have a million.
        last = {key: n for n, (key, _) in enumerate(pairs)}
        double = next(key for n, (key, _) in enumerate(pairs) if last[key] != n)
        raise CanonicalError(f"the key {double[:40]!r} occurs twice in one object")
    return value


def _constant(name: str) -> NoReturn:
    raise CanonicalError(f"{name} is not a JSON number")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise CanonicalError(f"the number {text[:40]} does not fit a double")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
