"""What a case holds never drives a terminal: ANSI, OSC 8 links, direction marks, C1 controls."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest

from tests.tools.conftest import Cli

EVIL = "\x1b[31mred\x1b]8;;https://evil.example\x07link\x1b]8;;\x07\u202egnp.exe\u2066\x9b2J\x7f"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def hostile(call: Cli, desk: Path) -> Cli:
    """Analyse a case that is full of it."""
    source = desk / "evil"
    source.mkdir()
    name = "cart\u202e_total.py"
    (source / name).write_text(f"def cart_total(x):\n    return '{EVIL}'\n")
    (desk / "evil.md").write_text(f"# Cart {EVIL} total\n\n`cart_total` says {EVIL}\n")
    (desk / "evil.log").write_text(f"2024-05-17 09:00:00 ERROR cart_total {EVIL}\n")
    connection = sqlite3.connect(desk / "evil.db")
    with connection:
        connection.execute(f'CREATE TABLE "t{EVIL}" (id INTEGER PRIMARY KEY, "c{EVIL}" TEXT)')
        connection.execute(f'INSERT INTO "t{EVIL}" VALUES (1, ?)', (EVIL,))
    connection.close()
    inputs = ["evil.md", "--source", "evil", "--log", "evil.log", "--db", "evil.db"]
    found = call("analyze", *inputs, "--name", "evil")
    assert found.code == 0
    assert RAW.search(found.out + found.err) is None
    return call


def test_no_command_prints_it_raw(hostile: Cli) -> None:
    ids = {
        e["evidence"]
        for e in hostile("log", "evil", "--json").json["events"]
        if "characters" in e and "action" in e
    }
    shown = [["show", "evil", name] for name in ("S1", "S2", "S3", "O1", "N1", "H1", "C1", *ids)]
    commands = [
        *shown,
        *(["show", "evil", str(position)] for position in range(1, 9)),
        *(["status", "evil"], ["report", "evil"], ["cases"], ["log", "evil"], ["verify", "evil"]),
        *(["saw", "evil", "last", "--decoded"], ["saw", "evil", "all", "--check"]),
        *(["act", "evil", "search_log", "query=ERROR"], ["act", "evil", "list_files"]),
        ["act", "evil", "describe_database"],
        ["act", "evil", f"x{EVIL}"],
        ["act", "evil", "read_lines", f"path={EVIL}"],
        ["show", "evil", EVIL],
        ["status", EVIL],
        ["run", "evil", "--provider", EVIL],
        ["label", "evil", EVIL],
    ]
    for command in commands:
        for more in ([], ["--json"]):
            if more and command[0] == "label":
                continue
            found = hostile(*command, *more)
            assert RAW.search(found.out) is None, (command, more)
            assert RAW.search(found.err) is None, (command, more)
            if more and found.out:
                json.loads(found.out)


def test_json_still_means_the_text_exactly(hostile: Cli) -> None:
    assert EVIL in hostile("show", "evil", "S3", "--json").json["content"]


def test_what_the_model_saw_is_printed_exactly_and_holds_no_escape_character(
    hostile: Cli,
) -> None:
    document = hostile("saw", "evil", "R1").out
    assert "\x1b" not in document
    assert "\x07" not in document
    assert EVIL in json.dumps(json.loads(document), ensure_ascii=False).replace(
        json.dumps(EVIL, ensure_ascii=False)[1:-1], EVIL
    )


def test_markdown_and_html_of_a_case_do_nothing_in_the_report(call: Cli, desk: Path) -> None:
    evil = "<script>alert(1)</script> [x](javascript:1) **b** `code` | # h"
    (desk / "evil.md").write_text(f"# Cart {evil}\n\ncart_total is wrong {evil}\n")
    found = call("analyze", "evil.md", "--source", "source", "--name", "markdown")
    assert "<script>" not in re.sub(r"\\<", "", found.out)
    assert "[x]" not in found.out.replace("\\[", "")
    assert Path("evil.md").exists()
