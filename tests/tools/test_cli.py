"""Every command: its good way, its exit codes, its one-line errors."""

from __future__ import annotations

import importlib
import io
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ledger.book import Book
from tests.phases.scripting import state_of, topics_of
from tests.tools.conftest import Cli
from tests.tools.scripted_provider import TROUBLES
from tools import cli
from tools.exits import BAD_INPUT, ExitCode, exit_code

CASELEDGER = Path(sys.executable).with_name("caseledger")
INPUTS = ["report.md", "--source", "source", "--log", "app.log", "--db", "shop.db"]


# The good way -----------------------------------------------------------------------------------


def test_analyze_takes_in_analyses_and_prints_the_report(call: Cli, desk: Path) -> None:
    found = call("analyze", *INPUTS, "--name", "mine")
    assert found.code == 0
    assert found.out.startswith("# Cart total is too low")
    assert "## Change request" in found.out
    assert "no language model" in found.out.lower()
    assert "case: .caseledger/mine.case" in found.err
    assert state_of(desk / ".caseledger/mine.case").change_request is not None


def test_new_run_and_report_do_the_same_in_three_steps(call: Cli) -> None:
    assert call("new", *INPUTS, "-o", "three.case").code == 0
    run = call("run", "three.case")
    assert (run.code, run.out.splitlines()[0]) == (0, "done")
    assert call("report", "three.case").out.startswith("# Cart total is too low")


def test_a_name_that_is_taken_gets_a_number(call: Cli, desk: Path) -> None:
    for expected in ("one.case", "one-2.case", "one-3.case"):
        call("new", "report.md", "--name", "one")
        assert (desk / ".caseledger" / expected).exists()


def test_a_run_stops_where_it_is_told_and_goes_on(call: Cli) -> None:
    assert call("run", "fresh", "--until", "hypotheses").out.startswith("until")
    assert call("run", "fresh", "--max-requests", "1").out.startswith("max requests")
    assert call("run", "fresh").out.startswith("done")


def test_progress_without_a_terminal_is_one_line_a_phase_on_stderr(call: Cli) -> None:
    found = call("run", "fresh", "--until", "investigation")
    phases = ["  entity resolution", "  case interpretation", "  hypotheses", "  investigation"]
    assert found.err.splitlines()[:4] == phases
    assert len(found.err.splitlines()) < 10  # one a phase, not one a step
    assert call("run", "small", "--json").err == ""


def test_preview_says_that_nothing_leaves_this_machine(call: Cli, desk: Path) -> None:
    before = (desk / ".caseledger/fresh.case").read_bytes()
    found = call("run", "fresh", "--preview")
    assert "nothing leaves this machine" in found.out
    assert (desk / ".caseledger/fresh.case").read_bytes() == before


def test_preview_names_what_goes_to_a_remote_provider_and_what_stays(call: Cli) -> None:
    options = ["--provider", "scripted:remote", "--no-egress", "db", "--preview"]
    found = call("run", "fresh", *options)
    assert "S3 log app.log: may be quoted in requests" in found.out
    assert "S4 database shop.db: is kept here" in found.out


def test_preview_bounds_the_requests_of_a_run_from_above(call: Cli, desk: Path) -> None:
    bound = call("run", "fresh", "--preview", "--json").json["at_most_requests"]
    call("run", "fresh")
    assert len(state_of(desk / ".caseledger/fresh.case").requests) <= bound
    assert call("run", "fresh", "--preview", "--json").json["at_most_requests"] == 0


def test_a_budget_is_added_on_the_record(call: Cli, desk: Path) -> None:
    call("run", "fresh", "--add-budget", "requests=3", "--add-budget", "characters=5")
    path = desk / ".caseledger/fresh.case"
    assert (state_of(path).added.requests, state_of(path).added.evidence_characters) == (3, 5)


@pytest.mark.parametrize("record", ["small", "small.zip"])
def test_reading_commands_take_a_case_and_a_package(call: Cli, record: str) -> None:
    assert call("status", record).out.startswith("Cart total is too low")
    assert call("report", record).out.startswith("# Cart total is too low")
    assert call("log", record, "-n", "2").out.count("\n") == 2
    assert "case.opened" in call("show", record, "1").out
    assert call("show", record, "E1").code == 0
    assert call("saw", record, "R1").out.startswith('{"format":1,')
    assert call("saw", record, "all", "--check").code == 0
    assert call("verify", record).out.startswith("ok: ")
    assert re.fullmatch(r"\d+:[0-9a-f]{64}\n", call("seal", record).out)


