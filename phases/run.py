"""The run loop: look, save, ask, record. It decides nothing (steps.py) and renders nothing.

Each step is one transaction on the ledger; a kill anywhere re-enters at the same step.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from ledger import canonical
from ledger.book import Book
from ledger.errors import LedgerDamaged
from ledger.events import (
    ConfigurationPinned,
    Event,
    InformationNeeded,
    InvestigationEnded,
    OutcomeUnknown,
    RequestAbandoned,
    ResponseAccepted,
    ResponseRejected,
    RunStarted,
    RunStopped,
    UsageMeasured,
)
from phases import steps
from phases.acting import act
from phases.asking import BookLedger, Choice, ProvidersUsedUp, ask, choose, specification
from phases.catalogs import catalogs
from phases.investigation.snapshot import Snapshot
from phases.phase import Accepted, find
from phases.pinned import material, pinned_settings, snapshot
from phases.preparing import begin, can_be_rebuilt, correct, reference
from phases.providers import Provider, Refused, Reply, open_provider
from phases.providers.prices import measured, usd
from phases.reading import MAX_REPEATED, Rejection, read_answer
from phases.settings import Settings
from projections import caching
from projections.folding import fold
from projections.requests import restored_view
from projections.state import Attempt, Request, State
from projections.wording import counted


@dataclass(frozen=True)
class Options:
    """What one run was asked for.

    Attributes:
        until: stop when this phase is done.
        max_requests: stop after so many attempts.
        resend: requests with an unknown outcome may go out again, whatever the policy.
        renew: a request that was prepared and not answered is given up and made anew, under the
            settings of this run.
    """

    until: str = ""
    max_requests: int | None = None
    resend: bool = False
    renew: bool = False

    def as_json(self) -> dict[str, Any]:
        values = vars(self)
        return {key: value for key, value in values.items() if value}


class Stopped(NamedTuple):
    """Why a run ended: a reason code as in `run.stopped`, and one line."""

    reason: str
    detail: str = ""


class OutOfTime(Exception):
    """The next attempt would have to wait longer than the run may last."""


Progress = Callable[[State, steps.Step], None]
"""Called before each step with the state and the step."""


def _silent(state: State, step: steps.Step) -> None:
    return


@dataclass
class Run:
    """One process working on one case.

    Attributes:
        book: the case, open for writing.
        settings: the effective configuration, pinned if it differs from the latest snapshot.
        program: name and version for the record.
        options: what was asked for.
        progress: told of each step.
        libraries: versions for the record.
        sleep: waits between attempts; replaced in tests.
    """

    book: Book
    settings: Settings
    program: str
    options: Options = Options()
    progress: Progress = _silent
    libraries: dict[str, str] = field(default_factory=dict)
    sleep: Callable[[float], None] = time.sleep
    state: State = field(default_factory=State)
    _asked: int = 0
    _started: float = field(default_factory=time.monotonic)
    _providers: dict[str, Provider] = field(default_factory=dict)  # given, by specification
    _opened: dict[tuple[Any, ...], Provider] = field(default_factory=dict)
    _pinned: dict[str, Settings] = field(default_factory=dict)

    def go(self) -> Stopped:
        """Work until there is nothing to do, a limit is reached, or a person is needed.

        Raises:
            LedgerError: the ledger cannot be read or written; nothing is lost.
            ProviderConfigurationError: a provider of the list cannot be set up.
        """
        self._look()
        self._begin_run()
        try:
            stopped = self._work()
        except KeyboardInterrupt:
            self._record(self._stopped("interrupted"))
            raise
        finally:
            self._release()
            if "_snapshot" in self.__dict__:
                self._snapshot.close()
        self._record(self._stopped(*stopped))
        return stopped

    def _work(self) -> Stopped:
        if stopped := self._recovery():
            return stopped
        while True:
            step = steps.next_step(self.state, self._bound_settings(), resend=self.options.resend)
            if isinstance(step, steps.Stop):
                return Stopped(step.reason, step.detail)
            if stopped := self._limit(step):
                return stopped
            self.progress(self.state, step)
            ended = self.state.ended
            try:
                self._take(step)
            except (ProvidersUsedUp, Refused) as error:
                return Stopped("provider", str(error))
            except OutOfTime:
                return self._out_of_time()
            self._look()
            if self.state.ended and not ended:
                self._release()

    def _take(self, step: steps.Step) -> None:
        now = self.book.sources.now()
        match step:
            case steps.Begin(phase):
                prepared = begin(
                    self.state, self.book, phase, self._settings_now(), self._material, now
                )
                self.book.append(*prepared.events, payloads=prepared.payloads)
            case steps.Ask(request):
                self._ask(request)
            case steps.Read(request):
                self._read(request, now)
            case steps.Correct(request):
                prepared = correct(self.state, self.book, request, now)
                self.book.append(*prepared.events, payloads=prepared.payloads)
            case steps.Abandon(request, reason):
                self._record(RequestAbandoned(at=now, request=request.id, reason=reason))
            case steps.Act(action):
                chosen = self.state.actions[action]
                prepared = act(
                    self.state, chosen, self._snapshot, self._settings_now(), self._withheld(), now
                )
                self.book.append(*prepared.events, payloads=prepared.payloads)
            case steps.End(reason):
                self._record(InvestigationEnded(at=now, reason=reason))

    # Asking and reading ----------------------------------------------------------------------

    def _ask(self, request: Request) -> None:
        settings = self._bound_settings()
        choice = choose(request, settings, self.state.run)
        self._wait(choice)
        self._asked += 1
        ask(self.book, request, self._provider(choice.provider, settings), choice)

    def _wait(self, choice: Choice) -> None:
        if choice.wait_seconds >= self._seconds_left():
            raise OutOfTime
        if choice.wait_seconds:
            self.sleep(choice.wait_seconds)

    def _read(self, request: Request, now: str) -> None:
        attempt = request.last
        assert attempt is not None
        assert attempt.body is not None
        settings = self._bound_settings()
        provider = self._provider(specification(request, attempt, settings), settings)
        reply = provider.read(self.book.payload(attempt.body.digest))
        if not attempt.complete:
            reply = replace(reply, finish="cut_off", detail="the connection ended early")
        context = canonical.from_bytes(
            self.book.payload(self.state.contexts[request.context].content.digest)
        )
        answer = read_answer(reply, request.protocol, context)
        usage = self._usage(request, attempt, reply, provider, now)
        if isinstance(answer, Rejection):
            self._reject(request, attempt.number, answer, usage, now)
        else:
            self._accept(request, attempt.number, answer, usage, now)

    def _accept(
        self, request: Request, attempt: int, answer: dict[str, Any], usage: list[Event], now: str
    ) -> None:
        data = canonical.to_bytes(answer)
        accepted = ResponseAccepted(
            at=now, request=request.id, attempt=attempt, answer=reference(data)
        )
        view = restored_view(canonical.from_bytes(self.book.payload(request.document.digest)))
        facts = find(request.phase).facts(Accepted(self.state, request.id, answer, view, now))
        if needed := answer.get("information_needed"):
            facts.append(
                InformationNeeded(
                    at=now, request=request.id, phase=request.phase, items=tuple(needed)
                )
            )
        self.book.append(*usage, accepted, *facts, payloads=[data])

    def _reject(
        self, request: Request, attempt: int, rejection: Rejection, usage: list[Event], now: str
    ) -> None:
        data = canonical.to_bytes(rejection.answer) if rejection.answer is not None else None
        if data is not None and len(data) > MAX_REPEATED:
            data = None
        rejected = ResponseRejected(
            at=now,
            request=request.id,
            attempt=attempt,
            kind=rejection.kind,
            problems=rejection.problems,
            correctable=rejection.correctable,
            answer=reference(data) if data is not None else None,
        )
        self.book.append(*usage, rejected, payloads=[data] if data is not None else [])

    def _usage(
        self, request: Request, attempt: Attempt, reply: Reply, provider: Provider, now: str
    ) -> list[Event]:
        if not reply.usage:
            return []
        fields = measured(reply.usage, provider.prices, attempt.at)
        return [UsageMeasured(at=now, request=request.id, attempt=attempt.number, **fields)]

    # Beginning, limits, bindings -------------------------------------------------------------

    def _begin_run(self) -> None:
        now = self.book.sources.now()
        data = canonical.to_bytes(snapshot(self.settings))
        pinned = reference(data)
        events: list[Event] = []
        payloads: list[bytes] = []
        if self.state.configuration != pinned:
            events.append(ConfigurationPinned(at=now, configuration=pinned, reason="run"))
            payloads.append(data)
        started = RunStarted(
            at=now,
            run=self.state.run + 1,
            program=self.program,
            libraries=self.libraries,
            options=self.options.as_json(),
        )
        left = caching.abandoned(self.book.events(), now)
        left += [*self._unknown_outcomes(now), *self._renewed(now)]
        self.book.append(*events, started, *left, payloads=payloads)
        self._look()

    def _unknown_outcomes(self, now: str) -> list[Event]:
        """A sent attempt without an answer belongs to a process that died."""
        request = self.state.open_request
        if request is None or request.last is None or request.last.status != "sent":
            return []
        policy = self._bound_settings().run.unknown_outcome
        number = request.last.number
        return [OutcomeUnknown(at=now, request=request.id, attempt=number, policy=policy)]

    def _renewed(self, now: str) -> list[Event]:
        """An answer that is there is read; a request that waits for one is given up."""
        request = self.state.open_request
        if not self.options.renew or request is None or _answered(request):
            return []
        return [RequestAbandoned(at=now, request=request.id, reason="renewed")]

    def _recovery(self) -> Stopped | None:
        """An earlier run's request goes out only if its bytes can be made again."""
        request = self.state.open_request
        waiting = request and request.status == "prepared" and not _answered(request)
        if request and waiting and not can_be_rebuilt(self.state, self.book, request):
            return Stopped("needs_attention", "request_differs")
        return None

    def _limit(self, step: steps.Step) -> Stopped | None:
        until = self.options.until
        if until and until in self.state.done and not isinstance(step, steps.Act):
            return Stopped("until", f"{until} is done")
        most = self.options.max_requests
        paid = isinstance(step, steps.Begin | steps.Correct | steps.Ask)
        if most is not None and self._asked >= most and paid:
            return Stopped("max_requests", f"{counted(most, 'attempt')} sent, retries included")
        if self._seconds_left() <= 0:
            return self._out_of_time()
        return self._too_dear() if paid else None

    def _too_dear(self) -> Stopped | None:
        limit = self.settings.run.max_cost_usd
        if limit and self.state.cost_nano_usd >= usd(limit):
            return Stopped("max_cost", f"the case has cost {limit} USD or more")
        return None

    def _seconds_left(self) -> float:
        most = self.settings.run.max_seconds
        return most - (time.monotonic() - self._started) if most else float("inf")

    def _out_of_time(self) -> Stopped:
        return Stopped("max_seconds", f"{self.settings.run.max_seconds} seconds were used")

    def _stopped(self, reason: str, detail: str = "") -> RunStopped:
        return RunStopped(
            at=self.book.sources.now(), run=self.state.run, reason=reason, detail=detail
        )

    def _record(self, *events: Event) -> None:
        self.book.append(*events)

    def _look(self) -> None:
        self.state = fold(self.book.events(after=self.state.position), self.state)

    def _settings_now(self) -> Settings:
        assert self.state.configuration is not None
        return self._settings_of(self.state.configuration.digest)

    def _bound_settings(self) -> Settings:
        """Return the settings that the open request is bound to, else those pinned latest."""
        request = self.state.open_request
        if request is None:
            return self.settings
        return self._settings_of(self.state.contexts[request.context].configuration)

    def _settings_of(self, digest: str) -> Settings:
        if digest not in self._pinned:
            self._pinned[digest] = pinned_settings(self.book, digest)
        return self._pinned[digest]

    def _provider(self, specification: str, settings: Settings) -> Provider:
        """Return a provider as these settings have it; a pinned request keeps its own."""
        if given := self._providers.get(specification):
            return given
        settings = settings.with_keys_of(self.settings)
        key = (specification, settings.gemini, settings.openai_compatible)
        if key not in self._opened:
            self._opened[key] = open_provider(specification, settings)
        return self._opened[key]

    def _release(self) -> None:
        """Give up what providers hold elsewhere: its use is over, and storage costs money."""
        for provider in (*self._providers.values(), *self._opened.values()):
            provider.release(BookLedger(self.book))
        with suppress(LedgerDamaged):  # a record of other making has nothing to settle
            settled = caching.settlements(self.book.events(), self.book.sources.now())
            if settled:
                self._record(*settled)

    @cached_property
    def _snapshot(self) -> Snapshot:
        return Snapshot.of(self.book)

    def _material(self) -> Any:
        assert self.state.configuration is not None
        lists = catalogs(self.state, self.book, self._snapshot)
        return material(self.book, self.state.configuration.digest, lists, self._withheld())

    def _withheld(self) -> frozenset[str]:
        """Return the kinds of artefact that stay here, if anybody asked is elsewhere."""
        settings = self._settings_now()
        remote = any(self._provider(name, settings).remote for name in settings.providers)
        return frozenset(settings.no_egress) if remote else frozenset()


def _answered(request: Request) -> bool:
    return request.last is not None and request.last.status == "received"
