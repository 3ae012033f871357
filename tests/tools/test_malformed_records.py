"""Records that chain well and are nonsense: one line for each command, never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger import canonical, packing
from ledger.book import Book
from ledger.events import (
    ActionRequested,
    CacheCreated,
    CacheCreateRequested,
    CacheDecided,
    CacheDeleted,
    CaseOpened,
    ContextCreated,
    DiagnosisConcluded,
    EntitiesResolved,
    Event,
    EvidenceRecorded,
    HypothesesProposed,
    HypothesisAssessed,
    Observation,
    ObservationsExtracted,
    RequestPrepared,
    RequestSent,
    UsageMeasured,
)
from ledger.verify import verify_book
from phases.preparing import reference
from tools.cli import run

AT = "2024-05-17T09:30:00.000000Z"
PLAIN = b'{"a":1}'
DOCUMENT = canonical.digest(PLAIN)
WRONG_TYPES = {"outcome": "x", "confidence": 1, "locations": [1], "mechanism": [2], "data": 3}


def request(document: bytes) -> list[tuple[Event, bytes | None]]:
    context = ContextCreated(
        at=AT, context="C1", phase="diagnosis", revision=1, protocol="diagnosis_v3",
        configuration="sha256:0", content=reference(b"{}"),
    )  # fmt: skip
    prepared = RequestPrepared(
        at=AT, request="R1", context="C1", phase="diagnosis", protocol="diagnosis_v3",
        versions={}, form="plain", form_reason="only", document=reference(document),
        characters=1, plain_characters=1, estimated_tokens=1, plain_estimated_tokens=1,
        estimator="x",
    )  # fmt: skip
    return [(context, b"{}"), (prepared, document)]


def evidence(document: bytes) -> list[tuple[Event, bytes | None]]:
    asked = ActionRequested(
        at=AT, action="A1", name="list_files", arguments={}, expanded={}, by="user", revision=1,
    )  # fmt: skip
    found = EvidenceRecorded(
        at=AT, evidence="E1", action="A1", kind="list_files", content=reference(document),
        characters=1, complete=True, found=True,
    )  # fmt: skip
    return [(asked, None), (found, document)]


def cache(basis: dict[str, Any], price: dict[str, Any]) -> list[tuple[Event, bytes | None]]:
    """Return a cache that a request read and that was deleted."""
    one: dict[str, Any] = {"at": AT, "request": "R1", "attempt": 1}
    key: dict[str, Any] = {"at": AT, "key": "K"}
    asked = CacheCreateRequested(
        **key, request="R1", content_id="c", display_name="d", model="m", ttl_seconds=60,
        estimated_tokens=1,
    )  # fmt: skip
    sent = RequestSent(**one, provider="x", model="m", endpoint="x", document=DOCUMENT, cache="c")
    decided = CacheDecided(
        **one, key="K", provider="x", model="m", mode="auto", decision="explicit", reason="create",
        content_id="c", basis=basis,
    )  # fmt: skip
    events: list[tuple[Event, bytes | None]] = [
        *request(PLAIN),
        (decided, None),
        (asked, None),
        (CacheCreated(**key, display_name="d", expires_at="", reply=reference(b"{}")), b"{}"),
        (sent, None),
        (UsageMeasured(**one, prompt=9, cached=9, price=price), None),
        (CacheDeleted(**key, outcome="deleted"), None),
    ]
    return events


EVENTS: dict[str, list[tuple[Event, bytes | None]]] = {
    "empty diagnosis": [(DiagnosisConcluded(at=AT, request="R1", revision=1, result={}), None)],
    "diagnosis of wrong types": [
        (DiagnosisConcluded(at=AT, request="R1", revision=1, result=WRONG_TYPES), None)
    ],
    "empty hypotheses": [(HypothesesProposed(at=AT, request="R1", revision=1, result={}), None)],
    "malformed entities": [
        (EntitiesResolved(at=AT, request="R1", revision=1, result={"entities": 1}), None)
    ],
    "unknown hypothesis": [(HypothesisAssessed(at=AT, hypothesis="H999", state="open"), None)],
    "unknown request": [
        (
            RequestSent(
                at=AT, request="R999", attempt=1, provider="x", model="x", endpoint="x",
                document="sha256:0",
            ),
            None,
        )
    ],
    "unknown artefact": [
        (
            ObservationsExtracted(
                at=AT, revision=1, package_id=canonical.digest(b"[]"),
                observations=(
                    Observation(id="O1", artifact="S9", kind="x", first_line=1, last_line=1),
                ),
            ),
            None,
        )
    ],
    **{f"document {d.decode()}": request(d) for d in (b'{"a":1}', b"[]", b'{"messages":5}')},
    **{f"evidence {d.decode()}": evidence(d) for d in (b"[5]", b"{}", b'{"page":1}')},
    "price without input": cache({}, {"cached": 1, "storage": 1}),
    "price of a long text": cache({}, {"cached": 1, "storage": 1, "input": "9" * 99}),
    "decision of wrong types": cache(
        {"expected_nano_usd": [1], "creation_factor": "9", "tokens": "x"}, {"cached": 1}
    ),
}  # fmt: skip


@pytest.fixture
def made(tmp_path: Path) -> Callable[[str], Path]:
    def make(name: str) -> Path:
        path = tmp_path / "odd.case"
        with Book.create(path) as book:
            book.append(CaseOpened(at=AT, case_id="c", trial_id="t", title="odd", program="x"))
            for event, payload in EVENTS[name]:
                book.append(event, payloads=[payload] if payload is not None else [])
        return path

    return make


@pytest.mark.parametrize("name", EVENTS)
def test_a_nonsensical_record_is_one_line_for_every_command(
    name: str,
    made: Callable[[str], Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = made(name)
    package = path.with_suffix(".zip")
    with Book.open(path) as book:
        packing.write(book, package)
    monkeypatch.setenv("CASELEDGER_HOME", str(path.parent))
    target = [str(path)], [str(package)]
    view = ["view", "--no-browser", "--force", "-o", str(path.with_suffix(".html"))]
    commands = [[name] for name in ("status", "report", "verify", "log", "replay")]
    for command in (*commands, view, ["cache", "ls"], ["cache", "why"]):
        for case in target:
            assert run([*command, *case]) in (0, 1, 5)
            said = capsys.readouterr().err
            assert "Traceback" not in said
            assert said.count("\n") <= 1 or command[0] == "verify"
    assert run(["cache", "why", str(path), "R1"]) in (0, 2, 5)
    for arguments in (["saw", str(path), "all", "--check"], ["saw", str(path), "--decoded"]):
        assert run(arguments) in (0, 1, 2, 5)
    for arguments in (
        ["measure", "cache", str(package)],
        ["measure", "consolidation", str(package), "--all-phases"],
        ["tables", str(package), "-o", str(path.with_suffix(".db"))],
    ):
        assert run(arguments) in (0, 1, 2, 5)
    assert run(["run", str(path)]) in (0, 3, 5)
    assert run(["cases"]) == 0


@pytest.mark.parametrize("name", ["empty diagnosis", "unknown hypothesis", "document []"])
def test_verify_names_the_position_of_nonsense(
    name: str, made: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", str(made(name))]) == 1
    assert "position" in capsys.readouterr().out or name.startswith("document")


def test_verification_sees_one_moment_while_another_process_appends(tmp_path: Path) -> None:
    path = tmp_path / "a.case"
    with Book.create(path) as book:
        book.append(CaseOpened(at=AT, case_id="c", trial_id="t", title="x", program="x"))
    reader = Book.open(path)
    with Book.open_for_writing(path) as writer, reader:
        for event, payload in request(b'{"a":2}'):
            writer.append(event, payloads=[payload])
            report = verify_book(reader)
            assert report.ok, report.findings
            assert report.head == writer.head
