"""Whatever the arguments are: evidence or a refusal, within the limits, and nothing is written."""

from __future__ import annotations

import contextlib
import re
import time
from unittest import mock

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.canonical import from_bytes, to_bytes
from ledger.errors import CanonicalError
from phases.investigation.actions import ACTIONS, Evidence, Refusal, perform
from phases.investigation.actions.base import HARD_CHARACTERS, Refused
from phases.investigation.actions.schema import check
from phases.investigation.actions.search_code import compile_pattern, search
from phases.investigation.lines import Text
from phases.investigation.patterns import (
    MAX_PROGRAM,
    Pattern,
    PatternRefused,
    Work,
    WorkDone,
    _pieces,
    glob_matches,
)

KINDS = {"unknown_action", "arguments", "outside_snapshot", "not_read_only", "limit"}
NASTY = [
    "", "..", "../../etc/passwd", "/etc/passwd", "\0", "a\0b", "\ud800", "\U0010ffff", "%s%n",
    "*" * 300, "[" * 300, "**/" * 90, "(a*)*b", "(a|a)*$", "(" * 200, "a{1000}", "\\", "S2", "t",
    "a.py", "select * from t", "'; drop table t; --", "2024-01-01", "\u202e", "\n", "{0}", "-1",
    "select a from t; select 1", "pragma foreign_keys", "select * from t where b like '%%%'",
]  # fmt: skip
PIECES = _pieces
FILES = {
    "a.py": "def total(items):\n    return sum(items)\n",
    "long.js": "a" * 30_000 + "\n" + "b(" * 10_000,
    "odd.txt": "\x0c\x85\u2028 \u202e \ufeff\r\n\n\n",
    "binary.bin": b"\0\1",
    "empty.py": "",
}


@pytest.fixture(scope="module")
def snapshot(make, sql):
    data = sql(
        "create table t(a integer primary key, b text, c blob)",
        "insert into t values (1, 'x', x'00'), (2, 'y ', null), (3, printf('%5000s', 'z'), 1.5)",
    )
    with make(FILES, {"app.log": "2024-01-01 00:00:00 start\n" * 50}, {"t.db": data}) as made:
        yield made


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.sampled_from(NASTY),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=5,
)  # fmt: skip


def plausible(part):
    """Values of the right type for one argument, and beyond its bounds."""
    if part["type"] == "integer":
        return st.integers(part["minimum"] - 1, part["maximum"] + 1) | st.integers(1, 60)
    if part["type"] == "boolean":
        return st.booleans()
    if "enum" in part:
        return st.sampled_from(part["enum"])
    return st.sampled_from(NASTY) | st.text(max_size=30) | st.sampled_from(list(FILES))


def arguments_of(action):
    properties = {
        name: st.one_of(plausible(part), plausible(part), plausible(part), anything)
        for name, part in action.arguments["properties"].items()
    }
    required = {name: properties.pop(name) for name in action.arguments["required"]}
    return st.fixed_dictionaries(required, optional=properties)


calls = st.one_of(
    *(st.tuples(st.just(name), arguments_of(action)) for name, action in ACTIONS.items()),
    st.tuples(st.sampled_from([*ACTIONS, "other"]) | st.text(), anything),
)


@given(call=calls)
def test_any_call_gives_evidence_or_a_refusal_within_the_limits(snapshot, call):
    found = perform(snapshot, *call)
    if isinstance(found, Refusal):
        assert found.kind in KINDS
        assert found.problems
        to_bytes([problem.model_dump() for problem in found.problems])
        return
    assert isinstance(found, Evidence)
    data = to_bytes(found.document)
    assert from_bytes(data) == found.document
    assert found.characters <= HARD_CHARACTERS
    assert found.complete == (found.document["cut_off"] is None)
    assert found.found == ("negative" not in found.document)
    for block in found.document["result"].get("blocks", ()):
        assert_quoted_exactly(snapshot, block)


def assert_quoted_exactly(snapshot, block):
    item = (
        snapshot.files[block["path"]] if "path" in block else snapshot.documents[block["artifact"]]
    )
    lines = snapshot.text(item).lines
    first = block["first"]
    if "column" in block:
        start = block["column"] - 1
        line = lines[first - 1]
        assert [line[start : start + len(block["lines"][0])]] == block["lines"]
        assert block["characters"] == len(line)
    else:
        assert lines[first - 1 : first - 1 + len(block["lines"])] == block["lines"]


words = st.sampled_from(
    [
        "select",
        "from",
        "where",
        "t",
        "a",
        "b",
        "c",
        ",",
        "*",
        "(",
        ")",
        "union",
        "all",
        "with",
        "recursive",
        "as",
        "n",
        "1",
        "'x'",
        "max",
        "count",
        "group",
        "by",
        "order",
        "limit",
        "like",
        "||",
        "pragma",
        "attach",
        "delete",
        "insert",
        "into",
        "values",
        "x'00'",
        "null",
        "join",
        "on",
        "case",
        "end",
        "in",
        "exists",
        "printf",
        "replace",
        "hex",
        "instr",
        "randomblob",
        "date",
        "now",
        "json_each",
        "sqlite_master",
        "pragma_table_info",
        "--",
        "/*",
        "*/",
        ";",
        "%",
        "+",
        '"',
        "`",
        "[",
        "]",
    ]
)


