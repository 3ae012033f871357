"""The examples of docs/partitions hold: what split writes, what join gives back."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from ledger.canonical import from_bytes, to_bytes
from projections.partitions import VERSIONS

PAGES = Path(__file__).parents[3] / "docs/partitions"
EXAMPLE = re.compile(
    "".join(rf"```json {name}\n(?P<{name}>.*?)\n```\n" for name in ("view", "prefix", "live"))
)


def content_id(prefix: str) -> str:
    """Return the ID of a prefix as the page says it, without the program's own functions."""
    value = json.loads(prefix)
    said = {"encoding": value["version"], "stable": value["input"], "shared": value["shared"]}
    data = json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()
    return "sha256:" + hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_example_is_split_and_joined_as_shown(version: str) -> None:
    example = EXAMPLE.search((PAGES / f"{version}.md").read_text(encoding="utf-8"))
    assert example
    name = content_id(example["prefix"])
    shown = [example[part].replace("@ID", name) for part in ("prefix", "live")]
    view = from_bytes(example["view"].encode())
    assert [to_bytes(part).decode() for part in VERSIONS[version].split(view)] == shown
    joined = VERSIONS[version].join(*(from_bytes(part.encode()) for part in shown))
    assert to_bytes(joined).decode() == example["view"]


def test_every_partition_has_a_page() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == set(VERSIONS)
