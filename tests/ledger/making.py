"""What the ledger's tests share: filled events, a case with everything in it, and tools to damage.

Nothing here is random: the same calls give the same bytes.
"""

from __future__ import annotations

import hashlib
import itertools
import sqlite3
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from ledger import canonical, chain, topics
from ledger.book import Book
from ledger.clock import Sources
from ledger.events import (
    EVENTS,
    ArtifactAdded,
    CaseOpened,
    ConfigurationPinned,
    ContextCreated,
    Event,
    JsonObject,
    Observation,
    ObservationsExtracted,
    Problem,
    Ref,
    RequestPrepared,
    RequestSent,
    ResponseReceived,
    RunStarted,
    RunStopped,
    SecretReplaced,
)

AT = "2024-05-17T09:30:00.000000Z"
CASE = "case-17"


def fixed_sources() -> Sources:
    """Return a clock that stands still and nonces that count."""
    counter = itertools.count(1)

    def draw(size: int) -> bytes:
        return hashlib.sha256(b"nonce %d" % next(counter)).digest()[:size]

    return Sources(now=lambda: AT, random_bytes=draw)


def ref(data: bytes) -> Ref:
    return Ref(digest=canonical.digest(data), size=len(data))


def opened(case_id: str = CASE) -> CaseOpened:
    return CaseOpened(at=AT, case_id=case_id, trial_id="trial-1", title="A bug", program="tests 1")


def note(number: int, detail: str = "") -> RunStopped:
    """Return a small event without payloads."""
    return RunStopped(at=AT, run=number, reason="done", detail=detail)


# Every event, every field filled ----------------------------------------------------------------

_FILLED: dict[Any, Any] = {
    int: 7,
    bool: True,
    JsonObject: {"k": [1, 1.5, -0.0, 10**20, None, True, "ü\n"], "": {}},
    Ref: Ref(digest="sha256:" + "ab" * 32, size=11),
    Observation: Observation(id="O1", artifact="S1", kind="log_excerpt", first_line=1, last_line=9),
    Problem: Problem(code="schema", message="expected a string", path="$.a[0]"),
}


def filled(cls: type[Event]) -> Event:
    """Return an event of a class in which no field has its default."""
    return cls(**{name: _value(name, f.annotation) for name, f in cls.model_fields.items()})


def _value(name: str, annotation: Any) -> Any:
    if annotation is str:
        return AT if name == "at" else f"{name} é☃😀"
    if annotation in _FILLED or get_origin(annotation) is dict:
        return _FILLED.get(annotation, _FILLED[JsonObject])
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return args[0]
    if origin is tuple:
        return (_value(name, args[0]),)
    assert origin in (Union, types.UnionType), annotation
    return _value(name, args[0])


# Cases ------------------------------------------------------------------------------------------


def small_case(path: Path, notes: int = 3) -> Path:
    """Create a closed case: opened, then small events."""
    with Book.create(path, sources=fixed_sources()) as book:
        book.append(opened(), *(note(n) for n in range(1, notes + 1)))
    return path


REPORT = b"Wrong total\n\nThe total of an order is wrong.\n"
LOG = b"".join(b"2024-05-17 line %d\n" % n for n in range(4000))
DATABASE = hashlib.shake_256(b"not really a database").digest(5000)
FILES = {
    "src/a.py": b"print('a')\n",
    "src/b: 100%.py": b"print('b')\n",
    "src/bin.dat": bytes(range(256)),
    "src/empty.py": b"",
    "src/same.py": b"print('a')\n",
}


def tree_document(files: dict[str, bytes] = FILES, *, catalogued: tuple[str, ...] = ()) -> bytes:
    """Return a tree document of files; `catalogued` ones are listed, not stored."""
    entries = []
    for path in sorted([*files, *catalogued]):
        data = files.get(path, b"elsewhere")
        entry = {"path": path, "size": len(data), "digest": canonical.digest(data)}
        try:
            lines = data.decode().count("\n")
            entry |= {"media": "text", "encoding": "utf-8", "lines": lines}
        except UnicodeDecodeError:
            entry |= {"media": "binary"}
        entries.append(entry | {"stored": path in files})
    skipped = [{"path": "node_modules/", "reason": "dependencies"}]
    return canonical.to_bytes({"format": 1, "files": entries, "skipped": skipped})


