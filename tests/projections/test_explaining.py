"""Explanations: every part has its events, nothing that is left out goes unsaid."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import canonical
from ledger.book import Book
from ledger.errors import LedgerDamaged
from ledger.events import ContextCreated, RequestPrepared
from ledger.package import Package
from ledger.reader import CaseReader
from phases.settings import Settings
from projections.explaining import Explanation, LeftOut, Part, explain
from projections.requests import message_text, restored_view
from projections.saw import saved_document
from tests.generated import A_TWENTIETH, History, histories
from tests.phases import scripting
from tests.phases.conftest import scratch as scratch
from tests.phases.conftest import taken_in as taken_in
from tests.phases.scripting import Script, run

PACKAGES = Path(__file__).parents[1] / "frozen" / "cases"


def requests(reader: CaseReader) -> list[RequestPrepared]:
    return [event for _, event in reader.events() if isinstance(event, RequestPrepared)]


def every(parts: tuple[Part, ...]) -> Iterator[Part]:
    for part in parts:
        yield part
        yield from every(part.parts)


def explained_well(reader: CaseReader, prepared: RequestPrepared) -> Explanation:
    """Check what must hold for every request of every case."""
    explained = explain(reader, prepared.request)
    topics = {position: event.TOPIC for position, event in reader.events()}
    document = saved_document(reader, prepared.request, prepared.document)
    view = restored_view(document)
    sizes = {f"view.{name}": len(message_text(value)) for name, value in view.items()}
    parts = {part.part: part for part in explained.parts}
    assert {name: parts[name].characters for name in sizes} == sizes
    assert set(parts) - set(sizes) == {"system", "schema"} | {
        f"feedback[{n}]" for n in range(1, len(document["messages"]))
    }
    for part in every(explained.parts):
        assert all(topics[where.position] == where.topic for where in part.events), part
        assert all(where.position <= explained.position for where in part.events), part
        assert list(part.events) == sorted(set(part.events)), part
    for name, value in view.items():
        assert bool(parts[f"view.{name}"].events) == (value not in (None, [], {}, "")), name
    for item in explained.left_out:
        assert item.number > 0
        assert item.number == len(item.names) or item.kind in (
            "excerpted",
            "not_listed",
            "replaced",
        )
    return explained


def test_every_part_of_every_request_names_the_events_it_comes_from(lived: Path) -> None:
    with Book.open(lived) as book:
        for prepared in requests(book):
            explained_well(book, prepared)


@pytest.mark.parametrize("name", ["example", "example-v8", "example-v9"])
def test_every_part_of_a_packages_requests_names_its_events(name: str) -> None:
    with Package(PACKAGES / f"{name}.zip") as package:
        for prepared in requests(package)[::3]:
            explained_well(package, prepared)


@A_TWENTIETH
@given(history=histories(ahead=30), data=st.data())
def test_every_part_of_a_random_request_names_its_events(
    history: History, data: st.DataObject
) -> None:
    reader = history.reader()
    if made := requests(reader):
        explained_well(reader, data.draw(st.sampled_from(made)))


def left(explained: Explanation, kind: str) -> list[LeftOut]:
    return [item for item in explained.left_out if item.kind == kind]


def named(book: Book, name: str) -> Explanation:
    return explain(book, name)


def part(explained: Explanation, name: str) -> Part:
    return next(part for part in every(explained.parts) if part.part == name)


def test_evidence_that_a_focused_view_hides_is_named_with_the_view(lives: dict[str, Path]) -> None:
    with Book.open(lives["focused"]) as book:
        hidden = [
            item for r in requests(book) for item in left(named(book, r.request), "not_shown")
        ]
        full = Book.open(lives["plain"])
        with full:
            shown = [
                item
                for r in requests(full)
                if r.phase == "investigation"
                for item in left(named(full, r.request), "not_shown")
            ]
    focused = [item for item in hidden if item.policy == "view investigation_focused_v1"]
    assert focused
    assert all(item.names for item in focused)
    assert shown == []


def test_evidence_item_names_its_look_and_its_result(lives: dict[str, Path]) -> None:
    with Book.open(lives["plain"]) as book:
        last = requests(book)[-1].request
        item = part(named(book, last), "view.evidence[?@.id=='E1']")
        assert [where.topic for where in item.events] == [
            "action.requested/1",
            "evidence.recorded/1",
        ]


def test_a_corrections_feedback_names_the_rejection_that_caused_it(lives: dict[str, Path]) -> None:
    with Book.open(lives["troubled"]) as book:
        corrects = next(r for r in requests(book) if r.corrects)
        feedback = part(named(book, corrects.request), "feedback[1]")
    assert [where.topic for where in feedback.events] == ["response.rejected/1"]


def test_a_file_is_only_catalogued_until_evidence_shows_its_lines(lives: dict[str, Path]) -> None:
    with Book.open(lives["plain"]) as book:
        first, *_, late = [r.request for r in requests(book) if r.phase == "diagnosis" or
                           r.phase == "entity_resolution"]  # fmt: skip
        before = {n for item in left(named(book, first), "catalogued") for n in item.names}
        after = {n for item in left(named(book, late), "catalogued") for n in item.names}
    assert {"shop/cart.py", "S3", "S4"} <= before
    assert before - after >= {"shop/cart.py", "S3", "S4"}


def test_a_hypothesis_carried_over_an_amendment_names_the_amendment(
    lives: dict[str, Path],
) -> None:
    with Book.open(lives["amended"]) as book:
        contexts = [e for _, e in book.events() if isinstance(e, ContextCreated)]
        again = next(c for c in contexts if c.revision == 2 and c.phase == "hypotheses")
        name = next(r.request for r in requests(book) if r.context == again.context)
        carried = part(named(book, name), "view.hypotheses[?@.id=='H1']")
    assert [w.topic for w in carried.events] == ["hypotheses.proposed/1", "case.amended/1"]


def test_what_no_egress_withholds_is_named_with_the_setting(taken_in: Path, scratch: Path) -> None:
    path = scripting.copied(taken_in, scratch / "remote.case")
    settings = Settings(providers=("scripted",), no_egress=("database", "log"))
    run(path, Script(remote=True), settings=settings)
    with Book.open(path) as book:
        explained = explained_well(book, requests(book)[-1])
        first = explained_well(book, requests(book)[0])
    for item in (explained, first):
        assert left(item, "withheld")[0].names == ("S3", "S4")
        assert left(item, "withheld")[0].policy == "no_egress of the configuration"


def test_a_request_that_is_not_there_is_a_key_error(lives: dict[str, Path]) -> None:
    with Book.open(lives["plain"]) as book, pytest.raises(KeyError):
        explain(book, "R999")


VIEWS: list[Any] = [
    5, [], {}, {"sources": 1}, {"sources": {"artifacts": [1], "observations": 2}},
    {"evidence": [{}], "sources": {"artifacts": [], "observations": []}},
    {"catalogs": {"files": {"items": [1]}}, "evidence": [{"arguments": 3}]},
]  # fmt: skip


@pytest.mark.parametrize("view", VIEWS, ids=repr)
def test_a_request_of_nonsense_is_damage_and_no_traceback(
    view: Any, lives: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Book.open(lives["plain"]) as book:
        saved = requests(book)[-1]
        document = saved_document(book, saved.request, saved.document)
        document["messages"][0]["content"] = view
        context = canonical.to_bytes(view)
        real = book.payload

        def payload(digest: str) -> bytes:
            if digest == saved.document.digest:
                return canonical.to_bytes(document)
            return context if digest in contexts else real(digest)

        contexts = {e.content.digest for _, e in book.events() if isinstance(e, ContextCreated)}
        monkeypatch.setattr(book, "payload", payload)
        with pytest.raises(LedgerDamaged):
            explain(book, saved.request)
