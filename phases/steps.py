"""What comes next: a pure decision from the state of a case. The run loop carries it out.

Every step is one transaction, so a crash anywhere re-enters here and finds the same step again.
"""

from __future__ import annotations

from dataclasses import dataclass

from phases import ORDER
from phases.pinned import EARLY_REVIEWS
from phases.settings import Settings
from projections.state import Request, State


@dataclass(frozen=True)
class Begin:
    """Build a context for a phase and prepare its first request."""

    phase: str


@dataclass(frozen=True)
class Ask:
    """Send a prepared request: a first attempt, a retry, or a resend."""

    request: Request


@dataclass(frozen=True)
class Read:
    """Read a received answer."""

    request: Request


@dataclass(frozen=True)
class Correct:
    """Prepare a correction of a rejected answer."""

    request: Request


@dataclass(frozen=True)
class Abandon:
    """Give a request up."""

    request: Request
    reason: str


@dataclass(frozen=True)
class Act:
    """Carry out an action that was asked for."""

    action: str


@dataclass(frozen=True)
class End:
    """End the investigation."""

    reason: str


@dataclass(frozen=True)
class Stop:
    """Nothing to do, or a person is needed."""

    reason: str
    detail: str = ""


Step = Begin | Ask | Read | Correct | Abandon | Act | End | Stop


def next_step(state: State, settings: Settings, *, resend: bool = False) -> Step:
    """Return the next step.

    Args:
        state: where the case stands.
        settings: those of the configuration that the open request, if any, is bound to.
        resend: the user allowed a request with an unknown outcome to go out again.
    """
    if state.attention:
        return Stop("needs_attention", state.attention)
    if state.open_request:
        return _with_request(state, state.open_request, settings, resend)
    if state.open_action:
        return Act(state.open_action.id)
    phase = next((phase for phase in ORDER if phase not in state.done), None)
    if phase is None:
        return Stop("done")
    return _investigate(state, settings) if phase == "investigation" else Begin(phase)


def _with_request(state: State, request: Request, settings: Settings, resend: bool) -> Step:
    if request.status == "rejected":
        if not request.correctable:
            return Abandon(request, "not_correctable")
        if state.rounds(request) >= settings.run.corrections:
            return Abandon(request, "corrections_used")
        return Correct(request)
    last = request.last
    if last and last.status == "received":
        return Read(request)
    if (
        last
        and last.status == "unknown"
        and settings.run.unknown_outcome != "resend"
        and not resend
    ):
        return Stop("needs_attention", "outcome_unknown")
    return Ask(request)


def _investigate(state: State, settings: Settings) -> Step:
    review = state.early_review
    if review and review["accepted"]:
        return End("early_review")
    if state.conclusion:
        return Begin("diagnosis_early") if state.reviews < EARLY_REVIEWS else End("concluded")
    exhausted = exhausted_budget(state, settings) or requests_used(state, settings)
    return End(exhausted) if exhausted else Begin("investigation")


def exhausted_budget(state: State, settings: Settings) -> str:
    """Return the reason for which no further look is possible; empty if one is."""
    limits, spent, added = settings.budget, state.spent, state.added
    if spent.evidence_characters >= limits.evidence_characters + added.evidence_characters:
        return "context_full"
    if spent.actions >= limits.actions + added.actions:
        return "actions_used"
    return ""


def requests_used(state: State, settings: Settings) -> str:
    """Return the reason for which no further request is possible; empty if one is.

    Looks that the last request asked for are still taken: the diagnosis can use them.
    """
    used = state.spent.requests >= settings.budget.requests + state.added.requests
    return "requests_used" if used else ""
