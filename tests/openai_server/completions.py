"""What the local chat completions server says: completions, refusals, usage."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import prompts
from phases.providers.offline import answer
from tests.gemini.replies import Answer
from tests.gemini.state import common_prefix

Json = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """A request as a responder sees it."""

    body: Json

    def prompt(self) -> bytes:
        """Return what a chat template would make of the messages."""
        texts = (f"<{m['role']}>{m['content']}</>" for m in self.body["messages"])
        return "".join(texts).encode()

    def document(self) -> Json:
        """Return the request document that these messages carry."""
        system, *users = [message["content"] for message in self.body["messages"]]
        named = next(name for name in prompts.protocols() if _is_of(system, name))
        texts = [line for user in users for line in user.split("\n")]
        return {
            "format": 1,
            "protocol": named,
            "system": prompts.card(named).text,
            "schema": prompts.schema(prompts.card(named).schema),
            "messages": [{"role": "user", "content": json.loads(text)} for text in texts],
        }


def _is_of(system: str, protocol: str) -> bool:
    text = prompts.card(protocol).text
    return system == text or system.startswith(f"{text}\n\n")


def offline_analyst(asked: Asked) -> str:
    """Answer as the offline analyst does, from what arrived over HTTP and nothing else."""
    return json.dumps(answer(asked.document()))


@dataclass(frozen=True)
class Completion:
    """One reply of a model.

    `message`, `choice` and `usage` are laid over the usual ones, None taking a member away;
    `body` is sent as it is.
    """

    text: str | None = ""
    finish: str | None = "stop"
    message: Mapping[str, object] = field(default_factory=dict)
    choice: Mapping[str, object] = field(default_factory=dict)
    usage: Mapping[str, object] = field(default_factory=dict)
    body: bytes | None = None


def completion(reply: Completion, asked: Asked, prompt: int, cached: int) -> Json:
    """Return a completion document, as llama.cpp's server writes it."""
    message = {"role": "assistant", "content": reply.text} | reply.message
    choice = {"finish_reason": reply.finish, "index": 0, "message": message} | reply.choice
    said = tokens((reply.text or "").encode())
    usage = {
        "completion_tokens": said,
        "prompt_tokens": prompt,
        "total_tokens": prompt + said,
        "prompt_tokens_details": {"cached_tokens": cached},
    } | reply.usage
    return {
        "choices": [choice],
        "created": 1_715_938_200,
        "model": asked.body.get("model", "local-model"),
        "object": "chat.completion",
        "usage": {name: value for name, value in usage.items() if value is not None},
        "id": "chatcmpl-17",
    }


def error(
    status: int,
    message: str,
    *,
    kind: str = "invalid_request_error",
    code: str | None = None,
    param: str | None = None,
    headers: tuple[tuple[str, str], ...] = (),
) -> Answer:
    """Return an error as OpenAI words it."""
    said = {"message": message, "type": kind, "param": param, "code": code}
    return Answer(status, json.dumps({"error": said}).encode(), headers)


@dataclass
class Prompts:
    """Earlier prompts: what a new one begins with is read from a cache, in steps of one token."""

    seen: list[bytes] = field(default_factory=list)

    def hit(self, prompt: bytes) -> tuple[int, int]:
        """Remember a prompt; return its tokens, and how many of them were there before."""
        cached = max((common_prefix(old, prompt) for old in self.seen), default=0) // 4
        self.seen.append(prompt)
        return tokens(prompt), min(cached, tokens(prompt) - 1)  # the last is always evaluated


def tokens(data: bytes) -> int:
    """Count four bytes as one token: not a model's count, but the same always."""
    return math.ceil(len(data) / 4)


# Refusals of forms, worded as the servers do ----------------------------------------------------


def _no_schema(asked: Asked) -> Answer | None:
    if "response_format" not in asked.body:
        return None
    return error(400, "This response_format type is unavailable now")


def _no_max_tokens(asked: Asked) -> Answer | None:
    if "max_tokens" not in asked.body:
        return None
    return error(
        400,
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        "'max_completion_tokens' instead.",
        param="max_tokens",
        code="unsupported_parameter",
    )


def _alternating(asked: Asked) -> Answer | None:
    roles = [message["role"] for message in asked.body["messages"]]
    if ("user", "user") not in itertools.pairwise(roles):
        return None
    return error(
        400,
        "After the optional system message, conversation roles must alternate "
        "user/assistant/user/assistant/...",
        kind="BadRequestError",
    )


QUIRKS: dict[str, Callable[[Asked], Answer | None]] = {
    "no_schema": _no_schema,
    "no_max_tokens": _no_max_tokens,
    "alternating": _alternating,
}
