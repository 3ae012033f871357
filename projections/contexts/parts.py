"""What several canonical contexts have in common.

A context holds no position (but the original generation), time, attempt count or money, so that a
crash and a resumed run build the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ledger.canonical import from_bytes
from ledger.errors import LedgerDamaged, PayloadWithheld
from ledger.events import ArtifactAdded, Observation
from ledger.lines import split_lines
from ledger.reader import CaseReader
from projections.state import Evidence, State

Json = dict[str, Any]


@dataclass(frozen=True)
class Material:
    """What a context needs beside events and payloads: data of the pinned configuration.

    Attributes:
        tools: action bindings, what may be asked, with limits.
        policy: analysis and budget policy.
        catalogs: bounded lists of what is not inlined, fixed for the revision.
        withheld: kinds of artefact that must not be shown, because a provider is remote.
    """

    tools: list[Json]
    policy: Json
    catalogs: Json
    withheld: frozenset[str] = frozenset()


def case(state: State) -> Json:
    """Return the `case` member."""
    return {
        "case_id": state.case_id,
        "package_id": state.package_id,
        "generation": state.generation,
        "revision": state.revision,
    }


def sources(state: State, reader: CaseReader, material: Material) -> Json:
    """Return the `sources` member: artefacts, observations with their text, facts, entities."""
    texts = _Texts(state, reader)
    shown = [artifact for artifact in state.artifacts if artifact.kind not in material.withheld]
    names = {artifact.artifact for artifact in shown}
    return {
        "artifacts": [_artifact(artifact) for artifact in shown],
        "observations": [
            {
                "id": observation.id,
                "artifact": observation.artifact,
                "kind": observation.kind,
                "first_line": observation.first_line,
                "text": texts.lines(observation),
            }
            for observation in state.observations
            if observation.artifact in names
        ],
        "facts": list(state.facts),
        "entities": list(state.entities),
    }


def observation_texts(state: State, reader: CaseReader) -> dict[str, str]:
    """Return the text of every observation, by ID; without those whose text is withheld."""
    texts, found = _Texts(state, reader), {}
    for observation in state.observations:
        with suppress(PayloadWithheld):
            found[observation.id] = texts.lines(observation)
    return found


def hypotheses(state: State) -> list[Json]:
    """Return the `hypotheses` member: every hypothesis with its current state."""
    return [
        {
            **hypothesis.value,
            "state": hypothesis.state,
            "notes": hypothesis.notes,
            "questions": list(hypothesis.questions),
            "evidence": list(hypothesis.evidence),
        }
        for hypothesis in state.hypotheses.values()
    ]


READS = {
    **dict.fromkeys(("list_files", "search_code", "find_symbol"), "source"),
    **dict.fromkeys(("find_references", "read_lines"), "source"),
    "search_log": "log",
    "read_log": "log",
    "describe_database": "database",
    "profile_table": "database",
    "query_database": "database",
}
"""Kind of artefact that an action reads, by the name of every action there is."""


def evidence(state: State, reader: CaseReader, material: Material) -> list[Json]:
    """Return the `evidence` member: every stored payload, and every refusal, in order."""
    items: list[Json] = []
    by_action = {item.action: item for item in state.evidence.values()}
    for action in state.actions.values():
        if action.result == "refused":
            items.append(
                {
                    "id": action.id,
                    "hypothesis": action.hypothesis or None,
                    "refused": {
                        "action": action.name,
                        "arguments": dict(action.arguments),
                        "problems": [problem.model_dump() for problem in action.problems],
                    },
                }
            )
        elif action.result:
            item = by_action[action.id]
            kind = READS.get(item.kind, "source")
            if kind in material.withheld:
                hypothesis = item.hypothesis or None
                items.append({"id": item.id, "hypothesis": hypothesis, "withheld": kind})
            else:
                items.append(_evidence(item, reader))
    return items


def budget(state: State, limits: Mapping[str, int]) -> Json:
    """Return the `budget` member: balances and the pointer to the previous result."""
    spent, added = vars(state.spent), vars(state.added)
    return {
        "left": {name: max(0, limits[name] + added[name] - spent[name]) for name in spent},
        "spent": dict(spent),
        "previous_result": state.previous_result,
    }


def _artifact(artifact: ArtifactAdded) -> Json:
    size = artifact.content.size if artifact.content else artifact.counts.get("bytes", 0)
    return {
        "id": artifact.artifact,
        "kind": artifact.kind,
        "name": artifact.name,
        "media": artifact.media,
        "size": size,
        "lines": artifact.lines,
        "revision": artifact.revision,
    }


def _evidence(item: Evidence, reader: CaseReader) -> Json:
    document = from_bytes(reader.payload(item.content.digest))
    if not isinstance(document, dict):
        raise LedgerDamaged(f"{item.id}: its payload is no evidence document")
    return {"id": item.id, "hypothesis": item.hypothesis or None, **document}


class _Texts:
    """Lines of text artefacts, decoded once each."""

    def __init__(self, state: State, reader: CaseReader) -> None:
        self._artifacts = {artifact.artifact: artifact for artifact in state.artifacts}
        self._withheld = state.withheld
        self._reader = reader
        self._lines: dict[str, list[str]] = {}

    def lines(self, observation: Observation) -> str:
        """Return an observation's text, lines joined by line feeds."""
        name = observation.artifact
        if self._withheld and name not in self._artifacts:
            raise PayloadWithheld(f"{name} is withheld in this copy")
        if name not in self._lines:
            artifact = self._artifacts[name]
            assert artifact.content is not None
            data = self._reader.payload(artifact.content.digest)
            self._lines[name] = split_lines(data.decode(artifact.encoding or "utf-8"))
        return "\n".join(self._lines[name][observation.first_line - 1 : observation.last_line])
