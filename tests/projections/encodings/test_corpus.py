"""What 4-requests.md promises on the committed corpus."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from ledger.canonical import from_bytes, same, to_bytes
from projections.encodings.consolidated_v1 import encode, restore
from projections.tokens import estimated_tokens
from tests.benchmarks.corpus.build import load
from tools.vocabulary import NoVocabulary, counter

PAGE = Path(__file__).parents[3] / "docs/encodings/consolidated_v1.md"
GOALS = {"raw": 55, "compact": 30, "tight": 22}


@cache
def texts() -> dict[tuple[str, str, str], tuple[str, str]]:
    """Return plain and encoded text of each document of the corpus."""
    return {
        (d.case, d.phase, d.density): (
            to_bytes(d.view).decode(),
            to_bytes(encode(d.view).content).decode(),
        )
        for d in load()
    }


def explanation() -> str:
    """Return the text that system prompts give of the encoding."""
    (text,) = re.findall(r"<!-- EXPLANATION -->\n```text\n(.*?)\n```", PAGE.read_text(), re.S)
    return text


def test_every_document_comes_back_exactly() -> None:
    for document in load():
        content = from_bytes(to_bytes(encode(document.view).content))
        assert same(restore(content), document.view), document.name


def test_the_explanation_is_short() -> None:
    assert 1_000 <= len(explanation()) <= 1_300


@pytest.mark.parametrize("density", GOALS)
def test_the_reduction_net_of_the_explanation_reaches_its_goal(density: str) -> None:
    cost = estimated_tokens(explanation())
    before: dict[str, int] = defaultdict(int)
    after: dict[str, int] = defaultdict(int)
    for (_, phase, of), (plain, encoded) in texts().items():
        if of == density:
            for key in (phase, "all"):
                before[key] += estimated_tokens(plain)
                after[key] += estimated_tokens(encoded) + cost
    reduction = {key: 100 * (1 - after[key] / before[key]) for key in before}
    assert reduction["all"] >= GOALS[density]
    assert min(reduction.values()) >= 12


def test_no_estimate_is_more_than_five_percent_off() -> None:
    try:
        real = counter()
    except NoVocabulary as error:
        pytest.skip(str(error))
    for name, pair in texts().items():
        for text in pair:
            assert abs(estimated_tokens(text) / real(text) - 1) <= 0.05, name
