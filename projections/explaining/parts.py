"""The parts of a request: what each is made of, and which rule put it there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from projections.explaining.trail import Json, Trail, Where, ids
from projections.requests import message_text
from projections.tokens import estimated_tokens


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


def part(name: str, by: str, value: Any, events: list[Where], parts: tuple[Part, ...] = ()) -> Part:
    text = value if isinstance(value, str) and name == "system" else message_text(value)
    return Part(name, by, len(text), estimated_tokens(text), tuple(events), parts)


def member(trail: Trail, name: str, value: Any) -> Part:
    rule = _MEMBERS.get(name, _of_unknown)
    by, events, items = rule(trail, value)
    parts = tuple(part(f"view.{name}{tail}", of, item, found) for tail, of, item, found in items)
    empty = value in (None, [], {}, "")
    return part(f"view.{name}", by, value, [] if empty else events, parts)


_Item = tuple[str, str, Any, list[Where]]
"""The end of a part's name, what put it there, its value, the events it comes from."""

_Rule = Callable[[Trail, Any], tuple[str, list[Where], list[_Item]]]


def _latest(by: str, *topics: str) -> _Rule:
    return lambda trail, value: (by, trail.last(*topics), [])


def _of_case(trail: Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
    first = trail.all("observations.extracted/1")[:1]
    events = [*trail.last("case.opened/1"), *first, *trail.last("case.amended/1")]
    return "identity of the case", sorted(events), []


def _of_configuration(trail: Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
    return "configuration", trail.configuration, []


def _of_sources(trail: Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
    items: list[_Item] = []
    for name, listed in value.items():
        if name == "observations":
            items += _by_artifact(trail, listed)
        else:
            by = _SOURCES.get(name, "context")
            items.append((f".{name}", by, listed, trail.of(ids(listed))))
    events = sorted({where for *_, found in items for where in found})
    return "intake, and accepted answers on it", events, items


_SOURCES = {
    "artifacts": "intake",
    "facts": "accepted interpretation",
    "entities": "accepted entity resolution",
}


def _by_artifact(trail: Trail, observations: list[Json]) -> Iterator[_Item]:
    artifacts = list(dict.fromkeys(item["artifact"] for item in observations))
    for artifact in artifacts:
        listed = [item for item in observations if item["artifact"] == artifact]
        tail = f".observations[?@.artifact=='{artifact}']"
        yield tail, "intake", listed, trail.of([artifact, *ids(listed)])


def _of_catalogs(trail: Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
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
    def rule(trail: Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
        names = [item["id"] for item in value]
        items: list[_Item] = [
            (f"[?@.id=='{name}']", by, item, trail.of([name]))
            for name, item in zip(names, value, strict=True)
        ]
        return by, trail.of(names), items

    return rule


def _of_budget(trail: Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
    moved = trail.all("budget.charged/1", "budget.extended/1")
    return "balances, and limits of the configuration", sorted(trail.configuration + moved), []


def _of_shared(trail: Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
    alias = trail.prepared.versions.get("alias", "")
    recorded = trail.all("evidence.recorded/1") if value else []
    return f"aliases {alias}: what evidence repeats", recorded, []


def _of_hidden(trail: Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
    return f"view {trail.prepared.versions.get('view', '')}", trail.of(value), []


def _of_encoding(trail: Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
    return f"protocol {trail.prepared.protocol}", [trail.context_at], []


def _of_unknown(trail: Trail, value: Any) -> tuple[str, list[Where], list[_Item]]:
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


def feedback(trail: Trail, messages: list[Json]) -> Iterator[Part]:
    for number, message in enumerate(messages, start=1):
        events = trail.feedback[number - 1 : number]
        yield part(f"feedback[{number}]", "rejected answer", message["content"], events)
