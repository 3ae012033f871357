"""Cases that lived through something, each run once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.book import Book
from ledger.events import BudgetExtended, OutcomeLabelled
from phases.intake import IntakeRequest
from phases.opening import amend_case
from phases.run import Options
from phases.settings import Settings
from tests.phases import scripting
from tests.phases.scripting import Script, copied, failure, patched, run, settings_for


def _plain(path: Path) -> None:
    run(path, Script())


def _focused(path: Path) -> None:
    protocols = {"investigation": "investigation_project_v9"}
    run(path, Script(), settings=Settings(providers=("scripted",), protocols=protocols))


def _troubled(path: Path) -> None:
    said: Any = {"hypotheses": [b"{}", failure(), failure()], "diagnosis_early": [_rejection]}
    run(path, Script(said, usage={"prompt": 7}))
    with Book.open_for_writing(path) as book:
        book.append(OutcomeLabelled(at=book.sources.now(), verdict="right"))


def _amended(path: Path) -> None:
    need = [{"what": "a log", "why": "there is none"}]
    run(path, Script({"investigation": [None, patched(actions=[], information_needed=need)]}))
    with Book.open_for_writing(path) as book:
        request = IntakeRequest(report=None, source=None, observations=("It rained.",))
        amend_case(book, request)
    run(path, Script())


def _extended(path: Path) -> None:
    settings = settings_for("one", "other", budget={"requests": 1})
    one = Script({"*": [failure(retryable=False)] * 3}, name="one")
    run(path, one, Script(name="other"), settings=settings)
    with Book.open_for_writing(path) as book:
        book.append(BudgetExtended(at=book.sources.now(), requests=9))
    run(path, Script({"hypotheses": [b"finish:safety"]}), options=Options(max_requests=3))
    run(path, Script())


def _rejection(good: Any, view: Any) -> Any:
    missing = [{"what": "more", "why": "it is", "suggestion": ""}]
    return {**good, "verdict": "reject", "why": "1 time", "missing": missing}


LIVES = {
    "plain": _plain,
    "focused": _focused,
    "troubled": _troubled,
    "amended": _amended,
    "extended": _extended,
}


@pytest.fixture(scope="session")
def lives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the paths of the cases by name, `fresh` among them: taken in only."""
    folder = tmp_path_factory.mktemp("lives")
    fresh = scripting.make_case(folder / "fresh")
    paths = {"fresh": fresh}
    for name, live in LIVES.items():
        paths[name] = copied(fresh, folder / f"{name}.case")
        live(paths[name])
    return paths


@pytest.fixture(scope="session", params=LIVES)
def lived(request: pytest.FixtureRequest, lives: dict[str, Path]) -> Path:
    return lives[request.param]


@pytest.fixture
def book(lives: dict[str, Path]) -> Iterator[Book]:
    with Book.open(lives["plain"]) as opened:
        yield opened
