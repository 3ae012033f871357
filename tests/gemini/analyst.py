"""What the local server was sent, put together again; the offline analyst as its model.

Written from docs/partitions and docs/guides, not with the provider's own code: that both agree on
every byte is the test.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import prompts
from ledger import canonical
from phases.providers.offline import answer
from projections.partitions import stable_case_v1
from tests.gemini.replies import Request

Json = dict[str, Any]

SCHEMA_WORDS = "\n\n" + prompts.wire("output_schema_v1") + "\n"


def document_of(request: Request) -> Json:
    """Return the request document that reached the server, cached part included."""
    system, _, schema = request.system.partition(SCHEMA_WORDS)
    card = next(c for c in map(prompts.card, prompts.protocols()) if c.text == system)
    if schema:
        assert json.loads(schema) == prompts.schema(card.schema)
    first, *rest = _messages(request)
    return {
        "format": 1,
        "protocol": card.name,
        "system": system,
        "schema": prompts.schema(card.schema),
        "messages": [{"role": "user", "content": content} for content in (first, *rest)],
    }


def _messages(request: Request) -> Iterable[Any]:
    """Yield the content of each message: two parts are joined to the first."""
    turns = [[part["text"] for part in turn["parts"]] for turn in request.contents]
    assert all(turn["role"] == "user" for turn in request.contents)
    if request.cache and request.cache.content.get("contents"):
        turns = [[*turns[0], *turns[1]], *turns[2:]]
    first = turns[0]
    if len(first) == 1:
        yield canonical.from_bytes(first[0].encode())
    else:
        prefix, words, live = first
        assert words == prompts.wire("stable_case_v1")
        yield stable_case_v1.join(json.loads(prefix), json.loads(live))
    for (text,) in turns[1:]:
        yield canonical.from_bytes(text.encode())


class Analyst:
    """A responder that keeps the digest of every document it was asked."""

    def __init__(self) -> None:
        self.digests: list[str] = []

    def __call__(self, request: Request) -> str:
        document = canonical.to_bytes(document_of(request))
        self.digests.append(canonical.digest(document))
        return canonical.to_bytes(answer(canonical.from_bytes(document))).decode()
