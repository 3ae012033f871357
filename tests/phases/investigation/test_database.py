"""What no statement can do: write, reach another file, run or grow without end."""

from __future__ import annotations

import time

import pytest

from phases.investigation import database_child
from phases.investigation.database import MODEL, Database, DatabaseRefused, Limits
from phases.investigation.values import row_to_json


@pytest.fixture(scope="module")
def db(sql):
    data = sql(
        "create table t(a integer, b text, c blob)",
        "with recursive n(i) as (select 1 union all select i + 1 from n limit 3000) "
        "insert into t select i, 'text ' || i, zeroblob(10) from n",
        "create view v as select a from t where a < 3",
    )
    database = Database(lambda: data)
    yield database
    database.close()


@pytest.mark.parametrize(
    "statement",
    [
        "delete from t",
        "insert into t values (1, 2, 3)",
        "with x as (select 1) delete from t",
        "create table x(a)",
        "create temp table x(a)",
        "drop table t",
        "vacuum into 'x.db'",
        "attach 'x.db' as x",
        "pragma writable_schema = 1",
        "select * from pragma_table_info('t')",
        "select * from dbstat",
        "select count(*) from sqlite_stmt",
        "select load_extension('x')",
        "select random()",
        "select randomblob(10)",
        "select zeroblob(10)",
        "select sqlite_version()",
        "select last_insert_rowid()",
        "select date('now')",
        "select date(' NOW ')",
        "select strftime('%Y')",
        "select current_timestamp",
        "explain select 1",
        "begin",
        "",
        ";",
        "-- nothing",
    ],
)
def test_a_statement_that_does_more_than_read_is_refused(db, statement):
    with pytest.raises(DatabaseRefused) as refused:
        db.query(statement)
    assert refused.value.kind == "not_read_only"


@pytest.mark.parametrize(
    "statement",
    ["select", "select * from nothing", "select 1; select 2", "select writefile('x', 'y')",
     "select fts3_tokenizer('x')", "select \0", "select * from t where", "select edit('x')",
     "select readfile('/etc/passwd')"],
)  # fmt: skip
def test_a_statement_with_an_error_is_refused_with_the_reason(db, statement):
    with pytest.raises(DatabaseRefused) as refused:
        db.query(statement)
    assert refused.value.kind in ("sql", "not_read_only")


@pytest.mark.parametrize(
    ("statement", "row"),
    [
        ("select a, b from t where a = 2", [2, "text 2"]),
        ("with recursive n(i) as (select 1 union all select i + 1 from n limit 9) "
         "select count(*) from n", [9]),
        ("values (1, 'x')", [1, "x"]),
        (" /* why */ -- and\n select count(*) from v", [2]),
        ("select value from json_each('[7]')", [7]),
        ("select '{\"a\":5}' ->> 'a'", [5]),
        ("select date('2024-01-31', '+1 month'), strftime('%Y', '2024-05-01')",
         ["2024-03-02", "2024"]),
        ("select group_concat(a), sum(a) over () from t where a < 3", ["1,2", 3]),
        ("select name from sqlite_schema where type = 'view'", ["v"]),
    ],
)  # fmt: skip
def test_reading_works(db, statement, row):
    assert db.query(statement).rows[0] == row or "over" in statement


def test_every_value_has_its_json_form(db):
    rows = db.query(
        "values (null, 9223372036854775807, 1.0, 9e999, -9e999, 'a' || char(0) || 'b', "
        "cast(x'ff41' as text), x'00ff', printf('%600s', 'x'), cast(printf('%900s', '') as blob))"
    )
    short = row_to_json(rows.rows[0])
    assert short[:8] == [
        None, 9223372036854775807, 1.0, {"real": "inf"}, {"real": "-inf"}, "a\0b",
        {"text_bytes": "/0E="}, {"blob": "AP8=", "bytes": 2},
    ]  # fmt: skip
    assert short[8] == {"text": " " * 500, "characters": 600}
    assert short[9]["bytes"] == 900


