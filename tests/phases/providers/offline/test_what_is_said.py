"""Signals from what a program prints and logs, and from what its users type: made-up gardens."""

from __future__ import annotations

from typing import Any

import pytest

from phases.providers.offline.answers import answer_view
from phases.providers.offline.assess import Analysis
from phases.providers.offline.case import Case
from phases.providers.offline.clues import Clues
from phases.providers.offline.data import reported_keys, ties
from tests.phases.providers.offline.test_signals import Json, first, kinds, read, searched, view_of

SOURCES = ["garden/pump.py:source", "garden/well.py:source"]


def with_log(report: str, log: str, files: list[str], evidence: list[Json]) -> Json:
    view = view_of(report, files, evidence)
    view["sources"]["artifacts"].append({"id": "S3", "kind": "log"})
    view["sources"]["observations"].append(
        {"id": "O2", "artifact": "S3", "kind": "log_excerpt", "first_line": 1, "text": log}
    )
    return view


def looked_for(code: str, *lines: str) -> Json:
    return {
        "id": "E5", "action": "search_log", "arguments": {"query": code}, "found": True,
        "result": {"blocks": [{"artifact": "S3", "first": 1, "lines": list(lines)}]},
    }  # fmt: skip


# What the program prints ------------------------------------------------------------------------

PRINTED = """# The motor stops

```
$ garden water --plot 7
Valve refused the pressure of '7 bar' at plot 7
$ garden stop
```
It says "Nothing to water" at the end.
"""


def test_sentences_that_a_program_prints_are_known_by_their_constant_part() -> None:
    said = Clues(Case(view_of(PRINTED, SOURCES, []))).printed
    assert said == ["Nothing to water", "Valve refused the pressure of"]


def test_who_writes_what_was_printed_is_likely() -> None:
    wrote = searched("E1", "literal", "Valve refused the pressure of",
                     ("garden/well.py", 3, 'f"Valve refused the pressure of {x}"'))  # fmt: skip
    other = searched("E2", "ranked", "motor stops", ("garden/pump.py", 1, "motor"))
    view = view_of(PRINTED, SOURCES, [wrote, other])
    assert first(view) == "garden/well.py"
    assert "printed" in kinds(view, "garden/well.py")


@pytest.mark.parametrize("line", [
    "The above exception was the direct cause of the following exception:",
    "pip install the garden package", ">>> print the whole garden", "  at water the garden",
])  # fmt: skip
def test_what_people_type_and_the_language_prints_is_not_the_programs(line: str) -> None:
    assert Clues(Case(view_of(f"# Stops\n\n```\n{line}\n```\n", SOURCES, []))).printed == []


# What people type -------------------------------------------------------------------------------


def test_an_option_is_the_name_of_a_parameter() -> None:
    view = view_of("# Too wet\n\n`garden water --dry-plots` waters all.", SOURCES, [])
    assert "dry_plots" in Clues(Case(view)).symbols


def test_functions_of_the_reporters_example_are_not_the_programs_but_hooks_are() -> None:
    example = (
        "```python\ndef my_plot(x):\n    pass\nclass Bed(Plot):\n    def pour_out(self): ...\n```"
    )
    names = Clues(
        Case(view_of(f"# Dry\n\n{example}\n`my_plot()` and `pour_out()`", [], []))
    ).symbols
    assert "pour_out" in names
    assert "my_plot" not in names


def test_a_name_that_all_sources_are_below_tells_nothing() -> None:
    files = ["garden/pump.py:source", "garden/well.py:source", "tests/a.py:test", *(
        f"docs/{n}.md:docs" for n in range(40))]  # fmt: skip
    assert Analysis(Case(view_of("# The garden is dry", files, []))).places == []


def test_what_stands_in_a_hidden_folder_is_hardly_the_fault() -> None:
    hits = ("ci/.hooks/pump.py", 1, "pump leak"), ("garden/pump.py", 1, "pump leak")
    view = view_of("# Pump leaks", ["ci/.hooks/pump.py:source", "garden/pump.py:source"],
                   [searched("E1", "ranked", "Pump leaks", *hits)])  # fmt: skip
    assert first(view) == "garden/pump.py"


# What is packaged -------------------------------------------------------------------------------

UNPACKED = "# Leaflets are missing from the source archive\n\nThe sdist has no `leaflets/`."


def test_what_a_package_lacks_was_not_declared() -> None:
    view = view_of(UNPACKED, ["garden/leaflets.py:source", "pyproject.toml:config"], [
        read("E1", "pyproject.toml", "[tool.build]", 'include = ["garden"]'),
        searched("E2", "ranked", "Leaflets", ("garden/leaflets.py", 1, "leaflets"))])  # fmt: skip
    assert first(view) == "pyproject.toml"
    assert "packaged" in kinds(view, "pyproject.toml")


@pytest.mark.parametrize("report", [
    "# Leaflets are missing\n\nInstalled from the wheel.",
    "# The wheel is built twice\n\nThe sdist too.",
])  # fmt: skip
def test_a_report_that_only_speaks_of_packages_points_at_no_declaration(report: str) -> None:
    assert not Clues(Case(view_of(report, [], []))).lacks_files


