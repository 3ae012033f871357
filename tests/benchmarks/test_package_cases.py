"""Bugs of published packages: cases are well formed, and are laid out whole or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import package_cases
from tests.benchmarks.package_cases import CASES, GROUPS, cases, main
from tools.evaluating import Evaluation, case_folders

ALL = cases()
NAMES = [case.name for case in ALL]

HELD = {"report.md", "truth.json", "case.json", "console.log", "make_db.py", "db"}
PINNED = {"ecosystem", "package", "version", "filename", "sha256", "fixed_version", "group"}
TOLD = {"slug", "files", "functions", "primary_file", "explanation", "fix_kind", "issue_url"}

every_case = pytest.mark.parametrize("case", ALL, ids=NAMES)


def document(case: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((case / name).read_text("utf-8"))
    return found


def seen(case: Path) -> str:
    """Return what an analyst may read of a case, but for its source and databases."""
    paths = [case / name for name in ("report.md", "console.log") if (case / name).exists()]
    return "\n".join(path.read_text("utf-8") for path in paths)


@every_case
def test_a_case_pins_one_published_file(case: Path) -> None:
    pinned = document(case, "case.json")
    assert set(pinned) == PINNED
    assert pinned["ecosystem"] in {"pypi", "npm"}
    assert pinned["group"] in GROUPS
    assert re.fullmatch(r"[0-9a-f]{64}", pinned["sha256"])
    ending = {"pypi": ".tar.gz", "npm": ".tgz"}[pinned["ecosystem"]]
    assert re.fullmatch(r"[\w.+-]+", pinned["filename"])
    assert pinned["filename"].endswith(f"-{pinned['version']}{ending}")
    assert pinned["fixed_version"] != pinned["version"]


@every_case
def test_a_truth_names_files_functions_and_why(case: Path) -> None:
    truth = document(case, "truth.json")
    assert set(truth) - {"twins"} == TOLD
    assert truth["slug"] == case.name
    assert truth["primary_file"] in truth["files"]
    paths = [
        *truth["files"],
        *(name for names in truth.get("twins", {}).values() for name in names),
    ]
    assert not [path for path in paths if path.startswith("/") or ".." in path.split("/")]
    assert {name.partition("::")[0] for name in truth["functions"]} <= set(truth["files"])
    assert all(name.partition("::")[2] for name in truth["functions"])
    assert set(truth.get("twins", ())) <= set(truth["files"])
    assert truth["explanation"]
    assert truth["fix_kind"]
    assert re.fullmatch(r"(https://\S+)?", truth["issue_url"])


@every_case
def test_a_report_has_a_title_and_nothing_of_the_truth(case: Path) -> None:
    text, truth = seen(case), document(case, "truth.json")
    assert re.match(r"# \S.*\n", text)
    pinned = document(case, "case.json")
    named = re.escape(pinned["package"]).replace(r"\-", "[-_]") + r"\W+"
    assert not re.search(rf"{named}{re.escape(pinned['fixed_version'])}(?!\d)", text, re.IGNORECASE)
    for told in (truth["explanation"], truth["fix_kind"], truth["issue_url"], case.name):
        assert not told or told not in text


@every_case
def test_a_case_holds_nothing_but_its_own_words_and_data(case: Path) -> None:
    assert {path.name for path in case.iterdir()} <= HELD
    files = [path for path in case.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 150_000
    assert not re.search(r"/tmp/|/root/|/home/|/Users/|C:\\Users", seen(case))


# Laying out ------------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a case of a release that lies in the cache; return the folder of cases."""
    release(
        {"shop-1.0/shop/basket.py": b"total = 0\n", "shop-1.0/.env.example": b"A=1\n"}, tmp_path
    )
    folder = tmp_path / "cases"
    pinned = {"ecosystem": "pypi", "package": "shop", "version": "1.0", "fixed_version": "1.1",
              "filename": "shop-1.0.tar.gz", "group": "first", "sha256": ""}  # fmt: skip
    for name, group in (("basket-empty", "first"), ("basket-full", "second")):
        case = folder / name
        case.mkdir(parents=True)
        (case / "report.md").write_text("# The basket is empty\n")
        (case / "console.log").write_text("0\n")
        (case / "make_db.py").write_text("import os; os.mkdir('db'); open('db/a.db', 'w').close()")
        (case / "truth.json").write_text(json.dumps({"files": ["shop/basket.py"]}))
        sha256 = hashlib.sha256((tmp_path / "cache/shop-1.0.tar.gz").read_bytes()).hexdigest()
        told = {**pinned, "group": group, "sha256": sha256}
        (case / "case.json").write_text(json.dumps(told))
    monkeypatch.setattr(package_cases, "CASES", folder)
    return folder


