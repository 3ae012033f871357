"""The google-genai client, built with everything explicit, used for one exchange at a time.

Environment variables would otherwise choose another service, address, version or proxy; redirects
would carry the key to another origin; one call could become three. The client's own reading of
answers is not used at all: `transport.Line` keeps what really came.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from phases.providers.base import Failure
from phases.providers.credentials import Key, answer_without_key, without_key
from phases.providers.gemini.parts import Parts
from phases.providers.transport import BeforeSend, Exchanged, Line, certificates, unrecorded

if TYPE_CHECKING:
    from google import genai

HANDLE = re.compile(r"cachedContents/[A-Za-z0-9_-]{1,128}")
"""A handle comes from the network and goes into an address: nothing else may."""

CLIENT = f"google-genai/{version('google-genai')}"


@dataclass
class Client:
    """Calls of the service. Each returns what came back, raw, or raises `Failure`.

    Neither holds the key, wherever a server may have put it.
    """

    key: Key
    base_url: str
    api_version: str
    line: Line = field(default_factory=Line)

    def generate(
        self,
        model: str,
        parts: Parts,
        options: dict[str, Any],
        handle: str,
        deadline_seconds: float,
        before_send: BeforeSend,
    ) -> Exchanged:
        """Ask for an answer; with a handle only the live part goes out."""
        config = self._config(parts, options, handle)
        first = parts.live if handle or not parts.prefix else (parts.prefix, *parts.live)
        contents: Any = [_content(first), *(_content((text,)) for text in parts.feedback)]
        return self._exchange(
            deadline_seconds,
            before_send,
            lambda: self._genai.models.generate_content(
                model=model, contents=contents, config=config
            ),
        )

    def create_cache(
        self,
        model: str,
        parts: Parts,
        display_name: str,
        ttl_seconds: int,
        deadline_seconds: float,
        before_send: BeforeSend,
    ) -> Exchanged:
        """Ask for a cache of system text and prefix."""
        from google.genai import types

        config = types.CreateCachedContentConfig(
            ttl=f"{ttl_seconds}s",
            display_name=display_name,
            system_instruction=parts.system,
            contents=[_content((parts.prefix,))] if parts.prefix else None,
        )
        return self._exchange(
            deadline_seconds,
            before_send,
            lambda: self._genai.caches.create(model=model, config=config),
        )

    def delete_cache(self, handle: str, deadline_seconds: float) -> Exchanged:
        """Ask to delete a cache."""
        return self._exchange(
            deadline_seconds, unrecorded, lambda: self._genai.caches.delete(name=handle)
        )

    def list_caches(self, page_token: str, deadline_seconds: float) -> Exchanged:
        """Ask for one page of the caches of this key."""
        from google.genai import types

        config = types.ListCachedContentsConfig(page_size=100, page_token=page_token or None)
        return self._exchange(
            deadline_seconds, unrecorded, lambda: self._genai.caches.list(config=config)
        )

    def model(self, model: str, deadline_seconds: float) -> Exchanged:
        """Ask what is known of a model; costs nothing."""
        return self._exchange(
            deadline_seconds, unrecorded, lambda: self._genai.models.get(model=model)
        )

    def _exchange(
        self, deadline_seconds: float, before_send: BeforeSend, call: Callable[[], object]
    ) -> Exchanged:
        _ = self._genai  # importing it takes a second or two, which is not the server's
        self.line.expect(deadline_seconds, before_send)
        call()
        try:
            got = self.line.take()
        except Failure as failure:
            raise without_key(failure, self.key) from None
        return answer_without_key(got, self.key)

    @cached_property
    def _genai(self) -> genai.Client:
        from google import genai
        from google.genai import types

        logging.getLogger("google_genai._api_client").addFilter(_is_true)
        return genai.Client(
            vertexai=False,
            api_key=self.key.reveal(),
            http_options=types.HttpOptions(
                base_url=self.base_url,
                api_version=self.api_version,
                retry_options=None,
                client_args={
                    "transport": self.line.transport(),
                    "follow_redirects": False,
                    "verify": certificates(),
                },
                async_client_args={"verify": certificates(), "ssl": certificates()},
            ),
        )

    def _config(self, parts: Parts, options: dict[str, Any], handle: str) -> Any:
        from google.genai import types

        return types.GenerateContentConfig(
            system_instruction=None if handle else parts.system,
            cached_content=handle or None,
            response_mime_type="application/json",
            response_json_schema=parts.schema if options.get("response_schema") else None,
            max_output_tokens=options["max_output_tokens"],
            temperature=options.get("temperature"),
            thinking_config=_thinking(options.get("thinking_level", "")),
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            automatic_continuation=False,
        )


def _is_true(record: logging.LogRecord) -> bool:
    """The client says that it uses a key of the environment: it does not, it was given one."""
    return "GOOGLE_API_KEY" not in record.getMessage()


def _thinking(level: str) -> Any:
    from google.genai import types

    if not level:
        return None
    return types.ThinkingConfig(thinking_level=types.ThinkingLevel(level.upper()))


def _content(texts: tuple[str, ...]) -> Any:
    from google.genai import types

    return types.Content(role="user", parts=[types.Part(text=text) for text in texts])
