"""Provider `scripted:HOW` of the command line's tests: good answers, or one certain trouble."""

from __future__ import annotations

from typing import Any

from tests.phases.scripting import Script, failure, patched

NEED = [{"what": "the timezone\x1b[31m of the server", "why": "the log has none"}]

TROUBLES: dict[str, Any] = {
    "wrong": {"hypotheses": [b"{}"] * 3},
    "safety": {"hypotheses": [b"finish:safety"]},
    "need": {"hypotheses": [patched(information_needed=NEED)]},
    "down": {"hypotheses": [failure("key", retryable=False)]},
    "interrupted": {"hypotheses": [KeyboardInterrupt()]},
}


def open_provider(argument: str, settings: Any) -> Script:
    return Script(TROUBLES.get(argument), remote=argument == "remote")
