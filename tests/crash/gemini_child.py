"""Runs of a cached Gemini investigation that die, and runs that go on after them, in forks.

    python -P tests/crash/gemini_child.py boundaries|before|after|kills CASE COUNT SEED

CASE is taken in and not yet run. `boundaries` dies around every step of the first cached request
and of the cache's end; `before` and `after` die right before or right after every COUNT-th append
of the investigation and all that follows; `kills` sends SIGKILL at random moments until COUNT have
hit. What was seen is written to stdout as JSON, one object a line.

The local server is a process of its own, so that those that die have no threads.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ledger.book import Book
from ledger.events import (
    CacheCreated,
    CacheCreateFailed,
    CacheCreateRequested,
    CacheCreateUnknown,
    CacheDeleted,
    CacheLost,
    CacheSettled,
    Event,
    ResponseReceived,
    RunStarted,
)
from phases.run import Options, Run
from tests.crash.run_child import Death, Trial, tell
from tests.gemini.server import KEYS
from tests.phases.providers.gemini.running import Scripted, serving, settings_for
from tests.phases.scripting import LOOKS, copied, step_answer

Json = dict[str, Any]

STEPS = (
    *("cache.decided", "cache.create_requested", "cache.created", "request.sent"),
    *("response.received", "cache.deleted", "cache.settled"),
)
"""The steps of a cached request, and the end of its cache; each is an append of its own."""


class Short(Scripted):
    """The script with one look: an investigation of two requests."""

    def say(self, phase: str, view: Json) -> Json:
        if phase == "investigation":
            return step_answer(view, LOOKS[1:2])
        return super().say(phase, view)


class Remote:
    """The local server in a process of its own."""

    def __init__(self, line: Connection) -> None:
        self._line = line
        self.url: str = line.recv()

    def forget(self) -> None:
        """Let it have seen nothing."""
        self._line.send("forget")
        self._line.recv()

    def seen(self) -> Json:
        """Return which documents it answered, and which caches it was asked for."""
        self._line.send("seen")
        found: Json = self._line.recv()
        return found


@contextmanager
def remote() -> Iterator[Remote]:
    ours, theirs = Pipe()
    child = os.fork()
    if not child:
        try:
            serve(theirs)
        finally:
            os._exit(0)
    try:
        yield Remote(ours)
    finally:
        ours.send("stop")
        os.waitpid(child, 0)


def serve(line: Connection) -> None:
    analyst = Short()
    with serving(analyst) as server:
        line.send(server.url)
        while (wanted := line.recv()) != "stop":
            if wanted == "forget":
                analyst.digests.clear()
                server.log.clear()
                server._service.caches.clear()
            line.send(
                {
                    "answered": list(analyst.digests),
                    "names": [cache.display_name for cache in server.caches],
                    "leaked": len(server.leaked()),
                }
            )


class Noted(Death):
    """Notes what each append holds; ends this process around one of them if told to."""

    def __init__(self, number: int = 0, *, before: bool = False) -> None:
        super().__init__(number, before=before)
        self.topics: list[set[str]] = []
        dying = Book.append

        def append(book: Book, *events: Any, **more: Any) -> Any:
            self.topics.append({event.TOPIC.partition("/")[0] for event in events})
            return dying(book, *events, **more)

        Book.append = append  # type: ignore[method-assign]


class GeminiTrial(Trial):
    """One case on the Gemini path, run by processes that die until it is done."""

    def __init__(self, case: Path, name: str, server: Remote) -> None:
        super().__init__(case, name, "gemini")
        self._server = server
        server.forget()

    def run(self, until: str = "") -> str:
        settings: Any = settings_for(self._server)  # type: ignore[arg-type]
        with Book.open_for_writing(self.path) as book:
            options = Options(until=until)
            work = Run(book, settings, "tests", options, sleep=lambda seconds: None)
            return work.go().reason

    def seen(self, deaths: int) -> Json:
        """Return what ledger and server say, once it is done."""
        server = self._server.seen()
        with Book.open(self.path) as book:
            events = [event for _, event in book.events()]
        received = Counter(e.request for e in events if isinstance(e, ResponseReceived))
        return super().seen(deaths) | {
            "calls": len(server["answered"]),
            "answers": sorted(set(received.values())),
            "created_twice": created_twice(events),
            "unrecorded": sorted(set(server["names"]) - names(events, CacheCreateRequested)),
            "unexplained": sorted(names(events, CacheCreateRequested) - explained(events)),
            "unsettled": len(names(events, CacheCreated)) - count(events, CacheSettled),
            "restarts": sum(isinstance(e, CacheLost) and e.reason == "restart" for e in events),
            "left": sum(
                isinstance(e, CacheDeleted) and e.outcome == "left_to_expire" for e in events
            ),
            "leaked": server["leaked"],
        }


def created_twice(events: list[Event]) -> list[str]:
    """Return the keys that one process created a cache for although it had one."""
    alive: set[str] = set()
    twice: list[str] = []
    for event in events:
        match event:
            case RunStarted():
                alive.clear()
            case CacheCreateRequested(key=key):
                twice += [key] if key in alive else []
                alive.add(key)
            case CacheCreateFailed(key=key) | CacheLost(key=key) | CacheDeleted(key=key):
                alive.discard(key)
    return twice


def names(events: list[Event], *kinds: type[Any]) -> set[str]:
    return {event.display_name for event in events if isinstance(event, kinds)}


def explained(events: list[Event]) -> set[str]:
    """Return the creations of which the ledger says how they ended."""
    return names(events, CacheCreated, CacheCreateFailed, CacheCreateUnknown)


def count(events: list[Event], kind: type[Event]) -> int:
    return sum(isinstance(event, kind) for event in events)


# Dying ------------------------------------------------------------------------------------------


def boundaries(case: Path, server: Remote, step: int, rng: random.Random) -> None:
    topics = undisturbed(case, server)
    for topic in STEPS:
        number = next(n for n, held in enumerate(topics, start=1) if topic in held)
        for before in (True, False):
            dying(case, server, number, before=before, name=topic)


def before(case: Path, server: Remote, step: int, rng: random.Random) -> None:
    for number in range(1, len(undisturbed(case, server)) + 1, step):
        dying(case, server, number, before=True)


def after(case: Path, server: Remote, step: int, rng: random.Random) -> None:
    for number in range(1, len(undisturbed(case, server)) + 1, step):
        dying(case, server, number, before=False)


def undisturbed(case: Path, server: Remote) -> list[set[str]]:
    """Run it whole; return what each append held."""
    whole = GeminiTrial(case, "whole.case", server)
    with Noted() as noted:
        whole.run()
    tell("undisturbed", whole.seen(0) | {"appends": noted.seen})
    return noted.topics


def dying(case: Path, server: Remote, number: int, *, before: bool, name: str = "") -> None:
    moment = "before" if before else "after"
    trial = GeminiTrial(case, f"{moment} {number}.case", server)

    def die() -> None:
        with Death(number, before=before):
            trial.run()

    _, status = os.waitpid(trial.in_child(die), 0)
    assert os.waitstatus_to_exitcode(status) == 9
    trial.run()
    tell(f"{moment} append {number} {name}".strip(), trial.seen(1))


def kills(case: Path, server: Remote, wanted: int, rng: random.Random) -> None:
    started = time.monotonic()
    undisturbed(case, server)
    longest = time.monotonic() - started
    done = number = 0
    while done < wanted:
        number += 1
        trial = GeminiTrial(case, f"{number}.case", server)
        hits = 0
        while done + hits < wanted:
            child = trial.in_child(trial.run)
            time.sleep(rng.uniform(0.0, longest))
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
                break
            hits += 1
        done += hits
        trial.run()
        tell(f"case {number}, {hits} kills", trial.seen(hits))


def main(mode: str, case: Path, amount: int, seed: int) -> None:
    os.environ["GEMINI_API_KEY"] = KEYS[0]
    os.environ["XDG_STATE_HOME"] = str(case.parent / "state")
    play = {"boundaries": boundaries, "before": before, "after": after, "kills": kills}[mode]
    with remote() as server:
        from google import genai as _loaded_now  # noqa: F401 - before the forks

        started = copied(case, case.with_name("started.case"))
        GeminiTrial(started, "until.case", server).run("hypotheses")
        play(started.with_name("until.case"), server, amount, random.Random(seed))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
