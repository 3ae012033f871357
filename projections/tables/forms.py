"""The tables: a class each, a field a column; and the views over them.

docs/tables.md says what each column means; tests hold the two equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, get_args, get_type_hints

from projections.contexts.parts import READS

FORMAT = 1
"""Number of this set of tables, in the file's `user_version`."""


@dataclass(frozen=True)
class Row:
    """One row. `ledger` is the number of the case among those that were put together.

    Attributes:
        NAME: of the table.
        KEY: its primary key.
        WORDS: columns that hold words of the case, of a model or of a person.
    """

    NAME: ClassVar[str]
    KEY: ClassVar[tuple[str, ...]]
    WORDS: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def columns(cls) -> dict[str, type]:
        """Return the columns with their types: int, float, str; a bool is an int."""
        hints = get_type_hints(cls)
        return {column.name: _column(hints[column.name]) for column in fields(cls)}

    def without_words(self) -> Row:
        """Return the row with null for words."""
        return replace(self, **dict.fromkeys(self.WORDS))


@dataclass(frozen=True)
class CaseRow(Row):
    NAME = "cases"
    KEY = ("id",)
    WORDS = frozenset({"title", "cause", "verdict_note"})

    id: int
    name: str
    case_id: str
    trial_id: str
    title: str | None
    opened_at: str
    position: int
    chain: str
    revision: int
    package_id: str
    generation: int
    outcome: str | None
    confidence: float | None
    cause: str | None
    ended: str | None
    stopped: str | None
    attention: str | None
    verdict: str | None
    verdict_note: str | None


@dataclass(frozen=True)
class EventRow(Row):
    NAME = "events"
    KEY = ("ledger", "position")
    WORDS = frozenset({"line", "state"})

    ledger: int
    position: int
    at: str | None
    topic: str
    request: str | None
    bytes: int
    line: str | None
    state: str | None


@dataclass(frozen=True)
class ArtifactRow(Row):
    NAME = "artifacts"
    KEY = ("ledger", "artifact")
    WORDS = frozenset({"name"})

    ledger: int
    artifact: str
    position: int
    kind: str
    name: str | None
    revision: int
    media: str
    digest: str | None
    bytes: int | None
    lines: int


@dataclass(frozen=True)
class RequestRow(Row):
    NAME = "requests"
    KEY = ("ledger", "request")

    ledger: int
    request: str
    position: int
    at: str
    phase: str
    protocol: str
    view: str | None
    alias: str | None
    encoding: str | None
    partition: str | None
    form: str
    form_reason: str
    context: str
    revision: int | None
    hypothesis: str | None
    corrects: str | None
    status: str
    attempts: int
    document: str
    bytes: int
    characters: int
    plain_characters: int
    estimated_tokens: int
    plain_estimated_tokens: int


@dataclass(frozen=True)
class AttemptRow(Row):
    NAME = "attempts"
    KEY = ("ledger", "request", "attempt")
    WORDS = frozenset({"message"})

    ledger: int
    request: str
    attempt: int
    position: int
    at: str
    provider: str
    model: str
    endpoint: str
    document: str
    wire: str | None
    content_id: str | None
    status: str
    kind: str | None
    message: str | None
    http_status: int | None
    retryable: bool | None
    retry_after_ms: int | None
    elapsed_ms: int | None


@dataclass(frozen=True)
class ResponseRow(Row):
    NAME = "responses"
    KEY = ("ledger", "request", "attempt")
    WORDS = frozenset({"answer_json"})

    ledger: int
    request: str
    attempt: int
    position: int
    at: str
    body: str
    bytes: int
    complete: bool
    elapsed_ms: int
    http_status: int | None
    verdict: str | None
    rejection: str | None
    problems: int
    correctable: bool | None
    answer: str | None
    answer_json: str | None


@dataclass(frozen=True)
class CostRow(Row):
    NAME = "costs"
    KEY = ("ledger", "position")

    ledger: int
    position: int
    request: str
    attempt: int
    phase: str | None
    provider: str | None
    model: str | None
    prompt: int | None
    cached: int | None
    output: int | None
    thoughts: int | None
    cost_nano_usd: int | None


@dataclass(frozen=True)
class CacheRow(Row):
    NAME = "cache"
    KEY = ("ledger", "position")
    WORDS = frozenset({"message"})

    ledger: int
    position: int
    at: str
    event: str
    request: str | None
    attempt: int | None
    key: str | None
    content_id: str | None
    provider: str | None
    model: str | None
    mode: str | None
    decision: str | None
    reason: str | None
    partition: str | None
    kind: str | None
    message: str | None
    outcome: str | None
    status: int | None
    ttl_seconds: int | None
    expires_at: str | None
    estimated_tokens: int | None
    tokens: int | None
    reads: int | None
    cached_tokens: int | None
    lifetime_ms: int | None
    storage_nano_usd: int | None
    saved_nano_usd: int | None


