"""Provider `offline`: the analyst without a language model, in this process."""

from __future__ import annotations

from ledger import canonical
from phases.providers.base import Provider, ProviderConfigurationError, Received, Reply, Sending
from phases.providers.offline import answer
from phases.settings import Settings


class Offline(Provider):
    """Answers from the request document alone; its raw answer is the answer's canonical JSON."""

    name = "offline"
    model = "offline-analyst-1"

    def ask(self, document: bytes, sending: Sending) -> Received:
        """Return the analyst's answer."""
        sending(None)
        return Received(canonical.to_bytes(answer(canonical.from_bytes(document))))

    def read(self, body: bytes) -> Reply:
        """Return the answer's text; nothing was billed."""
        return Reply(body.decode(), usage={"cost_nano_usd": 0})


def open_provider(argument: str, settings: Settings) -> Offline:
    """Return the analyst; it takes no argument.

    Raises:
        ProviderConfigurationError: a model was asked for; there is none.
    """
    if argument:
        raise ProviderConfigurationError(f"offline:{argument}: there is no model; give offline")
    return Offline()