def test_a_package_says_the_same_as_its_case(call: Cli) -> None:
    for command in (["report"], ["status", "--json"], ["saw", "all", "--check"], ["log"]):
        name, *options = command
        assert call(name, "small", *options).out == call(name, "small.zip", *options).out


def test_show_knows_every_kind_of_id(call: Cli) -> None:
    for name in ("S1", "O1", "N1", "F1", "H1", "C1", "R1", "A1", "E1"):
        found = call("show", "small", name)
        assert (found.code, f'"id": "{name}"' in found.out) == (0, True)


def test_show_prints_a_payload_exactly(call: Cli) -> None:
    assert call("show", "small", "S1", "--raw").out == Path("report.md").read_text()
    digest = call("show", "small", "S1", "--json").json["content"]
    assert digest.startswith("# Cart total")


def test_log_selects_by_kind_and_position(call: Cli) -> None:
    lines = call("log", "small", "--kind", "request.sent").out.splitlines()
    assert lines
    assert all("request.sent" in line for line in lines)
    topics = {e["topic"] for e in call("log", "small", "--kind", "run", "--json").json["events"]}
    assert topics == {"run.started/1", "run.stopped/1"}
    assert call("log", "small", "--after", "5", "-n", "1").out.lstrip().startswith("6 ")


def test_saw_decodes(call: Cli) -> None:
    shown = call("saw", "small", "last", "--decoded").json
    assert list(shown) == ["protocol", "system", "view", "feedback"]


def test_prompts_lists_versions_and_prints_one(call: Cli) -> None:
    assert "investigation_project_v8" in call("prompts").out
    assert len(call("prompts", "hypotheses_v2").out) > 400


def test_a_verdict_is_recorded(call: Cli, desk: Path) -> None:
    assert call("label", "small", "partly", "--note", "wrong line").code == 0
    assert state_of(desk / ".caseledger/small.case").labels[-1].note == "wrong line"
    assert "labelled partly" in call("cases").out


def test_a_look_by_hand_is_what_a_model_gets(call: Cli, desk: Path) -> None:
    path = desk / ".caseledger/small.case"
    before = topics_of(path)
    found = call("act", "small", "read_lines", "path=shop/cart.py", "first=9", "last=9")
    assert "     9      for item in items[:-1]:" in found.out
    assert topics_of(path) == before
    spent = state_of(path).spent
    assert call("act", "small", "list_files", "--record").code == 0
    assert topics_of(path)[len(before) :] == ["action.requested", "evidence.recorded"]
    assert state_of(path).spent == spent


def test_actions_are_listed(call: Cli) -> None:
    assert "query_database" in call("act", "small", "list").out


def test_amend_adds_a_revision(call: Cli, desk: Path) -> None:
    assert call("amend", "small", "--observation", "It rains.", "--note", "weather").code == 0
    assert state_of(desk / ".caseledger/small.case").revision == 2
    assert call("run", "small").code == 0


def test_export_and_import_keep_the_head(call: Cli) -> None:
    assert call("export", "small", "-o", "again.zip").code == 0
    assert Path("again.zip").read_bytes() == Path("small.zip").read_bytes()
    assert call("import", "again.zip", "-o", "again.case").code == 0
    assert call("seal", "again.case").out == call("seal", "small").out
    assert call("verify", "again.case").code == 0


def test_a_seal_kept_elsewhere_verifies_later(call: Cli) -> None:
    head = call("seal", "fresh").out.strip()
    call("run", "fresh")
    assert call("verify", "fresh", "--head", head).code == 0
    wrong = head[:-1] + ("0" if head[-1] != "0" else "1")
    assert call("verify", "fresh", "--head", wrong).code == 1


def test_erase_removes_the_case_and_its_anchor(call: Cli, desk: Path) -> None:
    assert call("erase", "small", "--yes").code == 0
    assert [path.name for path in (desk / ".caseledger").glob("small*")] == []


def test_recover_says_that_there_is_nothing_to_do(call: Cli) -> None:
    assert "nothing to recover" in call("recover", "small").out
    assert "nothing to accept" in call("recover", "small", "--accept-head").out


def test_cases_config_and_doctor_print_tables(call: Cli) -> None:
    assert call("cases").out.splitlines()[0].split("\t")[0] == "case"
    assert "budget.requests\t24\tdefault" in call("config").out
    assert call("doctor").out.startswith("check\tstate\tdetail")


