"""The configuration snapshot: settings, action bindings and policies, as one immutable document.

`configuration.pinned` names it and every context names it, so a request finishes under the
configuration it began with, whatever is configured later.
"""

from __future__ import annotations

from typing import Any

from ledger import canonical
from ledger.reader import CaseReader
from phases.catalogs import WITHHELD
from phases.investigation.actions import bindings
from phases.settings import REMOTE, WHEREABOUTS, Settings
from projections.contexts import Material

FORMAT = 1
ACTIONS_PER_STEP = 4
EARLY_REVIEWS = 3
CACHE_CONTEXT = "cache_context_version"
BEFORE_VERSIONS = "instructions_v1"
_NOT_PINNED = frozenset({CACHE_CONTEXT, *WHEREABOUTS})


def snapshot(settings: Settings) -> dict[str, Any]:
    """Return the snapshot document. Protocols are in it only if the user pinned them."""
    values = settings.model_dump(mode="json", exclude_defaults=True)
    for name in REMOTE:
        section = values.pop(name, {})
        kept = {key: value for key, value in section.items() if key not in _NOT_PINNED}
        if name == "gemini":
            kept |= _always_pinned(settings)
        if kept:
            values[name] = kept
    return {"format": FORMAT, "settings": values, "tools": bindings(), "policy": policy(settings)}


def _always_pinned(settings: Settings) -> dict[str, Any]:
    """Return what is pinned of Gemini though it may be the default; nothing if it is not asked.

    Model and API version, because a later release may have other defaults; the version of the cache
    context, because it changes what is sent, but for the one from before there were versions.
    """
    if not _asks_gemini(settings):
        return {}
    gemini = settings.gemini
    pinned = {"model": gemini.model, "api_version": gemini.api_version}
    if gemini.cache_context_version != BEFORE_VERSIONS:
        pinned[CACHE_CONTEXT] = gemini.cache_context_version
    return pinned


def _asks_gemini(settings: Settings) -> bool:
    return any(name.partition(":")[0] == "gemini" for name in settings.providers)


def policy(settings: Settings) -> dict[str, Any]:
    """Return the static analysis and budget policy that contexts show."""
    return {
        "budget": settings.budget.model_dump(),
        "actions_per_step": ACTIONS_PER_STEP,
        "early_reviews": EARLY_REVIEWS,
        "access": "read-only; actions see the snapshot taken at intake and nothing else",
    }


def pinned_settings(reader: CaseReader, digest: str) -> Settings:
    """Return the settings of a snapshot."""
    values = _load(reader, digest)["settings"]
    settings = Settings.model_validate(values)
    if _asks_gemini(settings) and CACHE_CONTEXT not in values.get("gemini", {}):
        gemini = settings.gemini.model_copy(update={CACHE_CONTEXT: BEFORE_VERSIONS})
        return settings.model_copy(update={"gemini": gemini})
    return settings


def material(
    reader: CaseReader, digest: str, catalogs: dict[str, Any], withheld: frozenset[str]
) -> Material:
    """Return what contexts need of a snapshot; catalogs of withheld kinds are emptied."""
    document = _load(reader, digest)
    member = {"source": "files", "log": "logs", "database": "databases"}
    hidden = {member[kind]: WITHHELD for kind in sorted(withheld)}
    return Material(document["tools"], document["policy"], {**catalogs, **hidden}, withheld)


def _load(reader: CaseReader, digest: str) -> dict[str, Any]:
    document = canonical.from_bytes(reader.payload(digest))
    assert isinstance(document, dict)
    return document
