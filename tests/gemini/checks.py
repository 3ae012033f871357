"""What the service refuses in a request that is well-formed, one function a rule or group."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from tests.gemini.messages import snake
from tests.gemini.rules import Json, Refusal
from tests.gemini.state import Cache, ModelRow

NAME = re.compile(r"(?:cachedContents/)?([A-Za-z0-9_-]+)\Z")
TTL = re.compile(r"(-?\d{1,12}(?:\.\d{1,9})?)s\Z")
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)\Z")
DATA = (
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
)
BESIDE_CACHE = ("systemInstruction", "tools", "toolConfig")
ROLES = frozenset({"user", "model", "function"})
PENALTIES = ("presencePenalty", "frequencyPenalty")


def generate(fields: Json, model: str, row: ModelRow, cache: Cache | None, wording: str) -> None:
    """Check one generate request; the cache it names is alive."""
    if cache and any(name in fields for name in BESIDE_CACHE):
        raise Refusal(f"beside_cache_{wording}")
    if cache and cache.model != model:
        raise Refusal("other_model", model=model, other=cache.model)
    if not fields.get("contents"):
        raise Refusal("no_contents")
    contents(fields, "GenerateContentRequest")
    if not row.prefill and ends_with_model(fields):
        raise Refusal("ends_with_model")
    config: Json = fields.get("generationConfig") or {}
    schema(config)
    thinking(config.get("thinkingConfig") or {}, row)
    sampling(config, row)


def contents(fields: Json, message: str) -> None:
    """Check roles, and that no turn and no part is empty."""
    for path, turn in turns(fields):
        if turn.get("role", "user") not in ROLES:
            raise Refusal("bad_role")
        if not turn.get("parts"):
            raise Refusal("no_parts", message=message, path=path)
        for index, part in enumerate(turn["parts"]):
            if not any(part.get(name) for name in DATA):
                raise Refusal("empty_part", message=message, path=f"{path}.parts[{index}]")


def turns(fields: Json) -> Iterator[tuple[str, Json]]:
    if "systemInstruction" in fields:
        yield "system_instruction", fields["systemInstruction"] | {"role": "user"}
    for index, turn in enumerate(fields.get("contents") or []):
        yield f"contents[{index}]", turn


def ends_with_model(fields: Json) -> bool:
    listed = fields.get("contents") or []
    return bool(listed) and listed[-1].get("role") == "model"


def schema(config: Json) -> None:
    both = [name for name in ("responseSchema", "responseJsonSchema") if name in config]
    if len(both) == 2:
        raise Refusal("two_schemas")
    mime = config.get("responseMimeType") or "text/plain"
    if both and mime not in {"application/json", "text/x.enum"}:
        raise Refusal("schema_without_json", mime=mime)


def thinking(config: Json, row: ModelRow) -> None:
    budget, level = config.get("thinkingBudget"), config.get("thinkingLevel")
    if budget is not None and level is not None:
        raise Refusal("budget_and_level")
    if budget is not None and row.thinking == "level":
        raise Refusal("no_thinking_budget")
    if budget == 0 and row.thinks_always:
        raise Refusal("thinks_always")
    allowed = row.levels if row.thinking in {"level", "both"} else ()
    if level is not None and str(level).upper() not in allowed:
        raise Refusal("no_thinking_level")


def sampling(config: Json, row: ModelRow) -> None:
    limit = config.get("maxOutputTokens")
    if limit is not None and limit <= 0:
        raise Refusal("no_output_room")
    if not row.strict_sampling:
        return
    if any(config.get(name) for name in PENALTIES):
        raise Refusal("no_penalty")
    if config.get("candidateCount", 1) != 1:
        raise Refusal("one_candidate")


def creation(fields: Json, model: str, version: str, row: ModelRow) -> None:
    """Check a new cache, but for its expiry and size."""
    if not row.explicit_cache:
        raise Refusal("no_explicit_cache", model=model, version=version)
    if len(str(fields.get("displayName", ""))) > 128:
        raise Refusal("long_display_name")
    if not fields.get("contents") and "systemInstruction" not in fields:
        raise Refusal("nothing_to_cache")
    contents(fields, "CreateCachedContentRequest.cached_content")
    if ends_with_model(fields):
        raise Refusal("ends_with_model")


def expiry(fields: Json, now: datetime) -> datetime | None:
    """Return the moment that ttl or expireTime states; None when neither does."""
    stated = [name for name in ("ttl", "expireTime") if name in fields]
    if len(stated) == 2:
        raise Refusal("one_of", path="cached_content", group="expiration", name="expireTime")
    if not stated:
        return None
    read = _after if stated == ["ttl"] else _at
    moment = read(str(fields[stated[0]]), now, f"cached_content.{snake(stated[0])}")
    if moment <= now:
        raise Refusal("already_over")
    return moment


def _after(text: str, now: datetime, path: str) -> datetime:
    if not (found := TTL.match(text)):
        raise Refusal("bad_ttl", path=path)
    try:
        return now + timedelta(seconds=float(found[1]))
    except OverflowError:
        raise Refusal("bad_ttl", path=path) from None


def _at(text: str, now: datetime, path: str) -> datetime:
    try:
        if not TIMESTAMP.match(text):
            raise ValueError(text)
        return datetime.fromisoformat(text)
    except ValueError:
        raise Refusal("bad_timestamp", path=path, value=text) from None


def cache_id(name: str) -> str:
    """Return the identifier in a cache's name."""
    if not (found := NAME.match(name)):
        raise Refusal("bad_cache_name", name=name)
    return found[1]
