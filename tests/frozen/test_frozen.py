"""What landed never changes: frozen files by their bytes, saved requests by being rebuilt today."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import prompts
from ledger import canonical
from ledger.events import ContextCreated, RequestPrepared
from ledger.package import Package, verify_package
from projections import encodings, partitions
from projections.folding import fold
from projections.requests import render
from projections.saw import check_all

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "FROZEN.sha256"
PACKAGES = sorted((Path(__file__).parent / "cases").glob("*.zip"))


def listed() -> dict[str, str]:
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def test_every_frozen_file_has_the_bytes_it_landed_with() -> None:
    for name, digest in listed().items():
        assert hashlib.sha256((ROOT / name).read_bytes()).hexdigest() == digest, name


def test_every_prompt_schema_and_frozen_package_is_listed() -> None:
    present = {prompts.prompt_file(name)[0] for name in prompts.protocols()}
    present |= {f"schemas/{path.name}" for path in (ROOT / "prompts" / "schemas").glob("*.json")}
    present |= {f"wires/{path.name}" for path in (ROOT / "prompts" / "wires").glob("*.txt")}
    wanted = {f"prompts/{name}" for name in present}
    wanted |= {path.relative_to(ROOT).as_posix() for path in PACKAGES}
    wanted |= {path.with_suffix(".json").relative_to(ROOT).as_posix() for path in PACKAGES}
    assert wanted <= set(listed())


def test_there_are_frozen_packages_of_every_kind() -> None:
    names = {path.stem for path in PACKAGES}
    assert {"example", "example-v8", "example-v9"} <= names
    assert any(name.startswith("mp-") for name in names)


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: path.stem)
def test_a_frozen_package_verifies_and_rebuilds_every_request(path: Path) -> None:
    saved = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    with Package(path) as package:
        assert verify_package(package).ok
        checks = list(check_all(package))
    assert {check.request: check.saved for check in checks} == saved
    assert [check for check in checks if check.state != "same"] == []


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: path.stem)
def test_a_frozen_package_folds_to_a_state_with_all_its_requests(path: Path) -> None:
    with Package(path) as package:
        state = fold(package.events())
    assert len(state.requests) == len(json.loads(path.with_suffix(".json").read_text()))


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: path.stem)
def test_one_changed_character_of_a_prompt_is_seen(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Package(path) as package:
        events = [entry.event for entry in package.events()]
        contexts = {e.context: e.content for e in events if isinstance(e, ContextCreated)}
        first = next(e for e in events if isinstance(e, RequestPrepared))
        context = canonical.from_bytes(package.payload(contexts[first.context].digest))
        card = prompts.card(first.protocol)
        changed = card._replace(text=card.text.replace("a", "e", 1))
        monkeypatch.setattr(prompts, "card", lambda name: changed)
        assert canonical.digest(render(first.protocol, context).document) != first.document.digest
        check = next(iter(check_all(package)))
    assert check.state == "differs"
    assert check.saved in check.detail
    assert check.rebuilt in check.detail
    assert "$.system" in check.detail


DIVIDED = sorted((Path(__file__).parent / "vectors" / "partitions").glob("*/*.divided.json"))


def test_every_partition_has_vectors() -> None:
    assert {path.parent.name for path in DIVIDED} == set(partitions.VERSIONS)


@pytest.mark.parametrize("path", DIVIDED, ids=lambda p: f"{p.parent.name}-{p.name[:-13]}")
def test_a_partition_writes_the_bytes_it_landed_with(path: Path) -> None:
    version = partitions.VERSIONS[path.parent.name]
    view = canonical.from_bytes(path.read_bytes())
    recorded = [
        path.with_name(path.name.replace(".divided.", f".{part}.")).read_bytes()
        for part in ("prefix", "live")
    ]
    assert [canonical.to_bytes(part) for part in version.split(view)] == recorded
    assert canonical.same(version.join(*map(canonical.from_bytes, recorded)), view)


VECTORS = sorted((Path(__file__).parent / "vectors").glob("*/*.view.json"))


def test_every_encoder_has_vectors() -> None:
    assert {path.parent.name for path in VECTORS} == set(encodings.VERSIONS)


@pytest.mark.parametrize("path", VECTORS, ids=lambda p: f"{p.parent.name}-{p.name[:-10]}")
def test_an_encoder_writes_the_bytes_it_landed_with(path: Path) -> None:
    encoding = encodings.VERSIONS[path.parent.name]
    recorded = path.with_name(path.name.replace(".view.", ".content.")).read_bytes()
    view = canonical.from_bytes(path.read_bytes())
    assert canonical.to_bytes(encoding.encode(view).content) == recorded
    assert canonical.same(encoding.restore(canonical.from_bytes(recorded)), view)
