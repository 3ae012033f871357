"""The file that `tables` makes, and docs/tables.md, which describes it."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings

import prompts
from ledger import events as e
from ledger.book import Book
from projections.folding import fold
from projections.tables import FORMAT, TABLES, VIEWS
from tests.generated import History, fresh, histories
from tests.phases.conftest import scratch as scratch
from tests.tools.conftest import Cli
from tools import tabulating
from tools.many import Cases

DOCUMENT = (Path(__file__).parents[2] / "docs/tables.md").read_text("utf-8")
SQL_TYPES = {int: "integer", float: "real", str: "text"}


def sections(title: str) -> dict[str, str]:
    text = DOCUMENT.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    parts = re.split(r"\n### `(\w+)`\n", text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def documented(section: str, pattern: str) -> list[tuple[str, ...]]:
    return [m if isinstance(m, tuple) else (m,) for m in re.findall(pattern, section, re.M)]


@pytest.fixture
def database(call: Cli, desk: Path) -> Iterator[sqlite3.Connection]:
    assert call("tables", "small", "fresh", "small.zip", "-o", "t.db").code == 0
    with closing(sqlite3.connect(desk / "t.db")) as connection:
        yield connection


def test_every_table_and_column_is_in_the_document_and_nothing_else() -> None:
    found = sections("Tables")
    assert list(found) == list(TABLES)
    for name, section in found.items():
        listed = documented(section, r"^\| `(\w+)` \| (\w+) \| .+ \|$")
        table = TABLES[name]
        assert dict(listed) == {c: SQL_TYPES[t] for c, t in table.columns().items()}, name
        assert [column for column, _ in listed] == list(table.columns()), name
        key = section.split("Key: ", 1)[1].split(".", 1)[0]
        assert re.findall(r"`(\w+)`", key) == list(table.KEY), name
        words = documented(section, r"^\| `(\w+)` \| text \| .*\(\*words\*\) \|$")
        assert {column for (column,) in words} == table.WORDS, name


def test_every_view_and_its_columns_are_in_the_document_and_nothing_else(
    database: sqlite3.Connection,
) -> None:
    found = sections("Views")
    assert list(found) == list(VIEWS)
    for name, section in found.items():
        listed = [column for (column,) in documented(section, r"^\| `(\w+)` \| .+ \|$")]
        cursor = database.execute(f"SELECT * FROM {name}")
        assert listed == [column[0] for column in cursor.description], name
        assert cursor.fetchall(), name


def test_the_file_has_the_documented_tables_and_every_column_can_be_named_without_quotes(
    database: sqlite3.Connection,
) -> None:
    for name, table in TABLES.items():
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({name})")]
        assert columns == list(table.columns())
        database.execute(f"SELECT {', '.join(columns)} FROM {name}").fetchall()
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (form,) = database.execute("PRAGMA user_version").fetchone()
    assert (application, form) == (tabulating.APPLICATION_ID, FORMAT)
    assert f"`PRAGMA application_id` is {application} (`CSLT`)" in DOCUMENT
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_rows_of_several_cases_stand_side_by_side(database: sqlite3.Connection) -> None:
    names = database.execute("SELECT id, name FROM cases ORDER BY id").fetchall()
    assert names == [(1, "small"), (2, "fresh"), (3, "small")]
    for table in ("events", "requests", "evidence", "texts"):
        counts = dict(database.execute(f"SELECT ledger, count(*) FROM {table} GROUP BY ledger"))
        assert counts[1] == counts[3] > counts.get(2, 0)
    outcomes = database.execute("SELECT ledger, outcome, requests FROM outcomes").fetchall()
    assert outcomes[1] == (2, None, 0)
    assert outcomes[0][1] is not None


def test_search_finds_report_evidence_and_events(database: sqlite3.Connection) -> None:
    query = (
        "SELECT DISTINCT kind FROM texts_fts JOIN texts ON texts.rowid = texts_fts.rowid "
        "WHERE texts_fts MATCH ? AND ledger = 1"
    )
    kinds = {kind for (kind,) in database.execute(query, ("cart_total",))}
    assert {"report_block", "evidence", "entities.resolved"} <= kinds
    assert {kind for (kind,) in database.execute(query, ('"dropped item"',))} >= {"log_excerpt"}


def test_every_query_of_the_guide_gives_rows(database: sqlite3.Connection) -> None:
    guide = (Path(__file__).parents[2] / "docs/guides/tables.md").read_text("utf-8")
    queries = re.findall(r"```sql\n(.*?)```", guide, re.DOTALL)
    assert len(queries) > 5
    for query in queries:
        assert database.execute(query).fetchall(), query


def test_the_same_input_gives_the_same_file(call: Cli, desk: Path) -> None:
    for name in ("a.db", "b.db"):
        assert call("tables", "small", "small.zip", "-o", name).code == 0
    assert Path("a.db").read_bytes() == Path("b.db").read_bytes()


def test_without_text_no_word_of_the_case_is_in_the_file(call: Cli, desk: Path) -> None:
    assert call("tables", "small", "-o", "t.db", "--no-text").code == 0
    data = Path("t.db").read_bytes()
    for word in (b"cart_total", b"shop", b"dropped", b"too low", b"Cart total"):
        assert word not in data
    with closing(sqlite3.connect("t.db")) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
        assert "texts" not in tables
        assert connection.execute("SELECT count(*), max(line) FROM events").fetchone()[1] is None
        for name in VIEWS:
            assert connection.execute(f"SELECT * FROM {name}").fetchall()


def test_no_secret_and_no_raw_reply_or_request_enters(call: Cli, desk: Path) -> None:
    assert call("tables", "small", "-o", "t.db").code == 0
    with closing(sqlite3.connect("t.db")) as connection:
        dump = "\n".join(connection.iterdump())
    for name in prompts.NEWEST.values():
        assert prompts.card(name).text.splitlines()[0] not in dump
    assert '"format":1,"protocol"' not in dump


def test_a_file_that_stands_there_is_replaced_only_with_force(call: Cli, desk: Path) -> None:
    assert call("tables", "small", "-o", "t.db").code == 0
    before = Path("t.db").read_bytes()
    refused = call("tables", "fresh", "-o", "t.db")
    assert (refused.code, Path("t.db").read_bytes()) == (2, before)
    assert call("tables", "fresh", "-o", "t.db", "--force").code == 0
    assert Path("t.db").read_bytes() != before
    assert [path.name for path in desk.glob(".t.db*")] == []


def test_no_force_replaces_what_tables_did_not_make(call: Cli, desk: Path) -> None:
    before = Path("shop.db").read_bytes()
    assert call("tables", "small", "-o", "shop.db", "--force").code == 2
    assert Path("shop.db").read_bytes() == before
    for name in ("x.case", ".caseledger/small.case", "small.zip"):
        assert call("tables", "small", "-o", name, "--force").code == 2
    assert not Path("x.case").exists()


def test_a_broken_case_leaves_no_rows_and_is_named(call: Cli, desk: Path) -> None:
    Path("many").mkdir()
    shutil.copyfile("small.zip", "many/a.zip")
    Path("many/b.zip").write_bytes(Path("small.zip").read_bytes()[:5000])
    shutil.copyfile("small.zip", "many/c.zip")
    found = call("tables", "many", "-o", "t.db")
    assert found.code == 1
    assert "many/b.zip: is not a zip file" in found.err
    with closing(sqlite3.connect("t.db")) as connection:
        assert connection.execute("SELECT id, name FROM cases").fetchall() == [(1, "a"), (3, "c")]
        ledgers = connection.execute("SELECT DISTINCT ledger FROM events").fetchall()
    assert ledgers == [(1,), (3,)]


def test_a_copy_made_for_sharing_keeps_the_places_of_what_it_withholds(
    call: Cli, desk: Path
) -> None:
    assert call("export", "small", "--redacted", "-o", "copy.zip").code == 0
    assert call("tables", "copy.zip", "-o", "t.db").code == 0
    with closing(sqlite3.connect("t.db")) as connection:
        places = connection.execute("SELECT position, at IS NULL, state IS NULL FROM events")
        rows = places.fetchall()
        positions = [position for position, _, _ in rows]
        assert positions == list(range(1, len(positions) + 1))
        assert {(gone, gone) for _, gone, _ in rows} == {(0, 0), (1, 1)}
        words = " ".join(text for (text,) in connection.execute("SELECT text FROM texts"))
    assert "for item in items[:-1]" not in words


def test_a_single_broken_case_leaves_nothing(call: Cli, desk: Path) -> None:
    Path("b.zip").write_bytes(Path("small.zip").read_bytes()[:5000])
    assert call("tables", "b.zip", "-o", "t.db").code == 2
    assert call("tables", "nowhere.case", "-o", "t.db").code == 2
    assert list(desk.glob("*t.db*")) == list(desk.glob(".t.db*")) == []


def test_rows_in_the_file_are_those_of_any_case(scratch: Path) -> None:
    """What SQLite cannot hold as it is (long integers, lone surrogates) loses no row."""

    @settings(max_examples=settings.default.max_examples // 10)
    @given(history=histories())
    def check(history: History) -> None:
        path = history.write(fresh(scratch))
        output = path.with_suffix(".db")
        tabulating.make_tables(Cases([path], False), output, json=True)
        with Book.open(path) as book, closing(sqlite3.connect(output)) as connection:
            state = fold(book.events())
            count = {
                name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
                for name in TABLES
            }
        assert count["events"] == state.position
        assert count["requests"] == len(state.requests)
        assert count["hypotheses"] == len(state.hypotheses)
        assert count["actions"] == len(state.actions)
        assert count["evidence"] == len(state.evidence)
        usage = [event for event in history.events() if isinstance(event, e.UsageMeasured)]
        assert count["costs"] == len(usage)
        for used in (path, Path(f"{path}.head"), output):
            used.unlink()

    check()
