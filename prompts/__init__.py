"""The words a model is given: one file a version, and a small reader. The folder is the index.

A prompt file is the card of its protocol: a head of `key: value` lines, a line `---`, the text.
Its stored name is the folder, an underscore and the stem: `hypotheses/v2.md` is `hypotheses_v2`.
Files that landed never change (FROZEN.sha256); new words are a new file.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

NEWEST = {
    "entity_resolution": "entity_resolution_v1",
    "case_interpretation": "case_interpretation_resolved_v7",
    "hypotheses": "hypotheses_v3",
    "investigation": "investigation_project_v11",
    "diagnosis_early": "diagnosis_early_v4",
    "diagnosis": "diagnosis_v4",
    "change_request": "change_request_v5",
}
"""The protocol a new request of each phase takes, unless configuration pins another."""

_FOLDER = Path(__file__).parent
_KEYS = ("phase", "view", "alias", "encoding", "partition", "schema")


class PromptError(Exception):
    """A protocol or schema that is not here, or a prompt file without a proper head."""


class Card(NamedTuple):
    """What a protocol fixes."""

    name: str
    phase: str
    view: str
    alias: str
    encoding: str
    partition: str
    schema: str
    text: str


def protocols() -> list[str]:
    """Return the names of all protocols."""
    return sorted(_files())


@cache
def card(protocol: str) -> Card:
    """Return a protocol's card.

    Raises:
        PromptError: there is no such protocol, or its file has no proper head.
    """
    try:
        path = _files()[protocol]
    except KeyError:
        raise PromptError(
            f"protocol {protocol!r} is not known to this release; `caseledger prompts` lists them"
        ) from None
    head, separator, text = path.read_text(encoding="utf-8").partition("\n---\n")
    values = {key: value for key, _, value in (line.partition(": ") for line in head.splitlines())}
    if not separator or set(values) != set(_KEYS):
        raise PromptError(f"{path.name}: its head must give {', '.join(_KEYS)}")
    return Card(name=protocol, text=text.strip(), **values)


def prompt_file(protocol: str) -> tuple[str, bytes]:
    """Return a protocol's file: its path below prompts/, and its bytes."""
    path = _files()[protocol]
    return path.relative_to(_FOLDER).as_posix(), path.read_bytes()


def schema_file(name: str) -> tuple[str, bytes]:
    """Return an output schema's file: its path below prompts/, and its bytes.

    Raises:
        PromptError: there is no such schema.
    """
    path = _FOLDER / "schemas" / f"{name}.json"
    try:
        return f"schemas/{name}.json", path.read_bytes()
    except FileNotFoundError:
        raise PromptError(f"schema {name!r} is not known to this release") from None


def explanation(encoding: str) -> str:
    """Return the text by which prompts explain an encoding; empty if it needs none."""
    path = _FOLDER / "encodings" / f"{encoding}.txt"
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


@cache
def wire(name: str) -> str:
    """Return words that a provider adds around a document, by their version."""
    return (_FOLDER / "wires" / f"{name}.txt").read_text(encoding="utf-8").strip()


@cache
def schema(name: str) -> dict[str, Any]:
    """Return an output schema; the caller must not change it.

    Raises:
        PromptError: there is no such schema.
    """
    return dict(json.loads(schema_file(name)[1]))


@cache
def _files() -> dict[str, Path]:
    return {f"{path.parent.name}_{path.stem}": path for path in _FOLDER.glob("*/*.md")}
