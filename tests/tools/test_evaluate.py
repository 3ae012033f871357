"""`evaluate`: real processes over folders of fixed bugs; the truth stays outside every ledger."""

from __future__ import annotations

import json
import shutil
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.book import Book
from ledger.files import new_file
from tests.phases.scripting import write_inputs
from tests.tools.conftest import Cli
from tools import cli, evaluating
from tools.evaluating import _Children

CANARY = "ZYXWcanary"
TRUTH = {"files": ["shop/cart.py"], "functions": ["shop/cart.py::cart_total"]}


def write_case(folder: Path, **truth: Any) -> Path:
    """Write a case as users keep them: what is known later is full of canaries."""
    inputs = write_inputs(folder)
    (folder / "logs").mkdir()
    (folder / "db").mkdir()
    inputs.logs[0].rename(folder / "logs/app.log")
    inputs.databases[0].rename(folder / "db/shop.db")
    (folder / "truth.json").write_text(json.dumps({**TRUTH, "explanation": CANARY, **truth}))
    for name in ("case.json", "fix.patch", "repro.py", "observed.log", "db_facts.json", "notes.md"):
        (folder / name).write_text(f"{CANARY} {name}")
    return folder


@pytest.fixture(scope="module")
def bugs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of one case, beside what is none; do not change."""
    folder = tmp_path_factory.mktemp("bugs")
    write_case(folder / f"cart-{CANARY}-loses-last-item",
               rows=[{"table": "carts", "where": "note = 'M1'"}])  # fmt: skip
    (folder / "README.md").write_text(CANARY)
    (folder / "no-case").mkdir()
    return folder


@pytest.fixture(scope="module")
def kept(bugs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the ledger and the result of an evaluation; do not change."""
    folder = tmp_path_factory.mktemp("kept")
    arguments = ["evaluate", str(bugs), "--keep", str(folder), "-o", str(folder / "result.json")]
    assert cli.run([*arguments, "--json"]) == 0
    return folder


@pytest.fixture
def result(kept: Path) -> Any:
    return json.loads((kept / "result.json").read_text())


def name_of(bugs: Path) -> str:
    return next(path.name for path in bugs.iterdir() if CANARY in path.name)


def everything(ledger: Path) -> Iterator[bytes]:
    """Yield every byte a ledger holds: the file, the events as stored, every payload whole."""
    yield ledger.read_bytes()
    with Book.open(ledger) as book:
        for row in book.rows():
            yield row.topic.encode() + (row.state or b"")
        for digest, _ in book.stored_payloads():
            yield book.payload(digest)


def test_no_byte_of_the_truth_or_of_the_folders_name_reaches_the_ledger(
    bugs: Path, kept: Path
) -> None:
    ledger = kept / f"{name_of(bugs)}.case"
    found = list(everything(ledger))
    assert len(found) > 20
    for part in found:
        assert CANARY.encode() not in part
    with Book.open(ledger) as book:
        taken = {
            getattr(event, "name", "") for _, event in book.events() if hasattr(event, "media")
        }
    assert taken == {"report.md", "source", "app.log", "shop.db"}


def test_a_case_is_scored_with_what_it_used(bugs: Path, result: Any) -> None:
    (row,) = result["cases"]
    assert (row["case"], row["state"], row["rank"]) == (name_of(bugs), "scored", 1)
    assert (row["functions"], row["function_rank"], row["named"][0]) == (1, 1, "shop/cart.py")
    assert row["answered_by"] == ["offline offline-analyst-1"]
    assert row["rows"]["total"] == 1
    for exact in ("citations", "quotes", "repeated"):
        assert row[exact]["total"] == row[exact]["good"] > 0, exact
    assert all(row["used"][name] > 0 for name in row["used"] if name != "cost_nano_usd")
    assert result["summary"]["any_file"]["acc_1"] == result["summary"]["cases"] == 1
    assert result["summary"]["calibration"]["cases"] == 1


def test_finished_ledgers_are_scored_again_without_running(
    call: Cli, bugs: Path, kept: Path, result: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Children, "run", None)
    again = call("evaluate", str(bugs), "--keep", str(kept), "--json")
    assert again.code == 0
    (row,), (before,) = again.json["cases"], result["cases"]
    assert row["used"]["cpu_ms"] is None
    assert {**row, "used": 0} == {**before, "used": 0}


