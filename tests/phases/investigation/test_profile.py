"""What profiling finds: rows that are not like the others, in made tables and in real cases."""

from __future__ import annotations

import pytest

from phases.investigation.actions import Evidence, perform
from phases.investigation.actions.base import characters
from phases.investigation.profiling.values import shape


def profile(snapshot, table, **more):
    found = perform(snapshot, "profile_table", {"table": table, **more})
    assert isinstance(found, Evidence), found
    return found.document["result"]


def findings(snapshot, table, **more):
    return {(f["kind"], *f["odd"]): f for f in profile(snapshot, table, **more)["findings"]}


@pytest.fixture(scope="module")
def shop(make, sql):
    data = sql(
        "create table customer(id integer primary key, code text, city text, paid integer)",
        "create table orders(id integer primary key, customer_id integer, customer_code text, "
        "  amount, total_rows integer, row_offset integer, note text)",
        "create table item(id integer primary key, orders_id integer references orders(id))",
        "with recursive n(i) as (select 1 union all select i + 1 from n limit 200) "
        "insert into customer select i, printf('C-%04d', i), "
        "  case i % 3 when 0 then 'Bonn' when 1 then 'Ulm' else 'Kiel' end, i % 2 from n",
        "update customer set code = 'C-0007' where id = 150",
        "update customer set code = 'c9' where id = 20",
        "update customer set city = 'Bonn ' where id = 30",
        "update customer set city = 'ULM' where id = 40",
        "update customer set paid = 'true' where id in (50, 51)",
        "with recursive n(i) as (select 1 union all select i + 1 from n limit 300) "
        "insert into orders select i, 1 + i % 200, printf('C-%04d', 1 + i % 100), 10 + i, 20 + i, "
        "  i * 50, 'x' from n",
        "update orders set customer_id = 999 where id = 77",
        "update orders set customer_code = 'C-9999' where id = 78",
        "update orders set amount = 0 where id = 79",
        "update orders set row_offset = total_rows where id = 80",
        "update orders set note = null where id = 81",
        "insert into item select id, id from orders where id <> 90",
        "insert into item values (500, 12345)",
    )
    with make(databases={"shop.db": data}) as snapshot:
        yield snapshot


@pytest.mark.parametrize(
    ("table", "kind", "column", "key"),
    [
        ("customer", "near_unique", "code", 150),
        ("customer", "odd_shape", "code", 20),
        ("customer", "stray_blanks", "city", 30),
        ("customer", "spelling_variants", "city", 40),
        ("customer", "mixed_types", "paid", 50),
        ("orders", "reference_without_target", "customer_id", 77),
        ("orders", "reference_without_target", "customer_code", 78),
        ("orders", "zero_among_others", "amount", 79),
        ("orders", "rare_null", "note", 81),
        ("orders", "without_children", "id", 90),
        ("item", "foreign_key_violation", "orders_id", 500),
    ],
)
def test_an_odd_row_is_found_with_its_key(shop, table, kind, column, key):
    finding = findings(shop, table)[kind, column]
    assert key in [row[0] for row in finding["rows"]]
    assert finding["table"] == table
    assert finding["columns"][0] == "id"


def test_a_count_that_equals_an_offset_is_found(shop):
    finding = findings(shop, "orders")["count_equals_offset", "total_rows", "row_offset"]
    assert [row[0] for row in finding["rows"]] == [80]


def test_a_finding_gives_the_condition_for_all_its_rows(shop):
    finding = findings(shop, "customer")["mixed_types", "paid"]
    query = f"select id from customer where {finding['where']}"
    answer = perform(shop, "query_database", {"sql": query})
    assert answer.document["result"]["rows"] == [[50], [51]]
    assert finding["total"] == 2


def test_a_clean_table_has_no_finding(make, sql):
    data = sql(
        "create table t(id integer primary key, name text)",
        "with recursive n(i) as (select 1 union all select i + 1 from n limit 100) "
        "insert into t select i, 'name' from n",
    )
    with make(databases={"a.db": data}) as snapshot:
        assert profile(snapshot, "t")["findings"] == []