def request(number: int) -> bytes:
    """Return a request document; each shares most of its content with the one before it."""
    evidence = [
        {"id": f"E{n}", "lines": [f"line {n}.{m} of the evidence" for m in range(60)]}
        for n in range(number + 3)
    ]
    return canonical.to_bytes({"format": 1, "selected": f"H{number}", "evidence": evidence})


def intake() -> list[tuple[Event, list[bytes]]]:
    """Return the events of an intake with a file of each kind, and the payloads they name."""

    def artifact(number: int, kind: Any, name: str, media: Any, **refs: Any) -> ArtifactAdded:
        return ArtifactAdded(
            at=AT, artifact=f"S{number}", kind=kind, name=name, revision=1, media=media, **refs
        )

    tree = tree_document(catalogued=("src/huge.bin",))
    items = [
        ["report", "report.md", len(REPORT), canonical.digest(REPORT)],
        *(
            ["log", name, len(LOG), canonical.digest(LOG)]
            for name in ("logs/app.log", "logs/copy.log")
        ),
        ["database", "db/app.db", len(DATABASE), canonical.digest(DATABASE)],
        *(
            ["source", f["path"], f["size"], f["digest"]]
            for f in canonical.from_bytes(tree)["files"]
        ),
    ]
    return [
        (opened(), []),
        (artifact(1, "report", "report.md", "text", content=ref(REPORT)), [REPORT]),
        (artifact(2, "source", "source", "tree", tree=ref(tree)), [tree, *FILES.values()]),
        (artifact(3, "log", "logs/app.log", "text", content=ref(LOG), lines=4000), [LOG]),
        (artifact(4, "database", "db/app.db", "sqlite", content=ref(DATABASE)), [DATABASE]),
        (artifact(5, "log", "logs/copy.log", "text", content=ref(LOG), lines=4000), []),
        (SecretReplaced(at=AT, artifact="S3", kind="aws_access_key", count=1), []),
        (
            ObservationsExtracted(
                at=AT,
                revision=1,
                package_id=canonical.digest(canonical.to_bytes(sorted(items))),
                observations=(_FILLED[Observation],),
            ),
            [],
        ),
    ]


def exchange(number: int) -> list[tuple[Event, list[bytes]]]:
    """Return the events of one request and its answer, and the payloads they name."""
    document, body = request(number), b"\x00\xff answer %d" % number
    names = {"request": f"R{number}", "attempt": 1}
    prepared = filled(RequestPrepared).model_copy(
        update={"request": f"R{number}", "document": ref(document)}
    )
    sent = filled(RequestSent).model_copy(
        update={**names, "document": canonical.digest(document), "wire": None}
    )
    received = filled(ResponseReceived).model_copy(update={**names, "body": ref(body)})
    return [(prepared, [document]), (sent, []), (received, [body])]


def whole_record(requests: int = 4) -> list[tuple[Event, list[bytes]]]:
    """Return intake, configuration, contexts and requests, as (event, payloads)."""
    configuration = canonical.to_bytes({"settings": {"provider": "offline"}})
    context = canonical.to_bytes({"context": {"phase": "hypotheses"}})
    created = filled(ContextCreated).model_copy(update={"content": ref(context)})
    pinned = ConfigurationPinned(at=AT, configuration=ref(configuration), reason="opened")
    return [
        *intake(),
        (pinned, [configuration]),
        (RunStarted(at=AT, run=1, program="tests 1"), []),
        (created, [context]),
        *itertools.chain.from_iterable(exchange(n) for n in range(requests)),
        (note(1, "to the end"), []),
    ]


def whole_case(path: Path, requests: int = 4) -> Path:
    """Create a closed case of `whole_record`."""
    with Book.create(path, sources=fixed_sources()) as book:
        for event, payloads in whole_record(requests):
            book.append(event, payloads=payloads)
    return path


