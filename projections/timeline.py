"""One line for each event, for people who read a ledger from top to bottom."""

from __future__ import annotations

from typing import Any

from ledger.events import Event
from projections.wording import counted

_LINES = {
    "case.opened/1": "{title}",
    "artifact.added/1": "{artifact} {kind} {name}",
    "secret.replaced/1": "{artifact} {count} × {kind} {path}",
    "observations.extracted/1": "revision {revision}: {observations:observation}",
    "case.amended/1": "revision {revision} {note}",
    "configuration.pinned/1": "{reason} {configuration.digest}",
    "run.started/1": "run {run} with {program}",
    "run.stopped/1": "run {run}: {reason} {detail}",
    "context.created/1": "{context} {phase} {hypothesis}",
    "request.prepared/1": "{request} from {context} with {protocol}: {characters:character}",
    "encoding.fell_back/1": "{context} {encoding} failed at {stage}: {reason}",
    "request.sent/1": "{request} attempt {attempt} to {provider} {model}",
    "response.received/1": "{request} attempt {attempt}: {body.size} bytes in {elapsed_ms} ms",
    "usage.measured/1": "{request} prompt {prompt}, cached {cached}, output {output:token}",
    "request.failed/1": "{request} attempt {attempt}: {kind} {message}",
    "outcome.unknown/1": "{request} attempt {attempt}: {policy}",
    "provider.failed_over/1": "{request} from {from_provider} to {to_provider}: {reason} {detail}",
    "response.accepted/1": "{request} attempt {attempt}",
    "response.rejected/1": "{request} attempt {attempt}: {kind}, {problems:problem}",
    "request.abandoned/1": "{request}: {reason} {detail}",
    "cache.decided/1": "{request} attempt {attempt}: {decision} ({reason})",
    "cache.create_requested/1": "{request} {estimated_tokens:token} for {ttl_seconds} s",
    "cache.create_unknown/1": "the reply was lost: {reason}",
    "cache.created/1": "{tokens:token} until {expires_at}",
    "cache.create_failed/1": "{kind}: {message}",
    "cache.rejected/1": "{request} attempt {attempt}: {kind}, {message}",
    "cache.lost/1": "{reason} {detail}",
    "cache.deleted/1": "{outcome}",
    "cache.settled/1": "{reads:read}, {cached_tokens:token}, saved {saved_nano_usd} nano-USD",
    "hypothesis.selected/1": "{hypothesis} {reason}",
    "hypothesis.assessed/1": "{hypothesis} {state} {notes}",
    "action.requested/1": "{action} {name} {arguments}",
    "action.refused/1": "{action} {kind}, {problems:problem}",
    "evidence.recorded/1": "{evidence} from {action} {kind}, {characters:character}",
    "early_review.held/1": "{request} accepted: {accepted}",
    "investigation.ended/1": "{reason} {detail}",
    "outcome.labelled/1": "{verdict} {note}",
    "case.forked/1": "{trial_id} from {origin_trial_id} at {origin_position}",
    "head.accepted/1": "at {position}; the anchor knew {anchor_position}. {reason}",
}


def line(event: Event) -> str:
    """Return what an event says, in one line, without its time and topic."""
    values = _Values({name: getattr(event, name) for name in type(event).model_fields})
    pattern = _LINES.get(event.TOPIC)
    if pattern is None:
        pattern = " ".join(f"{{{name}}}" for name in _scalars(event))
    return " ".join(pattern.format_map(values).split())


def _scalars(event: Event) -> list[str]:
    return [
        name
        for name in type(event).model_fields
        if name != "at" and isinstance(getattr(event, name), str | int) and getattr(event, name)
    ]


class _Values(dict[str, Any]):
    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if value is None:
            return _Unmeasured()
        if isinstance(value, tuple):
            return _Number(len(value))
        return _Number(value) if type(value) is int else value


class _Number(int):
    """A number that a pattern names with its noun: `{reads:read}`."""

    def __format__(self, noun: str) -> str:
        return counted(int(self), noun) if noun else str(int(self))


class _Unmeasured:
    def __format__(self, noun: str) -> str:
        return f"unmeasured {noun}s" if noun else "unmeasured"