def test_shapes_are_letters_and_digits():
    assert shape("2024-00417 äB") == "9999-99999 aa"


@pytest.mark.parametrize(
    "statements",
    [
        ["create table t(a)"],
        ["create table t(a primary key, b) without rowid", "insert into t values (1, 'x')"],
        ['create table t("a b", "c""d")', "insert into t values (x'ff', cast(x'ff' as text))"],
        ["create table x(a)", "create view t as select a, a + 1 as b from x"],
        ["create table t(a, b as (a || 'x'))", "insert into t(a) values (1), (2)"],
        ["create table t(a)", "insert into t values (9e999), (-9e999), (1.5), (null)"],
        ["create virtual table t using fts5(a)", "insert into t values ('x')"],
        ["create table t(a, b)", "insert into t values (printf('%99999s', ''), zeroblob(500000))"],
        ["create table t(a text)", "insert into t values ('a' || char(0) || 'b'), ('it''s')"],
        ["create table t(" + ", ".join(f"c{i}" for i in range(300)) + ")"],
        ["create table t(a references nowhere(x))", "insert into t values (1)"],
    ],
)  # fmt: skip
def test_odd_tables_are_described_and_profiled(make, sql, statements):
    with make(databases={"a.db": sql(*statements)}) as snapshot:
        for name, arguments in (("describe_database", {}), ("profile_table", {"table": "t"})):
            found = perform(snapshot, name, arguments)
            assert isinstance(found, Evidence), found
            assert characters(found.document) < 40_000


@pytest.mark.slow
def test_a_table_of_a_million_rows_is_profiled_within_its_limit(make, sql):
    data = sql(
        "create table t(id integer primary key, code text, amount integer, city text)",
        "with recursive n(i) as (select 1 union all select i + 1 from n limit 1000000) "
        "insert into t select i, printf('C-%07d', i), i % 1000, 'Bonn' from n",
        "update t set code = 'C-0000001' where id = 500000",
    )
    with make(databases={"a.db": data}) as snapshot:
        assert ("near_unique", "code") in findings(snapshot, "t")


def test_invoice_case_shows_its_decisive_rows(business_case):
    """Invoice 2024-00417 exists in branch 1 and branch 3; a payment of branch 3 means both."""
    with business_case("mp-invoice-wrong-open-amount") as snapshot:
        twice = findings(snapshot, "invoice")["near_unique", "invoice_no"]
        at = twice["columns"].index
        rows = {(row[at("branch_id")], row[at("invoice_no")]) for row in twice["rows"]}
        assert rows == {(1, "2024-00417"), (3, "2024-00417")}
        payment = findings(snapshot, "payment")["reference_to_several", "invoice_no"]
        at = payment["columns"].index
        shown = [
            [row[at(name)] for name in ("amount_cents", "received_on", "branch_id", "invoice_no")]
            for row in payment["rows"]
        ]
        assert shown == [[92400, "2024-06-05", 3, "2024-00417"]]
        query = "select invoice_no, count(*) from invoice group by 1 having count(*) > 1"
        answer = perform(snapshot, "query_database", {"sql": query})
        assert answer.document["result"]["rows"] == [["2024-00417", 2]]


def test_renewal_case_shows_its_decisive_rows(business_case):
    """Subscription 21773 has the currency 'EUR '; the job's position stands behind its chunk."""
    with business_case("mp-renewal-missing-invoices") as snapshot:
        blank = findings(snapshot, "subscription")["stray_blanks", "currency"]
        at = blank["columns"].index
        assert [(r[at("id")], r[at("currency")]) for r in blank["rows"]] == [(21773, "EUR ")]
        lacks = findings(snapshot, "subscription")["reference_without_target", "currency"]
        assert [row[0] for row in lacks["rows"]] == [21773]
        state = profile(snapshot, "job_state")["sample"]
        row = dict(zip(state["columns"], state["rows"][-1], strict=True))
        assert row == {"job": "renewal", "period": "2024-06", "last_id": 21900, "finished": 1}
