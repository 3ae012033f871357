"""Large values, once: payloads cut into chunks, chunks stored by digest.

The thirteen requests of an investigation share most of their content. A JSON document is therefore
cut at JSON boundaries that depend on the content alone, so the same subtree gives the same chunks
wherever it stands; anything else is cut at fixed sizes. Where the cuts lie is private to this
module and may change: the digest that events hold is that of the whole payload.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from ledger import canonical
from ledger.errors import PayloadDamaged

CODEC_PLAIN, CODEC_ZLIB = 0, 1
ZLIB_LEVEL = 6

# Chosen on the growing-requests workload (docs/decisions/0004-payload-chunks.md).
CONTAINER = 4096  # an array or object of this many bytes is cut inside
ITEM = 2048  # a member or element of this many bytes becomes chunks of its own
RUN = 8192  # smaller ones are gathered up to this many bytes
DEEPEST = 24  # containers nested deeper are not cut: brackets alone must not become chunks
STRING = 8192  # a string of this many bytes is cut inside: it may be a document within a document
SPARSE = 8  # of so many places where it can be cut, one is, by what stands before it
BATCH = 256  # chunks looked up and stored at once
PIECE = 65536  # no chunk is longer when it is cut

MAX_CHUNK = 2**20
"""Bytes of a chunk that a reader accepts, part of the format: what a hostile row can unpack to."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},]', re.DOTALL)
_IN_STRING = re.compile(rb"[\]}],|\\\\n")
_WINDOW = 48
_OPEN, _CLOSE, _COMMA = b"[{", b"]}", b","


def cut(data: bytes) -> list[bytes]:
    """Return chunks whose concatenation is `data`; none is empty, none longer than 64 KiB."""
    ends = _json_cuts(data) if data[:1] in (b"{", b"[") else None
    return list(_pieces(data, ends or [len(data)]))


def pack_ids(ids: Sequence[int]) -> bytes:
    """Return chunk IDs as zigzag differences in base-128 varints (docs/format.md)."""
    out, previous = bytearray(), 0
    for number in ids:
        step, previous = number - previous, number
        code = step << 1 if step >= 0 else -(step << 1) - 1
        while code > 0x7F:
            out.append(code & 0x7F | 0x80)
            code >>= 7
        out.append(code)
    return bytes(out)


def unpack_ids(data: bytes) -> list[int]:
    """Return the chunk IDs of `pack_ids`.

    Raises:
        PayloadDamaged: if the last varint is cut off, or a number cannot be the ID of a row.
    """
    ids, previous, code, shift = [], 0, 0, 0
    for byte in data:
        code |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            previous += code >> 1 if not code & 1 else -((code + 1) >> 1)
            if not 0 < previous < 2**63:
                raise PayloadDamaged("its list of chunks holds an impossible number")
            ids.append(previous)
            code = shift = 0
        elif shift >= 70:
            raise PayloadDamaged("its list of chunks holds an endless number")
    if shift:
        raise PayloadDamaged("its list of chunks is cut off")
    return ids


def compress(chunk: bytes) -> tuple[int, bytes]:
    """Return (codec, data): zlib where that is shorter."""
    packed = zlib.compress(chunk, ZLIB_LEVEL)
    return (CODEC_ZLIB, packed) if len(packed) < len(chunk) else (CODEC_PLAIN, chunk)


def decompress(codec: int, size: int, data: bytes) -> bytes:
    """Return a chunk; never more than `size` bytes, so that a bomb stays small.

    Raises:
        PayloadDamaged: if the data is not `size` bytes under `codec`.
    """
    if not 0 < size <= MAX_CHUNK:
        raise PayloadDamaged(f"a chunk cannot have {size} bytes")
    if codec == CODEC_PLAIN:
        chunk = data
    elif codec == CODEC_ZLIB:
        engine = zlib.decompressobj()
        try:
            chunk = engine.decompress(data, size + 1)
        except zlib.error as error:
            raise PayloadDamaged(f"a chunk cannot be decompressed: {error}") from None
        if not engine.eof or engine.unused_data:
            raise PayloadDamaged("a chunk does not end where its size says")
    else:
        raise PayloadDamaged(f"a chunk has the codec {codec}, which is not known")
    if len(chunk) != size:
        raise PayloadDamaged(f"a chunk has {len(chunk)} bytes, its row says {size}")
    return chunk


