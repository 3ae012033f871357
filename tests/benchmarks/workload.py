"""The ledgers that the benchmarks measure: an investigation, and long streams of events."""

from __future__ import annotations

import hashlib
import random
import string
from collections.abc import Iterator
from pathlib import Path

from ledger import canonical
from ledger.book import Book
from ledger.events import (
    ActionRequested,
    BudgetCharged,
    CacheDecided,
    CaseOpened,
    ConfigurationPinned,
    ContextCreated,
    Event,
    EvidenceRecorded,
    HypothesisAssessed,
    HypothesisSelected,
    Ref,
    RequestPrepared,
    RequestSent,
    ResponseAccepted,
    ResponseReceived,
    RunStarted,
    RunStopped,
    UsageMeasured,
)

AT = "2024-05-17T09:30:00.000000Z"
SYSTEM_CHARACTERS = 4000
PROTOCOL = "benchmark_v1"
"""No protocol of a release: `verify` leaves such requests unchecked."""
Step = tuple[list[Event], list[bytes]]
"""Events of one transaction and the payloads that they name."""

_SCHEMA = {
    "type": "object",
    "properties": {
        name: {"type": "string", "description": f"the {name} of the answer, one line"}
        for name in ("verdict", "selected", "action", "arguments", "notes", "questions", "reason")
    },
    "required": ["verdict", "selected", "action"],
    "additionalProperties": False,
}


