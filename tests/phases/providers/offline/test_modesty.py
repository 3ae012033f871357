"""What the analyst does not claim: no certainty without a rival, and nothing said twice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from phases.providers.offline.case import Case
from phases.providers.offline.clues import Clues
from phases.providers.offline.report import section_of
from tests.phases.providers.offline.playing import Json, Played, play
from tests.phases.providers.offline.test_signals import view_of

LOGIN = {"app.py": "def login():\n    return 0\n"}
UNRELATED = "# Invoices print blank pages\n\nThe PDF of an invoice has a blank page at its end.\n"
KITCHEN = {
    "kitchen/oven.py": '''"""The oven."""


def preheat_oven(recipe, altitude):
    """Return the preheating temperature of a recipe at an altitude."""
    temperature = recipe.temperature
    if altitude > 1000:
        temperature -= altitude
    return temperature


def open_door(oven):
    oven.door = "open"
'''
}
OVEN = """# Oven preheats to a negative temperature at high altitude

At an altitude of 2000 m the recipe's preheating temperature is negative.

## Steps
Preheat the oven for a bread recipe at 2000 m

## Expected
The temperature is a little lower than at sea level.
"""


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return play(tmp_path_factory.mktemp("kitchen"), KITCHEN, OVEN)


def last(played: Played, phase: str) -> Json:
    return played.answers(phase)[-1]


@pytest.mark.parametrize(
    ("heading", "section"),
    [("Login fails", ""), ("Forgotten password", ""), ("Catalog", ""), ("Conversion", ""),
     ("Log", "observed"), ("What I got", "observed"), ("Steps to reproduce", "steps"),
     ("How to reproduce it", "steps"), ("Expected result", "expected"), ("Versions", "environment"),
     ("Reproduction", "steps"), ("What happened", "story")],
)  # fmt: skip
def test_headings_are_read_by_whole_words(heading: str, section: str) -> None:
    assert section_of(heading) == section


@pytest.mark.parametrize("report", [UNRELATED, UNRELATED + "\nThey should return one page.\n"])
def test_one_file_that_has_nothing_to_do_with_it_is_no_cause(tmp_path: Path, report: str) -> None:
    diagnosis = last(play(tmp_path, LOGIN, report), "diagnosis")
    assert diagnosis["outcome"] == "insufficient_evidence"
    assert diagnosis["confidence"] < 0.35


def test_words_alone_make_the_confidence_fair_at_most(kitchen: Played) -> None:
    diagnosis = last(kitchen, "diagnosis")
    assert diagnosis["locations"][0]["function"] == "preheat_oven"
    assert diagnosis["outcome"] == "cause_likely"
    assert 0.2 <= diagnosis["confidence"] < 0.75
    assert "No other file was found" in diagnosis["confidence_reason"]
    assert "not that the function is" in diagnosis["confidence_reason"]


def test_a_trace_makes_it_surer_than_words(library: Played, kitchen: Played) -> None:
    sure, fair = last(library, "diagnosis"), last(kitchen, "diagnosis")
    assert sure["confidence"] > 0.7 > fair["confidence"]


@pytest.mark.parametrize("case", ["library", "depot", "kitchen"])
def test_no_long_sentence_is_said_twice(case: str, request: pytest.FixtureRequest) -> None:
    played: Played = request.getfixturevalue(case)
    diagnosis, change = last(played, "diagnosis"), last(played, "change_request")
    texts = [diagnosis["symptom"], diagnosis["cause"], change["summary"]]
    texts += [item["step"] for item in diagnosis["mechanism"]]
    texts += [item["why"] for item in diagnosis["locations"]]
    texts += [item["meaning"] for item in diagnosis["data"]]
    texts += [text for item in change["changes"] for text in (item["what"], item["why"])]
    texts += [text for item in change["tests"] for text in (item["arrange"], item["expect"])]
    texts += [item["why"] for item in change["data_repair"]]
    said = [part for text in texts for part in re.split(r"(?<=[.!?”])\s+", text)]
    # nothing but what is expected may stand in both the diagnosis and the change request
    twice = {part for part in said if len(part) > 90 and said.count(part) > 1}
    assert not twice


@pytest.mark.parametrize("case", ["library", "depot", "kitchen"])
def test_few_places_are_named(case: str, request: pytest.FixtureRequest) -> None:
    diagnosis = last(request.getfixturevalue(case), "diagnosis")
    assert len(diagnosis["locations"]) <= 6


def test_what_has_no_reason_of_its_own_does_not_contribute(kitchen: Played) -> None:
    functions = {item["function"] for item in last(kitchen, "diagnosis")["locations"]}
    assert "open_door" not in functions


def test_the_test_is_described_in_sentences(kitchen: Played) -> None:
    (test,) = last(kitchen, "change_request")["tests"]
    assert test["arrange"] == (
        "Do what the report did. Preheat the oven for a bread recipe at 2000 m."
    )
    assert test["expect"] == "The temperature is a little lower than at sea level."


@pytest.mark.parametrize(
    ("report", "names"),
    [
        ("# Titles are not escaped\n\nA title `<script>alert(1)</script>` is run.\n", []),
        ("# Titles are not escaped\n\nA title <b onclick=alert(1)>x</b> is run.\n", []),
        ("# Titles are not escaped\n\n```\nalert(1)\nshow_title(page)\n```\n", []),
        ("# Titles are not escaped\n\n`show_title(page)` does not.\n", ["show_title"]),
        ("# Titles are not escaped\n\nIt is show_title() that does not.\n", ["show_title"]),
    ],
)
def test_names_in_markup_and_samples_are_nobodys(report: str, names: list[str]) -> None:
    assert Clues(Case(view_of(report, [], []))).meant_symbols == names


def test_a_name_in_a_sample_counts_if_the_tree_has_it() -> None:
    view = view_of("# Titles\n\n```\nalert(1)\n```\n", ["web/alert.js:source"], [])
    assert Clues(Case(view)).meant_symbols == ["alert"]
