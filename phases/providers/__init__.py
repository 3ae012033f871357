"""Providers: who answers a request document. One method is the seam; one line each to add one."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

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
)

if TYPE_CHECKING:
    from phases.settings import Settings

_MODULES: Mapping[str, str] = {
    "gemini": "phases.providers.gemini.provider",
    "offline": "phases.providers.offline.provider",
    "openai_compatible": "phases.providers.openai_compatible",
    "recorded": "phases.providers.recorded",
}
"""Name to module; it has `open_provider(argument, settings)` and loads its client itself."""


def open_provider(specification: str, settings: Settings) -> Provider:
    """Return a provider by its name in the configuration, `NAME` or `NAME:ARGUMENT`.

    Raises:
        ProviderConfigurationError: no provider has this name, or it cannot be set up.
    """
    name, _, argument = specification.partition(":")
    if name not in _MODULES:
        known = ", ".join(sorted(_MODULES))
        raise ProviderConfigurationError(f"provider {name!r} is not known; there are {known}")
    provider: Provider = import_module(_MODULES[name]).open_provider(argument, settings)
    return provider


__all__ = [
    "Check",
    "Failure",
    "Ledger",
    "Provider",
    "ProviderConfigurationError",
    "Received",
    "Refused",
    "Reply",
    "Sending",
    "open_provider",
]
