"""From a request document to what Gemini is sent: system text, stable part, live part, feedback.

Pure. Eligible requests always travel in two parts, cached or inline, so that a lost cache changes
the cost and nothing else. Everything else travels as the one document that it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import prompts
from projections.partitions import VERSIONS, Whole
from projections.requests import message_text, system_with_schema

STABLE_CASE = "stable_case_v1"
INSTRUCTIONS = "instructions_v1"

Json = dict[str, Any]

# What the service's JSON schema dialect knows (google-genai 3.6.1, `response_json_schema`); the
# rest, lengths and patterns above all, is checked when the answer is read.
_KNOWN = frozenset(
    (
        *("$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum"),
        *("items", "prefixItems", "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf"),
        *("properties", "additionalProperties", "required", "propertyOrdering"),
    )
)


@dataclass(frozen=True)
class Parts:
    """What one request consists of.

    Attributes:
        system: system text; with the output schema if it can be cached.
        prefix: the stable document; empty if there is none.
        live: texts of the first user message after the prefix.
        feedback: texts of further user messages.
        schema: the output schema in the service's dialect.
        partition: version of the partition if a cache could hold a part, else empty.
        content_id: content ID of the prefix.
        reason: why nothing can be cached: `not_a_candidate`, `shape_changed`; else empty.
        detail: one line about it.
    """

    system: str
    prefix: str
    live: tuple[str, ...]
    feedback: tuple[str, ...]
    schema: Json
    partition: str = ""
    content_id: str = ""
    reason: str = ""
    detail: str = ""

    def texts(self) -> tuple[str, ...]:
        """Return every text that is sent."""
        return (self.system, self.prefix, *self.live, *self.feedback)


def parts_of(document: Json, cache_context_version: str, *, schema_as_text: bool) -> Parts:
    """Return the parts of a request document.

    Args:
        document: the archived request document.
        cache_context_version: which partition is configured.
        schema_as_text: write the schema into the system text even where no cache can hold it.
    """
    first, *rest = [message["content"] for message in document["messages"]]
    feedback = tuple(map(message_text, rest))
    schema = in_dialect(document["schema"])
    explained = system_with_schema(document)
    if not is_candidate(document["protocol"]):
        system = explained if schema_as_text else document["system"]
        return Parts(system, "", (message_text(first),), feedback, schema, reason="not_a_candidate")
    split = VERSIONS[cache_context_version].partition(first)
    if isinstance(split, Whole):
        whole = (message_text(first),)
        return Parts(explained, "", whole, feedback, schema, "", "", "shape_changed", split.reason)
    name = split.prefix["id"]
    if cache_context_version == INSTRUCTIONS:
        return Parts(explained, "", (message_text(first),), feedback, schema, INSTRUCTIONS, name)
    live = (prompts.wire(STABLE_CASE), message_text(split.live))
    return Parts(explained, message_text(split.prefix), live, feedback, schema, STABLE_CASE, name)


def is_candidate(protocol: str) -> bool:
    """Tell whether a protocol's view can be divided; focused histories never are."""
    return prompts.card(protocol).partition == STABLE_CASE


def in_dialect(schema: Any) -> Any:
    """Return a schema without the keywords that the service does not know."""
    if isinstance(schema, list):
        return [in_dialect(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:  # nothing may stand beside it
        return {"$ref": schema["$ref"]}
    return {
        key: _named(value) if key in ("properties", "$defs") else in_dialect(value)
        for key, value in schema.items()
        if key in _KNOWN
    }


def _named(schemas: Json) -> Json:
    return {name: in_dialect(schema) for name, schema in schemas.items()}
