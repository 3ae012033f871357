"""What a person reads on a terminal of any width, and elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.conftest import Cli
from tools import output

WORDS = st.text("abcdefgh", min_size=1, max_size=14)
CELLS = st.lists(WORDS, max_size=9).map(" ".join)
NAMES = st.text("abcdefgh-", min_size=1, max_size=50)


@pytest.fixture
def on_terminal(call: Cli, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Run a command on a terminal of so many columns; return its lines."""

    def run(width: int, *arguments: str) -> list[str]:
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout.isatty", lambda: True)
            patch.setenv("COLUMNS", str(width))
            text = re.sub(r"\x1b\[\d*m", "", call(*arguments).out)  # headings are bold
            return [line.rstrip() for line in text.splitlines()]

    return run


OnTerminal = Callable[..., list[str]]
narrow = pytest.mark.parametrize("width", [60, 40])


@st.composite
def tables(draw: st.DrawFn) -> list[list[str]]:
    columns = draw(st.integers(1, 6))
    row = st.tuples(NAMES, *[CELLS] * (columns - 1)).map(list)
    return draw(st.lists(row, min_size=1, max_size=4))


@given(tables(), st.integers(20, 160), st.booleans())
def test_columns_fit_the_terminal_or_are_not_used(
    rows: list[list[str]], width: int, cut: bool
) -> None:
    headings = [f"h{number}" for number in range(len(rows[0]))]
    found = output._widths(headings, rows, width, cut=cut)
    if not found:
        return
    assert sum(found) + 2 * (len(found) - 1) <= width
    for number, column in enumerate(zip(*rows, strict=True)):
        assert found[number] <= max(len(cell) for cell in (*column, headings[number]))
        if cut and number == 0:
            assert found[0] >= max(map(len, column))
        words = [word for cell in column for word in cell.split()]
        assert cut or found[number] >= min(max(map(len, words), default=0), 32)


@narrow
def test_a_narrow_list_of_cases_loses_nothing(
    call: Cli, on_terminal: OnTerminal, width: int
) -> None:
    call("new", "report.md", "--name", "a-case-with-a-long-name")
    lines = on_terminal(width, "cases")
    assert "a-case-with-a-long-name" in lines
    text = " ".join(line.strip() for line in lines)
    for part in ("state: cause likely", "confidence: ", "requests: ", "cost: $0.0000",
                 "title: Cart total is too low"):  # fmt: skip
        assert part in text
    assert "…" not in text
    assert max(map(len, lines)) <= width


@narrow
@pytest.mark.parametrize(
    "command", [["prompts"], ["config"], ["act", "small", "list"], ["evaluate", "bugs"]]
)
def test_no_line_of_a_table_is_wider_than_the_terminal(
    on_terminal: OnTerminal, width: int, command: list[str]
) -> None:
    lines = on_terminal(width, *command)
    wide = [line for line in lines if len(line) > width and not line.startswith("Brier")]
    assert not wide
    assert not any(line.endswith("…") for line in lines)


@narrow
def test_a_narrow_timeline_has_the_time_above_what_happened(
    on_terminal: OnTerminal, width: int
) -> None:
    lines = on_terminal(width, "log", "small", "-n", "3")
    assert lines[0].split()[0] == "1"
    assert lines[1].startswith("       case.opened  Cart total")
    assert max(map(len, lines)) <= width


def test_elsewhere_a_row_is_a_line_with_tabs(call: Cli) -> None:
    rows = [line.split("\t") for line in call("cases").out.splitlines()]
    assert [len(row) for row in rows] == [7, 7, 7]
    assert all(len(line.split()) > 3 for line in call("log", "small").out.splitlines())