def test_version_and_help(call: Cli) -> None:
    assert re.fullmatch(r"caseledger \d+\.\d+\.\d+\n", call("--version").out)
    assert call("--help").code == 0
    nothing = call()
    assert (nothing.code, nothing.err) == (2, "")
    assert "Usage:" in nothing.out


# Naming a case ----------------------------------------------------------------------------------


def test_a_case_is_named_by_path_name_unique_beginning_or_last(call: Cli, desk: Path) -> None:
    os.utime(desk / ".caseledger/small.case", (2**31, 2**31))
    head = call("seal", "small").out
    for selector in (".caseledger/small.case", "sm", "last", str(desk / ".caseledger/small.case")):
        assert call("seal", selector).out == head


def test_an_ambiguous_beginning_names_the_candidates(call: Cli) -> None:
    call("new", "report.md", "--name", "small-other")
    assert call("seal", "small").code == 0  # the whole name wins
    found = call("seal", "sma")
    assert found.code == 2
    assert "small, small-other" in found.err


@pytest.mark.parametrize("selector", ["nothing", "", "no/such.case", "x" * 300, "no.zip"])
def test_a_case_that_is_not_there_is_one_line(call: Cli, selector: str) -> None:
    found = call("status", selector)
    assert (found.code, found.err.count("\n"), found.out) == (2, 1, "")


def test_an_empty_name_never_means_the_only_case(call: Cli, desk: Path) -> None:
    call("erase", "fresh", "--yes")
    assert call("erase", "", "--yes").code == 2
    assert (desk / ".caseledger/small.case").exists()


def test_a_folder_of_the_same_name_is_not_the_case(call: Cli, desk: Path) -> None:
    (desk / "small").mkdir()
    assert call("status", "small").code == 0


