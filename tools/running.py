"""Running a case from the command line: settings, progress, and how a run's end is told."""

from __future__ import annotations

import sqlite3
import sys
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import prompts
from ledger.book import Book
from ledger.clock import Sources
from ledger.events import BudgetExtended
from ledger.reader import CaseReader
from phases import ORDER
from phases.pinned import pinned_settings
from phases.providers import Provider, open_provider
from phases.providers.prices import cost, price_at
from phases.run import Options, Run, Stopped
from phases.settings import Settings
from phases.steps import Stop, next_step
from projections.folding import fold
from projections.state import State
from projections.wording import counted
from tools.configuration import effective
from tools.exits import NeedsAttention, ProviderGaveUp, UserError
from tools.output import money, note, spoken
from tools.progress import step_text, telling
from tools.selecting import find_case
from tools.version import program

_KINDS = {"db": "database", "database": "database", "log": "log", "source": "source"}
_BUDGETS = {
    "requests": "requests",
    "actions": "actions",
    "characters": "evidence_characters",
    "evidence_characters": "evidence_characters",
}


@dataclass(frozen=True)
class Wanted:
    """What the command line asks of a run."""

    providers: list[str] = field(default_factory=list)
    protocols: list[str] = field(default_factory=list)
    no_egress: list[str] = field(default_factory=list)
    until: str = ""
    max_requests: int | None = None
    resend: bool = False
    renew: bool = False
    add_budget: list[str] = field(default_factory=list)


def settings_wanted(wanted: Wanted) -> Settings:
    """Return the settings a run would use; no provider is opened, so no key is needed.

    Raises:
        UserError, PromptError: one line with what to do.
    """
    overrides: dict[str, Any] = {}
    if wanted.providers:
        overrides["providers"] = [_located(name) for name in wanted.providers]
    if wanted.protocols:
        overrides["protocols"] = {prompts.card(name).phase: name for name in wanted.protocols}
    if wanted.no_egress:
        overrides["no_egress"] = [_kind(text) for text in wanted.no_egress]
    return effective(overrides).settings


def check_wanted(wanted: Wanted) -> Settings:
    """Return the settings a run would use; refuse what cannot be, before anything is done.

    Raises:
        UserError, PromptError, ProviderConfigurationError: one line with what to do.
    """
    if wanted.until and wanted.until not in ORDER:
        raise UserError(f"--until {wanted.until}: the phases are {', '.join(ORDER)}")
    settings = settings_wanted(wanted)
    for phase, protocol in settings.protocols.items():
        if prompts.card(protocol).phase != phase:
            raise UserError(f"protocol {protocol} is not one of the phase {phase}")
    for specification in settings.providers:
        _check_price(open_provider(specification, settings), settings)
    return settings


def _located(specification: str) -> str:
    """Return a provider with the path of the recording it names as any command may name a case."""
    name, _, selector = specification.partition(":")
    return f"{name}:{find_case(selector)}" if name == "recorded" and selector else specification


def _check_price(provider: Provider, settings: Settings) -> None:
    """A limit on money holds only if somebody can say what an answer costs."""
    if settings.run.max_cost_usd and provider.remote and not provider.prices:
        raise UserError(
            f"run.max_cost_usd: no price of {provider.name} {provider.model} is known; state it in "
            f"{provider.name}.price, or leave the limit away"
        )


def run_case(path: Path, wanted: Wanted, *, quiet: bool) -> Stopped:
    """Run a case with progress; return why it stopped if that is a good end.

    Raises:
        NeedsAttention, ProviderGaveUp: ends that need somebody; all is recorded.
    """
    settings = check_wanted(wanted)
    options = Options(wanted.until, wanted.max_requests, wanted.resend, wanted.renew)
    with Book.open_for_writing(path) as book, telling(quiet=quiet) as tell:
        _extend_budget(book, wanted.add_budget)
        if next_step(fold(book.events()), settings) == Stop("done"):
            return Stopped("done", "the analysis was finished before; nothing was asked")
        if words := _finishes_elsewhere(book, fold(book.events()), settings, renew=wanted.renew):
            note(words)
        work = Run(
            book,
            settings,
            program(),
            options,
            progress=lambda state, step: tell(step_text(state, step)),
            libraries=_libraries(),
        )
        try:
            stopped = work.go()
        except KeyboardInterrupt:
            note(f"everything so far is recorded; go on with: caseledger run {path}")
            raise
    return _told(path, stopped, work.state)


def preview_run(path: Path, wanted: Wanted) -> dict[str, Any]:
    """Return what would leave the machine, to whom, and what it would cost."""
    settings = check_wanted(wanted)
    with Book.open(path) as book:
        state = fold(book.events())
        saved = _finishes_elsewhere(book, state, settings, renew=wanted.renew)
    providers = [open_provider(name, settings) for name in settings.providers]
    artifacts = [
        {
            "artifact": a.artifact,
            "kind": a.kind,
            "name": a.name,
            "leaves": _leaves(a.kind, settings),
        }
        for a in state.artifacts
    ]
    remote = [provider for provider in providers if provider.remote]
    shown: dict[str, Any] = {
        "providers": [
            {"name": p.name, "model": p.model, "endpoint": p.endpoint, "remote": p.remote}
            for p in providers
        ],
        "artifacts": artifacts if remote else [],
        "at_most_requests": _at_most(state, settings),
        "at_most_nano_usd": _at_most_cost(providers, _at_most(state, settings), settings),
    }
    lines = [*_preview_lines(shown, bool(remote)), *([saved] if saved else [])]
    return shown | {"lines": lines}


