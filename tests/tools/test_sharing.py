"""Copies made for sharing: what is withheld is nowhere in them, and they still verify."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ledger import packing
from ledger.book import Book
from ledger.package import Package, verify_package
from ledger.redacted import Redacted
from phases.intake import IntakeRequest
from phases.opening import amend_case, open_case
from projections.redaction import redaction
from tests.phases.scripting import Script, look, run, step_answer, ticking, write_inputs
from tests.tools.conftest import Cli
from tools.packaging import derived_members, prompt_members, verify_whole
from tools.reporting import report_json

BIRDS = {
    "S1": ["reportfinch71", 'Blåmeis "i\\hagen"', "seven green lanterns outside", "鶯の歌声"],
    "S2": ["sourcefinch72", "Grünfink\t'im\\Wald'", "eleven brass kettles inside", "백조의노래"],
    "S3": ["logfinch73", 'Mésange "bleue\\"', "nineteen paper kites above", "夜鶯與玫瑰"],
    "S4": ["datafinch74", "кольраби\\«семь»", "twelve wooden spoons below", "コマドリの巣"],
    "S5": ["latefinch75", 'žluva "hajní\\', "thirty copper coins beside", "杜鵑啼血聲"],
}
"""Canaries of each artefact: a word, escapes and letters, a phrase of everyday words, no spaces."""

ANSWER = "answerfinch76"
PATH = "pathfinch77"
TABLE = "tablefinch78"
NUMBER = 739184625


def quoted(*names: str) -> str:
    return " ~ ".join(bird for name in names for bird in BIRDS[name])


def inputs(folder: Path) -> IntakeRequest:
    """Write the small case's inputs, with canaries in every corner."""
    request = write_inputs(folder)
    lines = "".join(f"# {bird}\n" for bird in BIRDS["S2"])
    cart = folder / "source/shop/cart.py"
    cart.write_text(cart.read_text() + lines, "utf-8")
    (folder / f"source/shop/{PATH}.py").write_text("x = 1\n")
    report = folder / "report.md"
    report.write_text(f"# {BIRDS['S1'][0]} total\n" + report.read_text() + quoted("S1") + "\n")
    with (folder / "app.log").open("a", encoding="utf-8") as log:
        log.writelines(f"2024-05-17 09:00:03 ERROR dropped {b} cart_total\n" for b in BIRDS["S3"])
    connection = sqlite3.connect(folder / "shop.db")
    with connection:
        connection.execute(f"CREATE TABLE {TABLE} (note TEXT, amount INTEGER)")
        rows = [(bird, NUMBER) for bird in BIRDS["S4"]]
        connection.executemany(f"INSERT INTO {TABLE} VALUES (?, ?)", rows)
    connection.close()
    return request


LOOKS = (
    (
        look("read_lines", path="shop/cart.py", first=1, last=20),
        look("query_database", database="S4", sql=f"SELECT * FROM {TABLE}"),
    ),
    (look("search_log", query="dropped", hypothesis="H2"), look("list_files")),
)


