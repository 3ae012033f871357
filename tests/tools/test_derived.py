"""Derived files of a package: made from the events alone, made again by `verify`, never needed."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger import canonical
from ledger.package import Package
from ledger.reader import Entry, Head, Row
from tests.ledger.packages import Loose
from tests.tools.conftest import Cli
from tools import cli
from tools.packaging import FORMS, REPORT_FORM, derived_members

FULL = ("--with-requests", "--with-report")
FROZEN = sorted((Path(__file__).parents[1] / "frozen/cases").glob("*.zip"))
GOLDEN = Path(__file__).with_name("golden_reports.json")


@pytest.fixture(scope="module")
def made(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "full.zip"
    assert cli.run(["export", str(home / "small.case"), *FULL, "-o", str(path)]) == 0
    return path


@pytest.fixture
def full(made: Path, desk: Path) -> Path:
    return Path(shutil.copyfile(made, "full.zip"))


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_rendered_request_is_what_saw_prints(call: Cli, full: Path) -> None:
    found = members(full)
    requests = [name for name in found if name.startswith("derived/requests/")]
    assert len(requests) == call("status", "small", "--json").json["requests"]
    for name in requests:
        request = name.removeprefix("derived/requests/").removesuffix(".json")
        assert found[name].decode() == call("saw", "small", request).out


def test_the_report_is_what_report_prints(call: Cli, full: Path) -> None:
    found = members(full)
    assert found["derived/report.md"].decode() == call("report", "small").out
    report = json.loads(found["derived/report.json"])
    assert report == call("report", "small", "--json").json
    assert found["derived/report.json"] == canonical.to_bytes(report) + b"\n"


def test_they_are_there_on_request_only(call: Cli) -> None:
    for options, wanted in (((), set()), (FULL[:1], {"requests"}), (FULL[1:], {"report"})):
        assert call("export", "small", *options, "-o", "x.zip", "--force").code == 0
        names = {name for name in members(Path("x.zip")) if name.startswith("derived/")}
        assert {name.split("/")[1].partition(".")[0] for name in names} == (
            wanted | {"forms"} if wanted else set()
        )


def test_they_are_listed_in_the_manifest_like_all_members(full: Path) -> None:
    found = members(full)
    listed = [m["name"] for m in json.loads(found["manifest.json"])["members"]]
    assert [name for name in found if name != "manifest.json"] == listed
    derived = [name for name in listed if name.startswith("derived/")]
    assert derived == sorted(derived)
    assert listed[-len(derived) :] == derived


def test_a_package_with_them_verifies_without_a_remark(call: Cli, full: Path) -> None:
    assert call("verify", "full.zip", "--json").json["findings"] == []


def test_an_import_leaves_them_behind_and_a_new_export_has_the_same_bytes(
    call: Cli, full: Path
) -> None:
    assert call("import", "full.zip", "-o", "again.case").code == 0
    assert call("seal", "again.case").out == call("seal", "small").out
    assert call("export", "again.case", *FULL, "-o", "again.zip").code == 0
    assert Path("again.zip").read_bytes() == full.read_bytes()


def change(name: str) -> Callable[[Loose], Any]:
    return lambda loose: loose.__setitem__(name, loose[name].replace(b"a", b"b", 1))


def add(name: str) -> Callable[[Loose], Any]:
    def run(loose: Loose) -> None:
        derived = [member for member in loose.members if member[0].startswith("derived/")]
        others = [member for member in loose.members if member not in derived]
        loose.members = [*others, *sorted([*derived, (name, b"{}")])]

    return run


def forms(value: bytes) -> Callable[[Loose], Any]:
    return lambda loose: loose.__setitem__(FORMS, value)


LIES: dict[str, tuple[Callable[[Loose], Any], str]] = {
    "request changed": (
        change("derived/requests/R5.json"),
        "derived/requests/R5.json differs from what the events give",
    ),
    "report changed": (
        change("derived/report.md"),
        "derived/report.md differs from what the events give",
    ),
    "report as JSON changed": (
        change("derived/report.json"),
        "derived/report.json differs from what the events give",
    ),
    "request missing": (
        lambda loose: loose.remove("derived/requests/R5.json"),
        "derived/requests/R5.json is missing",
    ),
    "report missing": (lambda loose: loose.remove("derived/report.md"), "report.md is missing"),
    "request of no event": (
        add("derived/requests/R999.json"),
        "derived/requests/R999.json is not what any event gives",
    ),
    "another file": (add("derived/run.sh"), "derived/run.sh is not what any event gives"),
    "forms missing": (lambda loose: loose.remove(FORMS), "forms.json is missing"),
    "forms no JSON": (forms(b"{"), "is not an object of kinds"),
    "forms a list": (forms(b"[]\n"), "is not an object of kinds"),
    "forms of text": (forms(b'{"report":"1"}\n'), "is not an object of kinds"),
    "forms of none": (forms(b"{}\n"), "names no kind"),
    "report of form 0": (forms(b'{"report":0,"requests":1}\n'), "the form 0; expected 1"),
    "report of form -1": (forms(b'{"report":-1,"requests":1}\n'), "the form -1; expected 1"),
    "requests of another form": (forms(b'{"report":1,"requests":2}\n'), "the form 2; expected 1"),
    "forms of true": (forms(b'{"report":true,"requests":1}\n'), "is not an object of kinds"),
    "kind of no release": (
        forms(b'{"report":1,"requests":1,"zebra":1}\n'),
        "names the kind 'zebra'; there are report and requests",
    ),
    "forms spaced": (forms(b'{"report": 1,"requests":1}\n'), "forms.json differs"),
    "forms say less": (forms(b'{"report":1}\n'), "is not what any event gives"),
    "prompt changed": (
        lambda loose: loose.__setitem__(
            next(n for n, _ in loose.members if n.startswith("prompts/")), b"Say yes.\n"
        ),
        "differs from the prompt of that name",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_derived_file_that_lies_is_found_although_the_manifest_fits(
    lie: str, call: Cli, full: Path
) -> None:
    edit, says = LIES[lie]
    loose = Loose.of(full)
    edit(loose)
    loose.pack(Path("lie.zip"))
    found = call("verify", "lie.zip")
    assert (found.code, says in found.out) == (1, True), found.out
    refused = call("import", "lie.zip", "-o", "lie.case")
    assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 1)
    assert says in refused.err
    assert not Path("lie.case").exists()


def test_a_report_of_a_newer_form_is_not_called_altered_and_not_called_checked(
    call: Cli, full: Path
) -> None:
    loose = Loose.of(full)
    loose[FORMS] = canonical.to_bytes({"report": REPORT_FORM + 1, "requests": 1}) + b"\n"
    loose["derived/report.md"] = b"A finer report.\n"
    loose.pack(Path("newer.zip"))
    found = call("verify", "newer.zip")
    assert (found.code, found.out.count("form 2, newer than form 1 of this release")) == (3, 2)
    assert "ok but for 2 derived files that were not compared" in found.out
    shown = call("verify", "newer.zip", "--json")
    assert (shown.code, shown.json["ok"], shown.json["uncompared"]) == (3, True, 2)
    assert call("report", "newer.zip").out == call("report", "small").out


def test_requests_are_compared_whatever_form_the_report_has(call: Cli, full: Path) -> None:
    loose = Loose.of(full)
    loose[FORMS] = canonical.to_bytes({"report": REPORT_FORM + 1, "requests": 1}) + b"\n"
    change("derived/requests/R5.json")(loose)
    loose.pack(Path("newer.zip"))
    found = call("verify", "newer.zip")
    assert (found.code, "R5.json differs from what the events give" in found.out) == (1, True)


@pytest.mark.parametrize("until", ["", "hypotheses", "investigation"])
def test_a_package_of_an_interrupted_case_says_where_it_stands(until: str, call: Cli) -> None:
    if until:
        options = ["--max-requests", "5"] if until == "investigation" else ["--until", until]
        assert call("run", "fresh", *options).code == 0
    assert call("export", "fresh", *FULL, "-o", "half.zip").code == 0
    assert call("verify", "half.zip", "--json").json["findings"] == []
    text = members(Path("half.zip"))["derived/report.md"].decode()
    assert "There is no diagnosis yet." in text
    assert f"State: {call('status', 'fresh', '--json').json['standing']}" in text
    assert ("## Considered so far" in text) == (until in ("hypotheses", "investigation"))
    assert call("report", "half.zip").out == text == call("report", "fresh").out
    assert call("import", "half.zip", "-o", "half.case").code == 0
    assert call("export", "half.case", *FULL, "-o", "half2.zip").code == 0
    assert Path("half2.zip").read_bytes() == Path("half.zip").read_bytes()


@pytest.mark.parametrize("path", FROZEN, ids=lambda path: path.stem)
def test_the_form_of_reports_has_a_number(path: Path) -> None:
    """Another rendering of a saved case is another form: raise REPORT_FORM, then record anew with
    `python -m tests.tools.test_derived`.
    """
    golden = json.loads(GOLDEN.read_text())
    assert golden["form"] == REPORT_FORM
    assert golden["digests"][path.stem] == digests(path)


def digests(path: Path) -> dict[str, str]:
    """Return the digests of the report of a package, and of it as it stood halfway."""
    with Package(path) as package:
        found = derived_members(package, requests=False, report=True)
        half = derived_members(Half(package), requests=False, report=True)
    found |= {f"{name} (halfway)": data for name, data in half.items()}
    return {name: canonical.digest(data) for name, data in found.items() if FORMS not in name}


class Half:
    """The first half of a record, as an interrupted run left it."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._end = package.head.position // 2
        self.case_id = package.case_id
        self.head = Head(self._end, next(package.rows(self._end, after=self._end - 1)).chain)
        self.payload = package.payload

    def events(self, upto: int | None = None, *, after: int = 0) -> Iterator[Entry]:
        return self._package.events(min(upto or self._end, self._end), after=after)

    def rows(self, upto: int | None = None, *, after: int = 0) -> Iterator[Row]:
        return self._package.rows(min(upto or self._end, self._end), after=after)


if __name__ == "__main__":
    recorded = {path.stem: digests(path) for path in FROZEN}
    text = json.dumps({"form": REPORT_FORM, "digests": recorded}, indent=1)
    GOLDEN.write_text(f"{text}\n")
