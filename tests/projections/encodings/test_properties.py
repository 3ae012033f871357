from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given

from ledger.canonical import from_bytes, same, to_bytes
from projections.encodings import consolidated_v1, plain_v1
from projections.tokens import hundredths
from tests.projections.encodings import oracle
from tests.projections.encodings.forms import characters, cheap_forms, envelope, sent
from tests.projections.encodings.strategies import documents

ENCODINGS = [plain_v1, consolidated_v1]


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda module: module.__name__.split(".")[-1])
@given(view=documents())
def test_every_encoding_gives_back_the_exact_value(encoding: Any, view: Any) -> None:
    assert same(encoding.restore(sent(encoding.encode(view).content)), view)


@given(view=documents())
def test_every_form_is_exact_and_read_alike_by_another_decoder(view: Any) -> None:
    assert same(consolidated_v1.restore(sent(envelope(view))), view)
    with cheap_forms():
        content = sent(envelope(view))
    assert same(consolidated_v1.restore(content), view)
    assert same(oracle.decode(content), view)


@given(view=documents())
@example({"$consolidated": 1, "data": [{"$ref": 0}] * 5})
@example({"$consolidated": 2})
def test_what_is_chosen_is_never_larger_and_always_the_same(view: Any) -> None:
    plain = to_bytes(view)
    looks_alike = isinstance(view, dict) and "$consolidated" in view
    encoded = consolidated_v1.encode(view)
    assert characters(encoded.content) <= characters(view) + (40 if looks_alike else 0)
    if not looks_alike:
        assert hundredths(to_bytes(encoded.content)) <= hundredths(plain)
    again = consolidated_v1.encode(from_bytes(plain))
    assert to_bytes(again.content) == to_bytes(encoded.content)
    assert to_bytes(view) == plain
