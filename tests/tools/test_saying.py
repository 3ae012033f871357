"""What commands say: of observations, of checks that say nothing, of copies, of one thing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ledger.errors import PayloadWithheld
from projections.saw import Check
from tests.tools.conftest import Cli
from tools.caching import list_lines
from tools.exits import ExitCode
from tools.overview import status_lines
from tools.sawing import check_remark, is_denied

Json = dict[str, Any]


def copy_without(call: Cli, *withheld: str) -> str:
    options = [part for what in withheld for part in ("--withhold", what)]
    assert call("export", "small", "--redacted", *options, "-o", "copy.zip", "--force").code == 0
    return "copy.zip"


# show -------------------------------------------------------------------------------------------


def test_an_observation_is_shown_with_the_lines_it_names(call: Cli, desk: Path) -> None:
    lines = (desk / "report.md").read_text().splitlines()
    shown = call("show", "small", "O1", "--json").json
    expected = "\n".join(lines[shown["first_line"] - 1 : shown["last_line"]])
    assert shown["artifact"] == "S1"
    assert shown["content"] == expected
    assert call("show", "small", "O1").out.endswith(f"\n\n{expected}\n")
    assert call("show", "small", "O1", "--raw").out == expected


def test_an_excerpt_that_looks_like_json_is_shown_as_the_text_it_is(call: Cli, desk: Path) -> None:
    call("amend", "small", "--observation", '{"level":"error"}')
    latest = call("log", "small", "--kind", "observations.extracted", "--json").json["events"][-1]
    name = latest["observations"][-1]["id"]
    assert call("show", "small", name, "--json").json["content"] == '{"level":"error"}'


def test_an_observation_whose_report_is_withheld_says_so(call: Cli) -> None:
    copy = copy_without(call, "S1")
    assert call("show", copy, "O1", "--json").json["content"] == {"withheld": True}
    found = call("show", copy, "O1", "--raw")
    assert (found.code, found.out) == (ExitCode.NO, "")
    assert "withheld in this copy" in found.err


@pytest.mark.parametrize(("name", "text"), [("E1", '"result"'), ("H1", '"statement"')])
def test_evidence_and_hypotheses_are_shown_with_what_they_say(
    call: Cli, name: str, text: str
) -> None:
    assert text in call("show", "small", name).out


# --check ----------------------------------------------------------------------------------------


def check(state: Any) -> Check:
    return Check("R1", 1, state, "sha256:00")


def test_a_check_that_affirms_nothing_is_a_no() -> None:
    same, differs, unchecked = map(check, ("same", "differs", "unchecked"))
    assert [is_denied(found) for found in ([], [same], [same, unchecked])] == [False] * 3
    assert [is_denied(found) for found in ([unchecked], [same, differs], [differs])] == [True] * 3
    assert check_remark([]) == "no request is saved yet"
    assert check_remark([same]) == "1 of 1 request rebuilt byte for byte"
    assert check_remark([unchecked, unchecked]).endswith(
        "2 could not be rebuilt: nothing is affirmed"
    )


def test_requests_that_are_all_withheld_end_a_check_with_1_and_a_sentence(call: Cli) -> None:
    copy = copy_without(call, "report", "source", "log", "database")
    found = call("saw", copy, "all", "--check")
    assert found.code == ExitCode.NO
    assert found.err.splitlines()[-1].endswith("nothing is affirmed")
    assert call("saw", copy, "R1", "--check", "--json").code == ExitCode.NO
    assert call("replay", copy, "--check").code == ExitCode.NO


def test_a_whole_case_is_affirmed_in_a_sentence(call: Cli) -> None:
    found = call("saw", "small", "all", "--check")
    number = len(found.out.splitlines())
    assert (found.code, found.err) == (0, f"{number} of {number} requests rebuilt byte for byte\n")
    assert call("replay", "small", "--check").code == 0
    assert call("saw", "fresh", "all", "--check").err == "no request is saved yet\n"


# status -----------------------------------------------------------------------------------------


def test_a_finished_copy_is_finished_though_its_diagnosis_is_withheld(call: Cli) -> None:
    copy = copy_without(call, "source", "log", "database")
    shown = call("status", copy, "--json").json
    assert shown["standing"] == "finished; the diagnosis is withheld in this copy"
    text = call("status", copy).out
    assert "in change request" not in text
    assert re.search(r"characters of evidence \(\d+ items? not withheld\)", text)


def test_one_of_a_thing_is_said_in_the_singular(call: Cli) -> None:
    shown = call("status", "small", "--json").json
    shown["spent"] = {"requests": 1, "actions": 1, "evidence_characters": 1}
    shown["evidence"] = shown["usage"]["attempts"] = 1
    text = "\n".join(status_lines(shown))
    assert "1 step, 1 action, 1 character of evidence in 1 item\n" in text
    assert "1 attempt, 0 failed" in text
    assert "max requests: 1 attempt sent" in call("run", "fresh", "--max-requests", "1").out


# cache ls ---------------------------------------------------------------------------------------

CACHE: Json = {
    "content_id": "sha256:" + "c" * 64, "model": "m", "tokens": 9, "ended": None, "reads": 1,
    "inherited": False, "cached_tokens": 9, "saved_nano_usd": 10**9,
    "expected_nano_usd": {"none": 9, "implicit": 5, "explicit": 7},
}  # fmt: skip


def said_of(**more: Any) -> str:
    shown = {"caches": [CACHE | more], "prompt_tokens": 0, "cached_tokens": 0}
    return "\n".join(list_lines(shown))


def test_a_cache_from_before_a_fork_belongs_to_the_origins_run() -> None:
    assert "alive when the record ends" in said_of()
    assert "it belongs to the origin's run" in said_of(inherited=True)
    assert "alive" not in said_of(inherited=True)
    assert "deleted" in said_of(inherited=True, ended="deleted")


def test_what_a_cache_was_expected_to_save_is_unknown_without_a_price_of_storage() -> None:
    assert "read by 1 request, 9 tokens; saved $1.0000 (expected $0.0000)" in said_of()
    unknown = CACHE["expected_nano_usd"] | {"explicit": None}
    text = said_of(expected_nano_usd=unknown)
    assert "saved $1.0000 (expected: unknown, no price of storage is known)" in text


# Mistakes ---------------------------------------------------------------------------------------

FORGOTTEN = {
    "an observation": ["amend", "small", "--observation", "--json"],
    "a short option": ["amend", "small", "--observation", "-h"],
    "a second observation": [
        "amend",
        "small",
        "--observation",
        "It rains.",
        "--observation",
        "--db",
    ],
    "a note": ["amend", "small", "--observation", "It rains.", "--note", "--abandon"],
    "a verdict's note": ["label", "small", "right", "--note", "--json"],
    "a reason": ["recover", "small", "--accept-head", "--reason", "--json"],
    "a fork's note": ["fork", "small", "--at", "20", "--note", "--json"],
    "a package": ["export", "small", "-o", "--json"],
    "a database": ["tables", "small", "-o", "--force"],
    "a page": ["view", "small", "-o", "--no-browser"],
    "a result": ["evaluate", "bugs", "-o", "--json"],
    "rows": ["measure", "consolidation", "small", "--csv", "--json"],
    "a report": ["measure", "cache", "small", "--output", "--json"],
}


@pytest.mark.parametrize("name", FORGOTTEN)
def test_an_option_in_place_of_a_value_is_refused_in_one_line(
    call: Cli, desk: Path, name: str
) -> None:
    before = sorted(desk.rglob("*"))
    found = call(*FORGOTTEN[name])
    assert found.code == ExitCode.USAGE
    assert len(found.err.splitlines()) == 1
    assert "is an option, not a value" in found.err
    assert sorted(desk.rglob("*")) == before


@pytest.mark.parametrize(
    "text", ["--json is ignored by the exporter", "- a list", "-5 °C", "—", "-"]
)
def test_a_text_may_begin_with_a_dash(call: Cli, text: str) -> None:
    assert call("amend", "small", "--observation", text, "--note", text).code == 0


@pytest.mark.parametrize("answer", [[], ["--yes"]])
def test_nobody_is_asked_about_erasing_what_is_no_case(
    call: Cli, desk: Path, answer: list[str]
) -> None:
    assert "there is no such case" in call("erase", "none.case", *answer).err
    (desk / "notes.case").write_text("hello")
    found = call("erase", "notes.case", *answer)
    assert found.code == ExitCode.STORAGE
    assert "is not a case ledger" in found.err
    assert (desk / "notes.case").exists()


def test_a_recording_without_a_case_and_an_unknown_protocol_say_what_to_do(call: Cli) -> None:
    found = call("run", "fresh", "--provider", "recorded:")
    assert (found.code, "give recorded:CASE" in found.err) == (ExitCode.USAGE, True)
    found = call("prompts", "poetry_v1")
    assert (found.code, "`caseledger prompts` lists them" in found.err) == (ExitCode.USAGE, True)


BAD = {"a folder": "folder", "an empty file": "empty.case", "a text": "text.case",
       "a zip": "other.zip", "nothing": "none.case", "no such name": "nobody"}  # fmt: skip
READING = [
    ["status"], ["report"], ["log"], ["saw"], ["verify"], ["seal"], ["replay"], ["cache", "ls"],
    ["run"], ["recover"], ["export"], ["measure", "cache"], ["erase"],
]  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_case_is_one_line_and_a_documented_code(
    call: Cli, desk: Path, name: str
) -> None:
    import zipfile

    (desk / "folder").mkdir()
    (desk / "empty.case").touch()
    (desk / "text.case").write_text("hello")
    with zipfile.ZipFile(desk / "other.zip", "w") as file:
        file.writestr("a.txt", "x")
    for command in READING:
        found = call(*command, BAD[name])
        said = [*found.err.splitlines(), *found.out.splitlines()]
        assert len(said) == 1, (command, said)
        assert found.code in (ExitCode.NO, ExitCode.USAGE, ExitCode.STORAGE), command
        assert (found.code == ExitCode.NO) == found.out.startswith("damage: "), command


def test_a_withheld_text_is_no_defect_of_the_program() -> None:
    from tools.exits import exit_code

    assert exit_code(PayloadWithheld("O1: its text is withheld in this copy")) == ExitCode.NO
