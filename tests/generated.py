"""Random valid cases: a hypothesis strategy that draws event sequences which `fold` accepts.

Use it where a law must hold for every ledger (export, fork, replay, tables)::

    from hypothesis import given
    from tests.generated import A_FIFTH, History, histories

    @A_FIFTH  # a case takes some 20 ms to draw: 100 of them every day, 1,000 in .ci/run
    @given(history=histories())
    def test_a_law(history: History) -> None:
        reader = history.reader()          # a RecordReader in memory: pure projections need no file
        path = history.write(fresh(folder))   # or a real, closed ledger, one append a step

`histories(most=12, ahead=50)` draws the intake, up to `ahead` steps on the straight road (about 40
end in a change request), and up to `most` steps of any kind: runs, contexts, requests rendered by
the program itself (they rebuild to the same bytes), attempts that fail, vanish or fail over,
answers accepted or rejected and corrected, looks, reviews, caches, amendments, labels, forks. Each
step is one transaction, as a run would make it, so every prefix of `history.steps` is a case that a
run can have left; a prefix of `history.entries()` may end inside a step. Texts are drawn from
hostile characters. `history.state()` is the fold, `history.payloads` every payload by digest. Every
topic occurs (tests/test_generated.py). A case is small: some 60 events, 100 KB of payloads.

Files of many examples go into one folder: `fresh(folder)` is a name that is not taken. The fixture
`scratch` of tests/phases/conftest.py is a folder in memory; hypothesis wants a fixture outside of
the function it calls again and again, so draw in an inner function (tests/test_generated.py).
"""

from __future__ import annotations

import hashlib
import itertools
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st

import prompts
from ledger import canonical, chain, topics
from ledger import events as e
from ledger.book import Book
from ledger.clock import Sources
from ledger.errors import PayloadDamaged
from ledger.reader import EMPTY, Entry, Head, Row
from ledger.trees import package_id
from phases import ORDER
from phases.phase import Accepted, find
from phases.pinned import snapshot
from phases.preparing import Prepared, begin, correct, reference
from phases.settings import Settings
from projections.aliases import resolve
from projections.contexts import Material
from projections.folding import fold
from projections.requests import restored_view
from projections.state import Request, State
from tests.phases.scripting import good_answer

CASE_ID = "case-0123456789ab"

Json = dict[str, Any]

