"""Blocks cover the report, excerpts are few and tell, and both are always the same."""

# ruff: noqa: E501 - tables and scripts read best with one case a line

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phases.intake.excerpts import MAX_EXCERPT_LINES, MAX_EXCERPTS, identifiers, log_excerpts
from phases.intake.observations import MAX_BLOCKS, report_blocks

TRACE = """Traceback (most recent call last):
  File "a.py", line 3, in f
    g()

  File "b.py", line 9, in g
ValueError: no

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "c.py", line 1, in h
KeyError: 'x'
""".replace("    g()\n\n", "    g()\n")

BLOCKS = {
    "a heading goes with its paragraph": ("# T\n\npara\nmore\n\nnext\n", [(1, 4), (6, 6)]),
    "headings in a row": ("# T\n\n## S\ntext\n", [(1, 1), (3, 4)]),
    "an underlined heading": ("T\n===\n\ntext\n\nx\n", [(1, 4), (6, 6)]),
    "a fence is one block": ("a\n\n```py\nx\n\ny\n```\nb\n", [(1, 1), (3, 7), (8, 8)]),
    "a fence of tildes holds backticks": ("~~~\n```\n\nx\n~~~\n", [(1, 5)]),
    "list items are one group": ("- a\n- b\n  c\n\n- d\n\nend\n", [(1, 5), (7, 7)]),
    "a numbered list with code": ("1. a\n\n   code\n2. b\n\nend\n", [(1, 4), (6, 6)]),
    "indented code with blank lines": ("a\n\n    x\n\n    y\n\nb\n", [(1, 1), (3, 5), (7, 7)]),
    "chained tracebacks are one block": (f"it fails\n{TRACE}\nwhy?\n", [(1, 1), (2, 12), (14, 14)]),
    "blank lines only": ("\n \n\t\n", []),
    "a heading at the end": ("a\n\n## end\n", [(1, 1), (3, 3)]),
}  # fmt: skip


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_of_a_report(name: str) -> None:
    text, expected = BLOCKS[name]
    assert report_blocks(text.split("\n")) == expected


LINES = st.sampled_from(
    ["", " ", "text", "# h", "===", "---", "```", "~~~", "- item", "1. item", "    code", "\tcode", "Traceback (most recent call last):",
     '  File "a"', "ValueError: x", "The above exception was the direct cause of the following exception:", "> quote", "| a | b |"]
)  # fmt: skip


@given(st.lists(LINES, max_size=40))
def test_every_line_that_says_something_is_in_one_block(lines: list[str]) -> None:
    blocks = report_blocks(lines)
    seen = [line for first, last in blocks for line in range(first, last + 1)]
    assert seen == sorted(set(seen))
    assert {n for n, line in enumerate(lines, 1) if line.strip()} <= set(seen)
    assert all(lines[first - 1].strip() and lines[last - 1].strip() for first, last in blocks)


def test_a_report_of_many_blocks_is_joined_not_cut() -> None:
    blocks = report_blocks(["a", ""] * 5000)
    assert len(blocks) <= MAX_BLOCKS
    assert blocks[0].first == 1
    assert blocks[-1].last == 9999


def test_identifiers_are_codes_and_symbols_not_words_or_dates() -> None:
    said = "Invoice 2024-00417 (K-1118) of 2024-05-31, 17:48, 1.8.2: `app.db`, open_amount, getTotal, a/b.py, Traceback 84.90"
    assert identifiers(said) == [
        "2024-00417",
        "K-1118",
        "app.db",
        "open_amount",
        "getTotal",
        "a/b.py",
    ]


def log(count: int, **at: str) -> bytes:
    lines = [f"2025-01-01 00:00:{n % 60:02d} INFO all fine, item {n}" for n in range(count)]
    for place, line in at.items():
        lines[int(place[1:]) - 1] = line
    return "\n".join(lines).encode() + b"\n"


def test_a_short_log_is_one_excerpt() -> None:
    assert log_excerpts(log(40), []) == [(1, 40)]


def test_a_quiet_log_gives_its_beginning_and_end() -> None:
    assert log_excerpts(log(1000), ["K-1118"]) == [(1, 20), (981, 1000)]


def test_errors_and_what_the_report_names_are_chosen_with_context() -> None:
    data = log(
        5000,
        _100="x ERROR disk",
        _3000="payment on K-1118",
        _3001="payment on K-11189",
        _4999="WARNING slow",
    )
    assert log_excerpts(data, ["K-1118"]) == [(98, 102), (2998, 3002), (4997, 5000)]


def test_of_lines_alike_the_first_two_and_the_last_are_chosen() -> None:
    data = log(9000, **{f"_{n}": f"ERROR no {n}" for n in range(100, 9000, 100)})
    assert [first + 2 for first, _ in log_excerpts(data, [])] == [100, 200, 8900]


def test_a_rare_error_is_found_among_many_others() -> None:
    data = log(
        100_000,
        **{f"_{n}": f"WARNING no {n}" for n in range(1, 100_000, 3)} | {"_50000": "CRITICAL lost"},
    )
    excerpts = log_excerpts(data, [])
    assert any(first <= 50_000 <= last for first, last in excerpts)
    assert len(excerpts) < 6


def test_an_identifier_in_every_line_tells_nothing() -> None:
    assert log_excerpts(log(1000), ["INFO"]) == [(1, 20), (981, 1000)]


def test_a_traceback_in_a_log_is_whole() -> None:
    frames = {f"_{500 + n}": f'  File "m.py", line {n}' for n in range(1, 31)}
    data = log(1000, _500="ERROR failed", **frames | {"_531": "app.errors.Broken: x"})
    assert log_excerpts(data, []) == [(498, 533)]


@given(
    st.lists(
        st.sampled_from(["", "ERROR 1", "WARNING b", "x K-1", "ok", "  at f", "KeyError: x", "é"]),
        max_size=200,
    )
)
def test_excerpts_are_bounded_ordered_and_within_the_log(lines: list[str]) -> None:
    data = "".join(line + "\n" for line in lines * 3).encode()
    excerpts = log_excerpts(data, ["K-1"])
    assert len(excerpts) <= MAX_EXCERPTS * 2
    assert all(
        1 <= first <= last <= 3 * len(lines) and last - first < MAX_EXCERPT_LINES
        for first, last in excerpts
    )
    assert all(a.last < b.first for a, b in pairwise(excerpts))
