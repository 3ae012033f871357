"""A second look at a case file after a crash, with the standard library alone.

Written from docs/format.md, not from the code that it checks.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tempfile
import zlib
from contextlib import closing, suppress
from pathlib import Path
from typing import Any


def chains(path: Path) -> list[str]:
    """Recompute the chain; return its value at each position, in hex. Raise if a row differs."""
    value, values = bytes(32), []
    for position, case_id, topic, state, nonce, stored in _rows(
        path, "SELECT position, case_id, topic, state, nonce, chain FROM event ORDER BY position"
    ):
        assert position == len(values) + 1
        leaf = _sha(
            b"caseledger/leaf/1\0"
            + _sized(case_id.encode())
            + position.to_bytes(8, "big")
            + _sized(topic.encode())
            + _sized(state)
            + nonce
        )
        value = _sha(b"caseledger/chain/1\0" + value + leaf)
        assert value == stored, f"position {position}"
        values.append(value.hex())
    return values


def states(path: Path) -> list[dict[str, Any]]:
    """Return the states of all events, parsed."""
    return [json.loads(state) for (state,) in _rows(path, "SELECT state FROM event")]


def check_payloads(path: Path) -> None:
    """Every payload that an event names is there and whole; no payload or chunk is left over."""
    named = {ref["digest"]: ref["size"] for state in states(path) for ref in _references(state)}
    documents = _rows(path, "SELECT digest, size, chunks FROM document")
    assert {f"sha256:{name.hex()}": size for name, size, _ in documents} == named
    chunks = {}
    for number, name, codec, size, data in _rows(
        path, "SELECT id, digest, codec, size, data FROM chunk"
    ):
        chunk = zlib.decompress(data) if codec else data
        assert (len(chunk), _sha(chunk)) == (size, name)
        chunks[number] = chunk
    used: set[int] = set()
    for name, _, packed in documents:
        ids = _unpack(packed)
        used.update(ids)
        assert _sha(b"".join(chunks[number] for number in ids)) == name
    assert used == set(chunks)


def check_sqlite(path: Path) -> None:
    """SQLite finds nothing wrong with its pages and indexes."""
    assert _rows(path, "PRAGMA integrity_check") == [("ok",)]


def discard_second_names(folder: Path) -> None:
    """Remove hidden names of files that have their final name as well: harmless, if untidy."""
    for path in folder.glob(".*.new"):
        final = folder / path.name.removeprefix(".").removesuffix(".new")
        if final.exists() and path.samefile(final):
            path.unlink()
            path.with_name(path.name + ".head").unlink(missing_ok=True)


def _rows(path: Path, query: str) -> list[Any]:
    """Read a copy: a kill may leave a rollback journal, which only a writer can play back."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        for end in ("", "-wal", "-journal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{end}", f"{copy}{end}")
        with closing(sqlite3.connect(copy)) as connection:
            return connection.execute(query).fetchall()


def _references(value: Any) -> list[dict[str, Any]]:
    found = [v for v in value.values() if isinstance(v, dict) and set(v) == {"digest", "size"}]
    assert "tree" not in value, "trees are not looked into here"
    return found


def _unpack(data: bytes) -> list[int]:
    ids, previous, code, shift = [], 0, 0, 0
    for byte in data:
        code |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            previous += (code >> 1) ^ -(code & 1)
            ids.append(previous)
            code = shift = 0
    return ids


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data


def _sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
