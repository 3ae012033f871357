"""Sites to test at: the local server, and with `-m live` the real service."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.gemini.server import GeminiServer
from tests.gemini.sites import Site, live_site, local_site


@pytest.fixture
def here() -> Iterator[Site]:
    """A site on a local server."""
    with local_site() as opened:
        yield opened


@pytest.fixture
def live() -> Iterator[Site]:
    """The real service."""
    if not os.environ.get("GEMINI_API_KEY"):
        pytest.skip("GEMINI_API_KEY is not set")
    with live_site() as opened:
        yield opened


@pytest.fixture(params=["here", pytest.param("live", marks=pytest.mark.live)])
def site(request: pytest.FixtureRequest) -> Site:
    """Both, one after the other."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def server(here: Site) -> GeminiServer:
    """The local server of `here`."""
    return here.server