class PayloadStore:
    """The payload tables of one case file, through a connection that the book owns."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def put(self, data: bytes) -> str:
        """Store a payload inside the current transaction, if it is not there; return its digest."""
        name = hashlib.sha256(data).digest()
        if not self._has(name):
            self._put_document(name, len(data), self._put_all(cut(data)))
        return "sha256:" + name.hex()

    def put_chunks(self, digest: str, size: int, chunks: Iterable[bytes]) -> None:
        """Store a payload with cuts made elsewhere (an imported package keeps its own)."""
        name = _name(digest)
        if not self._has(name):
            self._put_document(name, size, self._put_all(chunks))

    def get(self, digest: str) -> bytes:
        """Return a payload, checked against its digest.

        Raises:
            PayloadDamaged: if it is missing or different.
        """
        data = b"".join(chunk for _, chunk in self.chunks(digest))
        if canonical.digest(data) != digest:
            raise PayloadDamaged(f"payload {digest}: its bytes have {canonical.digest(data)}")
        return data

    def check(self, digest: str, checked: set[int]) -> int:
        """Check a payload against its digest, its chunks against theirs; return its size.

        In bounded memory, whatever the size.

        Args:
            digest: the payload.
            checked: chunk IDs that were checked already; its own are added.

        Raises:
            PayloadDamaged: if anything is missing or different.
        """
        whole, size = hashlib.sha256(), 0
        for number, chunk in self.chunks(digest):
            whole.update(chunk)
            size += len(chunk)
            if number not in checked:
                query = "SELECT digest FROM chunk WHERE id = ?"
                stored = self._connection.execute(query, (number,)).fetchone()[0]
                if hashlib.sha256(chunk).digest() != stored:
                    raise PayloadDamaged(
                        f"payload {digest}: chunk {number} differs from its digest"
                    )
                checked.add(number)
        if "sha256:" + whole.hexdigest() != digest:
            raise PayloadDamaged(f"payload {digest}: its bytes have sha256:{whole.hexdigest()}")
        return size

    def size(self, digest: str) -> int | None:
        """Return a payload's size in bytes, None if it is not there."""
        row = self._connection.execute(
            "SELECT size FROM document WHERE digest = ?", (_name(digest),)
        ).fetchone()
        return None if row is None else int(row[0])

    def chunks(self, digest: str) -> Iterator[tuple[int, bytes]]:
        """Yield a payload's (chunk ID, chunk) in order, never more bytes than its size."""
        row = self._connection.execute(
            "SELECT size, chunks FROM document WHERE digest = ?", (_name(digest),)
        ).fetchone()
        if row is None:
            raise PayloadDamaged(f"payload {digest} is missing")
        try:
            size, numbers = _row(row, int, bytes)
            ids = unpack_ids(numbers)
        except PayloadDamaged as error:
            raise PayloadDamaged(f"payload {digest}: {error}") from None
        left = size
        for number in ids:
            chunk = self._chunk(number, digest)
            left -= len(chunk)
            if left < 0:
                break
            yield number, chunk
        if left != 0:
            raise PayloadDamaged(f"payload {digest} is not the {size} bytes its row says")

    def _chunk(self, number: int, digest: str) -> bytes:
        row = self._connection.execute(
            "SELECT codec, size, data FROM chunk WHERE id = ?", (number,)
        ).fetchone()
        if row is None:
            raise PayloadDamaged(f"payload {digest}: chunk {number} is missing")
        try:
            return decompress(*_row(row, int, int, bytes))
        except PayloadDamaged as error:
            raise PayloadDamaged(f"payload {digest}: chunk {number}: {error}") from None

    def _has(self, name: bytes) -> bool:
        query = "SELECT 1 FROM document WHERE digest = ?"
        return self._connection.execute(query, (name,)).fetchone() is not None

    def _put_document(self, name: bytes, size: int, ids: Sequence[int]) -> None:
        self._connection.execute(
            "INSERT INTO document (digest, size, chunks) VALUES (?, ?, ?)",
            (name, size, pack_ids(ids)),
        )

    def _put_all(self, chunks: Iterable[bytes]) -> list[int]:
        """Store chunks that are not there; return the IDs of all. One query for each batch."""
        ids: list[int] = []
        rest = iter(chunks)
        while batch := list(islice(rest, BATCH)):
            names = [hashlib.sha256(chunk).digest() for chunk in batch]
            known = self._ids_of(names)
            (last,) = self._connection.execute("SELECT ifnull(max(id), 0) FROM chunk").fetchone()
            new: list[tuple[int, bytes, int, int, bytes]] = []
            for name, chunk in zip(names, batch, strict=True):
                if name not in known:
                    known[name] = last = last + 1
                    codec, data = compress(chunk)
                    new.append((last, name, codec, len(chunk), data))
            self._connection.executemany(
                "INSERT INTO chunk (id, digest, codec, size, data) VALUES (?, ?, ?, ?, ?)", new
            )
            ids += [known[name] for name in names]
        return ids

    def _ids_of(self, names: Sequence[bytes]) -> dict[bytes, int]:
        places = ",".join("?" * len(names))
        query = f"SELECT digest, id FROM chunk WHERE digest IN ({places})"
        return dict(self._connection.execute(query, names).fetchall())


