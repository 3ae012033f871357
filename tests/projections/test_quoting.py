"""Whether a text quotes another one: words, phrases, and what JSON makes of them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.quoting import Fragments, readings, unescaped

LETTERS = "abcxyzABC\u00e4\u00df\u0416\u9d2c\uac00\U0001f426 _-\\\"'\n\t{}[]:,/7"
texts = st.text(LETTERS, max_size=60)


def quotes(text: str, source: str, public: str = "") -> bool:
    """Tell whether a text quotes a source beyond what is public."""
    said = Fragments([text])
    taken = said.common([source])
    return said.meets(taken.without(taken.common([public])))


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("it says kestrel there", "the kestrel"),
        ("KESTREL", "kestrel"),
        ("see kestrelNest", "class KestrelNest:"),
        ("the word kestrel", "kestrel_nest = 1"),
        ("nest of kestrel", "myKestrelNest"),
        ("room 417", "id=417"),
        ("ab7", "key ab7"),
        ("he is on it", "so he is on it now"),
        ("on-it-now", "is on it now"),
        ("a\\nkestrel", "kestrel"),
        ('"{\\"a\\":\\"kestrel\\"}"', "kestrel"),
        ("k\\u00e4uzchen", "käuzchen"),
        ("\\ud83d\\udc26 vogelwart", "\U0001f426 vogelwart"),
        ("\\\\u006bestrel", "kestrel"),
        ("…夜鶯與…", "花園夜鶯與玫瑰"),
    ],
)
def test_a_quotation_is_seen(text: str, source: str) -> None:
    assert quotes(text, source)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("a is on", "a cat is on"),
        ("17", "17"),
        ("if x", "if x"),
        ("buzzard", "kestrel"),
        ("", "kestrel"),
        ("夜鶯", "花園夜鶯與玫瑰"),
    ],
)
def test_what_occurs_everywhere_is_no_quotation(text: str, source: str) -> None:
    assert not quotes(text, source)


def test_what_is_public_gives_nothing_away() -> None:
    assert not quotes("the kestrel", "a kestrel", public="Kestrel")
    assert quotes("a kestrel sat on it", "the kestrel sat on it", public="kestrel sat there on it")
    assert not quotes("kestrel sat on it", "the kestrel sat on it", public="a kestrel sat on it")


@given(texts, texts, texts)
def test_a_text_that_holds_a_word_or_three_of_another_quotes_it(a: str, b: str, c: str) -> None:
    source = Fragments([b])
    assert Fragments([f"{a} {b} {c}"]).meets(source) == bool(source.words or source.phrases)


@given(texts, st.lists(st.booleans(), max_size=3))
def test_json_hides_nothing(text: str, depths: list[bool]) -> None:
    written = text
    for ascii_only in depths:
        written = json.dumps({"k": written}, ensure_ascii=ascii_only)
    source = Fragments([text])
    found = Fragments([written])
    assert source.words <= found.words
    assert source.phrases <= found.phrases


@given(texts)
def test_escapes_are_undone_to_the_end(text: str) -> None:
    written = json.dumps(json.dumps(text))[1:-1]
    assert text in " ".join(unescaped(written)) or "\\" in text


@given(st.lists(texts, max_size=4), st.lists(texts, max_size=4))
def test_what_is_common_is_what_both_have(left: list[str], right: list[str]) -> None:
    a, b = Fragments(left), Fragments(right)
    both = a.common(right)
    assert (both.words, both.phrases) == (a.words & b.words, a.phrases & b.phrases)
    assert a.meets(b) == bool(both.words or both.phrases)
    rest = a.without(b)
    assert rest.words == a.words - b.words
    assert not rest.meets(both)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "latin-1", "cp1252"])
def test_bytes_are_read_in_their_encoding(encoding: str) -> None:
    assert "käuzchen" in "".join(readings("käuzchen".encode(encoding), encoding))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_bytes_of_no_stated_encoding_are_read_in_every_likely_one(encoding: str) -> None:
    data = b"\x00\x05" + "käuzchen".encode(encoding) + b"\xff\x00"
    assert any("käuzchen" in text for text in readings(data))


@pytest.mark.parametrize("encoding", ["none such", "hex", "idna", "rot13"])
def test_an_encoding_that_is_none_hides_nothing(encoding: str) -> None:
    assert "kestrel" in "".join(readings(b"kestrel", encoding))
