"""Payloads: exact by concatenation, stored once, never larger than their row says."""

from __future__ import annotations

import itertools
import json
import random
import sqlite3
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledger import canonical, payloads
from ledger.book import Book
from ledger.errors import PayloadDamaged
from ledger.events import RequestPrepared
from ledger.payloads import CODEC_PLAIN, CODEC_ZLIB, PIECE, cut, decompress, pack_ids, unpack_ids
from tests.benchmarks.growing_requests import documents
from tests.ledger.making import (
    edit,
    fixed_sources,
    one_line,
    opened,
    ref,
    request,
    small_case,
    whole_case,
)
from tests.ledger.making import filled as filled_event
from tests.ledger.test_canonical import texts, values

# Cutting ------------------------------------------------------------------------------------------


def assert_exact(data: bytes) -> list[bytes]:
    chunks = cut(data)
    assert b"".join(chunks) == data
    assert all(0 < len(chunk) <= PIECE for chunk in chunks)
    return chunks


def stretched(part: bytes) -> st.SearchStrategy[bytes]:
    return st.integers(0, 3 * PIECE // max(1, len(part))).map(lambda n: part * n)


@given(st.binary(max_size=400).flatmap(stretched))
@example(b"")
@example(b"[" * 3000)
@example(b"]" * 3000)
@example(b'{"a' * 3000)
@example(b"{}" + b"," * 5000)
@example(b'["' + b"\\" * 9001 + b'"]')
def test_any_bytes_are_their_chunks_joined(data: bytes) -> None:
    assert_exact(data)


@given(st.lists(values | texts.map(lambda t: t * 300), max_size=12), st.sampled_from([None, 1]))
def test_any_json_is_its_chunks_joined(value: Any, indent: int | None) -> None:
    assert_exact(canonical.to_bytes(value * 5))
    assert_exact(json.dumps({"k": value}, indent=indent).encode())


@given(st.binary(max_size=3000), st.integers(0, 200), st.integers(0, 255))
def test_json_that_is_broken_somewhere_is_its_chunks_joined(
    tail: bytes, at: int, byte: int
) -> None:
    data = bytearray(request(3))
    data[at * len(data) // 201] = byte
    assert_exact(bytes(data) + tail)


def test_a_large_document_is_cut_in_linear_time_and_at_most_64_kib() -> None:
    chunks = assert_exact(canonical.to_bytes([{"n": n, "text": "x" * 90} for n in range(60_000)]))
    assert len(chunks) > 100


@pytest.mark.parametrize("character", ["é", "☃", "😀"])
@pytest.mark.parametrize("shift", range(4))
def test_no_cut_splits_a_character(character: str, shift: int) -> None:
    for chunk in assert_exact(("x" * shift + character * PIECE).encode()):
        chunk.decode()


def test_continuation_bytes_without_end_do_not_stop_the_cutting() -> None:
    assert_exact(b"\x80" * (3 * PIECE + 5))


def test_the_same_subtree_gives_the_same_chunks_wherever_it_stands() -> None:
    block = {"text": "y" * 5000}
    first = set(cut(canonical.to_bytes([1, block, {"text": "z" * 3000}])))
    second = set(cut(canonical.to_bytes({"before": "w" * 5000, "here": [2, 3, block]})))
    assert any(b"yyy" in chunk for chunk in first & second)


def test_growing_requests_share_their_chunks() -> None:
    """Stored bytes grow with what is new, not with what is repeated."""
    stored: dict[bytes, int] = {}
    sizes = []
    for document in documents(13):
        for chunk in assert_exact(document):
            stored.setdefault(chunk, len(payloads.compress(chunk)[1]))
        sizes.append(sum(stored.values()))
    assert sizes[-1] < 60_000
    assert max(b - a for a, b in itertools.pairwise(sizes)) < sizes[0] / 4


@pytest.mark.parametrize(("count", "most"), [(13, 90_000), (60, 350_000)])
def test_bodies_that_carried_growing_requests_share_what_is_in_their_strings(
    count: int, most: int
) -> None:
    bodies = [
        json.dumps({"contents": [{"text": document.decode()}]}).encode()
        for document in documents(count)
    ]
    unique = {chunk for body in bodies for chunk in assert_exact(body)}
    assert sum(len(payloads.compress(chunk)[1]) for chunk in unique) < most


def test_growing_requests_stay_small_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.case"
    contents = documents(13)
    prepared = filled_event(RequestPrepared)
    with Book.create(path, sources=fixed_sources()) as book:
        book.append(opened())
        for document in contents:
            book.append(
                prepared.model_copy(update={"document": ref(document)}), payloads=[document]
            )
    assert path.stat().st_size < 130_000 < sum(map(len, contents)) / 4
    with Book.open(path) as book:
        assert all(book.payload(canonical.digest(data)) == data for data in contents)


# Lists of chunks ----------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 2**62)))
@example([1, 2, 3, 2, 1, 2**40, 1])
def test_chunk_lists_come_back(ids: list[int]) -> None:
    assert unpack_ids(pack_ids(ids)) == ids


def test_chunk_lists_are_those_of_the_format_page() -> None:
    assert pack_ids([1, 2, 3, 1, 200]) == bytes([2, 2, 2, 3, 0x8E, 0x03])


@given(st.binary(max_size=40))
@example(b"\xff" * 39 + b"\x00")
@example(b"\x80")
@example(b"\x01")
def test_any_bytes_give_chunk_ids_that_sqlite_takes_or_one_typed_error(data: bytes) -> None:
    try:
        ids = unpack_ids(data)
    except PayloadDamaged:
        return
    assert all(-(2**63) <= number < 2**63 for number in ids)


# Chunks -------------------------------------------------------------------------------------------


@given(st.binary(min_size=1, max_size=2000))
def test_a_chunk_comes_back_and_is_never_larger_than_plain(chunk: bytes) -> None:
    codec, data = payloads.compress(chunk)
    assert len(data) <= len(chunk)
    assert decompress(codec, len(chunk), data) == chunk


def test_a_bomb_is_never_unpacked_beyond_the_size_it_claims() -> None:
    bomb = zlib.compress(bytes(200_000_000), 9)
    tracemalloc.start()
    try:
        for size in (10, 0, 2**20):
            with pytest.raises(PayloadDamaged):
                decompress(CODEC_ZLIB, size, bomb)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [-1, 0, 2**20 + 1, 2**40, 2**63 - 1])
@pytest.mark.parametrize("codec", [CODEC_PLAIN, CODEC_ZLIB])
def test_a_chunk_that_claims_an_impossible_size_is_damage(codec: int, size: int) -> None:
    data = b"x" if codec == CODEC_PLAIN else zlib.compress(b"x")
    with pytest.raises(PayloadDamaged):
        decompress(codec, size, data)


@pytest.mark.parametrize(
    ("codec", "size", "data"),
    [
        (CODEC_PLAIN, 4, b"abc"),
        (CODEC_PLAIN, 2, b"abc"),
        (CODEC_ZLIB, 3, b"abc"),
        (CODEC_ZLIB, 3, b""),
        (CODEC_ZLIB, 2, zlib.compress(b"abc")),
        (CODEC_ZLIB, 4, zlib.compress(b"abc")),
        (CODEC_ZLIB, 3, zlib.compress(b"abc")[:-1]),  # its checksum is cut off
        (CODEC_ZLIB, 3, zlib.compress(b"abc") + b"x"),
        (2, 3, b"abc"),
        (-1, 3, b"abc"),
    ],
)
def test_a_chunk_that_is_not_what_its_row_says_is_damage(
    codec: int, size: int, data: bytes
) -> None:
    with pytest.raises(PayloadDamaged):
        decompress(codec, size, data)


# Damaged rows -------------------------------------------------------------------------------------

TARGET = canonical.digest(request(3))
NAME = bytes.fromhex(TARGET.removeprefix("sha256:"))


def chunk_ids(connection: sqlite3.Connection) -> list[int]:
    query = "SELECT chunks FROM document WHERE digest = ?"
    return unpack_ids(connection.execute(query, (NAME,)).fetchone()[0])


def set_chunks(value: Any) -> Callable[[Path], None]:
    return lambda path: edit(path, "UPDATE document SET chunks = ? WHERE digest = ?", value, NAME)


def set_chunk(column: str, value: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        connection = sqlite3.connect(path)
        middle = chunk_ids(connection)[1]
        connection.close()
        edit(path, f"UPDATE chunk SET {column} = {value} WHERE id = {middle}")

    return damage


def change_ids(change: Callable[[list[int]], list[int]]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        connection = sqlite3.connect(path)
        ids = chunk_ids(connection)
        connection.close()
        set_chunks(pack_ids(change(ids)))(path)

    return damage


def with_empty_chunk(path: Path) -> None:
    edit(path, "INSERT INTO chunk VALUES (9999, ?, 0, 0, x'')", bytes(32))
    change_ids(lambda ids: [*ids, 9999])(path)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "missing": lambda p: edit(p, "DELETE FROM document WHERE digest = ?", NAME),
    "size larger": lambda p: edit(p, "UPDATE document SET size = size + 1 WHERE digest = ?", NAME),
    "size smaller": lambda p: edit(p, "UPDATE document SET size = size - 1 WHERE digest = ?", NAME),
    "size negative": lambda p: edit(p, "UPDATE document SET size = -5 WHERE digest = ?", NAME),
    "no chunks": set_chunks(b""),
    "list cut off": set_chunks(b"\x02\x80"),
    "list huge number": set_chunks(b"\xff" * 30 + b"\x01"),
    "list too large for sqlite": set_chunks(pack_ids([2**70])),
    "list of zero": set_chunks(pack_ids([0])),
    "list of unknown chunk": set_chunks(pack_ids([12345])),
    "one chunk more": change_ids(lambda ids: [*ids, ids[0]]),
    "one chunk less": change_ids(lambda ids: ids[:-1]),
    "chunks swapped": change_ids(lambda ids: [ids[1], ids[0], *ids[2:]]),
    "an empty chunk more": with_empty_chunk,
    "chunk missing": lambda p: set_chunk("id", "99999")(p),
    "chunk codec": set_chunk("codec", "1 - codec"),
    "chunk codec unknown": set_chunk("codec", "77"),
    "chunk size": set_chunk("size", "size + 1"),
    "chunk size huge": set_chunk("size", str(2**63 - 1)),
    "chunk size negative": set_chunk("size", "-1"),
    "chunk data": set_chunk("data", "zeroblob(20)"),
    "chunk data empty": set_chunk("data", "x''"),
    "chunk data and size": set_chunk("codec = 0, size = 4, data", "x'61626364'"),
}


@pytest.fixture(scope="module")
def case_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return whole_case(tmp_path_factory.mktemp("case") / "a.case").read_bytes()


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_every_damaged_row_is_damage_that_names_the_payload(
    damage: Callable[[Path], None], case_bytes: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "a.case"
    path.write_bytes(case_bytes)
    damage(path)
    with Book.open(path) as book:
        with pytest.raises(PayloadDamaged, match=TARGET) as caught:
            book.payload(TARGET)
        one_line(caught.value)
        with pytest.raises(PayloadDamaged, match=TARGET):
            book.payloads.check(TARGET, set())


def test_a_payload_is_never_unpacked_beyond_the_size_its_row_says(
    case_bytes: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of chunks costs a byte an entry; each may stand for a megabyte."""
    path = tmp_path / "a.case"
    path.write_bytes(case_bytes)
    change_ids(lambda ids: [ids[0]] * 100_000)(path)
    unpacked = []
    real = payloads.decompress

    def counted(codec: int, size: int, data: bytes) -> bytes:
        unpacked.append(size)
        return real(codec, size, data)

    monkeypatch.setattr(payloads, "decompress", counted)
    with Book.open(path) as book, pytest.raises(PayloadDamaged, match=TARGET):
        book.payload(TARGET)
    assert sum(unpacked) <= len(request(3)) + PIECE


@pytest.mark.parametrize(
    "digest",
    [
        "",
        "sha256:",
        "sha256:" + "0" * 63,
        "md5:" + "0" * 64,
        "sha256:" + "zz" * 32,
        "0" * 64,
        "sha256:" + "AB" * 32,
        "sha256:" + "ab " * 32,
    ],
)
def test_what_is_no_digest_names_no_payload(digest: str, tmp_path: Path) -> None:
    with Book.open(small_case(tmp_path / "a.case")) as book, pytest.raises(PayloadDamaged):
        book.payload(digest)


def test_a_missing_payload_is_damage_that_names_it(tmp_path: Path) -> None:
    with (
        Book.open(small_case(tmp_path / "a.case")) as book,
        pytest.raises(PayloadDamaged, match=f"{TARGET} is missing"),
    ):
        book.payload(TARGET)


def awkward_payloads() -> Iterator[bytes]:
    rng = random.Random(1)
    yield from (b"", b"\x00", b"{}", b"[" * 10, b"\xff" * 70_000, "é".encode() * 50_000)
    yield from (rng.randbytes(n) for n in (1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE))


def test_every_kind_of_payload_comes_back_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.case"
    prepared = filled_event(RequestPrepared)
    everything = list(awkward_payloads())
    with Book.create(path) as book:
        book.append(opened())
        for data in everything:
            book.append(prepared.model_copy(update={"document": ref(data)}), payloads=[data])
    with Book.open(path) as book:
        for data in everything:
            assert book.payload(canonical.digest(data)) == data
            assert book.payloads.size(canonical.digest(data)) == len(data)
