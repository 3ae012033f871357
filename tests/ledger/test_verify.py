"""Verification: whatever is altered is found, and the first bad position is named."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import canonical, chain, payloads, topics
from ledger.anchor import read_anchor
from ledger.book import Book
from ledger.errors import LedgerDamaged, LedgerError, UnsafeEvent
from ledger.events import CaseForked, EvidenceRecorded, Ref, RunStarted
from ledger.payloads import pack_ids, unpack_ids
from ledger.reader import Head
from ledger.verify import Report, verify_book, verify_record
from tests.ledger.making import (
    AT,
    CASE,
    append_raw,
    contents,
    edit,
    filled,
    flip,
    head_path,
    note,
    opened,
    rechain,
    ref,
    request,
    small_case,
    tree_document,
    unguarded,
    wal_path,
    whole_case,
    whole_record,
)


def verify(path: Path, sealed: Head | None = None) -> Report:
    with Book.open(path) as book:
        return verify_book(book, sealed)


def verify_exactly(path: Path) -> Report:
    """Verify as a record that somebody else may have made, as packages are."""
    with Book.open(path) as book:
        return verify_record(book, lambda digest: book.payloads.check(digest, set()))


def damages(report: Report) -> list[str]:
    return [finding.message for finding in report.findings if finding.kind == "damage"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole_case(tmp_path_factory.mktemp("original") / "a.case")


@pytest.fixture
def case(original: Path, tmp_path: Path) -> Path:
    shutil.copyfile(head_path(original), tmp_path / "a.case.head")
    return Path(shutil.copyfile(original, tmp_path / "a.case"))


EVENTS = [event for event, _ in whole_record()]


def position_of(topic: str) -> int:
    return next(n for n, event in enumerate(EVENTS, 1) if topic == event.TOPIC)


FIRST_REQUEST = position_of("request.prepared/1")
SECOND_REQUEST = FIRST_REQUEST + 3


# Sound ledgers ------------------------------------------------------------------------------------


def test_a_sound_case_has_no_findings_and_says_what_was_looked_at(case: Path) -> None:
    with Book.open(case) as book:
        head, stored = book.head, len(list(book.stored_payloads()))
    report = verify(case, sealed=head)
    assert report.ok
    assert report.findings == []
    assert (report.head, report.events, report.payloads) == (head, len(EVENTS), stored)
    assert verify_exactly(case) == report
    assert report.first_bad_position is None


def test_verifying_changes_nothing(case: Path) -> None:
    before = case.read_bytes(), case.stat().st_mtime_ns, head_path(case).read_bytes()
    verify(case)
    assert (case.read_bytes(), case.stat().st_mtime_ns, head_path(case).read_bytes()) == before
    assert sorted(p.name for p in case.parent.iterdir()) == ["a.case", "a.case.head"]


def test_every_earlier_head_is_a_seal_that_holds(case: Path) -> None:
    with Book.open(case) as book:
        heads = [Head(row.position, row.chain) for row in book.rows()]
    assert all(verify(case, sealed=head).ok for head in heads[::4])


def test_a_case_without_anchor_is_sound_with_a_warning(case: Path) -> None:
    head_path(case).unlink()
    report = verify(case)
    assert report.ok
    assert [finding.kind for finding in report.findings] == ["warning"]
    assert "anchor is missing" in report.findings[0].message


@pytest.mark.parametrize("anchor", [0, 20])
def test_an_anchor_that_is_far_behind_is_no_better_than_none(anchor: int, case: Path) -> None:
    with Book.open_for_writing(case) as book:
        book.append(*(note(n) for n in range(200)))
        values = [bytes(32), *(row.chain for row in book.rows())]
    head_path(case).write_text(f"caseledger-head/1 {anchor} {values[anchor].hex()}\n")
    report = verify(case)
    assert report.ok
    (warning,) = report.findings
    assert f"knows position {anchor}, the ledger ends at {len(EVENTS) + 200}" in warning.message
    assert "a missing tail could not be seen" in warning.message


def test_an_anchor_that_is_one_append_behind_is_what_a_kill_leaves(case: Path) -> None:
    anchor = head_path(case).read_bytes()
    with Book.open_for_writing(case) as book:
        book.append(*(note(n) for n in range(5)))
    head_path(case).write_bytes(anchor)
    assert verify(case).findings == []


def test_events_of_a_newer_release_are_noted_and_their_chain_is_checked(case: Path) -> None:
    append_raw(case, "os:system", b'{"command":"true"}')
    append_raw(case, "run.stopped/1", topics.encode(note(9))[1][:-1] + b',"novelty":1}')
    report = verify(case)
    assert report.ok
    assert [(f.kind, f.position) for f in report.findings] == [
        ("note", len(EVENTS) + 1),
        ("note", len(EVENTS) + 2),
    ]
    edit(case, "UPDATE event SET topic = 'os:popen' WHERE topic = 'os:system'")
    assert verify(case).first_bad_position == len(EVENTS) + 1


# Events -------------------------------------------------------------------------------------------


def change(path: Path, column: str, position: int) -> None:
    """Flip a bit of a column of one event."""
    with unguarded(path) as connection:
        query = f"SELECT {column} FROM event WHERE position = ?"
        (value,) = connection.execute(query, (position,)).fetchone()
        other: Any = flip(value if isinstance(value, bytes) else str(value).encode())
        if isinstance(value, int):
            other = value + 1000
        elif isinstance(value, str):
            other = other.decode()
        connection.execute(f"UPDATE event SET {column} = ? WHERE position = ?", (other, position))


@pytest.mark.parametrize("position", [1, 2, 9, len(EVENTS)])
@pytest.mark.parametrize("column", ["case_id", "version", "topic", "state", "nonce", "chain"])
def test_a_flipped_bit_in_a_column_of_an_event_is_found_there(
    column: str, position: int, case: Path
) -> None:
    change(case, column, position)
    if (column, position) == ("case_id", len(EVENTS)):
        # The case a file says it is stands in its last row: all the others differ from it.
        position = 1
    report = verify(case)
    assert report.first_bad_position == position
    assert f"position {position}" in damages(report)[0] or "SQLite" in damages(report)[0]


@pytest.mark.parametrize("position", [1, 5, len(EVENTS)])
def test_a_changed_position_is_found_where_it_is_missing(position: int, case: Path) -> None:
    change(case, "position", position)
    assert verify(case).first_bad_position == position


@pytest.mark.parametrize("position", [1, 5, len(EVENTS) - 1])
def test_a_deleted_event_is_found_there(position: int, case: Path) -> None:
    edit(case, "DELETE FROM event WHERE position = ?", position)
    report = verify(case)
    assert report.first_bad_position == position
    assert f"position {position} is missing" in " ".join(damages(report))


def test_a_reader_of_a_case_file_never_passes_over_a_missing_event(case: Path) -> None:
    """A gap means "withheld" in a package, and nothing but damage in a case file."""
    edit(case, "DELETE FROM event WHERE position = 5")
    with Book.open(case) as book:
        assert [entry.position for entry in book.events(4)] == [1, 2, 3, 4]
        with pytest.raises(LedgerError, match="position 5 is missing"):
            list(book.events())
        with pytest.raises(LedgerError, match="position 5 is missing"):
            list(book.events(after=4))


@pytest.mark.parametrize("close_gap", [True, False])
@pytest.mark.parametrize("position", [2, 6])
def test_a_deleted_event_is_found_even_when_the_gap_is_closed(
    position: int, close_gap: bool, case: Path
) -> None:
    with unguarded(case) as connection:
        connection.execute("DELETE FROM event WHERE position = ?", (position,))
        if close_gap:
            shift(connection, position, -1)
    assert verify(case).first_bad_position == position


def shift(connection: sqlite3.Connection, first: int, by: int) -> None:
    """Move all events from `first` on; by way of far away, so that none are in the way."""
    far = 1_000_000
    for step in (far, by - far):
        connection.execute(
            "UPDATE event SET position = position + ?, version = version + ? WHERE position >= ?",
            (step, step, first if step > 0 else far),
        )


@pytest.mark.parametrize("position", [1, 2, 7])
def test_an_inserted_event_is_found_there(position: int, case: Path) -> None:
    topic, state = topics.encode(note(77))
    with unguarded(case) as connection:
        query = "SELECT chain FROM event WHERE position = ?"
        before = (connection.execute(query, (position - 1,)).fetchone() or (chain.ZERO,))[0]
        shift(connection, position, 1)
        nonce = bytes(16)
        value = chain.link(before, chain.leaf(CASE, position, topic, state, nonce))
        connection.execute(
            "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?)",
            (position, CASE, position, topic, state, nonce, value),
        )
    # Its own chain value was made to fit: the one after it cannot be.
    expected = position if position == 1 else position + 1
    assert verify(case).first_bad_position == expected


@pytest.mark.parametrize("first", [2, 9])
def test_two_events_in_each_others_place_are_found_at_the_first(first: int, case: Path) -> None:
    columns = "topic, state, nonce, chain"
    with unguarded(case) as connection:
        query = f"SELECT {columns} FROM event WHERE position IN (?, ?) ORDER BY position"
        one, two = connection.execute(query, (first, first + 1)).fetchall()
        for position, values in ((first, two), (first + 1, one)):
            connection.execute(
                f"UPDATE event SET ({columns}) = (?, ?, ?, ?) WHERE position = ?",
                (*values, position),
            )
    assert verify(case).first_bad_position == first


@pytest.mark.parametrize("left", [1, 5, len(EVENTS) - 1])
def test_a_cut_tail_is_found_by_anchor_and_by_seal(left: int, case: Path) -> None:
    with Book.open(case) as book:
        sealed = book.head
    edit(case, "DELETE FROM event WHERE position > ?", left)
    report = verify(case)
    assert report.first_bad_position == left + 1
    assert "tail is missing" in " ".join(damages(report))
    head_path(case).unlink()
    assert verify(case, sealed).first_bad_position == left + 1
    assert "the sealed head is at" in " ".join(damages(verify(case, sealed)))


@pytest.mark.parametrize("changed", [1, 9])
def test_a_record_rewritten_throughout_is_found_by_a_sealed_head(changed: int, case: Path) -> None:
    """Chain and anchor fit: only a head that was kept elsewhere can tell."""
    with Book.open(case) as book:
        heads = {row.position: Head(row.position, row.chain) for row in book.rows()}
    edit(case, "UPDATE event SET nonce = zeroblob(16) WHERE position = ?", changed)
    rechain(case)
    assert verify(case).ok
    for position in (changed, len(EVENTS)):
        report = verify(case, heads[position])
        assert report.first_bad_position == position
        assert "not the one that was sealed" in damages(report)[0]
    assert changed == 1 or verify(case, heads[changed - 1]).ok


def test_a_rewritten_record_is_found_by_an_old_anchor(case: Path) -> None:
    anchor = head_path(case).read_bytes()
    edit(case, "UPDATE event SET nonce = zeroblob(16) WHERE position = 9")
    rechain(case)
    head_path(case).write_bytes(anchor)
    assert verify(case).first_bad_position == len(EVENTS)


def restated(case: Path, position: int, change: Callable[[bytes], bytes]) -> Report:
    """Change a state, give the whole record a chain that fits, and verify."""
    with unguarded(case) as connection:
        query = "SELECT state FROM event WHERE position = ?"
        (state,) = connection.execute(query, (position,)).fetchone()
        assert change(state) != state
        connection.execute(
            "UPDATE event SET state = ? WHERE position = ?", (change(state), position)
        )
    rechain(case)
    return verify_exactly(case)


END, RUN = len(EVENTS), position_of("run.started/1")
STATES: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "space before": (1, lambda s: b" " + s),
    "space between": (1, lambda s: s.replace(b'","', b'", "', 1)),
    "needless escape": (1, lambda s: s.replace(b"A bug", b"A\\u0020bug")),
    "member twice": (1, lambda s: s[:-1] + b',"title":"again"}'),
    "another case": (1, lambda s: s.replace(b"case-17", b"case-18")),
    "text for a number": (END, lambda s: s.replace(b'"run":1', b'"run":"1"')),
    "float for a number": (END, lambda s: s.replace(b'"run":1', b'"run":1.0')),
    "true for a number": (END, lambda s: s.replace(b'"run":1', b'"run":true')),
    "default written out": (END, lambda s: s.replace(b"to the end", b"")),
    "other order": (END, lambda s: b'{"run":1,' + s[1:].replace(b'"run":1,', b"")),
    "not UTF-8": (END, lambda s: s.replace(b"to the end", b"\xff")),
    "an array": (END, lambda _: b"[]"),
    "NaN": (RUN, lambda s: s[:-1] + b',"options":{"a":NaN}}'),
    "overflow": (RUN, lambda s: s[:-1] + b',"options":{"a":1e999}}'),
    "inner member twice": (RUN, lambda s: s[:-1] + b',"options":{"a":1,"a":2}}'),
    "surrogate": (RUN, lambda s: s[:-1] + b',"options":{"a":"\\ud800"}}'),
    "deep": (RUN, lambda s: s[:-1] + b',"options":{"a":' + b"[" * 900 + b"}}"),
}


@pytest.mark.parametrize("kind", STATES)
def test_a_state_that_this_program_would_not_have_written_is_damage(kind: str, case: Path) -> None:
    position, change = STATES[kind]
    assert restated(case, position, change).first_bad_position == position
    assert verify(case).first_bad_position == position  # a case file by the rule of a package


@pytest.mark.parametrize("state", [b"", b"[]", b"{", b'{"a":NaN}', b'{"a": 1}', b'{"a":1,"a":2}'])
def test_a_state_of_a_newer_release_is_canonical_too(state: bytes, case: Path) -> None:
    append_raw(case, "zzz.happened/9", state)
    assert verify_exactly(case).first_bad_position == len(EVENTS) + 1
    assert verify(case).first_bad_position == len(EVENTS) + 1


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.recursive(FLOATS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_a_float_has_one_spelling_in_a_state(value: Any) -> None:
    """Some are spelled otherwise by the fast writer that states are compared with."""
    event = filled(RunStarted).model_copy(update={"options": {"a": value}})
    try:
        topic, state = topics.encode(event)
    except UnsafeEvent:
        return
    assert topics.is_canonical(topic, state, topics.decode(topic, state))
    fast = event.model_dump_json(exclude_defaults=True).encode()
    if fast != state:
        assert not topics.is_canonical(topic, fast, topics.decode(topic, fast))


# What the record says of itself -------------------------------------------------------------------


def contradicted(case: Path, topic: str, old: str, new: str) -> Report:
    """Replace a text in the first event of a topic; the chain fits."""
    change = lambda state: state.replace(old.encode(), new.encode(), 1)  # noqa: E731
    restated(case, position_of(topic), change)
    return verify(case)


def test_a_request_that_was_sent_as_another_document_is_damage(case: Path) -> None:
    said = canonical.digest(request(0))
    report = contradicted(case, "request.sent/1", said, canonical.digest(request(1)))
    assert report.first_bad_position == FIRST_REQUEST + 1
    assert f"R0 was prepared as {said}, and sent as" in damages(report)[0]


def test_a_second_artefact_of_one_name_is_damage(case: Path) -> None:
    event = EVENTS[position_of("artifact.added/1") - 1]
    append_raw(case, *topics.encode(event))
    report = verify(case)
    assert report.first_bad_position == len(EVENTS) + 1
    assert "there is an artefact 'S1' already" in damages(report)[0]


def test_an_identity_of_material_that_is_not_its_own_is_damage(case: Path) -> None:
    position = position_of("observations.extracted/1")
    said = EVENTS[position - 1].package_id  # type: ignore[attr-defined]
    other = "sha256:" + "0" * 64
    report = contradicted(case, "observations.extracted/1", said, other)
    assert report.first_bad_position == position
    assert f"package_id is {other}, the material of revision 1 gives {said}" in damages(report)[0]


@pytest.mark.parametrize(
    ("field", "value"),
    [("origin_position", 3), ("origin_chain", "00" * 32), ("origin_trial_id", "trial-9")],
)
def test_a_fork_of_another_history_than_its_own_is_damage(
    field: str, value: Any, case: Path
) -> None:
    with Book.open(case) as book:
        head = book.head
    right = CaseForked(
        at=AT,
        trial_id="trial-2",
        origin_trial_id="trial-1",
        origin_position=head.position,
        origin_chain=head.chain.hex(),
    )
    wrong = right.model_copy(update={field: value})
    before = case.read_bytes()
    append_raw(case, *topics.encode(right))
    assert verify(case).ok
    case.write_bytes(before)
    append_raw(case, *topics.encode(wrong))
    report = verify(case)
    assert report.first_bad_position == head.position + 1
    assert "case.forked/1: origin" in damages(report)[0]


def test_case_opened_in_the_middle_is_damage(case: Path) -> None:
    append_raw(case, *topics.encode(opened()))
    assert verify(case).first_bad_position == len(EVENTS) + 1


def test_a_record_that_does_not_begin_with_case_opened_is_damage(case: Path) -> None:
    topic, state = topics.encode(note(1))
    edit(case, "UPDATE event SET topic = ?, state = ? WHERE position = 1", topic, state)
    rechain(case)
    assert verify(case).first_bad_position == 1


# Payloads -----------------------------------------------------------------------------------------


def request_row(connection: sqlite3.Connection, number: int) -> tuple[bytes, list[int]]:
    name = bytes.fromhex(canonical.digest(request(number)).removeprefix("sha256:"))
    query = "SELECT chunks FROM document WHERE digest = ?"
    return name, unpack_ids(connection.execute(query, (name,)).fetchone()[0])


@pytest.mark.parametrize(
    "column", ["digest = ?", "codec = 1 - codec", "size = size + 1", "data = ?", "id = 99999"]
)
def test_a_changed_column_of_a_chunk_is_found_at_the_first_event_that_needs_it(
    column: str, case: Path
) -> None:
    with unguarded(case) as connection:
        first, second = (set(request_row(connection, n)[1]) for n in (0, 1))
        mine = min(second - first)  # new with the second request
        name = column.split()[0]
        (value,) = connection.execute(f"SELECT {name} FROM chunk WHERE id = ?", (mine,)).fetchone()
        parameters = [flip(value)] if "?" in column else []
        connection.execute(f"UPDATE chunk SET {column} WHERE id = ?", (*parameters, mine))
    report = verify(case)
    assert report.first_bad_position == SECOND_REQUEST
    assert canonical.digest(request(1)) in " ".join(damages(report))


@pytest.mark.parametrize("column", ["digest", "size", "chunks"])
def test_a_changed_column_of_a_document_is_found_at_its_event(column: str, case: Path) -> None:
    with unguarded(case) as connection:
        name, ids = request_row(connection, 1)
        value = {"digest": flip(name), "size": 1, "chunks": pack_ids(ids[::-1])}[column]
        connection.execute(f"UPDATE document SET {column} = ? WHERE digest = ?", (value, name))
    assert verify(case).first_bad_position == SECOND_REQUEST


def test_a_payload_replaced_by_another_whole_one_is_found(case: Path) -> None:
    """Chunk row and document row are consistent in themselves; only the digest is another."""
    data = b"what was never said"
    with unguarded(case) as connection:
        name, _ = request_row(connection, 1)
        connection.execute(
            "INSERT INTO chunk VALUES (9999, ?, 0, ?, ?)",
            (bytes.fromhex(canonical.digest(data)[7:]), len(data), data),
        )
        connection.execute(
            "UPDATE document SET size = ?, chunks = ? WHERE digest = ?",
            (len(data), pack_ids([9999]), name),
        )
    assert verify(case).first_bad_position == SECOND_REQUEST


@pytest.mark.parametrize(
    ("topic", "field"), [("response.received/1", "body"), ("artifact.added/1", "content")]
)
def test_a_size_in_an_event_that_is_not_the_payloads_is_damage(
    topic: str, field: str, case: Path
) -> None:
    position = position_of(topic)
    size = f'"size":{getattr(EVENTS[position - 1], field).size}'.encode()
    report = restated(case, position, lambda state: state.replace(size, b'"size":3'))
    assert report.first_bad_position == position
    assert "size" in damages(report)[0] or "bytes" in damages(report)[0]


def test_a_second_mention_of_a_payload_with_another_size_is_damage(case: Path) -> None:
    body = filled(EvidenceRecorded).model_copy(
        update={"content": Ref(digest=canonical.digest(request(0)), size=5)}
    )
    append_raw(case, *topics.encode(body))
    assert verify(case).first_bad_position == len(EVENTS) + 1


TREE = tree_document(catalogued=("src/huge.bin",))


def with_tree(case: Path, document: bytes, *files: bytes) -> Report:
    """Replace the source tree in the record by another document, chain fitting, and verify."""
    position = position_of("artifact.added/1") + 1
    event = EVENTS[position - 1].model_copy(update={"tree": ref(document)})
    with unguarded(case) as connection:
        from ledger.payloads import PayloadStore

        store = PayloadStore(connection)
        for data in (document, *files):
            store.put(data)
        connection.execute(
            "UPDATE event SET state = ? WHERE position = ?", (topics.encode(event)[1], position)
        )
    rechain(case)
    return verify(case)


def tree_with(**changes: Any) -> bytes:
    entry = {"path": "a.py", "size": 3, "digest": canonical.digest(b"abc"), "media": "text"}
    entry |= {"encoding": "utf-8", "lines": 1, "stored": True}
    return canonical.to_bytes({"format": 1, "files": [entry | changes], "skipped": []})


def tree_of(*paths: str) -> bytes:
    entry = {"size": 3, "digest": canonical.digest(b"abc"), "media": "binary", "stored": True}
    files = [{"path": path} | entry for path in paths]
    return canonical.to_bytes({"format": 1, "files": files, "skipped": []})


MALFORMED = [
    b"",
    b"{}",
    b"[]",
    b'{"format":1,"files":7}',
    b'{"format":1,"files":[7]}',
    b'{"format":2,"files":[],"skipped":[]}',
    b'{"format":true,"files":[],"skipped":[]}',
    tree_with(digest="sha256:" + "0" * 64),
    tree_with(digest="sha256:x"),
    tree_with(digest=7),
    tree_with(size=4),
    tree_with(size="3"),
    tree_with(size=3.0),
    tree_with(size=-1),
    tree_with(stored="yes"),
    tree_with(stored=1),
    *(tree_with(path=path) for path in (7, "", "/a", "../a", "a/../b", "./a", "a//b", "a/", "..")),
    tree_of("b", "a"),
    tree_of("a", "a"),
    tree_of("a", "a/b"),
]


@pytest.mark.parametrize("document", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_tree_document_is_damage_at_its_event(document: bytes, case: Path) -> None:
    report = with_tree(case, document, b"abc")
    assert report.first_bad_position == position_of("artifact.added/1") + 1
    assert all(len(message.splitlines()) == 1 for message in damages(report))


@pytest.mark.parametrize(
    "document", [tree_with(), tree_of("a", "a.b", "b/a", "b/b", "é", "…/..x")], ids=["one", "many"]
)
def test_a_tree_document_that_is_right_is_not_damage(document: bytes, case: Path) -> None:
    report = with_tree(case, document, b"abc")
    other = position_of("observations.extracted/1")  # another tree is other material
    assert report.first_bad_position == other
    orphans = re.compile("named by no event|belongs to no payload|material of revision 1")
    assert all(orphans.search(message) for message in damages(report))


def test_a_payload_that_no_event_needs_is_found(case: Path) -> None:
    edit(case, "INSERT INTO document VALUES (?, 0, x'')", bytes(32))
    assert f"payload sha256:{'0' * 64} is named by no event" in damages(verify(case))


def test_a_chunk_that_no_payload_needs_is_found(case: Path) -> None:
    edit(case, "INSERT INTO chunk VALUES (9999, ?, 0, 1, x'00')", bytes(32))
    assert "chunk 9999 belongs to no payload" in damages(verify(case))


# The file -----------------------------------------------------------------------------------------


SCHEMAS = {
    "DROP TRIGGER event_update": "trigger event_update is missing",
    "DROP TRIGGER event_delete": "trigger event_delete is missing",
    "DROP TRIGGER event_replace": "trigger event_replace is missing",
    "DROP TRIGGER chunk_delete": "trigger chunk_delete is missing",
    "DROP TRIGGER document_update": "trigger document_update is missing",
    "DROP INDEX event_topic": "index event_topic is missing",
    "CREATE TABLE smuggled (x)": "table smuggled does not belong there",
    "CREATE VIEW smuggled AS SELECT 1": "view smuggled does not belong there",
    "CREATE TRIGGER more AFTER INSERT ON event BEGIN SELECT 1; END": (
        "trigger more does not belong there"
    ),
    "ALTER TABLE event ADD COLUMN more TEXT": "table event is altered",
    "DROP TRIGGER event_update;"
    "CREATE TRIGGER event_update BEFORE UPDATE ON event BEGIN SELECT 1; END": (
        "trigger event_update is altered"
    ),
}


def restructured(case: Path, statements: str) -> None:
    connection = sqlite3.connect(case)
    connection.executescript(statements)
    connection.close()


@pytest.mark.parametrize("statements", SCHEMAS)
def test_what_differs_from_the_formats_schema_is_named(statements: str, case: Path) -> None:
    restructured(case, statements)
    (damage,) = damages(verify(case))
    assert damage.startswith("tables, indexes or triggers are not those of format 1: ")
    assert damage.endswith(SCHEMAS[statements])


@pytest.mark.parametrize("statements", SCHEMAS)
def test_nothing_is_appended_to_a_ledger_that_its_triggers_do_not_guard(
    statements: str, case: Path
) -> None:
    restructured(case, statements)
    before = case.read_bytes(), head_path(case).read_bytes()
    with pytest.raises(LedgerDamaged, match=SCHEMAS[statements]):
        Book.open_for_writing(case)
    assert (case.read_bytes(), head_path(case).read_bytes()) == before


def test_of_many_differences_the_first_few_are_named_in_one_line(case: Path) -> None:
    restructured(case, "".join(f"CREATE TABLE t{n} (x);" for n in range(9)))
    (damage,) = damages(verify(case))
    assert damage.count("does not belong there") == 4
    assert damage.endswith(", 5 more")


def killed(tmp_path: Path, events: int = 12) -> tuple[Path, bytes]:
    """Return a copy of a case as a kill leaves it, and its whole WAL."""
    path = small_case(tmp_path / "live.case")
    folder = tmp_path / "killed"
    folder.mkdir()
    with Book.open_for_writing(path) as book:
        for number in range(events):
            data = b"evidence %d " % number * 300
            event = filled(EvidenceRecorded).model_copy(update={"content": ref(data)})
            book.append(event, payloads=[data])
        shutil.copyfile(path, folder / "k.case")
        shutil.copyfile(head_path(path), head_path(folder / "k.case"))
        return folder / "k.case", wal_path(path).read_bytes()


def outcome(path: Path) -> str:
    try:
        report = verify(path)
    except LedgerError:
        return "refused"
    return "sound" if report.ok else f"damaged {report.first_bad_position}"


def test_a_truncated_wal_is_found_at_every_offset(tmp_path: Path) -> None:
    """SQLite opens each of these cleanly, as a shorter ledger whose chain is valid."""
    path, wal = killed(tmp_path)
    wal_path(path).write_bytes(wal)
    assert outcome(path) == "sound"
    opened_shorter = 0
    for size in range(0, len(wal) - 1, max(1, len(wal) // 150)):
        wal_path(path).write_bytes(wal[:size])
        path.with_name("k.case-shm").unlink(missing_ok=True)
        found = outcome(path)
        assert found.startswith("damaged"), (size, found)
        opened_shorter += 1
    assert opened_shorter >= 150


def test_a_missing_wal_is_found(tmp_path: Path) -> None:
    path, _ = killed(tmp_path)
    assert outcome(path) == "damaged 5"
    with pytest.raises(LedgerError, match="tail is missing"):
        Book.open_for_writing(path)


def test_a_flipped_bit_in_a_wal_is_found(tmp_path: Path) -> None:
    path, wal = killed(tmp_path, events=3)
    rng = random.Random(5)
    for _ in range(60):
        at = rng.randrange(len(wal) * 8)
        broken = bytearray(wal)
        broken[at // 8] ^= 1 << at % 8
        wal_path(path).write_bytes(broken)
        path.with_name("k.case-shm").unlink(missing_ok=True)
        before = path.read_bytes()
        found = outcome(path)
        assert path.read_bytes() == before
        if found == "sound":
            with Book.open(path) as book:
                assert book.head == read_anchor(path)


def unpacked(path: Path) -> dict[str, list[Any]]:
    """Return a file's rows with chunks decompressed: zlib has several spellings of some bytes."""
    tables = contents(path)
    tables["chunk"] = [
        (number, digest, size, payloads.decompress(codec, size, data))
        for number, digest, codec, size, data in tables["chunk"]
    ]
    return tables