@given(tokens=st.lists(words, max_size=25))
def test_any_statement_gives_evidence_or_a_refusal(snapshot, tokens):
    found = perform(snapshot, "query_database", {"sql": "select " + " ".join(tokens)})
    assert isinstance(found, Evidence) or found.kind in KINDS


pieces = st.sampled_from(
    ["a", "b", ".", "*", "+", "?", "(", ")", "|", "[", "]", "^", "$", "{2}", "{1000}", "\\w", "\\b",
     "\\1", "(?=", "(?i)", "\\p{L}", "\\n", "[^a]", "(a*)*", "(?P<x>a)", "\\A", "\\z", "\\C"]
)  # fmt: skip


@given(parts=st.lists(pieces, max_size=12))
def test_any_expression_is_searched_or_refused(snapshot, parts):
    found = perform(snapshot, "search_code", {"query": "".join(parts) or "a", "mode": "regex"})
    assert isinstance(found, Evidence) or found.kind == "arguments"


@given(pattern=st.text("*?[]!^-/ab.\\", max_size=30), path=st.text("ab/.", min_size=1, max_size=20))
def test_any_glob_matches_or_is_refused(pattern, path):
    with contextlib.suppress(PatternRefused):
        assert glob_matches(pattern, path) in (True, False)


@pytest.mark.parametrize(
    "expression",
    ["(a*)*b", "(a|aa)+$", "(x+x+)+y", "(.*)(.*)(.*)(.*)c", "(a|b)*a(a|b){100}c", "a.*c|a",
     "(?:a?){200}a{200}b"],
)  # fmt: skip
def test_catastrophic_expressions_are_linear(make, expression):
    snapshot = make({"a.js": "ab" * 50_000 + "\n" + "a" * 100_000 + "\n"})
    start = time.process_time()
    found = search(snapshot, snapshot.readable_files, compile_pattern(expression, "regex", False))
    assert time.process_time() - start < 10
    assert len(found.hits) <= 2


def test_a_huge_expression_is_refused_before_it_runs():
    with pytest.raises(PatternRefused):
        Pattern("(a|b){1000}")
    with pytest.raises(Refused):
        compile_pattern(r"\pL{500}", "regex", False)


def test_the_work_of_a_search_has_an_end():
    pattern = Pattern("(a|b){300}c")
    assert pattern.instructions <= MAX_PROGRAM
    text = Text("ab" * 100_000)
    with pytest.raises(WorkDone, match="work"):
        list(pattern.matches(text, Work(1_000_000)))
    assert list(Pattern("needle", literal=True).matches(text, Work(1_000_000))) == []


def test_the_clock_is_the_last_resort(monkeypatch):
    monkeypatch.setattr("phases.investigation.patterns.SECONDS", -1.0)
    with pytest.raises(WorkDone, match="seconds"):
        list(Pattern("x").matches(Text("a"), Work()))


def test_a_search_that_stops_early_says_so(make, monkeypatch):
    monkeypatch.setattr("phases.investigation.patterns.WORK", 1000)
    snapshot = make({"a.py": "x\n", "b.py": "y" * 5000}, {"app.log": "z" * 5000})
    for name in ("search_code", "search_log"):
        found = perform(snapshot, name, {"query": "nothing"})
        assert not found.complete
        assert found.document["negative"]["complete"] is False
        assert found.document["cut_off"] == {"reason": "work", "limit": 1000}


@given(
    lines=st.lists(st.text("ab ", max_size=6), max_size=30),
    size=st.integers(1, 40),
    pattern=st.sampled_from(["a", "^a", "b$", "^$", "a*", "ab|ba", r"\s", "^.*$", "a.*b"]),
)
def test_pieces_change_no_match(lines, size, pattern):
    text = Text("\n".join(lines))
    wanted = [
        (number, found.start() + 1)
        for number, line in enumerate(text.lines, 1)
        if (found := re.search(pattern, line))
    ]
    with mock.patch("phases.investigation.patterns._pieces", lambda data, _: PIECES(data, size)):
        assert list(Pattern(pattern).matches(text, Work())) == wanted


def test_many_hits_are_counted_up_to_a_bound(make):
    snapshot = make({"a.py": "x\n" * 20_000})
    document = perform(snapshot, "search_code", {"query": "x", "limit": 5}).document
    assert document["page"]["total_at_least"] == 5000
    assert document["cut_off"]["reason"] == "hits"


LOG_SCHEMA = ACTIONS["search_log"].arguments
LIBRARY = jsonschema.Draft202012Validator(LOG_SCHEMA)


@given(value=anything | arguments_of(ACTIONS["search_log"]))
def test_the_validator_agrees_with_the_library(value):
    """It is stricter in two ways: 1.0 is no integer, and text must be encodable."""
    try:
        data = to_bytes(value)
    except CanonicalError:
        assert check(value, LOG_SCHEMA)
        return
    whole = isinstance(value, dict) and any(isinstance(item, float) for item in value.values())
    stricter = whole or b"\\ud" in data
    ours = not check(value, LOG_SCHEMA)
    assert ours == LIBRARY.is_valid(value) or (stricter and not ours)
