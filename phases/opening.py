"""Opening a case and adding to it: the intake's steps appended to a ledger."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ledger.book import Book
from ledger.clock import Sources
from ledger.events import CaseAmended, CaseOpened, Event, RequestAbandoned
from phases.intake import IntakeError, IntakeRequest, Known, Summary, Taken, take, title_of
from phases.intake.take import Progress
from projections.folding import fold
from projections.state import State

FIRST_READ = 65_536
"""Bytes of a report that its title is looked for in."""


def open_case(
    path: Path,
    request: IntakeRequest,
    *,
    program: str,
    sources: Sources | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Create a case from what the user gave; it appears under its name when all is taken in.

    Raises:
        IntakeError: bad input; nothing was created.
        CaseExists, StorageError: the case cannot be created there.
    """
    summary = Summary()
    sources = sources or Sources()
    with Book.create(path, sources=sources) as book:
        opened = CaseOpened(
            at=sources.now(),
            case_id=sources.identity("case"),
            trial_id=sources.identity("trial"),
            title=_title(request),
            program=program,
        )
        steps = take(request, now=sources.now, progress=progress, summary=summary)
        _append_all(book, (opened,), steps)
    return summary


def amend_case(
    book: Book,
    request: IntakeRequest,
    *,
    note: str = "",
    abandon: bool = False,
    progress: Progress | None = None,
) -> Summary:
    """Add facts to a case: a new revision of its intake.

    Raises:
        IntakeError: bad input, or a request is unanswered and `abandon` is false; nothing changed.
    """
    state = fold(book.events())
    before: list[Event] = []
    if state.open_request:
        if not abandon:
            raise IntakeError(
                f"request {state.open_request.id} is not answered yet; let `run` finish it, or "
                "give it up with --abandon"
            )
        before.append(
            RequestAbandoned(at=book.sources.now(), request=state.open_request.id, reason="amended")
        )
    revision = state.revision + 1
    before.append(CaseAmended(at=book.sources.now(), revision=revision, note=note))
    summary = Summary()
    steps = take(
        request,
        revision=revision,
        first_artifact=len(state.artifacts) + 1,
        first_observation=len(state.observations) + 1,
        known=Known(state.package_id, _report_text(book, state)),
        now=book.sources.now,
        progress=progress,
        summary=summary,
    )
    _append_at_once(book, before, list(_held(steps)))
    return summary


def _append_all(book: Book, first: tuple[Event, ...], steps: Iterable[Taken]) -> None:
    for taken in steps:
        book.append(*first, *taken.events, payloads=taken.payloads)
        first = ()


def _held(steps: Iterable[Taken]) -> Iterable[Taken]:
    """Yield steps with their payloads read: logs and databases of an amendment are few."""
    for taken in steps:
        yield Taken(taken.events, tuple(taken.payloads))


def _append_at_once(book: Book, first: list[Event], steps: list[Taken]) -> None:
    """One transaction: a revision is there whole, or not at all."""
    events = [*first, *(event for taken in steps for event in taken.events)]
    book.append(*events, payloads=(data for taken in steps for data in taken.payloads))


def _title(request: IntakeRequest) -> str:
    try:
        assert request.report is not None
        with request.report.open("rb") as file:
            return title_of(file.read(FIRST_READ).decode("utf-8", "replace"))
    except (OSError, AssertionError):
        return "untitled"  # the intake says what is wrong with the report


def _report_text(book: Book, state: State) -> str:
    report = next(a for a in state.artifacts if a.kind == "report" and a.content is not None)
    assert report.content is not None
    return book.payload(report.content.digest).decode(report.encoding or "utf-8")
