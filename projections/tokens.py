r"""Estimated tokens of a text: built in, dependency-free, the same on every machine.

Encoders choose by it, so it must never depend on an optional tokenizer. The estimate is a sum over
what can be counted at the speed of `bytes.count`: Gemma 3 spends one token on each digit, about one
on each run of letters or punctuation, more on long ones, and merges what JSON repeats (`","`). The
weights were fitted on phase views, plain and consolidated, of seven published packages and checked
on three cases of our own that were not fitted: within 3.2 % on each; fitted on all, within 2.5 %.
Characters divided by four undercount such texts by 27 to 44 %.
"""

from __future__ import annotations

ESTIMATOR = "estimate_v1"

_LEADS = bytes(ord("w") if code >= 0xC0 else 0 for code in range(256))
"""Marks the first byte of each non-ASCII character: a token of its own."""


def _table(name: str) -> bytes:
    """Return a table for `bytes.translate` that maps every character to its class."""
    pick = {"classes": _class, "letters": _letter, "marks": _mark}[name]
    return bytes(ord(pick(chr(code)) if code < 128 else "w") for code in range(256))


def _class(character: str) -> str:
    if character.isalpha():
        return "A"
    if character.isdigit():
        return "0"
    if character in " \n\r\t":
        return " "
    return character if character in '\\_",:{}[]' or not character.isprintable() else "."


def _letter(character: str) -> str:
    return "a" if character.isalpha() else " "


def _mark(character: str) -> str:
    return " " if character.isalnum() or character <= " " else "."


_CLASSES, _LETTERS, _MARKS = map(_table, ("classes", "letters", "marks"))

_IN_TEXT = ((b"$", 100), (b"],[", 116), (b"\\n", 119), (b'\\"', 42), (b"},", 76), (b'","', 67))
_IN_CLASSES = ((b"0", 100), (b" 0", 100), (b" ", 18), (b"0A", 58), (b".A", 30), (b"...", 135))
_IN_LETTERS = ((b" a", 62), (b"aaaaaa", 43))
_IN_MARKS = ((b" .", 95), (b"....", 70))


def estimated_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text."""
    return (hundredths(text) + 50) // 100


def hundredths(text: str | bytes) -> int:
    """Return the estimate in hundredths of a token, of a text or its UTF-8 bytes.

    Unlike the rounded one it can be added up.
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    total = 0 if data.isascii() else 100 * data.translate(_LEADS).count(b"w")
    data = b" " + data
    for counted, patterns in (
        (data, _IN_TEXT),
        (data.translate(_CLASSES), _IN_CLASSES),
        (data.translate(_LETTERS), _IN_LETTERS),
        (data.translate(_MARKS), _IN_MARKS),
    ):
        for pattern, weight in patterns:
            total += weight * counted.count(pattern)
    return total