def test_an_unfinished_ledger_goes_on_where_it_stands(
    call: Cli, desk: Path, bugs: Path, tmp_path: Path
) -> None:
    keep = tmp_path / "keep"
    keep.mkdir()
    assert call("run", "fresh", "--max-requests", "2").code == 0
    for end in ("", ".head"):
        shutil.copyfile(desk / f".caseledger/fresh.case{end}", keep / f"{name_of(bugs)}.case{end}")
    found = call("evaluate", str(bugs), "--keep", str(keep), "--json")
    assert found.code == 0
    assert found.json["cases"][0]["used"]["cpu_ms"] is None


def test_a_ledger_of_another_provider_is_not_taken_for_this_ones(
    call: Cli, desk: Path, bugs: Path, kept: Path
) -> None:
    other = f"recorded:{desk / '.caseledger/small.case'}"
    found = call("evaluate", str(bugs), "--keep", str(kept), "--provider", other, "--json")
    assert (found.code, found.json["cases"][0]["state"]) == (1, "failed")
    assert "was made with offline" in found.json["cases"][0]["reason"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--no-egress", "log"], "was made with no --no-egress"),
        (["--protocol", "diagnosis_v3"], "was made with no --protocol"),
    ],
)
def test_a_ledger_of_other_options_is_not_taken_for_this_ones(
    call: Cli, bugs: Path, kept: Path, options: list[str], said: str
) -> None:
    found = call("evaluate", str(bugs), "--keep", str(kept), *options, "--json")
    assert (found.code, found.json["cases"][0]["state"]) == (1, "failed")
    assert said in found.json["cases"][0]["reason"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--no-egress", "db"], "was made with --no-egress database"),
        (["--protocol", "diagnosis_v3"], "was made with --protocol diagnosis_v3"),
    ],
)
def test_a_ledger_of_these_options_is_not_taken_for_one_without(
    call: Cli, desk: Path, bugs: Path, tmp_path: Path, options: list[str], said: str
) -> None:
    keep = tmp_path / "keep"
    keep.mkdir()
    assert call("run", "fresh", *options).code == 0
    for end in ("", ".head"):
        shutil.copyfile(desk / f".caseledger/fresh.case{end}", keep / f"{name_of(bugs)}.case{end}")
    found = call("evaluate", str(bugs), "--keep", str(keep), "--json")
    assert (found.code, found.json["cases"][0]["state"]) == (1, "failed")
    assert said in found.json["cases"][0]["reason"]
    again = call("evaluate", str(bugs), "--keep", str(keep), *options, "--json")
    assert again.json["cases"][0]["state"] == "scored", again.json["cases"][0]["reason"]


