from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import prompts
from ledger import canonical
from ledger.book import Book
from ledger.errors import LedgerDamaged
from ledger.events import ContextCreated, RequestPrepared
from ledger.package import Package
from ledger.reader import CaseReader
from projections import partitions
from projections.cache_measuring import (
    Measured,
    Summary,
    full_history_protocols,
    measure,
    plus,
    summary,
)
from projections.requests import message_text, model_view
from projections.tokens import estimated_tokens
from tests.generated import History, histories

CASES = Path(__file__).parents[1] / "frozen" / "cases"
MP_V11, MP_7 = "mp-renewal-missing-invoices-v11", "mp-renewal-missing-invoices-7-requests"
V10, V11 = "investigation_project_v10", "investigation_project_v11"
COUNTERS = (estimated_tokens,)


@cache
def measured(name: str, **candidate: str) -> list[Measured]:
    with Package(CASES / f"{name}.zip") as package:
        return list(measure(package, COUNTERS, **candidate))


def summed(name: str, **candidate: str) -> Summary:
    return summary(measured(name, **candidate), len(COUNTERS))


def transported(content: Any) -> int:
    """Return how many characters a content has inside a JSON string, by the standard library."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return len(json.dumps(text, ensure_ascii=False))


def pairs(reader: CaseReader) -> list[tuple[RequestPrepared, Any, Any]]:
    """Return (event, saved content, context) of every investigation request."""
    contexts = {e.context: e.content for _, e in reader.events() if isinstance(e, ContextCreated)}
    return [
        (
            event,
            json.loads(reader.payload(event.document.digest))["messages"][0]["content"],
            json.loads(reader.payload(contexts[event.context].digest)),
        )
        for _, event in reader.events()
        if isinstance(event, RequestPrepared) and event.phase == "investigation"
    ]


def test_a_case_of_one_revision_has_one_prefix_and_every_view_rejoins_exactly() -> None:
    for name in (MP_V11, "example-v9"):
        sums = summed(name)
        assert sums.requests > 9
        assert sums.exact == sums.requests
        assert [prefix.requests for prefix in sums.prefixes] == [sums.requests]
        assert sums.fallbacks == {}


def test_historical_characters_are_those_of_the_saved_view_inside_a_json_string() -> None:
    with Package(CASES / f"{MP_V11}.zip") as package:
        found = list(measure(package, COUNTERS))
        saved = pairs(package)
    assert [item.historical.characters for item in found] == [transported(c) for _, c, _ in saved]
    for item, (_, content, _) in zip(found, saved, strict=True):
        assert item.historical.tokens == (estimated_tokens(message_text(content)),)


def test_live_is_the_live_document_and_the_sentence_that_joins_the_parts() -> None:
    sentence = prompts.wire("stable_case_v1").replace('"', '\\"').replace("\n", "\\n")
    with Package(CASES / f"{MP_V11}.zip") as package:
        found = list(measure(package, COUNTERS))
        contexts = [context for _, _, context in pairs(package)]
    for item, context in zip(found, contexts, strict=True):
        parts = partitions.VERSIONS["stable_case_v1"].split(model_view(V11, context))
        assert item.prefix_id == parts.prefix["id"]
        assert item.live.characters == transported(parts.live) + len(sentence) + 2
        assert item.prefix.characters == transported(parts.prefix)


def test_what_was_sent_in_this_form_is_original_and_everything_else_is_rebuilt() -> None:
    assert {item.presentation for item in measured(MP_V11)} == {"original"}
    for name in ("example-v9", MP_7):
        assert {item.presentation for item in measured(name)} == {"rebuilt_v11"}
    assert {item.presentation for item in measured(MP_7, protocol=V10)} == {"original"}
    assert {item.presentation for item in measured(MP_V11, protocol=V10)} == {"rebuilt_v10"}


def test_a_focused_request_is_measured_against_a_view_of_the_full_history() -> None:
    for item in measured("example-v9")[1:]:
        assert item.protocol == "investigation_project_v9"
        assert item.complete.characters > item.live.characters + item.prefix.characters - 1000
    assert V11 in full_history_protocols()
    assert not {"investigation_project_v8", "investigation_project_v9"} & set(
        full_history_protocols()
    )


def test_the_stable_share_explains_the_reduction() -> None:
    sums = summed(MP_V11)
    saved = sums.historical.characters - sums.live.characters
    assert 0 <= sums.stable.characters - saved < 1000 * sums.requests  # the members around both


def test_sequential_labels_are_shorter_and_change_between_requests() -> None:
    content = summed(MP_V11)
    sequential = summed(MP_V11, protocol=V10)
    overhead = content.complete.characters - sequential.complete.characters
    assert content.alias_overhead.characters == overhead > 0
    assert sequential.alias_overhead.characters == 0
    assert content.relabelled == 0 < sequential.relabelled


def test_under_instructions_v1_the_one_original_document_is_sent() -> None:
    sums = summed(MP_V11, partition="instructions_v1")
    assert sums.live == sums.complete == sums.historical
    assert (sums.exact, sums.prefixes, sums.stable.characters) == (sums.requests, (), 0)


def test_an_interrupted_case_has_the_requests_it_has() -> None:
    assert summed(MP_7).requests == 4
    none = summed("mp-renewal-missing-invoices-until-case_interpretation")
    assert (none.requests, none.live.tokens, none.prefixes) == (0, (0,), ())


def test_sums_over_cases_are_the_sums_of_their_sums() -> None:
    left, right = summed(MP_V11), summed("example-v9")
    both = plus(left, right)
    assert both.requests == left.requests + right.requests
    assert both.rebuilt == right.rebuilt == right.requests
    assert both.live.characters == left.live.characters + right.live.characters
    assert both.live.tokens[0] == left.live.tokens[0] + right.live.tokens[0]
    assert len(both.prefixes) == 2


class Altered:
    """A case whose contexts are changed on the way."""

    def __init__(self, package: Package, change: Any) -> None:
        self._package = package
        self._change = change
        contexts = [e for _, e in package.events() if isinstance(e, ContextCreated)]
        self._contexts = {event.content.digest for event in contexts}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._package, name)

    def payload(self, digest: str) -> bytes:
        data = self._package.payload(digest)
        if digest not in self._contexts:
            return data
        return canonical.to_bytes(self._change(json.loads(data)))


SECRET = "a text of the case: whatever"


REFUSED: dict[str, Callable[[Any], Any]] = {
    "stable members are missing": lambda c: {k: v for k, v in c.items() if k != "catalogs"},
    "shared defines": lambda c: {**c, "shared": {SECRET: 1}},
    "labels without a definition": lambda c: {**c, "sources": [{"provenance": "P17"}]},
    "the parts join to another view": lambda c: {**c, "shared": {"P2": 1, "P1": 1}},
    "CanonicalError": lambda c: {**c, SECRET: _deep(199)},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_a_view_that_does_not_divide_is_sent_whole_and_says_why_without_its_text(
    reason: str,
) -> None:
    with Package(CASES / f"{MP_7}.zip") as package:
        altered: Any = Altered(package, REFUSED[reason])
        found = list(measure(altered, COUNTERS))
    whole = [item for item in found if item.fallback]
    assert found[0] in whole
    for item in whole:
        assert (item.fallback, item.exact, item.prefix_id) == (reason, False, "")
        assert item.live == item.complete
        assert SECRET not in repr(replace(item, labels=frozenset()))


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("context", [[1], {}, {"evidence": 3, "shared": [2]}], ids=str)
def test_a_context_that_is_not_of_our_making_is_damage_in_one_line(context: Any) -> None:
    with Package(CASES / f"{MP_7}.zip") as package:
        altered: Any = Altered(package, lambda _: context)
        if context == {}:  # nothing is known, and nothing is not an error
            assert summary(measure(altered, COUNTERS), 1).exact == 0
            return
        with pytest.raises(LedgerDamaged, match="request R4: its context is not"):
            list(measure(altered, COUNTERS))


@settings(max_examples=settings.default.max_examples // 10)
@given(history=histories())
def test_every_saved_investigation_request_of_any_case_is_measured(history: History) -> None:
    reader = history.reader()
    found = list(measure(reader, COUNTERS))
    prepared = [e for e in history.events() if isinstance(e, RequestPrepared)]
    wanted = Counter(e.request for e in prepared if e.phase == "investigation")
    assert Counter(item.request for item in found) == wanted
    for item in found:
        assert item.exact or item.fallback
        if item.prefix_id:
            assert item.live.characters < item.complete.characters + 1000
        else:
            assert item.live == item.complete


def test_cases_and_packages_are_measured_alike(lives: dict[str, Path]) -> None:
    with Book.open(lives["amended"]) as book:
        sums = summary(measure(book, COUNTERS), 1)
    assert sums.exact == sums.requests
    assert len(sums.prefixes) == 2  # one a revision
