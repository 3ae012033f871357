"""The chain: the formula of the format page, computed here a second time."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ledger import chain
from ledger.book import Book
from ledger.package import Package
from ledger.packing import write
from tests.ledger.making import contents, fixed_sources, note, opened, whole_case

texts = st.text(max_size=30)
blocks = st.binary(max_size=60)
nonces = st.binary(min_size=16, max_size=16)
positions = st.integers(1, 2**63 - 1)


def framed(data: bytes) -> bytes:
    return struct.pack(">Q", len(data)) + data


def leaf_again(case_id: str, position: int, topic: str, state: bytes, nonce: bytes) -> bytes:
    content = b"caseledger/leaf/1\x00"
    content += framed(case_id.encode("utf-8"))
    content += struct.pack(">Q", position)
    content += framed(topic.encode("utf-8")) + framed(state) + nonce
    return hashlib.sha256(content).digest()


def link_again(before: bytes, leaf: bytes) -> bytes:
    return hashlib.sha256(b"caseledger/chain/1\x00" + before + leaf).digest()


@given(texts, positions, texts, blocks, nonces)
def test_a_leaf_is_the_formula(
    case_id: str, position: int, topic: str, state: bytes, nonce: bytes
) -> None:
    given_fields = (case_id, position, topic, state, nonce)
    assert chain.leaf(*given_fields) == leaf_again(*given_fields)


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_a_link_is_the_formula(before: bytes, leaf: bytes) -> None:
    assert chain.link(before, leaf) == link_again(before, leaf)


@given(
    *(st.tuples(texts, positions, texts, blocks, nonces) for _ in range(2)),
)
def test_different_events_have_different_leaves(
    left: tuple[str, int, str, bytes, bytes], right: tuple[str, int, str, bytes, bytes]
) -> None:
    assert (chain.leaf(*left) == chain.leaf(*right)) == (left == right)


def test_moving_bytes_from_one_field_to_the_next_changes_the_leaf() -> None:
    nonce = bytes(16)
    leaves = {
        chain.leaf("ab", 1, "cd", b"ef", nonce),
        chain.leaf("a", 1, "bcd", b"ef", nonce),
        chain.leaf("ab", 1, "cde", b"f", nonce),
        chain.leaf("abcd", 1, "", b"ef", nonce),
    }
    assert len(leaves) == 4


def test_frozen_values() -> None:
    """These never change: every ledger that was ever written rests on them."""
    leaf = chain.leaf("case-17", 1, "case.opened/1", b"{}", bytes(range(16)))
    assert bytes(32) == chain.ZERO
    assert leaf == bytes.fromhex("75cdea05b6ee681cb175af0cf0314d0e99e96fcbecadf62e3d20e0caecc5b241")
    assert chain.link(chain.ZERO, leaf) == bytes.fromhex(
        "7dc72bb4b2611b459a0649ec5fcadca7f6067e7fa455de526119081867a81447"
    )


def test_the_chain_of_a_ledger_is_the_formula_from_first_to_last(tmp_path: Path) -> None:
    path = whole_case(tmp_path / "a.case")
    value = bytes(32)
    for n, row in enumerate(contents(path)["event"], 1):
        position, case_id, _, topic, state, nonce, stored = row
        value = link_again(value, leaf_again(case_id, n, topic, state, nonce))
        assert (position, stored) == (n, value)
    with Book.open(path) as book:
        assert book.head == (n, value)
        write(book, tmp_path / "a.zip")
    with Package(tmp_path / "a.zip") as package:
        assert package.head == (n, value)


def test_one_append_of_many_and_many_of_one_give_the_same_chain(tmp_path: Path) -> None:
    heads = []
    for name, together in (("a", True), ("b", False)):
        with Book.create(tmp_path / f"{name}.case", sources=fixed_sources()) as book:
            events = [opened(), *(note(n) for n in range(5))]
            for batch in [events] if together else [[event] for event in events]:
                head = book.append(*batch)
        heads.append(head)
    assert heads[0] == heads[1]


def test_nonces_are_drawn_for_each_event(tmp_path: Path) -> None:
    with Book.create(tmp_path / "a.case") as book:
        book.append(opened(), *(note(1) for _ in range(20)))
    nonces_drawn = {row[5] for row in contents(tmp_path / "a.case")["event"]}
    assert len(nonces_drawn) == 21
    assert {len(nonce) for nonce in nonces_drawn} == {16}
