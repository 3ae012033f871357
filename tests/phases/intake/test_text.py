"""Text comes back byte for byte, whatever it is; no text holds a surrogate."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledger.lines import split_lines
from phases.intake import text

WORDS = st.sampled_from(
    [
        "Größe",
        "Проверка",
        "日本語",
        "naïve",
        "x = 1",
        "\n",
        "\r",
        "\r\n",
        "\0",
        "žluťoučký",
        "\u20ac",
    ]
)
CODECS = st.sampled_from(
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252",
     "cp1251", "koi8_r", "cp932", "euc_jp", "gb18030", "big5", "cp949", "cp1250", "cp437"]
)  # fmt: skip
ENCODED = st.builds(
    lambda words, codec: " ".join(words).encode(codec, "replace"),
    st.lists(WORDS, max_size=30),
    CODECS,
)
ANYTHING = st.one_of(st.binary(max_size=300), ENCODED)


def round_trips(data: bytes, encoding: str) -> bool:
    characters = data.decode(encoding)
    lines = split_lines(characters)
    return (
        characters.encode(encoding) == data
        and not any("\ud800" <= ch <= "\udfff" for ch in characters)
        and text.count_lines(data, encoding) == len(lines)
    )


@given(ANYTHING)
@example(b"\xff\xfe\x00\xd8")
@example(b"\xef\xbb\xbf\xff")
@example(b"\x81\x30\x81\x30")
@example(b"\x1b$B\x81")
def test_prose_round_trips(data: bytes) -> None:
    assert round_trips(data, text.prose_encoding(data))


@given(ANYTHING)
def test_source_round_trips_or_is_binary(data: bytes) -> None:
    encoding = text.source_encoding(data)
    assert encoding is None or round_trips(data, encoding)


@given(st.text(max_size=200))
def test_valid_utf8_is_utf8(characters: str) -> None:
    data = characters.encode("utf-8", "replace")
    if not data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")) and b"\0" not in data:
        assert text.source_encoding(data) == text.prose_encoding(data) == "utf-8"


@pytest.mark.parametrize(
    ("said", "codec"),
    [
        ("Die Prüfung der Größe schlägt für Straßen fehl.\n", "cp1252"),
        ("naïve café señor\n", "latin-1"),
        ("Проверка размера файла и суммы заказа\n", "cp1251"),
        ("Проверка размера файла и суммы заказа\n", "koi8_r"),
        ("これはテストファイルです。日本語のコメントが含まれています。\n", "cp932"),
        ("这是一个测试文件，包含中文注释。函数计算订单总额。\n", "gb18030"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy\n", "cp1250"),
    ],
)
def test_characters_of_common_encodings_are_found(said: str, codec: str) -> None:
    data = (said * 3).encode(codec)
    assert data.decode(text.prose_encoding(data)) == said * 3


def test_detection_looks_at_a_bounded_sample() -> None:
    data = b"a" * 5_000_000 + "Größe".encode("cp1252") + b"a" * 5_000_000
    assert data.decode(text.prose_encoding(data))[5_000_000:5_000_005] == "Größe"
    assert len(text._telling(b"\xe4 " * 100_000)) < 4 * text.SAMPLE
