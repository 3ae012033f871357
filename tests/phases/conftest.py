"""The small case, taken in once and copied for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.phases import scripting

MEMORY = Path("/dev/shm")
"""Waiting for a disk would tell these tests nothing."""


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """Return a folder in memory where there is one."""
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(dir=MEMORY, prefix="caseledger-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def taken_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scripting.make_case(tmp_path_factory.mktemp("taken_in"))


@pytest.fixture
def case(taken_in: Path, scratch: Path) -> Path:
    """Return the path of a fresh copy of the small case."""
    return scripting.copied(taken_in, scratch / "small.case")