@dataclass(frozen=True)
class HypothesisRow(Row):
    NAME = "hypotheses"
    KEY = ("ledger", "hypothesis")
    WORDS = frozenset({"statement", "mechanism", "notes", "questions"})

    ledger: int
    hypothesis: str
    position: int
    request: str
    revision: int
    statement: str | None
    mechanism: str | None
    likelihood: float | None
    state: str
    notes: str | None
    questions: str | None
    evidence: str
    assessments: int
    selected: bool


@dataclass(frozen=True)
class ActionRow(Row):
    """A model may ask for what there is not: such a name is words, too."""

    NAME = "actions"
    KEY = ("ledger", "action")
    WORDS = frozenset({"arguments", "expanded"})

    ledger: int
    action: str
    position: int
    at: str
    name: str | None
    by: str
    request: str | None
    hypothesis: str | None
    revision: int
    result: str | None
    refusal: str | None
    arguments: str | None
    expanded: str | None

    def without_words(self) -> ActionRow:
        """Return the row with null for words; only a name that an action has stays."""
        known = self.name if self.name in READS else None
        return replace(self, arguments=None, expanded=None, name=known)


@dataclass(frozen=True)
class EvidenceRow(Row):
    NAME = "evidence"
    KEY = ("ledger", "evidence")
    WORDS = frozenset({"document_json"})

    ledger: int
    evidence: str
    position: int
    at: str
    action: str
    kind: str
    hypothesis: str | None
    document: str
    bytes: int
    characters: int
    complete: bool
    found: bool
    document_json: str | None


@dataclass(frozen=True)
class TextRow(Row):
    """Left out altogether without words."""

    NAME = "texts"
    KEY = ("ledger", "position", "kind", "thing")
    WORDS = frozenset({"text"})

    ledger: int
    position: int
    kind: str
    thing: str
    text: str


TABLES: Mapping[str, type[Row]] = {
    table.NAME: table
    for table in (
        *(CaseRow, EventRow, ArtifactRow, RequestRow, AttemptRow, ResponseRow, CostRow, CacheRow),
        *(HypothesisRow, ActionRow, EvidenceRow, TextRow),
    )
}
"""Every table by name, in the order in which they are made."""

VIEWS: Mapping[str, str] = {
    "outcomes": """
        SELECT c.id AS ledger, c.name, c.outcome, c.confidence, c.verdict, c.ended, c.stopped,
               c.attention,
               (SELECT count(*) FROM requests r WHERE r.ledger = c.id) AS requests,
               (SELECT count(*) FROM attempts a WHERE a.ledger = c.id) AS attempts,
               (SELECT count(*) FROM hypotheses h WHERE h.ledger = c.id) AS hypotheses,
               (SELECT count(*) FROM actions a WHERE a.ledger = c.id) AS actions,
               (SELECT count(*) FROM evidence x WHERE x.ledger = c.id) AS evidence,
               (SELECT sum(cost_nano_usd) FROM costs u WHERE u.ledger = c.id) AS cost_nano_usd,
               c.revision, c.opened_at,
               (SELECT max(at) FROM events e WHERE e.ledger = c.id) AS latest_at
        FROM cases c
    """,
    "cost_by_phase": """
        SELECT r.ledger, r.phase, count(DISTINCT r.request) AS requests,
               count(u.position) AS measured, sum(u.prompt) AS prompt,
               sum(u.cached) AS cached, sum(u.output) AS output,
               sum(u.thoughts) AS thoughts, sum(u.cost_nano_usd) AS cost_nano_usd
        FROM requests r LEFT JOIN costs u ON u.ledger = r.ledger AND u.request = r.request
        GROUP BY r.ledger, r.phase ORDER BY r.ledger, min(r.position)
    """,
    "cache_by_request": """
        SELECT a.ledger, a.request, a.attempt, a.provider, a.model, d.mode, d.decision, d.reason,
               a.content_id, u.prompt, u.cached, 1.0 * u.cached / u.prompt AS cached_share,
               a.status
        FROM attempts a
        LEFT JOIN cache d ON d.ledger = a.ledger AND d.request = a.request
             AND d.attempt = a.attempt AND d.event = 'cache.decided'
        LEFT JOIN costs u ON u.ledger = a.ledger AND u.request = a.request
             AND u.attempt = a.attempt
        ORDER BY a.ledger, a.position
    """,
    "actions_by_name": """
        SELECT a.ledger, a.name, count(*) AS actions, count(x.evidence) AS evidence,
               sum(a.result = 'refused') AS refused, sum(x.found = 0) AS not_found,
               sum(x.characters) AS characters
        FROM actions a LEFT JOIN evidence x ON x.ledger = a.ledger AND x.action = a.action
        GROUP BY a.ledger, a.name
    """,
}
"""Every view by name, as SQL."""


def _column(hint: Any) -> type:
    """Return what SQLite stores for a type: the first one of `str | None`, an int for a bool."""
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not type(None)]
    return int if kinds[0] is bool else kinds[0]
