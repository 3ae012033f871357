"""Views named for the promise that each would break: `FIXTURES[promise] -> view`."""

from __future__ import annotations

from typing import Any

SHA = "sha256:a9bed43f88a87438cbbf667d225bff849d33ac6919532844457b470fa0290d7e"
LONG = "a sentence that is long enough to be worth a definition of its own, and then some"


def _lines(*numbers: Any, **more: Any) -> list[Any]:
    return [{**more, "line": n, "text": f"    call({i})"} for i, n in enumerate(numbers)]


def _negative(query: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"E{len(query)}",
        "found": False,
        "complete": True,
        "negative": {
            "query": {"text": query},
            "scope": {"source_files": 20, "with_text": 20},
            "filter": {"glob": "", "role": "any"},
            "covered": {"files": 20},
            "complete": True,
            "snapshot": SHA,
        },
        **more,
    }


def _page(offset: int, **more: Any) -> dict[str, Any]:
    return {"page": {"offset": offset, "limit": 40, "returned": 40, "total": 97}, **more}


FIXTURES: dict[str, Any] = {
    "missing is not null": [{"a": 1, "b": None}, {"a": 2}, {"a": 3, "b": None}],
    "missing in the first row": [{"a": 1}, {"a": 2, "b": None}, {"a": 3, "b": 4}],
    "null in every row": [{"a": None, "b": n} for n in range(9)],
    "null is not false nor zero nor empty": [{"v": v} for v in (None, False, 0, "", [], {}, 0.0)],
    "true is not one": [{"v": True}, {"v": 1}, {"v": 1.0}, {"v": True}, {"v": 1}, {"v": 1.0}],
    "true and one in flat lists": [[True, 0], [1, False], [1.0, 0.0], [True, 0], [1, False]],
    "a column of one and true": [{"v": 1, "w": n} for n in range(5)] + [{"v": True, "w": 5}],
    "common true, common one": [[{"v": True}] * 4, [{"v": 1}] * 4, [{"v": 1.0}] * 4],
    "floats that are whole": [{"amount": 924.0, "n": 924} for _ in range(6)],
    "minus zero": [0.0, -0.0, 0, [0.0], [-0.0], [0], {"v": -0.0}, {"v": 0.0}, {"v": -0.0}],
    "shortest floats": [0.1, 1e22, 1e-7, 5e-324, 1.7976931348623157e308, 123456789.123],
    "integers of any size": [2**53 + 1, 2**64, -(2**63), 10**300, -(10**4299)],
    "the same big integer often": [{"n": 10**60, "m": i} for i in range(8)],
    "order of members": [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 2}, {"b": 2, "a": 1}],
    "order of members below": [{"v": {"x": 1, "y": 2}}, {"v": {"y": 2, "x": 1}}] * 3,
    "order of elements": [{"id": n, "v": "x"} for n in (5, 3, 9, 1, 1, 7)],
    "common keys between others": [{"a": n, "c": LONG, "b": n, "d": SHA, "e": n} for n in range(7)],
    "lone surrogates": ["\ud800", "\udfff", "a\udc00b", {"\ud800": "\ud800"}] * 3,
    "a lone surrogate often": [{"text": "broken \udcff byte " * 6, "n": n} for n in range(5)],
    "control characters": ["\x00", "\x1f", "\x7f", "\u2028", "\ufeff", "\r\n", "\t"] * 2,
    "no normalisation": ["\u00e9", "e\u0301", "\u212b", "\u00c5"] * 2,
    "astral characters": [{"name": "𝔘𝔫𝔦" * 20, "n": n} for n in range(4)],
    "the empty view": {},
    "an empty list": [],
    "a scalar": "only a text",
    "null alone": None,
    "empty keys": [{"": n, "a": {"": n}} for n in range(5)],
    "empty objects in a column": [{"filter": {}, "n": n} for n in range(6)],
    "empty and filled objects in a column": [{"filter": {}}, {"filter": {"a": 1}}] * 4,
    "objects and nulls in a column": [{"p": {"offset": 0}}, {"p": None}, {"p": {"offset": 1}}] * 2,
    "lists, objects, scalars mixed": [[1], {"a": 1}, 2, {"a": 3}, [4], {"a": 5}, "x", {"a": 6}],
    "lists of lists": [[[1, 2], [1, 2]], [[1, 2], [1, 2]], [[[]]], [[[]]]],
    "a list inside a table": [{"a": 1, "b": 2}, ["x"], {"a": 3, "b": 4}, [], {"a": 5, "b": 6}],
    "rows of one object": [[{"path": SHA, "first": n, "lines": ["x"]}] for n in range(6)],
    "consecutive lines": _lines(*range(1, 35), path="a.py", provenance={"digest": SHA}),
    "gaps between lines": _lines(1, 2, 3, 10, 11, 40, 41, 42, path="a.py"),
    "duplicate line numbers": _lines(1, 1, 2, 2, 2, 3, 1, 1, path="a.py"),
    "lines backwards": _lines(9, 8, 7, 6, 5, path="a.py"),
    "line numbers missing": [*_lines(1, 2, 3), {"text": "x"}, {"text": "y"}, *_lines(4, 5)],
    "line numbers null": _lines(1, 2, None, None, 3, 4, path="a.py"),
    "line numbers true": _lines(1, 2, True, 3, 1.0, 2.0, path="a.py"),
    "huge line numbers": _lines(*range(2**70, 2**70 + 12), path="a.py"),
    "negative line numbers": _lines(-2, -1, 0, 1, 2, path="a.py"),
    "lines of two files": [*_lines(1, 2, 3, path="a.py"), *_lines(4, 5, 6, path="b.py")],
    "lines with line feeds": [{"line": n, "text": f"a\nb{n}\r\n"} for n in range(12)],
    "lines that are no text": [{"line": n, "text": t} for n, t in enumerate(["x", None, 3, "y"])],
    "lines of other lists": [{"line": n, "text": "$ref"} for n in range(30)],
    "exactly ten lines": _lines(*range(10), path="a.py"),
    "eleven lines": _lines(*range(11), path="a.py"),
    "long lines that repeat": [{"line": n, "text": LONG * 3} for n in range(25)],
    "text before the number": [{"text": f"x{n}", "line": n} for n in range(12)],
    "database column names": {
        "columns": ["id", "$ref", "shapes", "", "Straße", "id "],
        "rows": [
            {"id": n, "$ref": n, "shapes": [n], "": n, "Straße": "x", "id ": 0} for n in range(4)
        ],
    },
    "a column named like a form": [{"$record": [0, [n]], "other": n} for n in range(5)],
    "one column, named like a form": [{"$ref": n} for n in range(5)],
    "database values like references": [{"v": '{"$ref":0}', "w": "$1", "n": n} for n in range(6)],
    "database values like labels": [{"v": "P1", "w": "M:" + "0f" * 16, "n": n} for n in range(6)],
    "database values like envelopes": [
        {"v": '{"$consolidated":1,"data":1}', "n": n} for n in range(6)
    ],
    "rows that are lists": {"columns": ["a", "b"], "rows": [[n, LONG, None] for n in range(8)]},
    "qualified negatives": [_negative("alpha"), _negative("beta2"), _negative("gamma33")],
    "negatives beside hits": [
        _negative("alpha"),
        {"id": "E9", "found": True, "complete": False, "hits": [{"line": 3, "column": 1}]},
        _negative("gamma33", found=True),
    ],
    "filtering": [
        {"where": {"op": op, "value": v}} for op in "=<" for v in (None, 0, "", False, [])
    ],
    "paging": [_page(0), _page(40), _page(80, last=True), _page(80, last=None), _page(80)],
    "snapshots": [{"snapshot": SHA, "digest": SHA[:-1] + d, "n": d} for d in "0123456789"],
    "snapshots that differ in one digit": [{"s": SHA[:-1] + "e"}, {"s": SHA}] * 3,
    "provenance in every object": [
        {
            "path": f"{n % 3}.py",
            "provenance": {"artifact": "S2", "digest": SHA, "path": f"{n % 3}.py"},
        }
        for n in range(20)
    ],
    "reserved keys alone": [{k: 1} for k in ("$ref", "$record", "$table", "$lines", "$lit")],
    "reserved keys with company": [
        {"$ref": 0, "x": 1},
        {"x": 1, "$ref": 0},
        {"$lit": {}, "$ref": 1},
    ],
    "reserved keys nested": {"$lit": {"$lit": {"$ref": {"$table": [[], []]}}}},
    "a reserved key with a good reference": [{"$ref": 0}, LONG, LONG, LONG, {"$ref": [LONG]}],
    "a reserved key in a common value": [{"v": {"$ref": 0}, "n": n} for n in range(6)],
    "a reserved key in a nested column": [{"v": {"$ref": n}, "n": n} for n in range(6)],
    "a reserved key in a shape": [
        {"a": {"$lit": n}, "b": [{"a": {"$lit": n}, "b": []}]} for n in range(5)
    ],
    "the look-alike envelope": {"$consolidated": 1, "shared": [LONG], "data": [{"$ref": 0}]},
    "a look-alike of another version": {"$consolidated": 2, "data": None},
    "a look-alike with company": {"a": 1, "$consolidated": "x"},
    "a look-alike that is literal": {
        "$consolidated": 1,
        "literal": {"$consolidated": 1, "literal": 0},
    },
    "a look-alike that repeats much": {
        "$consolidated": 1,
        "data": [{"text": LONG, "n": n} for n in range(30)],
    },
    "a look-alike inside": {
        "view": {"$consolidated": 1, "data": 1},
        "list": [{"$consolidated": 1}],
    },
    "members named like the envelope's": {"shapes": [1], "shared": [2], "data": 3, "literal": 4},
    "the view's own shared definitions": {
        "shared": {"P1": {"digest": SHA}},
        "e": [{"provenance": "P1"}] * 9,
    },
    "keys that all differ": [{f"k{n}": n, f"m{n}": LONG} for n in range(20)],
    "many key sets": [dict.fromkeys("abcdefg"[: 1 + n % 7], n) for n in range(40)],
    "deep objects": None,
    "deep lists": None,
    "deep rows": None,
    "shared inside shared": [{"a": [LONG, {"b": [LONG, SHA]}]}, {"b": [LONG, SHA]}, LONG] * 4,
    "a value and its parts": [[LONG, SHA, 1], [LONG, SHA, 1], {"v": [LONG, SHA, 1]}, LONG, SHA],
}


def _deep() -> None:
    objects: Any = LONG
    lists: Any = LONG
    rows: Any = LONG
    for _ in range(199):
        objects, lists = {"a": objects}, [lists]
    for _ in range(60):
        rows = [{"k": rows, "l": SHA}, {"k": 1, "l": SHA}]
    FIXTURES.update({"deep objects": objects, "deep lists": lists, "deep rows": rows})


_deep()
