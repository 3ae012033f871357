"""Provider `openai_compatible`: sends the complete request, keeps what came, learns from refusals.

A server that refuses the form of a request (a schema it cannot take, a limit it calls otherwise)
is asked again in another form: a recorded attempt of its own, each change once in a process.
"""

from __future__ import annotations

import threading
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING

from ledger import canonical
from phases.providers.base import (
    Check,
    Failure,
    Ledger,
    Provider,
    ProviderConfigurationError,
    Received,
    Reply,
    Sending,
)
from phases.providers.credentials import Key, answer_without_key, read_key, without_key
from phases.providers.openai_compatible import replies, wire
from phases.providers.prices import configured
from phases.providers.transport import (
    BeforeSend,
    Exchanged,
    Line,
    check_address,
    is_loopback_url,
    unrecorded,
)
from phases.settings import OpenAICompatible as Section
from phases.settings import Settings

if TYPE_CHECKING:
    import httpx2

SERVERS_OWN = "the server's own"
"""Model of a request that names none."""

CHECK_SECONDS = 15.0
_HEADERS = {
    "content-type": "application/json",
    "accept": "application/json",
    "accept-encoding": "gzip, deflate",  # what the transport undoes, whatever else is installed
}
_MALFORMED_REQUEST = frozenset({400, 422})


class OpenAICompatible(Provider):
    """One server and model; one instance for one run."""

    name = "openai_compatible"
    client = f"httpx2/{version('httpx2')}"

    def __init__(self, section: Section, key: Key) -> None:
        self._section = section
        self._key = key
        self._line = Line()
        self._recording = threading.Lock()
        self._take(wire.Form(schema_as_text=not section.response_schema))
        self.model = section.model or SERVERS_OWN
        self.endpoint = section.base_url
        self.remote = not is_loopback_url(section.base_url)
        self.deadline_ms = section.timeout_seconds * 1000
        self.prices = configured(section.price, self.model)

    def ask(self, document: bytes, sending: Sending) -> Received:
        """Send a request document whole."""
        value = canonical.from_bytes(document)
        form = self._form
        body = self._body(value, form)

        def leaves(sent: bytes) -> None:
            with self._recording:  # it reads `parameters`, which another thread may have changed
                self.parameters = wire.parameters(form, self._section)
                sending(sent)

        got = self._exchange("POST", "/chat/completions", body, self.deadline_ms / 1000, leaves)
        if got.status != 200:
            failure = self._learned(got, value, body) or replies.failure(got, sending.now())
            raise without_key(failure, self._key)
        if not replies.has_answer(got.body):
            raise without_key(replies.no_answer(got.body), self._key)
        return Received(
            got.body,
            status=200,
            content_type=got.headers.get("content-type", ""),
            request_id=got.headers.get("x-request-id", ""),
        )

    def read(self, body: bytes) -> Reply:
        """Return what a raw answer says."""
        return replies.read(body)

    def release(self, ledger: Ledger) -> None:
        """Close the connections; another request opens new ones."""
        self._close()

    def checks(self) -> list[Check]:
        """Ask for the list of models: it needs the key and costs nothing."""
        try:
            got = self._exchange("GET", "/models", b"", CHECK_SECONDS, unrecorded)
        except Failure as failure:
            return [Check("endpoint", False, f"{self.endpoint}: {failure.message}")]
        finally:
            self._close()
        if got.status != 200:
            return self._unlisted(got)
        key = "it is accepted" if self._key else "none is sent, none is asked for"
        reached = Check("endpoint", True, f"{self.endpoint} answers")
        return [reached, Check("key", True, key), self._check_model(replies.models_of(got.body))]

    # Sending ---------------------------------------------------------------------------------

    def _exchange(
        self, method: str, path: str, body: bytes, seconds: float, before_send: BeforeSend
    ) -> Exchanged:
        """Return what came back, the key removed wherever a server may have put it."""
        key, client = self._key, self._client
        headers = dict(_HEADERS)
        if key:
            headers["authorization"] = f"Bearer {key.reveal()}"
        self._line.expect(seconds, before_send)
        client.request(method, self.endpoint + path, content=body, headers=headers)
        try:
            got = self._line.take()
        except Failure as failure:
            raise without_key(failure, key) from None
        return answer_without_key(got, key)

    @cached_property
    def _client(self) -> httpx2.Client:
        import httpx2

        return httpx2.Client(
            transport=self._line.transport(), trust_env=False, follow_redirects=False
        )

    def _close(self) -> None:
        if client := self.__dict__.pop("_client", None):
            client.close()

    def _body(self, document: wire.Json, form: wire.Form) -> bytes:
        body = wire.body_of(document, form, self._section.model, self._section)
        return canonical.to_bytes(body)

    # Learning --------------------------------------------------------------------------------

    def _take(self, form: wire.Form) -> None:
        with self._recording:
            self._form = form
            self.parameters = wire.parameters(form, self._section)

    def _learned(self, got: Exchanged, document: wire.Json, sent: bytes) -> Failure | None:
        """Return the failure that a refusal of the form is, the next form taken; None if it is of
        another kind, or the request would be the same again.
        """
        said = replies.problem_of(got.body)
        form = self._form.learned(f"{said.message} {said.codes}")
        refused = got.status in _MALFORMED_REQUEST
        if not refused or self._body(document, form) == sent:
            return None
        self._take(form)
        return Failure(
            "form_refused",
            f"{got.status}: {said.message}; it is asked again with {self._describe(form)}",
            retryable=True,
            status=got.status,
            retry_after_ms=0,
            partial=got.body or None,
        )

    def _describe(self, form: wire.Form) -> str:
        parameters = wire.parameters(form, self._section)
        return ", ".join(f"{name} {value}" for name, value in parameters.items())

    # Checks ----------------------------------------------------------------------------------

    def _unlisted(self, got: Exchanged) -> list[Check]:
        said = replies.failure(got, "").message
        if got.status in (401, 403):
            reached = Check("endpoint", True, f"{self.endpoint} answers")
            return [reached, Check("key", False, said)]
        known = got.status == 404
        detail = "it lists no models" if known else said
        return [Check("endpoint", known, f"{self.endpoint} answers, but {detail}")]

    def _check_model(self, models: list[str] | None) -> Check:
        wanted = self._section.model
        listed = ", ".join((models or [])[:5]) or "none"
        if models is None:
            return Check("model", True, "the server lists no models; not checked")
        if not wanted:
            return Check("model", bool(models), f"none is named; the server has: {listed}")
        found = wanted in models or f"{wanted}:latest" in models
        return Check("model", found, f"{wanted} {'is' if found else 'is not'} among: {listed}")


def open_provider(argument: str, settings: Settings) -> OpenAICompatible:
    """Return the provider for a model, that of the argument before that of the settings.

    Raises:
        ProviderConfigurationError: the address, the key or the model cannot be used.
    """
    section = settings.openai_compatible
    address = check_address(section.base_url, "openai_compatible.base_url")
    model = argument or section.model
    if not model and not is_loopback_url(address):
        raise ProviderConfigurationError(
            "openai_compatible: no model; set openai_compatible.model, or ask for "
            "openai_compatible:MODEL"
        )
    key = read_key(section.key_variable, section.key_file, "openai_compatible", needed=False)
    return OpenAICompatible(section.model_copy(update={"base_url": address, "model": model}), key)
