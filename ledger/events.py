"""What happened. Immutable, named, in order; nothing here knows what it means.

Each event has a *given* topic, `noun.past-verb/major`, independent of where its class lives: rows
written today stay readable when classes move. The field tables are a contract, docs/format.md,
"Events"; tests hold the two equal. An additional optional field keeps the topic; anything else is a
new topic with an upcaster (ledger/topics.py). A default never changes: state is stored without it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict

JsonObject = dict[str, Any]
"""A JSON object; canonical.py refuses what JSON does not have when the event is written."""

ArtifactKind = Literal["report", "source", "log", "database", "observation"]
Media = Literal["text", "sqlite", "tree", "binary"]
Verdict = Literal["right", "wrong", "partly"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class Ref(_Frozen):
    """A payload by its digest."""

    digest: str
    size: int


class Observation(_Frozen):
    """A block of the report or an excerpt of a log, by lines of its artefact."""

    id: str
    artifact: str
    kind: str
    first_line: int
    last_line: int


class Problem(_Frozen):
    """One thing that was wrong."""

    code: str
    message: str
    path: str = ""


class Event(_Frozen):
    """One fact. `at` is the moment it was recorded: UTC, RFC 3339, microseconds, `Z`."""

    TOPIC: ClassVar[str]

    at: str


# Intake -----------------------------------------------------------------------------------------


class CaseOpened(Event):
    """A case exists: always the event at position 1, and only there."""

    TOPIC = "case.opened/1"

    case_id: str
    trial_id: str
    title: str
    program: str


class ArtifactAdded(Event):
    """One artefact of the intake was taken in and stored."""

    TOPIC = "artifact.added/1"

    artifact: str
    kind: ArtifactKind
    name: str
    revision: int
    media: Media
    content: Ref | None = None
    tree: Ref | None = None
    encoding: str = ""
    lines: int = 0
    provenance: JsonObject = {}
    counts: JsonObject = {}


class SecretReplaced(Event):
    """Secrets were replaced in an artefact before it was stored; the values are nowhere."""

    TOPIC = "secret.replaced/1"

    artifact: str
    kind: str
    count: int
    path: str = ""
    places: tuple[JsonObject, ...] = ()


class ObservationsExtracted(Event):
    """Report blocks and log excerpts got their IDs; ends the intake of a revision."""

    TOPIC = "observations.extracted/1"

    revision: int
    package_id: str
    observations: tuple[Observation, ...]


class CaseAmended(Event):
    """A new revision of the intake begins."""

    TOPIC = "case.amended/1"

    revision: int
    note: str = ""


# Configuration and runs -------------------------------------------------------------------------


class ConfigurationPinned(Event):
    """The effective configuration from here on, as an immutable snapshot."""

    TOPIC = "configuration.pinned/1"

    configuration: Ref
    reason: str


class RunStarted(Event):
    """A process began to work on the case."""

    TOPIC = "run.started/1"

    run: int
    program: str
    libraries: JsonObject = {}
    options: JsonObject = {}


class RunStopped(Event):
    """The process stopped working, for this reason."""

    TOPIC = "run.stopped/1"

    run: int
    reason: str
    detail: str = ""


# Requests ---------------------------------------------------------------------------------------


class ContextCreated(Event):
    """The canonical context of one phase step was built and archived."""

    TOPIC = "context.created/1"

    context: str
    phase: str
    revision: int
    protocol: str
    configuration: str
    content: Ref
    hypothesis: str = ""


class RequestPrepared(Event):
    """A request document was rendered from a context and archived, before anything is sent."""

    TOPIC = "request.prepared/1"

    request: str
    context: str
    phase: str
    protocol: str
    versions: JsonObject
    form: str
    form_reason: str
    document: Ref
    characters: int
    plain_characters: int
    estimated_tokens: int
    plain_estimated_tokens: int
    estimator: str
    corrects: str = ""


class EncodingFellBack(Event):
    """An encoding could not prove its inverse, so the plain document is used."""

    TOPIC = "encoding.fell_back/1"

    context: str
    encoding: str
    stage: str
    reason: str
    path: str = ""


class RequestSent(Event):
    """One attempt at a request is about to leave; committed before the provider is called."""

    TOPIC = "request.sent/1"

    request: str
    attempt: int
    provider: str
    model: str
    endpoint: str
    document: str
    client: str = ""
    api_version: str = ""
    parameters: JsonObject = {}
    wire: Ref | None = None
    cache: str = ""
    deadline_ms: int = 0


class ResponseReceived(Event):
    """An answer arrived; its raw bytes are kept before anything reads them."""

    TOPIC = "response.received/1"

    request: str
    attempt: int
    body: Ref
    complete: bool
    elapsed_ms: int
    status: int | None = None
    content_type: str = ""
    provider_request_id: str = ""


class UsageMeasured(Event):
    """What an exchange used and cost, as the provider's usage metadata states it."""

    TOPIC = "usage.measured/1"

    request: str
    attempt: int
    prompt: int | None = None
    cached: int | None = None
    output: int | None = None
    thoughts: int | None = None
    cost_nano_usd: int | None = None
    price: JsonObject = {}
    details: JsonObject = {}


