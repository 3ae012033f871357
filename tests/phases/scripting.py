"""A small case and somebody who answers it from a script: for tests of the run loop and above."""

from __future__ import annotations

import itertools
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import prompts
from ledger import canonical
from ledger.book import Book
from ledger.clock import Sources
from ledger.events import Event
from phases.intake import IntakeRequest
from phases.opening import open_case
from phases.providers import Failure, Provider, Received, Reply, Sending
from phases.run import Options, Run, Stopped
from phases.settings import Settings
from projections.aliases import resolve
from projections.folding import fold
from projections.requests import restored_view
from projections.state import State

Json = dict[str, Any]

REPORT = """# Cart total is too low

Since the last release the total of carts with three items is too low.

`cart_total` in shop/cart.py returns 20 instead of 30. The log says `dropped item`.
"""
CART = '''"""Totals of carts."""

from shop.prices import price_of


def cart_total(items):
    """Return what a cart costs."""
    total = 0
    for item in items[:-1]:
        total += price_of(item)
    return total
'''
PRICES = '''"""Prices."""

TABLE = {"apple": 10, "pear": 10, "plum": 10}


def price_of(item):
    return TABLE[item]
'''
LOG = (
    "2024-05-17 09:00:00 INFO start\n"
    "2024-05-17 09:00:01 ERROR dropped item plum from cart 17\n"
    "2024-05-17 09:00:02 INFO total 20\n"
)


def write_inputs(folder: Path) -> IntakeRequest:
    """Write report, source, log and database into a folder; return what takes them in."""
    source = folder / "source"
    (source / "shop").mkdir(parents=True)
    (source / "shop/__init__.py").write_text('"""A shop."""\n')
    (source / "shop/cart.py").write_text(CART)
    (source / "shop/prices.py").write_text(PRICES)
    (folder / "report.md").write_text(REPORT)
    (folder / "app.log").write_text(LOG)
    connection = sqlite3.connect(folder / "shop.db")
    with connection:
        connection.execute("CREATE TABLE carts (id INTEGER PRIMARY KEY, total INTEGER, note TEXT)")
        rows = [(n, n * 10, note) for n, note in enumerate(["P1", "M1", "P:" + "0" * 32, "E1"], 1)]
        connection.executemany("INSERT INTO carts VALUES (?, ?, ?)", rows)
    connection.close()
    return IntakeRequest(
        report=folder / "report.md",
        source=str(source),
        logs=(folder / "app.log",),
        databases=(folder / "shop.db",),
    )


def ticking(seed: int = 0) -> Sources:
    """Return a clock and randomness that are the same in every process."""
    numbers = itertools.count(seed)

    def now() -> str:
        moment = next(numbers)
        return (
            f"2024-05-17T{moment // 3600 % 24:02}:{moment // 60 % 60:02}:{moment % 60:02}.000000Z"
        )

    return Sources(now=now, random_bytes=lambda size: next(numbers).to_bytes(size, "big"))


