"""Strict reading of requests: both spellings of a name, nothing unknown, nothing twice.

The client mixes `thinkingConfig` with `include_thoughts` on one wire, so each member may be
written in lowerCamel or in its original form, but not in both.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.gemini.rules import Json, Refusal, detail

# A kind is "text", "flag", "whole", "number", "any", the name of a message, or [kind] for a list.
Kind = str | list[str]

MESSAGES: dict[str, dict[str, Kind]] = {
    "GenerateContentRequest": {
        "model": "text",
        "contents": ["Content"],
        "systemInstruction": "Content",
        "safetySettings": ["SafetySetting"],
        "tools": ["Tool"],
        "toolConfig": "ToolConfig",
        "labels": "any",
        "cachedContent": "text",
        "serviceTier": "text",
        "store": "flag",
        "continuationToken": "text",
        "generationConfig": "GenerationConfig",
    },
    "CountTokensRequest": {
        "contents": ["Content"],
        "generateContentRequest": "GenerateContentRequest",
    },
    "CachedContent": {
        "name": "text",
        "model": "text",
        "ttl": "text",
        "expireTime": "text",
        "displayName": "text",
        "contents": ["Content"],
        "systemInstruction": "Content",
        "tools": ["Tool"],
        "toolConfig": "ToolConfig",
    },
    "Content": {"role": "text", "parts": ["Part"]},
    "Part": {
        "text": "text",
        "thought": "flag",
        "thoughtSignature": "text",
        "inlineData": "any",
        "fileData": "any",
        "functionCall": "any",
        "functionResponse": "any",
        "executableCode": "any",
        "codeExecutionResult": "any",
        "videoMetadata": "any",
        "mediaResolution": "any",
        "partMetadata": "any",
    },
    "SafetySetting": {"category": "text", "threshold": "text"},
    "Tool": {
        "functionDeclarations": ["FunctionDeclaration"],
        "googleSearch": "any",
        "googleSearchRetrieval": "any",
        "googleMaps": "any",
        "codeExecution": "any",
        "computerUse": "any",
        "fileSearch": "any",
        "urlContext": "any",
        "mcpServers": "any",
    },
    "FunctionDeclaration": {
        "name": "text",
        "description": "text",
        "behavior": "text",
        "parameters": "any",
        "parametersJsonSchema": "any",
        "response": "any",
        "responseJsonSchema": "any",
    },
    "ToolConfig": {"functionCallingConfig": "any", "retrievalConfig": "any"},
    "GenerationConfig": {
        "temperature": "number",
        "topP": "number",
        "topK": "number",
        "candidateCount": "whole",
        "maxOutputTokens": "whole",
        "stopSequences": ["text"],
        "responseLogprobs": "flag",
        "logprobs": "whole",
        "presencePenalty": "number",
        "frequencyPenalty": "number",
        "seed": "whole",
        "responseMimeType": "text",
        "responseSchema": "any",
        "responseJsonSchema": "any",
        "responseModalities": ["text"],
        "mediaResolution": "text",
        "speechConfig": "any",
        "imageConfig": "any",
        "thinkingConfig": "ThinkingConfig",
        "enableEnhancedCivicAnswers": "flag",
    },
    "ThinkingConfig": {
        "includeThoughts": "flag",
        "thinkingBudget": "whole",
        "thinkingLevel": "text",
    },
}

TYPES = {
    "text": "TYPE_STRING",
    "flag": "TYPE_BOOL",
    "whole": "TYPE_INT32",
    "number": "TYPE_FLOAT",
}


def parse(body: bytes) -> Any:
    """Read JSON as the service does: no duplicate names, no NaN, nothing after the value."""
    try:
        return json.loads(body, object_pairs_hook=_members, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        raise Refusal("not_json", detail=str(error)) from None


def read(message: str, value: object, path: str = "") -> Json:
    """Return `value` as `message` with lowerCamel names and no null members.

    Raises Refusal for an unknown name, both spellings of one, or a value of another type.
    """
    if not isinstance(value, dict):
        raise _wrong(path or "request", f"type.googleapis.com/{message}", value)
    kinds = MESSAGES[message]
    camel = {snake(name): name for name in kinds} | {name: name for name in kinds}
    result: Json = {}
    for written, member in value.items():
        if written not in camel:
            raise _unknown(written, path)
        name = camel[written]
        if name in result:
            raise Refusal("spelled_twice", name=name, at=_at(path))
        if member is not None:
            result[name] = _read(kinds[name], member, _join(path, name))
    return result


def snake(name: str) -> str:
    """Write `maxOutputTokens` as `max_output_tokens`."""
    return re.sub("[A-Z]", lambda found: "_" + found[0].lower(), name)


def _read(kind: Kind, value: object, path: str) -> object:
    if isinstance(kind, list):
        if not isinstance(value, list):
            raise _wrong(path, "list", value)
        return [_read(kind[0], item, f"{path}[{index}]") for index, item in enumerate(value)]
    if kind in MESSAGES:
        return read(kind, value, path)
    if not _fits(kind, value):
        raise _wrong(path, TYPES[kind], value)
    return value


def _fits(kind: str, value: object) -> bool:
    match kind:
        case "text":
            return isinstance(value, str)
        case "flag":
            return isinstance(value, bool)
        case "whole":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
    return True


def _members(pairs: list[tuple[str, object]]) -> Json:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("An object has two members of one name.")
    return result


def _constant(name: str) -> object:
    raise ValueError(f"Unexpected token: {name}")


def _join(path: str, name: str) -> str:
    return f"{path}.{snake(name)}" if path else snake(name)


def _at(path: str) -> str:
    return f" at '{path}'" if path else ""


def _unknown(name: str, path: str) -> Refusal:
    refusal = Refusal("unknown_field", name=name, at=_at(path))
    violation = {"field": path, "description": refusal.message}
    refusal.details = [detail("BadRequest", fieldViolations=[violation])]
    return refusal


def _wrong(path: str, kind: str, value: object) -> Refusal:
    refusal = Refusal("wrong_type", path=path, kind=kind, value=json.dumps(value)[:80])
    violation = {"field": path, "description": refusal.message}
    refusal.details = [detail("BadRequest", fieldViolations=[violation])]
    return refusal
