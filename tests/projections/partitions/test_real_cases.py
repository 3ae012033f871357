"""The saved v11 investigations of real cases: one prefix each, the live part below the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ledger.canonical import same, to_bytes
from ledger.events import RequestPrepared
from ledger.package import Package
from projections.aliases import resolve, sequential_v1
from projections.aliases.slots import PREFIX
from projections.partitions import Split
from projections.partitions.stable_case_v1 import STABLE, join, partition, split
from projections.requests import restored_view
from projections.saw import saved_document

CASES = Path(__file__).parents[2] / "frozen/cases"
NAMES = ["example-v11", "mp-renewal-missing-invoices-v11"]


def investigation(name: str) -> list[dict[str, Any]]:
    """Return the views of a case's investigation requests, in order."""
    with Package(CASES / f"{name}.zip") as package:
        prepared = [e.event for e in package.events() if isinstance(e.event, RequestPrepared)]
        return [
            restored_view(saved_document(package, event.request, event.document))
            for event in prepared
            if event.phase == "investigation"
        ]


@pytest.fixture(scope="module", params=NAMES)
def views(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return investigation(request.param)


def characters(value: Any) -> int:
    return len(to_bytes(value).decode())


def test_one_prefix_serves_the_whole_investigation(views: list[dict[str, Any]]) -> None:
    parts = [partition(view) for view in views]
    assert len(parts) >= 10
    assert all(isinstance(part, Split) for part in parts)
    assert len({to_bytes(part[0]) for part in parts}) == 1
    for part, view in zip(parts, views, strict=True):
        assert isinstance(part, Split)
        assert same(join(*part), view)


def test_the_live_part_is_below_the_whole(views: list[dict[str, Any]]) -> None:
    parts = [split(view) for view in views]
    whole, live = sum(map(characters, views)), sum(characters(part.live) for part in parts)
    print(
        f"{len(views)} requests, prefix {characters(parts[0].prefix)} characters, live {live} "
        f"of {whole}: {live / whole:.1%}"
    )
    for part, view in zip(parts, views, strict=True):
        assert characters(part.live) < characters(view)
        assert characters(part.prefix) + characters(part.live) < characters(view) + 400


def test_labels_stand_in_evidence_only_so_renaming_them_changes_no_prefix(
    views: list[dict[str, Any]],
) -> None:
    """As v10 labels them, in sequence: the stable part of today holds no slot at all."""
    sequential = [sequential_v1.apply(resolve(view)) for view in views]
    assert len({split(view).prefix["id"] for view in sequential}) == 1
    for view in views:
        assert not any(
            f'"{slot}":' in to_bytes(view[key]).decode() for slot in PREFIX for key in STABLE
        )


def test_sequential_labels_in_the_stable_part_would_give_several_prefixes() -> None:
    """What content labels are for: evidence that comes earlier renames what the sources cite."""
    stable: dict[str, Any] = dict.fromkeys(STABLE)
    own, other = {"path": "own.py"}, {"path": "other.py"}
    one = {**stable, "sources": {"provenance": "P1"}, "evidence": [], "shared": {"P1": own}}
    two = {
        **stable,
        "sources": {"provenance": "P2"},
        "evidence": [{"provenance": "P1"}],
        "shared": {"P1": other, "P2": own},
    }
    assert split(one).prefix["id"] != split(two).prefix["id"]