def check_flips(original: Path, folder: Path, count: int, seed: int) -> int:
    """Flip single bits: damage is reported, or nothing that the ledger holds has changed."""
    data, whole = original.read_bytes(), unpacked(original)
    path = folder / "f.case"
    shutil.copyfile(head_path(original), head_path(path))
    with Book.open(original) as book:
        held = {digest: book.payload(digest) for digest, _ in book.stored_payloads()}
    rng, silent = random.Random(seed), 0
    for _ in range(count):
        bit = rng.randrange(len(data) * 8)
        broken = bytearray(data)
        broken[bit // 8] ^= 1 << bit % 8
        path.write_bytes(broken)
        for end in ("-wal", "-shm", "-journal"):
            path.with_name(path.name + end).unlink(missing_ok=True)
        if outcome(path) == "sound":
            silent += 1
            assert unpacked(path) == whole, bit
            with Book.open(path) as book:
                assert {digest: book.payload(digest) for digest in held} == held
                assert [entry.event for entry in book.events()] == EVENTS
    return silent


def test_a_single_flipped_bit_is_reported_or_changes_nothing(
    original: Path, tmp_path: Path
) -> None:
    assert check_flips(original, tmp_path, 300, seed=1) < 150


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_single_flipped_bits_are_reported_or_change_nothing(
    seed: int, original: Path, tmp_path: Path
) -> None:
    check_flips(original, tmp_path, int(os.environ.get("CASELEDGER_FLIPS", "2000")), seed)
