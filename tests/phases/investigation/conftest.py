"""A case in memory: artefacts put together by a test, read back through the ledger's protocol."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from ledger.canonical import digest, to_bytes
from ledger.events import ArtifactAdded, Event, Ref
from ledger.lines import split_lines
from ledger.reader import Entry, Head
from phases.investigation.snapshot import Snapshot

AT = "2024-01-01T00:00:00.000000Z"
CASES = Path(__file__).parents[2] / "cases"


class MemoryCase:
    """A `CaseReader` over lists."""

    case_id = "test"

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._payloads: dict[str, bytes] = {}

    @property
    def head(self) -> Head:
        return Head(len(self._events), bytes(32))

    def events(self, upto: int | None = None, *, after: int = 0) -> Iterator[Entry]:
        for position, event in enumerate(self._events, 1):
            if after < position and (upto is None or position <= upto):
                yield Entry(position, event)

    def payload(self, wanted: str) -> bytes:
        return self._payloads[wanted]

    def put(self, data: bytes) -> Ref:
        self._payloads[digest(data)] = data
        return Ref(digest=digest(data), size=len(data))

    def add(self, kind: str, name: str, data: bytes, encoding: str = "utf-8") -> None:
        lines = len(split_lines(data.decode("latin-1")))
        media = "sqlite" if kind == "database" else "text"
        self._append(kind, name, media, content=self.put(data), encoding=encoding, lines=lines)

    def add_tree(self, files: Mapping[str, bytes | str]) -> None:
        entries = [self._entry(path, content) for path, content in sorted(files.items())]
        tree = self.put(to_bytes({"format": 1, "files": entries, "skipped": []}))
        self._append("source", "source", "tree", tree=tree)

    def _entry(self, path: str, content: bytes | str) -> dict[str, object]:
        data = content.encode() if isinstance(content, str) else content
        entry = {"path": path, "size": len(data), "digest": self.put(data).digest}
        try:
            data.decode()
            encoding = "utf-8"
        except UnicodeDecodeError:
            encoding = "latin-1"
        if b"\0" in data:
            return {**entry, "media": "binary", "stored": True}
        lines = len(split_lines(data.decode(encoding)))
        return {**entry, "media": "text", "encoding": encoding, "lines": lines, "stored": True}

    def _append(self, kind: str, name: str, media: str, **more: object) -> None:
        artifact = f"S{len(self._events) + 1}"
        fields = {"kind": kind, "name": name, "media": media, "revision": 1, **more}
        self._events.append(ArtifactAdded(at=AT, artifact=artifact, **fields))


Maker = Callable[..., Snapshot]


def build(
    files: Mapping[str, bytes | str] | None = None,
    logs: Mapping[str, bytes | str] | None = None,
    databases: Mapping[str, bytes] | None = None,
    report: str = "It does not work.\n",
) -> MemoryCase:
    case = MemoryCase()
    case.add("report", "report.md", report.encode())
    case.add_tree(files or {})
    for name, content in (logs or {}).items():
        case.add("log", name, content.encode() if isinstance(content, str) else content)
    for name, data in (databases or {}).items():
        case.add("database", name, data, "")
    return case


def database(*statements: str) -> bytes:
    """Return the file of a database made by SQL."""
    connection = sqlite3.connect(":memory:")
    for statement in statements:
        connection.executescript(statement)
    data = connection.serialize()
    connection.close()
    return data


@pytest.fixture(scope="session")
def make() -> Iterator[Maker]:
    """Make a snapshot: `make(files={path: text}, logs={…}, databases={name: bytes})`."""
    made: list[Snapshot] = []

    def maker(*args: object, **more: object) -> Snapshot:
        made.append(Snapshot.of(build(*args, **more)))
        return made[-1]

    yield maker
    for snapshot in made:
        snapshot.close()


@pytest.fixture(scope="session")
def sql() -> Callable[..., bytes]:
    """Make a database file from SQL statements."""
    return database


@pytest.fixture(scope="session")
def folder_case() -> Callable[[Path], MemoryCase]:
    """Read a folder `report.md source/ logs/ db/` as a case."""

    def read(root: Path) -> MemoryCase:
        tree = {
            path.relative_to(root / "source").as_posix(): path.read_bytes()
            for path in sorted((root / "source").rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
        }
        logs = {path.name: path.read_bytes() for path in sorted((root / "logs").glob("*"))}
        databases = {path.name: path.read_bytes() for path in sorted((root / "db").glob("*.db"))}
        return build(tree, logs, databases, (root / "report.md").read_text(encoding="utf-8"))

    return read


@pytest.fixture(scope="session")
def business_case(
    folder_case: Callable[[Path], MemoryCase], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Snapshot]:
    """Make the snapshot of a case under tests/cases, its database built by its own script."""
    import shutil

    def read(name: str) -> Snapshot:
        root = tmp_path_factory.mktemp(name) / "case"
        shutil.copytree(CASES / name, root)
        (root / "db").mkdir()
        command = [sys.executable, "-B", str(root / "make_db.py")]
        subprocess.run(command, cwd=root / "db", check=True, env={**os.environ, "TZ": "UTC"})
        return Snapshot.of(folder_case(root))

    return read
