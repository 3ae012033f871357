"""What a copy made for sharing must leave out so that it holds nothing of what is withheld.

The rule and its limits: docs/decisions/0013-redacted-packages.md. In short, with *after* meaning
after the earliest thing withheld:

* what was built from everything known (contexts, requests, bodies, raw answers) is left out if it
  came after;
* what a model or person said and what a look found (states with text, answers, evidence) is left
  out if it came after and quotes; evidence that was read from a withheld artefact always is;
* what came before cannot quote it and stays.

To quote is to hold a fragment of the withheld text (quoting.py) that stands neither in the
artefacts that are kept nor in the program's own words: such a fragment gives nothing away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

import prompts
from ledger import canonical
from ledger import events as e
from ledger.events import references
from ledger.lines import split_lines
from ledger.reader import RecordReader, Withheld
from ledger.redacted import known_event
from ledger.trees import needed_payloads, tree_files
from projections.contexts.parts import READS
from projections.quoting import Fragments, readings

KINDS: tuple[str, ...] = get_args(e.ArtifactKind)
DEFAULT = ("source", "log", "database")
"""What is withheld if nothing is named: what a case holds of its owner's program and data."""

MIN_LINE = 20
"""Characters of a line that stands in two artefacts by no accident."""

TEXTS: Mapping[type[e.Event], tuple[str, ...]] = {
    e.CaseOpened: ("title",),
    e.SecretReplaced: ("path", "places"),
    e.CaseAmended: ("note",),
    e.RunStopped: ("detail",),
    e.EncodingFellBack: ("reason", "path"),
    e.UsageMeasured: ("details",),  # as the provider stated it
    e.RequestFailed: ("message",),
    e.ProviderFailedOver: ("detail",),
    e.ResponseRejected: ("problems",),
    e.RequestAbandoned: ("detail",),
    e.CacheDecided: ("basis",),  # the service's message and our detail are in it
    e.CacheCreateUnknown: ("reason",),
    e.CacheCreateFailed: ("message",),
    e.CacheRejected: ("message",),
    e.CacheLost: ("detail",),
    e.EntitiesResolved: ("result",),
    e.CaseInterpreted: ("result",),
    e.HypothesesProposed: ("result",),
    e.HypothesisSelected: ("reason",),
    e.HypothesisAssessed: ("notes", "questions"),
    e.ActionRequested: ("name", "arguments", "expanded"),  # a model may ask for what there is not
    e.ActionRefused: ("problems",),
    e.ConclusionReached: ("why",),
    e.EarlyReviewHeld: ("feedback",),
    e.InvestigationEnded: ("detail",),
    e.DiagnosisConcluded: ("result",),
    e.ChangeRequested: ("result",),
    e.PhaseAnswered: ("result",),
    e.InformationNeeded: ("items",),
    e.OutcomeLabelled: ("note",),
    e.CaseForked: ("note",),
    e.HeadAccepted: ("reason",),
}
"""Fields that can hold text of the case, of a model or of a person; all others are structure."""

MEASURED: Mapping[type[e.Event], str] = {
    e.EvidenceRecorded: "content",
    e.ResponseAccepted: "answer",
    e.ResponseRejected: "answer",
}
"""Payloads whose text can be read in full; those of other events are left out unmeasured."""

GIVEN = (e.ArtifactAdded, e.ConfigurationPinned)
"""Events whose payloads were given, not built from what was known."""


class NoSuchPart(Exception):
    """Something is to be withheld or kept that the case does not have: one line."""


class Redaction(NamedTuple):
    """What is left out; `roots` name what was asked for, `shared` counts the lines of each kept
    artefact that stand in a withheld one as well.
    """

    withheld: Withheld
    roots: tuple[str, ...]
    shared: Mapping[str, int]


def redaction(reader: RecordReader, wanted: Sequence[str] = ()) -> Redaction:
    """Return what a copy leaves out that withholds what is wanted.

    Args:
        reader: the whole record.
        wanted: artefacts (`S2`) or kinds of them, evidence (`E5`), requests (`R3`), positions
            (`#57`); if empty, the kinds of `DEFAULT` that the case has.

    Raises:
        NoSuchPart: the case has no such thing, or nothing of `DEFAULT`.
    """
    case = _Case(reader)
    chosen = _Chosen(case)
    for name in wanted or DEFAULT:
        if not chosen.add(name) and wanted:
            raise NoSuchPart(f"{name}: this case has no such thing; {_NAMING}")
    if not chosen.roots:
        raise NoSuchPart(f"there is no source, log or database to withhold; {_NAMING}")
    return _Redactor(case, chosen).redaction()


_NAMING = (
    "name an artefact (S2), evidence (E5), a request (R3), a kind (source) or a position (#57)"
)


