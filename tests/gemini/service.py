"""The operations of the local service: a call in, an answer out; no sockets here."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from tests.gemini import checks, messages, replies
from tests.gemini.replies import HTML, Answer, Prompt, Reply, Request, Tokens
from tests.gemini.rules import Json, Refusal, detail, error_body, to_json
from tests.gemini.state import Cache, Clock, Exchange, ModelRow, Prompts, count_tokens

Responder = Callable[[Request], "str | Reply"]

METHODS = {"generate": "generateContent", "count": "countTokens", "create": "createCachedContent"}
CACHE_OPERATIONS = frozenset({"create", "list", "get", "patch", "delete"})
DEFAULT_TTL = timedelta(hours=1)
NO_PAGE = Answer(404, b"<html><title>Error 404 (Not Found)!!1</title></html>\n", (), HTML)


class Route(NamedTuple):
    method: str
    path: re.Pattern[str]
    operation: str


def _route(method: str, path: str, operation: str) -> Route:
    return Route(method, re.compile(path), operation)


ROUTES = (
    _route("POST", r"models/(?P<name>[^/:]+):generateContent", "generate"),
    _route("POST", r"models/(?P<name>[^/:]+):streamGenerateContent", "stream"),
    _route("POST", r"models/(?P<name>[^/:]+):countTokens", "count"),
    _route("GET", r"models(?:/(?P<name>[^/:]+))?", "models"),
    _route("POST", r"cachedContents", "create"),
    _route("GET", r"cachedContents", "list"),
    _route("GET", r"cachedContents/(?P<name>[^/]+)", "get"),
    _route("PATCH", r"cachedContents/(?P<name>[^/]+)", "patch"),
    _route("DELETE", r"cachedContents/(?P<name>[^/]+)", "delete"),
)


class Call(NamedTuple):
    """One request, routed."""

    operation: str  # none when no route fits
    version: str
    name: str  # of the model or the cache in the path
    query: Mapping[str, str]
    exchange: Exchange

    @property
    def key(self) -> str | None:
        """The key that came with it."""
        return self.exchange.headers.get("x-goog-api-key") or self.query.get("key")


@dataclass
class Service:
    """The service's state and its answers; every answer but a model's is made under one lock."""

    models: Mapping[str, ModelRow]
    keys: tuple[str, ...]
    clock: Clock
    prompts: Prompts
    missing_cache: str  # "403", "404", or "400": 400 for expired ones and 404 for others
    wording: str  # developer or platform
    early_expiry: timedelta
    tokens: Tokens = count_tokens
    responder: Responder = lambda request: "OK"
    queued: list[Reply] = field(default_factory=list)
    caches: list[Cache] = field(default_factory=list)
    answered: int = 0
    number: int = field(default_factory=itertools.count(1).__next__)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def answer(self, call: Call) -> Answer:
        """Answer one call; a refusal becomes an error document and is noted in the log."""
        try:
            self._admit(call)
            operation: Callable[[Call], Answer] = getattr(self, f"_{call.operation}")
            return operation(call)
        except Refusal as refusal:
            call.exchange.rule = refusal.rule
            if refusal.rule == "no_route":
                return NO_PAGE
            body = error_body(refusal.status, refusal.message, details=refusal.details)
            return Answer(refusal.status, body)

    def find(self, name: str) -> Cache | None:
        """Return the cache of that name or identifier, alive or not."""
        full = "cachedContents/" + name.removeprefix("cachedContents/")
        return next((cache for cache in self.caches if cache.name == full), None)

    def settle(self) -> None:
        """Note the end of every cache whose time is over."""
        for cache in self.caches:
            if cache.ended is None and not cache.alive(self.clock.now):
                cache.stop(self.clock.now, "expired")

    # Admission.

    def _admit(self, call: Call) -> None:
        if call.operation == "none":
            raise Refusal("no_route")
        if not call.key:
            raise Refusal("key_missing")
        if call.key not in self.keys:
            reason = {"reason": "API_KEY_INVALID", "domain": "googleapis.com"}
            service = {"metadata": {"service": "generativelanguage.googleapis.com"}}
            raise Refusal("key_invalid", details=[detail("ErrorInfo", **reason, **service)])

    def _row(self, call: Call, name: str) -> ModelRow:
        model = name.removeprefix("models/")
        row = self.models.get(model)
        if row is None or call.version not in row.versions:
            method = METHODS.get(call.operation, "generateContent")
            raise Refusal("model_missing", model=model, version=call.version, method=method)
        return row

    def _alive(self, call: Call, name: str) -> Cache:
        identifier = checks.cache_id(name)
        cache = self.find(identifier)
        if cache and cache.key == call.key and cache.alive(self.clock.now):
            return cache
        self.settle()
        owned = cache is not None and cache.key == call.key
        if self.missing_cache == "400" and owned and cache and cache.end == "expired":
            raise Refusal("cache_expired_400", name=identifier)
        status = "404" if self.missing_cache == "400" else self.missing_cache
        raise Refusal(f"cache_missing_{status}", name=identifier)

    # Models.

    def _stream(self, call: Call) -> Answer:
        raise Refusal("no_streaming")

    def _models(self, call: Call) -> Answer:
        if call.name:
            return Answer(200, to_json(_model(call.name, self._row(call, call.name))))
        served = {name: row for name, row in self.models.items() if call.version in row.versions}
        return Answer(200, to_json({"models": [_model(*item) for item in served.items()]}))

    def _generate(self, call: Call) -> Answer:
        with self.lock:
            request, row = self._request(call)
            prompt = self._prompt(request, row, str(call.key))
            self.answered += 1
            number = self.answered
            if request.cache:
                request.cache.uses += 1
            reply = self.queued.pop(0) if self.queued else None
        said = reply or self.responder(request)  # may take long, so outside the lock
        if isinstance(said, str):
            said = Reply(text=said)
        return replies.write(said, request, prompt, number, self.tokens)

    def _request(self, call: Call) -> tuple[Request, ModelRow]:
        row = self._row(call, call.name)
        raw = messages.parse(call.exchange.body)
        fields = messages.read("GenerateContentRequest", raw)
        named = fields.get("cachedContent")
        cache = self._alive(call, str(named)) if named else None
        checks.generate(fields, call.name, row, cache, self.wording)
        return Request(call.name, call.version, raw, fields, cache, call.exchange), row

    def _prompt(self, request: Request, row: ModelRow, key: str) -> Prompt:
        live = replies.content_tokens(request.fields, self.tokens)
        if request.schema is not None:
            live += self.tokens(replies.compact(request.schema))
        cached = request.cache.tokens if request.cache else 0
        if live + cached > row.input_limit:
            raise Refusal("prompt_too_long", tokens=live + cached, limit=row.input_limit)
        if request.cache is None:
            owner, whole = (request.model, key), replies.rendered(request)
            cached = self.prompts.hit(owner, whole, self.clock.now, row.implicit_min)
            return Prompt(live, min(cached, live))
        return Prompt(live + cached, cached)

    def _count(self, call: Call) -> Answer:
        with self.lock:
            self._row(call, call.name)
            fields = messages.read("CountTokensRequest", messages.parse(call.exchange.body))
            if len(fields) == 2:
                raise Refusal("exclusive_count")
            inner: Json = fields.get("generateContentRequest", fields)
            if not inner.get("contents"):
                raise Refusal("no_contents")
            total = replies.content_tokens(inner, self.tokens)
            details = replies.text_details(total)
            return Answer(200, to_json({"totalTokens": total, "promptTokensDetails": details}))

    # Caches.

    def _create(self, call: Call) -> Answer:
        with self.lock:
            fields = messages.read("CachedContent", messages.parse(call.exchange.body))
            if "model" not in fields:
                raise Refusal("no_model")
            model = str(fields["model"]).removeprefix("models/")
            row = self._row(call, model)
            checks.creation(fields, model, call.version, row)
            now = self.clock.now
            expires = checks.expiry(fields, now) or now + DEFAULT_TTL
            tokens = replies.content_tokens(fields, self.tokens)
            if tokens < row.min_cache_tokens:
                least = row.min_cache_tokens
                raise Refusal(f"too_small_{self.wording}", tokens=tokens, least=least)
            cache = Cache(
                name=f"cachedContents/{self._identifier()}",
                model=model,
                key=str(call.key),
                content={name: fields[name] for name in _HELD if name in fields},
                tokens=tokens,
                created=now,
                updated=now,
                expires=max(expires - self.early_expiry, now),
                display_name=str(fields.get("displayName", "")),
            )
            self.caches.append(cache)
            return Answer(200, to_json(cache.document()))

    def _identifier(self) -> str:
        """Forty lower-case letters and digits, as in a recorded run (issue: cookbook).

        The same in every run, and another in every server: an old handle fits no new one.
        """
        number = hashlib.sha256(f"{self.number} {len(self.caches)}".encode()).digest()
        return base64.b32hexencode(number).decode().lower()[:40]

    def _list(self, call: Call) -> Answer:
        with self.lock:
            alive = [c for c in self.caches if c.key == call.key and c.alive(self.clock.now)]
            start = _position(call.query.get("pageToken", ""))
            size = call.query.get("pageSize", "")
            end = start + (int(size) if size.isdecimal() and int(size) else 50)  # 50: assumption
            document: Json = {}
            if page := alive[start:end]:
                document["cachedContents"] = [cache.document() for cache in page]
            if end < len(alive):
                document["nextPageToken"] = base64.urlsafe_b64encode(f"at {end}".encode()).decode()
            return Answer(200, to_json(document))

    def _get(self, call: Call) -> Answer:
        with self.lock:
            return Answer(200, to_json(self._alive(call, call.name).document()))

    def _patch(self, call: Call) -> Answer:
        with self.lock:
            cache = self._alive(call, call.name)
            fields = messages.read("CachedContent", messages.parse(call.exchange.body))
            expires = checks.expiry(fields, self.clock.now)
            if fields.keys() - {"ttl", "expireTime", "name"} or expires is None:
                raise Refusal("only_expiry")
            cache.updated = self.clock.now
            cache.expires = max(expires - self.early_expiry, cache.updated)
            return Answer(200, to_json(cache.document()))

    def _delete(self, call: Call) -> Answer:
        with self.lock:
            self._alive(call, call.name).stop(self.clock.now, "deleted")
            return Answer(200, to_json({}))


_HELD = ("contents", "systemInstruction", "tools", "toolConfig")


def _model(name: str, row: ModelRow) -> Json:
    methods = ["generateContent", "countTokens"]
    return {
        "name": f"models/{name}",
        "version": "001",
        "displayName": name,
        "inputTokenLimit": row.input_limit,
        "outputTokenLimit": row.output_limit,
        "supportedGenerationMethods": methods + ["createCachedContent"] * row.explicit_cache,
        "thinking": True,
    }


def _position(token: str) -> int:
    try:
        found = re.fullmatch(rb"at (\d+)", base64.urlsafe_b64decode(token))
    except ValueError:
        found = None
    if token and not found:
        raise Refusal("bad_page_token")
    return int(found[1]) if found else 0
