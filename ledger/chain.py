"""The hash chain that binds events in order. Exact form: docs/format.md, "Chain"."""

from __future__ import annotations

import hashlib

ZERO = bytes(32)
"""chain(0)."""

NONCE_SIZE = 16


def leaf(case_id: str, position: int, topic: str, state: bytes, nonce: bytes) -> bytes:
    """Return what one event contributes to the chain, 32 bytes."""
    return hashlib.sha256(
        b"caseledger/leaf/1\0"
        + _sized(case_id.encode())
        + position.to_bytes(8, "big")
        + _sized(topic.encode())
        + _sized(state)
        + nonce
    ).digest()


def link(previous: bytes, leaf_value: bytes) -> bytes:
    """Return chain(n) from chain(n-1) and leaf(n), 32 bytes."""
    return hashlib.sha256(b"caseledger/chain/1\0" + previous + leaf_value).digest()


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data
