"""replay, fork, diff, request explain as a user runs them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger.book import Book
from ledger.events import CaseForked, OutcomeUnknown, RequestSent
from projections.spending import spending
from tests.phases.conftest import scratch as scratch
from tests.phases.scripting import Script, ticking
from tests.phases.scripting import run as run_case
from tests.tools.conftest import Cli
from tests.tools.test_hostile_text import RAW
from tests.tools.test_hostile_text import hostile as hostile
from tests.tools.test_malformed_records import EVENTS, request
from tests.tools.test_malformed_records import made as made
from tools.cli import run

SMALL = ".caseledger/small.case"


def position(case: str, topic: str, number: int = 1) -> int:
    """Return the position of the n-th event of a topic."""
    with Book.open(case) as book:
        found = [p for p, event in book.events() if f"{topic}/1" == event.TOPIC]
    return found[number - 1]


def head(case: str = SMALL) -> int:
    with Book.open(case) as book:
        return book.head.position


# Replay -----------------------------------------------------------------------------------------


def test_a_replay_at_the_head_shows_the_status_and_a_package_shows_the_same(call: Cli) -> None:
    status = call("status", "small", "--json").json
    shown = call("replay", "small", "--json").json
    assert shown["status"] == {key: value for key, value in status.items() if key != "next"}
    assert (shown["at"], shown["then"], shown["steps"]) == (status["position"], None, None)
    assert call("replay", "small.zip", "--json").json == shown
    earlier = [call("replay", name, "--at", "20", "--json").json for name in ("small", "small.zip")]
    assert earlier[0] == earlier[1]
    assert earlier[0]["status"]["position"] == 20


def test_a_replay_before_a_request_is_the_state_it_was_made_from(call: Cli) -> None:
    at = position(SMALL, "context.created", 3) - 1
    assert call("replay", "small", "--at", "R3").out == call("replay", "small", "--at", str(at)).out


def copy_without(call: Cli, topic: str, number: int) -> str:
    """Write a copy made for sharing without one event; return its name."""
    withheld = f"#{position(SMALL, topic, number)}"
    made = call("export", "small", "--redacted", "--withhold", withheld, "-o", "copy.zip")
    assert made.code == 0, made.err
    return "copy.zip"


def test_a_request_whose_preparation_is_withheld_is_seen_as_far_as_it_is_known(call: Cli) -> None:
    whole = call("replay", "small", "--json").json["seen"]
    copy = copy_without(call, "request.prepared", 3)
    seen = call("replay", copy, "--json").json["seen"]
    assert [item["request"] for item in seen] == [item["request"] for item in whole]
    assert [item["sent"] for item in seen] == [item["sent"] for item in whole]
    third = {**dict.fromkeys(seen[2]), "request": "R3", "status": "withheld"}
    assert seen[2] == third | {name: whole[2][name] for name in ("document", "sent")}
    assert seen[0] == whole[0]
    found = call("replay", copy)
    assert found.code == 0
    assert f"R3   withheld in this copy, sent at {whole[2]['sent']}" in found.out
    assert " and 1 withheld one had gone to a model" in found.out


@pytest.mark.parametrize(
    "topic", ["request.prepared", "request.sent", "context.created", "response.received"]
)
def test_a_copy_without_any_one_event_is_replayed(call: Cli, topic: str) -> None:
    copy = copy_without(call, topic, 2)
    for options in ([], ["--json"], ["--step"], ["--check"]):
        found = call("replay", copy, *options)
        assert (found.code, found.err) == (0, "")


def test_a_walk_prints_one_line_an_event(call: Cli) -> None:
    lines = call("replay", "small", "--step", "--at", "30").out.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(1, 31))
    later = call("replay", "small", "--step", "--at", "30", "--after", "20").out.splitlines()
    assert later == lines[20:]
    document = call("replay", "small", "--step", "--at", "30", "--json").json
    assert [step["position"] for step in document["steps"]] == list(range(1, 31))
    assert document["steps"][0]["changes"][0]["path"] == "$.case_id"


@pytest.mark.parametrize(
    "at", ["0", "-1", "9999", "x", "", "R0", "R99", "9" * 30, "1.0", "٣", "S1"]
)
@pytest.mark.parametrize("command", ["replay", "fork"])
def test_a_position_that_is_not_there_is_a_line_and_exit_2(
    call: Cli, command: str, at: str
) -> None:
    found = call(command, "small", "--at", at)
    assert (found.code, found.out) == (2, "")
    assert found.err.count("\n") == 1


def test_a_check_counts_only_requests_saved_by_then_and_ends_with_1_on_a_difference(
    call: Cli, made: Callable[[str], Path]
) -> None:
    path = str(made('document {"a":1}'))
    assert call("replay", path, "--check").code == 1
    assert call("replay", path, "--at", "2", "--check").code == 0
    assert "0 same" in call("replay", path, "--at", "2", "--check").out
    found = call("replay", path, "--check", "--json")
    assert found.code == 1
    assert [check["state"] for check in found.json["checks"]] == ["differs"]
    assert call("replay", "small", "--check", "--json").json["checks"][0]["state"] == "same"


# Fork -------------------------------------------------------------------------------------------


def test_a_fork_goes_into_the_cases_folder_and_its_origin_stays_as_it_was(
    call: Cli, desk: Path
) -> None:
    before = {path.name: path.read_bytes() for path in (desk / ".caseledger").iterdir()}
    found = call("fork", "small", "--at", "R3", "--note", "again", "--json")
    assert found.code == 0
    assert Path(found.json["case"]).name == f"small-fork-{found.json['position']}.case"
    for name, data in before.items():
        assert (desk / ".caseledger" / name).read_bytes() == data
    with Book.open(found.json["case"]) as book:
        *_, (at, event) = book.events()
    assert isinstance(event, CaseForked)
    assert (at, event.note) == (found.json["position"] + 1, "again")
    again = call("fork", "small", "--at", "R3")
    assert again.code == 2
    assert "already exists" in again.err


@pytest.mark.parametrize("origin", ["small", "small.zip"])
def test_a_fork_is_verified_exported_imported_run_and_reported_like_any_case(
    call: Cli, origin: str
) -> None:
    forked = call("fork", origin, "--at", "R3", "-o", "f.case", "--json").json
    assert call("verify", "f.case").out.startswith("ok")
    assert call("status", "f.case", "--json").json["trial_id"] == forked["trial_id"]
    assert call("export", "f.case", "-o", "f.zip").code == 0
    assert call("import", "f.zip", "-o", "g.case", "--json").json["head"] == forked["head"]
    assert call("run", "f.case").code == 0
    assert call("verify", "f.case").out.startswith("ok")
    assert call("report", "f.case").out == call("report", "small").out
    assert call("diff", "small", "f.case", "--json").json["shared"] == forked["position"]


def test_an_intake_is_not_forked_before_its_end(call: Cli, desk: Path) -> None:
    last = position(SMALL, "observations.extracted") - 1
    for at in (1, last):
        found = call("fork", "small", "--at", str(at), "-o", "f.case")
        assert found.code == 2
        assert "intake" in found.err
    assert not (desk / "f.case").exists()
    assert call("fork", "small", "--at", str(last + 1), "-o", "f.case").code == 0


def test_the_end_of_a_forks_name_is_that_of_a_case(call: Cli) -> None:
    found = call("fork", "small", "--at", "R3", "-o", "f.txt")
    assert found.code == 2
    assert "ends in .case" in found.err


def test_a_fork_says_that_a_request_is_open_and_that_it_stands_inside_a_step(call: Cli) -> None:
    sent = call("fork", "small", "--at", str(position(SMALL, "request.sent", 3)), "-o", "a.case")
    assert "R3 is open there" in sent.out
    accepted = position(SMALL, "response.accepted", 3)
    inside = call("fork", "small", "--at", str(accepted), "-o", "b.case")
    assert "inside a step" in inside.out
    clean = call("fork", "small", "--at", "R3", "-o", "c.case", "--json").json
    assert (clean["inside"], clean["open_request"]) == (False, None)


def test_an_open_request_keeps_its_configuration_and_later_ones_take_the_new_one(
    call: Cli,
) -> None:
    at = position(SMALL, "request.prepared", 4)
    protocol = ("--protocol", "investigation_project_v9")
    call("fork", "small", "--at", str(at), "-o", "open.case")
    call("fork", "small", "--at", "R4", "-o", "anew.case")
    for name in ("open.case", "anew.case"):
        assert call("run", name, *protocol).code == 0
    assert call("diff", "small", "R4", "open.case", "R4").code == 0
    assert call("diff", "small", "R4", "anew.case", "R4").code == 1
    for name in ("open.case", "anew.case"):
        prepared = [
            event["protocol"]
            for event in call("log", name, "--kind", "request.prepared", "--json").json["events"]
            if event["phase"] == "investigation"
        ]
        assert set(prepared[name == "open.case" :]) == {"investigation_project_v9"}


def test_a_request_that_was_sent_counts_as_unknown_and_goes_out_again(call: Cli) -> None:
    at = position(SMALL, "request.sent", 2)
    call("fork", "small", "--at", str(at), "-o", "f.case")
    assert call("run", "f.case").code == 0
    with Book.open("f.case") as book:
        later = [event for _, event in book.events(after=at)]
    assert [e.request for e in later if isinstance(e, OutcomeUnknown)] == ["R2"]
    assert [e.attempt for e in later if isinstance(e, RequestSent) and e.request == "R2"] == [2]


def test_an_answer_that_had_arrived_is_read_and_not_asked_for_again(call: Cli) -> None:
    at = position(SMALL, "response.received", 2)
    call("fork", "small", "--at", str(at), "-o", "f.case")
    assert call("run", "f.case").code == 0
    with Book.open("f.case") as book:
        later = [event for _, event in book.events(after=at)]
    assert not [e for e in later if isinstance(e, RequestSent) and e.request == "R2"]
    assert call("report", "f.case").out == call("report", "small").out


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    """Return a case with usage and a correction, analysed to its end."""
    path = tmp_path_factory.mktemp("scripted") / "s.case"
    for end in ("", ".head"):
        shutil.copyfile(f"{home / 'fresh.case'}{end}", f"{path}{end}")
    usage = {"prompt": 7, "output": 1}
    run_case(path, Script({"hypotheses": [b"{}"]}, usage=usage), sources=ticking(1000))
    return path


def goes_on(origin: Path, at: int, target: Path) -> None:
    """Fork, run to the end, and check that it got there and paid for each exchange once."""
    from ledger.forking import fork

    with Book.open(origin) as book:
        fork(book, target, at)
        inside = at < book.head.position and [
            event.at for _, event in book.events(at + 1, after=at - 1)
        ]
        wanted = {**whole(origin)}
    usage = {"prompt": 7, "output": 1}
    assert run_case(target, Script(usage=usage), sources=ticking(5000)).reason == "done"
    with Book.open(target) as book:
        read = [e for _, e in book.events() if e.TOPIC == "response.received/1"]
        assert spending(book.events()).prompt == 7 * len(read)
    if not inside or inside[0] != inside[1]:
        assert whole(target) == wanted, at


def whole(path: Path) -> dict[str, object]:
    from projections.folding import fold

    with Book.open(path) as book:
        return fold(book.events()).outcome()


def test_a_fork_after_events_of_every_other_kind_goes_on_to_the_same_end(
    scripted: Path, scratch: Path
) -> None:
    with Book.open(scripted) as book:
        last = {event.TOPIC: p for p, event in book.events()}
        first = position(str(scripted), "observations.extracted")
    for at in sorted(p for p in last.values() if p >= first)[::2]:
        goes_on(scripted, at, scratch / f"{at}.case")


@pytest.mark.slow
def test_a_fork_at_every_position_goes_on_to_the_same_end(scripted: Path, scratch: Path) -> None:
    for at in range(position(str(scripted), "observations.extracted"), head(str(scripted)) + 1):
        goes_on(scripted, at, scratch / f"{at}.case")


# Diff -------------------------------------------------------------------------------------------


def test_a_diff_ends_with_1_exactly_if_there_is_a_difference(call: Cli) -> None:
    assert call("diff", "small", "20", "20").code == 0
    assert call("diff", "small", "R2", "R2").code == 0
    assert call("diff", "small", "small.zip").code == 0
    assert call("diff", "small", "20", "head").code == 1
    assert call("diff", "small", "R2", "R3").code == 1
    assert call("diff", "small", "fresh").code == 1
    assert call("diff", "small", "R2", "small.zip", "R2").code == 0


@pytest.mark.parametrize(
    "arguments", [("R2", "20"), ("R2", "x"), ("0", "3"), ("R2", "R99"), ("nowhere",), ("S1", "S2")]
)
def test_what_cannot_be_compared_is_a_line_and_exit_2(
    call: Cli, arguments: tuple[str, ...]
) -> None:
    found = call("diff", "small", *arguments)
    assert (found.code, found.out) == (2, "")
    assert found.err.count("\n") == 1


def test_a_diff_is_bounded_and_says_how_much_more_there_is(
    call: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tools import differing

    monkeypatch.setattr(differing, "SHOWN", 3)
    bounded = call("diff", "small", "6", "head")
    assert len(bounded.out.splitlines()) == 5
    assert max(map(len, bounded.out.splitlines())) < 600
    full = call("diff", "small", "6", "head", "--full")
    more = len(full.out.splitlines()) - 4
    assert bounded.out.splitlines()[-1].startswith(f"{more} more differences")
    document = call("diff", "small", "6", "head", "--json").json
    assert (len(document["changes"]), document["more"]) == (3, more)
    assert document["first"] == document["changes"][0]["path"]


def test_long_values_are_cut_where_they_part(call: Cli) -> None:
    found = call("diff", "small", "R1", "R2", "--json").json
    system = next(change for change in found["changes"] if change["path"] == "$.system")
    assert set(system["left"]) == {"characters", "begins"}
    shown = next(
        line for line in call("diff", "small", "R1", "R2").out.splitlines() if "system:" in line
    )
    assert "characters)" in shown
    assert len(shown) < 400
    whole_text = call("diff", "small", "R1", "R2", "--full", "--json").json["changes"]
    assert isinstance(next(c for c in whole_text if c["path"] == "$.system")["left"], str)


# Explain ----------------------------------------------------------------------------------------


def test_an_explanation_of_a_package_is_that_of_the_case(call: Cli) -> None:
    for name in ("R1", "R5", "last"):
        assert call("request", "explain", "small", name).code == 0
        shown = [
            call("request", "explain", case, name, "--json").json for case in ("small", "small.zip")
        ]
        assert shown[0] == shown[1]
    assert (
        call("request", "explain", "small").out == call("request", "explain", "small", "last").out
    )
    missing = call("request", "explain", "small", "R99")
    assert (missing.code, missing.err.count("\n")) == (2, 1)


# What is not of our making ----------------------------------------------------------------------

COMMANDS = [
    ["replay", "CASE"],
    ["replay", "CASE", "--step"],
    ["replay", "CASE", "--check"],
    ["diff", "CASE", "1", "head"],
    ["diff", "CASE", "CASE"],
    ["diff", "CASE", "R1", "R1"],
    ["fork", "CASE", "--at", "head", "-o", "f.case"],
    ["request", "explain", "CASE"],
]


@pytest.mark.parametrize("name", EVENTS)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_nonsensical_record_is_one_line(
    name: str,
    command: list[str],
    made: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = str(made(name))
    monkeypatch.chdir(tmp_path)
    assert run([path if word == "CASE" else word for word in command]) in (0, 1, 2, 5)
    assert capsys.readouterr().err.count("\n") <= 1


@pytest.mark.parametrize("content", ["5", "[]", '{"evidence":[1],"shared":7}', '{"sources":1}'])
def test_a_request_whose_content_is_no_view_is_one_line(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = (
        '{"format":1,"protocol":"diagnosis_v3","system":"","schema":{},'
        f'"messages":[{{"role":"user","content":{content}}}]}}'
    ).encode()
    path = tmp_path / "a.case"
    from ledger.events import CaseOpened
    from tests.support import AT

    with Book.create(path) as book:
        book.append(CaseOpened(at=AT, case_id="c", trial_id="t", title="x", program="x"))
        for event, payload in request(document):
            book.append(event, payloads=[payload])
    for command in (["request", "explain", str(path)], ["diff", str(path), "R1", "R1"]):
        assert run(command) in (0, 5)
        assert capsys.readouterr().err.count("\n") <= 1
    assert run(["saw", str(path), "--decoded"]) in (0, 5)


def test_hostile_text_drives_no_terminal(hostile: Cli) -> None:
    commands = [
        ["replay", "evil"],
        ["replay", "evil", "--step"],
        ["diff", "evil", "2", "head"],
        ["diff", "evil", "2", "head", "--full"],
        ["diff", "evil", "small"],
        ["diff", "evil", "R1", "R2", "--full"],
        ["request", "explain", "evil"],
        ["fork", "evil", "--at", "\x1b[31m"],
    ]
    for command in commands:
        for more in ([], ["--json"]):
            found = hostile(*command, *more)
            assert found.code in (0, 1, 2), command
            assert RAW.search(found.out + found.err) is None, command
