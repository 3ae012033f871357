"""From a request document to what a chat completions server is sent. Pure.

The complete request goes out each time, its stable members first, so that a server's prefix cache
finds the same bytes again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from phases.settings import OpenAICompatible as Section
from projections.requests import message_text, system_with_schema

Json = dict[str, Any]


@dataclass(frozen=True)
class Form:
    """How a server wants requests written, as far as its refusals have shown.

    Attributes:
        schema_as_text: the output schema stands in the system text, not in `response_format`.
        limit: name of the member that limits the answer.
        joined: all user messages are one, a line each: a document has no line breaks of its own.
    """

    schema_as_text: bool = False
    limit: str = "max_tokens"
    joined: bool = False

    def learned(self, refusal: str) -> Form:
        """Return the form that a refusal asks for; this one if it asks for none."""
        return next((form for says, form in self._lessons() if says.search(refusal)), self)

    def _lessons(self) -> tuple[tuple[re.Pattern[str], Form], ...]:
        return (
            (_LIMIT, replace(self, limit="max_completion_tokens")),
            (_ROLES, replace(self, joined=True)),
            (_SCHEMA, replace(self, schema_as_text=True)),
        )


# What servers say, from their issues: OpenAI's newer models about `max_tokens`; the templates of
# Mistral and Gemma about two user messages in a row (vllm#6862); and about schemas "response_format
# type is unavailable", "JSON schema conversion failed", "failed to parse grammar" and the like.
_LIMIT = re.compile("max_completion_tokens")
_ROLES = re.compile("roles must alternate", re.IGNORECASE)
_SCHEMA = re.compile(
    r"response.?format|json.?schema|\bschema\b|grammar|structured.?output|guided", re.IGNORECASE
)


def body_of(document: Json, form: Form, model: str, section: Section) -> Json:
    """Return the body of a request; without a model's name the server takes the one it has."""
    named = {"model": model} if model else {}
    body = {**named, "messages": _messages(document, form), **_limits(form, section)}
    if not form.schema_as_text:
        body["response_format"] = _response_format(document)
    return {**body, "stream": False}


def parameters(form: Form, section: Section) -> Json:
    """Return what is sent beside model, messages and schema, as events record it."""
    schema = "text" if form.schema_as_text else "json_schema"
    joined = {"messages": "joined"} if form.joined else {}
    return {**_limits(form, section), "schema": schema, **joined}


def _limits(form: Form, section: Section) -> Json:
    heat = {} if section.temperature is None else {"temperature": section.temperature}
    return {form.limit: section.max_output_tokens, **heat}


def _messages(document: Json, form: Form) -> list[Json]:
    texts = [message_text(message["content"]) for message in document["messages"]]
    said = ["\n".join(texts)] if form.joined else texts
    system = system_with_schema(document) if form.schema_as_text else document["system"]
    users = [{"role": "user", "content": text} for text in said]
    return [{"role": "system", "content": system}, *users]


def _response_format(document: Json) -> Json:
    schema = document["schema"]
    named = {"name": document["protocol"], "strict": is_closed(schema), "schema": schema}
    return {"type": "json_schema", "json_schema": named}


def is_closed(schema: Any) -> bool:
    """Tell whether every object of a schema names all its members: what `strict` asks for.

    OpenAI refuses others under `strict`; local servers keep to the schema either way.
    """
    if isinstance(schema, list):
        return all(map(is_closed, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        return False
    return all(map(is_closed, schema.values()))
