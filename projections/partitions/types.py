"""What all partitions share: their result, their errors, the content ID, the proof at run time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ledger.canonical import digest, from_bytes, same, to_bytes
from ledger.errors import CanonicalError, LedgerError

Json = dict[str, Any]

PREFIX_MEMBERS = ("version", "id", "input", "shared")
LIVE_MEMBERS = ("version", "prefix", "input", "shared")


class ShapeChanged(LedgerError):
    """A view cannot be divided: it has not the shape that a partition knows."""


class PartitionRefused(LedgerError):
    """A prefix and a live document are not the two parts of one view."""


class Split(NamedTuple):
    """The two documents of a view: what stays the same, and everything else."""

    prefix: Json
    live: Json


class Whole(NamedTuple):
    """The view is sent as the one document that it is, and why."""

    reason: str


def content_id(version: str, stable: Json, shared: Json) -> str:
    """Return the content ID of a prefix: `sha256:` and the digest of all that it says."""
    return digest(to_bytes({"encoding": version, "stable": stable, "shared": shared}))


def documents(version: str, stable: Json, defined: Json, live: Json, shared: Json) -> Split:
    """Return the two documents over divided input and divided definitions."""
    name = content_id(version, stable, defined)
    return Split(
        {"version": version, "id": name, "input": stable, "shared": defined},
        {"version": version, "prefix": name, "input": live, "shared": shared},
    )


def check(version: str, prefix: Any, live: Any) -> None:
    """Refuse documents that have not the form of a partition's parts, or whose IDs are wrong.

    Raises:
        PartitionRefused: members, types, version, ID, an input key or a definition on both sides.
        CanonicalError: a value that is not JSON.
    """
    _check_form("prefix", version, prefix, PREFIX_MEMBERS)
    _check_form("live part", version, live, LIVE_MEMBERS)
    name = content_id(version, prefix["input"], prefix["shared"])
    if prefix["id"] != name:
        raise PartitionRefused(f"the prefix has the ID {prefix['id']!r}, its content is {name}")
    if live["prefix"] != name:
        raise PartitionRefused(f"the live part names {live['prefix']!r}, the prefix is {name}")
    for member, what in (("input", "input keys"), ("shared", "definitions")):
        if both := sorted(prefix[member].keys() & live[member].keys()):
            raise PartitionRefused(f"{what} on both sides: {', '.join(both)}")


def prove(
    split: Callable[[Json], Split], join: Callable[[Any, Any], Json], view: Json
) -> Split | Whole:
    """Return the parts of a view if their bytes, read again, join to exactly this view."""
    try:
        parts = split(view)
        read = [from_bytes(to_bytes(part)) for part in parts]
        if same(join(*read), view):
            return parts
    except LedgerError as error:
        return Whole(f"{type(error).__name__}: {error}")
    return Whole("the parts join to another view: its members or definitions have another order")


def refusing(join: Callable[[Any, Any], Json], prefix: Any, live: Any) -> Json:
    """Return `join(prefix, live)`, every refusal as the one error that callers know."""
    try:
        return join(prefix, live)
    except (CanonicalError, ShapeChanged) as error:
        raise PartitionRefused(str(error)) from None


def _check_form(what: str, version: str, part: Any, members: tuple[str, ...]) -> None:
    to_bytes(part)
    if not isinstance(part, dict) or tuple(part) != members:
        raise PartitionRefused(f"the {what} is not an object of {', '.join(members)}")
    if part["version"] != version:
        raise PartitionRefused(f"the {what} has version {part['version']!r}, expected {version}")
    for member in ("input", "shared"):
        if not isinstance(part[member], dict):
            raise PartitionRefused(f"{member} of the {what} is not an object")
