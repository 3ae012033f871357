"""The two small cases, each played once."""

from __future__ import annotations

import pytest

from tests.phases.providers.offline.playing import Played, play_depot, play_library


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return play_library(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="session")
def depot(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return play_depot(tmp_path_factory.mktemp("depot"))
