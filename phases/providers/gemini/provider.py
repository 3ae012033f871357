"""Provider `gemini`: decides on the cache, sends, and keeps what came; nothing else.

A request whose cache is gone is refused once and goes out again in full as the next attempt. In
strict test mode any departure from the cached path ends the run instead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from ledger import canonical
from ledger.events import CacheDecided, CacheRejected
from phases.providers.base import (
    Check,
    Failure,
    Ledger,
    Provider,
    ProviderConfigurationError,
    Received,
    Refused,
    Reply,
    Sending,
    line,
)
from phases.providers.credentials import Key, read_key, without_key
from phases.providers.gemini import replies
from phases.providers.gemini.caches import Caches
from phases.providers.gemini.client import CLIENT, Client
from phases.providers.gemini.creating import Handle, Wanted
from phases.providers.gemini.deciding import Decision, Situation, decide
from phases.providers.gemini.models import capability
from phases.providers.gemini.parts import Parts, parts_of
from phases.providers.prices import GEMINI, configured, price_at
from phases.providers.transport import Exchanged, check_address, is_loopback_url
from phases.settings import Gemini as Section
from phases.settings import Settings
from projections.tokens import ESTIMATOR, estimated_tokens

CHECK_SECONDS = 15.0


class Plan(NamedTuple):
    """What one attempt sends."""

    parts: Parts
    handle: Handle | None


class Gemini(Provider):
    """The native Gemini API; one instance for one run."""

    name = "gemini"
    client = CLIENT

    def __init__(self, section: Section, key: Key) -> None:
        self._section = section
        self._key = key
        self._client = Client(key, section.base_url, section.api_version)
        self._caches = Caches(self._client)
        self._lost_theirs: set[tuple[str, str]] = set()  # request and key: goes out in full
        explicit = section.cache_mode != "off"
        self._fingerprint = key.fingerprint() if explicit else ""
        self.model = section.model
        self.endpoint = section.base_url
        self.api_version = section.api_version
        self.remote = not is_loopback_url(section.base_url)
        self.deadline_ms = section.timeout_seconds * 1000
        self.prices = configured(section.price, section.model) or GEMINI.get(section.model, ())
        self.parameters = _parameters(section)

    def ask(self, document: bytes, sending: Sending) -> Received:
        """Send a request document, by a cache where that is decided."""
        value = canonical.from_bytes(document)
        parts = parts_of(
            value,
            self._section.cache_context_version,
            schema_as_text=not self._section.response_schema,
        )
        _check_sendable(parts, sending.request)
        plan = self._plan(value, parts, sending)
        exchanged = self._exchange(plan, sending)
        if exchanged.status != 200:
            raise self._failure(exchanged, plan, sending)
        body = exchanged.body
        if not replies.has_answer(body):
            message = line(f"200 without an answer: {replies.problem_of(body).message}")
            nothing = Failure(
                "no_answer", message, retryable=True, status=200, partial=body or None
            )
            raise without_key(nothing, self._key)
        return Received(body, status=200, content_type=exchanged.headers.get("content-type", ""))

    def read(self, body: bytes) -> Reply:
        """Return what a raw answer says."""
        return replies.read(body)

    def release(self, ledger: Ledger) -> None:
        """Delete the caches of this process."""
        self._caches.release(ledger)

    def checks(self) -> list[Check]:
        """Ask what is known of the model: it needs the key and costs nothing."""
        try:
            exchanged = self._client.model(self.model, CHECK_SECONDS)
        except Failure as failure:
            return [Check("endpoint", False, f"{self.endpoint}: {failure.message}")]
        reached = Check("endpoint", True, f"{self.endpoint} answers")
        if exchanged.status != 200:
            problem = replies.failure(exchanged)
            return [reached, Check("key and model", False, problem.message)]
        return [
            reached,
            Check("key and model", True, f"{self.model} is there"),
            self._check_cache(exchanged),
        ]

    def _check_cache(self, exchanged: Exchanged) -> Check:
        row = capability(self.model)
        known = {True: "explicit caches", False: "implicit caching only", None: "not in our table"}
        listed = b"createCachedContent" in exchanged.body
        says = "the service lists createCachedContent" if listed else "the service lists none"
        return Check("cache", row.explicit is not None or listed, f"{known[row.explicit]}; {says}")

    # Sending ---------------------------------------------------------------------------------

    def _exchange(self, plan: Plan, sending: Sending) -> Exchanged:
        handle = plan.handle

        def before_send(body: bytes) -> None:
            sending(_archived(body, handle), handle.content_id if handle else "")

        exchanged = None
        try:
            exchanged = self._client.generate(
                self.model,
                plan.parts,
                dict(self.parameters),
                handle.name if handle else "",
                self._section.timeout_seconds,
                before_send,
            )
        except Failure as failure:
            if not self._client.line.sent:
                raise Refused(f"{sending.request}: {failure.message}") from None
            raise
        except ValueError as error:
            if self._client.line.sent:
                raise
            raise Refused(f"{sending.request}: the client refuses it: {error}") from None
        return exchanged

    def _failure(self, exchanged: Exchanged, plan: Plan, sending: Sending) -> Failure:
        failure = replies.failure(exchanged, sending.now())
        if plan.handle is None:
            return failure
        failure.message = _without_handle(failure.message, plan.handle)
        how = replies.cache_lost(exchanged)
        if not how:
            return failure
        sending.record(
            CacheRejected(
                at=sending.now(),
                request=sending.request,
                attempt=sending.attempt,
                key=plan.handle.key,
                kind=how,
                message=failure.message,
                status=exchanged.status,
            )
        )
        self._caches.reject(plan.handle, failure.message, sending)
        self._lost_theirs.add((sending.request, plan.handle.key))
        return Failure(
            "cache_rejected",
            failure.message,
            retryable=self._section.cache_mode != "required",
            status=exchanged.status,
            retry_after_ms=0,
            partial=failure.partial,
        )

    # Deciding --------------------------------------------------------------------------------

    def _plan(self, document: dict[str, Any], parts: Parts, sending: Sending) -> Plan:
        key = self._cache_key(parts)
        alive = self._caches.usable(key, sending) if key else None
        situation = self._situation(document, parts, key, alive, sending)
        decision = decide(situation)
        self._record_decision(decision, parts, key, sending)
        if not decision.explicit:
            self._check_strict(parts, decision, sending)
            return Plan(parts, None)
        handle = alive or self._caches.create(self._wanted(parts, key, situation), sending)
        if handle is None:
            failed = decide(_without_cache(situation, self._caches.refused(key)))
            self._record_decision(failed, parts, key, sending)
            self._check_strict(parts, failed, sending)
        return Plan(parts, handle)

    def _situation(
        self,
        document: dict[str, Any],
        parts: Parts,
        key: str,
        alive: Handle | None,
        sending: Sending,
    ) -> Situation:
        tokens, method = self._estimate(parts)
        return Situation(
            mode=self._section.cache_mode,
            not_cacheable=parts.reason,
            detail=parts.detail,
            tokens=tokens,
            method=method,
            reads=_reads_left(document),
            capability=self._capability(),
            price=price_at(self.prices, sending.now(), self._prompt_tokens(parts)),
            ttl_seconds=self._section.cache_ttl_seconds,
            alive=alive is not None,
            rejected=self._caches.refused(key),
            inline=(sending.request, key) in self._lost_theirs,
        )

    def _estimate(self, parts: Parts) -> tuple[int, str]:
        """Return the tokens that a cache would hold, and how that is known."""
        if not parts.partition:
            return 0, ESTIMATOR
        estimate = estimated_tokens(parts.system) + estimated_tokens(parts.prefix)
        factor = self._caches.tokens_per_estimate
        if factor is None:
            return estimate, ESTIMATOR
        return round(estimate * factor), f"{ESTIMATOR}, scaled by a cache of this process"

    def _prompt_tokens(self, parts: Parts) -> int:
        """Return the size of the whole prompt, which decides the price of every token in it."""
        return sum(map(estimated_tokens, parts.texts()))

    def _capability(self) -> Any:
        row, stated = capability(self.model), self._caches.minimum_tokens
        return row if stated is None else row.stating(stated)

    def _cache_key(self, parts: Parts) -> str:
        """Return the digest of all that decides whether a cache may be used again."""
        if not parts.partition:
            return ""
        return canonical.digest(
            canonical.to_bytes(
                {
                    "prefix": canonical.digest(parts.prefix.encode()),
                    "system": canonical.digest(parts.system.encode()),
                    **self._scope(),
                }
            )
        )

    def _scope(self) -> dict[str, Any]:
        return {
            "provider": self.name,
            "endpoint": self.endpoint,
            "api_version": self.api_version,
            "model": self.model,
            "credential": self._fingerprint,
            "ttl_seconds": self._section.cache_ttl_seconds,
        }

    def _wanted(self, parts: Parts, key: str, situation: Situation) -> Wanted:
        return Wanted(
            key,
            self.model,
            parts,
            self._section.cache_ttl_seconds,
            situation.tokens,
            self._section.cache_create_seconds,
        )

    def _record_decision(
        self, decision: Decision, parts: Parts, key: str, sending: Sending
    ) -> None:
        basis = decision.basis
        if key:
            system = canonical.digest(parts.system.encode())
            basis = {**basis, "key_of": {"system": system, **self._scope()}}
        sending.record(
            CacheDecided(
                at=sending.now(),
                request=sending.request,
                attempt=sending.attempt,
                provider=self.name,
                model=self.model,
                mode=self._section.cache_mode,
                decision=decision.decision,
                reason=decision.reason,
                partition=parts.partition,
                key=key,
                content_id=parts.content_id,
                basis=basis,
            )
        )

    def _check_strict(self, parts: Parts, decision: Decision, sending: Sending) -> None:
        if self._section.cache_mode != "required" or parts.reason == "not_a_candidate":
            return
        raise Refused(
            f"{sending.request}: gemini.cache_mode is required, and it would go out without a "
            f"cache ({decision.reason}); look: caseledger cache why"
        )


def open_provider(argument: str, settings: Settings) -> Gemini:
    """Return the provider for a model, that of the argument before that of the settings."""
    section = settings.gemini.model_copy(update={"model": argument} if argument else {})
    address = check_address(section.base_url, "gemini.base_url")
    if not section.model.replace("/", "").replace("-", "").replace(".", "").isalnum():
        raise ProviderConfigurationError(f"gemini.model {section.model!r}: is no name of a model")
    key = read_key(section.key_variable, section.key_file, "gemini")
    return Gemini(section.model_copy(update={"base_url": address}), key)


def _parameters(section: Section) -> dict[str, Any]:
    values: dict[str, Any] = {
        "max_output_tokens": section.max_output_tokens,
        "response_schema": section.response_schema,
    }
    if section.temperature is not None:
        values["temperature"] = section.temperature
    if section.thinking_level:
        values["thinking_level"] = section.thinking_level
    return values


def _archived(body: bytes, handle: Handle | None) -> bytes:
    """Return a body as it is kept: the content ID stands where the handle stood.

    Texts of the case are escaped in it, so the member with its plain quotes is there only once.
    """
    if handle is None:
        return body
    member = '"cachedContent": "{}"'
    kept = member.format(f"cachedContents/{handle.content_id}").encode()
    written = body.replace(member.format(handle.name).encode(), kept, 1)
    if written == body:
        raise Refused("the client writes the name of a cache in a form that is not known here")
    return written


def _without_handle(message: str, handle: Handle) -> str:
    """Return a message without the handle that a service may name in it."""
    bare = handle.name.removeprefix("cachedContents/")
    return message.replace(bare, handle.content_id)


def _reads_left(document: dict[str, Any]) -> int:
    """Return how many requests of this investigation are still to come, this one included."""
    content = document["messages"][0]["content"]
    budget = content.get("budget") if isinstance(content, dict) else None
    left = budget.get("left") if isinstance(budget, dict) else None
    requests = left.get("requests") if isinstance(left, dict) else None
    return max(requests, 1) if type(requests) is int else 1


def _check_sendable(parts: Parts, request: str) -> None:
    for text in parts.texts():
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise Refused(
                    f"{request}: it holds a lone surrogate, which cannot be sent"
                ) from None


def _without_cache(situation: Situation, why: str) -> Situation:
    return replace(situation, mode="auto", alive=False, rejected=why or "creation failed")