# Looking and damaging ---------------------------------------------------------------------------


def contents(path: Path) -> dict[str, list[Any]]:
    """Return every row of a case file's tables, read without the ledger."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return {
            table: connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
            for table in ("event", "chunk", "document")
        }
    finally:
        connection.close()


def head_path(path: Path) -> Path:
    return path.with_name(path.name + ".head")


def wal_path(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


@contextmanager
def unguarded(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection that may do what triggers and checks forbid; they stand again after it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    triggers = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
    ).fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("PRAGMA ignore_check_constraints = ON")
    try:
        yield connection
    finally:
        for _, sql in triggers:
            connection.execute(sql)
        connection.close()


def edit(path: Path, sql: str, *parameters: Any) -> None:
    """Run one statement against a case file that nothing guards."""
    with unguarded(path) as connection:
        connection.execute(sql, parameters)


def flip(data: bytes) -> bytes:
    """Return the bytes with one bit of the middle one flipped."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def append_raw(path: Path, topic: str, state: bytes, *, anchor: bool = True) -> None:
    """Append a row as another release would, with the right chain and anchor."""
    with unguarded(path) as connection:
        case_id, last, value = connection.execute(
            "SELECT case_id, position, chain FROM event ORDER BY position DESC LIMIT 1"
        ).fetchone()
        nonce = bytes(range(16))
        value = chain.link(value, chain.leaf(case_id, last + 1, topic, state, nonce))
        connection.execute(
            "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?)",
            (last + 1, case_id, last + 1, topic, state, nonce, value),
        )
    if anchor:
        head_path(path).write_text(f"caseledger-head/1 {last + 1} {value.hex()}\n")


def rechain(path: Path) -> None:
    """Give every row of an altered record the chain value that fits it, and the anchor too."""
    value = chain.ZERO
    with unguarded(path) as connection:
        for position, case_id, topic, state, nonce in connection.execute(
            "SELECT position, case_id, topic, state, nonce FROM event ORDER BY position"
        ).fetchall():
            value = chain.link(value, chain.leaf(case_id, position, topic, state, nonce))
            connection.execute("UPDATE event SET chain = ? WHERE position = ?", (value, position))
    head_path(path).write_text(f"caseledger-head/1 {position} {value.hex()}\n")


def open_files() -> list[str]:
    """Return what this process has open, for leak tests."""
    found = []
    for handle in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that lists them
            found.append(str(handle.readlink()))
    return sorted(name for name in found if ".case" in name or name.endswith(".zip"))


def one_line(error: BaseException) -> str:
    """Return an error's message, which has to be one line."""
    text = str(error)
    assert len(text.splitlines()) == 1, text
    return text


def listing(folder: Path) -> list[str]:
    """Return the names of everything in a folder, hidden files included."""
    return sorted(path.name for path in folder.iterdir())


def raising(error: BaseException) -> Callable[..., Any]:
    """Return a function that raises."""

    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


# Golden rows ------------------------------------------------------------------------------------


def add_golden_rows(folder: Path) -> None:
    """Write a golden row for each topic that has none; the rows that are there stay as they are."""
    rows = {}
    if (folder / "rows.jsonl").exists():
        lines = (folder / "rows.jsonl").read_text().splitlines()
        rows = {canonical.from_bytes(line.encode())["topic"]: line for line in lines}
    for cls in EVENTS:
        if cls.TOPIC not in rows:
            row = {"topic": cls.TOPIC, "state": topics.encode(filled(cls))[1].decode()}
            rows[cls.TOPIC] = canonical.to_bytes(row).decode()
    text = "".join(f"{rows[cls.TOPIC]}\n" for cls in EVENTS)
    (folder / "rows.jsonl").write_text(text)
    (folder / "topics.txt").write_text("".join(f"{cls.TOPIC}\n" for cls in EVENTS))


if __name__ == "__main__":  # python -m tests.ledger.making
    add_golden_rows(Path(__file__).parent / "golden")
