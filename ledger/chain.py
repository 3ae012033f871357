"""The hash chain that binds events in order. Exact form: docs/format.md, "Chain"."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256

ZERO = bytes(32)
"""chain(0)."""

NONCE_SIZE = 16

_LEAF = b"caseledger/leaf/1\0"
_CHAIN = b"caseledger/chain/1\0"


def leaf(case_id: str, position: int, topic: str, state: bytes, nonce: bytes) -> bytes:
    """Return what one event contributes to the chain, 32 bytes."""
    parts = (
        _LEAF,
        _sized_text(case_id),
        position.to_bytes(8, "big"),
        _sized_text(topic),
        len(state).to_bytes(8, "big"),
        state,
        nonce,
    )
    return sha256(b"".join(parts)).digest()


def link(previous: bytes, leaf_value: bytes) -> bytes:
    """Return chain(n) from chain(n-1) and leaf(n), 32 bytes."""
    return sha256(_CHAIN + previous + leaf_value).digest()


@lru_cache(maxsize=256)
def _sized_text(text: str) -> bytes:
    """Return lp(text); a ledger has one case ID and some fifty topics."""
    data = text.encode()
    return len(data).to_bytes(8, "big") + data