def _finishes_elsewhere(
    reader: CaseReader, state: State, settings: Settings, *, renew: bool
) -> str:
    """Return a remark if a prepared request will not go by these settings; empty if none will."""
    request = state.open_request
    if renew or request is None or request.status != "prepared":
        return ""
    pinned = pinned_settings(reader, state.contexts[request.context].configuration)
    if pinned.with_keys_of(settings) == settings:
        return ""
    return (
        f"{request.id} was prepared under other settings ({', '.join(pinned.providers)}) and goes "
        "out as it was saved, under them; --renew makes it anew under those of today"
    )


def _at_most(state: State, settings: Settings) -> int:
    """Return how many requests a run can prepare: steps that are left, each with corrections."""
    steps = sum(phase not in state.done for phase in ORDER if phase != "investigation")
    if "investigation" not in state.done:
        left = settings.budget.requests + state.added.requests - state.spent.requests
        steps += max(left, 0) + 1  # the review of a conclusion that took the last one
    return steps * (1 + settings.run.corrections)


def _at_most_cost(providers: list[Provider], requests: int, settings: Settings) -> int | None:
    """Return a bound on what a run is billed, nano-USD; None if a price is not known.

    Each request is taken to hold all the evidence there may be and as much again of everything
    else, at two characters a token, uncached, and its answer to be as long as it may be.
    """
    bounds = []
    for provider in providers:
        if not provider.remote:
            continue
        prompt = settings.budget.evidence_characters
        price = price_at(provider.prices, Sources().now(), prompt)
        if price is None:
            return None
        output = int(provider.parameters.get("max_output_tokens") or 0)
        bounds.append(cost({"prompt": prompt, "output": output}, price) or 0)
    return requests * max(bounds, default=0)


def _preview_lines(shown: dict[str, Any], remote: bool) -> list[str]:
    lines = [f"{p['name']}: {p['model']} at {p['endpoint']}" for p in shown["providers"]]
    if not remote and any(p["endpoint"] != "in-process" for p in shown["providers"]):
        return [*lines, "requests go to a server on this machine; what it passes on is not known"]
    if not remote:
        return [*lines, "nothing leaves this machine, nothing is billed"]
    for item in shown["artifacts"]:
        what = "may be quoted in requests" if item["leaves"] else "is kept here"
        lines.append(f"{item['artifact']} {item['kind']} {item['name']}: {what}")
    most = shown["at_most_nano_usd"]
    bill = "no price is known" if most is None else f"at most {money(most)}"
    requests = counted(shown["at_most_requests"], "request")
    return [*lines, f"at most {requests}, retries not counted; {bill}"]


def _leaves(kind: str, settings: Settings) -> bool:
    return kind not in settings.no_egress


def _told(path: Path, stopped: Stopped, state: State) -> Stopped:
    if stopped.reason == "provider":
        raise ProviderGaveUp(
            f"{stopped.detail}; go on with: caseledger run {path} (with other settings: --renew)"
        )
    if stopped.reason != "needs_attention":
        return stopped
    if stopped.detail == "information_needed":
        needs = "; ".join(str(need["what"]) for need in state.needs)
        raise NeedsAttention(f"information is needed: {needs}. Add it: caseledger amend {path} …")
    if stopped.detail == "outcome_unknown":
        raise NeedsAttention(
            "a request was sent and its outcome is unknown; send it again with: "
            f"caseledger run {path} --resend"
        )
    latest = list(state.requests.values())[-1]
    if stopped.detail == "request_differs":
        raise NeedsAttention(
            f"{latest.id} was saved, and this release cannot make its bytes again: nothing was "
            f"sent. Look: caseledger saw {path} {latest.id} --check. Run it with the release that "
            f"prepared it, or make it anew: caseledger run {path} --renew"
        )
    first = latest.problems[0].message if latest.problems else ""
    raise NeedsAttention(
        f"{latest.id} was given up ({spoken(stopped.detail)}): {first.rstrip('.')}. "
        f"Look: caseledger log {path} --kind response. Try again: caseledger run {path}"
    )


def _extend_budget(book: Book, wanted: list[str]) -> None:
    amounts: dict[str, int] = {}
    for text in wanted:
        name, _, number = text.partition("=")
        if name not in _BUDGETS or not number.isdecimal():
            raise UserError(f"--add-budget {text}: give requests=N, actions=N or characters=N")
        amounts[_BUDGETS[name]] = int(number)
    if amounts:
        book.append(BudgetExtended(at=book.sources.now(), **amounts))


def _kind(text: str) -> str:
    if text not in _KINDS:
        raise UserError(f"--no-egress {text}: kinds are source, log and db")
    return _KINDS[text]


def _libraries() -> dict[str, str]:
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "sqlite": sqlite3.sqlite_version,
        "eventsourcing": version("eventsourcing"),
        "pydantic": version("pydantic"),
    }
