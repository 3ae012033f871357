"""Events: a closed list of topics, state bytes that never change, and a page that says the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_core import PydanticUndefined

from ledger import canonical, events, topics
from ledger.book import Book
from ledger.errors import LedgerDamaged, LedgerError, UnknownEvent, UnsafeEvent
from ledger.events import EVENTS, Event, JsonObject, Observation, Problem, Ref, RunStopped
from tests.ledger.making import AT, contents, filled, head_path, note, one_line, opened, small_case
from tests.ledger.test_canonical import values

HERE = Path(__file__).parent
PAGE = (HERE.parent.parent / "docs" / "format.md").read_text()

HOSTILE = (
    "os:system",
    "os.system",
    "subprocess:Popen",
    "builtins:exec",
    "builtins.eval",
    "antigravity:fly",
    "this:s",
    "importlib:import_module",
    "ledger.events:CaseOpened",
    "eventsourcing.domain:Aggregate.Created",
    "__main__:boom",
    "",
    "case.opened",
    "case.opened/2",
    "CASE.OPENED/1",
    "case.opened/1 ",
    "case.opened/1\n",
    "../../etc/passwd",
    "x" * 10_000,
)

every_event = pytest.mark.parametrize("cls", EVENTS, ids=lambda cls: cls.TOPIC)


# Frozen bytes -------------------------------------------------------------------------------------


def golden_rows() -> dict[str, str]:
    lines = (HERE / "golden" / "rows.jsonl").read_text().splitlines()
    return {row["topic"]: row["state"] for row in map(json.loads, lines)}


def test_the_list_of_topics_is_frozen() -> None:
    """A line may be added (`python -m tests.ledger.making`); none may ever change or go."""
    frozen = (HERE / "golden" / "topics.txt").read_text().splitlines()
    assert [cls.TOPIC for cls in EVENTS] == frozen
    assert list(topics.REGISTRY) == frozen


def test_there_is_one_golden_row_for_each_topic() -> None:
    assert list(golden_rows()) == [cls.TOPIC for cls in EVENTS]


@every_event
def test_state_bytes_are_those_of_the_golden_row(cls: type[Event]) -> None:
    """A line of golden/rows.jsonl never changes: old ledgers hold these bytes."""
    state = golden_rows()[cls.TOPIC].encode()
    assert topics.encode(filled(cls)) == (cls.TOPIC, state)
    assert topics.decode(cls.TOPIC, state) == filled(cls)


@every_event
def test_every_event_comes_back_as_it_was(cls: type[Event]) -> None:
    event = filled(cls)
    topic, state = topics.encode(event)
    assert type(topics.decode(topic, state)) is cls
    assert canonical.to_bytes(topics.decode(topic, state).model_dump()) == canonical.to_bytes(
        event.model_dump()
    )


@every_event
def test_defaults_are_left_out_of_state_and_come_back(cls: type[Event]) -> None:
    required = {name for name, field in cls.model_fields.items() if field.is_required()}
    event = cls(**{k: v for k, v in dict(filled(cls)).items() if k in required})
    topic, state = topics.encode(event)
    assert set(json.loads(state)) == required
    assert topics.decode(topic, state) == event


def test_every_event_is_frozen_and_takes_no_unknown_field() -> None:
    with pytest.raises(ValueError, match="frozen"):
        note(1).run = 2  # type: ignore[misc]
    for cls in EVENTS:
        with pytest.raises(ValueError, match="Extra inputs"):
            cls(**dict(filled(cls)), novelty=1)


def test_events_do_not_share_default_objects() -> None:
    first, second = (events.RunStarted(at=AT, run=n, program="x") for n in (1, 2))
    first.options["until"] = "now"
    assert second.options == {}


# The page says the same ---------------------------------------------------------------------------


def documented(heading: str) -> tuple[str, list[list[str]]]:
    """Return the sentence and the table rows that stand under a heading of docs/format.md."""
    section = re.split(r"\n(?=#)|\n(?=`\w+`: )", PAGE.split(heading, 1)[1], maxsplit=1)[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:1] == "|"]
    return section.split("\n\n|", 1)[0].strip(), rows[2:]


def type_name(annotation: Any) -> str:
    names = {str: "string", int: "integer", bool: "boolean", JsonObject: "object"}
    if annotation in names:
        return names[annotation]
    if annotation in (Ref, Observation, Problem):
        return str(annotation.__name__)
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return "string"
    if origin is tuple:
        inner = type_name(args[0])
        return f"array of {inner}{'' if inner[0].isupper() else 's'}"
    assert origin in (Union, types.UnionType)
    assert args[1] is type(None)
    return type_name(args[0])


def field_row(name: str, field: Any) -> tuple[str, str, str]:
    """Return a field's name, type and default as the page writes them."""
    if field.default is PydanticUndefined:
        return f"`{name}`", type_name(field.annotation), ""
    kind = type_name(field.annotation) + ", optional"
    if field.default is None:
        return f"`{name}`", kind, ""
    return f"`{name}`", kind, f" (default `{canonical.to_bytes(field.default).decode()}`)"