def release(members: dict[str, bytes], folder: Path) -> None:
    """Write the release into the cache; a path may occur in two spellings."""
    (folder / "cache").mkdir(exist_ok=True)
    with tarfile.open(folder / "cache/shop-1.0.tar.gz", "w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def pin(own: Path) -> None:
    """Let the cases pin the release that lies in the cache now."""
    sha256 = hashlib.sha256((own.parent / "cache/shop-1.0.tar.gz").read_bytes()).hexdigest()
    for path in own.glob("*/case.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "sha256": sha256}))


def making(own: Path, *arguments: str) -> int:
    out, cache = own.parent / "made", own.parent / "cache"
    return main(["make", str(out), "--cache", str(cache), *arguments])


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    said = capsys.readouterr().err
    assert said.startswith("package_cases: ")
    assert said.count("\n") == 1
    return said


def made(own: Path) -> dict[str, bytes]:
    out = own.parent / "made"
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


def test_a_case_is_laid_out_as_evaluate_reads_it(own: Path) -> None:
    assert making(own) == 0
    assert set(made(own)) == {
        f"{case}/{name}"
        for case in ("basket-empty", "basket-full")
        for name in ("report.md", "truth.json", "logs/console.log", "db/a.db",
                     "source/shop/basket.py", "source/.env.example")
    }  # fmt: skip
    (first, _), without = case_folders(Evaluation(own.parent / "made"))
    assert without == []
    given = [first.report, first.source, *first.logs, *first.databases]
    assert [path.name for path in given if path] == ["report.md", "source", "console.log", "a.db"]
    assert not list((own.parent / "made/basket-empty/source").rglob("truth.json"))


def test_only_the_cases_that_were_asked_for_are_made(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert making(own, "--group", "second") == 0
    assert {name.partition("/")[0] for name in made(own)} == {"basket-full"}
    assert making(own, "--only", "basket-empty") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 cases made, 0 were there"
    assert making(own) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "0 cases made, 2 were there"
    assert making(own, "--only", "basket-ful") == 1
    assert "basket-ful: there is no such case" in one_line(capsys)


def test_another_file_than_the_pinned_one_is_refused(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (own.parent / "cache/shop-1.0.tar.gz").open("ab") as file:
        file.write(b"\0")
    assert making(own) == 1
    assert "is not the file that case.json pins" in one_line(capsys)
    assert made(own) == {}


@pytest.mark.parametrize("name", ["../out.txt", "shop-1.0/../../out.txt", "/out.txt"])
def test_no_member_is_written_outside_the_source(
    own: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    release({"shop-1.0/a.py": b"", name: b"x"}, own.parent)
    pin(own)
    code = making(own, "--only", "basket-empty")
    source = own.parent / "made/basket-empty/source"
    places = list(own.parent.rglob("out.txt"))
    assert not Path("/out.txt").exists()
    if name.startswith("/"):  # taken as a relative name
        assert (code, places) == (0, [source / "out.txt"])
    else:
        assert "cannot be unpacked" in one_line(capsys)
        assert (code, places, made(own)) == (1, [], {})


def test_a_release_that_is_too_large_is_refused(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_cases, "MAX_UNPACKED", 10)
    assert making(own) == 1
    assert "unpacks to more than 10 bytes" in one_line(capsys)
    assert made(own) == {}


def test_a_name_that_occurs_twice_is_taken_once(own: Path) -> None:
    release({"p/lib/a.js": b"old", "p/./lib/a.js": b"new"}, own.parent)
    pin(own)
    assert making(own, "--only", "basket-empty") == 0
    assert made(own)["basket-empty/source/lib/a.js"] == b"new"


@pytest.mark.parametrize("ecosystem", ["pypi", "npm"])
def test_without_an_index_one_line_says_so(
    own: Path, ecosystem: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_INDEX_URL", "npm_config_registry"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    monkeypatch.setenv("npm_config_fetch_retry_mintimeout", "10")
    path = own / "basket-empty/case.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, "ecosystem": ecosystem, "filename": "absent-0.tar.gz"}))
    assert making(own, "--only", "basket-empty") == 1
    assert "absent-0.tar.gz: cannot be fetched" in one_line(capsys)
    assert made(own) == {}


@pytest.mark.registry
def test_cases_of_both_registries_are_fetched_and_laid_out(tmp_path: Path) -> None:
    names = ["import-export-overwrite", "ws-upgrade-crash"]
    assert main(["make", str(tmp_path / "made"), "--cache", str(tmp_path / "cache"),
                 "--only", *names]) == 0  # fmt: skip
    for name in names:
        source = tmp_path / "made" / name / "source"
        assert [p for p in document(CASES / name, "truth.json")["files"] if (source / p).is_file()]
    assert (tmp_path / "made/import-export-overwrite/db/members.sqlite3").is_file()
