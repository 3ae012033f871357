"""Tables are a projection: their rows are those that events and state give, whatever the case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from ledger import events as e
from ledger.book import Book
from ledger.errors import LedgerDamaged, PayloadWithheld
from ledger.reader import Entry, Row
from projections import tables
from projections.spending import spending
from projections.state import State
from projections.tables import TABLES
from projections.tables.forms import (
    ActionRow,
    AttemptRow,
    CacheRow,
    CaseRow,
    CostRow,
    EventRow,
    EvidenceRow,
    HypothesisRow,
    RequestRow,
    ResponseRow,
    TextRow,
)
from tests.generated import History, Memory, histories

Rows = dict[type[Any], list[Any]]


A_TENTH = settings(max_examples=settings.default.max_examples // 10)


def made(reader: Any, *, words: bool = True) -> Rows:
    found: Rows = {table: [] for table in TABLES.values()}
    for row in tables.rows(reader, 3, "some", words=words):
        found[type(row)].append(row)
    return found


@A_TENTH
@given(history=histories())
def test_every_event_has_a_row_and_what_is_counted_equals_a_fold(history: History) -> None:
    state, found = history.state(), made(history.reader())
    topics = Counter(event.TOPIC for event in history.events())
    assert [row.position for row in found[EventRow]] == list(range(1, len(history.events()) + 1))
    assert Counter(row.topic for row in found[EventRow]) == topics
    assert {r.request: (r.status, r.attempts) for r in found[RequestRow]} == {
        r.id: (r.status, len(r.attempts)) for r in state.requests.values()
    }
    assert len(found[ResponseRow]) == topics["response.received/1"]
    assert Counter(row.verdict for row in found[ResponseRow]) == Counter(
        {
            "accepted": topics["response.accepted/1"],
            "rejected": topics["response.rejected/1"],
            None: len(found[ResponseRow])
            - topics["response.accepted/1"]
            - topics["response.rejected/1"],
        }
    )
    assert {h.hypothesis: (h.state, h.notes) for h in found[HypothesisRow]} == {
        h.id: (h.state, h.notes) for h in state.hypotheses.values()
    }
    assert {a.action: a.result for a in found[ActionRow]} == {
        a.id: a.result or None for a in state.actions.values()
    }
    assert {x.evidence: x.document for x in found[EvidenceRow]} == {
        x.id: x.content.digest for x in state.evidence.values()
    }
    assert len(found[CacheRow]) == sum(n for t, n in topics.items() if t.startswith("cache."))
    _check_attempts_and_costs(history, state, found)
    _check_case(state, found)
    _check_keys(found)


def _check_attempts_and_costs(history: History, state: State, found: Rows) -> None:
    attempts = {(a.request, a.attempt): (a.status, a.provider) for a in found[AttemptRow]}
    assert attempts == {
        (request.id, attempt.number): (attempt.status, attempt.provider)
        for request in state.requests.values()
        for attempt in request.attempts
    }
    spent = spending(history.entries())
    for name in ("prompt", "cached", "output", "thoughts", "cost_nano_usd"):
        stated = [n for row in found[CostRow] if (n := getattr(row, name)) is not None]
        assert getattr(spent, name) == (sum(stated) if stated else None)


def _check_case(state: State, found: Rows) -> None:
    (case,) = found[CaseRow]
    assert (case.id, case.position, case.revision) == (3, state.position, state.revision)
    assert case.outcome == (state.diagnosis["outcome"] if state.diagnosis else None)
    assert (case.trial_id, case.generation) == (state.trial_id, state.generation)
    assert (case.attention or "", case.stopped or "") == (state.attention, state.stopped)


def _check_keys(found: Rows) -> None:
    for table, rows in found.items():
        keys = [tuple(getattr(row, name) for name in table.KEY) for row in rows]
        assert len(keys) == len(set(keys)), table


@A_TENTH
@given(history=histories())
def test_without_words_there_are_no_words(history: History) -> None:
    class NoPayloads(Memory):
        def payload(self, digest: str) -> bytes:
            raise AssertionError("a payload was read")

    full, bare = made(history.reader()), made(NoPayloads(history), words=False)
    assert bare[TextRow] == []
    for table, rows in bare.items():
        if table is not TextRow:
            assert rows == [row.without_words() for row in full[table]]
            for row in rows:
                assert not any(getattr(row, name) for name in row.WORDS)


@pytest.mark.parametrize(
    ("name", "kept"), [("search_code", "search_code"), ("please tell me of Wexford", None)]
)
def test_a_name_that_no_action_has_is_words(name: str, kept: str | None) -> None:
    asked = ActionRow(1, "A1", 7, "x", name, "model", None, None, 1, None, None, "{}", "{}")
    bare = asked.without_words()
    assert isinstance(bare, ActionRow)
    assert (bare.name, bare.arguments, bare.expanded, bare.action) == (kept, None, None, "A1")


LIVE = ("plain", "focused", "troubled", "amended", "extended")


@pytest.mark.parametrize("name", LIVE)
def test_report_evidence_and_answers_are_among_the_texts(lives: dict[str, Path], name: str) -> None:
    with Book.open(lives[name]) as book:
        found = made(book)
    kinds = Counter(row.kind for row in found[TextRow])
    assert kinds["event"] == len(found[EventRow])
    assert kinds["evidence"] == len(found[EvidenceRow])
    report = "\n".join(row.text for row in found[TextRow] if row.kind == "report_block")
    assert "returns 20 instead of 30" in report
    log = "\n".join(row.text for row in found[TextRow] if row.kind == "log_excerpt")
    assert "dropped item plum" in log
    looks = "\n".join(row.text for row in found[TextRow] if row.kind == "evidence")
    assert "for item in items[:-1]:" in looks
    if found[CaseRow][0].outcome:
        diagnosis = [row.text for row in found[TextRow] if row.kind == "diagnosis.concluded"]
        assert "The last item is left out." in diagnosis[-1]


class Withholding:
    """A copy made for sharing: the last event withheld, and every payload."""

    def __init__(self, history: History) -> None:
        self._reader = history.reader()
        self.case_id, self.head = self._reader.case_id, self._reader.head

    def events(self, upto: int | None = None, *, after: int = 0) -> Iterator[Entry]:
        return self._reader.events(self.head.position - 1)

    def rows(self, upto: int | None = None, *, after: int = 0) -> Iterator[Row]:
        *shown, last = self._reader.rows()
        yield from shown
        yield replace_row(last)

    def payload(self, digest: str) -> bytes:
        raise PayloadWithheld(f"payload {digest} is withheld in this copy")


def replace_row(row: Row) -> Row:
    return row._replace(state=None, nonce=None, withheld_leaf=row.leaf())


@A_TENTH
@given(history=histories())
def test_what_a_copy_withholds_is_null_and_its_place_is_kept(history: History) -> None:
    found = made(Withholding(history))
    last = found[EventRow][-1]
    assert (last.position, last.at, last.state, last.line) == (
        len(history.events()), None, None, None,
    )  # fmt: skip
    assert last.topic == history.events()[-1].TOPIC
    assert all(row.document_json is None for row in found[EvidenceRow])
    assert {row.kind for row in found[TextRow]}.isdisjoint({"evidence", "report_block"})


class Patched(Memory):
    """A record made elsewhere: consistent, and still nonsense."""

    def __init__(self, history: History, change: Any) -> None:
        super().__init__(history)
        self._entries = [Entry(n, change(event)) for n, event in self._entries]


def _odd(event: e.Event) -> e.Event:
    if isinstance(event, e.ArtifactAdded) and event.encoding:
        return event.model_copy(update={"encoding": "no-such-encoding"})
    return event


@A_TENTH
@given(history=histories(most=0, ahead=3))
def test_a_record_that_is_not_of_our_making_is_damage_in_one_line(history: History) -> None:
    with pytest.raises(LedgerDamaged, match=r"^some: the record is not one that tables"):
        made(Patched(history, _odd))


def test_columns_of_words_are_columns() -> None:
    for table in TABLES.values():
        assert set(table.KEY) <= set(table.columns())
        assert set(table.columns()) >= table.WORDS
