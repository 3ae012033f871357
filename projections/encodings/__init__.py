"""Encodings: how a model view is written as the content of a message. Lossless, or not used.

An encoding is a module with `encode(view) -> Encoded` and `restore(content) -> view`; `VERSIONS`
names them. A version never changes after it landed: tests/frozen/vectors hold view and exact bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from projections.encodings import consolidated_v1, plain_v1
from projections.encodings.types import Encoded


class Encoding(NamedTuple):
    """One version of an encoding and its inverse."""

    encode: Callable[[Any], Encoded]
    restore: Callable[[Any], Any]


VERSIONS: Mapping[str, Encoding] = {
    "plain_v1": Encoding(plain_v1.encode, plain_v1.restore),
    "consolidated_v1": Encoding(consolidated_v1.encode, consolidated_v1.restore),
}

__all__ = ["VERSIONS", "Encoded", "Encoding"]