class _Case:
    """A record that is looked at several times."""

    def __init__(self, reader: RecordReader) -> None:
        self.reader = reader
        rows = [(row.position, known_event(row)) for row in reader.rows()]
        self.known = [(position, event) for position, event in rows if event is not None]
        self.unknown = [position for position, event in rows if event is None]
        self.artifacts = {a.artifact: a for _, a in self.known if isinstance(a, e.ArtifactAdded)}
        self._asked = {a.action: a for _, a in self.known if isinstance(a, e.ActionRequested)}
        self._contexts = {
            c.context: c.content.digest for _, c in self.known if isinstance(c, e.ContextCreated)
        }

    def payloads_of(self, artifact: e.ArtifactAdded) -> Iterator[str]:
        """Yield the digests of an artefact: its bytes, or its tree and the files in it."""
        return (ref.digest for ref in needed_payloads(artifact, self.reader.payload))

    def texts_of(self, artifact: e.ArtifactAdded) -> Iterator[str]:
        """Yield what an artefact says, names of files included."""
        if artifact.content is not None:
            yield from readings(self.reader.payload(artifact.content.digest), artifact.encoding)
        if artifact.tree is not None:
            for file in tree_files(self.reader.payload(artifact.tree.digest)):
                yield file["path"]
                if file["stored"]:
                    data = self.reader.payload(file["digest"])
                    yield from readings(data, file.get("encoding") or "")

    def payload_texts(self, digest: str) -> Iterator[str]:
        return readings(self.reader.payload(digest))

    def evidence_of(self, artifact: e.ArtifactAdded) -> Iterator[str]:
        """Yield the digests of the evidence that was read from an artefact, or can have been."""
        for _, event in self.known:
            if not isinstance(event, e.EvidenceRecorded):
                continue
            if READS.get(event.kind, "source") == artifact.kind:
                asked = self._asked.get(event.action)
                named = set(_strings(asked.expanded)) & self.artifacts.keys() if asked else set()
                if not named or artifact.artifact in named:
                    yield event.content.digest

    def own_payloads(self, event: e.Event) -> set[str]:
        """Return the digests that go with an event: a request is its context, rendered."""
        named = {ref.digest for ref in references(event)}
        if isinstance(event, e.RequestPrepared) and event.context in self._contexts:
            named.add(self._contexts[event.context])
        return named


@dataclass
class _Chosen:
    """The things that are to be withheld, with all that is theirs by name.

    `sources` are payloads whose text must not be quoted either; `since` holds the positions after
    which that is possible.
    """

    case: _Case
    roots: list[str] = field(default_factory=list)
    artifacts: dict[str, e.ArtifactAdded] = field(default_factory=dict)
    positions: set[int] = field(default_factory=set)
    payloads: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)
    since: list[int] = field(default_factory=list)

    def add(self, name: str) -> bool:
        """Add what a name means; return whether the case has it."""
        if name in KINDS:
            kind = [i for i, artifact in self.case.artifacts.items() if artifact.kind == name]
            return sum(map(self.add, kind)) > 0
        if name.startswith("#") and name[1:].isdecimal():
            found = self._position(int(name[1:20]))
        elif name in self.case.artifacts:
            found = self._artifact(self.case.artifacts[name])
        else:
            found = self._evidence(name) or self._request(name)
        if found and name not in self.roots:
            self.roots.append(name)
        return found

    def _artifact(self, artifact: e.ArtifactAdded) -> bool:
        read = set(self.case.evidence_of(artifact))
        self.artifacts[artifact.artifact] = artifact
        self.payloads |= read | set(self.case.payloads_of(artifact))
        self.sources |= read
        for position, event in self.case.known:
            if event is artifact:
                self.since.append(position)
            elif isinstance(event, e.SecretReplaced):
                if event.artifact == artifact.artifact:
                    self.positions.add(position)
            elif isinstance(event, e.CaseOpened) and artifact.kind == "report":
                self.positions.add(position)  # its title is taken from the report
        return True

    def _evidence(self, name: str) -> bool:
        for position, event in self.case.known:
            if isinstance(event, e.EvidenceRecorded) and event.evidence == name:
                self._source(position, event)
                return True
        return False

    def _request(self, name: str) -> bool:
        found = False
        for position, event in self.case.known:
            if getattr(event, "request", None) != name:
                continue
            if isinstance(event, e.RequestPrepared | e.RequestSent):
                found = True
                self.payloads |= self.case.own_payloads(event)
                self.since.append(position)
            else:
                self._source(position, event)
            if type(event) in TEXTS:
                self.positions.add(position)
        return found

    def _position(self, wanted: int) -> bool:
        event = dict(self.case.known).get(wanted)
        if event is None and wanted not in self.case.unknown:
            return False
        self.positions.add(wanted)
        if isinstance(event, e.ArtifactAdded):
            return self._artifact(event)
        if event is None:
            self.since.append(wanted)
        else:
            self._source(wanted, event)
        return True

    def _source(self, position: int, event: e.Event) -> None:
        """Withhold the payloads of an event; what says something must not be quoted."""
        own = self.case.own_payloads(event)
        self.payloads |= own
        self.sources |= own
        if own or type(event) in TEXTS:
            self.since.append(position)