@pytest.mark.parametrize(
    ("statement", "stopped"),
    [
        ("with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
         "steps"),
        ("with recursive n(i) as (select 1 union all select i from n) select i from n", "count"),
        ("select count(*) from t a, t b, t c", "steps"),
        ("select a.a from t a, t b, t c order by a.a * b.a + c.a", "steps"),
        ("select group_concat(a.b) from t a, t b", "length"),
        ("select replace(printf('%9000000s', ''), ' ', 'xxxxxxxx')", "length"),
        ("select hex(hex(hex(hex(printf('%4000000s', '')))))", "length"),
        ("select json_group_array(a.b) from t a, t b", "length"),
    ],
)  # fmt: skip
def test_what_has_no_end_is_stopped(db, statement, stopped):
    start = time.monotonic()
    assert db.query(statement).stopped == stopped
    assert time.monotonic() - start < 30  # a loaded machine; usually below one


def test_a_width_of_a_thousand_million_characters_is_no_text(db):
    assert db.query("select printf('%1000000000s', 'x') is null").rows == [[1]]


def test_memory_has_a_ceiling(db):
    statement = (
        "with recursive n(i, x) as (select 1, printf('%8000000s', '') union all "
        "select i + 1, x from n limit 400) select i from n order by x, i desc"
    )
    assert db.query(statement).stopped in ("memory", "seconds")
    assert db.query("select 1").rows == [[1]]  # and the next query is answered


def test_one_long_function_is_stopped_by_the_clock(db):
    statement = (
        "with x(s) as (select printf('%9000000s', '')) "
        "select instr(s, substr(s, 1, 4500000) || 'y') from x"
    )
    start = time.monotonic()
    assert db.query(statement, limits=Limits(seconds=1)).stopped == "seconds"
    assert time.monotonic() - start < 20
    assert db.query("select 1").rows == [[1]]


def test_steps_are_the_same_every_time(db):
    query = "select count(*) from t a, t b where a.a = b.a + 1"
    assert db.query(query).steps == db.query(query).steps > 0


def test_rows_are_paged_and_counted(db):
    answer = db.query("select a from t order by a", offset=10, rows=3)
    assert (answer.rows, answer.seen, answer.stopped) == ([[11], [12], [13]], 3000, "")
    few = db.query("select a from t order by a", rows=3, limits=Limits(count=100))
    assert (len(few.rows), few.seen, few.stopped) == (3, 100, "count")


def test_bytes_are_bounded(db):
    answer = db.query("select printf('%400s', a) from t", rows=3000, limits=Limits(bytes=10_000))
    assert answer.stopped == "bytes"
    assert 0 < len(answer.rows) < 50


def test_a_hostile_schema_cannot_call_what_a_statement_cannot(sql):
    data = sql(
        "create table t(a, b as (hex(a)))",
        "insert into t values (1)",
        "create view bad as select load_extension('x') as y",
        "create view clock as select date('now') as y",
    )
    database = Database(lambda: data)
    assert database.query("select b from t").rows == [["31"]]
    for view in ("bad", "clock"):
        with pytest.raises(DatabaseRefused):
            database.query(f"select * from {view}")
    database.close()


def test_the_child_answers_in_process_as_it_does_outside(tmp_path, sql):
    path = tmp_path / "x.db"
    path.write_bytes(sql("create table t(a)", "insert into t values (1), ('x'), (null)"))
    connection, guard = database_child.open_database(str(path))
    job = {
        "sql": "select a from t", "parameters": (), "trusted": False, "offset": 0, "rows": 9,
        "count": 9, "steps": MODEL.steps, "seconds": 9.0, "length": 1000, "value": 9, "bytes": 999,
    }  # fmt: skip
    assert database_child.run(connection, guard, job)["rows"] == [[1], ["x"], [None]]
    assert database_child.run(connection, guard, job | {"sql": "drop table t"})["error"]
    assert database_child.run(connection, guard, job | {"count": 1})["error"] == "count"
    assert database_child.run(connection, guard, job | {"bytes": 1})["error"] == "bytes"
    slow = job | {"sql": "select count(*) from t, t, t, t, t, t, t, t, t, t", "steps": 1000}
    assert database_child.run(connection, guard, slow)["error"] == "steps"
    connection.close()