class Prose:
    """Text that compresses like text: words drawn from a vocabulary, the same for one seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._words = [
            "".join(self._rng.choices(string.ascii_lowercase, k=self._rng.randint(3, 9)))
            for _ in range(3000)
        ]

    def text(self, size: int) -> str:
        words = self._rng.choices(self._words, k=size // 4 + 1)
        return " ".join(words)[:size]

    def document(self, size: int) -> bytes:
        """Return a JSON document of about `size` bytes: evidence in lines."""
        lines = [{"n": n, "text": self.text(60)} for n in range(size // 83)]
        return canonical.to_bytes({"path": "src/app.py", "lines": lines})


def reference(data: bytes) -> Ref:
    return Ref(digest=canonical.digest(data), size=len(data))


def opening() -> CaseOpened:
    return CaseOpened(
        at=AT, case_id="bug-17", trial_id="trial-1", title="Totals are off by one", program="bench"
    )


def request_document(context: bytes, system: str) -> bytes:
    """Return the request document of a context."""
    return canonical.to_bytes(
        {
            "format": 1,
            "protocol": PROTOCOL,
            "system": system,
            "schema": _SCHEMA,
            "messages": [{"role": "user", "content": canonical.from_bytes(context)}],
        }
    )


def wire_body(document: bytes) -> bytes:
    """Return what an HTTP provider sends for a request document: the content as a JSON string."""
    value = canonical.from_bytes(document)
    content = canonical.to_bytes(value["messages"][0]["content"]).decode()
    return canonical.to_bytes(
        {
            "systemInstruction": {"parts": [{"text": value["system"]}]},
            "contents": [{"role": "user", "parts": [{"text": content}]}],
            "generationConfig": {"responseJsonSchema": value["schema"], "temperature": 0},
        }
    )


def investigation(documents: list[bytes], *, wire: bool = False) -> Iterator[Step]:
    """Yield the transactions of an investigation with one request for each document.

    Thirteen events a request: action, evidence, charge, context, request, cache decision, sending,
    answer, usage, acceptance, selection and assessment. `wire` archives the HTTP bodies as well.
    """
    prose = Prose(seed=11)
    system = prose.text(SYSTEM_CHARACTERS)
    settings = canonical.to_bytes({"model": "model-1", "protocols": {"investigation": PROTOCOL}})
    yield [opening()], []
    yield (
        [
            ConfigurationPinned(at=AT, configuration=reference(settings), reason="first run"),
            RunStarted(at=AT, run=1, program="bench", libraries={"pydantic": "2.12"}),
        ],
        [settings],
    )
    for number, context in enumerate(documents, start=1):
        yield _action(number, context)
        yield _request(number, context, system)
        yield _sending(number, request_document(context, system), wire=wire)
        yield _answer(number, prose)
    yield [RunStopped(at=AT, run=1, reason="concluded")], []


def write_case(path: Path, steps: Iterator[Step]) -> Path:
    """Create a case of these transactions; return its path once it is closed."""
    with Book.create(path) as book:
        for events, payloads in steps:
            book.append(*events, payloads=payloads)
    return path


def long_stream(count: int) -> Iterator[Step]:
    """Yield `count` events without payloads, the mix of an investigation, 500 a transaction."""
    names = canonical.digest(b"")
    made: list[Event] = [opening()]
    for number in range(1, count):
        made.append(_stream_event(number, names))
        if len(made) == 500:
            yield made, []
            made = []
    if made:
        yield made, []


def small_event(number: int) -> Event:
    """Return an event of a common size, without payload."""
    return HypothesisAssessed(
        at=AT,
        hypothesis=f"H{number % 6 + 1}",
        state="supported",
        request=f"R{number}",
        notes="the totals are computed before the late scans are merged",
        evidence=(f"E{number}", f"E{number + 1}"),
    )


def _stream_event(number: int, digest: str) -> Event:
    match number % 5:
        case 0:
            return ActionRequested(
                at=AT,
                action=f"A{number}",
                name="read_file",
                arguments={"file": "S2", "first": number, "last": number + 30},
                expanded={"path": "src/app.py", "first": number, "last": number + 30},
                revision=1,
                request=f"R{number}",
            )
        case 1:
            return BudgetCharged(at=AT, requests=1, actions=1, action=f"A{number}")
        case 2:
            return RequestSent(
                at=AT,
                request=f"R{number}",
                attempt=1,
                provider="google",
                model="model-1",
                endpoint="https://example.org/v1/models/model-1:generateContent",
                document=digest,
                parameters={"temperature": 0, "max_output_tokens": 8192},
            )
        case 3:
            return UsageMeasured(
                at=AT, request=f"R{number}", attempt=1, prompt=20_000 + number, output=800
            )
    return small_event(number)


def _action(number: int, context: bytes) -> Step:
    """The action that the request before asked for; its evidence is the newest in the context."""
    research = canonical.from_bytes(context)["research"]
    content = canonical.to_bytes(research[-1] if research else {"id": "E0", "lines": []})
    return [
        ActionRequested(
            at=AT,
            action=f"A{number}",
            name="read_file",
            arguments={"file": "S2", "first": 100, "last": 130},
            expanded={"path": "src/app.py", "first": 100, "last": 130},
            revision=1,
            request=f"R{number - 1}",
            hypothesis=f"H{number % 6 + 1}",
        ),
        EvidenceRecorded(
            at=AT,
            evidence=f"E{number}",
            action=f"A{number}",
            kind="read_file",
            content=reference(content),
            characters=len(content),
            complete=True,
            found=True,
            hypothesis=f"H{number % 6 + 1}",
        ),
        BudgetCharged(at=AT, actions=1, evidence_characters=len(content), action=f"A{number}"),
    ], [content]


def _request(number: int, context: bytes, system: str) -> Step:
    document = request_document(context, system)
    return [
        ContextCreated(
            at=AT,
            context=f"C{number}",
            phase="investigation",
            revision=1,
            protocol=PROTOCOL,
            configuration="sha256:" + hashlib.sha256(b"configuration").hexdigest(),
            content=reference(context),
            hypothesis=f"H{number % 6 + 1}",
        ),
        RequestPrepared(
            at=AT,
            request=f"R{number}",
            context=f"C{number}",
            phase="investigation",
            protocol=PROTOCOL,
            versions={"instructions": 4, "view": 10, "encoding": "plain_v1", "schema": 3},
            form="plain",
            form_reason="fewest estimated tokens",
            document=reference(document),
            characters=len(document),
            plain_characters=len(document),
            estimated_tokens=len(document) // 4,
            plain_estimated_tokens=len(document) // 4,
            estimator="characters/4",
        ),
    ], [context, document]


def _sending(number: int, document: bytes, *, wire: bool) -> Step:
    body = wire_body(document)
    return [
        CacheDecided(
            at=AT,
            request=f"R{number}",
            attempt=1,
            provider="google",
            model="model-1",
            mode="auto",
            decision="not_a_candidate",
            reason="the protocol is not eligible",
            basis={"eligible": False, "estimated_tokens": 0, "minimum_tokens": 4096},
        ),
        RequestSent(
            at=AT,
            request=f"R{number}",
            attempt=1,
            provider="google",
            model="model-1",
            endpoint="https://example.org/v1/models/model-1:generateContent",
            document=canonical.digest(document),
            client="google-genai 3.6.1",
            api_version="v1",
            parameters={"temperature": 0, "max_output_tokens": 8192},
            wire=reference(body) if wire else None,
            deadline_ms=120_000,
        ),
    ], [body] if wire else []


def _answer(number: int, prose: Prose) -> Step:
    answer = canonical.to_bytes(
        {
            "verdict": "continue",
            "selected": f"H{number % 6 + 1}",
            "action": {"name": "read_file", "file": "S2", "first": 100, "last": 130},
            "notes": prose.text(400),
            "questions": [prose.text(80)],
        }
    )
    body = canonical.to_bytes(
        {
            "candidates": [{"content": {"parts": [{"text": answer.decode()}]}, "index": 0}],
            "usageMetadata": {"promptTokenCount": 20_000 + number, "candidatesTokenCount": 180},
            "responseId": f"response-{number}",
        }
    )
    return [
        ResponseReceived(
            at=AT,
            request=f"R{number}",
            attempt=1,
            body=reference(body),
            complete=True,
            elapsed_ms=4210,
            status=200,
            content_type="application/json",
            provider_request_id=f"response-{number}",
        ),
        UsageMeasured(
            at=AT,
            request=f"R{number}",
            attempt=1,
            prompt=20_000 + number,
            cached=0,
            output=180,
            cost_nano_usd=1_234_567,
            price={"input": 300, "output": 2500},
        ),
        ResponseAccepted(at=AT, request=f"R{number}", attempt=1, answer=reference(answer)),
        HypothesisSelected(
            at=AT, hypothesis=f"H{number % 6 + 1}", reason="most support", request=f"R{number}"
        ),
        HypothesisAssessed(
            at=AT,
            hypothesis=f"H{number % 6 + 1}",
            state="supported",
            request=f"R{number}",
            notes=prose.text(200),
            evidence=(f"E{number}",),
        ),
        BudgetCharged(at=AT, requests=1, request=f"R{number}"),
    ], [body, answer]
