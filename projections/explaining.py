"""Where each part of a saved request comes from, and what was left out, by which policy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ledger import canonical
from ledger import events as e
from ledger.errors import LedgerDamaged
from ledger.reader import CaseReader
from ledger.trees import tree_files
from projections.contexts.parts import READS
from projections.naming import things
from projections.report import lines_shown
from projections.requests import message_text, restored_view
from projections.saw import saved_document
from projections.state import MALFORMED
from projections.tokens import ESTIMATOR, estimated_tokens

Json = dict[str, Any]


class Where(NamedTuple):
    """An event: its position and its topic."""

    position: int
    topic: str


class Part(NamedTuple):
    """A part of a request.

    Attributes:
        part: `system`, `schema`, `view.MEMBER`, an item of one, or `feedback[N]`.
        by: the version, setting or rule that put it there.
        characters: of its canonical JSON before encoding; of the text itself for `system`.
        estimated_tokens: of the same text (`estimate_v1`).
        events: the events that its content comes from, in order; none for an empty part.
        parts: the items of a member that has several origins.
    """

    part: str
    by: str
    characters: int
    estimated_tokens: int
    events: tuple[Where, ...]
    parts: tuple[Part, ...] = ()

    def as_json(self) -> Json:
        events = [where._asdict() for where in self.events]
        parts = [part.as_json() for part in self.parts]
        return {**self._asdict(), "events": events, "parts": parts}


class LeftOut(NamedTuple):
    """Something of the case that the model did not see in this request, or only as metadata.

    Attributes:
        kind: `catalogued` (named in a catalog), `not_listed` (beyond a catalog's bound),
            `not_shown` (left out by a view or context), `withheld`, `excerpted`, `cut_off`,
            `not_taken_in`, or `replaced`.
        what: what it is, in words.
        policy: the version, setting or rule that decided so.
        number: how many things, or lines.
        names: their IDs or paths, where they have some.
    """

    kind: str
    what: str
    policy: str
    number: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """A saved request taken apart. Sizes of the whole are those that `request.prepared` records."""

    position: int
    prepared: e.RequestPrepared
    context_position: int
    parts: tuple[Part, ...]
    left_out: tuple[LeftOut, ...]

    def as_json(self) -> Json:
        prepared = self.prepared
        return {
            "request": prepared.request,
            "position": self.position,
            "context": prepared.context,
            "context_position": self.context_position,
            "phase": prepared.phase,
            "protocol": prepared.protocol,
            "versions": prepared.versions,
            "form": prepared.form,
            "characters": prepared.characters,
            "plain_characters": prepared.plain_characters,
            "estimated_tokens": prepared.estimated_tokens,
            "plain_estimated_tokens": prepared.plain_estimated_tokens,
            "estimator": ESTIMATOR,
            "parts": [part.as_json() for part in self.parts],
            "left_out": [item._asdict() for item in self.left_out],
        }


def explain(reader: CaseReader, request: str) -> Explanation:
    """Return what a request is made of.

    Raises:
        KeyError: there is no such request.
        UnknownVersion: the protocol of the request is not in this release.
        LedgerDamaged: the request, its context or the record is not of our making.
    """
    trail = _trail(reader, request)
    try:
        return _explain(reader, trail)
    except MALFORMED as error:
        raise LedgerDamaged(
            f"request {request}: it is not what a request of this program is made of "
            f"({type(error).__name__}: {str(error)[:80]})"
        ) from None


def _explain(reader: CaseReader, trail: _Trail) -> Explanation:
    prepared = trail.prepared
    document = saved_document(reader, prepared.request, prepared.document)
    view = restored_view(document)
    context = canonical.from_bytes(reader.payload(trail.context.content.digest))
    parts = (
        _part("system", f"prompt {prepared.protocol}", document["system"], [trail.at]),
        _part("schema", f"output schema of {prepared.protocol}", document["schema"], [trail.at]),
        *(_member(trail, name, value) for name, value in view.items()),
        *_feedback(trail, document["messages"][1:]),
    )
    left_out = tuple(_left_out(reader, trail, context, view))
    return Explanation(trail.at.position, prepared, trail.context_at.position, parts, left_out)


# The trail of events that led to a request ------------------------------------------------------


@dataclass
class _Trail:
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


def _trail(reader: CaseReader, request: str) -> _Trail:
    """Return the trail of a request: events of its context are those before the context."""
    (at, prepared), (context_at, context), chain = _find(reader, request)
    trail = _Trail(at, prepared, context_at, context)
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


def _note(trail: _Trail, names: Mapping[str, list[Where]], where: Where, event: e.Event) -> None:
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


# Parts ------------------------------------------------------------------------------------------


def _part(
    name: str, by: str, value: Any, events: list[Where], parts: tuple[Part, ...] = ()
) -> Part:
    text = value if isinstance(value, str) and name == "system" else message_text(value)
    return Part(name, by, len(text), estimated_tokens(text), tuple(events), parts)


def _member(trail: _Trail, name: str, value: Any) -> Part:
    rule = _MEMBERS.get(name, _of_unknown)
    by, events, items = rule(trail, value)
    parts = tuple(_part(f"view.{name}{tail}", of, item, found) for tail, of, item, found in items)
    empty = value in (None, [], {}, "")
    return _part(f"view.{name}", by, value, [] if empty else events, parts)


_Item = tuple[str, str, Any, list[Where]]
"""The end of a part's name, what put it there, its value, the events it comes from."""

_Rule = Callable[[_Trail, Any], tuple[str, list[Where], list[_Item]]]


def _latest(by: str, *topics: str) -> _Rule:
    return lambda trail, value: (by, trail.last(*topics), [])


def _of_case(trail: _Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
    first = trail.all("observations.extracted/1")[:1]
    events = [*trail.last("case.opened/1"), *first, *trail.last("case.amended/1")]
    return "identity of the case", sorted(events), []


def _of_configuration(trail: _Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
    return "configuration", trail.configuration, []


def _of_sources(trail: _Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
    items: list[_Item] = []
    for name, listed in value.items():
        if name == "observations":
            items += _by_artifact(trail, listed)
        else:
            by = _SOURCES.get(name, "context")
            items.append((f".{name}", by, listed, trail.of(_ids(listed))))
    events = sorted({where for *_, found in items for where in found})
    return "intake, and accepted answers on it", events, items


_SOURCES = {
    "artifacts": "intake",
    "facts": "accepted interpretation",
    "entities": "accepted entity resolution",
}


def _by_artifact(trail: _Trail, observations: list[Json]) -> Iterator[_Item]:
    artifacts = list(dict.fromkeys(item["artifact"] for item in observations))
    for artifact in artifacts:
        listed = [item for item in observations if item["artifact"] == artifact]
        tail = f".observations[?@.artifact=='{artifact}']"
        yield tail, "intake", listed, trail.of([artifact, *_ids(listed)])


def _of_catalogs(trail: _Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
    listed = ("source", "log", "database")
    names = [a.artifact for a in trail.artifacts if a.kind in listed]
    items: list[_Item] = []
    if missing := value.get("evidence_not_cited"):
        by = f"context of {trail.prepared.phase}"
        items.append((".evidence_not_cited", by, missing, trail.of(missing)))
    listing = trail.of(names) or trail.last("observations.extracted/1")  # that there is nothing
    events = sorted({*listing, *(where for *_, found in items for where in found)})
    return "catalogs of the revision", events, items


def _of_items(by: str) -> _Rule:
    def rule(trail: _Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
        names = [item["id"] for item in value]
        items: list[_Item] = [
            (f"[?@.id=='{name}']", by, item, trail.of([name]))
            for name, item in zip(names, value, strict=True)
        ]
        return by, trail.of(names), items

    return rule


def _of_budget(trail: _Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
    moved = trail.all("budget.charged/1", "budget.extended/1")
    return "balances, and limits of the configuration", sorted(trail.configuration + moved), []


def _of_shared(trail: _Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
    alias = trail.prepared.versions.get("alias", "")
    recorded = trail.all("evidence.recorded/1") if value else []
    return f"aliases {alias}: what evidence repeats", recorded, []


def _of_hidden(trail: _Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
    return f"view {trail.prepared.versions.get('view', '')}", trail.of(value), []


def _of_encoding(trail: _Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
    return f"protocol {trail.prepared.protocol}", [trail.context_at], []


def _of_unknown(trail: _Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
    return "context", [trail.context_at], []


_MEMBERS: Mapping[str, _Rule] = {
    "case": _of_case,
    "sources": _of_sources,
    "unresolved": _latest("accepted entity resolution", "entities.resolved/1"),
    "interpretation": _latest("accepted interpretation", "case.interpreted/1"),
    "earlier_interpretation": _latest("accepted interpretation", "case.interpreted/1"),
    "policy": _of_configuration,
    "tools": _of_configuration,
    "catalogs": _of_catalogs,
    "hypotheses": _of_items("accepted hypotheses, as last assessed"),
    "selected_hypothesis": _latest("selection", "hypothesis.selected/1"),
    "evidence": _of_items("actions"),
    "evidence_not_shown": _of_hidden,
    "budget": _of_budget,
    "conclusion": _latest("accepted investigation step", "conclusion.reached/1"),
    "early_review": _latest("accepted early review", "early_review.held/1"),
    "earlier_review": _latest("accepted early review", "early_review.held/1"),
    "ended": _latest("end of the investigation", "investigation.ended/1"),
    "diagnosis": _latest("accepted diagnosis", "diagnosis.concluded/1"),
    "shared": _of_shared,
    "model_encoding": _of_encoding,
}
"""What each member of a view is made of; another one is the context's own."""


def _feedback(trail: _Trail, messages: list[Json]) -> Iterator[Part]:
    for number, message in enumerate(messages, start=1):
        events = trail.feedback[number - 1 : number]
        yield _part(f"feedback[{number}]", "rejected answer", message["content"], events)


def _ids(items: list[Json]) -> list[str]:
    return [item["id"] for item in items if isinstance(item.get("id"), str)]


# What was left out ------------------------------------------------------------------------------


def _left_out(reader: CaseReader, trail: _Trail, context: Json, view: Json) -> Iterator[LeftOut]:
    yield from _not_in_view(trail, context, view)
    yield from _withheld(trail, context)
    yield from _only_catalogued(view)
    yield from _excerpted(trail, view)
    yield from _cut_off(view)
    yield from _not_taken_in(reader, trail)


def _not_in_view(trail: _Trail, context: Json, view: Json) -> Iterator[LeftOut]:
    policy = f"view {trail.prepared.versions.get('view', '')}"
    if dropped := [name for name in context if name not in view]:
        yield LeftOut("not_shown", "members of the context", policy, len(dropped), tuple(dropped))
    shown = set(_ids(view.get("evidence", [])))
    hidden = [name for name in _ids(context.get("evidence", [])) if name not in shown]
    if hidden:
        what = "evidence of other hypotheses, listed by ID"
        yield LeftOut("not_shown", what, policy, len(hidden), tuple(hidden))
    if missing := view.get("catalogs", {}).get("evidence_not_cited"):
        what = "evidence that the diagnosis does not cite, listed by ID"
        yield LeftOut("not_shown", what, f"context of {trail.prepared.phase}", len(missing),
                      tuple(missing))  # fmt: skip


def _withheld(trail: _Trail, context: Json) -> Iterator[LeftOut]:
    policy = "no_egress of the configuration"
    shown = set(_ids(context["sources"]["artifacts"]))
    names = [a.artifact for a in trail.artifacts if a.artifact not in shown]
    if names:
        what = "artefacts, their observations and their catalogs"
        yield LeftOut("withheld", what, policy, len(names), tuple(names))
    items = [item["id"] for item in context.get("evidence", []) if "withheld" in item]
    if items:
        yield LeftOut("withheld", "results of looks at them", policy, len(items), tuple(items))


def _only_catalogued(view: Json) -> Iterator[LeftOut]:
    catalogs = view.get("catalogs", {})
    seen = _seen(catalogs, view.get("evidence", []))
    files = catalogs.get("files", {})
    policy = "catalogs of the revision"
    if names := [item["path"] for item in files.get("items", ()) if item["path"] not in seen]:
        what = f"source files of {files['total']} that no evidence here shows lines of"
        yield LeftOut("catalogued", what, policy, len(names), tuple(names))
    for member in ("logs", "databases"):
        names = [item["artifact"] for item in _listed(catalogs, member)]
        if names := [name for name in names if name not in seen]:
            what = f"{member} that no evidence here looks into"
            yield LeftOut("catalogued", what, policy, len(names), tuple(names))
    for name, catalog in _bounded(catalogs):
        if more := catalog["total"] - catalog["bound"] if catalog.get("cut_off") else 0:
            bound = f"bound of the catalog ({catalog['bound']})"
            yield LeftOut("not_listed", f"{name} beyond the catalog's bound", bound, more)


def _bounded(catalogs: Json) -> Iterator[tuple[str, Json]]:
    yield "source files", catalogs.get("files", {})
    for database in _listed(catalogs, "databases"):
        yield f"tables of {database['artifact']}", database


def _seen(catalogs: Json, evidence: list[Json]) -> set[str]:
    """Return what evidence shows lines of, names in its arguments, or searched as a whole."""
    found = {place for place, _, _ in lines_shown(evidence)}
    for item in evidence:
        arguments = item.get("arguments", {})
        found |= {value for value in arguments.values() if isinstance(value, str)}
        if READS.get(item.get("action", "")) == "log" and not arguments.get("log"):
            found |= {log["artifact"] for log in _listed(catalogs, "logs")}
    return found


def _listed(catalogs: Json, member: str) -> list[Json]:
    """Return a list of the catalogs; empty for one that is withheld."""
    listed = catalogs.get(member, [])
    return listed if isinstance(listed, list) else []


def _excerpted(trail: _Trail, view: Json) -> Iterator[LeftOut]:
    shown = set(_ids(view["sources"]["observations"]))
    lines: defaultdict[str, int] = defaultdict(int)
    for item in trail.observations:
        if item.id in shown:
            lines[item.artifact] += item.last_line - item.first_line + 1
    for artifact in trail.artifacts:
        more = artifact.lines - lines.get(artifact.artifact, artifact.lines)
        if artifact.kind == "log" and more > 0:
            what = f"lines of {artifact.lines} of {artifact.artifact} {artifact.name}"
            policy = "excerpts at intake (observations)"
            yield LeftOut("excerpted", what, policy, more, (artifact.artifact,))


def _cut_off(view: Json) -> Iterator[LeftOut]:
    cut = [item["id"] for item in view.get("evidence", ()) if item.get("complete") is False]
    if cut:
        what = "results that are themselves cut off; each says where"
        yield LeftOut("cut_off", what, "limits of the actions", len(cut), tuple(cut))


def _not_taken_in(reader: CaseReader, trail: _Trail) -> Iterator[LeftOut]:
    for artifact in trail.artifacts:
        if artifact.tree is None:
            continue
        document = reader.payload(artifact.tree.digest)
        listed = tuple(item["path"] for item in tree_files(document) if not item["stored"])
        if listed:
            what = f"files of {artifact.artifact} whose content was not taken in"
            yield LeftOut("not_taken_in", what, "limits of the intake", len(listed), listed)
        reasons: defaultdict[str, list[str]] = defaultdict(list)
        for item in canonical.from_bytes(document).get("skipped", ()):
            reasons[item["reason"]].append(item["path"])
        for reason, paths in reasons.items():
            what = f"paths of {artifact.artifact} that were skipped: {reason}"
            yield LeftOut("not_taken_in", what, "skipped at intake", len(paths), tuple(paths))
    if trail.secrets:
        names = tuple(dict.fromkeys(item.artifact for item in trail.secrets))
        count = sum(item.count for item in trail.secrets)
        yield LeftOut("replaced", "secrets", "replacement at intake", count, names)