class RequestFailed(Event):
    """An attempt ended without a usable exchange."""

    TOPIC = "request.failed/1"

    request: str
    attempt: int
    kind: str
    message: str
    retryable: bool
    elapsed_ms: int
    status: int | None = None
    retry_after_ms: int | None = None
    partial: Ref | None = None


class OutcomeUnknown(Event):
    """A process died between sending and recording: the provider may have answered."""

    TOPIC = "outcome.unknown/1"

    request: str
    attempt: int
    policy: str


class ProviderFailedOver(Event):
    """The next provider of the list takes over with the complete canonical request."""

    TOPIC = "provider.failed_over/1"

    request: str
    from_provider: str
    to_provider: str
    reason: str
    detail: str = ""


class ResponseAccepted(Event):
    """An answer passed format, schema, identity and citation checks."""

    TOPIC = "response.accepted/1"

    request: str
    attempt: int
    answer: Ref


class ResponseRejected(Event):
    """An answer failed a check; every problem found is listed."""

    TOPIC = "response.rejected/1"

    request: str
    attempt: int
    kind: str
    problems: tuple[Problem, ...]
    correctable: bool
    answer: Ref | None = None


class RequestAbandoned(Event):
    """A request will not be answered; its operation ends here."""

    TOPIC = "request.abandoned/1"

    request: str
    reason: str
    detail: str = ""


# Cache ------------------------------------------------------------------------------------------


class CacheDecided(Event):
    """How the cache is used for one attempt, and everything the decision rests on."""

    TOPIC = "cache.decided/1"

    request: str
    attempt: int
    provider: str
    model: str
    mode: str
    decision: str
    reason: str
    partition: str = ""
    key: str = ""
    content_id: str = ""
    basis: JsonObject = {}


class CacheCreateRequested(Event):
    """A remote cache is about to be created; committed before the call."""

    TOPIC = "cache.create_requested/1"

    request: str
    key: str
    content_id: str
    display_name: str
    model: str
    ttl_seconds: int
    estimated_tokens: int
    body: Ref | None = None


class CacheCreateUnknown(Event):
    """The reply to a creation was lost."""

    TOPIC = "cache.create_unknown/1"

    key: str
    display_name: str
    reason: str


class CacheCreated(Event):
    """The provider confirmed a cache."""

    TOPIC = "cache.created/1"

    key: str
    display_name: str
    expires_at: str
    reply: Ref
    tokens: int | None = None
    adopted: bool = False


class CacheCreateFailed(Event):
    """The provider refused or failed to create a cache."""

    TOPIC = "cache.create_failed/1"

    key: str
    display_name: str
    kind: str
    message: str
    status: int | None = None
    minimum_tokens: int | None = None
    reply: Ref | None = None


class CacheRejected(Event):
    """A request was refused because of its cache; it goes out again with both parts inline."""

    TOPIC = "cache.rejected/1"

    request: str
    attempt: int
    key: str
    kind: str
    message: str
    status: int | None = None


class CacheLost(Event):
    """A handle is no longer usable in this process."""

    TOPIC = "cache.lost/1"

    key: str
    reason: str
    detail: str = ""


class CacheDeleted(Event):
    """A cache was deleted, or left to expire."""

    TOPIC = "cache.deleted/1"

    key: str
    outcome: str
    status: int | None = None


class CacheSettled(Event):
    """What a cache actually saved, from usage and lifetime."""

    TOPIC = "cache.settled/1"

    key: str
    reads: int
    cached_tokens: int | None = None
    lifetime_ms: int | None = None
    storage_nano_usd: int | None = None
    saved_nano_usd: int | None = None
    basis: JsonObject = {}


# What the analysis found ------------------------------------------------------------------------


class EntitiesResolved(Event):
    """Accepted answer of entity resolution, IDs assigned."""

    TOPIC = "entities.resolved/1"

    request: str
    revision: int
    result: JsonObject


class CaseInterpreted(Event):
    """Accepted case interpretation, IDs assigned."""

    TOPIC = "case.interpreted/1"

    request: str
    revision: int
    result: JsonObject


class HypothesesProposed(Event):
    """Accepted hypotheses, IDs assigned."""

    TOPIC = "hypotheses.proposed/1"

    request: str
    revision: int
    result: JsonObject


class HypothesisSelected(Event):
    """The investigation turns to this hypothesis."""

    TOPIC = "hypothesis.selected/1"

    hypothesis: str
    reason: str
    request: str = ""


class HypothesisAssessed(Event):
    """A hypothesis has a new state in the light of evidence."""

    TOPIC = "hypothesis.assessed/1"

    hypothesis: str
    state: str
    request: str = ""
    notes: str = ""
    questions: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


class ActionRequested(Event):
    """A read-only action was asked for."""

    TOPIC = "action.requested/1"

    action: str
    name: str
    arguments: JsonObject
    expanded: JsonObject
    revision: int
    request: str = ""
    hypothesis: str = ""
    by: str = "model"


