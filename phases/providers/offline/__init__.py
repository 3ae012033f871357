"""The offline analyst: a deterministic analyst without a language model, the default provider.

It gets the request document a language model would get and answers with the same output schema. It
reads nothing else: no file, socket, database, clock, environment or randomness.
"""

from __future__ import annotations

from typing import Any

import prompts
from phases.providers.offline.answers import answer_view
from phases.providers.offline.feedback import corrected
from projections.aliases import resolve
from projections.requests import restored_view

for _name in prompts.protocols():
    prompts.card(_name)  # read now: answering must not open a file


def answer(document: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request document.

    Args:
        document: the request document, parsed; its later messages are corrections.

    Raises:
        UnknownVersion: the protocol or its encoding is not in this release.
    """
    view = restored_view(document)
    view = resolve(view if isinstance(view.get("shared"), dict) else {**view, "shared": {}})
    phase = prompts.card(document["protocol"]).phase
    feedback = [message["content"] for message in document["messages"][1:]]
    return corrected(phase, answer_view(phase, view), feedback)


__all__ = ["answer"]
