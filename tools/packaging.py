"""What a package holds beside the record: the prompts and output schemas its requests used."""

from __future__ import annotations

import prompts
from ledger.events import RequestPrepared
from ledger.reader import CaseReader


def prompt_members(reader: CaseReader) -> dict[str, bytes]:
    """Return package members `prompts/…` for every protocol that a case used and we know."""
    used = {e.protocol for _, e in reader.events() if isinstance(e, RequestPrepared)}
    members: dict[str, bytes] = {}
    for name in sorted(used & set(prompts.protocols())):
        schema = prompts.card(name).schema
        for path, data in (prompts.prompt_file(name), prompts.schema_file(schema)):
            members[f"prompts/{path}"] = data
    return members