class _Redactor:
    """From what is chosen to all that has to go with it."""

    def __init__(self, case: _Case, chosen: _Chosen) -> None:
        self._case = case
        self._chosen = chosen
        self._since = min(chosen.since, default=2**63)

    def redaction(self) -> Redaction:
        states, payloads = self._candidates()
        forbidden = self._forbidden([*states.values(), *payloads.values()])
        positions = {n for n, said in states.items() if said.meets(forbidden)}
        quoting = {digest for digest, said in payloads.items() if said.meets(forbidden)}
        silent = payloads.keys() - quoting
        withheld = self._chosen.payloads | quoting | (self._built_after() - silent)
        positions |= self._chosen.positions
        if self._case.unknown:  # what events of a newer release say and need is not known
            positions |= {n for n in self._case.unknown if n > self._since}
            withheld |= self._needed_by_unknown()
        left_out = Withheld(frozenset(positions), frozenset(withheld))
        return Redaction(left_out, tuple(self._chosen.roots), self._shared())

    def _candidates(self) -> tuple[dict[int, Fragments], dict[str, Fragments]]:
        """Return what may stay if it does not quote: states by position, payloads by digest."""
        states: dict[int, Fragments] = {}
        payloads: dict[str, Fragments] = {}
        for position, event in self._case.known:
            if position <= self._since:
                continue
            if position not in self._chosen.positions and (said := list(_texts(event))):
                states[position] = Fragments(said)
            ref = getattr(event, MEASURED.get(type(event), ""), None)
            if ref is not None and ref.digest not in self._chosen.payloads | payloads.keys():
                payloads[ref.digest] = Fragments(self._case.payload_texts(ref.digest))
        return states, payloads

    def _built_after(self) -> set[str]:
        return {
            ref.digest
            for position, event in self._case.known
            if position > self._since and not isinstance(event, GIVEN)
            for ref in references(event)
            if type(event) not in MEASURED
        }

    def _forbidden(self, candidates: Iterable[Fragments]) -> Fragments:
        """Return the fragments of what is withheld that nothing else in the copy gives away."""
        said = Fragments()
        for candidate in candidates:
            said.update(candidate)
        taken = said.common(self._withheld_texts())
        return taken.without(taken.common(self._public_texts()))

    def _withheld_texts(self) -> Iterator[str]:
        for artifact in self._chosen.artifacts.values():
            yield from self._case.texts_of(artifact)
        for digest in sorted(self._chosen.sources):
            yield from self._case.payload_texts(digest)
        for position, event in self._case.known:
            if position in self._chosen.positions:
                yield from _texts(event)

    def _public_texts(self) -> Iterator[str]:
        """Yield what is in the copy as it was given, and the program's own words."""
        for artifact in self._kept():
            yield from self._case.texts_of(artifact)
        used = set()
        for _, event in self._case.known:
            if isinstance(event, e.RequestPrepared):
                used.add(event.protocol)
            kept = references(event) if isinstance(event, e.ConfigurationPinned) else ()
            for ref in kept:
                if ref.digest not in self._chosen.payloads:
                    yield from self._case.payload_texts(ref.digest)
        for name in sorted(used & set(prompts.protocols())):
            yield prompts.prompt_file(name)[1].decode()
            yield prompts.schema_file(prompts.card(name).schema)[1].decode()

    def _kept(self) -> Iterator[e.ArtifactAdded]:
        """Yield the artefacts of which no byte is withheld."""
        for artifact in self._case.artifacts.values():
            if self._chosen.payloads.isdisjoint(self._case.payloads_of(artifact)):
                yield artifact

    def _needed_by_unknown(self) -> set[str]:
        named = {
            ref.digest
            for _, event in self._case.known
            for ref in needed_payloads(event, self._case.reader.payload)
        }
        return {digest for digest, _ in self._case.reader.stored_payloads()} - named

    def _shared(self) -> dict[str, int]:
        withheld = {
            hash(line)  # a tree of millions of lines fits in memory so
            for artifact in self._chosen.artifacts.values()
            for text in self._case.texts_of(artifact)
            for line in _lines(text)
        }
        counts = {}
        for artifact in self._kept() if withheld else ():
            texts = self._case.texts_of(artifact)
            counts[artifact.artifact] = len(
                {line for text in texts for line in _lines(text) if hash(line) in withheld}
            )
        return {name: count for name, count in counts.items() if count}


def _lines(text: str) -> Iterator[str]:
    """Yield lines long enough to be somebody's, without indentation and marks of quotation."""
    for line in split_lines(text):
        bare = line.strip(" \t>`*+-|")
        if len(bare) >= MIN_LINE:
            yield bare


def _texts(event: e.Event) -> Iterator[str]:
    """Yield the texts of an event: none if it is structure only."""
    for name in TEXTS.get(type(event), ()):
        if value := event.model_dump(mode="json", include={name})[name]:
            yield canonical.to_bytes(value).decode()


def _strings(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict | list | tuple):
        for item in node.values() if isinstance(node, dict) else node:
            yield from _strings(item)
