from __future__ import annotations

import time
from typing import Any

import pytest

from ledger.canonical import same
from ledger.errors import LedgerError
from projections.encodings.consolidated_v1 import ConsolidatedError, restore
from tests.projections.encodings import oracle
from tests.projections.encodings.mutations import mutants


def document(data: Any, **definitions: Any) -> dict[str, Any]:
    return {"$consolidated": 1, **definitions, "data": data}


def ref(number: Any) -> dict[str, Any]:
    return {"$ref": number}


def test_the_error_is_one_of_the_ledgers() -> None:
    assert issubclass(ConsolidatedError, LedgerError)


REFUSED = {
    "no data": {"$consolidated": 1},
    "no known version": {"$consolidated": 2, "data": 0},
    "a version that is true": {"$consolidated": True, "data": 0},
    "a version that is 1.0": {"$consolidated": 1.0, "data": 0},
    "an unknown member": {"$consolidated": 1, "data": 0, "more": 0},
    "data and a literal": {"$consolidated": 1, "data": 0, "literal": 0},
    "shared that is no list": document(0, shared={}),
    "shapes that are no list": document(0, shapes="ab"),
    "shapes that are null": document(0, shapes=None),
    "a reference to nothing": document(ref(0)),
    "a reference out of range": document(ref(1), shared=["x"]),
    "a negative reference": document(ref(-1), shared=["x"]),
    "a reference that is true": document([ref(True), ref(0)], shared=["x", "y"]),
    "a reference that is 0.0": document(ref(0.0), shared=["x"]),
    "a reference that is text": document(ref("0"), shared=["x"]),
    "a reference to itself": document(ref(0), shared=[ref(0)]),
    "a cycle": document(ref(0), shared=[[ref(1)], [ref(0)]]),
    "a forward reference": document([ref(0), ref(1)], shared=[[ref(1)], "x"]),
    "an unused shared value": document(0, shared=["x"]),
    "a shared value used by an unused one only": document(0, shared=["x", ref(0)]),
    "an unused shape": document(0, shapes=[["a"]]),
    "a shape out of range": document({"$record": [1, [0]]}, shapes=[["a"]]),
    "a shape that uses a shape": document(
        {"$record": [0, []]}, shapes=[[{"a": {"$record": [1, [0]]}}], ["b"]]
    ),
    "a shape that uses itself": document(
        {"$record": [0, []]}, shapes=[[{"a": {"$record": [0, []]}}]]
    ),
    "a shape that refers forward": document(
        [ref(0), ref(1)], shapes=[[{"a": ref(1)}]], shared=[{"$record": [0, []]}, "x"]
    ),
    "a shape that is an object": document({"$record": [0, []]}, shapes=[{"a": 1}]),
    "a record without values": document({"$record": [0]}, shapes=[["a"]]),
    "a record with columns of its own": document({"$record": [["a"], [1]]}),
    "a record with three parts": document({"$record": [0, [1], 2]}, shapes=[["a"]]),
    "a short record": document({"$record": [0, [1]]}, shapes=[["a", "b"]]),
    "a long record": document({"$record": [0, [1, 2, 3]]}, shapes=[["a", "b"]]),
    "a record whose values are an object": document({"$record": [0, {"a": 1}]}, shapes=[["a"]]),
    "a short row": document({"$table": [["a", "b"], [[1, 2], [3]]]}),
    "a long row": document({"$table": [["a", "b"], [[1, 2], [3, 4, 5]]]}),
    "a table without rows": document({"$table": [["a"]]}),
    "rows that are an object": document({"$table": [["a"], {}]}),
    "columns that are an object": document({"$table": [{"a": 1}, []]}),
    "columns that are null": document({"$table": [None, []]}),
    "a column that is a number": document({"$table": [["a", 1], []]}),
    "a column that is an empty list": document({"$table": [["a", []], []]}),
    "a nested column without a name": document({"$table": [[[1, "a"]], []]}),
    "common values without one": document({"$table": [[{}], []]}),
    "two columns of one name": document({"$table": [["a", "a"], [[1, 2]]]}),
    "a column named like a common value": document({"$table": [["a", {"a": 1}], [[1]]]}),
    "lines without a text column": document({"$lines": [["line"], [[1]]]}),
    "a block without text": document({"$lines": [["line", "text"], [[1]]]}),
    "a block of eleven lines": document({"$lines": [["line", "text"], [[1, *"abcdefghijk"]]]}),
    "a block without a number": document({"$lines": [["line", "text"], [["1", "a"]]]}),
    "a block with a number that is true": document({"$lines": [["line", "text"], [[True, "a"]]]}),
    "a block that is an object": document({"$lines": [["line", "text"], [{"a": 1}]]}),
    "a literal text": document({"$lit": "x"}),
    "a literal number": document({"$lit": 1}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_breaks_the_grammar_is_refused(what: str) -> None:
    with pytest.raises(ConsolidatedError):
        restore(REFUSED[what])
    if "forward" not in what and "cycle" not in what:
        with pytest.raises(oracle.Refused):
            oracle.decode(REFUSED[what])


def nested(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


BOMBS = {
    "a million references to one long text": document([ref(0)] * 1_000_000, shared=["x" * 100_000]),
    "doubling thirty times": document(
        ref(30), shared=["x" * 100, *([ref(n), ref(n)] for n in range(30))]
    ),
    "doubling three hundred times": document(
        ref(300), shared=["x", *([ref(n), ref(n)] for n in range(300))]
    ),
    "doubling the empty": document(ref(60), shared=[[], *([ref(n), ref(n)] for n in range(60))]),
    "a common value in many rows": document({"$table": [[{"a": "x" * 100_000}], [[]] * 1_000_000]}),
    "many common keys in many rows": document(
        {"$table": [[{f"k{n}": 0 for n in range(100_000)}], [[]] * 100_000]}
    ),
    "a long column name in many rows": document({"$table": [["k" * 100_000], [[0]] * 1_000_000]}),
    "a long text before many lines": document(
        {"$lines": [["path", "line", "text"], [["x" * 10_000, 1, *"abcdefghij"]] * 100_000]}
    ),
    "a long reference before many lines": document(
        {"$lines": [["path", "line", "text"], [[ref(0), 1, *"abcdefghij"]] * 100_000]},
        shared=["x" * 100_000],
    ),
    "a chain of references that nest": document(
        ref(100_000), shared=[[], *([ref(n)] for n in range(100_000))]
    ),
    "lists too deep": document(nested(100_000)),
    "objects too deep by reference": document(
        [ref(1)] * 3, shared=[nested(195), {"a": [{"b": [[[[[nested(40), ref(0)]]]]]}]}]
    ),
    "an integer too long": document([ref(0)], shared=[[10**5000]]),
}


def _deep_forms() -> None:
    literal: Any = {}
    columns: list[Any] = ["x"]
    for _ in range(50_000):
        literal = {"$lit": {"$ref": literal}}
        columns = [["a", *columns]]
    BOMBS["literals too deep"] = document(literal)
    BOMBS["nested columns too deep"] = document({"$table": [columns, [[1]]]})


_deep_forms()


@pytest.mark.parametrize("what", BOMBS)
def test_what_would_expand_beyond_its_bounds_is_refused_quickly(what: str) -> None:
    began = time.process_time()
    with pytest.raises(ConsolidatedError):
        restore(BOMBS[what])
    assert time.process_time() - began < 1


def test_a_long_chain_of_references_that_does_not_nest_is_read() -> None:
    chain = document(ref(99_999), shared=["x", *(ref(n) for n in range(99_999))])
    assert restore(chain) == "x"


def test_the_bound_can_be_set() -> None:
    content = document([ref(0)] * 10, shared=["x" * 100])
    assert restore(content, limit=2_000) == ["x" * 100] * 10
    with pytest.raises(ConsolidatedError, match="500 characters"):
        restore(content, limit=500)


def check_mutants(count: int, seed: int) -> None:
    """Assert that each mutant is refused, or read as the other decoder reads it."""
    read = 0
    for mutant in mutants(count, seed):
        began = time.process_time()
        try:
            value = restore(mutant)
        except ConsolidatedError:
            continue
        finally:
            assert time.process_time() - began < 1
        read += 1
        assert same(value, oracle.decode(mutant)), mutant
    assert read > count // 20  # else the changes would be too coarse to show anything


def test_changed_envelopes_give_the_right_value_or_the_error() -> None:
    check_mutants(2_000, seed=1)


@pytest.mark.slow
def test_fifty_thousand_changed_envelopes_give_the_right_value_or_the_error() -> None:
    check_mutants(50_000, seed=2)
