"""Signals for places: each on a small view made up here."""

from __future__ import annotations

from typing import Any

from phases.providers.offline.assess import Analysis
from phases.providers.offline.case import Case
from phases.providers.offline.looks import looked_up_by
from phases.providers.offline.telling import telling_lines

Json = dict[str, Any]


def view_of(report: str, files: list[str], evidence: list[Json], **more: Any) -> Json:
    items = [
        {"path": path, "role": role, "lines": 40, "size": 900}
        for path, _, role in (f.partition(":") for f in files)
    ]
    observation = {"id": "O1", "artifact": "S1", "kind": "report_block", "first_line": 1}
    return {
        "sources": {
            "artifacts": [{"id": "S1", "kind": "report"}],
            "observations": [{**observation, "text": report}],
        },
        "catalogs": {"files": {"items": items}, **more},
        "hypotheses": [],
        "evidence": evidence,
    }


def read(name: str, path: str, *lines: str) -> Json:
    return {
        "id": name, "action": "read_lines", "arguments": {"path": path, "first": 1},
        "found": True, "complete": True,
        "result": {"blocks": [{"path": path, "first": 1, "lines": list(lines)}]},
    }  # fmt: skip


def searched(name: str, mode: str, query: str, *hits: tuple[str, int, str]) -> Json:
    return {
        "id": name, "action": "search_code", "arguments": {"mode": mode, "query": query},
        "found": bool(hits), "complete": True, "page": {"total": len(hits)},
        "result": {
            "hits": [{"path": path, "line": line} for path, line, _ in hits],
            "blocks": [{"path": path, "first": line, "lines": [text]} for path, line, text in hits],
        },
    }  # fmt: skip


def first(view: Json) -> str:
    return Analysis(Case(view)).places[0].path


def kinds(view: Json, path: str) -> set[str]:
    (place,) = [p for p in Analysis(Case(view)).places if p.path == path]
    return {signal.kind for signal in place.signals}


def test_roles_put_tests_behind_sources() -> None:
    hits = ("tests/test_pump.py", 1, "pump leak"), ("garden/pump.py", 1, "pump leak")
    view = view_of(
        "# Pump leaks", ["garden/pump.py:source", "tests/test_pump.py:test"],
        [searched("E1", "ranked", "Pump leaks", *hits)],
    )  # fmt: skip
    assert first(view) == "garden/pump.py"


def test_the_innermost_frame_beats_its_callers_when_the_language_complains() -> None:
    report = (
        "# Broken\n\nTraceback (most recent call last):\n"
        '  File "/v/site-packages/garden/run.py", line 2, in run\n    go()\n'
        '  File "/v/site-packages/garden/pump.py", line 2, in go\n    x[3]\nIndexError: out\n'
    )
    view = view_of(
        report, ["garden/run.py:source", "garden/pump.py:source"],
        [read("E1", "garden/run.py", "def run():", "    go()"),
         read("E2", "garden/pump.py", "def go():", "    x[3]")],
    )  # fmt: skip
    assert first(view) == "garden/pump.py"
    assert "frame" in kinds(view, "garden/run.py")


def test_the_code_that_writes_the_errors_text_is_likely() -> None:
    view = view_of(
        "# Fails\n\n```\nPumpError: no water left in tank 7\n```\n",
        ["garden/a.py:source", "garden/b.py:source"],
        [searched("E1", "literal", "no water left in tank", ("garden/b.py", 3, "raise PumpError")),
         searched("E2", "ranked", "Fails", ("garden/a.py", 1, "x"))],
    )  # fmt: skip
    assert "message" in kinds(view, "garden/b.py")


def test_a_module_that_is_not_installed_points_at_packaging() -> None:
    view = view_of(
        "# Import fails\n\n```\nModuleNotFoundError: No module named 'garden.pumps'\n```\n",
        ["garden/__init__.py:source", "garden/pumps/x.py:source", "setup.cfg:config"],
        [read("E1", "setup.cfg", "[options]", "packages = garden"),
         searched("E2", "ranked", "Import", ("garden/__init__.py", 1, "import"))],
    )  # fmt: skip
    assert first(view) == "setup.cfg"


def profile(kind: str = "near_unique") -> Json:
    finding = {
        "kind": kind, "table": "plot", "odd": ["label"], "says": "is different in all but these",
        "total": 2, "columns": ["id", "garden", "label"], "rows": [[1, 1, "P-77"], [9, 2, "P-77"]],
    }  # fmt: skip
    return {
        "id": "E9", "action": "profile_table", "arguments": {"table": "plot"},
        "result": {"database": "S4", "unique": [["id"], ["garden", "label"]],
                   "findings": [finding]},
    }  # fmt: skip