@pytest.mark.parametrize("cls", [*EVENTS, Ref, Observation, Problem], ids=lambda c: c.__name__)
def test_the_field_table_on_the_format_page_is_the_model(cls: Any) -> None:
    heading = f"#### `{cls.TOPIC}`\n" if issubclass(cls, Event) else f"`{cls.__name__}`: "
    sentence, rows = documented(heading)
    assert sentence == " ".join((cls.__doc__ or "").split())
    assert [row[0] for row in rows] == [f"`{name}`" for name in cls.model_fields]
    for (name, kind, meaning), (key, field) in zip(rows, cls.model_fields.items(), strict=True):
        expected_name, expected_kind, default = field_row(key, field)
        assert (name, kind) == (expected_name, expected_kind)
        assert meaning.endswith(default)
        assert ("(default" in meaning) == bool(default)


def test_the_page_lists_the_events_in_order_and_no_others() -> None:
    assert re.findall(r"^#### `(.+)`$", PAGE, re.MULTILINE) == [cls.TOPIC for cls in EVENTS]


@every_event
def test_fields_of_few_values_list_them_on_the_page(cls: type[Event]) -> None:
    _, rows = documented(f"#### `{cls.TOPIC}`\n")
    for (_, _, meaning), field in zip(rows, cls.model_fields.values(), strict=True):
        if get_origin(field.annotation) is Literal:
            assert re.findall(r"`(\w+)`", meaning) == list(get_args(field.annotation))


# What is not known --------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", HOSTILE)
def test_a_topic_that_is_not_listed_is_unknown(topic: str) -> None:
    assert not topics.is_known(topic)
    with pytest.raises(UnknownEvent, match="newer"):
        topics.decode(topic, b'{"command":"touch /tmp/owned"}', 3)


@every_event
def test_a_field_that_is_not_listed_is_unknown(cls: type[Event]) -> None:
    topic, state = topics.encode(filled(cls))
    with pytest.raises(UnknownEvent, match=r"position 4: .*'novelty'"):
        topics.decode(topic, state[:-1] + b',"novelty":1}', 4)


def test_a_field_that_is_not_listed_in_a_nested_object_is_unknown() -> None:
    state = golden_rows()["observations.extracted/1"].replace('"id":', '"novelty":1,"id":')
    with pytest.raises(UnknownEvent, match="novelty"):
        topics.decode("observations.extracted/1", state.encode())


@pytest.mark.parametrize(
    "state",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"{",
        b'{"at":"x"}',
        b"\xff",
        b'{"at":null,"run":1,"reason":"done"}',
        b'{"at":"x","run":"one","reason":"done"}',
        b'{"at":"x","run":1.5,"reason":"done"}',
        b"[" * 100_000,
    ],
)
def test_a_state_that_no_event_can_have_is_damage_with_its_position(state: bytes) -> None:
    with pytest.raises(LedgerDamaged, match="position 9") as caught:
        topics.decode("run.stopped/1", state, 9)
    assert caught.value.position == 9
    one_line(caught.value)


def test_hostile_topics_import_and_call_nothing(tmp_path: Path) -> None:
    """In a child whose audit hook sees every import and every start of a process."""
    script = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from ledger import packing, topics, verify
        from ledger.book import Book
        from ledger.errors import LedgerError
        from ledger.package import Package, restore
        from tests.ledger.making import append_raw, small_case
        from tests.ledger.test_events import HOSTILE

        folder = Path(sys.argv[1])
        small_case(folder / "warm.case")
        state = b'{"command":"touch %s"}' % bytes(folder / "owned")

        def whole_way(name, rows):
            path = small_case(folder / f"{name}.case")
            for topic in rows:
                append_raw(path, topic, state)
            with Book.open(path) as book:
                assert verify.verify_book(book).ok
                packing.write(book, folder / f"{name}.zip")
                try:
                    list(book.events())
                except LedgerError:
                    pass
            with Package(folder / f"{name}.zip") as package:
                restore(package, folder / f"{name}-again.case")
            try:
                Book.open_for_writing(path)
            except LedgerError:
                pass

        whole_way("harmless", [])  # loads what the ledger itself loads late
        before, seen = set(sys.modules), []
        sys.addaudithook(
            lambda event, args: seen.append((event, args[:1]))
            if event in ("import", "os.system", "os.exec", "os.posix_spawn", "os.fork")
            or event.startswith("subprocess")
            else None
        )
        for topic in HOSTILE:
            try:
                topics.decode(topic, state)
            except LedgerError:
                pass
        whole_way("hostile", HOSTILE)
        print(sorted(set(sys.modules) - before), seen, (folder / "owned").exists())
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.strip() == "[] [] False"


