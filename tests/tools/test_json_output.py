"""docs/json-output.md is a contract: every command prints one document with exactly its fields."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ledger import topics
from tests.tools.conftest import Cli

ROOT = Path(__file__).parents[2]
CONTRACT = (ROOT / "docs/json-output.md").read_text("utf-8")

INPUTS = ["report.md", "--source", "source", "--log", "app.log", "--db", "shop.db"]
COMMANDS: dict[str, list[list[str]]] = {
    "log": [["log", "small"], ["log", "small.zip", "-n", "0"]],
    "verify": [["verify", "small"], ["verify", "small.zip"]],
    "seal": [["seal", "small"]],
    "recover": [["recover", "small"], ["recover", "small", "--accept-head"]],
    "export": [
        ["export", "small", "-o", "x.zip"],
        ["export", "small", "-o", "y.zip", "--with-report", "--with-requests"],
        ["export", "small", "-o", "z.zip", "--redacted", "--withhold", "log", "--keep", "S1"],
    ],
    "import": [["import", "small.zip", "-o", "x.case"]],
    "new": [["new", *INPUTS, "-o", "y.case"]],
    "amend": [["amend", "fresh", "--observation", "It rains."]],
    "run": [["run", "fresh", "--max-requests", "1"], ["run", "small"]],
    "run --preview": [
        ["run", "small", "--preview"],
        ["run", "small", "--preview", "--provider", "scripted:remote"],
    ],
    "status": [["status", "small"], ["status", "fresh"], ["status", "small.zip"]],
    "cases": [["cases"]],
    "report": [["report", "small"], ["report", "fresh"], ["report", "small", "--format", "json"]],
    "analyze": [["analyze", *INPUTS, "-o", "z.case"]],
    "saw --check": [["saw", "small", "all", "--check"], ["saw", "small.zip", "R1", "--check"]],
    "request explain": [["request", "explain", "small"], ["request", "explain", "small.zip", "R1"]],
    "replay": [
        ["replay", "small"],
        ["replay", "small.zip", "--at", "20", "--step", "--check"],
        ["replay", "fresh"],
    ],
    "fork": [["fork", "small", "--at", "R3"], ["fork", "small.zip", "--at", "40"]],
    "diff": [
        ["diff", "small", "20", "20"],
        ["diff", "small", "R2", "R2"],
        ["diff", "small", "small.zip", "--full"],
    ],
    "cache ls": [["cache", "ls", "small"], ["cache", "ls", "small.zip"]],
    "cache why": [["cache", "why", "small"]],
    "view": [["view", "small", "-o", "v.html"]],
    "prompts": [["prompts"]],
    "doctor": [["doctor"]],
    "label": [["label", "small", "right", "--note", "so it was"]],
    "erase": [["erase", "small", "--yes"]],
    "evaluate": [["evaluate", "bugs"], ["evaluate", "bugs", "--keep", "kept", "--only", "cart"]],
    "measure consolidation": [
        ["measure", "consolidation", "small"],
        ["measure", "consolidation", "small.zip", "--all-phases", "--per-request"],
    ],
    "measure cache": [
        ["measure", "cache", "small"],
        ["measure", "cache", "--package", "small.zip"],
    ],
    "tables": [["tables", "small", "-o", "t.db"], ["tables", "small.zip", "-o", "t.db"]],
}
OTHER = {"show", "saw", "act", "config"}
"""Rows whose document is described in words; each has a test of its own below."""


def rows() -> dict[str, str]:
    """Return the documents of the table by command."""
    found = {}
    for line in CONTRACT.splitlines():
        if match := re.match(r"\| (`[^|]+`) \| (.+) \|$", line):
            for command in re.findall(r"`([^`]+)`", match[1]):
                found[command] = match[2]
    return found


def fields(document: str) -> tuple[bool, list[str]]:
    """Return whether a documented document is a list, and the fields of the (first) object."""
    text = re.search(r"`([^`]*)`", document.replace("\\|", "|"))
    assert text is not None
    depth, names = 0, []
    code = re.sub(r':"[a-z]+"(?:\|"[a-z]+")*', "", text[1])  # possible values are no fields
    is_list = code.startswith("[")
    for token in re.findall(r'"[a-z_]+"|[{}\[\]]|[:,|]', code):
        if token in "{[":
            depth += 1
        elif token in "}]":
            depth -= 1
        elif token[0] == '"' and depth == 1 + is_list:
            names.append(token.strip('"'))
    return is_list, names


def test_every_command_of_the_contract_is_tried() -> None:
    assert set(rows()) == set(COMMANDS) | OTHER


@pytest.mark.parametrize(
    ("command", "number"), [(c, n) for c, calls in COMMANDS.items() for n in range(len(calls))]
)
def test_a_command_prints_one_document_with_exactly_its_fields(
    call: Cli, command: str, number: int
) -> None:
    arguments = COMMANDS[command][number]
    found = call(*arguments, *([] if "json" in arguments else ["--json"]))
    assert found.code == 0
    is_list, names = fields(rows()[command])
    assert names
    documents: list[Any] = found.json if is_list else [found.json]
    for document in documents:
        assert list(document) == names
    if command not in ("analyze",):
        assert found.err == ""


def test_a_head_is_a_position_and_a_chain(call: Cli) -> None:
    head = call("seal", "small", "--json").json["head"]
    assert list(head) == ["position", "chain"]


def test_events_of_the_log_have_position_topic_and_their_fields(call: Cli) -> None:
    events = call("log", "small", "--json").json["events"]
    assert [event["position"] for event in events] == list(range(1, len(events) + 1))
    for event in events:
        assert list(event)[:3] == ["position", "topic", "at"]
        assert event["topic"].endswith("/1")
    assert topics.__doc__


def test_show_prints_an_event_or_a_thing_with_its_content(call: Cli) -> None:
    event = call("show", "small", "3", "--json").json
    assert (event["position"], "topic" in event) == (3, True)
    request = call("show", "small", "R1", "--json").json
    assert list(request)[:2] == ["id", "position"]
    assert list(request["content"]) == ["format", "protocol", "system", "schema", "messages"]
    assert call("show", "small", "S1", "--json").json["content"].startswith("# Cart")
    assert list(call("show", "small", "S4", "--json").json["content"]) == ["base64"]
    observation = call("show", "small", "O1", "--json").json
    assert list(observation)[:2] == ["id", "position"]


def test_saw_prints_the_document_itself_with_and_without_json(call: Cli) -> None:
    plain, flagged = call("saw", "small", "R2").out, call("saw", "small", "R2", "--json").out
    assert plain == flagged == call("show", "small", "R2", "--raw").out


@pytest.mark.parametrize("record", [[], ["--record"]])
def test_act_prints_the_evidence_or_the_refusal(call: Cli, record: list[str]) -> None:
    found = call("act", "small", "search_code", "query=cart_total", "--json", *record)
    assert found.json["action"] == "search_code"
    for name in ("read_lines", "shell"):
        refused = call("act", "small", name, "path=/etc/passwd", "--json", *record)
        assert (refused.code, list(refused.json)) == (1, ["refused", "problems"])
        assert isinstance(refused.json["refused"], str)
        assert list(refused.json["problems"][0]) == ["code", "message", "path"]


def test_the_list_of_actions_has_its_fields(call: Cli) -> None:
    for action in call("act", "small", "list", "--json").json:
        assert list(action) == ["name", "description", "arguments"]


def test_config_maps_names_to_value_and_origin(call: Cli) -> None:
    for value in call("config", "--json").json.values():
        assert list(value) == ["value", "origin"]


def test_one_prompt_has_the_fields_of_the_list_but_newest(call: Cli) -> None:
    _, names = fields(rows()["prompts"])
    one = call("prompts", "hypotheses_v2", "--json").json
    assert list(one) == [name for name in names if name != "newest"]


def test_findings_have_their_fields_and_bad_news_is_a_document(call: Cli, desk: Path) -> None:
    with (desk / ".caseledger/small.case").open("r+b") as file:
        file.truncate(file.seek(0, 2) // 2)
    found = call("verify", "small", "--json")
    assert found.code == 1
    assert list(found.json["findings"][0]) == ["kind", "position", "message"]


def test_unmeasured_numbers_are_null(call: Cli) -> None:
    usage = call("status", "small", "--json").json["usage"]
    assert usage["prompt"] is None
    assert call("status", "fresh", "--json").json["confidence"] is None