def talkative() -> Script:
    """Return an analyst who repeats all that it has seen, wherever it can."""

    def interpretation(good: Any, view: Any) -> Any:
        return {**good, "summary": f"{ANSWER} {quoted('S1', 'S3')}"}

    def step(good: Any, view: Any) -> Any:
        answer = step_answer(view, LOOKS)
        seen = json.dumps(view["evidence"], ensure_ascii=bool(len(view["evidence"]) % 2))
        answer["assessments"][0]["notes"] = seen[-1500:]
        answer["conclusion"]["why"] = f"{NUMBER if str(NUMBER) in seen else 0} in {TABLE}, {PATH}"
        return answer

    def diagnosis(good: Any, view: Any) -> Any:
        return {**good, "cause": f"{quoted('S2', 'S4')} {NUMBER}", "checks": [json.dumps(good)]}

    return Script(
        {
            "case_interpretation": [interpretation] * 2,
            "investigation": [b"no JSON: " + quoted("S2").encode(), *([step] * 8)],
            "diagnosis": [diagnosis] * 2,
        }
    )


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Analyse the case, amend it with a late log, and analyse it again."""
    folder = tmp_path_factory.mktemp("sharing")
    path = folder / "birds.case"
    open_case(path, inputs(folder / "inputs"), program="tests", sources=ticking())
    run(path, talkative(), sources=ticking(1000))
    late = folder / "late.log"
    late.write_text("".join(f"2024-05-18 ERROR {bird} cart_total\n" for bird in BIRDS["S5"]))
    with Book.open_for_writing(path, sources=ticking(5000)) as book:
        amend_case(book, IntakeRequest(None, None, logs=(late,)), note="seen later")
    run(path, talkative(), sources=ticking(6000))
    return path


class Shared(NamedTuple):
    path: Path
    members: dict[str, bytes]

    def holds(self, text: str) -> list[str]:
        """Return the members that hold a text, in whatever way it may be written there."""
        forms = set(spellings(text))
        return [n for n, d in self.members.items() if any(f in d.lower() for f in forms)]


def spellings(text: str) -> Iterator[bytes]:
    """Yield a text as it is, in both ways of JSON and in JSON inside JSON, and as UTF-16."""
    forms = {text}
    for _ in range(3):
        forms |= {json.dumps(f, ensure_ascii=a)[1:-1] for f in forms for a in (True, False)}
    for form in forms:
        yield form.lower().encode()
    yield text.lower().encode("utf-16-le")


def share(case: Path, path: Path, *withhold: str) -> Shared:
    """Write a copy with derived files; return what is in it."""
    with Book.open(case) as book:
        record = Redacted(book, redaction(book, withhold).withheld) if withhold else book
        extra = prompt_members(record) | derived_members(record, requests=True, report=True)
        packing.write(record, path, extra=extra)
    with zipfile.ZipFile(path) as archive:
        return Shared(path, {name: archive.read(name) for name in archive.namelist()})


@pytest.fixture(scope="module")
def whole(case: Path) -> Shared:
    return share(case, case.with_name("whole.zip"))


# Nothing of it is there ---------------------------------------------------------------------------


def test_the_canaries_sing_all_over_the_whole_package(whole: Shared) -> None:
    """Or the tests below would show nothing."""
    for name in ("S1", "S2", "S3", "S4"):
        for bird in BIRDS[name]:
            members = whole.holds(bird)
            assert "chunks.jsonl" in members, bird
            assert any(member.startswith("derived/requests/") for member in members), bird
    for text in (ANSWER, TABLE, str(NUMBER), PATH):
        assert {"events.jsonl", "chunks.jsonl"} <= set(whole.holds(text)), text


@pytest.mark.parametrize("withhold", ["S1", "S2", "S3", "S4", "S5"])
def test_nothing_of_a_withheld_artefact_is_anywhere(
    withhold: str, case: Path, tmp_path: Path
) -> None:
    shared = share(case, tmp_path / "shared.zip", withhold)
    more = {"S2": [PATH], "S4": [TABLE, str(NUMBER)]}
    for text in [*BIRDS[withhold], *more.get(withhold, [])]:
        assert shared.holds(text) == [], text
    kept = {name: birds for name, birds in BIRDS.items() if name != withhold}
    for name, birds in kept.items():
        assert any(member.startswith(f"intake/{name}/") for member in shared.holds(birds[0]))


@pytest.mark.parametrize("kind", ["report", "source", "log", "database"])
def test_a_kind_stands_for_all_its_artefacts(kind: str, case: Path, tmp_path: Path) -> None:
    shared = share(case, tmp_path / "shared.zip", kind)
    names = {"report": ["S1"], "source": ["S2"], "log": ["S3", "S5"], "database": ["S4"]}[kind]
    for name in names:
        for bird in BIRDS[name]:
            assert shared.holds(bird) == []


def test_everything_that_was_taken_in_can_be_withheld_at_once(case: Path, tmp_path: Path) -> None:
    shared = share(case, tmp_path / "shared.zip", "report", "source", "log", "database")
    for bird in (bird for birds in BIRDS.values() for bird in birds):
        assert shared.holds(bird) == []
    assert not any(name.startswith("intake/") for name in shared.members)


def test_what_came_before_a_late_artefact_stays(case: Path, tmp_path: Path) -> None:
    shared = share(case, tmp_path / "shared.zip", "S5")
    with Package(shared.path) as package:
        states = {row.position for row in package.rows() if row.state is not None}
        amended = next(r.position for r in package.rows() if r.topic == "case.amended/1")
        assert set(range(1, amended)) <= states
        checks = [n for n in shared.members if n.startswith("derived/requests/")]
    assert len(checks) > 5


def test_an_answer_is_withheld_with_all_that_repeats_it(case: Path, tmp_path: Path) -> None:
    with Book.open(case) as book:
        requests = [
            (e.request, e.phase) for _, e in book.events() if e.TOPIC == "request.prepared/1"
        ]
    names = [name for name, phase in requests if phase == "case_interpretation"]
    shared = share(case, tmp_path / "shared.zip", *names)
    assert shared.holds(ANSWER) == []
    assert f"derived/requests/{names[0]}.json" not in shared.members
    assert "derived/requests/R1.json" in shared.members
    assert shared.holds(BIRDS["S2"][0])  # the source stays


def test_evidence_is_withheld_with_the_contexts_that_show_it(case: Path, tmp_path: Path) -> None:
    with Book.open(case) as book:
        found = [e for _, e in book.events() if e.TOPIC == "evidence.recorded/1"]
    names = [e.evidence for e in found if e.kind == "query_database"]
    shared = share(case, tmp_path / "shared.zip", *names)
    assert shared.holds(str(NUMBER)) == []
    with Package(shared.path) as package:
        assert any(n.startswith("intake/S4/") for n in package.members)


def test_a_position_is_withheld_with_what_repeats_it(case: Path, tmp_path: Path) -> None:
    with Book.open(case) as book:
        position = next(n for n, e in book.events() if e.TOPIC == "case.interpreted/1")
    shared = share(case, tmp_path / "shared.zip", f"#{position}")
    with Package(shared.path) as package:
        assert position in package.withheld.positions
    states = [json.loads(line) for line in shared.members["events.jsonl"].splitlines()]
    assert not any(ANSWER in line.get("state", "") for line in states)


def test_the_title_goes_with_the_report(case: Path, tmp_path: Path) -> None:
    shared = share(case, tmp_path / "shared.zip", "S1")
    with Package(shared.path) as package:
        assert 1 in package.withheld.positions
        assert (report_json(package)["title"], package.case_id) == ("", package.case_id)


def test_the_same_copy_has_the_same_bytes(case: Path, tmp_path: Path) -> None:
    first = share(case, tmp_path / "a.zip", "S3", "#40")
    again = share(case, tmp_path / "b.zip", "S3", "#40")
    assert first.path.read_bytes() == again.path.read_bytes()


# It still verifies --------------------------------------------------------------------------------


@pytest.mark.parametrize("withhold", ["S1", "S2", "S3", "S4", "S5", "R2", "E1", "#40", "report"])
def test_a_copy_verifies_under_the_head_of_the_original(
    withhold: str, case: Path, tmp_path: Path
) -> None:
    shared = share(case, tmp_path / "shared.zip", withhold)
    with Package(shared.path) as package, Book.open(case) as book:
        report = verify_whole(package)
        assert report.findings == []
        assert package.head == book.head
        assert [r.chain for r in package.rows()] == [r.chain for r in book.rows()]
        assert any(package.withheld)
        for name in ("case_id", "trial_id", "package_id", "generation"):
            assert package.manifest[name] == json.loads(share_manifest(case, tmp_path))[name]


def share_manifest(case: Path, folder: Path) -> bytes:
    path = folder / "whole.zip"
    if not path.exists():
        with Book.open(case) as book:
            packing.write(book, path)
    with zipfile.ZipFile(path) as archive:
        return archive.read("manifest.json")


def test_a_copy_says_what_it_is_and_is_not_imported(call: Cli, case: Path, desk: Path) -> None:
    done = call("export", str(case), "--redacted", "--withhold", "S3", "-o", "copy.zip")
    assert done.code == 0, done.err
    assert "S3 and what quotes them" in done.out
    found = call("verify", "copy.zip")
    assert found.code == 0
    events, payloads = (int(n) for n in found.out.split("\n")[0].split() if n.isdecimal())
    assert found.out.startswith(f"redacted: {events} events and {payloads} payloads withheld\nok: ")
    shown = call("verify", "copy.zip", "--json").json
    assert shown["withheld"] == {"events": events, "payloads": payloads}
    refused = call("import", "copy.zip")
    assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 1)
    assert "made for sharing" in refused.err
    assert call("seal", "copy.zip").out == call("seal", str(case)).out


def test_every_reading_command_works_on_a_copy_or_says_what_is_withheld(
    call: Cli, case: Path
) -> None:
    options = ["--redacted", "--withhold", "source", "--withhold", "S1", "-o", "copy.zip"]
    assert call("export", str(case), *options).code == 0
    whole_log = call("log", str(case), "--json").json["events"]
    for event, shown in zip(
        whole_log, call("log", "copy.zip", "--json").json["events"], strict=True
    ):
        hidden = {"position": event["position"], "topic": event["topic"], "withheld": True}
        assert shown in (event, hidden)
    hidden_lines = [line for line in call("log", "copy.zip").out.splitlines() if "withheld" in line]
    assert hidden_lines[0].split() == ["1", "case.opened", "withheld"]
    concluded = call("log", "copy.zip", "--kind", "diagnosis").out.splitlines()
    assert {line.split(maxsplit=1)[1] for line in concluded} == {
        "diagnosis.concluded      withheld"
    }
    status = call("status", "copy.zip", "--json").json
    assert status["withheld"]["topics"]["case.opened/1"] == 1
    assert "withheld: what depends on them is not shown" in call("status", "copy.zip").out
    report = call("report", "copy.zip")
    assert (report.code, "The diagnosis is withheld." in report.out) == (0, True)
    assert call("show", "copy.zip", "1").out.count('"withheld": true') == 1
    assert call("show", "copy.zip", "S2", "--json").json["content"] == {"withheld": True}
    assert call("show", "copy.zip", "S3", "--json").json["content"].startswith("2024-05-17")
    for arguments in (["show", "copy.zip", "S2", "--raw"], ["saw", "copy.zip", "R4"],
                      ["saw", "copy.zip", "last", "--decoded"]):  # fmt: skip
        found = call(*arguments)
        assert (found.code, found.out, len(found.err.splitlines())) == (1, "", 1), arguments
        assert "withheld in this copy" in found.err
    assert "withheld in this copy" in call("show", "copy.zip", "F1").err
    checks = call("saw", "copy.zip", "all", "--check", "--json").json
    assert {check["state"] for check in checks} == {"unchecked"}
    assert call("measure", "consolidation", "copy.zip").code in (0, 1)


def test_by_default_sources_logs_and_databases_are_withheld(call: Cli, case: Path) -> None:
    done = call("export", str(case), "--redacted", "--json")
    assert done.json["withheld"]["asked"] == ["S2", "S3", "S5", "S4"]
    assert done.json["package"] == "birds-redacted.zip"
    with zipfile.ZipFile("birds-redacted.zip") as archive:
        intake = [name for name in archive.namelist() if name.startswith("intake/")]
    assert intake == ["intake/S1/report.md"]


@pytest.mark.parametrize("what", ["S9", "E99", "R99", "#0", "#99999", "H1", "sources", "", "#x"])
def test_what_the_case_does_not_have_cannot_be_withheld(what: str, call: Cli, case: Path) -> None:
    found = call("export", str(case), "--redacted", "--withhold", what, "-o", "copy.zip")
    assert (found.code, found.out, len(found.err.splitlines())) == (2, "", 2)
    assert "name an artefact" in found.err
    assert not Path("copy.zip").exists()


def test_withhold_goes_with_redacted(call: Cli) -> None:
    assert "go with --redacted" in call("export", "small", "--withhold", "S1").err
    assert not Path("small.zip.new").exists()


def test_an_artefact_that_holds_lines_of_a_withheld_one_is_not_kept_by_accident(
    call: Cli, desk: Path
) -> None:
    line = "2024-05-17 09:00:01 ERROR dropped item plum from cart 17"
    assert line in (desk / "app.log").read_text()
    report = desk / "quoting.md"
    report.write_text(f"# Total too low\n\nThe log says:\n\n> {line}\n")
    assert call("new", "quoting.md", "--log", "app.log", "-o", "q.case").code == 0
    found = call("export", "q.case", "--redacted", "-o", "q.zip")
    assert (found.code, found.out) == (2, "")
    assert "S1 has 1 line in common with what is withheld" in found.err
    assert not Path("q.zip").exists()
    assert call("export", "q.case", "--redacted", "--keep", "S1", "-o", "q.zip").code == 0
    both = ["--withhold", "S1", "--withhold", "log"]
    assert call("export", "q.case", "--redacted", *both, "-o", "r.zip").code == 0
    with zipfile.ZipFile("r.zip") as archive:
        assert not any(line.encode() in archive.read(name) for name in archive.namelist())


def test_equal_bytes_are_withheld_wherever_they_stand(tmp_path: Path) -> None:
    request = write_inputs(tmp_path / "inputs")
    twin = tmp_path / "inputs/source/shop/copy.txt"
    twin.write_bytes((tmp_path / "inputs/app.log").read_bytes())
    path = tmp_path / "a.case"
    open_case(path, request, program="tests", sources=ticking())
    shared = share(path, tmp_path / "a.zip", "S3")
    assert shared.holds("dropped item plum from cart 17") == []
    assert "intake/S2/shop/cart.py" in shared.members
    assert "intake/S2/shop/copy.txt" not in shared.members
    with Package(shared.path) as package:
        assert verify_package(package).findings == []


def test_secrets_that_were_replaced_go_with_their_artefact(tmp_path: Path) -> None:
    request = write_inputs(tmp_path / "inputs")
    hidden = tmp_path / f"inputs/source/shop/{PATH}.py"
    hidden.write_text("KEY = 'AKIA" + "QYLPMN5HHHFPZAM2'\n")
    path = tmp_path / "a.case"
    open_case(path, request, program="tests", sources=ticking())
    assert PATH.encode() in share(path, tmp_path / "whole.zip").members["events.jsonl"]
    assert share(path, tmp_path / "a.zip", "source").holds(PATH) == []
