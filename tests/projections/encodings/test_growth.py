from __future__ import annotations

import gc
import math
import time
from typing import Any

import pytest

from projections.encodings.consolidated_v1 import encode, restore
from tests.benchmarks.adversarial import FAMILIES

SIZES = 4_000, 32_000


def seconds(view: Any) -> tuple[float, float]:
    """Return the least CPU seconds of three encodings, and of three decodings."""
    encoding, decoding = [], []
    for _ in range(3):
        gc.collect()
        began = time.process_time()
        content = encode(view).content
        middle = time.process_time()
        restore(content)
        encoding.append(middle - began)
        decoding.append(time.process_time() - middle)
    return min(encoding), min(decoding)


def exponent(family: str) -> float:
    """Return the greater growth exponent of encoding and decoding."""
    small, large = (seconds(FAMILIES[family](size)) for size in SIZES)
    return max(
        math.log(after / before) / math.log(SIZES[1] / SIZES[0])
        for before, after in zip(small, large, strict=True)
        if after > 0.02  # below, the clock is what is measured
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_a_hostile_view_takes_no_second(family: str) -> None:
    began = time.process_time()
    encode(FAMILIES[family](4_000))
    assert time.process_time() - began < 1


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_time_grows_with_the_size_and_hardly_faster(family: str) -> None:
    # other work on the machine only adds: the least of a few attempts is the nearest
    assert any(exponent(family) <= 1.2 for _ in range(4))