def test_last_without_cases_says_how_to_make_one(
    call: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CASELEDGER_HOME", str(tmp_path / "empty"))
    found = call("status", "last")
    assert (found.code, "new" in found.err) == (2, True)
    assert call("cases", "--json").json == []


# Exit codes -------------------------------------------------------------------------------------

MISTAKES = {
    "no such command": ["analyse"],
    "no such option": ["log", "small", "--colour"],
    "no report": ["new"],
    "a report that is not there": ["new", "none.md"],
    "a source that is not there": ["new", "report.md", "--source", "nowhere"],
    "a database that is none": ["new", "report.md", "--db", "app.log"],
    "a case that exists": ["new", "report.md", "-o", ".caseledger/small.case"],
    "a phase that is none": ["run", "small", "--until", "guessing"],
    "no requests": ["run", "small", "--max-requests", "0"],
    "a provider that is none": ["run", "small", "--provider", "oracle"],
    "a recording that is not there": ["run", "small", "--provider", "recorded:none.case"],
    "a protocol that is none": ["run", "small", "--protocol", "hypotheses_v99"],
    "a kind that is none": ["run", "small", "--no-egress", "thoughts"],
    "a budget that is none": ["run", "small", "--add-budget", "money=5"],
    "a budget without a number": ["run", "small", "--add-budget", "requests=lots"],
    "a verdict that is none": ["label", "small", "maybe"],
    "a format that is none": ["report", "small", "--format", "pdf"],
    "a position past the end": ["show", "small", "9999"],
    "a position past all numbers": ["show", "small", "9" * 40],
    "position zero": ["show", "small", "0"],
    "an ID that is none": ["show", "small", "E999"],
    "a payload that is none": ["show", "small", "sha256:" + "0" * 64],
    "bytes of what has none": ["show", "small", "H1", "--raw"],
    "a request that is none": ["saw", "small", "R999"],
    "all requests at once": ["saw", "small", "all"],
    "a prompt that is none": ["prompts", "poetry_v1"],
    "a negative limit": ["log", "small", "-n", "-1"],
    "a huge position": ["log", "small", "--after", "9" * 30],
    "a head that is none": ["verify", "small", "--head", "12:abc"],
    "an argument without a value": ["act", "small", "read_lines", "shop/cart.py"],
    "a package that is not there": ["import", "none.zip"],
    "a package that is none": ["import", "report.md"],
    "a package over a file": ["export", "small", "-o", "small.zip"],
    "an amendment of nothing": ["amend", "small"],
    "a name that leads elsewhere": ["new", "report.md", "--name", "../evil"],
    "a name with a separator": ["analyze", "report.md", "--name", "a/b"],
    "a name with the other separator": ["new", "report.md", "--name", "a\\b"],
    "a name of dots": ["new", "report.md", "--name", ".."],
    "a name that drives a terminal": ["new", "report.md", "--name", "a\x1b[2J"],
    "a file that is no .case": ["new", "report.md", "-o", "case.db"],
    "a file that is no .case to analyse": ["analyze", "report.md", "-o", "case"],
    "a look into a package": ["act", "small.zip", "list_files"],
    "an export of a package": ["export", "small.zip", "-o", "y.zip"],
    "a run of a package": ["run", "small.zip"],
    "an amendment of a package": ["amend", "small.zip", "--observation", "x"],
    "a package erased": ["erase", "small.zip", "--yes"],
    "a verdict on a package": ["label", "small.zip", "right"],
    "a recovery of a package": ["recover", "small.zip"],
    "erasing when nobody can be asked": ["erase", "small"],
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_and_exit_2(call: Cli, name: str) -> None:
    found = call(*MISTAKES[name])
    assert (found.code, found.out) == (2, "")
    said = [line for line in found.err.splitlines() if not line.startswith("  ")]  # no progress
    assert len(said) == 1
    assert said[0].startswith("caseledger: ")


@pytest.mark.parametrize("name", ["a phase that is none", "an ID that is none", "a negative limit"])
def test_with_json_a_mistake_is_a_document_too(call: Cli, name: str) -> None:
    found = call(*MISTAKES[name], "--json")
    assert found.code == 2
    assert list(found.json) == ["error"]
    assert list(found.json["error"]) == ["kind", "message"]
    assert found.json["error"]["message"] in found.err


@pytest.mark.parametrize("command", ["act", "export", "run", "amend", "erase", "label", "recover"])
def test_what_needs_a_case_says_that_a_package_is_to_be_imported(call: Cli, command: str) -> None:
    more = {"act": ["list_files"], "label": ["right"], "erase": ["--yes"]}.get(command, [])
    found = call(command, "small.zip", *more)
    assert "small.zip: is a package; import it first" in found.err
    assert Path("small.zip").exists()


def test_nothing_is_written_outside_the_cases_folder(call: Cli, desk: Path) -> None:
    before = sorted(path.name for path in desk.iterdir())
    for name in ("../evil", "/tmp/evil", "a/../../evil"):
        assert call("new", "report.md", "--name", name).code == 2
    assert sorted(path.name for path in desk.iterdir()) == before


@pytest.mark.parametrize("folder", ["/proc/x/y", "report.md", "report.md/below"])
def test_a_cases_folder_that_cannot_be_made_is_exit_5(
    call: Cli, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.setenv("CASELEDGER_HOME", folder)
    for command in (["new", "report.md"], ["analyze", "report.md"], ["import", "small.zip"]):
        found = call(*command)
        assert (found.code, found.err.count("\n")) == (5, 1)
        assert f"{folder}: the cases folder cannot be made" in found.err
    assert call("doctor").out.startswith("check")


def test_erase_asks_and_a_no_is_exit_130(
    call: Cli, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for said in ("n\n", ""):
        monkeypatch.setattr(sys, "stdin", Terminal(said))
        found = call("erase", "small")
        assert (found.code, found.out) == (130, "")
        assert found.err.splitlines()[-1].endswith("small.case: not removed; pass --yes")
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert call("erase", "small", "--json").json["error"]["kind"] == "Declined"
    assert (desk / ".caseledger/small.case").exists()
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert call("erase", "small").code == 0
    assert not (desk / ".caseledger/small.case").exists()


def test_each_class_that_is_bad_input_exists() -> None:
    for name, module in BAD_INPUT.items():
        error = getattr(importlib.import_module(module), name)
        assert (error.__name__, error.__module__) == (name, module)
        assert exit_code(error.__new__(error)) == ExitCode.USAGE


def test_an_amended_case_is_not_analysed_yet(call: Cli) -> None:
    call("label", "small", "right")
    call("amend", "small", "--observation", "It rains.")
    assert "amended, not analysed yet" in call("status", "small").out
    assert "amended, not analysed yet" in call("cases").out
    call("run", "small", "--max-requests", "1")
    assert "amended" not in call("status", "small").out


@pytest.mark.parametrize("command", ["new", "analyze"])
def test_without_source_it_is_said_what_can_be_read(call: Cli, command: str) -> None:
    without = call(command, "report.md", "-o", "a.case")
    assert without.code == 0
    assert "without --source the analysis can only read the report\n" in without.err
    logs = call(command, "report.md", "--log", "app.log", "-o", "b.case", "--json")
    assert "can only read the report, logs and databases" in logs.err
    assert "without --source" not in call(command, *INPUTS, "-o", "c.case").err


def test_a_run_of_a_finished_case_says_so_and_writes_nothing(call: Cli, desk: Path) -> None:
    path = desk / ".caseledger/small.case"
    before = topics_of(path)
    found = call("run", "small")
    assert found.code == 0
    assert found.out.startswith("done: the analysis was finished before")
    assert topics_of(path) == before


def test_a_kind_that_matches_nothing_is_a_remark(call: Cli) -> None:
    for options in ([], ["--json"]):
        found = call("log", "small", "--kind", "zzz", *options)
        assert (found.code, "no event of kind zzz" in found.err) == (0, True)
    assert call("log", "small", "--kind", "run").err == ""


def test_ctrl_c_in_the_first_moments_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "app", interrupted)
    assert cli.run(["cases"]) == 130
    assert capsys.readouterr().err.startswith("caseledger: interrupted")
    program = (
        "import builtins\n"
        "real = builtins.__import__\n"
        "def hook(name, *rest, **more):\n"
        "    if name == 'typer':\n"
        "        raise KeyboardInterrupt\n"
        "    return real(name, *rest, **more)\n"
        "builtins.__import__ = hook\n"
        "from tools.cli import main\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "")


def test_cases_in_a_terminal_are_a_line_each_with_the_whole_name(
    call: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("new", "report.md", "--name", "a-case-with-a-long-name")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "96")
    lines = call("cases").out.splitlines()
    assert len(lines) == 4
    assert sum("a-case-with-a-long-name " in line for line in lines) == 1
    assert any("…" in line for line in lines)


def test_an_action_that_is_refused_is_exit_1(call: Cli) -> None:
    assert call("act", "small", "read_lines", "path=/etc/passwd").code == 1
    assert call("act", "small", "shell", "--record").code == 1


def test_an_altered_case_is_exit_1_and_says_where(call: Cli, desk: Path) -> None:
    with sqlite3.connect(desk / ".caseledger/small.case") as connection:
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type='trigger'")
        for (name,) in triggers.fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute("UPDATE event SET state = x'7b7d' WHERE position=20")
    connection.close()
    found = call("verify", "small")
    assert found.code == 1
    assert "damaged at position 20" in found.out
    assert call("verify", "small", "--json").json["first_bad_position"] == 20
    assert call("status", "small").code == 5


@pytest.mark.parametrize("how", ["wrong", "safety", "need"])
def test_a_case_that_needs_a_person_is_exit_3_and_says_how_to_go_on(call: Cli, how: str) -> None:
    found = call("run", "fresh", "--provider", f"scripted:{how}")
    assert found.code == 3
    last = found.err.splitlines()[-1]
    assert last.startswith("caseledger: ")
    assert ("caseledger amend" if how == "need" else "caseledger run") in last
    assert "\x1b" not in found.err
    assert "needs attention" in call("status", "fresh").out


def test_an_unknown_outcome_is_exit_3_under_the_policy_ask(
    call: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASELEDGER_RUN__UNKNOWN_OUTCOME", "ask")
    assert call("run", "fresh", "--provider", "scripted:interrupted").code == 130
    found = call("run", "fresh", "--provider", "scripted")
    assert (found.code, "--resend" in found.err) == (3, True)


def test_no_provider_left_is_exit_4_and_run_goes_on(call: Cli) -> None:
    found = call("run", "fresh", "--provider", "scripted:down")
    assert found.code == 4
    assert "caseledger run" in found.err.splitlines()[-1]
    assert call("run", "fresh", "--provider", "scripted").code == 4  # bound to what it began with


def test_failover_on_the_command_line(call: Cli) -> None:
    providers = ["--provider", "scripted:down", "--provider", "scripted:good"]
    assert call("run", "fresh", *providers).code == 0
    assert "provider.failed_over" in call("log", "fresh").out


def test_a_case_that_is_being_written_is_exit_5(call: Cli, desk: Path) -> None:
    with Book.open_for_writing(desk / ".caseledger/small.case"):
        found = call("label", "small", "right")
    assert (found.code, found.err.count("\n")) == (5, 1)


@pytest.mark.parametrize("content", [b"", b"not a ledger", b"SQLite format 3\0" + bytes(4000)])
def test_another_kind_of_file_is_exit_5(call: Cli, content: bytes) -> None:
    Path("other.case").write_bytes(content)
    for command in (["status"], ["run"], ["log"], ["seal"], ["erase", "--yes"]):
        name, *options = command
        found = call(name, "other.case", *options)
        assert (found.code, found.err.count("\n")) == (5, 1), command
    assert Path("other.case").read_bytes() == content


def test_a_database_of_somebody_else_is_never_erased(call: Cli) -> None:
    found = call("erase", "shop.db", "--yes")
    assert (found.code, Path("shop.db").exists()) == (5, True)


def test_a_damaged_case_can_be_erased(call: Cli, desk: Path) -> None:
    path = desk / ".caseledger/small.case"
    path.write_bytes(path.read_bytes()[:5000])
    assert call("status", "small").code == 5
    assert call("erase", "small", "--yes").code == 0


def test_ctrl_c_is_exit_130_and_says_how_to_go_on(
    call: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = call("run", "fresh", "--provider", "scripted:interrupted")
    assert found.code == 130
    assert "go on with: caseledger run" in found.err
    assert "Traceback" not in found.err
    monkeypatch.setitem(TROUBLES, "interrupted", {})
    assert call("run", "fresh").code == 0


def test_ctrl_c_is_a_document_with_json(call: Cli) -> None:
    found = call("run", "fresh", "--provider", "scripted:interrupted", "--json")
    assert (found.code, found.json["error"]["kind"]) == (130, "interrupted")


def test_the_end_of_a_budget_with_a_diagnosis_is_exit_0(
    call: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASELEDGER_BUDGET__REQUESTS", "1")
    assert call("run", "fresh").code == 0
    assert call("status", "fresh", "--json").json["outcome"] is not None


def test_a_broken_case_stands_in_the_list_with_its_reason(call: Cli, desk: Path) -> None:
    (desk / ".caseledger/broken.case").write_bytes(b"no")
    found = call("cases")
    assert found.code == 0
    assert "broken\tNotALedger" in found.out


# Configuration ----------------------------------------------------------------------------------


def test_later_sources_of_the_configuration_win(
    call: Cli, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = desk / "config/caseledger"
    user.mkdir(parents=True)
    (user / "config.toml").write_text("[budget]\nrequests = 1\nactions = 1\n[run]\nattempts = 1\n")
    Path("caseledger.toml").write_text("[budget]\nrequests = 2\nactions = 2\n")
    monkeypatch.setenv("CASELEDGER_BUDGET__REQUESTS", "3")
    values = call("config", "--json").json
    assert values["budget.requests"] == {"value": 3, "origin": "environment"}
    assert values["budget.actions"] == {"value": 2, "origin": "caseledger.toml"}
    assert values["run.attempts"]["origin"] == str(user / "config.toml")
    assert values["run.corrections"]["origin"] == "default"


@pytest.mark.parametrize(
    "text", ["[budget\n", "[budget]\nrequests = -1\n", "unknown = 1\n", "budget = 3\n", "\xff"]
)
def test_a_wrong_configuration_file_is_one_line_that_names_it(call: Cli, text: str) -> None:
    Path("caseledger.toml").write_bytes(text.encode("latin-1"))
    found = call("config")
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert "caseledger.toml" in found.err


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("CASELEDGER_BUDGET__REQUESTS", "many"),
        ("CASELEDGER_BUDGET__MONEY", "1"),
        ("CASELEDGER_BUDGET", "1"),
        ("CASELEDGER_RUN__UNKNOWN_OUTCOME", "hope"),
    ],
)
def test_a_wrong_variable_is_named_with_the_names_there_are(
    call: Cli, monkeypatch: pytest.MonkeyPatch, variable: str, text: str
) -> None:
    monkeypatch.setenv(variable, text)
    found = call("config")
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert f"caseledger: {variable}: " in found.err
    assert "budget.requests, budget.actions" in found.err


@pytest.mark.parametrize("name", ["COVERAGE", "FLIPS", "EXAMPLES", "SOMETHING__ELSE", ""])
def test_a_variable_of_no_section_is_ignored(
    call: Cli, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(f"CASELEDGER_{name}", "1")
    assert call("config").code == 0


def test_lists_come_from_the_environment_with_commas(
    call: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASELEDGER_PROVIDERS", "scripted:down,offline")
    monkeypatch.setenv("CASELEDGER_NO_EGRESS", "log,database")
    values = call("config", "--json").json
    assert values["providers"]["value"] == ["scripted:down", "offline"]
    assert values["no_egress"]["value"] == ["log", "database"]


def test_a_protocol_of_another_phase_is_refused(call: Cli) -> None:
    Path("caseledger.toml").write_text('[protocols]\nhypotheses = "diagnosis_v3"\n')
    found = call("run", "fresh")
    assert (found.code, found.err.count("\n")) == (2, 1)


# Once as people run it --------------------------------------------------------------------------


def shell(desk: Path, command: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **more, "PATH": f"{CASELEDGER.parent}:{os.environ['PATH']}"}
    return subprocess.run(
        ["sh", "-c", command], cwd=desk, env=env, capture_output=True, text=True, check=False
    )


def test_the_installed_program_runs(desk: Path) -> None:
    done = shell(desk, "caseledger status small; caseledger status nothing; echo $?")
    assert done.stdout.startswith("Cart total is too low")
    assert done.stdout.endswith("2\n")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_leaves_early_is_no_error(desk: Path) -> None:
    for command in ("log small --json", "log small", "saw small", "report small"):
        done = shell(desk, f"{{ caseledger {command}; echo $? >&2; }} | head -c 1 >/dev/null")
        assert done.stderr == "0\n", command


def test_a_terminal_that_is_not_utf_8_gets_escapes(desk: Path) -> None:
    done = shell(desk, "caseledger status small", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert "\\u2192 H" in done.stdout


@pytest.mark.parametrize("more", [{"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}, {"TERM": "dumb"}, {}])
def test_a_pipe_gets_no_colours(desk: Path, more: dict[str, str]) -> None:
    done = shell(desk, "caseledger cases; caseledger report small", **more)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr


def test_no_option_replaces_a_case(call: Cli, desk: Path) -> None:
    case = desk / ".caseledger/small.case"
    before = case.read_bytes()
    for command in (
        ["export", "small", "-o", str(case), "--force"],
        ["view", "small", "-o", str(case), "--force", "--no-browser"],
        ["measure", "cache", "small", "--output", str(case), "--force"],
        ["tables", "small", "-o", str(case), "--force"],
    ):
        found = call(*command)
        assert found.code == 2
        assert str(case) in found.err
        assert case.read_bytes() == before


def test_a_verdict_needs_a_diagnosis_and_goes_with_an_amendment(call: Cli, desk: Path) -> None:
    assert call("label", "fresh", "right").code == 2
    assert call("label", "small", "wrong").code == 0
    assert call("status", "small", "--json").json["standing"] == "labelled wrong"
    assert call("amend", "small", "--observation", "It rains.").code == 0
    assert "labelled" not in call("status", "small", "--json").json["standing"]


def test_a_run_goes_on_when_nobody_reads_its_progress(desk: Path) -> None:
    program = Path(sys.executable).parent / "caseledger"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([program, "run", "fresh"], stderr=write, stdout=subprocess.PIPE)
    os.close(write)
    assert done.returncode == 0
    assert done.stdout.startswith(b"done")


def test_an_altered_case_is_not_packed(call: Cli, desk: Path) -> None:
    connection = sqlite3.connect(desk / ".caseledger/small.case")
    with connection:
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute("UPDATE event SET state = CAST(state || ' ' AS BLOB) WHERE position = 5")
    connection.close()
    found = call("export", "small", "-o", "x.zip")
    assert found.code == 5
    assert "nothing was written" in found.err
    assert not (desk / "x.zip").exists()


def test_an_output_that_is_full_is_no_answer(desk: Path) -> None:
    program = Path(sys.executable).parent / "caseledger"
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([program, "log", "small"], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 5
    assert done.stderr.count(b"\n") == 1
    assert b"cannot be written" in done.stderr


def test_a_recording_is_named_like_any_case(call: Cli, desk: Path) -> None:
    assert call("new", "report.md", "--source", "source", "--name", "again").code == 0
    found = call("run", "again", "--provider", "recorded:small", "--until", "entity_resolution")
    assert found.code in (0, 4)  # another intake may ask other questions
    assert "No such file" not in found.err
