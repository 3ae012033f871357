"""The examples of docs/encodings/consolidated_v1.md hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ledger.canonical import from_bytes, same
from projections.encodings.consolidated_v1 import restore
from tests.projections.encodings import oracle

PAGE = Path(__file__).parents[3] / "docs/encodings/consolidated_v1.md"
EXAMPLES = re.findall(r"```json decode\n(.*?)\n```\n```json\n(.*?)\n```", PAGE.read_text())


def test_there_are_examples_of_every_form() -> None:
    text = "".join(content for content, _ in EXAMPLES)
    for form in ("$ref", "$record", "$table", "$lines", "$lit", "literal", "shapes", "shared"):
        assert f'"{form}"' in text


@pytest.mark.parametrize(("content", "view"), EXAMPLES)
def test_an_example_decodes_as_shown(content: str, view: str) -> None:
    wanted, given = from_bytes(view.encode()), from_bytes(content.encode())
    assert same(restore(given), wanted)
    assert same(oracle.decode(given), wanted)
