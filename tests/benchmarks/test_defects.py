"""Fresh defects: slips are small and real, and a report gives away no more than its user knows."""

from __future__ import annotations

import ast
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import defects as generator
from tests.benchmarks.defects import Package, Probe, defects, known, main, report, write_case
from tests.benchmarks.mutations import mutations

ROUNDING = '''"""Rounding of weights to steps."""


def to_step(grams, step=5, up=False):
    """Return grams in whole steps.

    >>> to_step(12)
    10
    """
    if step <= 0:
        raise ValueError("a step is more than nothing")
    whole = grams // step
    if up and grams % step != 0:
        whole = whole + 1
    return whole * step
'''
PARCEL = '''"""Postage."""

from post.rounding import to_step

PRICES = {"letter": 1, "parcel": 5}


class Parcel:
    def __init__(self, items, kind="parcel"):
        self.items = list(items)
        self.kind = kind

    def weight(self):
        total = 0
        for item in self.items[:]:
            if item is None or item < 0:
                continue
            total += item
        return to_step(total, up=True)

    def price(self):
        return self.weight() * PRICES.get(self.kind, PRICES["letter"])


def postage(*items):
    return Parcel(items).price()
'''
ROW: dict[str, Any] = {
    "name": "post",
    "version": "1.2",
    "code": "post",
    "doctests": True,
    "probe": [
        {
            "setup": "from post import postage",
            "call": "postage({one}, {two})",
            "slots": {
                "one": {"values": ["1", "7", "12", "20", "None"]},
                "two": {"values": ["0", "-3", "40", "5"]},
            },
        }
    ],
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    root = tmp_path_factory.mktemp("work") / "post-1.2"
    (root / "post").mkdir(parents=True)
    (root / "post/__init__.py").write_text("from post.parcel import postage\n")
    (root / "post/rounding.py").write_text(ROUNDING)
    (root / "post/parcel.py").write_text(PARCEL)
    return Package(ROW, root, [])


@pytest.mark.parametrize("text", [ROUNDING, PARCEL])
def test_a_slip_changes_one_place_and_leaves_the_rest_as_written(text: str) -> None:
    found = mutations(text)
    applied = [(m, m.applied(text)) for m in found]
    good = [(m, new) for m, new in applied if new is not None]
    assert len(good) > 0.8 * len(found)
    for mutation, new in good:
        ast.parse(new)
        data = text.encode()
        assert new.encode().startswith(data[: mutation.start])
        assert new.encode().endswith(data[mutation.end :])


def test_slips_are_of_the_kinds_that_people_make() -> None:
    kinds = {m.kind for m in mutations(ROUNDING) + mutations(PARCEL)}
    assert kinds >= {
        "boundary", "comparison", "off by one", "missing guard", "missing condition", "logic",
        "arithmetic", "wrong default", "forgotten copy", "forgotten step", "wrong constant",
        "early end",
    }  # fmt: skip


def test_a_slip_knows_its_function() -> None:
    names = {m.function for m in mutations(PARCEL)}
    assert names == {"Parcel.__init__", "Parcel.weight"}


def test_probes_that_change_from_run_to_run_or_cannot_run_are_left_out(package: Package) -> None:
    probes = [
        Probe("from post import postage", ("postage(1)",)),
        Probe("from post import postage", ("object()",)),
        Probe("from post import postage", ("unknown(1)",)),
        Probe("import nowhere", ("1",)),
    ]
    assert known(package, probes).probes == (probes[0],)


@pytest.fixture(scope="module")
def found(package: Package) -> list[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generator, "SECONDS", 0.2)  # what hangs here does so at once
        return [d for seed in range(6) for d in defects(package, 12, random.Random(seed))]


def test_a_defect_shows_in_its_probe(package: Package, found: list[Any]) -> None:
    assert len(found) >= 6
    for defect in found[:6]:
        text = defect.mutation.applied((package.root / defect.path).read_text())
        (again,) = package.run([defect.probe], overlay=(package.root / defect.path, text))
        assert again.key == defect.after.key != defect.before.key


def test_a_report_names_the_faulty_function_only_if_its_user_saw_it(
    package: Package, found: list[Any]
) -> None:
    hidden = 0
    for defect in found:
        told = report(defect, package, random.Random(1))
        seen = "\n".join(defect.probe.steps) + str(
            defect.after.error and defect.after.error["trace"]
        )
        name = defect.mutation.function.rpartition(".")[2]
        if name not in seen:
            hidden += 1
            assert name not in told
        assert str(package.root) not in told
    assert hidden >= 3


def test_a_folder_is_ready_for_evaluation(
    package: Package, found: list[Any], tmp_path: Path
) -> None:
    write_case(tmp_path / "post-01", package, found[0], random.Random(1))
    truth = json.loads((tmp_path / "post-01/truth.json").read_text())
    changed = [
        path.relative_to(tmp_path / "post-01/source").as_posix()
        for path in sorted((tmp_path / "post-01/source").rglob("*.py"))
        if path.read_text()
        != (package.root / path.relative_to(tmp_path / "post-01/source")).read_text()
    ]
    assert changed == truth["files"]
    assert not list((tmp_path / "post-01").rglob("__pycache__"))


@pytest.mark.registry
def test_the_same_seed_gives_the_same_defects(tmp_path: Path, monkeypatch: Any) -> None:
    for name in ("one", "two"):
        arguments = ["defects", "make", str(tmp_path / name), "--each", "3", "--seed", "7",
                     "--only", "tomlkit", "--cache", str(tmp_path / "cache")]  # fmt: skip
        monkeypatch.setattr("sys.argv", arguments)
        assert main() == 0
    one, two = (
        {p.relative_to(tmp_path / name).as_posix(): p.read_bytes()
         for p in (tmp_path / name).rglob("*") if p.is_file()}
        for name in ("one", "two")
    )  # fmt: skip
    assert len([name for name in one if name.endswith("truth.json")]) == 3
    assert one == two
