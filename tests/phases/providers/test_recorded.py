"""The recorded provider and what it is handed: copies made for sharing, altered packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger import packing
from ledger.book import Book
from ledger.events import RequestPrepared
from ledger.redacted import Redacted
from phases.providers import ProviderConfigurationError, recorded
from phases.run import Options
from phases.settings import Settings
from projections.redaction import redaction
from tests.ledger.packages import Loose
from tests.phases.scripting import Script, copied, events_of, run, state_of
from tests.phases.test_run import replayed


def test_a_copy_without_a_preparation_replays_what_it_holds(case: Path, scratch: Path) -> None:
    again = copied(case, scratch / "again.case")
    run(case, Script())
    prepared = [n for n, x in enumerate(events_of(case), start=1) if isinstance(x, RequestPrepared)]
    for position in reversed(prepared):
        with Book.open(case) as book:
            copy = Redacted(book, redaction(book, [f"#{position}"]).withheld)
            packing.write(copy, scratch / f"{position}.zip")
        assert recorded.open_provider(str(scratch / f"{position}.zip"), Settings())
    assert replayed(scratch / f"{prepared[1]}.zip", again) in ("done", "provider")
    assert "entity_resolution" in state_of(again).done


def test_an_altered_package_is_no_recording(case: Path, scratch: Path) -> None:
    """Its manifest fits what was altered; its chain does not."""
    run(case, Script(), options=Options(until="hypotheses"))
    whole, bad = scratch / "whole.zip", scratch / "bad.zip"
    with Book.open(case) as book:
        packing.write(book, whole)
    assert recorded.open_provider(str(whole), Settings())
    loose = Loose.of(whole)
    events = loose.lines("events.jsonl")
    events[0]["state"] = events[0]["state"].replace('"title":"', '"title":"Another ')
    loose.set_lines("events.jsonl", events)
    loose.pack(bad)
    with pytest.raises(ProviderConfigurationError, match="does not verify") as caught:
        recorded.open_provider(str(bad), Settings())
    assert len(str(caught.value).splitlines()) == 1


def test_a_recorded_answer_that_is_no_text_is_malformed() -> None:
    reply = recorded.Recorded({}, "m").read(b"\xff{}")
    assert (reply.text, reply.finish) == (None, "malformed")