@pytest.mark.parametrize(("message", "missing"), [
    ("cannot import name 'pump' from 'garden' (/v/garden/__init__.py)", ["garden.pump"]),
    ("cannot import name 'hose' from 'garden' (/v/garden/__init__.py)", []),
    ("cannot import name 'x' from partially initialized module 'garden.pump'", []),
])  # fmt: skip
def test_only_a_module_of_the_tree_can_have_been_left_out(message: str, missing: list[str]) -> None:
    report = f"# Import fails\n\n```\nImportError: {message}\n```\n"
    files = ["garden/__init__.py:source", "garden/pump.py:source"]
    assert Clues(Case(view_of(report, files, []))).missing_modules == missing


def test_a_file_without_functions_is_compared_as_a_whole() -> None:
    page = read("E1", "themes/leaflet.html", "<p>byline of the leaflet</p>", "<hr>")
    view = view_of("# The byline of a leaflet is empty", ["themes/leaflet.html:source"], [page])
    (place,) = Analysis(Case(view)).places
    assert "text" in {signal.kind for signal in place.signals}
    assert place.functions == []


# Stack traces -----------------------------------------------------------------------------------

SLIP = """# Broken

```
Traceback (most recent call last):
  File "/v/site-packages/garden/pump.py", line 2, in water_the_broken_plots
    pour(plot)
  File "/v/site-packages/garden/pump.py", line 9, in pour
    x[3]
IndexError: out of range
```
"""


def test_where_the_language_complains_the_innermost_function_comes_first() -> None:
    lines = ["def water_the_broken_plots(plot):", "    pour(plot)  # broken plots out of range", "",
             "", "class Can:", "    def pour(self):", "        return 1", "def pour(x):",
             "    x[3]"]  # fmt: skip
    view = view_of(SLIP, ["garden/pump.py:source"], [read("E1", "garden/pump.py", *lines)])
    functions = Analysis(Case(view)).places[0].functions
    assert functions[0][1].qualified == "pour"
    assert functions[0][1].first == 8  # the line is in it; another function has the name only


def test_an_exception_of_any_name_is_known_by_its_module() -> None:
    report = "# Wet\n\n```\ngarden.pump.TooWet: plot 7\n```\nSee `garden.pump.pour`."
    assert [kind for kind, *_ in Clues(Case(view_of(report, [], []))).errors] == [
        "garden.pump.TooWet"
    ]


# Logs -------------------------------------------------------------------------------------------


def logged(record: str) -> str:
    trace = (
        "Traceback (most recent call last):\n"
        '  File "/v/site-packages/garden/pump.py", line 2, in pour\n    send(plot)\n'
    )
    return f"2031-05-01 10:00:00 INFO garden: ok\n2031-05-01 10:00:01 {record}\n{trace}"


@pytest.mark.parametrize("text", [
    logged("ERROR garden: no answer") + "ConnectionRefusedError: [Errno 111] Connection refused",
    logged("ERROR garden: not stored") + "OSError: [Errno 28] No space left on device",
    logged("ERROR garden: plot P-801 stays dry") + "KeyError: 'depth'",
])  # fmt: skip
def test_a_logged_error_of_an_outage_or_of_other_things_is_set_aside(text: str) -> None:
    view = with_log("# Plot P-77 is wet", text, SOURCES, [])
    clues = Clues(Case(view))
    assert clues.frames == []
    assert clues.errors == []
    assert len(clues.set_aside) == 1


def test_the_diagnosis_tells_which_logged_error_was_set_aside() -> None:
    text = logged("ERROR garden: no answer") + "ConnectionRefusedError: [Errno 111] refused"
    said = answer_view("diagnosis", with_log("# Plot P-77 is wet", text, SOURCES, []))
    assert any(
        "logged ConnectionRefusedError in O2" in item and "set aside" in item
        for item in said["unknowns"]
    )


@pytest.mark.parametrize(("report", "text"), [
    ("# Plot P-77 is wet", logged("ERROR garden: plot P-77 fails") + "KeyError: 'depth'"),
    ("# Plots are wet", logged("ERROR garden: plot P-801 stays dry") + "KeyError: 'depth'"),
    ("# Hangs", "Timeout (0:00:05)!\nThread 0x1 (most recent call first):\n"
     '  File "/v/site-packages/garden/pump.py", line 2 in pour'),
    ("# Fails\n\n```\nConnectionError: refused\n```",
     logged("ERROR garden: no answer") + "ConnectionRefusedError: [Errno 111] refused"),
])  # fmt: skip
def test_a_logged_error_that_may_be_the_reports_stays(report: str, text: str) -> None:
    clues = Clues(Case(with_log(report, text, SOURCES, [])))
    assert [linked.path for linked in clues.frames] == ["garden/pump.py"]


