"""A fold over the events of a case: the same events give the same state.

No clock, no files, no randomness. One short function an event type; an event that decides nothing
(a cache decision, a fallen back encoding) has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ledger import events as e
from ledger.errors import LedgerDamaged
from ledger.reader import Entry
from projections.state import (
    MALFORMED,
    Action,
    Attempt,
    Context,
    Evidence,
    Hypothesis,
    Request,
    State,
    fault,
)


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
                f"({fault(error)})",
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