def test_a_line_that_goes_by_half_a_key_is_found() -> None:
    half = "join plot p on p.label = c.label"
    whole = "join plot p on p.label = c.label and p.garden = c.garden"
    view = view_of(
        "# Plot P-77 shows the wrong crop", ["garden/a.py:source", "garden/b.py:source"],
        [profile(), searched("E1", "regex", looked_up_by("label"), ("garden/b.py", 5, whole),
                             ("garden/a.py", 5, half))],
    )  # fmt: skip
    analysis = Analysis(Case(view))
    assert analysis.places[0].path == "garden/a.py"
    assert analysis.decisive[0].codes == ("P-77",)
    assert analysis.corpus.rest_of_key(("label",)) == ["garden"]


def test_values_that_an_error_quotes_are_compared_with_their_blanks() -> None:
    report = "# Job stops\n\n```\nKeyError: 'EAST '\n```\n"
    odd = profile("stray_blanks")
    odd["result"]["findings"][0] |= {"odd": ["zone"], "columns": ["id", "zone"],
                                     "rows": [[5, "EAST "]]}  # fmt: skip
    assert Analysis(Case(view_of(report, [], [odd]))).decisive[0].codes == ("EAST ",)
    odd["result"]["findings"][0]["rows"] = [[5, "EAST"]]
    assert not any(o.codes for o in Analysis(Case(view_of(report, [], [odd]))).odd)


def test_a_line_that_holds_a_constant_counts_for_the_function_that_uses_it() -> None:
    lines = ["PLOTS = (", '    "select * from plot p join crop c on p.label = c.label"', ")", "",
             "", "def other():", "    return 1", "", "", "def crops(db):",
             "    return db.run(PLOTS)"]  # fmt: skip
    view = view_of(
        "# Plot P-77 shows the wrong crop", ["garden/a.py:source"],
        [profile(), read("E1", "garden/a.py", *lines),
         searched("E2", "regex", looked_up_by("label"), ("garden/a.py", 2, lines[1]))],
    )  # fmt: skip
    (place,) = Analysis(Case(view)).places
    assert place.functions[0][1].qualified == "crops"


def test_a_frame_in_a_built_copy_counts_for_the_source() -> None:
    report = (
        "# Fails\n\n```\nError: x\n    at pour (/app/node_modules/garden/dist/garden.cjs:900:3)\n"
        "    at run (/app/index.js:1:1)\n```\n"
    )
    symbol = {"path": "lib/pump.js", "name": "pour", "qualified": "pour", "kind": "function",
              "first": 3, "last": 9}  # fmt: skip
    found = {"id": "E1", "action": "find_symbol", "arguments": {"name": "pour"},
             "result": {"symbols": [symbol], "blocks": []}}  # fmt: skip
    view = view_of(report, ["lib/pump.js:source", "dist/garden.cjs:built_copy"], [found])
    assert first(view) == "lib/pump.js"
    assert "frame" in kinds(view, "lib/pump.js")


def test_who_catches_an_error_that_only_the_log_shows_is_likely() -> None:
    trace = (
        "2031-01-01 ERROR garden: stopped\nTraceback (most recent call last):\n"
        '  File "/v/site-packages/garden/night.py", line 4, in water\n    pour(plot)\n'
        '  File "/v/site-packages/garden/pump.py", line 2, in pour\n    raise PumpError("dry")\n'
        "PumpError: dry\n"
    )
    view = view_of(
        "# Half of the plots stay dry", ["garden/night.py:source", "garden/pump.py:source"],
        [read("E1", "garden/night.py", "def water(plots):", "    for plot in plots:",
              "        try:", "            pour(plot)", "        except Exception:",
              "            log.exception('x')", "            break"),
         read("E2", "garden/pump.py", "def pour(plot):", '    raise PumpError("dry")')],
    )  # fmt: skip
    log = {"id": "O2", "artifact": "S3", "kind": "log_excerpt", "first_line": 1, "text": trace}
    view["sources"]["artifacts"].append({"id": "S3", "kind": "log"})
    view["sources"]["observations"].append(log)
    assert first(view) == "garden/night.py"
    assert "caught" in kinds(view, "garden/night.py")


