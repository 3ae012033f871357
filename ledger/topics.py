"""Stored row to event and back, through a closed list of topics.

A ledger travels: what its rows name is never imported or called. A topic that is not on the list
below is "written by a newer release", whatever it looks like.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from pydantic import ValidationError

from ledger import canonical
from ledger.errors import CanonicalError, LedgerDamaged, UnknownEvent, UnsafeEvent
from ledger.events import EVENTS, Event

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]
"""A pure function from the state of an older topic to the state of the next one."""

REGISTRY: Mapping[str, type[Event]] = {cls.TOPIC: cls for cls in EVENTS}
"""Current topics."""

UPCASTERS: Mapping[str, tuple[str, Upcaster]] = {}
"""Older topics: the topic they became and how. Applied when reading; rows are never rewritten."""


class _Writer(NamedTuple):
    """How pydantic writes the events of a topic, and which fields can hold floats."""

    to_json: Callable[..., bytes]
    objects: tuple[str, ...]


def _writer(cls: type[Event]) -> _Writer:
    kinds = cls.__annotations__  # none is inherited but `at`
    objects = tuple(name for name, kind in kinds.items() if "JsonObject" in str(kind))
    return _Writer(cls.__pydantic_serializer__.to_json, objects)


_WRITERS: Mapping[str, _Writer] = {cls.TOPIC: _writer(cls) for cls in EVENTS}


def encode(event: Event) -> tuple[str, bytes]:
    """Return an event's topic and state, proved to read back as the same event.

    Raises:
        UnsafeEvent: if it would not, for instance because a text holds a lone surrogate.
    """
    topic = type(event).TOPIC
    try:
        state = canonical.to_bytes(event.model_dump(exclude_defaults=True))
        again = decode(topic, state)
    except (CanonicalError, LedgerDamaged, UnknownEvent) as error:
        raise UnsafeEvent(f"{topic} cannot be stored: {error}") from None
    if canonical.to_bytes(again.model_dump(exclude_defaults=True)) != state:
        raise UnsafeEvent(f"{topic} cannot be stored: it reads back as another value")
    return topic, state


def decode(
    topic: str,
    state: bytes,
    position: int | None = None,
    *,
    registry: Mapping[str, type[Event]] = REGISTRY,
    upcasters: Mapping[str, tuple[str, Upcaster]] = UPCASTERS,
) -> Event:
    """Return the event a row holds, upcast to the current topic.

    Raises:
        UnknownEvent: for a topic or field of a newer release.
        LedgerDamaged: for a state that no event of this topic can have.
    """
    cls = registry.get(topic)
    try:
        if cls is not None:
            return cast(Event, cls.__pydantic_validator__.validate_json(state))
        return _decode_older(topic, state, position, registry, upcasters)
    except ValidationError as error:
        raise _explain(error, topic, position) from None


def is_canonical(topic: str, state: bytes, event: Event | None) -> bool:
    """Tell whether a state is byte for byte what its event is written as.

    `event` is what `decode` made of it, None for one that is not known to this release.
    """
    try:
        writer = _WRITERS.get(topic)
        if event is None or writer is None:  # not known, or upcast
            value = canonical.from_bytes(state)
            return type(value) is dict and canonical.to_bytes(value) == state
        # What pydantic writes are the canonical bytes, but for some floats, and faster.
        if writer.to_json(event, exclude_defaults=True) == state:
            for name in writer.objects:
                if (value := getattr(event, name)) and _has_odd_float(value):
                    break
            else:
                return True
        return canonical.to_bytes(event.model_dump(exclude_defaults=True)) == state
    except CanonicalError:
        return False


def _has_odd_float(value: Any) -> bool:
    """Tell whether a JSON array or object holds a float that pydantic spells in its own way.

    Those are the ones with an exponent: 1e22 for 1e+22, 0.00001 for 1e-05. What was decoded is not
    deep.
    """
    for item in value.values() if type(value) is dict else value:
        kind = type(item)
        if kind is float:
            if "e" in repr(item):
                return True
        elif (kind is dict or kind is list) and item and _has_odd_float(item):
            return True
    return False


def is_known(topic: str) -> bool:
    """Tell whether this release can read events of a topic."""
    return topic in REGISTRY or topic in UPCASTERS


def _decode_older(
    topic: str,
    state: bytes,
    position: int | None,
    registry: Mapping[str, type[Event]],
    upcasters: Mapping[str, tuple[str, Upcaster]],
) -> Event:
    where = f"position {position}: " if position else ""
    if topic not in upcasters:
        raise UnknownEvent(
            f"{where}topic {topic[:80]!r} is not known to this release; "
            "a newer one can read it, verify and export still work"
        )
    try:
        document = canonical.from_bytes(state)
        while topic in upcasters:
            topic, upcast = upcasters[topic]
            document = upcast(document)
    except (CanonicalError, LookupError, TypeError, ValueError, AttributeError) as error:
        # An upcaster may rely on what its topic promises; a damaged row may not hold it.
        raise LedgerDamaged(f"{where}the state is not one of {topic}: {error}", position) from None
    return registry[topic].model_validate(document)


def _explain(error: ValidationError, topic: str, position: int | None) -> Exception:
    where = f"position {position}: " if position else ""
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return UnknownEvent(
            f"{where}{topic} has the field {field!r}, which is not known to this release"
        )
    place = f"{field}: " if field else ""
    return LedgerDamaged(f"{where}{topic}: {place}{first['msg']}", position)
