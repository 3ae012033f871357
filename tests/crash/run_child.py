"""Runs of a case that die, and runs that go on after them, in forked processes of this one.

    python -P tests/crash/run_child.py before|after|kills CASE PROVIDER COUNT SEED

CASE is taken in and not yet run; PROVIDER is `scripted` or `offline`. `before` and `after` die
right before or right after every COUNT-th append of a whole run; `kills` sends SIGKILL at random
moments until COUNT have hit. What was seen is written to stdout as JSON, one object a line.

Forked, because a new interpreter for each death would take longer than all the runs together.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ledger import recorder as _loaded_now  # noqa: F401 - before the forks, not in each of them
from ledger.book import Book
from ledger.events import OutcomeUnknown, RequestPrepared, RequestSent
from ledger.verify import verify_book
from phases.providers import Provider, Received, Reply, open_provider
from projections.folding import fold
from projections.saw import check_all
from tests.phases.scripting import (
    LOOKS,
    Script,
    copied,
    prepared_run,
    settings_for,
    step_answer,
)

ASKING_SECONDS = 0.004
"""How long an answer takes, so that a good part of the kills hits while somebody is asked."""

Json = dict[str, Any]


class Counted:
    """A provider that leaves a mark in a file whenever it is asked."""

    def __init__(self, provider: Provider, marks: Path) -> None:
        self._provider = provider
        self._marks = marks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    def ask(self, document: bytes, sending: Any) -> Received:
        def sent(wire: bytes | None, cache: str = "") -> None:
            sending(wire, cache)
            with self._marks.open("ab") as file:
                file.write(b".")

        received = self._provider.ask(document, sent)
        time.sleep(ASKING_SECONDS)
        return received

    def read(self, body: bytes) -> Reply:
        return self._provider.read(body)


class Death:
    """Ends this process right before or right after its n-th append; counts them otherwise."""

    def __init__(self, number: int = 0, *, before: bool = False) -> None:
        self._append = Book.append
        self.seen = 0

        def append(book: Book, *events: Any, **more: Any) -> Any:
            self.seen += 1
            if self.seen == number and before:
                os._exit(9)
            head = self._append(book, *events, **more)
            if self.seen == number:
                os._exit(9)
            return head

        Book.append = append  # type: ignore[method-assign]

    def __enter__(self) -> Death:
        return self

    def __exit__(self, *exc: object) -> None:
        Book.append = self._append  # type: ignore[method-assign]


class Trial:
    """One case file, run by processes that die until it is done."""

    def __init__(self, case: Path, name: str, provider: str) -> None:
        self.path = copied(case, case.with_name(name))
        self.marks = self.path.with_suffix(".marks")
        self.marks.write_bytes(b"")
        self._provider = provider

    def run(self) -> str:
        said = {"investigation": [short] * 50}
        settings = settings_for(self._provider)
        script = self._provider == "scripted"
        provider = Script(said) if script else open_provider("offline", settings)
        with Book.open_for_writing(self.path) as book:
            counted: Any = Counted(provider, self.marks)
            work = prepared_run(book, settings=settings)
            work._providers[self._provider] = counted
            return work.go().reason

    def in_child(self, work: Callable[[], object]) -> int:
        child = os.fork()
        if child:
            return child
        try:
            work()
        finally:
            os._exit(0)

    def seen(self, deaths: int) -> Json:
        """Return what the ledger says, once it is done."""
        with Book.open(self.path) as book:
            events = [event for _, event in book.events()]
            state = fold(book.events())
            sent = [event for event in events if isinstance(event, RequestSent)]
            again = Counter(event.request for event in sent)
            return {
                "outcome": state.outcome(),
                "findings": [finding.message for finding in verify_book(book).findings],
                "checks": Counter(check.state for check in check_all(book)),
                "deaths": deaths,
                "calls": self.marks.stat().st_size,
                "requests": sum(isinstance(event, RequestPrepared) for event in events),
                "unknown": sum(isinstance(event, OutcomeUnknown) for event in events),
                "resent": sum(number - 1 for number in again.values()),
                "same_document": all(
                    event.document == state.requests[event.request].document.digest
                    for event in sent
                ),
            }


def short(good: Json, view: Json) -> Json:
    return step_answer(view, LOOKS[1:2])


def before(case: Path, provider: str, step: int, rng: random.Random) -> None:
    faults(case, provider, step, before=True)


def after(case: Path, provider: str, step: int, rng: random.Random) -> None:
    faults(case, provider, step, before=False)


def faults(case: Path, provider: str, step: int, *, before: bool) -> None:
    whole = Trial(case, "whole.case", provider)
    with Death() as counting:
        whole.run()
    tell("undisturbed", whole.seen(0) | {"appends": counting.seen})
    for number in range(1, counting.seen + 1, step):
        trial = Trial(case, f"{number}.case", provider)

        def die(trial: Trial = trial, number: int = number) -> None:
            with Death(number, before=before):
                trial.run()

        _, status = os.waitpid(trial.in_child(die), 0)
        assert os.waitstatus_to_exitcode(status) == 9
        trial.run()
        tell(f"{'before' if before else 'after'} append {number}", trial.seen(1))


def kills(case: Path, provider: str, count: int, rng: random.Random) -> None:
    whole = Trial(case, "whole.case", provider)
    started = time.monotonic()
    whole.run()
    longest = time.monotonic() - started
    tell("undisturbed", whole.seen(0))
    done = number = 0
    while done < count:
        number += 1
        trial = Trial(case, f"{number}.case", provider)
        hits = 0
        while done + hits < count:
            child = trial.in_child(trial.run)
            time.sleep(rng.uniform(0.0, longest * 0.8))
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
                break
            hits += 1
        done += hits
        trial.run()
        tell(f"case {number}, {hits} kills", trial.seen(hits))


def tell(name: str, seen: Json) -> None:
    sys.stdout.write(json.dumps({"name": name, **seen}, sort_keys=True) + "\n")


if __name__ == "__main__":
    mode, path, who, amount, seed = sys.argv[1:]
    play = {"before": before, "after": after, "kills": kills}[mode]
    play(Path(path), who, int(amount), random.Random(int(seed)))