A_FIFTH = settings(max_examples=settings.default.max_examples // 5)
"""Decorates property tests over whole cases, which take longer to draw than values."""

A_TENTH = settings(max_examples=settings.default.max_examples // 10)
A_TWENTIETH = settings(max_examples=settings.default.max_examples // 20)
"""For tests that do more with each case, such as writing it and reading it again."""


class Step(NamedTuple):
    """Events of one transaction and the payloads they name."""

    events: tuple[e.Event, ...]
    payloads: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class History:
    """A case as transactions."""

    steps: tuple[Step, ...]

    @property
    def payloads(self) -> dict[str, bytes]:
        """Every payload by its digest."""
        return {canonical.digest(data): data for step in self.steps for data in step.payloads}

    def events(self) -> list[e.Event]:
        """Return all events in order."""
        return [event for step in self.steps for event in step.events]

    def entries(self) -> list[Entry]:
        """Return all events with their positions."""
        return [Entry(n, event) for n, event in enumerate(self.events(), start=1)]

    def boundaries(self) -> list[int]:
        """Return the positions at which a step ended."""
        return list(itertools.accumulate(len(step.events) for step in self.steps))

    def state(self) -> State:
        """Return the fold."""
        return fold(self.entries())

    def reader(self) -> Memory:
        """Return the case in memory, with nonces and chain."""
        return Memory(self)

    def write(self, path: Path) -> Path:
        """Write the case as a ledger, one append a step; closed, with its anchor."""
        with Book.create(path, sources=Sources(random_bytes=nonces())) as book:
            for step in self.steps:
                book.append(*step.events, payloads=step.payloads)
        return path

    def __repr__(self) -> str:
        lines = [f"  {n} {event.TOPIC}" for n, event in self.entries()]
        return "History:\n" + "\n".join(lines)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print a failing example by its topics: payloads would fill pages."""
        printer.text(repr(self))


class Memory:
    """A case in memory. Implements `RecordReader`; a payload is one chunk."""

    def __init__(self, history: History) -> None:
        self._payloads = history.payloads
        self._entries = history.entries()
        self._rows = list(_rows(self._entries))
        self._numbers = {digest: n for n, digest in enumerate(self._payloads, start=1)}
        self.case_id = CASE_ID

    @property
    def head(self) -> Head:
        return Head(self._rows[-1].position, self._rows[-1].chain) if self._rows else EMPTY

    def events(self, upto: int | None = None, *, after: int = 0) -> Iterator[Entry]:
        return iter(self._entries[after : len(self._entries) if upto is None else max(upto, 0)])

    def rows(self, upto: int | None = None, *, after: int = 0) -> Iterator[Row]:
        return iter(self._rows[after : len(self._rows) if upto is None else max(upto, 0)])

    def payload(self, digest: str) -> bytes:
        try:
            return self._payloads[digest]
        except KeyError:
            raise PayloadDamaged(f"payload {digest} is missing") from None

    def numbered_chunks(self, digest: str) -> Iterator[tuple[int, bytes]]:
        if data := self.payload(digest):
            yield self._numbers[digest], data

    def stored_payloads(self) -> Iterator[tuple[str, int]]:
        return ((digest, len(data)) for digest, data in self._payloads.items())


def nonces() -> Callable[[int], bytes]:
    """Return a source of nonces that count."""
    numbers = itertools.count(1)
    return lambda size: hashlib.sha256(b"%d" % next(numbers)).digest()[:size]


def fresh(folder: Path, end: str = ".case") -> Path:
    """Return a path in a folder at which nothing stands."""
    return folder / f"{next(_NUMBERS)}{end}"


_NUMBERS = itertools.count(1)


def _rows(entries: Iterable[Entry]) -> Iterator[Row]:
    value, draw = chain.ZERO, nonces()
    for position, event in entries:
        topic, state = topics.encode(event)
        nonce = draw(chain.NONCE_SIZE)
        value = chain.link(value, chain.leaf(CASE_ID, position, topic, state, nonce))
        yield Row(position, position, CASE_ID, topic, state, nonce, value)


# The strategy -----------------------------------------------------------------------------------

WORDS = st.text(st.sampled_from('ab P1E9"\\<é\u202e\x1b\x00\n\u2028😀'), max_size=6)
"""Short texts: quotes, escapes, direction marks, control characters, what looks like an ID."""

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.sampled_from([0.1, 1.0, -0.0])
    | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=4,
)  # fmt: skip
"""JSON values."""


@st.composite
def histories(draw: st.DrawFn, most: int = 12, ahead: int = 50, least: int = 0) -> History:
    """Draw a valid case: its intake, then steps.

    Args:
        most: at most so many steps of any kind, after those straight on.
        ahead: at most so many steps on the straight road.
        least: at least so many of them, if the road is that long.
    """
    world = _World(draw)
    _take_in(world)
    for _ in range(draw(st.integers(least, ahead))):
        move = next((move for move, possible in _FORWARD if possible(world.state)), None)
        if move is None:
            break
        move(world)
    for _ in range(draw(st.integers(0, most))):
        moves = [move for move, possible in _MOVES if possible(world.state)]
        draw(st.sampled_from(moves))(world)
    return History(tuple(world.steps))


@dataclass
class _World:
    """A case being drawn. Implements what the program's own builders need of a reader."""

    draw: st.DrawFn
    state: State = field(default_factory=State)
    steps: list[Step] = field(default_factory=list)
    stored: dict[str, bytes] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)  # of caches that were asked for

    def payload(self, digest: str) -> bytes:
        return self.stored[digest]

    @property
    def now(self) -> str:
        return f"2024-05-17T09:30:00.{len(self.steps):06}Z"

    def step(self, *events: e.Event, payloads: Iterable[bytes] = ()) -> None:
        """Record one transaction."""
        first = self.state.position + 1
        step = Step(events, tuple(payloads))
        self.steps.append(step)
        self.stored |= {canonical.digest(data): data for data in step.payloads}
        self.state = fold([Entry(first + n, event) for n, event in enumerate(events)], self.state)

    def coin(self) -> bool:
        return self.draw(st.booleans())

    def rarely(self) -> bool:
        return self.draw(st.integers(0, 15)) == 11  # not an end, which are drawn often

    def word(self) -> str:
        return self.draw(WORDS)

    def number(self, most: int = 1000) -> int:
        return self.draw(st.integers(0, most))

    def pick(self, *values: Any) -> Any:
        return self.draw(st.sampled_from(values))


# Intake -----------------------------------------------------------------------------------------


def _take_in(world: _World) -> None:
    opened = e.CaseOpened(
        at=world.now, case_id=CASE_ID, trial_id="trial-1", title=world.word(), program="tests"
    )
    report = f"Wrong total\n\n{world.word()} is {world.number(9)}, not 7.\n".encode()
    events: list[e.Event] = [_text(world, "S1", "report", "report.md", report)]
    payloads = [report]
    number = 1
    for kind in ("source", "log", "database"):
        if world.coin():
            number += 1
            event, more = _ARTIFACTS[kind](world, f"S{number}")
            events.append(event)
            payloads += more
    if world.coin():
        place = {"line": world.number(9)}
        events.append(
            e.SecretReplaced(at=world.now, artifact="S1", kind="token", count=1, places=(place,))
        )
    world.step(opened, *events, payloads=payloads)
    world.step(_observed(world, ["S1"]))


def _text(world: _World, name: str, kind: Any, file: str, data: bytes) -> e.ArtifactAdded:
    return e.ArtifactAdded(
        at=world.now, artifact=name, kind=kind, name=file, revision=world.state.revision,
        media="text", content=reference(data), encoding="utf-8", lines=data.count(b"\n"),
    )  # fmt: skip


def _source(world: _World, name: str) -> tuple[e.ArtifactAdded, list[bytes]]:
    files = {"shop/cart.py": b"def cart_total(items):\n    return 0\n", "a: 100%.bin": b"\0\1"}
    if world.coin():
        files["shop/new.py"] = f"# {world.word()}".encode()
    entries = [
        {"path": path, "size": len(data), "digest": canonical.digest(data), "media": "text",
         "encoding": "utf-8", "lines": data.count(b"\n"), "stored": True}
        for path, data in sorted(files.items())
    ]  # fmt: skip
    tree = canonical.to_bytes({"format": 1, "files": entries, "skipped": []})
    event = e.ArtifactAdded(
        at=world.now, artifact=name, kind="source", name="source", revision=1, media="tree",
        tree=reference(tree), counts={"files": len(files), "bytes": sum(map(len, files.values()))},
        provenance={"folder": world.word()},
    )  # fmt: skip
    return event, [tree, *files.values()]


def _log(world: _World, name: str) -> tuple[e.ArtifactAdded, list[bytes]]:
    data = f"2024-05-17 09:00:00 {world.word()}\n".encode() * (1 + world.number(3))
    return _text(world, name, "log", "app.log", data), [data]


def _database(world: _World, name: str) -> tuple[e.ArtifactAdded, list[bytes]]:
    data = _shop()
    event = e.ArtifactAdded(
        at=world.now, artifact=name, kind="database", name="shop.db", revision=1, media="sqlite",
        content=reference(data), counts={"tables": 1, "rows": 2},
    )  # fmt: skip
    return event, [data]


@cache
def _shop() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE carts (id INTEGER PRIMARY KEY, total INTEGER)")
    connection.execute("INSERT INTO carts VALUES (1, 20), (2, 30)")
    connection.commit()
    try:
        return bytes(connection.serialize())
    finally:
        connection.close()


_ARTIFACTS = {"source": _source, "log": _log, "database": _database}


def _observed(world: _World, artifacts: list[str]) -> e.ObservationsExtracted:
    first = len(world.state.observations) + 1
    observations = tuple(
        e.Observation(id=f"O{n}", artifact=name, kind="report_block", first_line=1, last_line=1)
        for n, name in enumerate(artifacts, start=first)
    )
    added = [x for step in world.steps for x in step.events if isinstance(x, e.ArtifactAdded)]
    trees = {
        x.tree.digest: canonical.from_bytes(world.stored[x.tree.digest]) for x in added if x.tree
    }
    package = world.state.package_id or package_id(added, trees)
    revision = world.state.revision
    return e.ObservationsExtracted(
        at=world.now, revision=revision, package_id=package, observations=observations
    )


def _amend(world: _World) -> None:
    before: list[e.Event] = []
    if request := world.state.open_request:
        before.append(e.RequestAbandoned(at=world.now, request=request.id, reason="amended"))
    revision = world.state.revision + 1
    amended = e.CaseAmended(at=world.now, revision=revision, note=world.word())
    data = f"It rained {world.word()}\n".encode()
    name = f"S{len(world.state.artifacts) + 1}"
    added = _text(world, name, "observation", f"{name}.txt", data)
    added = added.model_copy(update={"revision": revision})
    seen = _observed(world, [name]).model_copy(update={"revision": revision})
    world.step(*before, amended, added, seen, payloads=[data])


# Runs -------------------------------------------------------------------------------------------


def _start(world: _World) -> None:
    events: list[e.Event] = []
    payloads: list[bytes] = []
    provider = world.pick("offline", "recorded:x")
    data = canonical.to_bytes(snapshot(Settings(providers=(provider, "other"))))
    if world.state.configuration != reference(data):
        pinned = reference(data)
        events.append(e.ConfigurationPinned(at=world.now, configuration=pinned, reason="run"))
        payloads.append(data)
    run = world.state.run + 1
    events.append(e.RunStarted(at=world.now, run=run, program="tests", options={"n": run}))
    request = world.state.open_request
    if request and request.last and request.last.status == "sent":
        number = request.last.number
        events.append(
            e.OutcomeUnknown(at=world.now, request=request.id, attempt=number, policy="resend")
        )
    world.step(*events, payloads=payloads)


def _stop(world: _World) -> None:
    reason = world.pick("done", "until", "provider", "interrupted")
    world.step(e.RunStopped(at=world.now, run=world.state.run, reason=reason, detail=world.word()))


# Requests ---------------------------------------------------------------------------------------


def _begin(world: _World) -> None:
    state = world.state
    left = [phase for phase in ORDER if phase not in state.done]
    phase = left[0] if left else "change_request"
    if phase == "investigation" and state.conclusion:
        phase = "diagnosis_early"
    world_of = [name for name in prompts.protocols() if prompts.card(name).phase == phase]
    protocol = world.draw(st.sampled_from([prompts.NEWEST[phase], *world_of]))
    settings = Settings(protocols={phase: protocol})
    prepared = begin(state, world, phase, settings, _material, world.now)  # type: ignore[arg-type]
    if world.rarely():
        created, *rest = prepared.events
        assert isinstance(created, e.ContextCreated)
        fell = e.EncodingFellBack(
            at=world.now, context=created.context, encoding="consolidated_v1", stage="compare",
            reason=world.word(), path="$.evidence",
        )  # fmt: skip
        prepared = Prepared((created, fell, *rest), prepared.payloads)
    world.step(*prepared.events, payloads=prepared.payloads)


def _material() -> Material:
    document = snapshot(Settings())
    files = {"bound": 400, "total": 0, "cut_off": False, "items": []}
    catalogs = {"note": "metadata", "files": files, "databases": [], "logs": []}
    return Material([], document["policy"], catalogs)


def _send(world: _World) -> None:
    request = _open(world)
    number = len(request.attempts) + 1
    provider = world.pick("offline", "other")
    events: list[e.Event] = []
    if world.coin():
        events.append(_decided(world, request, number, provider))
    if request.last and request.last.provider != provider:
        events.append(
            e.ProviderFailedOver(
                at=world.now, request=request.id, from_provider=request.last.provider,
                to_provider=provider, reason="terminal", detail=world.word(),
            )
        )  # fmt: skip
    wire = b'{"wire":%d}' % number if world.coin() else None
    sent = e.RequestSent(
        at=world.now, request=request.id, attempt=number, provider=provider,
        model=f"{provider}-1", endpoint="in-process", document=request.document.digest,
        parameters={"temperature": world.pick(0, 0.5)}, wire=reference(wire) if wire else None,
    )  # fmt: skip
    world.step(*events, sent, payloads=[wire] if wire else [])


def _decided(world: _World, request: Request, number: int, provider: str) -> e.CacheDecided:
    return e.CacheDecided(
        at=world.now, request=request.id, attempt=number, provider=provider, model="m",
        mode="auto", decision=world.pick("not_a_candidate", "inline", "cached"),
        reason=world.pick("protocol", "too_small"), basis={"tokens": world.number()},
    )  # fmt: skip


def _receive(world: _World) -> None:
    request, number = _open(world), _attempt(world)
    body = canonical.to_bytes({"said": world.word()})
    world.step(
        e.ResponseReceived(
            at=world.now, request=request.id, attempt=number, body=reference(body),
            complete=not world.rarely(), elapsed_ms=world.number(), status=world.pick(None, 200),
        ),
        payloads=[body],
    )  # fmt: skip


def _fail(world: _World) -> None:
    partial = b"half an ans" if world.coin() else None
    world.step(
        e.RequestFailed(
            at=world.now, request=_open(world).id, attempt=_attempt(world),
            kind=world.pick("server", "quota", "timeout"), message=world.word(),
            retryable=world.coin(), elapsed_ms=world.number(),
            retry_after_ms=world.pick(None, 10), partial=reference(partial) if partial else None,
        ),
        payloads=[partial] if partial else [],
    )  # fmt: skip


def _accept(world: _World) -> None:
    request = _open(world)
    document = canonical.from_bytes(world.payload(request.document.digest))
    view = restored_view(document)
    answer = _answer(world, request.phase, resolve(view))
    data = canonical.to_bytes(answer)
    accepted = e.ResponseAccepted(
        at=world.now, request=request.id, attempt=_attempt(world), answer=reference(data)
    )
    facts = find(request.phase).facts(Accepted(world.state, request.id, answer, view, world.now))
    if needed := answer.get("information_needed"):
        facts.append(
            e.InformationNeeded(
                at=world.now, request=request.id, phase=request.phase, items=tuple(needed)
            )
        )
    if world.rarely():
        facts.append(
            e.PhaseAnswered(
                at=world.now, request=request.id, phase="own_phase",
                revision=world.state.revision, result={"said": world.draw(VALUES)},
            )
        )  # fmt: skip
    world.step(*_usage(world, request), accepted, *facts, payloads=[data])


def _answer(world: _World, phase: str, view: Json) -> Json:
    """Return an answer that passes the program's checks as far as `fold` goes, with odd texts."""
    answer = _step(world, view) if phase == "investigation" else good_answer(phase, view)
    for member in ("summary", "cause", "why"):
        if isinstance(answer.get(member), str):
            answer[member] += world.word()
    if phase == "hypotheses":
        answer["hypotheses"] = answer["hypotheses"][: 1 + world.number(1)]
    if phase == "diagnosis_early" and world.coin():
        answer |= {"verdict": "reject", "missing": [{"what": world.word(), "why": "w"}]}
    if world.rarely():
        answer["information_needed"] = [{"what": world.word(), "why": world.word()}]
    return answer


_LOOKS: tuple[Json, ...] = (
    {"name": "search_code", "arguments": {"query": "cart_total"}},
    {"name": "read_lines", "arguments": {"path": "shop/cart.py", "first": 1, "last": 2}},
    {"name": "search_log", "arguments": {"query": "dropped"}},
    {"name": "query_database", "arguments": {"database": "S4", "sql": "SELECT 1"}},
)


def _step(world: _World, view: Json) -> Json:
    names = [item["id"] for item in view["hypotheses"]] or [None]
    looks = world.draw(st.lists(st.sampled_from(_LOOKS), max_size=2))
    hypothesis = world.pick(*names)
    cited = [item["id"] for item in view["evidence"] if "refused" not in item]
    assessment = {
        "hypothesis": hypothesis, "state": world.pick("open", "confirmed", "refuted"),
        "notes": world.word(), "questions": [], "evidence": cited[-2:],
    }  # fmt: skip
    return {
        "assessments": [assessment] if hypothesis else [],
        "selected_hypothesis": world.pick(None, *names),
        "actions": [
            {**look, "purpose": world.word(), "hypothesis": world.pick(None, *names)}
            for look in looks
        ],
        "conclusion": {"ready": not looks, "why": f"because {world.word()}"},
        "information_needed": [],
    }


def _usage(world: _World, request: Request) -> list[e.Event]:
    if world.coin():
        return []
    return [
        e.UsageMeasured(
            at=world.now, request=request.id, attempt=_attempt(world), prompt=world.number(),
            cached=world.pick(None, 0, 5), output=world.number(),
            cost_nano_usd=world.pick(None, 0, 12_345), price={"input": 1}, details={"x": [1]},
        )
    ]  # fmt: skip


def _reject(world: _World) -> None:
    request = _open(world)
    answer = canonical.to_bytes({"wrong": world.word()}) if world.coin() else None
    problem = e.Problem(code="schema", message=world.word(), path="$.a")
    rejected = e.ResponseRejected(
        at=world.now, request=request.id, attempt=_attempt(world),
        kind=world.pick("schema", "format", "content"), problems=(problem,),
        correctable=not world.rarely(), answer=reference(answer) if answer else None,
    )  # fmt: skip
    payloads = [answer] if answer else []
    world.step(*_usage(world, request), rejected, payloads=payloads)


def _correct(world: _World) -> None:
    prepared = correct(world.state, world, _open(world), world.now)  # type: ignore[arg-type]
    world.step(*prepared.events, payloads=prepared.payloads)


def _abandon(world: _World) -> None:
    reason = world.pick("corrections_used", "not_correctable")
    world.step(e.RequestAbandoned(at=world.now, request=_open(world).id, reason=reason))


def _open(world: _World) -> Request:
    assert world.state.open_request is not None
    return world.state.open_request


def _attempt(world: _World) -> int:
    last = _open(world).last
    assert last is not None
    return last.number


# Looks ------------------------------------------------------------------------------------------


def _act(world: _World) -> None:
    action = world.state.open_action
    assert action is not None
    _carry_out(world, [], action.id, action.name, action.hypothesis, charged=True)


def _by_hand(world: _World) -> None:
    name = f"A{len(world.state.actions) + 1}"
    look = world.pick(*_LOOKS)
    asked = e.ActionRequested(
        at=world.now, action=name, name=look["name"], arguments=look["arguments"],
        expanded=look["arguments"], revision=world.state.revision, by="person",
    )  # fmt: skip
    _carry_out(world, [asked], name, look["name"], "", charged=False)


def _carry_out(
    world: _World, before: list[e.Event], action: str, kind: str, hypothesis: str, *, charged: bool
) -> None:
    if world.number(3) == 2:
        problem = e.Problem(code="limit", message=world.word())
        refused = e.ActionRefused(at=world.now, action=action, kind="limit", problems=(problem,))
        charge = [e.BudgetCharged(at=world.now, actions=1, action=action)] if charged else []
        world.step(*before, refused, *charge)
        return
    found = world.coin()
    data = canonical.to_bytes(_document(world, kind, found))
    recorded = e.EvidenceRecorded(
        at=world.now, evidence=f"E{len(world.state.evidence) + 1}", action=action, kind=kind,
        content=reference(data), characters=len(data.decode()), complete=True, found=found,
        hypothesis=hypothesis,
    )  # fmt: skip
    charge = [
        e.BudgetCharged(
            at=world.now, actions=1, evidence_characters=recorded.characters, action=action
        )
    ]
    world.step(*before, recorded, *(charge if charged else []), payloads=[data])


def _document(world: _World, kind: str, found: bool) -> Json:
    source = {"artifact": "S2", "path": "shop/cart.py", "digest": canonical.digest(b"x" * 200)}
    hits = [{"line": n, "text": world.word(), "provenance": source} for n in range(world.number(2))]
    document: Json = {
        "action": kind, "arguments": {"query": "cart_total"}, "snapshot": canonical.digest(b""),
        "found": found, "complete": True, "cut_off": None, "page": None,
        "covered": {"files": 2}, "result": {"hits": hits, "values": [world.draw(VALUES)]},
    }  # fmt: skip
    if not found:
        document["negative"] = {"query": world.word(), "complete": True}
    return document


def _end(world: _World) -> None:
    reason = world.pick("early_review", "requests_used", "actions_used", "context_full")
    world.step(e.InvestigationEnded(at=world.now, reason=reason, detail=world.word()))


def _extend(world: _World) -> None:
    world.step(e.BudgetExtended(at=world.now, requests=world.number(9), actions=world.number(9)))


# Caches, people, the ledger itself --------------------------------------------------------------


def _ask_for_cache(world: _World) -> None:
    key = f"key-{len(world.keys) + 1}"
    world.keys.append(key)
    body = b'{"contents":[%d]}' % len(world.keys)
    latest = next(reversed(world.state.requests))
    wanted = e.CacheCreateRequested(
        at=world.now, request=latest, key=key, content_id="sha256:" + "ab" * 32,
        display_name=f"name-{key}", model="m", ttl_seconds=300, estimated_tokens=world.number(),
        body=reference(body),
    )  # fmt: skip
    reply = b'{"name":"cachedContents/x"}'
    what = world.pick("created", "failed", "unknown", "nothing")
    name = wanted.display_name
    outcome: dict[str, tuple[list[e.Event], list[bytes]]] = {
        "created": (
            [
                e.CacheCreated(
                    at=world.now, key=key, display_name=name, expires_at=world.now,
                    reply=reference(reply), tokens=world.pick(None, 7), adopted=world.coin(),
                )
            ],
            [reply],
        ),
        "failed": (
            [
                e.CacheCreateFailed(
                    at=world.now, key=key, display_name=name, kind="too_small",
                    message=world.word(), status=400, minimum_tokens=4096,
                )
            ],
            [],
        ),
        "unknown": (
            [e.CacheCreateUnknown(at=world.now, key=key, display_name=name, reason="timeout")],
            [],
        ),
        "nothing": ([], []),
    }  # fmt: skip
    events, payloads = outcome[what]
    world.step(wanted, *events, payloads=[body, *payloads])


def _end_cache(world: _World) -> None:
    key = world.pick(*world.keys) if world.keys else "key-0"
    latest = next(reversed(world.state.requests))
    world.step(
        world.pick(
            e.CacheRejected(
                at=world.now, request=latest, attempt=1, key=key, kind="expired",
                message=world.word(), status=403,
            ),
            e.CacheLost(at=world.now, key=key, reason="expired", detail=world.word()),
            e.CacheDeleted(at=world.now, key=key, outcome="deleted", status=200),
            e.CacheSettled(
                at=world.now, key=key, reads=world.number(9), cached_tokens=world.pick(None, 9),
                lifetime_ms=world.number(), saved_nano_usd=world.pick(None, -5), basis={"n": 1},
            ),
        )
    )  # fmt: skip


def _label(world: _World) -> None:
    verdict = world.pick("right", "wrong", "partly")
    world.step(e.OutcomeLabelled(at=world.now, verdict=verdict, note=world.word()))


def _fork(world: _World) -> None:
    """The history itself is that of a fork."""
    rows = list(_rows(History(tuple(world.steps)).entries()))
    world.step(
        e.CaseForked(
            at=world.now, trial_id=f"trial-{len(world.steps)}",
            origin_trial_id=world.state.trial_id, origin_position=rows[-1].position,
            origin_chain=rows[-1].chain.hex(), note=world.word(),
        )
    )  # fmt: skip


def _accept_head(world: _World) -> None:
    position = world.state.position
    world.step(
        e.HeadAccepted(
            at=world.now, position=position, chain="00" * 32, anchor_position=position + 1,
            anchor_chain="11" * 32, reason=world.word(),
        )
    )  # fmt: skip


def _status(state: State) -> str:
    """Return where the open request stands: '', rejected, or the status of its last attempt."""
    request = state.open_request
    if request is None:
        return ""
    if request.status == "rejected":
        return "correctable" if request.correctable else "rejected"
    return request.last.status if request.last else "prepared"


def _busy(state: State) -> bool:
    return bool(state.open_request or state.open_action)


_SENDABLE = ("prepared", "failed", "unknown")

_FORWARD: list[tuple[Callable[[_World], None], Callable[[State], bool]]] = [
    (_start, lambda state: state.configuration is None or bool(state.attention)),
    (_send, lambda state: _status(state) in _SENDABLE),
    (_receive, lambda state: _status(state) == "sent"),
    (_accept, lambda state: _status(state) == "received"),
    (_act, lambda state: state.open_action is not None),
    (_end, lambda state: bool(state.early_review) and "investigation" not in state.done),
    (_begin, lambda state: not set(ORDER) <= state.done),
]
"""The straight road: the first that is possible."""

_MOVES: list[tuple[Callable[[_World], None], Callable[[State], bool]]] = [
    *[(_begin, lambda state: bool(state.configuration) and not _busy(state))] * 2,
    *[(_send, lambda state: _status(state) in _SENDABLE)] * 8,
    *[(_receive, lambda state: _status(state) == "sent")] * 5,
    *[(_fail, lambda state: _status(state) == "sent")] * 4,
    *[(_accept, lambda state: _status(state) == "received")] * 5,
    *[(_reject, lambda state: _status(state) == "received")] * 4,
    *[(_correct, lambda state: _status(state) == "correctable")] * 5,
    *[(_abandon, lambda state: _status(state) in ("rejected", "correctable"))] * 4,
    *[(_act, lambda state: state.open_action is not None and not state.open_request)] * 4,
    (_start, lambda state: True),
    (_stop, lambda state: state.run > 0),
    (_by_hand, lambda state: not _busy(state)),
    (_end, lambda state: bool(state.hypotheses) and "investigation" not in state.done),
    (_extend, lambda state: True),
    (_amend, lambda state: state.revision < 3),
    (_ask_for_cache, lambda state: bool(state.requests)),
    (_end_cache, lambda state: bool(state.requests)),
    (_label, lambda state: True),
    (_fork, lambda state: True),
    (_accept_head, lambda state: True),
]
