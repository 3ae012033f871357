"""What the model would say: queued replies, a responder, and the usage that is billed for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.gemini.rules import Json, to_json
from tests.gemini.state import Cache, Exchange

Tokens = Callable[[str], int]

HTML = "text/html; charset=UTF-8"

# Reasons that come with no content at all.
WITHOUT_CONTENT = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"})


class Answer(NamedTuple):
    """One HTTP reply, before it is sent."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json; charset=UTF-8"


@dataclass(frozen=True)
class Reply:
    """One reply of a model.

    `thoughts` is a number of tokens, or a text, which is shown when the request asks for thoughts.
    `parts` replaces the text; an empty list gives content without parts. `usage` is laid over the
    computed usage, None taking a member away; `candidate` likewise over the candidate. `block`
    gives a blocked prompt: no candidate. `body` is sent as it is.
    """

    text: str = ""
    thoughts: int | str = 0
    finish: str | None = "STOP"
    parts: Sequence[Json] | None = None
    usage: Mapping[str, object] = field(default_factory=dict)
    candidate: Mapping[str, object] = field(default_factory=dict)
    block: str | None = None
    body: bytes | None = None


def continued(*texts: str, **reply: Any) -> list[Reply]:
    """Return the hops of one answer: all but the last carry a continuation token."""
    *hops, last = texts
    more = {"continuationToken": "bW9yZQ=="}
    return [Reply(text=text, finish="CONTINUATION", candidate=more, **reply) for text in hops] + [
        Reply(text=last, **reply)
    ]


@dataclass(frozen=True)
class Request:
    """A generate request as a responder sees it: what the cache holds comes first."""

    model: str
    version: str
    json: Json  # as it arrived
    fields: Json  # with lowerCamel names
    cache: Cache | None
    exchange: Exchange

    @property
    def config(self) -> Json:
        """The generation configuration, empty when there is none."""
        return self.fields.get("generationConfig") or {}

    @property
    def system(self) -> str:
        """The system text, from the cache or from the request; empty when there is none."""
        held = self.cache.content if self.cache else {}
        return text_of(held.get("systemInstruction") or self.fields.get("systemInstruction"))

    @property
    def contents(self) -> list[Json]:
        """All turns, the cached ones first."""
        held = self.cache.content.get("contents") if self.cache else None
        return [*(held or []), *(self.fields.get("contents") or [])]

    @property
    def texts(self) -> list[str]:
        """The text of each user turn, the cached ones first."""
        return [text_of(turn) for turn in self.contents if turn.get("role", "user") == "user"]

    @property
    def schema(self) -> Json | None:
        """The response schema, in whichever member it came."""
        config = self.config
        return config.get("responseJsonSchema") or config.get("responseSchema")


def text_of(content: object) -> str:
    """Join the text parts of one content."""
    parts = content.get("parts", []) if isinstance(content, dict) else []
    return "".join(part.get("text", "") for part in parts)


class Prompt(NamedTuple):
    """The size of a prompt in tokens, the cached part of it included."""

    tokens: int
    cached: int


def content_tokens(content: Json, count: Tokens) -> int:
    """Count system, turns, tools and tool configuration, each text part on its own."""
    turns = [content.get("systemInstruction"), *(content.get("contents") or [])]
    parts = [part for turn in turns if turn for part in turn.get("parts", [])]
    total = sum(count(part["text"] if "text" in part else compact(part)) for part in parts)
    return total + sum(
        count(compact(content[name])) for name in ("tools", "toolConfig") if content.get(name)
    )


def rendered(request: Request) -> bytes:
    """Write a prompt as one run of bytes; the schema stands first (issue: python-genai#1148)."""
    first = [request.schema, request.fields.get("tools"), request.system]
    return "\n".join(
        compact(value) for value in (*first, *(turn.get("parts") for turn in request.contents))
    ).encode("utf-8", "surrogatepass")


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def write(reply: Reply, request: Request, prompt: Prompt, number: int, count: Tokens) -> Answer:
    """Write the reply of a model, its text cut where the request's output limit is reached."""
    if reply.body is not None:
        return Answer(200, reply.body)
    thoughts = count(reply.thoughts) if isinstance(reply.thoughts, str) else reply.thoughts
    text, thoughts, cut = limited(reply.text, thoughts, request.config, count)
    document: Json = {}
    if reply.block:
        document["promptFeedback"] = {"blockReason": reply.block}
        spent = usage(prompt, 0, 0)
    else:
        parts = written_parts(reply, request, text, cut=cut)
        document["candidates"] = [candidate(reply, parts, cut=cut)]
        said = sum(count(str(part.get("text", ""))) for part in parts if not part.get("thought"))
        spent = usage(prompt, said, thoughts)
    document["usageMetadata"] = laid_over(spent, reply.usage)
    document |= {"modelVersion": request.model, "responseId": f"r{number:06}"}
    return Answer(200, to_json(document))


def limited(text: str, thoughts: int, config: Json, count: Tokens) -> tuple[str, int, bool]:
    """Cut thoughts and text to maxOutputTokens; say whether anything was cut."""
    limit = config.get("maxOutputTokens")
    if not isinstance(limit, int) or thoughts + count(text) <= limit:
        return text, thoughts, False
    thoughts = min(thoughts, limit)
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[:middle]) <= limit - thoughts:
            low = middle
        else:
            high = middle - 1
    return text[:low], thoughts, True


def written_parts(reply: Reply, request: Request, text: str, *, cut: bool) -> list[Json]:
    if reply.parts is not None:
        return list(reply.parts)
    thinking = request.config.get("thinkingConfig") or {}
    shown = isinstance(reply.thoughts, str) and thinking.get("includeThoughts")
    parts: list[Json] = [{"text": reply.thoughts, "thought": True}] if shown else []
    if text or not (cut or reply.finish in WITHOUT_CONTENT):
        parts.append({"text": text})
    return parts


def candidate(reply: Reply, parts: list[Json], *, cut: bool) -> Json:
    result: Json = {}
    if parts or reply.finish not in WITHOUT_CONTENT:
        result["content"] = {"parts": parts, "role": "model"} if parts else {"role": "model"}
    result |= {"finishReason": "MAX_TOKENS" if cut else reply.finish, "index": 0}
    if reply.finish is None:
        del result["finishReason"]
    return laid_over(result, reply.candidate)


def usage(prompt: Prompt, said: int, thoughts: int) -> Json:
    """Return the usage: the cached part lies within the prompt, a count of 0 is left out."""
    counts: Json = {
        "promptTokenCount": prompt.tokens,
        "candidatesTokenCount": said,
        "totalTokenCount": prompt.tokens + said + thoughts,
        "cachedContentTokenCount": prompt.cached,
        "promptTokensDetails": text_details(prompt.tokens),
        "cacheTokensDetails": text_details(prompt.cached),
        "thoughtsTokenCount": thoughts,
        "serviceTier": "standard",
    }
    return {name: value for name, value in counts.items() if value}


def text_details(tokens: int) -> list[Json]:
    return [{"modality": "TEXT", "tokenCount": tokens}] if tokens else []


def laid_over(document: Json, changes: Mapping[str, object]) -> Json:
    """Return the document with members replaced, or taken away where the change is None."""
    return {name: value for name, value in {**document, **changes}.items() if value is not None}
