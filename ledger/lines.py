r"""What a line is: it ends with `\n`, `\r\n` or `\r` and nothing else (docs/format.md, "Lines").

Python's tokenizer, editors and tracebacks count the same way; `str.splitlines` does not, it also
cuts at form feeds and U+2028.
"""

from __future__ import annotations

import re

_END = re.compile(r"\r\n?")


def unify(text: str) -> str:
    r"""Return a text with `\n` as its only line end."""
    return _END.sub("\n", text) if "\r" in text else text


def split_lines(text: str) -> list[str]:
    """Return the lines without their ends; an end at the very end starts no new line."""
    return unify(text).removesuffix("\n").split("\n") if text else []
