"""The events that led to a request, by kind and by the IDs of what they made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ledger import events as e
from ledger.errors import LedgerDamaged
from ledger.reader import CaseReader
from projections.naming import things

Json = dict[str, Any]


class Where(NamedTuple):
    """An event: its position and its topic."""

    position: int
    topic: str


@dataclass
class Trail:
    """What happened before a request was prepared, by kind and by ID."""

    at: Where
    prepared: e.RequestPrepared
    context_at: Where
    context: e.ContextCreated
    topics: Mapping[str, list[Where]] = field(default_factory=dict)
    names: Mapping[str, list[Where]] = field(default_factory=dict)
    artifacts: list[e.ArtifactAdded] = field(default_factory=list)
    observations: list[e.Observation] = field(default_factory=list)
    secrets: list[e.SecretReplaced] = field(default_factory=list)
    configuration: list[Where] = field(default_factory=list)
    feedback: list[Where] = field(default_factory=list)

    def all(self, *topics: str) -> list[Where]:
        """Return the events of these topics, in order."""
        return sorted(where for topic in topics for where in self.topics.get(topic, ()))

    def last(self, *topics: str) -> list[Where]:
        """Return the latest event of each topic."""
        return sorted(self.topics[topic][-1] for topic in topics if self.topics.get(topic))

    def of(self, names: Iterator[str] | list[str]) -> list[Where]:
        """Return the events that made things with these IDs what they are."""
        return sorted({where for name in names for where in self.names.get(name, ())})


def trail_of(reader: CaseReader, request: str) -> Trail:
    """Return the trail of a request: events of its context are those before the context."""
    (at, prepared), (context_at, context), chain = _find(reader, request)
    trail = Trail(at, prepared, context_at, context)
    topics: defaultdict[str, list[Where]] = defaultdict(list)
    names: defaultdict[str, list[Where]] = defaultdict(list)
    for entry in reader.events(at.position):
        where = Where(entry.position, entry.event.TOPIC)
        if isinstance(entry.event, e.ResponseRejected) and entry.event.request in chain:
            trail.feedback.append(where)
        if entry.position > context_at.position:
            continue
        topics[where.topic].append(where)
        for thing in things([entry]):
            names[thing.id].append(where)
        _note(trail, names, where, entry.event)
    trail.topics, trail.names = topics, names
    return trail


_Found = tuple[tuple[Where, e.RequestPrepared], tuple[Where, e.ContextCreated], set[str]]


def _find(reader: CaseReader, request: str) -> _Found:
    """Return a request, its context, and the IDs of the requests that it corrects."""
    contexts: dict[str, tuple[Where, e.ContextCreated]] = {}
    corrected: dict[str, set[str]] = {"": set()}
    for position, event in reader.events():
        if isinstance(event, e.ContextCreated):
            contexts[event.context] = Where(position, event.TOPIC), event
        elif isinstance(event, e.RequestPrepared):
            chain = corrected.get(event.corrects, set())
            corrected[event.request] = chain | {event.request}
            if event.request == request:
                context = contexts.get(event.context)
                if context is None:
                    raise LedgerDamaged(f"request {request}: its context is not there", position)
                return (Where(position, event.TOPIC), event), context, chain
    raise KeyError(request)


def _note(trail: Trail, names: Mapping[str, list[Where]], where: Where, event: e.Event) -> None:
    match event:
        case e.ArtifactAdded():
            trail.artifacts.append(event)
        case e.SecretReplaced():
            trail.secrets.append(event)
        case e.ObservationsExtracted():
            trail.observations.extend(event.observations)
        case e.ConfigurationPinned(configuration=e.Ref(digest=digest)):
            if digest == trail.context.configuration:
                trail.configuration = [where]
        case e.HypothesisAssessed():
            names[event.hypothesis][1:] = [where]  # proposed, and assessed last
        case e.CaseAmended():
            for name in names:
                if name.startswith("H"):
                    names[name][1:] = [where]  # carried
        case e.ActionRefused():
            names[event.action].append(where)
        case e.EvidenceRecorded():
            names[event.evidence][:0] = names[event.action]


def ids(items: list[Json]) -> list[str]:
    return [item["id"] for item in items if isinstance(item.get("id"), str)]
