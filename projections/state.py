"""Where a case stands: a fold over its events. The only thing decisions are based on.

No clock, no files, no randomness: the same events give the same state. `outcome` is the part that a
crash and a resumed run must not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ledger import events as e
from ledger.errors import LedgerDamaged
from ledger.reader import Entry

MALFORMED = (KeyError, TypeError, AttributeError, IndexError, ValueError)
"""What a fold or a rendering meets in a record that chains well and is not of our making."""


@dataclass(frozen=True)
class Attempt:
    """One sending of a request. `status`: sent, received, failed or unknown."""

    number: int
    provider: str
    run: int
    at: str = ""
    status: str = "sent"
    kind: str = ""
    message: str = ""
    retryable: bool = True
    retry_after_ms: int | None = None
    body: e.Ref | None = None
    complete: bool = True
    measured: bool = False
    taken_over: str = ""  # how the configuration spells the provider, if a failover led to it


@dataclass(frozen=True)
class Request:
    """A request and what became of it. `status`: prepared, accepted, rejected or abandoned."""

    id: str
    context: str
    phase: str
    protocol: str
    document: e.Ref
    corrects: str = ""
    attempts: tuple[Attempt, ...] = ()
    status: str = "prepared"
    problems: tuple[e.Problem, ...] = ()
    correctable: bool = False
    rejection: str = ""
    answer: e.Ref | None = None
    failed_over_to: str = ""  # until the next sending

    @property
    def last(self) -> Attempt | None:
        """The latest attempt."""
        return self.attempts[-1] if self.attempts else None


@dataclass(frozen=True)
class Context:
    """An archived canonical context."""

    id: str
    phase: str
    revision: int
    protocol: str
    configuration: str
    content: e.Ref
    hypothesis: str = ""


@dataclass(frozen=True)
class Hypothesis:
    """A hypothesis as proposed and as assessed since. `value` is the accepted item."""

    id: str
    value: Mapping[str, Any]
    state: str = "open"
    notes: str = ""
    questions: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Action:
    """An action asked for. `result` is empty until it is done: an evidence ID, or `refused`."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    expanded: Mapping[str, Any]
    request: str
    hypothesis: str
    revision: int
    by: str
    result: str = ""
    problems: tuple[e.Problem, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """A stored result."""

    id: str
    action: str
    kind: str
    content: e.Ref
    characters: int
    complete: bool
    found: bool
    hypothesis: str


@dataclass(frozen=True)
class Spent:
    """What accepted steps were charged, or what a person added."""

    requests: int = 0
    actions: int = 0
    evidence_characters: int = 0

    def plus(self, event: e.BudgetCharged | e.BudgetExtended) -> Spent:
        return Spent(
            self.requests + event.requests,
            self.actions + event.actions,
            self.evidence_characters + event.evidence_characters,
        )


@dataclass(frozen=True)
class State:
    """Where a case stands after its latest event."""

    position: int = 0
    withheld: int = 0  # events left out before it, in a copy made for sharing
    case_id: str = ""
    trial_id: str = ""
    title: str = ""
    opened_at: str = ""
    revision: int = 1
    package_id: str = ""
    generation: int = 0
    intake_complete: bool = False
    artifacts: tuple[e.ArtifactAdded, ...] = ()
    observations: tuple[e.Observation, ...] = ()
    configuration: e.Ref | None = None
    run: int = 0
    stopped: str = ""
    contexts: Mapping[str, Context] = field(default_factory=dict)
    requests: Mapping[str, Request] = field(default_factory=dict)
    done: frozenset[str] = frozenset()  # phases accepted for the current revision
    entities: tuple[Mapping[str, Any], ...] = ()
    unresolved: tuple[Mapping[str, Any], ...] = ()
    facts: tuple[Mapping[str, Any], ...] = ()
    interpretation: Mapping[str, Any] | None = None
    hypotheses: Mapping[str, Hypothesis] = field(default_factory=dict)
    selected: str = ""
    actions: Mapping[str, Action] = field(default_factory=dict)
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    spent: Spent = Spent()
    added: Spent = Spent()
    cost_nano_usd: int = 0  # measured; what is unmeasured is not in it
    conclusion: str = ""  # why the latest step asks for an early review; empty if it does not
    early_review: Mapping[str, Any] | None = None
    reviews: int = 0
    ended: str = ""
    diagnosis: Mapping[str, Any] | None = None
    change_request: Mapping[str, Any] | None = None
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of other phases
    needs: tuple[Mapping[str, Any], ...] = ()
    attention: str = ""  # why a person is needed; cleared by an amendment or a new run
    labels: tuple[e.OutcomeLabelled, ...] = ()

    @property
    def open_request(self) -> Request | None:
        """The request that is neither accepted nor abandoned nor corrected by another."""
        latest = next(reversed(list(self.requests.values())), None)
        return latest if latest and latest.status in ("prepared", "rejected") else None

    @property
    def open_action(self) -> Action | None:
        """The first action that was asked for and not done."""
        return next((action for action in self.actions.values() if not action.result), None)

    @property
    def previous_result(self) -> str | None:
        """Evidence ID of the latest action, or its own ID if it was refused; None at first."""
        latest = next(reversed(list(self.actions.values())), None)
        if latest is None or not latest.result:
            return None
        return latest.id if latest.result == "refused" else latest.result

    def rounds(self, request: Request) -> int:
        """Return how many corrections led to this request."""
        count = 0
        while request.corrects:
            request = self.requests[request.corrects]
            count += 1
        return count

    def outcome(self) -> dict[str, Any]:
        """Return what the analysis found, without positions, times, attempts and money."""
        return {
            "revision": self.revision,
            "entities": list(self.entities),
            "facts": list(self.facts),
            "interpretation": self.interpretation,
            "hypotheses": [
                {"id": h.id, "state": h.state, "notes": h.notes, "evidence": list(h.evidence)}
                for h in self.hypotheses.values()
            ],
            "selected": self.selected,
            "actions": [
                {"id": a.id, "name": a.name, "arguments": a.expanded, "result": a.result}
                for a in self.actions.values()
            ],
            "evidence": [{"id": x.id, "digest": x.content.digest} for x in self.evidence.values()],
            "spent": vars(self.spent),
            "early_review": self.early_review,
            "ended": self.ended,
            "diagnosis": self.diagnosis,
            "change_request": self.change_request,
            "answers": dict(self.answers),
            "needs": list(self.needs),
        }


def fold(entries: Iterable[Entry], state: State | None = None) -> State:
    """Return the state after these entries, from the beginning or from an earlier state.

    A gap in the positions is an event that is withheld in a copy made for sharing. What follows
    from one cannot be applied and is passed over: the state is what is known without it.
    """
    state = state or State()
    for position, event in entries:
        apply = _APPLY.get(type(event))
        gap = position - state.position - 1
        if gap:
            state = replace(state, withheld=state.withheld + gap, position=position - 1)
        try:
            state = replace(apply(state, event, position) if apply else state, position=position)
        except MALFORMED as error:  # a record made elsewhere: consistent, and still nonsense
            if state.withheld:
                state = replace(state, position=position)
                continue
            raise LedgerDamaged(
                f"position {position}: {event.TOPIC} does not follow from the events before it "
                f"({type(error).__name__}: {str(error)[:80]})",
                position,
            ) from None
    return state


# Intake, configuration, runs -----------------------------------------------------------------


def _opened(state: State, event: e.CaseOpened, _: int) -> State:
    return replace(
        state,
        case_id=event.case_id,
        trial_id=event.trial_id,
        title=event.title,
        opened_at=event.at,
    )


def _artifact(state: State, event: e.ArtifactAdded, _: int) -> State:
    return replace(state, artifacts=(*state.artifacts, event))


def _observations(state: State, event: e.ObservationsExtracted, position: int) -> State:
    return replace(
        state,
        observations=(*state.observations, *event.observations),
        package_id=state.package_id or event.package_id,
        generation=state.generation or position,
        intake_complete=True,
    )


def _amended(state: State, event: e.CaseAmended, _: int) -> State:
    """A new revision re-enters at entity resolution; evidence, IDs and spent budget stay."""
    carried = {
        key: replace(hypothesis, state="carried") for key, hypothesis in state.hypotheses.items()
    }
    return replace(
        state,
        revision=event.revision,
        intake_complete=False,
        done=frozenset(),
        hypotheses=carried,
        conclusion="",
        early_review=None,
        reviews=0,
        ended="",
        diagnosis=None,
        change_request=None,
        needs=(),
        attention="",
        labels=(),
    )


def _pinned(state: State, event: e.ConfigurationPinned, _: int) -> State:
    return replace(state, configuration=event.configuration)


def _run_started(state: State, event: e.RunStarted, _: int) -> State:
    """A new run goes on with what there is, even if a person did not add what was asked for."""
    return replace(state, run=event.run, stopped="", attention="", needs=())


def _run_stopped(state: State, event: e.RunStopped, _: int) -> State:
    return replace(state, stopped=event.reason)


def _forked(state: State, event: e.CaseForked, _: int) -> State:
    return replace(state, trial_id=event.trial_id)


# Requests ------------------------------------------------------------------------------------


def _context(state: State, event: e.ContextCreated, _: int) -> State:
    context = Context(
        event.context,
        event.phase,
        event.revision,
        event.protocol,
        event.configuration,
        event.content,
        event.hypothesis,
    )
    return replace(state, contexts={**state.contexts, event.context: context})


def _prepared(state: State, event: e.RequestPrepared, _: int) -> State:
    request = Request(
        event.request,
        event.context,
        event.phase,
        event.protocol,
        event.document,
        event.corrects,
    )
    return replace(state, requests={**state.requests, event.request: request})


def _change(state: State, request: str, **changes: Any) -> State:
    changed = replace(state.requests[request], **changes)
    return replace(state, requests={**state.requests, request: changed})


def _change_attempt(state: State, request: str, number: int, **changes: Any) -> State:
    attempts = tuple(
        replace(attempt, **changes) if attempt.number == number else attempt
        for attempt in state.requests[request].attempts
    )
    return _change(state, request, attempts=attempts)


def _failed_over(state: State, event: e.ProviderFailedOver, _: int) -> State:
    return _change(state, event.request, failed_over_to=event.to_provider)


def _sent(state: State, event: e.RequestSent, _: int) -> State:
    request = state.requests[event.request]
    attempt = Attempt(
        event.attempt, event.provider, state.run, event.at, taken_over=request.failed_over_to
    )
    return _change(state, event.request, attempts=(*request.attempts, attempt), failed_over_to="")


def _received(state: State, event: e.ResponseReceived, _: int) -> State:
    return _change_attempt(
        state,
        event.request,
        event.attempt,
        status="received",
        body=event.body,
        complete=event.complete,
    )


def _failed(state: State, event: e.RequestFailed, _: int) -> State:
    return _change_attempt(
        state,
        event.request,
        event.attempt,
        status="failed",
        kind=event.kind,
        message=event.message,
        retryable=event.retryable,
        retry_after_ms=event.retry_after_ms,
    )


def _usage(state: State, event: e.UsageMeasured, _: int) -> State:
    """An answer that is read a second time, in a fork, was paid once."""
    attempts = state.requests[event.request].attempts
    if any(attempt.number == event.attempt and attempt.measured for attempt in attempts):
        return state
    state = _change_attempt(state, event.request, event.attempt, measured=True)
    return replace(state, cost_nano_usd=state.cost_nano_usd + (event.cost_nano_usd or 0))


def _unknown(state: State, event: e.OutcomeUnknown, _: int) -> State:
    return _change_attempt(state, event.request, event.attempt, status="unknown", kind="unknown")


def _accepted(state: State, event: e.ResponseAccepted, _: int) -> State:
    return _change(state, event.request, status="accepted", answer=event.answer)


def _rejected(state: State, event: e.ResponseRejected, _: int) -> State:
    return _change(
        state,
        event.request,
        status="rejected",
        problems=event.problems,
        correctable=event.correctable,
        rejection=event.kind,
        answer=event.answer,
    )


def _abandoned(state: State, event: e.RequestAbandoned, _: int) -> State:
    state = _change(state, event.request, status="abandoned")
    asked_for = event.reason in ("amended", "renewed")
    return state if asked_for else replace(state, attention=event.reason)


# Findings ------------------------------------------------------------------------------------


def _entities(state: State, event: e.EntitiesResolved, _: int) -> State:
    return replace(
        state,
        entities=(*state.entities, *event.result["entities"]),
        unresolved=tuple(event.result["unresolved"]),
        done=state.done | {"entity_resolution"},
    )


def _interpreted(state: State, event: e.CaseInterpreted, _: int) -> State:
    rest = {key: value for key, value in event.result.items() if key != "facts"}
    return replace(
        state,
        facts=(*state.facts, *event.result["facts"]),
        interpretation=rest,
        done=state.done | {"case_interpretation"},
    )


def _proposed(state: State, event: e.HypothesesProposed, _: int) -> State:
    for item in event.result["hypotheses"]:
        _require(item, id=str, statement=str, evidence=list)
    new = {
        item["id"]: Hypothesis(item["id"], item, evidence=tuple(item["evidence"]))
        for item in event.result["hypotheses"]
    }
    hypotheses = {**state.hypotheses, **new}
    done = state.done | {"hypotheses"} if hypotheses else state.done
    return replace(state, hypotheses=hypotheses, done=done)


def _selected(state: State, event: e.HypothesisSelected, _: int) -> State:
    return replace(state, selected=event.hypothesis)


def _assessed(state: State, event: e.HypothesisAssessed, _: int) -> State:
    hypothesis = replace(
        state.hypotheses[event.hypothesis],
        state=event.state,
        notes=event.notes,
        questions=event.questions,
        evidence=event.evidence,
    )
    return replace(state, hypotheses={**state.hypotheses, event.hypothesis: hypothesis})


def _action(state: State, event: e.ActionRequested, _: int) -> State:
    action = Action(
        event.action,
        event.name,
        event.arguments,
        event.expanded,
        event.request,
        event.hypothesis,
        event.revision,
        event.by,
    )
    return replace(state, actions={**state.actions, event.action: action}, conclusion="")


def _refused(state: State, event: e.ActionRefused, _: int) -> State:
    action = replace(state.actions[event.action], result="refused", problems=event.problems)
    return replace(state, actions={**state.actions, event.action: action})


def _evidence(state: State, event: e.EvidenceRecorded, _: int) -> State:
    evidence = Evidence(
        event.evidence,
        event.action,
        event.kind,
        event.content,
        event.characters,
        event.complete,
        event.found,
        event.hypothesis,
    )
    action = replace(state.actions[event.action], result=event.evidence)
    return replace(
        state,
        evidence={**state.evidence, event.evidence: evidence},
        actions={**state.actions, event.action: action},
    )


def _charged(state: State, event: e.BudgetCharged, _: int) -> State:
    return replace(state, spent=state.spent.plus(event))


def _extended(state: State, event: e.BudgetExtended, _: int) -> State:
    """More budget reopens an investigation that a budget had ended."""
    reopened = state.ended.endswith("_used") or state.ended == "context_full"
    later = {"investigation", "diagnosis", "change_request"}
    return replace(
        state,
        added=state.added.plus(event),
        ended="" if reopened else state.ended,
        done=state.done - later if reopened else state.done,
    )


def _review_asked(state: State, event: e.ConclusionReached, _: int) -> State:
    return replace(state, conclusion=event.why)


def _reviewed(state: State, event: e.EarlyReviewHeld, _: int) -> State:
    return replace(
        state,
        conclusion="",
        reviews=state.reviews + 1,
        early_review={"accepted": event.accepted, **event.feedback},
    )


def _ended(state: State, event: e.InvestigationEnded, _: int) -> State:
    return replace(state, ended=event.reason, done=state.done | {"investigation"})


def _require(value: Any, **kinds: type | tuple[type, ...]) -> None:
    """Refuse an object that lacks a member, or has one of another type."""
    for name, kind in kinds.items():
        if not isinstance(value[name], kind):
            raise TypeError(f"{name} is {type(value[name]).__name__}")


def _diagnosed(state: State, event: e.DiagnosisConcluded, _: int) -> State:
    """A diagnosis asked for before more budget reopened the investigation is not the last."""
    _require(event.result, outcome=str, confidence=(int, float), locations=list, mechanism=list)
    done = state.done | {"diagnosis"} if "investigation" in state.done else state.done
    return replace(state, diagnosis=event.result, done=done)


def _handed_off(state: State, event: e.ChangeRequested, _: int) -> State:
    done = state.done | {"change_request"} if "diagnosis" in state.done else state.done
    return replace(state, change_request=event.result, done=done)


def _answered(state: State, event: e.PhaseAnswered, _: int) -> State:
    return replace(
        state,
        answers={**state.answers, event.phase: event.result},
        done=state.done | {event.phase},
    )


def _information(state: State, event: e.InformationNeeded, _: int) -> State:
    return replace(state, needs=event.items, attention="information_needed")


def _labelled(state: State, event: e.OutcomeLabelled, _: int) -> State:
    return replace(state, labels=(*state.labels, event))


_APPLY: Mapping[type[e.Event], Callable[[State, Any, int], State]] = {
    e.CaseOpened: _opened,
    e.ArtifactAdded: _artifact,
    e.ObservationsExtracted: _observations,
    e.CaseAmended: _amended,
    e.ConfigurationPinned: _pinned,
    e.RunStarted: _run_started,
    e.RunStopped: _run_stopped,
    e.CaseForked: _forked,
    e.ContextCreated: _context,
    e.RequestPrepared: _prepared,
    e.ProviderFailedOver: _failed_over,
    e.RequestSent: _sent,
    e.ResponseReceived: _received,
    e.RequestFailed: _failed,
    e.OutcomeUnknown: _unknown,
    e.UsageMeasured: _usage,
    e.ResponseAccepted: _accepted,
    e.ResponseRejected: _rejected,
    e.RequestAbandoned: _abandoned,
    e.EntitiesResolved: _entities,
    e.CaseInterpreted: _interpreted,
    e.HypothesesProposed: _proposed,
    e.HypothesisSelected: _selected,
    e.HypothesisAssessed: _assessed,
    e.ActionRequested: _action,
    e.ActionRefused: _refused,
    e.EvidenceRecorded: _evidence,
    e.BudgetCharged: _charged,
    e.BudgetExtended: _extended,
    e.ConclusionReached: _review_asked,
    e.EarlyReviewHeld: _reviewed,
    e.InvestigationEnded: _ended,
    e.DiagnosisConcluded: _diagnosed,
    e.ChangeRequested: _handed_off,
    e.PhaseAnswered: _answered,
    e.InformationNeeded: _information,
    e.OutcomeLabelled: _labelled,
}
