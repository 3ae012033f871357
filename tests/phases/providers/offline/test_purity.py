"""The analyst reads the request document and nothing else, and always answers alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from phases.providers import open_provider
from phases.providers.base import ProviderConfigurationError
from phases.settings import Settings
from tests.phases.providers.offline.playing import Played

CHILD = Path(__file__).with_name("answering.py")
ROOT = Path(__file__).parents[4]


def answers_of(documents: list[dict[str, object]], seed: str) -> bytes:
    """Answer documents in a process of its own, under an audit hook and a hash seed."""
    lines = "\n".join(json.dumps(document) for document in documents)
    done = subprocess.run(
        [sys.executable, str(CHILD)], input=lines.encode(), capture_output=True, check=False,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout


def test_nothing_is_opened_and_every_hash_seed_gives_the_same_bytes(
    library: Played, depot: Played
) -> None:
    documents = [*library.recorder.asked, *depot.recorder.asked]
    expected = [*library.recorder.answered, *depot.recorder.answered]
    first, second, third = (answers_of(documents, seed) for seed in ("0", "1", "4242"))
    assert first == second == third
    assert [json.loads(line) for line in first.split(b"\n")] == expected


def test_a_model_of_the_analyst_is_refused() -> None:
    with pytest.raises(ProviderConfigurationError, match="there is no model; give offline"):
        open_provider("offline:large", Settings())
