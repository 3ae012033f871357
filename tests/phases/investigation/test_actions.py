"""Each action on a small tree: what it shows, how it pages, what it says when it finds nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ledger.canonical import to_bytes
from phases.investigation.actions import ACTIONS, Evidence, Refusal, bindings, perform, validate
from phases.investigation.logtimes import parse_bound, time_of

FILES = {
    "shop/__init__.py": "",
    "shop/cart.py": (
        "from shop.prices import price\n\n\nclass Cart:\n    def total(self, items):\n"
        "        return sum(price(item) for item in items)\n"
    ),
    "shop/prices.py": "TABLE = {}\n\n\ndef price(item):\n    return TABLE[item]\n",
    "tests/test_cart.py": "from shop.cart import Cart\n\n\ndef test_total():\n    assert Cart()\n",
    "static/app.js": "x" * 3000 + "needle" + "y" * 3000 + "\nlet needle = 1;\r\n",
    "logo.png": b"\x89PNG\0\0",
    "README.md": "# Shop\n\nThe total of a cart.\n",
}
LOG = (
    "2024-06-28 02:00:09,867 ERROR shop failed\n"
    "Traceback (most recent call last):\n"
    "KeyError: 'x'\n"
    "2024-06-28 02:10:00,000 INFO shop done\n"
    "2024-06-29 00:00:00,000 INFO shop started\n"
)


@pytest.fixture(scope="module")
def shop(make, sql):
    data = sql(
        "create table plan(code text primary key, title text not null)",
        "create table sub(id integer primary key, plan_code text references plan(code), x blob)",
        "create index by_plan on sub(plan_code)",
        "create trigger tr after insert on plan begin select 1; end",
        "create view v as select code from plan",
        "insert into plan values ('A', 'First'), ('B', 'Second')",
        "insert into sub values (1, 'A', x'00'), (2, 'B', null), (3, 'A', 'text')",
    )
    with make(FILES, {"app.log": LOG}, {"shop.db": data}) as snapshot:
        yield snapshot


def ask(snapshot, name, /, **arguments):
    found = perform(snapshot, name, arguments)
    assert isinstance(found, Evidence), found
    return found.document


def refused(snapshot, name, arguments):
    found = perform(snapshot, name, arguments)
    assert isinstance(found, Refusal), found
    return found


def test_files_are_listed_by_role_then_path(shop):
    document = ask(shop, "list_files")
    assert [file["path"] for file in document["result"]["files"]][:3] == [
        "shop/__init__.py", "shop/cart.py", "shop/prices.py",
    ]  # fmt: skip
    assert document["result"]["roles"]["test"] == 1
    assert document["complete"]
    assert ask(shop, "list_files", glob="shop/*.py")["page"]["total"] == 3
    assert ask(shop, "list_files", glob="**/c*.py")["page"]["total"] == 1
    assert ask(shop, "list_files", glob="*.py")["page"]["total"] == 4
    assert ask(shop, "list_files", glob="[st]*/?[ae]*.py")["page"]["total"] == 2


def test_pages_tile_the_whole(shop):
    paths, offset = [], 0
    while True:
        document = ask(shop, "list_files", limit=2, offset=offset)
        paths += [file["path"] for file in document["result"]["files"]]
        offset += document["page"]["returned"]
        if document["complete"]:
            break
        assert document["cut_off"] == {"reason": "page", "limit": 2}
    assert sorted(paths) == sorted(FILES)


def test_literal_text_is_found_with_its_place_and_lines(shop):
    document = ask(shop, "search_code", query="price(item)", context=1)
    hits = document["result"]["hits"]
    assert hits[0] == {"path": "shop/cart.py", "line": 6, "column": 20}
    assert {"path": "shop/prices.py", "first": 3, "lines": ["", "def price(item):",
            "    return TABLE[item]"]} in document["result"]["blocks"]  # fmt: skip
    provenance = document["result"]["files"][0]["provenance"]
    assert provenance["path"] == "shop/cart.py"
    assert provenance["snapshot"] == shop.digest == document["snapshot"]


def test_an_identifier_is_not_part_of_a_longer_one(make):
    snapshot = make({"a.js": "price2()\n$price()\nx.price = 1\nprice\n_price\n"})
    hits = ask(snapshot, "search_code", query="price", mode="identifier")["result"]["hits"]
    assert [(hit["line"], hit["column"]) for hit in hits] == [(3, 3), (4, 1)]


@pytest.mark.parametrize("pattern", ["a(?=b)", r"(a)\1", "(?<!a)b", "a++", "(?>a)", "a{2000}", "("])
def test_what_re2_cannot_do_is_refused_with_the_reason(shop, pattern):
    refusal = refused(shop, "search_code", {"query": pattern, "mode": "regex"})
    assert refusal.kind == "arguments"
    assert refusal.problems[0].path == "$.query"


def test_an_expression_ends_at_the_line_even_with_carriage_returns(make):
    snapshot = make({"a.txt": "one\r\ntwo\ronetwo"})
    for query, lines in (("one$", [1]), ("^two$", [2]), (r"one\s*two", [3]), ("two$", [2, 3])):
        document = ask(snapshot, "search_code", query=query, mode="regex")
        assert [hit["line"] for hit in document["result"]["hits"]] == lines
    assert document["result"]["blocks"][0]["lines"] == ["one", "two", "onetwo"]


def test_a_long_line_is_shown_through_a_window(shop):
    document = ask(shop, "search_code", query="needle", context=0)
    window = document["result"]["blocks"][0]
    assert window["characters"] == 6006
    assert window["lines"][0][3001 - window["column"] :].startswith("needle")
    assert document["result"]["blocks"][1]["lines"] == ["let needle = 1;"]
    part = ask(shop, "read_lines", path="static/app.js", last=1, column=3001, width=50)
    assert part["result"]["blocks"][0]["lines"] == ["needle" + "y" * 44]


def test_ranked_search_finds_by_words_and_says_where_it_looked(shop):
    document = ask(shop, "search_code", query="total price of the items", mode="ranked")
    assert document["result"]["hits"][0]["path"] == "shop/cart.py"
    rest = ask(shop, "search_code", query="total", mode="ranked", role="docs")
    assert [hit["path"] for hit in rest["result"]["hits"]] == ["README.md"]


def test_nothing_found_is_a_qualified_negative(shop):
    document = ask(shop, "search_code", query="nowhere", role="source", glob="shop/**")
    assert not document["found"]
    assert document["negative"] == {
        "query": {"query": "nowhere", "mode": "literal"},
        "scope": {"source_files": 7, "with_text": 6},
        "filter": {"glob": "shop/**", "role": "source"},
        "covered": {"files": 3, "bytes": sum(len(FILES[p]) for p in FILES if "shop" in p)},
        "complete": True,
        "snapshot": shop.digest,
    }


def test_a_symbol_is_found_by_its_qualified_name(shop):
    document = ask(shop, "find_symbol", name="Cart.total")
    assert document["result"]["symbols"] == [
        {"path": "shop/cart.py", "name": "total", "qualified": "Cart.total", "kind": "method",
         "first": 5, "last": 6}
    ]  # fmt: skip
    assert document["result"]["blocks"][0]["first"] == 5
    assert not ask(shop, "find_symbol", name="Cart.total", kind="class")["found"]
    assert not ask(shop, "find_symbol", name="tal")["found"]


def test_references_say_how_a_name_is_used(shop):
    hits = ask(shop, "find_references", name="price")["result"]["hits"]
    assert [(h["path"], h["line"], h["use"], h["in"]) for h in hits] == [
        ("shop/cart.py", 1, "import", ""),
        ("shop/cart.py", 6, "call", "Cart.total"),
        ("shop/prices.py", 4, "definition", "price"),
    ]


def test_lines_are_read_exactly(shop):
    document = ask(shop, "read_lines", path="shop/prices.py", first=4, last=5)
    assert document["result"]["blocks"] == [
        {"path": "shop/prices.py", "first": 4,
         "lines": ["def price(item):", "    return TABLE[item]"]}
    ]  # fmt: skip
    assert document["complete"]
    past = ask(shop, "read_lines", path="shop/prices.py", first=90)
    assert not past["found"]
    assert past["negative"]["scope"] == {"path": "shop/prices.py", "lines": 5}


def test_reading_stops_at_its_characters_and_goes_on(make):
    lines = [f"line {i} " + "z" * 50 for i in range(1, 400)]
    snapshot = make({"a.py": "\n".join(lines)})
    got, first = [], 1
    while True:
        document = ask(snapshot, "read_lines", path="a.py", first=first, characters=2000)
        for block in document["result"]["blocks"]:
            assert block["first"] == first
            got += block["lines"]
            first += len(block["lines"])
        if document["complete"]:
            break
        assert document["cut_off"] == {"reason": "characters", "limit": 2000}
    assert got == lines


@pytest.mark.parametrize(
    "path",
    ["../shop/cart.py", "/etc/passwd", "shop/../shop/cart.py", "shop//cart.py", "./shop/cart.py",
     "shop/cart.py\0", "SHOP/cart.py", "shop\\cart.py", "shop/cart.py ", "s\u200bhop/cart.py", "S2",
     "file:///etc/passwd", "~", "shop", "con", "％2e％2e/x"],
)  # fmt: skip
def test_no_path_reaches_outside_the_snapshot(shop, path):
    refusal = refused(shop, "read_lines", {"path": path})
    assert refusal.kind == "outside_snapshot"
    assert refusal.problems[0].path == "$.path"


def test_a_file_without_text_is_refused(shop):
    assert "binary" in refused(shop, "read_lines", {"path": "logo.png"}).problems[0].message


def test_all_problems_are_reported_together(shop):
    arguments = {"query": 5, "limit": 0, "mode": "fuzzy", "colour": "red"}
    refusal = refused(shop, "search_code", arguments)
    assert {p.path for p in refusal.problems} == {"$.query", "$.limit", "$.mode", "$.colour"}
    both = refused(shop, "read_lines", {"path": "no.py", "first": 9, "last": 3})
    assert {p.path for p in both.problems} == {"$.path", "$.last"}


def test_an_unknown_action_is_refused(shop):
    assert refused(shop, "run_shell", {}).kind == "unknown_action"
    assert refused(shop, "", {}).kind == "unknown_action"


def test_the_log_is_searched_by_text_and_time(shop):
    document = ask(shop, "search_log", query="error", ignore_case=True)
    assert [hit["line"] for hit in document["result"]["hits"]] == [1, 3]
    window = ask(shop, "search_log", **{"from": "2024-06-28 02:00", "to": "2024-06-28 02:00"})
    assert [hit["line"] for hit in window["result"]["hits"]] == [1, 2, 3]
    assert window["result"]["blocks"][0]["lines"][2] == "KeyError: 'x'"
    night = ask(shop, "search_log", **{"from": "00:00", "to": "01:00"})
    assert [hit["line"] for hit in night["result"]["hits"]] == [5]
    report = ask(shop, "search_log", query="not work", log="report.md")
    assert report["result"]["documents"][0]["artifact"] == "S1"
    assert not ask(shop, "search_log", query="nothing")["found"]
    assert refused(shop, "search_log", {"from": "yesterday"}).problems[0].path == "$.from"


def test_the_only_log_needs_no_name(shop):
    document = ask(shop, "read_log", first=4, last=4)
    assert document["result"]["blocks"] == [
        {"artifact": "S3", "first": 4, "lines": ["2024-06-28 02:10:00,000 INFO shop done"]}
    ]
    assert refused(shop, "read_log", {"log": "S4"}).kind == "outside_snapshot"


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("2024-06-28 02:00:09,867 x", "2024-06-28 02:00:09.867"),
        ("[2024-06-28T02:00:09.867Z] x", "2024-06-28 02:00:09.867"),
        ("2024/06/28 02:00:09 x", "2024-06-28 02:00:09"),
        ('1.2.3.4 - - [28/Jun/2024:02:00:09 +0200] "GET /"', "2024-06-28 02:00:09"),
        ("28.06.2024 02:00:09 x", "2024-06-28 02:00:09"),
        ("06/28/2024 02:00:09 x", "2024-06-28 02:00:09"),
        ("Jun  8 02:00:09 host x", "2024-06-08 02:00:09"),
        ("1719540009 x", "2024-06-28 02:00:09"),
        ("1719540009867 x", "2024-06-28 02:00:09.867"),
        ("02:00:09 x", "2024-06-28 02:00:09"),
        ("version 1.2.3 of 12:30 tests", ""),
        ("", ""),
    ],
)
def test_times_are_read_in_the_common_forms(line, time):
    assert time_of(line, "2024", "2024-06-28") == time


@pytest.mark.parametrize(
    ("text", "bound"),
    [("2024", "2024"), ("2024-06", "2024-06"), ("2024-06-28T02", "2024-06-28 02"),
     ("2024-06-28 02:00:09,5Z", "2024-06-28 02:00:09.5"), ("02:00", "02:00"), ("soon", ""),
     ("", "")],
)  # fmt: skip
def test_bounds_may_be_cut_short(text, bound):
    assert parse_bound(text).text == bound


def test_a_database_is_described(shop):
    objects = {o["name"]: o for o in ask(shop, "describe_database")["result"]["objects"]}
    assert list(objects) == ["plan", "sub", "v", "tr"]
    assert objects["sub"]["rows"] == 3
    assert objects["sub"]["references"] == [
        {"columns": ["plan_code"], "table": "plan", "targets": ["code"]}
    ]
    assert objects["sub"]["indexes"][0]["name"] == "by_plan"
    assert objects["plan"]["unique"] == [["code"]]
    assert objects["v"]["sql"] == "CREATE VIEW v as select code from plan"


def test_rows_come_with_columns_tables_and_exact_values(shop):
    document = ask(shop, "query_database", sql="select id, x from sub order by id")
    assert document["result"]["columns"] == ["id", "x"]
    assert document["result"]["rows"] == [[1, {"blob": "AA==", "bytes": 1}], [2, None], [3, "text"]]
    assert document["result"]["provenance"]["tables"] == ["sub"]
    page = ask(shop, "query_database", sql="select id from sub order by id", limit=1, offset=1)
    assert page["result"]["rows"] == [[2]]
    assert page["page"] == {"offset": 1, "limit": 1, "returned": 1, "total": 3}
    assert not page["complete"]
    assert not ask(shop, "query_database", sql="select * from sub where id > 9")["found"]


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("drop table plan", "not_read_only"),
        ("select * from nothing", "arguments"),
        ("with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
         "limit"),
        ("select replace(printf('%9000000s', ''), ' ', 'xxxxxxxx')", "limit"),
        ("select " + ", ".join(f"printf('%400s', {i})" for i in range(100)), "limit"),
        ("select " + ", ".join(f"1 as {'c' * 60}{i}" for i in range(100)), "limit"),
    ],
)  # fmt: skip
def test_a_statement_that_gives_no_rows_is_refused_with_its_kind(shop, statement, kind):
    refusal = refused(shop, "query_database", {"sql": statement, "characters": 3000})
    assert refusal.kind == kind


def test_a_database_that_is_none_is_refused_by_every_action(make):
    with make(databases={"x.db": b"no database" * 99}) as snapshot:
        for name, arguments in (
            ("describe_database", {}),
            ("profile_table", {"table": "t"}),
            ("query_database", {"sql": "select 1"}),
        ):
            assert refused(snapshot, name, arguments).kind == "arguments"


def test_a_case_without_logs_or_databases_says_so(make):
    snapshot = make({"a.py": ""})
    for name, arguments in (
        ("search_log", {"query": "x"}),
        ("describe_database", {}),
        ("query_database", {"sql": "select 1"}),
    ):
        assert refused(snapshot, name, arguments).kind == "outside_snapshot"


def test_checked_arguments_are_complete_and_in_order(shop):
    effective = validate("search_log", {"query": "x"}, shop)
    assert list(effective) == list(ACTIONS["search_log"].arguments["properties"])
    assert effective["limit"] == 50


def test_bindings_are_json_and_describe_every_argument():
    for binding in bindings():
        to_bytes(binding)
        assert binding["arguments"]["additionalProperties"] is False
        for part in binding["arguments"]["properties"].values():
            assert part["description"]


def test_documents_are_the_same_bytes_whatever_the_hash_seed(tmp_path):
    """Run the same actions in processes with different seeds and compare their digests."""
    script = tmp_path / "script.py"
    folder = Path(__file__).parent
    script.write_text(
        "import importlib.util, sys\n"
        f"sys.path.insert(0, {str(folder.parents[2])!r})\n"
        "def load(name):\n"
        f"    path = {str(folder)!r} + f'/{{name}}.py'\n"
        "    spec = importlib.util.spec_from_file_location(name, path)\n"
        "    module = importlib.util.module_from_spec(spec)\n"
        "    spec.loader.exec_module(module)\n"
        "    return module\n"
        "conftest, tests = load('conftest'), load('test_actions')\n"
        "from ledger.canonical import digest, to_bytes\n"
        "from phases.investigation.actions import perform\n"
        "from phases.investigation.snapshot import Snapshot\n"
        "data = conftest.database('create table t(a, b text)',"
        ' \'insert into t values (1, "x"), (2, "y "), (3, null)\')\n'
        "case = conftest.build(tests.FILES, {'app.log': tests.LOG}, {'shop.db': data})\n"
        "with Snapshot.of(case) as snapshot:\n"
        "    for name, arguments in tests.EVERY:\n"
        "        found = perform(snapshot, name, arguments)\n"
        "        print(name, digest(to_bytes(found.document)))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, str(script)], check=True, capture_output=True, text=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone}, cwd=tmp_path,
        ).stdout
        for seed, zone in (("0", "UTC"), ("1", "Asia/Tokyo"))
    }  # fmt: skip
    assert len(outputs) == 1
    assert outputs.pop().count("sha256:") == len(EVERY)


EVERY = [
    ("list_files", {}),
    ("search_code", {"query": "total"}),
    ("search_code", {"query": "total of the items", "mode": "ranked"}),
    ("find_symbol", {"name": "total"}),
    ("find_references", {"name": "price"}),
    ("read_lines", {"path": "shop/cart.py"}),
    ("search_log", {"query": "shop"}),
    ("read_log", {}),
    ("describe_database", {}),
    ("profile_table", {"table": "t"}),
    ("query_database", {"sql": "select * from t"}),
]


def test_a_wide_table_leaves_room_for_its_findings(make, sql):
    columns = [f"a_column_with_a_long_name_{i}" for i in range(40)]
    data = sql(
        f"create table t(id integer primary key, {', '.join(columns)}, code text)",
        "with recursive n(i) as (select 1 union all select i + 1 from n limit 100) "
        "insert into t(id, code) select i, 'C-' || i from n",
        "update t set code = 'C-1' where id = 50",
    )
    with make(databases={"a.db": data}) as snapshot:
        document = ask(snapshot, "profile_table", table="t", characters=4000)
        assert "near_unique" in [f["kind"] for f in document["result"]["findings"]]
        assert len(to_bytes(document)) < 8000