def test_what_a_named_function_calls_by_a_word_of_the_title_is_looked_at() -> None:
    symbol = {"path": "lib/zones/far.js", "name": "offset", "qualified": "Far.offset",
              "kind": "function", "first": 3, "last": 4}  # fmt: skip
    block = {"path": "lib/zones/far.js", "first": 3, "lines": ["  offset(t) {", "  }"]}
    named = {"id": "E2", "action": "find_symbol", "arguments": {"name": "offset"},
             "result": {"symbols": [symbol], "blocks": [block]}}  # fmt: skip
    view = view_of(
        "# Wrong offset before noon\n\n`setPlace()` shows it.",
        ["lib/time.js:source", "lib/zones/far.js:source"],
        [read("E1", "lib/time.js", "function setPlace(t) {", "  return place.offset(t);", "}"),
         named],
    )  # fmt: skip
    assert list(Analysis(Case(view)).ranker.structure.inner_names) == ["offset"]
    assert "callee" in kinds(view, "lib/zones/far.js")


def test_a_function_that_a_named_one_calls_comes_before_others_that_fit_as_well() -> None:
    lines = ["def water(plot):", "    return _pour(plot)", "", "def _spill(plot):",
             "    return plot.litres", "",
             "def _pour(plot):", "    return plot.litres"]  # fmt: skip
    view = view_of("# Too little\n\n`water()` gives half the litres.", ["garden/can.py:source"],
                   [read("E1", "garden/can.py", *lines)])  # fmt: skip
    names = [d.name for _, d in Analysis(Case(view)).places[0].functions]
    assert names.index("_pour") < names.index("_spill")


def test_lines_of_documentation_are_not_what_a_reader_is_sent_to() -> None:
    lines = ["def water(plot):", '    """Give litres of water to a plot.', "",
             "    If the plot is dry, litres of water are doubled.", '    """',
             '    query = """SELECT litres FROM plot WHERE dry"""', "    if plot.litres > 4:",
             "        return 4"]  # fmt: skip
    view = view_of("# Wrong litres of water for a dry plot", ["garden/can.py:source"],
                   [read("E1", "garden/can.py", *lines)])  # fmt: skip
    analysis = Analysis(Case(view))
    found = telling_lines(analysis.clues, analysis.corpus, "garden/can.py", 1, len(lines))
    assert [item.line for item in found] == [6, 7]


def test_the_key_of_a_reported_row_ties_odd_rows_of_other_tables() -> None:
    odd = profile("mixed_types")
    odd["result"]["findings"][0] |= {"odd": ["amount"], "columns": ["id", "plot_id", "amount"],
                                     "rows": [[5, 77, "3 l"]]}  # fmt: skip
    rows = {
        "id": "E8", "action": "query_database", "arguments": {"sql": "select"},
        "result": {"database": "S4", "columns": ["plot_id", "label"], "rows": [[77, "P-77"]]},
    }  # fmt: skip
    analysis = Analysis(Case(view_of("# Plot P-77 is wet", [], [odd, rows])))
    assert analysis.decisive[0].links == (("P-77", "plot_id=77"),)


def test_an_argument_chooses_among_siblings() -> None:
    files = ["spell/lang_de.py:source", "spell/lang_es.py:source", "spell/escape.py:source",
             "tests/lang_es.py:test"]  # fmt: skip
    view = view_of("# Wrong word\n\n```\n>>> spell(4, lang='es')\n```\n", files, [])
    assert first(view) == "spell/lang_es.py"
    assert kinds(view, "spell/lang_es.py") == {"chosen"}
    assert len(Analysis(Case(view)).places) == 1


def test_a_folder_may_say_what_the_argument_is_for() -> None:
    files = ["db/dialects/sqlite.py:source", "db/dialects/oracle.py:source", "db/sqlite.py:source"]
    view = view_of("# Wrong column\n\n`connect(dialect='sqlite')` fails.\n", files, [])
    assert "chosen" in kinds(view, "db/dialects/sqlite.py")
    assert [p.path for p in Analysis(Case(view)).places if p.path == "db/sqlite.py"] == []


def test_only_the_innermost_of_our_lines_points_at_a_file() -> None:
    report = (
        "# Broken\n\nTraceback (most recent call last):\n"
        '  File "/v/site-packages/garden/run.py", line 2, in run\n    go()\n'
        '  File "/v/site-packages/garden/pump.py", line 2, in go\n    x[3]\nPumpError: out\n'
    )
    view = view_of(report, ["garden/run.py:source", "garden/pump.py:source"], [])
    analysis = Analysis(Case(view))
    pointed = {place.path: analysis.points_directly(place) for place in analysis.places}
    assert pointed == {"garden/pump.py": True, "garden/run.py": False}