class ActionRefused(Event):
    """An action was not carried out; the refusal is a result the model sees."""

    TOPIC = "action.refused/1"

    action: str
    kind: str
    problems: tuple[Problem, ...]


class EvidenceRecorded(Event):
    """The result of an action was stored as evidence."""

    TOPIC = "evidence.recorded/1"

    evidence: str
    action: str
    kind: str
    content: Ref
    characters: int
    complete: bool
    found: bool
    hypothesis: str = ""


class BudgetCharged(Event):
    """An accepted step was charged."""

    TOPIC = "budget.charged/1"

    requests: int = 0
    actions: int = 0
    evidence_characters: int = 0
    request: str = ""
    action: str = ""


class BudgetExtended(Event):
    """A person added to the budget."""

    TOPIC = "budget.extended/1"

    requests: int = 0
    actions: int = 0
    evidence_characters: int = 0


class ConclusionReached(Event):
    """An investigation step held that the evidence decides; an early review follows."""

    TOPIC = "conclusion.reached/1"

    request: str
    why: str


class EarlyReviewHeld(Event):
    """The early-diagnosis review was answered."""

    TOPIC = "early_review.held/1"

    request: str
    accepted: bool
    feedback: JsonObject = {}


class InvestigationEnded(Event):
    """The investigation is over, for this reason."""

    TOPIC = "investigation.ended/1"

    reason: str
    detail: str = ""


class DiagnosisConcluded(Event):
    """Accepted diagnosis, IDs assigned."""

    TOPIC = "diagnosis.concluded/1"

    request: str
    revision: int
    result: JsonObject


class ChangeRequested(Event):
    """Accepted change request: the hand-off to a coding agent or a person."""

    TOPIC = "change.requested/1"

    request: str
    revision: int
    result: JsonObject


class PhaseAnswered(Event):
    """Accepted answer of a phase that has no event of its own, IDs assigned."""

    TOPIC = "phase.answered/1"

    request: str
    phase: str
    revision: int
    result: JsonObject


class InformationNeeded(Event):
    """A phase cannot go on without facts from outside; the case needs attention."""

    TOPIC = "information.needed/1"

    request: str
    phase: str
    items: tuple[JsonObject, ...]


# The ledger itself ------------------------------------------------------------------------------


class OutcomeLabelled(Event):
    """A person's verdict on the diagnosis."""

    TOPIC = "outcome.labelled/1"

    verdict: Verdict
    note: str = ""


class CaseForked(Event):
    """The history up to here is shared with another ledger; from here it goes its own way."""

    TOPIC = "case.forked/1"

    trial_id: str
    origin_trial_id: str
    origin_position: int
    origin_chain: str
    note: str = ""


class HeadAccepted(Event):
    """A person accepted a head behind its anchor: what came after it is lost."""

    TOPIC = "head.accepted/1"

    position: int
    chain: str
    anchor_position: int
    anchor_chain: str
    reason: str = ""


EVENTS: tuple[type[Event], ...] = (
    CaseOpened,
    ArtifactAdded,
    SecretReplaced,
    ObservationsExtracted,
    CaseAmended,
    ConfigurationPinned,
    RunStarted,
    RunStopped,
    ContextCreated,
    RequestPrepared,
    EncodingFellBack,
    RequestSent,
    ResponseReceived,
    UsageMeasured,
    RequestFailed,
    OutcomeUnknown,
    ProviderFailedOver,
    ResponseAccepted,
    ResponseRejected,
    RequestAbandoned,
    CacheDecided,
    CacheCreateRequested,
    CacheCreateUnknown,
    CacheCreated,
    CacheCreateFailed,
    CacheRejected,
    CacheLost,
    CacheDeleted,
    CacheSettled,
    EntitiesResolved,
    CaseInterpreted,
    HypothesesProposed,
    HypothesisSelected,
    HypothesisAssessed,
    ActionRequested,
    ActionRefused,
    EvidenceRecorded,
    BudgetCharged,
    BudgetExtended,
    ConclusionReached,
    EarlyReviewHeld,
    InvestigationEnded,
    DiagnosisConcluded,
    ChangeRequested,
    PhaseAnswered,
    InformationNeeded,
    OutcomeLabelled,
    CaseForked,
    HeadAccepted,
)
"""Every event a case can hold, in the order of docs/format.md."""


def references(event: Event) -> tuple[Ref, ...]:
    """Return the payloads an event names directly."""
    return tuple(
        value for name in _REF_FIELDS[type(event)] if (value := getattr(event, name)) is not None
    )


def names_payloads(event: Event) -> bool:
    """Tell whether events of this kind can name payloads."""
    return bool(_REF_FIELDS[type(event)])


_REF_FIELDS: dict[type[Event], tuple[str, ...]] = {
    cls: tuple(
        name
        for name, field in cls.model_fields.items()
        if field.annotation is Ref or Ref in get_args(field.annotation)
    )
    for cls in EVENTS
}
