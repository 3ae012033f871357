"""Canonical bytes: what goes in comes out exactly, and what could not is refused."""

from __future__ import annotations

import json
import math
import re
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledger.canonical import MAX_DEPTH, MAX_INTEGER_DIGITS, digest, from_bytes, same, to_bytes
from ledger.errors import CanonicalError
from tests.ledger.making import one_line

JOINING = re.compile("[\ud800-\udbff][\udc00-\udfff]")

any_text = st.text(st.characters())  # lone surrogates included
texts = any_text.filter(lambda text: not JOINING.search(text))
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**400), max_value=10**400)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=20,
)


def exactly(left: Any, right: Any) -> bool:
    """Tell independently of the code under test whether two values are the same JSON value."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(exactly, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(exactly(left[k], right[k]) for k in left)
    return bool(left == right)


@given(values)
@example([1, 1.0, True, -0.0, 0, 0.0, False, None])
@example({"\ud800": "\udfff", "b": "a\udc00\ud800"})
@example([10**4299, -(10**4300 - 1), 5e-324, 1.7976931348623157e308, 1e22, 1e16])
def test_every_value_comes_back_exactly(value: Any) -> None:
    data = to_bytes(value)
    again = from_bytes(data)
    assert exactly(again, value)
    assert to_bytes(again) == data


@given(values)
def test_bytes_are_those_of_the_formula_on_the_format_page(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    surrogates = re.sub("[\ud800-\udfff]", lambda m: f"\\u{ord(m[0]):04x}", text)
    assert to_bytes(value) == surrogates.encode()


@given(values, values)
def test_same_is_equality_of_type_sign_and_order(left: Any, right: Any) -> None:
    assert same(left, left)
    assert same(left, right) == exactly(left, right)


@given(any_text)
@example("\ud83d\ude00")
@example("\udc00\ud800")
@example("\\ud83d\\ude00")
@example("\ud83d\\ude00")
def test_surrogates_come_back_or_are_refused(text: str) -> None:
    if JOINING.search(text):
        with pytest.raises(CanonicalError, match="join"):
            to_bytes([text])
        with pytest.raises(CanonicalError, match="join"):
            to_bytes({text: 1})
    else:
        assert from_bytes(to_bytes([text])) == [text]


@given(st.binary(max_size=60) | values.map(lambda v: json.dumps(v, indent=1).encode()))
@example(b'{"a":1,"a":2}')
@example(b"\xef\xbb\xbf1")
@example(b"-0")
def test_any_bytes_give_a_value_that_is_stable_or_one_typed_error(data: bytes) -> None:
    try:
        value = from_bytes(data)
    except CanonicalError as error:
        one_line(error)
    else:
        assert exactly(from_bytes(to_bytes(value)), value)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, b"null"),
        (1, b"1"),
        (1.0, b"1.0"),
        (True, b"true"),
        (-0.0, b"-0.0"),
        (1e22, b"1e+22"),
        (2**64, b"18446744073709551616"),
        ('é\u2028/\x00\x7f"\\', '"é\u2028/\\u0000\x7f\\"\\\\"'.encode()),
        ("\n\r\t\b\f\x1f", rb'"\n\r\t\b\f\u001f"'),
        ("\ud800", rb'"\ud800"'),
        ("\udfffx", rb'"\udfffx"'),
        ({"b": 1, "a": [(), {}]}, b'{"b":1,"a":[[],{}]}'),
    ],
)
def test_frozen_examples(value: Any, data: bytes) -> None:
    assert to_bytes(value) == data


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        (1, True),
        (0, False),
        (0.0, -0.0),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([1], [True]),
    ],
)
def test_same_differs_from_python_equality(left: Any, right: Any) -> None:
    assert left == right
    assert not same(left, right)


def nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value


def test_depth_200_is_written_and_read_and_201_is_refused() -> None:
    assert MAX_DEPTH == 200
    assert exactly(from_bytes(to_bytes(nested(200))), nested(200))
    with pytest.raises(CanonicalError, match="200"):
        to_bytes(nested(201))
    with pytest.raises(CanonicalError, match="200"):
        from_bytes(json.dumps(nested(201)).encode())


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_hostile_depth_is_refused_without_exhausting_the_stack(opening: bytes) -> None:
    with pytest.raises(CanonicalError, match="nested deeper"):
        from_bytes(opening * 200_000)


def test_a_list_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(CanonicalError):
        to_bytes(value)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({1: "a"}, "key 1"),
        ({None: 1}, "no string"),
        ({True: 1}, "no string"),
        ({"a": {2.5: 1}}, "no string"),
        (math.nan, "not a JSON number"),
        (math.inf, "not a JSON number"),
        ([{"a": -math.inf}], "not a JSON number"),
        pytest.param(10**MAX_INTEGER_DIGITS, "4300 digits", id="long"),
        pytest.param(-(10**MAX_INTEGER_DIGITS), "4300 digits", id="long-negative"),
        (b"bytes", "bytes is not"),
        ({1, 2}, "set is not"),
        (type("Text", (str,), {})("x"), "Text is not"),
        (type("Number", (int,), {})(1), "Number is not"),
        (["\ud83d\ude00"], "join"),
        ({"\ud83d\ude00": 1}, "join"),
    ],
)
def test_what_would_not_come_back_is_not_written(value: Any, says: str) -> None:
    with pytest.raises(CanonicalError, match=says) as caught:
        to_bytes(value)
    one_line(caught.value)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),  # byte order mark
        (b"\xff\xfe1\x00", "not UTF-8"),
        (b'"\xed\xa0\x80"', "not UTF-8"),  # a surrogate in UTF-8 clothing
        (b'{"a":1,"a":1}', "'a' occurs twice"),
        (b'{"a":1,"\\u0061":1}', "'a' occurs twice"),
        (b'[{"x":{"a":1,"b":2,"a":3}}]', "'a' occurs twice"),
        (b"NaN", "not a JSON number"),
        (b"[Infinity]", "not a JSON number"),
        (b"-Infinity", "not a JSON number"),
        (b"1e999", "does not fit"),
        (b"-1e999", "does not fit"),
        pytest.param(b"[" + b"9" * 400 + b".0]", "does not fit", id="long-float"),
        pytest.param(b"9" * (MAX_INTEGER_DIGITS + 1), "4300 digits", id="long-integer"),
        (b"{} x", "not JSON"),
        (b"1 2", "not JSON"),
        (b"[1,]", "not JSON"),
        (b"{'a':1}", "not JSON"),
        (b"{1:2}", "not JSON"),
        (b'"a\nb"', "not JSON"),
        (b"01", "not JSON"),
        (b"\x00", "not JSON"),
        (b'{"a":1', "not JSON"),
    ],
)
def test_what_is_not_one_strict_document_is_not_read(data: bytes, says: str) -> None:
    with pytest.raises(CanonicalError, match=says) as caught:
        from_bytes(data)
    one_line(caught.value)


def test_longest_integers_are_written_and_read() -> None:
    for value in (10**MAX_INTEGER_DIGITS - 1, -(10**MAX_INTEGER_DIGITS) + 1):
        assert from_bytes(to_bytes(value)) == value


def test_a_duplicate_key_among_many_is_found_in_linear_time() -> None:
    keys = ",".join(f'"{n}":0' for n in range(200_000))
    started = time.process_time()
    with pytest.raises(CanonicalError, match="occurs twice"):
        from_bytes(f'{{{keys},"199999":1}}'.encode())
    assert time.process_time() - started < 5


def test_a_message_quotes_a_long_key_in_part_only() -> None:
    key = "k" * 1_000_000
    with pytest.raises(CanonicalError) as caught:
        from_bytes(f'{{"{key}":1,"{key}":2}}'.encode())
    assert len(str(caught.value)) < 300


def test_a_digest_says_how_it_was_made() -> None:
    assert digest(b"") == (
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )
