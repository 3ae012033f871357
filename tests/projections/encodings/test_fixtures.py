from __future__ import annotations

from typing import Any

import pytest

from ledger.canonical import same, to_bytes
from projections.encodings import consolidated_v1
from tests.projections.encodings import oracle
from tests.projections.encodings.fixtures import FIXTURES, LONG
from tests.projections.encodings.forms import characters, cheap_forms, envelope, sent

RESERVED = ["$ref", "$record", "$table", "$lines", "$lit"]


def test_there_are_enough_fixtures() -> None:
    assert len(FIXTURES) >= 60


@pytest.mark.parametrize("promise", FIXTURES)
def test_a_view_comes_back_exactly(promise: str) -> None:
    view = FIXTURES[promise]
    encoded = consolidated_v1.encode(view)
    assert same(consolidated_v1.restore(sent(encoded.content)), view)


@pytest.mark.parametrize("promise", [p for p in FIXTURES if not p.startswith("deep")])
def test_every_form_of_a_view_comes_back_exactly(promise: str) -> None:
    view = FIXTURES[promise]
    assert same(consolidated_v1.restore(sent(envelope(view))), view)
    with cheap_forms():
        content = sent(envelope(view))
    assert same(consolidated_v1.restore(content), view)
    assert same(oracle.decode(content), view)


@pytest.mark.parametrize("promise", FIXTURES)
def test_a_view_gets_no_longer(promise: str) -> None:
    view = FIXTURES[promise]
    looks_alike = isinstance(view, dict) and "$consolidated" in view
    longest = characters(view) + (40 if looks_alike else 0)
    assert characters(consolidated_v1.encode(view).content) <= longest


def evidence(marker: Any) -> dict[str, Any]:
    """Return a view that consolidates well, with `marker` somewhere inside."""
    items = [{"id": f"E{n}", "snapshot": LONG, "found": True, "n": n} for n in range(40)]
    return {"evidence": items, "odd": marker}


@pytest.mark.parametrize("key", RESERVED)
@pytest.mark.parametrize("inner", [0, [0, []], {"x": 1}, [{"$ref": 0}]])
def test_a_colliding_node_costs_ten_characters_and_disables_nothing(key: str, inner: Any) -> None:
    odd, even = evidence([{key: inner}]), evidence([{key.replace("$", "_"): inner}])
    collisions = to_bytes({key: inner}).count(b"$")
    grown = consolidated_v1.encode(odd), consolidated_v1.encode(even)
    assert grown[0].form == grown[1].form == "consolidated"
    inner_collisions = 10 * (collisions - 1)
    assert characters(grown[0].content) - characters(grown[1].content) <= 10 + inner_collisions


def test_a_look_alike_is_escaped_as_a_literal() -> None:
    view = {"$consolidated": 1, "shared": ["x"], "data": [{"$ref": 0}]}
    encoded = consolidated_v1.encode(view)
    assert encoded.form == "literal"
    assert encoded.content == {"$consolidated": 1, "literal": view}
    assert characters(encoded.content) == characters(view) + 30


def test_a_look_alike_that_repeats_much_is_consolidated_all_the_same() -> None:
    view = FIXTURES["a look-alike that repeats much"]
    assert consolidated_v1.encode(view).form == "consolidated"


def test_too_deep_an_envelope_leaves_the_view_plain() -> None:
    rows: Any = [{"k": n, "l": LONG} for n in range(200)]
    for _ in range(198):
        rows = [rows]
    encoded = consolidated_v1.encode(rows)
    assert encoded.form == "plain"
    assert "deep" in encoded.reason
