"""The single entry to the actions: check the arguments, carry out, describe what was found."""

from __future__ import annotations

from ledger.events import JsonObject, Problem
from phases.investigation.actions import (
    describe_database,
    find_references,
    find_symbol,
    list_files,
    profile_table,
    query_database,
    read_lines,
    read_log,
    search_code,
    search_log,
)
from phases.investigation.actions.base import (
    HARD_CHARACTERS,
    Action,
    Evidence,
    Refusal,
    Refused,
    Result,
)
from phases.investigation.actions.schema import check, shown, with_defaults
from phases.investigation.snapshot import Snapshot

ACTIONS: dict[str, Action] = {
    module.ACTION.name: module.ACTION
    for module in (
        list_files,
        search_code,
        find_symbol,
        find_references,
        read_lines,
        search_log,
        read_log,
        describe_database,
        profile_table,
        query_database,
    )
}
"""Every action, by name, in the order in which they are offered."""


def bindings() -> list[JsonObject]:
    """Return what a model is told of each action: name, description, argument schema, limits."""
    return [
        {
            "name": action.name,
            "description": action.description,
            "arguments": action.arguments,
            "limits": action.limits,
        }
        for action in ACTIONS.values()
    ]


def perform(snapshot: Snapshot, name: str, arguments: JsonObject) -> Evidence | Refusal:
    """Carry out an action; whatever the arguments are, the answer is evidence or a refusal.

    Raises:
        PayloadDamaged: if the ledger no longer holds what the snapshot names.
    """
    checked = validate(name, arguments, snapshot)
    if isinstance(checked, Refusal):
        return checked
    try:
        result = ACTIONS[name].run(snapshot, checked)
    except Refused as error:
        return error.refusal
    evidence = Evidence(_document(snapshot, name, checked, result))
    if evidence.characters > HARD_CHARACTERS:
        text = f"the result has {evidence.characters} characters, at most {HARD_CHARACTERS} may be"
        return Refusal("limit", (Problem(code="characters", message=text),))
    return evidence


def validate(name: str, arguments: JsonObject, snapshot: Snapshot) -> JsonObject | Refusal:
    """Return the effective arguments (defaults filled in), or a refusal with every problem found.

    Schema problems come alone, since what the snapshot says about malformed arguments is no help.
    """
    action = ACTIONS.get(name) if isinstance(name, str) else None
    if action is None:
        text = f"there is no action {shown(str(name), 60)!r}; there are: {', '.join(ACTIONS)}"
        return Refusal("unknown_action", (Problem(code="unknown_action", message=text),))
    problems = check(arguments, action.arguments)
    if problems:
        return Refusal("arguments", tuple(problems))
    effective = with_defaults(arguments, action.arguments)
    try:
        troubles = action.check(snapshot, effective)
    except Refused as error:
        return error.refusal
    if troubles:
        return Refusal(
            troubles[0].kind,
            tuple(Problem(code=t.code, message=t.message, path=t.path) for t in troubles),
        )
    return effective


def _document(snapshot: Snapshot, name: str, arguments: JsonObject, result: Result) -> JsonObject:
    """Return the evidence document; nothing found becomes a qualified negative."""
    page = result.page
    cut_off = result.cut_off
    if cut_off is None and page and page.offset + page.returned < page.total:
        cut_off = ("page", page.limit)
    document: JsonObject = {
        "action": name,
        "arguments": arguments,
        "snapshot": snapshot.digest,
        "found": result.found,
        "complete": cut_off is None,
        "cut_off": {"reason": cut_off[0], "limit": cut_off[1]} if cut_off else None,
        "page": page.to_json() if page else None,
        "covered": result.covered,
        "result": result.result,
    }
    if not result.found:
        document["negative"] = {
            "query": result.query, "scope": result.scope, "filter": result.filter,
            "covered": result.covered, "complete": cut_off is None, "snapshot": snapshot.digest,
        }  # fmt: skip
    return document