def _row(row: tuple[Any, ...], *types: type) -> tuple[Any, ...]:
    """Return a row whose values have these types: SQLite checks them when writing only."""
    if tuple(map(type, row)) != types:
        raise PayloadDamaged("its row holds a value of another type")
    return row


def _name(digest: str) -> bytes:
    try:
        algorithm, _, value = digest.partition(":")
        name = bytes.fromhex(value)
    except ValueError:
        name = b""
    if algorithm != "sha256" or len(name) != 32:
        raise PayloadDamaged(f"{digest!r} is not a digest")
    return name


def _json_cuts(data: bytes) -> list[int] | None:
    """Return ascending cut positions, the end included; None if `data` does not look like JSON.

    A comma belongs to the value after it, so that a value appended later leaves the earlier
    chunks as they were.
    """
    cuts = {len(data)}
    stack: list[tuple[int, list[int]]] = []  # where a container's content starts; ends of children
    for token in _TOKEN.finditer(data):
        first = data[token.start()]
        if first in _OPEN:
            stack.append((token.end(), []))
        elif first in _CLOSE:
            if not stack:
                return None
            start, ends = stack.pop()
            if token.end() - start >= CONTAINER and len(stack) < DEEPEST:
                cuts.update(_container_cuts(start, [*ends, token.start()]))
        elif first in _COMMA:
            if not stack:
                return None
            stack[-1][1].append(token.start())
        elif token.end() - token.start() >= STRING:
            cuts.update(_string_cuts(data, token.start(), token.end()))
    cuts.discard(0)
    return None if stack else sorted(cuts)


def _container_cuts(start: int, ends: list[int]) -> Iterator[int]:
    yield start
    last = child = start
    for end in ends:
        if end - child >= ITEM:
            yield child
            yield end
            last = end
        elif end - last >= RUN:
            yield end
            last = end
        child = end


def _string_cuts(data: bytes, start: int, end: int) -> Iterator[int]:
    """Yield cuts inside a long string, such as a request document in the body that carried it.

    What stands right before a place decides, not its offset, so that text put in elsewhere leaves
    the chunks as they were.
    """
    yield start
    last = start
    for place in _IN_STRING.finditer(data, start, end):
        at = place.end() - (place[0] != b"\\\\n")
        if at - last >= ITEM and not zlib.crc32(data[at - _WINDOW : at]) % SPARSE:
            yield at
            last = at
    yield end


def _pieces(data: bytes, ends: Iterable[int]) -> Iterator[bytes]:
    start = 0
    for end in ends:
        while end - start > PIECE:
            stop = _character_start(data, start + PIECE)
            yield data[start:stop]
            start = stop
        if end > start:
            yield data[start:end]
            start = end


def _character_start(data: bytes, position: int) -> int:
    """Return the nearest position at or before `position` that does not split a UTF-8 character."""
    for back in range(4):
        if data[position - back] & 0xC0 != 0x80:
            return position - back
    return position
