"""What each form costs, in hundredths of an estimated token: the model by which forms are chosen.

The quotes, colon or comma between two values are about one token together; each digit is one.
"""

from __future__ import annotations

from typing import Any

from projections.tokens import hundredths

ENVELOPE = 1200
ARRAY = 100
OBJECT = 100
RECORD = 700
TABLE = 600
LINES = 600
ROW = 100
BLOCK = 200
NESTED = 100
SEPARATOR = 100
NUMBER = 100
"""A shape's number and its comma."""

ESCAPE = 500
"""What `{"$lit":` and its end cost around an object that looks like a form."""

SCALAR = 250
ITEM = 300
"""What a number costs, and a scalar in a flat array, as far as that matters."""

DEFINITION = 150
"""What a shared value or a shape costs beside its content."""

REFERENCE = 700
"""`{"$ref":` and its end, a number of two digits."""


def key(name: str) -> int:
    """Return about what a key costs, or a column's name, with its separator."""
    return SEPARATOR + 60 + 60 * name.count("_") + 7 * len(name)


def exact(value: Any) -> int:
    """Return the cost of a text or flat array that occurs more than once."""
    return hundredths(value if type(value) is str else repr(value)) + SEPARATOR
