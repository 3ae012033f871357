"""Request documents: the same bytes everywhere, and a check that says what differs and where."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import prompts
from ledger import canonical, packing
from ledger.book import Book
from ledger.events import ContextCreated, RequestPrepared
from ledger.package import Package
from projections import encodings, requests
from projections.requests import first_difference, model_view, render, restored_view
from projections.saw import check_all
from projections.tokens import ESTIMATOR, estimated_tokens
from tests.phases.scripting import only, payload_of

RENDER = """
import json, sys
from ledger.book import Book
from projections.saw import check_all
with Book.open(sys.argv[1]) as book:
    print(json.dumps([[c.request, c.state, c.rebuilt] for c in check_all(book)]))
"""


def test_every_saved_request_is_rebuilt_byte_for_byte(lived: Path) -> None:
    with Book.open(lived) as book:
        checks = list(check_all(book))
    assert checks
    assert {check.state for check in checks} == {"same"}
    assert all(check.rebuilt == check.saved for check in checks)


def test_a_package_checks_like_its_case(lives: dict[str, Path], tmp_path: Path) -> None:
    with Book.open(lives["troubled"]) as book:
        packing.write(book, tmp_path / "x.zip")
        expected = list(check_all(book))
    with Package(tmp_path / "x.zip") as package:
        assert list(check_all(package)) == expected


@pytest.mark.parametrize("seed", ["0", "1", "4294967295"])
def test_bytes_do_not_depend_on_the_hash_seed(lives: dict[str, Path], seed: str) -> None:
    path = lives["focused"]
    done = subprocess.run(
        [sys.executable, "-P", "-c", RENDER, str(path)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    saved = [[e.request, "same", e.document.digest] for e in only(path, RequestPrepared)]
    assert json.loads(done.stdout) == saved


def test_one_changed_character_of_a_prompt_is_reported_with_both_digests_and_the_place(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = prompts.card

    def edited(name: str) -> prompts.Card:
        card = real(name)
        return (
            card._replace(text=card.text[:-1] + "!")
            if name == prompts.NEWEST["hypotheses"]
            else card
        )

    monkeypatch.setattr(prompts, "card", edited)
    checks = {check.request: check for check in check_all(book)}
    differs = checks.pop("R3")
    assert differs.state == "differs"
    assert differs.saved in differs.detail
    assert differs.rebuilt in differs.detail
    assert differs.saved != differs.rebuilt
    assert differs.detail.endswith("first difference at $.system")
    assert {check.state for check in checks.values()} == {"same"}


def test_a_changed_schema_is_reported_with_its_place(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = prompts.schema

    def edited(name: str) -> dict[str, object]:
        return {**real(name), "required": []} if name == "hypotheses_v1" else real(name)

    monkeypatch.setattr(prompts, "schema", edited)
    (differs,) = [check for check in check_all(book) if check.state == "differs"]
    assert "first difference at $.schema.required[0" in differs.detail


def test_a_view_that_changed_after_it_landed_is_reported(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        requests.views.VERSIONS, "investigation_ordered_v1", lambda context: {**context, "x": 1}
    )
    details = [check.detail for check in check_all(book) if check.state == "differs"]
    assert len(details) == 4
    assert all(detail.endswith("first difference at $.messages[0].content.x") for detail in details)


def test_an_unknown_protocol_is_unchecked_and_not_bad(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = prompts.card

    def newer(name: str) -> prompts.Card:
        if name == prompts.NEWEST["diagnosis"]:
            raise prompts.PromptError(f"protocol {name!r} is not known to this release")
        return real(name)

    monkeypatch.setattr(prompts, "card", newer)
    states = {check.request: check.state for check in check_all(book)}
    assert states["R9"] == "unchecked"
    assert set(states.values()) == {"same", "unchecked"}


@pytest.mark.parametrize("member", ["view", "alias", "encoding"])
def test_an_unknown_version_is_unchecked_and_not_bad(
    book: Book, monkeypatch: pytest.MonkeyPatch, member: str
) -> None:
    real = prompts.card
    monkeypatch.setattr(prompts, "card", lambda name: real(name)._replace(**{member: "later_v9"}))
    checks = list(check_all(book))
    assert {check.state for check in checks} == {"unchecked"}
    assert "later_v9" in checks[0].detail


def test_a_mistake_inside_a_view_is_no_unknown_version() -> None:
    with pytest.raises(KeyError):
        model_view("investigation_project_v8", {"evidence": []})


def test_a_missing_context_is_a_difference(book: Book) -> None:
    class Lost:
        case_id, head = book.case_id, book.head

        def events(self, upto: int | None = None, *, after: int = 0) -> object:
            entries = book.events(upto, after=after)
            kept = (entry for entry in entries if not isinstance(entry.event, ContextCreated))
            return (entry._replace(position=number) for number, entry in enumerate(kept, start=1))

        def payload(self, digest: str) -> bytes:
            return book.payload(digest)

    assert {check.state for check in check_all(Lost())} == {"differs"}  # type: ignore[arg-type]


def test_what_is_recorded_about_a_request_is_what_its_document_holds(lived: Path) -> None:
    for event in only(lived, RequestPrepared):
        document = payload_of(lived, event.document.digest)
        texts = [
            document["system"],
            *(canonical.to_bytes(m["content"]).decode() for m in document["messages"]),
        ]
        assert event.characters == sum(map(len, texts))
        assert event.estimated_tokens == sum(map(estimated_tokens, texts))
        assert event.estimator == ESTIMATOR
        card = prompts.card(event.protocol)
        assert event.versions == {
            key: getattr(card, key) for key in ("view", "alias", "encoding", "partition")
        }
        assert restored_view(document)["case"]["revision"] >= 1


def test_an_encoding_that_cannot_prove_its_inverse_falls_back_to_the_plain_view(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = prompts.card
    broken = encodings.Encoding(lambda view: encodings.Encoded([], "packed", "x"), lambda c: {})
    monkeypatch.setitem(encodings.VERSIONS, "broken_v1", broken)  # type: ignore[arg-type]
    monkeypatch.setattr(prompts, "card", lambda name: real(name)._replace(encoding="broken_v1"))
    rendered = render("hypotheses_v2", {"case": {"a": 1}})
    assert rendered.form == "plain"
    assert rendered.fell_back is not None
    assert (rendered.fell_back.stage, rendered.fell_back.path) == ("compare", "$.case")
    content = json.loads(rendered.document)["messages"][0]["content"]
    assert content == {"case": {"a": 1}}


@pytest.mark.parametrize(
    ("left", "right", "path"),
    [
        ({"a": 1}, {"a": 1}, ""),
        ({"a": 1}, {"a": 1.0}, "$.a"),
        ({"a": 1}, {"a": True}, "$.a"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "$ (order of members)"),
        ({"a": [1, 2]}, {"a": [1, 2, 3]}, "$.a[2]"),
        ({"a": [1, {"b": None}]}, {"a": [1, {}]}, "$.a[1].b"),
        ({}, [], "$"),
    ],
)
def test_the_first_difference_is_named_by_its_path(left: object, right: object, path: str) -> None:
    assert first_difference(left, right) == path


def test_estimated_tokens_do_not_depend_on_the_hash_seed() -> None:
    text = 'def f(x_1): return {"a":[1,2,-3.5e7]}  # 日本語\n' * 3
    program = "import sys; from projections.tokens import *; print(estimated_tokens(sys.argv[1]))"
    found = {
        subprocess.run(
            [sys.executable, "-P", "-c", program, text],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert found == {b"%d\n" % estimated_tokens(text)}
    assert estimated_tokens("") == 0