def make_case(folder: Path, name: str = "small", *, database: bool = True) -> Path:
    """Take the small case in; return its path. Without a database a run is quicker."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.case"
    request = write_inputs(folder / "inputs")
    request = request if database else replace(request, databases=())
    open_case(path, request, program="tests", sources=ticking())
    return path


def copied(path: Path, target: Path) -> Path:
    """Copy a case at rest with its anchor."""
    for end in ("", ".head"):
        shutil.copyfile(f"{path}{end}", f"{target}{end}")
    return target


# Answers ----------------------------------------------------------------------------------------


def look(name: str, hypothesis: str | None = "H1", **arguments: Any) -> Json:
    return {"name": name, "arguments": arguments, "purpose": "to see", "hypothesis": hypothesis}


LOOKS = (
    (
        look("search_code", query="cart_total"),
        look("query_database", database="S4", sql="SELECT id, total, note FROM carts"),
    ),
    (look("read_lines", path="shop/cart.py", first=1, last=11),),
    (look("search_log", query="dropped", hypothesis="H2"),),
)
"""What the investigation looks at, step by step; then it concludes."""

MORE = (look("read_lines", path="shop/prices.py", first=1, last=5),)
"""What it looks at for each early review that was not content."""


def view_of(document: bytes) -> tuple[str, Json]:
    """Return the phase and the view of a request document, labels resolved."""
    value = canonical.from_bytes(document)
    return prompts.card(value["protocol"]).phase, resolve(restored_view(value))


def good_answer(phase: str, view: Json) -> Json:
    """Return a good answer: a function of the view alone."""
    return _ANSWERS[phase](view)


def _observation(view: Json) -> str:
    return str(view["sources"]["observations"][0]["id"])


def _cited(view: Json) -> list[str]:
    found = [item["id"] for item in view["evidence"] if "refused" not in item]
    return found[:40] or [_observation(view)]


def _entities(view: Json) -> Json:
    entity = {
        "name": "cart_total",
        "kind": "symbol",
        "also_written": ["total"],
        "meaning": "what a cart costs",
        "observations": [_observation(view)],
        "candidates": ["shop/cart.py"],
    }
    return {"entities": [entity], "unresolved": [], "information_needed": []}


def _interpretation(view: Json) -> Json:
    statement = {"statement": "The total is too low.", "observations": [_observation(view)]}
    fact = {
        **statement,
        "certainty": "stated",
        "entities": [view["sources"]["entities"][-1]["id"]],
    }
    return {
        "summary": "Totals of carts are too low.",
        "symptom": statement,
        "expected": statement,
        "facts": [fact],
        "timeline": [],
        "scope": {"affected": ["carts"], "unaffected": []},
        "contradictions": [],
        "open_questions": [],
        "information_needed": [],
    }


def _hypotheses(view: Json) -> Json:
    if view["hypotheses"]:
        return {"hypotheses": [], "information_needed": []}
    base = {
        "mechanism": "It drops one.",
        "predicts": ["a slice"],
        "refuted_by": ["no slice"],
        "first_checks": [],
        "facts": ["F1"],
        "observations": [],
        "entities": ["N1"],
        "evidence": [],
    }
    return {
        "hypotheses": [
            {"statement": "The loop leaves out the last item.", "likelihood": 0.7, **base},
            {"statement": "A price is wrong.", "likelihood": 0.2, **base},
        ],
        "information_needed": [],
    }


def step_answer(view: Json, looks: tuple[tuple[Json, ...], ...] = LOOKS) -> Json:
    """Return an investigation step: the next looks, or the conclusion."""
    taken = view["budget"]["spent"]["actions"]
    review = view["early_review"]
    if review and not review["accepted"]:
        looks = (*looks, *([MORE] * int(review["why"].partition(" ")[0])))
    wanted: tuple[Json, ...] = ()
    for step in looks:
        if taken <= 0:
            wanted = step
            break
        taken -= len(step)
    assessment = {
        "hypothesis": "H1",
        "state": "open" if wanted else "confirmed",
        "notes": f"after {len(view['evidence'])} results",
        "questions": [],
        "evidence": _cited(view)[-3:],
    }
    return {
        "assessments": [assessment],
        "selected_hypothesis": None,
        "actions": list(wanted),
        "conclusion": {"ready": not wanted, "why": "the slice drops an item"},
        "information_needed": [],
    }


def _review(view: Json) -> Json:
    return {
        "verdict": "accept",
        "why": "The code shows it.",
        "missing": [],
        "alternatives": [],
        "evidence": _cited(view),
    }


def _diagnosis(view: Json) -> Json:
    cited = _cited(view)
    location = {
        "path": "shop/cart.py",
        "function": "cart_total",
        "first_line": 9,
        "last_line": 10,
        "role": "faulty",
        "why": "The slice leaves out the last item.",
        "evidence": cited,
    }
    verdict = {
        "hypothesis": "H1",
        "verdict": "confirmed",
        "why": "The code shows it.",
        "evidence_for": cited,
        "evidence_against": [],
    }
    rows = {"database": "S4", "table": "carts", "rows": "id 1", "meaning": "low", "evidence": cited}
    has_database = any(item["kind"] == "database" for item in view["sources"]["artifacts"])
    return {
        "outcome": "cause_found",
        "symptom": "The total is too low.",
        "cause": "The last item is left out.",
        "mechanism": [{"step": "items[:-1] drops one", "evidence": cited}],
        "locations": [location],
        "data": [rows] if has_database else [],
        "hypotheses": [verdict],
        "confidence": 0.9,
        "confidence_reason": "The code shows it.",
        "unknowns": [],
        "checks": [],
        "method": "read by a script; no language model was involved",
        "information_needed": [],
    }


def _change(view: Json) -> Json:
    cited = _cited(view)
    change = {
        "path": "shop/cart.py",
        "function": "cart_total",
        "first_line": 9,
        "last_line": 9,
        "what": "Loop over all items.",
        "why": "The slice drops one.",
        "evidence": cited,
    }
    return {
        "title": "Count every item",
        "summary": "Loop over all items.",
        "changes": [change],
        "tests": [{"where": "tests/test_cart.py", "arrange": "three items", "expect": "30"}],
        "data_repair": [],
        "risks": [],
        "acceptance": ["the total is 30"],
        "out_of_scope": [],
        "information_needed": [],
    }


_ANSWERS: Mapping[str, Callable[[Json], Json]] = {
    "entity_resolution": _entities,
    "case_interpretation": _interpretation,
    "hypotheses": _hypotheses,
    "investigation": step_answer,
    "diagnosis_early": _review,
    "diagnosis": _diagnosis,
    "change_request": _change,
}


# The provider -----------------------------------------------------------------------------------

Scripted = bytes | Exception | Received | Callable[[Json, Json], Any] | None
"""What a script says for one call: raw bytes, a failure, an answer made from (good answer, view),
or None for the good answer."""


class Script(Provider):
    """A real provider: raw answers from a script, the good answer where the script is silent."""

    def __init__(
        self,
        said: Mapping[str, list[Scripted]] | None = None,
        *,
        name: str = "scripted",
        remote: bool = False,
        usage: Json | None = None,
    ) -> None:
        self.name = name
        self.model = f"{name}-1"
        self.remote = remote
        self.usage = usage or {}
        self.documents: list[bytes] = []
        self._said = {phase: list(items) for phase, items in (said or {}).items()}

    def ask(self, document: bytes, sending: Sending) -> Received:
        sending(None)
        self.documents.append(document)
        phase, view = view_of(document)
        items = self._said.get(phase) or self._said.get("*")
        said = items.pop(0) if items else None
        if isinstance(said, BaseException):
            raise said
        if isinstance(said, Received):
            return said
        if isinstance(said, bytes):
            return Received(said)
        good = good_answer(phase, view)
        answer = good if said is None else said(good, view)
        return Received(answer if isinstance(answer, bytes) else canonical.to_bytes(answer))

    def read(self, body: bytes) -> Reply:
        if body.startswith(b"finish:"):
            return Reply(None, finish=body.decode().partition(":")[2], detail="said so")
        try:
            return Reply(body.decode(), usage=self.usage)
        except UnicodeDecodeError as error:
            return Reply(None, finish="malformed", detail=str(error))


def failure(kind: str = "server", **more: Any) -> Failure:
    return Failure(kind, f"a {kind} failure", **{"retryable": True, **more})


def patched(**changes: Any) -> Callable[[Json, Json], Json]:
    """Say the good answer with some members changed."""
    return lambda good, view: {**good, **changes}


# Running ----------------------------------------------------------------------------------------


def settings_for(*providers: str, budget: Json | None = None, **run: Any) -> Settings:
    values: Json = {"providers": providers or ("scripted",), "run": run, "budget": budget or {}}
    return Settings.model_validate(values)


def run(
    path: Path,
    *providers: Provider,
    settings: Settings | None = None,
    options: Options | None = None,
    **more: Any,
) -> Stopped:
    """Run a case with these providers, without waiting."""
    with Book.open_for_writing(path, sources=more.pop("sources", None)) as book:
        return prepared_run(book, *providers, settings=settings, options=options, **more).go()


def prepared_run(
    book: Book,
    *providers: Provider,
    settings: Settings | None = None,
    options: Options | None = None,
    **more: Any,
) -> Run:
    more.setdefault("sleep", lambda seconds: None)
    return Run(
        book,
        settings or settings_for(*(provider.name for provider in providers)),
        "tests",
        options or Options(),
        _providers={provider.name: provider for provider in providers},
        **more,
    )


@contextmanager
def reading(path: Path) -> Iterator[Book]:
    with Book.open(path) as book:
        yield book


def events_of(path: Path) -> list[Event]:
    with Book.open(path) as book:
        return [event for _, event in book.events()]


def topics_of(path: Path, after: int = 0) -> list[str]:
    with Book.open(path) as book:
        return [event.TOPIC.partition("/")[0] for _, event in book.events(after=after)]


def state_of(path: Path) -> State:
    with Book.open(path) as book:
        return fold(book.events())


def only(path: Path, kind: type[Event]) -> list[Any]:
    return [event for event in events_of(path) if isinstance(event, kind)]


def payload_of(path: Path, digest: str) -> Any:
    with Book.open(path) as book:
        return json.loads(book.payload(digest))
