"""What goes with what is withheld: the rules of docs/decisions/0013, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import canonical, packing
from ledger import events as e
from ledger.book import Book
from ledger.errors import PayloadWithheld
from ledger.events import EVENTS, references
from ledger.package import Package, verify_package
from ledger.reader import RecordReader, Withheld
from ledger.redacted import Redacted
from projections.folding import fold
from projections.redaction import MEASURED, TEXTS, NoSuchPart, redaction
from tests.generated import History, histories
from tests.ledger.making import append_raw, fixed_sources, whole_record
from tests.support import OPENED, ref

A_TWENTIETH = settings(max_examples=settings.default.max_examples // 20)
STRUCTURE = Path(__file__).with_name("structure.txt")


def fields() -> Iterator[str]:
    """Yield topic and field of everything that stays in a copy although it came after."""
    for cls in EVENTS:
        for name, field in cls.model_fields.items():
            is_ref = field.annotation is e.Ref or e.Ref in get_args(field.annotation)
            if name != "at" and not is_ref and name not in TEXTS.get(cls, ()):
                yield f"{cls.TOPIC} {name}"


def test_every_field_that_stays_was_judged_to_be_structure() -> None:
    """A new field is a decision: text goes to TEXTS, structure to structure.txt."""
    assert list(fields()) == STRUCTURE.read_text().splitlines()


def test_every_field_of_text_exists() -> None:
    for cls, names in TEXTS.items():
        assert set(names) <= set(cls.model_fields), cls
    for cls, name in MEASURED.items():
        assert name in cls.model_fields


@pytest.fixture
def case(tmp_path: Path) -> Path:
    path = tmp_path / "a.case"
    with Book.create(path, sources=fixed_sources()) as book:
        for event, payloads in whole_record():
            book.append(event, payloads=payloads)
    return path


def test_what_a_service_said_of_a_cache_or_of_usage_goes_if_it_quotes(tmp_path: Path) -> None:
    said = "the loyalty ledger of Wexford multiplies vouchers at midnight"
    decided = {"at": OPENED.at, "attempt": 1, "provider": "p", "model": "m", "mode": "auto",
               "decision": "none"}  # fmt: skip
    events: list[tuple[e.Event, list[bytes]]] = [
        (OPENED, []),
        (e.ArtifactAdded(at=OPENED.at, artifact="S1", kind="log", name="a.log", revision=1,
                         media="text", encoding="utf-8", content=ref(said.encode())),
         [said.encode()]),
        (e.CacheDecided(**decided, request="R1", reason="x", basis={"rejected": said}), []),
        (e.CacheDecided(**decided, request="R2", reason="x", basis={"detail": said}), []),
        (e.CacheDecided(**decided, request="R3", reason="x", basis={"tokens": 7}), []),
        (e.UsageMeasured(at=OPENED.at, request="R1", attempt=1, details={"note": said}), []),
        (e.UsageMeasured(at=OPENED.at, request="R2", attempt=1, details={"total": 7}), []),
    ]  # fmt: skip
    with Book.create(tmp_path / "a.case") as book:
        for event, payloads in events:
            book.append(event, payloads=payloads)
        assert redaction(book, ["S1"]).withheld.positions == {3, 4, 6}


def test_requests_before_the_one_withheld_stay(case: Path) -> None:
    with Book.open(case) as book:
        documents = {
            x.request: x.document.digest
            for _, x in book.events()
            if isinstance(x, e.RequestPrepared)
        }
        found = redaction(book, ["R2"])
        assert found.roots == ("R2",)
        left_out = {name for name, digest in documents.items() if digest in found.withheld.payloads}
    assert left_out == {"R2", "R3"}


def test_a_position_of_structure_takes_nothing_with_it(case: Path) -> None:
    with Book.open(case) as book:
        position = next(n for n, x in book.events() if isinstance(x, e.RunStarted))
        assert redaction(book, [f"#{position}"]).withheld == Withheld(frozenset({position}))


def test_events_of_a_newer_release_go_with_what_only_they_need(case: Path, tmp_path: Path) -> None:
    payload = b"what only a newer release knows the use of"
    with Book.open_for_writing(case) as book:
        book._writer([whole_record()[-1][0]])
        book.payloads.put(payload)
    append_raw(case, "secret.told/1", b'{"at":"x","words":"who knows"}')
    with Book.open(case) as book:
        last = book.head.position
        found = redaction(book, ["S1"])
        assert last in found.withheld.positions
        assert canonical.digest(payload) in found.withheld.payloads
        packing.write(Redacted(book, found.withheld), tmp_path / "a.zip")
        later = redaction(book, [f"#{last}"])
        assert later.withheld.positions == {last}
    with Package(tmp_path / "a.zip") as package:
        assert verify_package(package).findings == []
        assert canonical.digest(payload) not in dict(package.stored_payloads())


def test_a_newer_event_before_what_is_withheld_stays_with_its_payloads_withheld(
    tmp_path: Path,
) -> None:
    """What it needs is not known: its payloads are listed, and not there."""
    path = tmp_path / "a.case"
    record = whole_record()
    with Book.create(path, sources=fixed_sources()) as book:
        book.append(record[0][0])
    payload = b"what only a newer release knows the use of"
    with Book.open_for_writing(path) as book:
        book._writer([record[-1][0]])
        book.payloads.put(payload)
    append_raw(path, "secret.told/1", b'{"at":"x"}')
    topics_known = pytest.MonkeyPatch()
    topics_known.setattr("ledger.book.refuse_unknown_topics", lambda *_: None)
    try:
        with Book.open_for_writing(path) as book:
            for event, payloads in record[1:]:
                book.append(event, payloads=payloads)
    finally:
        topics_known.undo()
    with Book.open(path) as book:
        copy = Redacted(book, redaction(book, ["S3"]).withheld)
        packing.write(copy, tmp_path / "a.zip")
    with Package(tmp_path / "a.zip") as package:
        assert verify_package(package).ok
        assert canonical.digest(payload) in package.withheld.payloads


@pytest.mark.parametrize("name", ["S9", "E1", "R9", "#0", "#999", "x", "", "S", "#", "#-1", "s1"])
def test_what_is_not_there_is_said_so(name: str, case: Path) -> None:
    with Book.open(case) as book, pytest.raises(NoSuchPart, match="name an artefact") as caught:
        redaction(book, [name])
    assert len(str(caught.value).splitlines()) == 1


# Laws ---------------------------------------------------------------------------------------------


def withholdable(history: History) -> list[str]:
    """Return everything of a case that can be withheld."""
    names = [f"#{n}" for n, _ in history.entries()]
    for event in history.events():
        if isinstance(event, e.ArtifactAdded):
            names += [event.artifact, event.kind]
        elif isinstance(event, e.EvidenceRecorded):
            names.append(event.evidence)
        elif isinstance(event, e.RequestPrepared):
            names.append(event.request)
    return sorted(set(names))


@A_TWENTIETH
@given(history=histories(), data=st.data())
def test_a_copy_is_the_record_without_what_is_withheld(
    history: History, data: st.DataObject
) -> None:
    wanted = data.draw(st.lists(st.sampled_from(withholdable(history)), min_size=1, max_size=3))
    whole = history.reader()
    found = redaction(whole, wanted)
    copy = Redacted(whole, found.withheld)
    assert (copy.case_id, copy.head) == (whole.case_id, whole.head)
    for row, shown in zip(whole.rows(), copy.rows(), strict=True):
        assert (shown.leaf(), shown.chain, shown.topic) == (row.leaf(), row.chain, row.topic)
        assert (shown.state is None) == (row.position in found.withheld.positions)
    kept = [entry for entry in whole.events() if entry.position not in found.withheld.positions]
    assert list(copy.events()) == kept
    assert_payloads(whole, copy, found.withheld)
    fold(copy.events())  # what follows from something withheld is passed over, never an error


def assert_payloads(whole: RecordReader, copy: Redacted, withheld: Withheld) -> None:
    for digest, _ in whole.stored_payloads():
        if digest in withheld.payloads:
            with pytest.raises(PayloadWithheld):
                copy.payload(digest)
        else:
            assert copy.payload(digest) == whole.payload(digest)
    assert copy.withheld.payloads <= withheld.payloads


@A_TWENTIETH
@given(history=histories(), data=st.data())
def test_what_came_before_is_not_withheld(history: History, data: st.DataObject) -> None:
    position = data.draw(st.integers(1, len(history.events())))
    event = history.events()[position - 1]
    found = redaction(history.reader(), [f"#{position}"]).withheld
    if isinstance(event, e.ArtifactAdded) and event.kind == "report":
        return  # its title stands before it
    assert min(found.positions) == position
    earlier = {
        ref.digest
        for n, before in history.entries()
        if n < position and not isinstance(before, e.ContextCreated)
        for ref in references(before)
    }
    later = {ref.digest for _, x in history.entries()[position - 1 :] for ref in references(x)}
    assert found.payloads & (earlier - later) == set()
