"""What an action is, what it gives back, and the limits they all share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ledger.canonical import to_bytes
from ledger.events import JsonObject, Problem
from phases.investigation.snapshot import Snapshot

CHARACTERS = 12_000
"""Characters (code points) of what one result shows, unless asked otherwise."""

MOST_CHARACTERS = 40_000
"""The most that may be asked for."""

HARD_CHARACTERS = 60_000
"""No evidence document is ever longer, its arguments and provenance included."""

LINE_CHARACTERS = 400
"""Characters shown of one line; of a longer one a window is shown."""

MOST_HITS = 5_000
"""Hits that are counted; beyond it a total is a lower bound."""


@dataclass(frozen=True)
class Refusal:
    """An action was not carried out; `kind` as in `action.refused/1`."""

    kind: str
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class Evidence:
    """The result of an action: the payload `evidence.recorded/1` names."""

    document: JsonObject

    @property
    def found(self) -> bool:
        """False for a qualified negative."""
        return bool(self.document["found"])

    @property
    def complete(self) -> bool:
        """False if a limit cut the result off."""
        return bool(self.document["complete"])

    @property
    def characters(self) -> int:
        """Code points of the canonical document."""
        return characters(self.document)


class Refused(Exception):
    """Raised inside an action to refuse it."""

    def __init__(self, kind: str, code: str, message: str, path: str = "") -> None:
        super().__init__(message)
        self.refusal = Refusal(kind, (Problem(code=code, message=message, path=path),))


class Page(NamedTuple):
    """Which part of all items a result shows. `exact`: whether `total` is all, or a lower bound."""

    offset: int
    limit: int
    returned: int
    total: int
    exact: bool = True

    def to_json(self) -> JsonObject:
        """Return the `page` member."""
        total = {"total" if self.exact else "total_at_least": self.total}
        return {"offset": self.offset, "limit": self.limit, "returned": self.returned, **total}


@dataclass
class Result:
    """What an action found. `cut_off`: (reason, limit) of a limit that was reached, if one was.

    `covered`, `scope` and `filter` qualify it, above all when nothing was found.
    """

    result: JsonObject
    found: bool
    page: Page | None = None
    cut_off: tuple[str, int] | None = None
    covered: JsonObject = field(default_factory=dict)
    scope: JsonObject = field(default_factory=dict)
    filter: JsonObject = field(default_factory=dict)
    query: JsonObject = field(default_factory=dict)


Checker = Callable[[Snapshot, JsonObject], list["Trouble"]]


class Trouble(NamedTuple):
    """A problem of the arguments that only the snapshot shows, and the kind of refusal it makes."""

    kind: str
    code: str
    message: str
    path: str


@dataclass(frozen=True)
class Action:
    """A read-only action. `arguments` is the JSON schema that its arguments must fit exactly."""

    name: str
    description: str
    arguments: JsonObject
    run: Callable[[Snapshot, JsonObject], Result]
    check: Checker = lambda snapshot, arguments: []
    limits: JsonObject = field(default_factory=dict)


class Tray:
    """Collects items until their characters are used up; the first item always fits."""

    def __init__(self, limit: int) -> None:
        self.items: list[Any] = []
        self.left = self.limit = limit
        self.full = False

    def charge(self, cost: int) -> bool:
        """Take `cost` characters; false, and full from then on, if there are not so many left."""
        if self.full or (cost > self.left and self.left < self.limit):
            self.full = True
            return False
        self.left -= cost
        return True

    def add(self, item: Any) -> bool:
        """Add a JSON value if it fits."""
        if not self.charge(characters(item) + 1):
            return False
        self.items.append(item)
        return True


def characters(value: Any) -> int:
    """Return the code points of a value's canonical text."""
    return len(to_bytes(value).decode("utf-8"))


def cut(text: str, limit: int = LINE_CHARACTERS) -> str:
    """Return at most `limit` characters of a text that only describes, with a mark if it was
    cut.
    """
    return text if len(text) <= limit else text[:limit] + "…"


# Schemas ----------------------------------------------------------------------------------------


def object_schema(required: list[str], **properties: JsonObject) -> JsonObject:
    """Return the strict schema of an arguments object."""
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def text_schema(description: str, limit: int = 500, least: int = 1, **more: Any) -> JsonObject:
    """Return the schema of a string argument."""
    head = {"type": "string", "description": description, "minLength": least, "maxLength": limit}
    return head | more


def number_schema(description: str, low: int, high: int, default: int | None = None) -> JsonObject:
    """Return the schema of an integer argument."""
    head = {"type": "integer", "description": description, "minimum": low, "maximum": high}
    return head if default is None else head | {"default": default}


def choice_schema(description: str, values: tuple[str, ...], default: str) -> JsonObject:
    """Return the schema of an argument with fixed values."""
    return {"type": "string", "description": description, "enum": list(values), "default": default}


OFFSET = number_schema(
    "Items to skip: the next page starts at offset + returned.", 0, 10_000_000, 0
)
SIZE = number_schema("Characters the result may have.", 1_000, MOST_CHARACTERS, CHARACTERS)


def limit_schema(default: int, high: int) -> JsonObject:
    """Return the schema of the number of items on a page."""
    return number_schema("Items on a page.", 1, high, default)
