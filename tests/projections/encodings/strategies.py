"""JSON values that are hard on an encoding: reserved keys, repeats, near misses of every form."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

RESERVED = ["$ref", "$record", "$table", "$lines", "$lit", "$consolidated"]
KEYS = [
    *RESERVED,
    "shapes",
    "shared",
    "data",
    "literal",
    "id",
    "path",
    "line",
    "text",
    "",
    "é",
    "a",
]
TEXTS = [
    *RESERVED,
    "$1",
    "$12",
    "~",
    "P1",
    "M:00ff",
    "",
    '"}],',
    "sha256:a9bed43f88a87438cbbf667d225bff849d33ac6919532844457b470fa0290d7e",
    "a sentence that is long enough to be worth a definition of its own",
    "line one\nline two",
    "x" * 130,
]
NUMBERS = [0, 1, 2, 0.0, -0.0, 1.0, True, False, None, 10**40, -1, 0.1, 1e22]

keys = st.sampled_from(KEYS) | st.text(max_size=4)
scalars = (
    st.sampled_from(NUMBERS)
    | st.sampled_from(TEXTS)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=5)


nested = st.recursive(scalars, _containers, max_leaves=12)


@st.composite
def rows(draw: st.DrawFn, values: st.SearchStrategy[Any] = nested) -> list[Any]:
    """Objects with the same keys, values from a small pool, now and then another element."""
    names = draw(st.lists(keys, unique=True, min_size=1, max_size=5))
    pool = draw(st.lists(values, min_size=1, max_size=4))
    value = st.sampled_from(pool) | scalars
    row = st.fixed_dictionaries(dict.fromkeys(names, value))
    element = row | row | row | st.sampled_from(pool)
    return draw(st.lists(element, min_size=2, max_size=8))


@st.composite
def source_lines(draw: st.DrawFn) -> list[Any]:
    """Records of one line each: runs, gaps, repeats, steps back, missing and odd numbers."""
    number: Any = draw(st.integers(0, 10**12))
    out: list[Any] = []
    for step in draw(st.lists(st.sampled_from([1, 1, 1, 1, 1, 0, 2, -1, 0.5, None]), max_size=30)):
        text = draw(st.sampled_from(TEXTS) | st.text(max_size=20))
        record: dict[str, Any] = {"path": "a.py", "line": number, "text": text}
        if step is None:
            del record["line"]
        out.append(record)
        number = number + (step or 0)
    return out


@st.composite
def documents(draw: st.DrawFn) -> Any:
    """A view: parts of all kinds, some of them more than once."""
    parts = draw(st.lists(nested | rows() | source_lines(), min_size=1, max_size=4))
    picks = draw(st.lists(st.sampled_from(parts), max_size=6))
    names = draw(st.lists(keys, unique=True, min_size=len(parts), max_size=len(parts)))
    return draw(
        st.sampled_from(
            [
                dict(zip(names, parts, strict=True)),
                [*parts, *picks],
                {"evidence": [*picks, *parts], "shared": parts[0]},
                parts[0],
            ]
        )
    )