# What is refused before it is written -------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        RunStopped(at=AT, run=1, reason="\ud800"),
        RunStopped.model_construct(at=AT, run=1, reason="x", detail="\ud83d\ude00"),
        events.RunStarted(at=AT, run=1, program="x", options={"a": ["\udfff"]}),
        events.RunStarted(at=AT, run=1, program="x", options={"\udfff": 1}),
        events.RunStarted(at=AT, run=1, program="x", options={"a": float("nan")}),
        events.RunStarted(at=AT, run=1, program="x", options={"a": float("inf")}),
        events.RunStarted(at=AT, run=1, program="x", options={"a": {1, 2}}),
        events.RunStarted(at=AT, run=1, program="x", options={"a": b"bytes"}),
        events.RunStarted(at=AT, run=1, program="x", options={"a": {1: 2}}),
        events.RunStarted(at=AT, run=10**4300, program="x"),
        RunStopped.model_construct(at=AT, run="one", reason="x"),
        RunStopped.model_construct(at=AT, run=True, reason="x"),
        RunStopped.model_construct(at=AT, run=1),
    ],
    ids=range(13),
)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_an_event_that_would_not_read_back_is_refused_and_nothing_is_written(
    event: Event, tmp_path: Path
) -> None:
    path = small_case(tmp_path / "a.case")
    before = contents(path)
    anchor = head_path(path).read_bytes()
    with Book.open_for_writing(path) as book:
        with pytest.raises(UnsafeEvent) as caught:
            book.append(note(7), event)
        one_line(caught.value)
        assert book.head.position == 4
    assert contents(path) == before
    assert head_path(path).read_bytes() == anchor


@given(values)
def test_an_object_field_holds_any_json_or_is_refused(value: Any) -> None:
    event = events.RunStarted(at=AT, run=1, program="x", options={"v": value})
    try:
        topic, state = topics.encode(event)
    except UnsafeEvent:
        assert "\\ud" in canonical.to_bytes(value).decode()  # nothing but a lone surrogate
        return
    again = topics.decode(topic, state)
    assert isinstance(again, events.RunStarted)
    assert canonical.same(again.options, {"v": value})


@given(st.floats(allow_nan=False, allow_infinity=False) | st.floats(1e-6, 1e-3) | values)
@example(1e-05)
@example(0.00012)
@example(1e15)
@example(1e16)
@example(1e22)
@example(-0.0)
@example(5e-324)
def test_the_fast_check_of_a_state_is_as_strict_as_the_exact_one(value: Any) -> None:
    """Bytes that pydantic alone would write are not canonical."""
    event = events.RunStarted(at=AT, run=1, program="x", options={"v": value})
    try:
        topic, exact = topics.encode(event)
    except UnsafeEvent:
        return
    assert topics.is_canonical(topic, exact, event)
    other = type(event).__pydantic_serializer__.to_json(event, exclude_defaults=True)
    assert topics.is_canonical(topic, other, event) == (other == exact)


# Older topics -------------------------------------------------------------------------------------


def renamed(document: dict[str, Any]) -> dict[str, Any]:
    return {"at": document["at"], "run": document["number"], "reason": document["why"]}


def why_added(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "why": "done"}


UPCASTERS: Mapping[str, tuple[str, topics.Upcaster]] = {
    "run.ended/1": ("run.ended/2", why_added),
    "run.ended/2": ("run.stopped/1", renamed),
}


def upcast(topic: str, state: bytes) -> Event:
    return topics.decode(topic, state, 5, upcasters=UPCASTERS)


def test_an_older_topic_is_upcast_step_by_step() -> None:
    expected = RunStopped(at=AT, run=3, reason="done")
    assert upcast("run.ended/1", f'{{"at":"{AT}","number":3}}'.encode()) == expected
    assert upcast("run.ended/2", f'{{"at":"{AT}","number":3,"why":"done"}}'.encode()) == expected
    assert upcast(*topics.encode(expected)) == expected


@pytest.mark.parametrize("state", [b"", b"[]", b"null", b"{}", b"\xff", b'{"at":1,"at":2}', b"7"])
def test_an_older_state_that_cannot_be_upcast_is_damage_with_its_position(state: bytes) -> None:
    with pytest.raises(LedgerDamaged, match="position 5"):
        upcast("run.ended/1", state)


def test_an_older_topic_is_never_written() -> None:
    class Ended(RunStopped):
        TOPIC = "run.ended/1"

    with pytest.raises(LedgerError):
        topics.encode(Ended(at=AT, run=1, reason="x"))


def test_case_opened_stands_first_and_only_first(tmp_path: Path) -> None:
    path = small_case(tmp_path / "a.case")
    with Book.open_for_writing(path) as book:
        with pytest.raises(UnsafeEvent, match=r"case\.opened"):
            book.append(opened())
        with pytest.raises(UnsafeEvent, match=r"case\.opened"):
            book.append(note(1), opened())
        assert book.head.position == 4
    with pytest.raises(UnsafeEvent, match=r"case\.opened"), Book.create(tmp_path / "b.case") as b:
        b.append(note(1))
    with pytest.raises(UnsafeEvent, match=r"case\.opened"), Book.create(tmp_path / "c.case") as b:
        b.append(opened(), opened())
