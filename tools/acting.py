"""Actions by hand: the same looks that a model has, with the same results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ledger import canonical
from ledger.book import Book
from ledger.errors import CanonicalError
from ledger.events import ActionRefused, ActionRequested
from phases.acting import act
from phases.investigation.actions import ACTIONS, Refusal, perform
from phases.investigation.snapshot import Snapshot
from phases.settings import Settings
from projections.folding import fold
from tools.exits import AnswerIsNo, UserError
from tools.output import print_json, say, table
from tools.rendering import evidence_lines


def list_actions(json: bool) -> None:
    """Print the actions and what they are for."""
    if json:
        print_json(
            [
                {"name": a.name, "description": a.description, "arguments": a.arguments}
                for a in ACTIONS.values()
            ]
        )
    else:
        table(["action", "arguments", "what it does"], [_described(a) for a in ACTIONS.values()])


def perform_by_hand(path: Path, name: str, arguments: list[str], record: bool, json: bool) -> None:
    """Carry out an action and print its result; on the ledger only if asked for.

    Raises:
        AnswerIsNo: the action was refused; why is printed.
    """
    given = dict(_argument(text) for text in arguments)
    if record:
        document, refused = _recorded(path, name, given)
    else:
        with Book.open(path) as book, Snapshot.of(book) as snapshot:
            result = perform(snapshot, name, given)
        refused = isinstance(result, Refusal)
        document = _refusal(result) if isinstance(result, Refusal) else result.document
    if json:
        print_json(document)
    else:
        for line in evidence_lines(document):
            say(line)
    if refused:
        raise AnswerIsNo


def _recorded(path: Path, name: str, given: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    with Book.open_for_writing(path) as book, Snapshot.of(book) as snapshot:
        state = fold(book.events())
        if state.open_action:
            raise UserError(
                "actions of the model are still to be carried out; `run` the case first"
            )
        requested = ActionRequested(
            at=book.sources.now(),
            action=f"A{len(state.actions) + 1}",
            name=name,
            arguments=given,
            expanded=given,
            revision=state.revision,
            by="person",
        )
        book.append(requested)
        state = fold(book.events())
        action = state.actions[requested.action]
        prepared = act(state, action, snapshot, Settings(), frozenset(), book.sources.now())
        book.append(*prepared.events, payloads=prepared.payloads)
        refused = prepared.events[0]
        if isinstance(refused, ActionRefused):
            return _refusal(refused), True
        return canonical.from_bytes(prepared.payloads[0]), False


def _refusal(refusal: Refusal | ActionRefused) -> dict[str, Any]:
    return {
        "refused": refusal.kind,
        "problems": [problem.model_dump() for problem in refusal.problems],
    }


def _argument(text: str) -> tuple[str, Any]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise UserError(f"{text}: an argument is written KEY=VALUE")
    try:
        return key, canonical.from_bytes(value.encode())
    except (CanonicalError, UnicodeEncodeError):
        return key, value


def _described(action: Any) -> tuple[str, str, str]:
    required = set(action.arguments.get("required", ()))
    names = [
        key if key in required else f"[{key}]" for key in action.arguments.get("properties", {})
    ]
    return action.name, " ".join(names), action.description
