"""Records what encoders and partitions write: the exact bytes, which no later release may change.

    .venv/bin/python -P tests/frozen/make_vectors.py

Views are those of the frozen packages and the small ones below. A recorded vector is never
replaced; an encoder may be rewritten as long as it writes these bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger import canonical
from ledger.events import RequestPrepared
from ledger.package import Package
from projections import encodings, partitions
from projections.requests import restored_view
from projections.saw import saved_document

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SMALL: dict[str, Any] = {
    "null-and-missing": {"rows": [{"a": 1, "b": None}, {"a": 2}, {"a": 1, "b": None}]},
    "booleans-and-numbers": [1, True, 1.0, 0, False, -0.0, 10**30, "1"] * 4,
    "look-alike": {"$consolidated": 1, "data": {"$ref": 0}},
    "reserved-keys": [{"$ref": 3}, {"$record": [0, []]}, {"$lit": "x"}, {"$table": []}] * 3,
    "lines": [
        {"path": "src/a_module.py", "line": n, "text": f"    value = compute({n})"}
        for n in (1, 2, 3, 5, 5, 4, 20)
    ],
    "order": [{"b": 1, "a": 2}, {"a": 2, "b": 1}] * 5,
}
PHASES = ("case_interpretation", "hypotheses", "diagnosis_early", "diagnosis", "change_request")


def views() -> Iterator[tuple[str, Any]]:
    yield from SMALL.items()
    for path in sorted((HERE / "cases").glob("*.zip")):
        if path.stem in ("example", "mp-invoice-wrong-open-amount"):
            with Package(path) as package:
                for _, event in package.events():
                    if isinstance(event, RequestPrepared) and event.phase in PHASES:
                        name = f"{path.stem}-{event.phase}"
                        yield (
                            name,
                            restored_view(saved_document(package, event.request, event.document)),
                        )


def investigations() -> Iterator[tuple[str, Any]]:
    """Yield views that partitions divide: of the page, and the first and last of a package."""
    page = (ROOT / "docs" / "partitions" / "stable_case_v1.md").read_text(encoding="utf-8")
    yield "page", json.loads(re.findall(r"```json view\n(.*?)\n```", page, re.DOTALL)[0])
    with Package(HERE / "cases" / "example-v11.zip") as package:
        asked = [
            event
            for _, event in package.events()
            if isinstance(event, RequestPrepared) and event.phase == "investigation"
        ]
        for name, event in (("first", asked[0]), ("last", asked[-1])):
            document = saved_document(package, event.request, event.document)
            yield f"example-{name}", document["messages"][0]["content"]


def write_partitions() -> None:
    for version, partition in partitions.VERSIONS.items():
        folder = HERE / "vectors" / "partitions" / version
        folder.mkdir(parents=True, exist_ok=True)
        for name, view in investigations():
            if version == "instructions_v1" and name != "page":
                continue
            target = folder / f"{name}.prefix.json"
            if not target.exists():
                split = partition.split(view)
                (folder / f"{name}.divided.json").write_bytes(canonical.to_bytes(view))
                (folder / f"{name}.live.json").write_bytes(canonical.to_bytes(split.live))
                target.write_bytes(canonical.to_bytes(split.prefix))


def main() -> None:
    write_partitions()
    for version, encoding in encodings.VERSIONS.items():
        folder = HERE / "vectors" / version
        folder.mkdir(parents=True, exist_ok=True)
        for name, view in views():
            if version == "plain_v1" and name not in SMALL:
                continue
            target = folder / f"{name}.content.json"
            if not target.exists():
                (folder / f"{name}.view.json").write_bytes(canonical.to_bytes(view))
                target.write_bytes(canonical.to_bytes(encoding.encode(view).content))


if __name__ == "__main__":
    main()
