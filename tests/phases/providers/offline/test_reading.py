"""How reports, traces and code are read: on material made up here."""

from __future__ import annotations

from typing import Any

import pytest

from phases.providers.offline.case import Case, Observation
from phases.providers.offline.catalog import Catalog
from phases.providers.offline.clues import Clues
from phases.providers.offline.frames import frames
from phases.providers.offline.mentions import error_lines, mentions
from phases.providers.offline.outline import outline
from phases.providers.offline.report import pieces, sentences
from phases.providers.offline.words import is_identifier, split, stem

CHAINED = """Traceback (most recent call last):
  File "/srv/app/venv/lib/python3.11/site-packages/garden/plants.py", line 12, in water
    self.pump.start()
OSError: pump is stuck

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/app/main.py", line 3, in <module>
    water()
  File "/srv/app/venv/lib/python3.11/site-packages/garden/plants.py", line 15, in rescue
    self.log(pump)
  File "/usr/lib/python3.11/logging/__init__.py", line 1, in log
    pass
NameError: name 'pump' is not defined
"""


def shape(text: str) -> list[tuple[str, int, str, int]]:
    return [(f.path, f.line, f.name, f.depth) for f in frames(text, "O1")]


def test_chained_tracebacks_each_have_an_innermost_frame() -> None:
    assert shape(CHAINED) == [
        ("garden/plants.py", 12, "water", 0),
        ("garden/plants.py", 15, "rescue", 1),
        ("/srv/app/main.py", 3, "", 2),
    ]


def test_a_log_prefix_does_not_hide_frames() -> None:
    text = "\n".join(f"2024-01-01 10:00 ERROR {line}" for line in CHAINED.split("\n"))
    assert [f.line for f in frames(text, "O1")] == [12, 15, 3]


def test_faulthandler_lists_the_innermost_first() -> None:
    text = """Fatal Python error: Segmentation fault
Current thread 0x00007f (most recent call first):
  File "/x/site-packages/garden/soil.py", line 7 in dig
  File "/x/run.py", line 2 in <module>
"""
    assert shape(text) == [("garden/soil.py", 7, "dig", 0), ("/x/run.py", 2, "", 1)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("    at water (/app/node_modules/garden/lib/pump.js:10:5)", ("lib/pump.js", 10, "water")),
        ("    at /app/node_modules/@own/garden/lib/pump.js:10:5", ("lib/pump.js", 10, "")),
        ("    at new Pump (/app/src/pump.js:1:2)", ("/app/src/pump.js", 1, "Pump")),
        ("    at Object.<anonymous> (/app/a.js:3:1)", ("/app/a.js", 3, "Object.<anonymous")),
        ("    at Pump.<computed> [as get] (/app/a.js:3:1)", ("/app/a.js", 3, "Pump.<computed")),
        ("    at async pour (file:///app/a.mjs:4:9)", ("/app/a.mjs", 4, "pour")),
    ],
)
def test_javascript_frames(line: str, expected: tuple[str, int, str]) -> None:
    (frame,) = frames(f"TypeError: x\n{line}\n    at node:internal/process:1:1", "O1")
    assert (frame.path, frame.line, frame.name) == expected
    assert frame.depth == 0