def test_a_case_that_fails_is_a_row_with_its_reason(call: Cli, bugs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    shutil.copytree(bugs, folder)
    broken = write_case(folder / "a-broken")
    (broken / "db/shop.db").write_bytes(b"no database")
    found = call("evaluate", str(folder), "--jobs", "2")
    assert found.code == 1
    assert "a-broken\tnot scored" in found.out
    assert "a-broken: not scored: " in found.out
    assert "shop.db" in found.out
    assert "cases scored\t1 of 2" in found.out
    assert "a faulty file among the first 1\t1 of 2 (50.0 %)" in found.out


def test_a_killed_process_is_a_row_too(
    call: Cli, bugs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluating, "_PROGRAM", "import os; os.kill(os.getpid(), 9)")
    found = call("evaluate", str(bugs), "--json")
    assert found.code == 1
    assert found.json["cases"][0]["reason"] == "the process was ended by signal 9"
    assert found.json["cases"][0]["used"]["cpu_ms"] is not None


@pytest.mark.parametrize(
    ("truth", "reason"),
    [
        ("{", "is no JSON"),
        ('{"files": ["shop/other.py"]}', "the source has no such file"),
        ('{"functions": []}', "names no faulty file"),
        ('{"files": ["shop/cart.py"], "rows": [{"table": "none", "where": "1"}]}', "rows of none"),
        ('{"files": ["shop/cart.py"], "rows": [{"table": "carts", "where": "1; DROP"}]}', "carts"),
    ],
)
def test_a_truth_that_is_none_says_what_is_wrong(
    call: Cli, bugs: Path, kept: Path, tmp_path: Path, truth: str, reason: str
) -> None:
    apart = tmp_path / "truths" / name_of(bugs)
    apart.mkdir(parents=True)
    (apart / "truth.json").write_text(truth)
    found = call("evaluate", str(bugs), "--keep", str(kept), "--truth", str(apart.parent), "--json")
    assert found.code == 1
    assert reason in found.json["cases"][0]["reason"]


def test_a_case_without_truth_is_left_out_and_named(
    call: Cli, bugs: Path, kept: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "two"
    shutil.copytree(bugs, folder)
    (write_case(folder / "open") / "truth.json").unlink()
    found = call("evaluate", str(folder), "--keep", str(kept))
    assert found.code == 0
    assert "open: left out, it has no truth.json" in found.out


def test_better_and_worse_than_an_earlier_result(
    call: Cli, bugs: Path, kept: Path, result: Any, tmp_path: Path
) -> None:
    def against(**changed: Any) -> Any:
        before = {**result, "cases": [{**result["cases"][0], **changed}]}
        (tmp_path / "before.json").write_text(json.dumps(before))
        return call("evaluate", str(bugs), "--keep", str(kept), "--against", "before.json")

    better = against(rank=3, function_rank=None)
    assert better.code == 0
    assert f"better: {name_of(bugs)}, file: rank 3 → rank 1" in better.out
    assert f"better: {name_of(bugs)}, function: missed → rank 1" in better.out
    assert "file +1, function +1, rows +0" in better.out
    worse = against(rows={"total": 1, "good": 5})
    assert worse.code == 1
    assert f"worse: {name_of(bugs)}, rows: 5 cited → " in worse.out


@pytest.mark.parametrize(
    "changed",
    [
        {"function_rank": ...}, {"rank": ...}, {"state": ...}, {"rows": {}}, {"rows": 5},
        {"rank": "first"}, {"function_rank": 1e400}, {"case": [1]}, {"rows": {"good": "9"}},
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_compared_is_one_line(
    call: Cli, bugs: Path, kept: Path, result: Any, tmp_path: Path, changed: Any
) -> None:
    row = {k: v for k, v in {**result["cases"][0], **changed}.items() if v is not ...}
    (tmp_path / "before.json").write_text(json.dumps({"cases": [row]}))
    found = call("evaluate", str(bugs), "--keep", str(kept), "--against", "before.json")
    assert (found.code, found.out) == (2, "")
    assert "is not a result of `evaluate`" in found.err
    assert found.err.count("\n") == 1


def test_a_result_replaces_an_earlier_one_and_nothing_else(
    call: Cli, bugs: Path, kept: Path, result: Any, tmp_path: Path
) -> None:
    mine = tmp_path / "result.json.part"
    mine.write_text("mine")
    (tmp_path / "result.json").write_text("old")
    refused = call("evaluate", str(bugs), "--keep", str(kept), "-o", "result.json")
    assert (refused.code, refused.out) == (2, "")
    assert "no earlier result" in refused.err
    (tmp_path / "result.json").write_text('{"cases": []}')
    again = ["evaluate", str(bugs), "--keep", str(kept), "-o", "result.json"]
    assert call(*again).code == 0
    assert mine.read_text() == "mine"
    assert json.loads((tmp_path / "result.json").read_text())["cases"]
    with new_file(tmp_path / "result.json", overwrite=True):
        assert call(*again).code == 5  # another process is writing it


def test_a_report_as_text_and_a_source_as_archive_are_taken(call: Cli, tmp_path: Path) -> None:
    case = write_case(tmp_path / "texts/one")
    (case / "report.md").rename(case / "report.txt")
    with zipfile.ZipFile(case / "source.zip", "w") as archive:
        for path in sorted((case / "source").rglob("*.py")):
            archive.write(path, path.relative_to(case / "source"))
    shutil.rmtree(case / "source")
    found = call("evaluate", "texts", "--json")
    assert found.code == 0
    assert found.json["cases"][0]["rank"] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "is no folder"),
        (["source"], "no case to evaluate"),
        ([".", "--only", "x"], "has no such case"),
        (["{bugs}", "--against", "nowhere"], "cannot be read"),
        (["{bugs}", "--against", "report.md"], "is not a result of `evaluate`"),
        (["{bugs}", "--keep", "report.md"], "cannot be made"),
        (["{bugs}", "--provider", "unknown"], "provider 'unknown' is not known"),
    ],
)
def test_a_mistake_is_one_line(call: Cli, bugs: Path, arguments: list[str], said: str) -> None:
    found = call("evaluate", *(text.format(bugs=bugs) for text in arguments))
    assert found.code == 2
    assert said in found.err
    assert found.err.count("\n") == 1


def test_children_end_with_the_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluating, "_PROGRAM", "import time; time.sleep(600)")
    children = _Children()
    ended: list[Any] = []
    thread = threading.Thread(target=lambda: ended.append(children.run(["x"])))
    thread.start()
    while not children._running:
        time.sleep(0.01)
    children.stop()
    thread.join(60)
    assert ended[0].reason == "the process was ended by signal 15"
    assert children.run(["y"]).reason == "the process was ended by signal 15"
