"""Measurements and tables over many cases: folders, processes, broken ones, rows as files."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ledger.errors import StorageError
from tests.tools.conftest import Cli
from tools.many import Broken, Cases, over

FROZEN = Path(__file__).parents[1] / "frozen" / "cases"
GOOD = ("mp-renewal-missing-invoices-7-requests.zip", "example-v9.zip")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of two packages, and two that are broken in different ways."""
    made = tmp_path / "packages"
    made.mkdir()
    for name in GOOD:
        shutil.copyfile(FROZEN / name, made / name)
    (made / "cut-off.zip").write_bytes((FROZEN / GOOD[0]).read_bytes()[:9000])
    altered(FROZEN / GOOD[0], made / "altered.zip")
    (made / "notes.txt").write_text("no package")
    return made


def altered(source: Path, target: Path) -> None:
    """Copy a package whose chain is another one, its manifest made to fit."""
    with zipfile.ZipFile(source) as old:
        members = [(info, old.read(info)) for info in old.infolist()]
    manifest = json.loads(members[0][1])
    changed = []
    for info, data in members[1:]:
        if info.filename == "events.jsonl":
            data = data.replace(b'"chain":"', b'"chain":"00', 1).replace(b'"},', b'"},')
            line = json.loads(data.splitlines()[0])
            line["chain"] = line["chain"][:64]
            first = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode()
            data = b"\n".join([first, *data.splitlines()[1:], b""])
        changed.append((info, data))
    for member, (_, data) in zip(manifest["members"], changed, strict=True):
        member |= {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    head = json.dumps(manifest, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    with zipfile.ZipFile(target, "w") as new:
        for info, data in [(members[0][0], head), *changed]:
            new.writestr(info, data)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def digests(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir())}


@pytest.mark.parametrize("what", ["cache", "consolidation"])
def test_broken_packages_of_a_folder_are_named_and_the_rest_is_measured(
    call: Cli, folder: Path, what: str
) -> None:
    before = digests(folder)
    found = call("measure", what, "--folder", str(folder), "--csv", "a.csv", "--jsonl", "a.jsonl")
    assert found.code == 1
    assert "cut-off.zip: is not a zip file" in found.err
    assert "altered.zip: does not verify" in found.err
    assert found.err.splitlines()[-1] == "2 could not be measured"
    assert {row["case"] for row in rows(Path("a.csv").read_text())} == set(GOOD)
    assert digests(folder) == before
    lines = [json.loads(line) for line in Path("a.jsonl").read_text().splitlines()]
    as_text = [{name: str(value) for name, value in line.items()} for line in lines]
    assert as_text == rows(Path("a.csv").read_text())


def test_a_folder_as_case_with_two_jobs_gives_the_same_report_in_the_same_order(
    call: Cli, folder: Path
) -> None:
    one = call("measure", "cache", str(folder), "--json")
    two = call("measure", "cache", "--folder", str(folder), "--jobs", "2", "--json")
    assert two.json == one.json
    assert [case["case"] for case in one.json["cases"]] == sorted(GOOD)
    assert {broken["case"]: broken["kind"] for broken in one.json["broken"]} == {
        "altered.zip": "DoesNotVerify",
        "cut-off.zip": "PackageRefused",
    }
    total = one.json["total"]
    assert total["requests"] == sum(case["requests"] for case in one.json["cases"])
    assert total["live"]["characters"] == sum(
        case["live"]["characters"] for case in one.json["cases"]
    )


def test_one_package_that_does_not_verify_is_a_no_and_nothing_is_written(
    call: Cli, folder: Path
) -> None:
    path = str(folder / "altered.zip")
    for command in (["cache", "--package", path, "--output", "r.json"], ["consolidation", path]):
        found = call("measure", *command)
        assert found.code == 1
        assert "altered.zip: does not verify: position 1" in found.err
    assert not Path("r.json").exists()
    assert call("measure", "cache", str(folder / "cut-off.zip")).code == 2


def test_the_report_holds_sizes_and_hashes_and_no_text_of_the_case(
    call: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "socket", _no_network)
    package = FROZEN / "example-v11.zip"
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    found = call(
        *("measure", "cache", "--package", str(package), "--output", "r.json", "--per-request")
    )
    assert found.code == 0
    report = json.loads(Path("r.json").read_text())
    (case,) = report["cases"]
    assert case["sha256"] == {"before": digest, "after": digest}
    assert len(case["views"]) == case["requests"] == 12
    assert case["prefixes"][0]["id"].startswith("sha256:")
    for text in texts(report):
        assert KNOWN.fullmatch(text) or text in report["says"], text
    for sentence in (
        "Stable text is moved, not deleted: creating the cache still transmits it.",
        "Storage, cached reads and recreation after expiry cost money.",
        "Older presentations are marked rebuilt_v11; they are not shown as full-history originals.",
        "Exact restoration does not prove that a model understands the encoded form as well.",
        "Token savings and quality need a paid live run.",
        "The offline analyst decodes first, so it proves neither.",
    ):
        assert sentence in report["says"]
        assert sentence in found.out


KNOWN = re.compile(
    r"(sha256:)?[0-9a-f]{64}|R\d+|case-[0-9a-f]{24}|original|rebuilt_v11|example-v11\.zip|"
    r"investigation_project_v11|stable_case_v1|estimate_v1|gemma3"
)
"""All that a report may hold beside numbers, its own member names and the sentences."""


def texts(value: Any) -> list[str]:
    """Return the strings in a JSON value, keys left out."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [text for item in value for text in texts(item)]
    return [value] if isinstance(value, str) else []


def _no_network(*arguments: Any, **options: Any) -> Any:
    raise AssertionError("a socket was opened")


def test_a_report_that_stands_there_is_replaced_only_with_force(call: Cli, desk: Path) -> None:
    Path("r.json").write_text("mine")
    found = call("measure", "cache", "small", "--output", "r.json")
    assert (found.code, Path("r.json").read_text()) == (2, "mine")
    assert "already exists" in found.err
    assert call("measure", "cache", "small", "--output", "r.json", "--force").code == 0
    assert json.loads(Path("r.json").read_text())["cases"][0]["case"] == "small.case"
    assert not list(desk.glob(".*.new"))


def test_the_report_is_the_json_document(call: Cli) -> None:
    found = call("measure", "cache", "small", "--output", "r.json", "--json")
    assert json.loads(Path("r.json").read_text()) == found.json


def test_protocols_without_full_history_and_unknown_names_are_mistakes(call: Cli) -> None:
    for option in (
        ["--protocol", "investigation_project_v9"],
        ["--protocol", "hypotheses_v3"],
        ["--partition", "none"],
    ):
        found = call("measure", "cache", "small", *option)
        assert (found.code, len(found.err.splitlines())) == (2, 1)
    assert call("measure", "cache").code == 2
    assert call("measure", "cache", "--folder", "nowhere").code == 2
    Path("empty").mkdir()
    assert "holds no package" in call("measure", "cache", "empty").err


def test_a_case_that_has_the_name_of_a_folder_is_the_case(call: Cli) -> None:
    Path("small").mkdir()
    assert call("measure", "cache", "small", "--json").json["cases"][0]["case"] == "small.case"


def test_workers_import_nothing_of_the_folder_the_user_stands_in(tmp_path: Path) -> None:
    trap = f"open({str(tmp_path / 'sprung')!r}, 'w')\nraise SystemExit(3)\n"
    for name in ("multiprocessing", "tools", "orjson", "projections", "signal"):
        (tmp_path / f"{name}.py").write_text(trap)
    (tmp_path / "p").mkdir()
    for number in range(2):
        shutil.copyfile(FROZEN / GOOD[0], tmp_path / f"p/{number}.zip")
    command = Path(sys.executable).with_name("caseledger")
    environment = {**os.environ, "CASELEDGER_HOME": str(tmp_path / "home")}
    environment.pop("PYTHONSAFEPATH", None)
    ended = subprocess.run(
        [command, "measure", "cache", "p", "--jobs", "2", "--json"],
        cwd=tmp_path, env=environment, capture_output=True, check=True,
    )  # fmt: skip
    assert len(json.loads(ended.stdout)["cases"]) == 2
    assert not (tmp_path / "sprung").exists()


def _die(path: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_ends_the_work_in_one_line() -> None:
    cases = Cases([Path("a"), Path("b")], True)
    with pytest.raises(StorageError, match="a worker process ended before its work did"):
        list(over(cases, _die, "working", jobs=2, quiet=True))
    assert "PYTHONSAFEPATH" not in os.environ


def test_a_defect_of_ours_is_no_broken_case() -> None:
    cases = Cases([Path("a"), Path("b")], True)
    with pytest.raises(ZeroDivisionError):
        list(over(cases, lambda path: 1 // 0, "working", quiet=True))


def test_broken_cases_are_told_apart_from_results(capsys: pytest.CaptureFixture[str]) -> None:
    cases = Cases([Path("a"), Path("b")], True)

    def work(path: Path) -> int:
        if path.name == "a":
            raise StorageError("a: is gone")
        return 7

    found = list(over(cases, work, "working", quiet=True))
    assert found == [Broken(Path("a"), "StorageError", "a: is gone"), 7]
    assert capsys.readouterr().err == "a: is gone\n"


def test_the_committed_report_of_the_example_is_what_the_command_gives(call: Cli) -> None:
    documents = Path(__file__).parents[2] / "docs/measurements"
    package = FROZEN / "example-v11.zip"
    found = call("measure", "cache", str(package), "--per-request", "--json").json
    committed = json.loads((documents / "parcel-returns.json").read_text())
    for name in set(committed["counters"]) - set(found["counters"]):  # the extra is not installed
        committed = without(committed, name)
    assert found == committed


def without(value: Any, name: str) -> Any:
    """Return a report without a counter."""
    if isinstance(value, dict):
        return {key: without(item, name) for key, item in value.items() if key != name}
    if isinstance(value, list):
        return [without(item, name) for item in value if item != name]
    return value


def test_a_package_beside_its_case_is_not_counted_twice(call: Cli, desk: Path) -> None:
    both = desk / "both"
    both.mkdir()
    for end in (".case", ".case.head"):
        shutil.copyfile(desk / f".caseledger/small{end}", both / f"small{end}")
    shutil.copyfile(desk / "small.zip", both / "a.zip")
    found = call("measure", "cache", str(both), "--json")
    assert "the same record" in found.err
    assert len(found.json["cases"]) == 1
