"""Progress on long work: one live line on a terminal, else one plain line a phase.

On stderr, so that an answer on stdout stays clean; with `--json` there is none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from projections.wording import counted
from tools.output import note, one_line, spoken

if TYPE_CHECKING:
    from phases.steps import Step
    from projections.state import State


class Teller(Protocol):
    """Says what is being done now."""

    def __call__(self, text: str) -> None: ...


@contextmanager
def telling(*, quiet: bool = False) -> Iterator[Teller]:
    """Yield a function that shows what is being done, as fits stderr."""
    if quiet:
        yield lambda text: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.markup import escape

        console = Console(stderr=True)
        with console.status("") as status:
            yield lambda text: status.update(escape(one_line(text, console.width - 4)))
    else:
        yield _plain_lines()


def _plain_lines() -> Teller:
    said = ""

    def tell(text: str) -> None:
        nonlocal said
        phase = text.partition(": ")[0]
        if phase != said:
            said = phase
            note(f"  {one_line(phase, 160)}")

    return tell


@contextmanager
def counting(total: int, what: str, *, quiet: bool = False) -> Iterator[Teller]:
    """Yield a function to be called with the name of each of `total` things that is done: a bar on
    a terminal, else a line each.
    """
    if quiet:
        yield lambda text: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda text: bar.update(
                task, advance=1, description=escape(f"{what}: {one_line(text, 40)}")
            )
    else:
        numbers = iter(range(1, total + 1))
        yield lambda text: note(f"  {what}: {next(numbers)} of {total}, {one_line(text, 100)}")


def step_text(state: State, step: Step) -> str:
    """Return what a step does: `PHASE: …` with hypothesis, action and budget."""
    from phases import steps

    match step:
        case steps.Begin(phase):
            text = f"{spoken(phase)}: building the context"
        case steps.Ask(request):
            again = f", attempt {len(request.attempts) + 1}" if request.attempts else ""
            text = f"{spoken(request.phase)}: asking {request.id}{again}"
        case steps.Read(request):
            text = f"{spoken(request.phase)}: reading the answer to {request.id}"
        case steps.Correct(request):
            text = f"{spoken(request.phase)}: correcting {request.id}"
        case steps.Act(action):
            chosen = state.actions[action]
            text = f"investigation: {action} {chosen.name} {_arguments(chosen.expanded)}"
        case steps.Abandon(request):
            text = f"{spoken(request.phase)}: giving {request.id} up"
        case steps.End():
            text = "investigation: ending"
        case _:
            return "finishing"
    return f"{text}{_budget(state)}"


def _arguments(arguments: object) -> str:
    values = arguments.values() if isinstance(arguments, dict) else ()
    return one_line(", ".join(str(value) for value in values), 60)


def _budget(state: State) -> str:
    if not state.hypotheses or state.ended:
        return ""
    selected = f", {state.selected}" if state.selected else ""
    spent = state.spent
    return f"  [{counted(spent.requests, 'step')}, {counted(spent.actions, 'action')}{selected}]"
