"""The service's refusals: one table of status, text and where each is known from.

A source is "docs" (a page or reference of the vendor), "issue" (a report or a recording of the
real service, named) or "assumption" (nobody is known to have seen it; a live run decides).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

Json = dict[str, Any]

KINDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class Rule(NamedTuple):
    status: int
    text: str
    source: str


RECORDED = "issue: a recording of the developer service, 2026-09-07, gemini-3.5-flash-lite"

RULES = {
    # Who is asking.
    "key_missing": Rule(
        403,
        "Method doesn't allow unregistered callers (callers without established identity). "
        "Please use API Key or other form of API consumer identity to call this API.",
        "issue: googleapis/js-genai#898",
    ),
    "key_invalid": Rule(
        400,
        "API key not valid. Please pass a valid API key.",
        "issue: seen in many reports, with reason API_KEY_INVALID",
    ),
    # What is asked for.
    "no_route": Rule(404, "", "docs: an unknown path is an HTML page"),
    "no_streaming": Rule(
        501, "The local server does not stream.", "assumption: ours; the service streams"
    ),
    "model_missing": Rule(
        404,
        "models/{model} is not found for API version {version}, or is not supported for {method}. "
        "Call ListModels to see the list of available models and their supported methods.",
        "issue: openclaw#14036, thedotmack/claude-mem#1148",
    ),
    "no_explicit_cache": Rule(
        404,
        "models/{model} is not found for API version {version}, or is not supported for "
        "createCachedContent. Call ListModels to see the list of available models and their "
        "supported methods.",
        "issue: deprecated-generative-ai-python#726 (2.0); for 4.x an assumption",
    ),
    # How it is written.
    "not_json": Rule(
        400, "Invalid JSON payload received. {detail}", "issue: the prefix; the rest is ours"
    ),
    "unknown_field": Rule(
        400,
        'Invalid JSON payload received. Unknown name "{name}"{at}: Cannot find field.',
        "issue: python-genai#1313",
    ),
    "spelled_twice": Rule(
        400,
        'Invalid JSON payload received. Field "{name}"{at} is set in both spellings.',
        "assumption",
    ),
    "wrong_type": Rule(400, "Invalid value at '{path}' ({kind}), {value}", "issue: seen often"),
    "one_of": Rule(
        400,
        "Invalid value at '{path}' (oneof), oneof field '{group}' is already set. "
        "Cannot set '{name}'",
        "assumption: the service's JSON reader says so for other messages",
    ),
    # What is said.
    "no_contents": Rule(
        400,
        "* GenerateContentRequest.contents: contents is not specified\n",
        "issue: seen in many reports",
    ),
    "no_parts": Rule(
        400,
        "* {message}.{path}.parts: contents.parts must not be empty.\n",
        "issue: seen in many reports",
    ),
    "empty_part": Rule(
        400,
        "* {message}.{path}.data: required oneof field 'data' must have one initialized field\n",
        "issue: seen in many reports, empty text included",
    ),
    "bad_role": Rule(400, "Please use a valid role: user, model.", "issue: seen in many reports"),
    "ends_with_model": Rule(
        400,
        "Requests ending with a model turn are not supported.",
        "issue: crewAI#6984 and LiteLLM's source, for caches too",
    ),
    "two_schemas": Rule(
        400,
        "Only one of response_schema and response_json_schema may be set.",
        "docs: exclusive; the text is an assumption",
    ),
    "schema_without_json": Rule(
        400,
        "Response_schema with a response mime type '{mime}' is unsupported",
        "issue: seen in reports",
    ),
    "no_thinking_budget": Rule(
        400,
        "Thinking budget is not supported for this model. Use thinking level instead.",
        "issue: reports on Gemini 4",
    ),
    "no_thinking_level": Rule(
        400, "Thinking level is not supported for this model.", "issue: seen in many reports"
    ),
    "budget_and_level": Rule(
        400,
        "You can only set only one of thinking budget and thinking level.",
        "docs: exclusive; the text is an assumption",
    ),
    "thinks_always": Rule(
        400,
        "Budget 0 is invalid. This model only works in thinking mode.",
        "issue: seen in many reports on 2.5-pro",
    ),
    "no_penalty": Rule(400, "Penalty is not enabled for this model", "issue: seen in many reports"),
    "one_candidate": Rule(
        400, "Multiple candidates is not enabled for this model", "docs: 4.x; text an assumption"
    ),
    "no_output_room": Rule(
        400, "max_output_tokens must be positive.", "docs: positive; the text is an assumption"
    ),
    "prompt_too_long": Rule(
        400,
        "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit}).",
        "issue: seen in many reports",
    ),
    # Caches: making them.
    "no_model": Rule(400, "* CachedContent.model: model is not specified\n", "assumption"),
    "nothing_to_cache": Rule(
        400,
        "CachedContent must have contents or a system instruction.",
        "docs: one is needed; the text is an assumption",
    ),
    "long_display_name": Rule(
        400,
        "* CachedContent.display_name: display_name must be at most 128 characters.\n",
        "docs: 128 characters; the text is an assumption",
    ),
    "bad_ttl": Rule(
        400,
        "Invalid value at '{path}' (type.googleapis.com/google.protobuf.Duration), "
        "Field 'ttl', Illegal duration format; duration must end with 's'",
        "docs: the format; the text is an assumption",
    ),
    "bad_timestamp": Rule(
        400,
        "Invalid value at '{path}' (type.googleapis.com/google.protobuf.Timestamp), "
        "Field 'expireTime', Invalid time format: {value}",
        "docs: RFC 3339 with a zone; the text is an assumption",
    ),
    "already_over": Rule(400, "expire_time must be in the future.", "assumption"),
    "too_small_developer": Rule(
        400,
        "Cached content is too small. total_token_count={tokens}, min_total_token_count={least}",
        RECORDED,
    ),
    "too_small_platform": Rule(
        400,
        "The cached content is of {tokens} tokens. The minimum token count to start caching is "
        "{least}.",
        "issue: google/adk-python#5847",
    ),
    # Caches: using them.
    "beside_cache_developer": Rule(
        400,
        "CachedContent can not be used with GenerateContent request setting system_instruction, "
        "tools or tool_config.\n\nProposed fix: move those values to CachedContent from "
        "GenerateContent request.",
        RECORDED,
    ),
    "beside_cache_platform": Rule(
        400,
        "Tool config, tools and system instruction should not be set in the request when using "
        "cached content.",
        "issue: 567-labs/instructor#2580",
    ),
    "other_model": Rule(
        400,
        "Model used by GenerateContent request (models/{model}) and CachedContent (models/{other}) "
        "has to be the same.",
        "issue: seen in many reports",
    ),
    "bad_cache_name": Rule(
        400,
        "Invalid CachedContent name: {name}.",
        "docs: malformed names are refused; the text is an assumption",
    ),
    "cache_missing_403": Rule(403, "CachedContent not found (or permission denied)", RECORDED),
    "cache_missing_404": Rule(
        404,
        "Not found: cached content metadata for {name}.",
        "issue: Agent Platform, langchain-google#1148",
    ),
    "cache_expired_400": Rule(
        400, "Cache content {name} is expired.", "issue: Agent Platform, clawvisor#360"
    ),
    "only_expiry": Rule(
        400,
        "Only the expiration of a CachedContent can be updated.",
        "docs: nothing else changes; the text is an assumption",
    ),
    "bad_page_token": Rule(400, "Invalid page token.", "assumption"),
    "exclusive_count": Rule(
        400,
        "contents and generate_content_request are mutually exclusive.",
        "docs: exclusive; the text is an assumption",
    ),
}


class Refusal(Exception):
    """A request that the service answers with an error: the rule, its text filled, details."""

    def __init__(self, rule: str, details: Iterable[Json] = (), **values: object) -> None:
        self.rule = rule
        self.status = RULES[rule].status
        self.message = RULES[rule].text.format(**values)
        self.details = list(details)
        super().__init__(f"{rule}: {self.message}")


def to_json(value: object) -> bytes:
    """Write a reply as the service does: indented, not escaped, a newline at the end."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def error_body(
    code: int, message: str, *, kind: str | None = None, details: Iterable[Json] = ()
) -> bytes:
    """Write the service's error document; `kind` is the canonical status name."""
    error: Json = {"code": code, "message": message, "status": kind or KINDS.get(code, "UNKNOWN")}
    if details := list(details):
        error["details"] = details
    return to_json({"error": error})


def detail(name: str, **members: object) -> Json:
    """Write one error detail, such as `detail("RetryInfo", retryDelay="53s")`."""
    return {"@type": f"type.googleapis.com/google.rpc.{name}", **members}