def test_the_module_that_last_logged_what_the_report_names_is_likely() -> None:
    lines = ("2031-05-01 10:00:00 INFO [garden.pump] plot P-77: opened by hand",
             "2031-05-01 10:05:00 INFO [garden.well] plot P-77: closed for the night")  # fmt: skip
    view = with_log(
        "# Plot P-77 is wet", "2031-05-01 INFO x", SOURCES, [looked_for("P-77", *lines)]
    )
    assert first(view) == "garden/well.py"
    assert kinds(view, "garden/well.py") == {"logged"}


def test_what_the_logging_function_calls_takes_part() -> None:
    files = ["garden/well.py:source", "garden/clock.py:source"]
    line = "2031-05-01 10:05:00 INFO garden.well: plot P-77 closed for the night"
    view = with_log("# Plot P-77 is wet", "2031-05-01 INFO x", files, [
        looked_for("P-77", line),
        read("E1", "garden/well.py", "def close(plot):", "    if clock.is_night(plot.at):",
             '        log("plot %s closed for the night", plot)'),
        read("E2", "garden/clock.py", "def is_night(at):", "    return at.hour > 21")])  # fmt: skip
    assert "log reach" in kinds(view, "garden/clock.py")


# Data -------------------------------------------------------------------------------------------

PLOT = {
    "id": "E7", "action": "query_database", "arguments": {"sql": "select"},
    "result": {"database": "S4", "columns": ["id", "label"], "rows": [[77, "P-77"]],
               "provenance": {"tables": ["plot"]}},
}  # fmt: skip


def depths(kind: str = "mixed_types", total: int = 900, **more: Any) -> Json:
    finding = {
        "kind": kind, "table": "sample", "odd": ["depth"], "says": "stores more than one type",
        "total": total, "columns": ["id", "plot_id", "depth"], "rows": [[1, 4, "3 m"]],
        "where": "typeof(depth) = 'text'", **more,
    }  # fmt: skip
    return {"id": "E9", "action": "profile_table", "arguments": {"table": "sample"},
            "result": {"database": "S4", "unique": [["id"]], "findings": [finding]}}  # fmt: skip


def test_odd_rows_that_are_not_shown_are_asked_for_by_the_reports_key() -> None:
    view = view_of("# Plot P-77 is wet", [], [PLOT, depths()])
    analysis = Analysis(Case(view))
    keys = reported_keys(analysis.clues, analysis.corpus)
    (tie,) = ties(analysis.corpus.findings[0], keys)
    assert tie.sql == (
        'SELECT "id", "plot_id", "depth" FROM "sample" WHERE (typeof(depth) = \'text\') '
        'AND "plot_id" = 77 ORDER BY 1 LIMIT 5'
    )
    answer = {"id": "E8", "action": "query_database", "arguments": {"sql": tie.sql},
              "result": {"database": "S4", "columns": ["id", "plot_id", "depth"],
                         "rows": [[9, 77, "2 m"]]}}  # fmt: skip
    tied = Analysis(Case(view_of("# Plot P-77 is wet", [], [PLOT, depths(), answer]))).odd[0]
    assert tied.codes == ("P-77",)
    empty = {**answer, "result": {**answer["result"], "rows": []}}
    assert (
        Analysis(Case(view_of("# Plot P-77 is wet", [], [PLOT, depths(), empty]))).odd[0].codes
        == ()
    )


def test_a_key_is_known_by_the_name_that_other_tables_declare_for_it() -> None:
    columns = [{"name": "id", "type": "INTEGER"}, {"name": "bed", "type": "INTEGER"}]
    declared = {"name": "sample", "rows": 9, "columns": columns,
                "references": [{"columns": ["bed"], "table": "plot", "to": ["id"]}]}  # fmt: skip
    listing = {"artifact": "S4", "name": "x", "tables": [declared]}
    view = view_of("# Plot P-77 is wet", [], [PLOT], databases=[listing])
    case = Case(view)
    keys = reported_keys(Clues(case), Analysis(case).corpus)
    assert keys == {("bed", 77): "P-77", ("plot_id", 77): "P-77"}


def test_what_the_report_says_of_a_row_is_the_symptom_and_no_odd_value() -> None:
    named: Json = {"rows": [[1, 77, "under water"]], "total": 1}
    symptom = view_of("# Plot P-77 is under water", [], [PLOT, depths("rare_value", **named)])
    cause = view_of("# Plot P-77 is wet", [], [PLOT, depths("rare_value", **named)])
    assert Analysis(Case(symptom)).odd[0].codes == ()
    assert Analysis(Case(cause)).odd[0].codes == ("P-77",)


def test_one_null_in_a_list_that_is_excluded_explains_a_report_by_itself() -> None:
    nulls = depths("rare_null", total=1, odd=["plot_id"], rows=[[1, None, 3]], where="x")
    view = view_of("# No plot is watered any more", ["garden/well.py:source"], [
        nulls, read("E1", "garden/well.py", "def dry(con):", '    return con.execute("""',
                    "        select * from plot where id not in (select s.plot_id from sample s)",
                    '    """)')])  # fmt: skip
    (use, *_) = Analysis(Case(view)).ranker.tracer.uses
    assert (use.way, use.line) == ("not in", 3)
    assert use.points == Analysis(Case(view)).ranker.points.data
