"""For maintainers: write output schemas from their models, and list frozen files.

    .venv/bin/python -P tools/freeze.py schemas    write schemas that are not there yet
    .venv/bin/python -P tools/freeze.py list       add new prompt and schema files to FROZEN.sha256

Nothing that is listed is ever rewritten: a change is a new version.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "FROZEN.sha256"
FROZEN = (
    "prompts/*/*.md",
    "prompts/encodings/*.txt",
    "prompts/schemas/*.json",
    "prompts/wires/*.txt",
    "tests/frozen/cases/*.*",
    "tests/frozen/vectors/**/*.*",
)


def main() -> int:
    """Run one of the two commands."""
    command = sys.argv[1] if len(sys.argv) == 2 else ""
    if command == "schemas":
        write_schemas()
    elif command == "list":
        extend_list()
    else:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    return 0


def write_schemas() -> None:
    """Write the schema file of every answer model that has none."""
    from phases import ORDER
    from phases.answers import json_schema
    from phases.phase import find

    answers = [
        item for phase in (*ORDER, "diagnosis_early") for item in find(phase).answers.items()
    ]
    for name, model in answers:
        path = ROOT / "prompts" / "schemas" / f"{name}.json"
        if not path.exists():
            text = json.dumps(json_schema(model), ensure_ascii=False, indent=1)  # noqa: TID251
            path.write_text(text + "\n", encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")


def extend_list() -> None:
    """Add files that are not listed; refuse if a listed one changed or is gone."""
    listed = {}
    if LIST.exists():
        for line in LIST.read_text(encoding="utf-8").splitlines():
            digest, name = line.split("  ", 1)
            listed[name] = digest
    for name, digest in listed.items():
        if not (ROOT / name).exists() or _sha256(ROOT / name) != digest:
            raise SystemExit(f"{name} is frozen and was changed; make a new version instead")
    found = sorted(p for pattern in FROZEN for p in ROOT.glob(pattern) if p.is_file())
    new = [p for p in found if p.relative_to(ROOT).as_posix() not in listed]
    with LIST.open("a", encoding="utf-8") as file:
        for path in new:
            file.write(f"{_sha256(path)}  {path.relative_to(ROOT).as_posix()}\n")
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
