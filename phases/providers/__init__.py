"""Providers: who answers a request document. One method is the seam; one line each to add one."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from phases.providers.base import (
    Failure,
    Provider,
    ProviderConfigurationError,
    Received,
    Reply,
    Sending,
)

_MODULES: Mapping[str, str] = {
    "offline": "phases.providers.offline.provider",
    "recorded": "phases.providers.recorded",
}
"""Name to module; a module has `open_provider(argument)` and loads its client itself."""


def open_provider(specification: str) -> Provider:
    """Return a provider by its name in the configuration, `NAME` or `NAME:ARGUMENT`.

    Raises:
        ProviderConfigurationError: no provider has this name, or it cannot be set up.
    """
    name, _, argument = specification.partition(":")
    if name not in _MODULES:
        known = ", ".join(sorted(_MODULES))
        raise ProviderConfigurationError(f"provider {name!r} is not known; there are {known}")
    provider: Provider = import_module(_MODULES[name]).open_provider(argument)
    return provider


__all__ = [
    "Failure",
    "Provider",
    "ProviderConfigurationError",
    "Received",
    "Reply",
    "Sending",
    "open_provider",
]