def kinds(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for mention in mentions(text):
        found.setdefault(mention.kind, []).append(mention.name)
    return found


def test_mentions_are_told_apart() -> None:
    found = kinds(
        "Order `AB-1204` of 2024-03-05 cost 1.250,00 in garden 2.1.0; `water_all()` in "
        "garden/pump.py raises PumpStuckError with --dry-run and PUMP_LIMIT set.\n$ garden run\n"
    )
    assert "AB-1204" in found["identifier"]
    assert found["moment"] == ["2024-03-05"]
    assert "1.250,00" in found["value"]
    assert "garden 2.1.0" in found["package"]
    assert "water_all" in found["symbol"]
    assert "garden/pump.py" in found["file"]
    assert "PumpStuckError" in found["error"]
    assert {"--dry-run", "PUMP_LIMIT"} <= set(found["configuration"])
    assert found["command"] == ["garden run"]


def test_dates_and_standards_are_no_codes() -> None:
    assert "identifier" not in kinds("on 2024-03-05 in UTF-8, as ISO-8601 says, since 2024-03")


def test_error_lines_give_type_and_message() -> None:
    assert error_lines("x\nKeyError: 'a b'\nfine: not an error\n") == [("KeyError", "'a b'")]


def case_of(report: str, *files: str) -> Case:
    observation = {"id": "O1", "artifact": "S1", "kind": "report_block", "first_line": 1}
    items = [{"path": f, "role": "source", "lines": 9, "size": 99} for f in files]
    view: dict[str, Any] = {
        "sources": {
            "artifacts": [{"id": "S1", "kind": "report"}],
            "observations": [{**observation, "text": report}],
        },
        "catalogs": {"files": {"items": items}},
    }
    return Case(view)


def test_sections_are_known_by_heading_and_by_label() -> None:
    report = (
        "# It leaks\n\nWater runs out.\n\n## Expected behaviour\nNo water.\n\nActual: a flood.\n"
    )
    found = [(p.section, p.text) for p in pieces(case_of(report).report)]
    assert found == [
        ("title", "It leaks"),
        ("", "Water runs out."),
        ("expected", "No water."),
        ("observed", "a flood."),
    ]


def test_sentences_keep_abbreviations_together() -> None:
    assert sentences("Use e.g. Water. It leaks. Why?") == ["Use e.g. Water.", "It leaks.", "Why?"]


def test_installed_frames_need_the_whole_path() -> None:
    case = case_of("x", "src/garden/util/tools.py")
    catalog = Catalog(case)
    ours, theirs = frames(
        'File "/v/site-packages/garden/util/tools.py", line 1, in f\n'
        'File "/v/site-packages/meadow/util/tools.py", line 1, in f\n',
        "O1",
    )
    assert catalog.of_frame(ours) == ""  # the last frame printed is the innermost
    assert catalog.of_frame(theirs) == "src/garden/util/tools.py"


def test_dotted_names_mean_modules() -> None:
    catalog = Catalog(case_of("x", "src/garden/pump.py", "src/garden/__init__.py"))
    assert catalog.modules("garden.pump.start") == ["src/garden/pump.py"]
    assert catalog.modules("meadow.pump") == []


def test_words_are_split_and_reduced() -> None:
    assert split("openHTTPItems_2") == ("open", "http", "items", "2")
    assert {stem("renames"), stem("renamed"), stem("renaming"), stem("rename")} == {"renam"}
    assert is_identifier("plant_bed")
    assert is_identifier("pump.start")
    assert not is_identifier("water")


def test_the_title_weighs_more_than_prose_and_versions_least() -> None:
    weights = Clues(case_of("# Pump leaks\n\nThe hose is fine.\n\nVersions: valve 2")).weights
    assert weights["pump"] > weights["hos"] > weights["valv"]


def numbered(text: str, first: int = 1) -> dict[int, str]:
    return dict(enumerate(text.split("\n"), first))


def test_python_outline_from_indentation() -> None:
    text = '''class Pump:
    """A pump."""

    def start(
        self,
    ):
        return 1

    async def stop(self):
        def inner():
            pass

        return inner


def alone():
    pass
'''
    found = [(d.qualified, d.first, d.last) for d in outline("a.py", numbered(text))]
    assert found == [
        ("Pump", 1, 13),
        ("Pump.start", 4, 7),
        ("Pump.stop", 9, 13),
        ("Pump.stop.inner", 10, 11),
        ("alone", 16, 17),
    ]


def test_javascript_outline_from_braces() -> None:
    text = """class Pump {
  start(a, b) {
    if (a) {
      return b;
    }
  }
}
proto.handle = function handle(x) {
  return x;
};
const pour = async (x) => {
  return x;
};
export function fill() {
}
"""
    found = [(d.qualified, d.first, d.last) for d in outline("a.js", numbered(text))]
    assert found == [
        ("Pump", 1, 7),
        ("Pump.start", 2, 6),
        ("handle", 8, 10),
        ("pour", 11, 13),
        ("fill", 14, 15),
    ]


def test_an_outline_stops_where_lines_are_not_known() -> None:
    lines = numbered("def a():\n    x = 1") | numbered("    y = 2\n\ndef b():\n    pass", 40)
    found = [(d.qualified, d.first, d.last) for d in outline("a.py", lines)]
    assert found == [("a", 1, 2), ("b", 42, 43)]


def told(text: str) -> list[tuple[str, bool, str]]:
    found = pieces([Observation("O1", "S1", "report", 1, text)])
    return [(piece.section, piece.code, piece.text) for piece in found]


@pytest.mark.parametrize(
    ("label", "section"),
    [("Expected:", "expected"), ("Actual output:", "observed"), ("We get:", "observed"),
     ("**It should be:**", "expected"), ("This prints:", "observed"), ("The garden:", "")],
)  # fmt: skip
def test_a_label_on_its_own_says_what_the_code_below_it_is(label: str, section: str) -> None:
    text = f"# Pump\n\nIt leaks.\n\n{label}\n\n```\n3 litres\n```\n\nEvery day.\n"
    assert (section, True, "3 litres") in told(text)
    assert ("", False, "Every day.") in told(text)


def clues_of(text: str) -> Clues:
    observation = {"id": "O1", "artifact": "S1", "kind": "report_block", "first_line": 1}
    return Clues(
        Case({"sources": {"artifacts": [{"id": "S1", "kind": "report"}],
                          "observations": [{**observation, "text": text}]}})
    )  # fmt: skip


OUTPUTS = (
    "# Wrong plan\n\n```\n>>> plan(4)\n```\n\nObserved:\n\n```\n<bed><rose/><rose/></bed>\n```\n\n"
    "Expected:\n\n```\n<bed><rose/><hedge/></bed>\n```\n"
)


def test_words_that_only_one_output_has_weigh_more_than_those_of_both() -> None:
    clues = clues_of(OUTPUTS)
    assert clues.difference == {stem("rose"), stem("hedge")}
    assert clues.weights[stem("hedge")] > 1 > clues.weights[stem("bed")]
    assert clues.queries["difference"] == "rose hedge"


def test_one_output_alone_is_compared_with_nothing() -> None:
    clues = clues_of(OUTPUTS.partition("Expected:")[0])
    assert not clues.difference
    assert "difference" not in clues.queries


def test_arguments_that_choose_are_those_of_what_fails() -> None:
    clues = clues_of(
        "# Letters\n\n```\n>>> spell(4, lang='es', upper=True)\n```\n\nSame with --style roman.\n"
        "\nWe get:\n\n```\n<a class='x'>\n```\n\nThis works as before: `spell(4, lang='de')`\n"
    )
    assert clues.choices == [("lang", "es"), ("style", "roman")]


def test_a_report_tells_in_words_what_is_neither_code_nor_a_name() -> None:
    clues = clues_of("# Pump `go()` stops\n\nThe hose bursts.\n\n```\nlong output here\n```\n")
    assert clues.told == {stem(word) for word in ("pump", "stops", "hose", "bursts")}
