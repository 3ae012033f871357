"""Where a case stands: what decisions are based on, and nothing else (see `projections.folding`).

`outcome` is the part that a crash and a resumed run must not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ledger import events as e

MALFORMED = (KeyError, TypeError, AttributeError, IndexError, ValueError)
"""What a fold or a rendering meets in a record that chains well and is not of our making."""


def fault(error: Exception) -> str:
    """Return what one of MALFORMED says of the record, in words and not too long."""
    if isinstance(error, KeyError):
        return f"{str(error)[:80]} is not there"
    return str(error)[:80] or "a value is missing"


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
