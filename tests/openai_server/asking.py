"""A provider over a local server, a small document, and a ledger's side that only remembers."""

from __future__ import annotations

from typing import Any

import pytest

import prompts
from ledger import canonical
from ledger.events import Event
from phases.providers import Failure, Provider, Received, open_provider
from phases.settings import Settings

PROTOCOL = "hypotheses_v3"
NOW = "2024-05-17T09:30:00.000000Z"


def document(*feedback: dict[str, Any], protocol: str = PROTOCOL) -> bytes:
    """Return a request document as the ledger holds it."""
    card = prompts.card(protocol)
    contents = [{"case": {"id": "bug-17"}, "text": "Grüße,\nline two"}, *feedback]
    return canonical.to_bytes(
        {
            "format": 1,
            "protocol": protocol,
            "system": card.text,
            "schema": prompts.schema(card.schema),
            "messages": [{"role": "user", "content": content} for content in contents],
        }
    )


def settings(url: str, **section: Any) -> Settings:
    values = {"base_url": url, "model": "local-model", "timeout_seconds": 5, **section}
    return Settings.model_validate({"openai_compatible": values})


def provider(url: str, **section: Any) -> Provider:
    return open_provider("openai_compatible", settings(url, **section))


class Remembering:
    """The ledger's side of attempts, without a ledger."""

    request, attempt = "R1", 1

    def __init__(self) -> None:
        self.wires: list[bytes | None] = []

    def __call__(self, wire: bytes | None, cache: str = "") -> None:
        self.wires.append(wire)

    def record(self, *events: Event, payloads: tuple[bytes, ...] = ()) -> None:
        raise AssertionError("nothing beside the attempt is recorded")

    def now(self) -> str:
        return NOW


def ask(asked: Provider, data: bytes | None = None) -> Received:
    """Ask once, and leave no connection open."""
    try:
        return asked.ask(data or document(), Remembering())
    finally:
        asked.release(Remembering())


def failure_of(asked: Provider, data: bytes | None = None) -> Failure:
    """Ask once; return the failure it ends in."""
    with pytest.raises(Failure) as caught:
        ask(asked, data)
    return caught.value
