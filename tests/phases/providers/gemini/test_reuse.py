"""When a remote cache is used again and when not; which configuration a request is sent under."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ledger import canonical
from ledger.book import Book
from ledger.events import (
    CacheCreateRequested,
    CacheDecided,
    ConfigurationPinned,
    ContextCreated,
    Event,
    ProviderFailedOver,
    RequestPrepared,
    RequestSent,
    RunStopped,
)
from ledger.package import Package
from phases.intake import IntakeRequest
from phases.investigation.actions import bindings
from phases.opening import amend_case
from phases.pinned import pinned_settings, policy, snapshot
from phases.providers.gemini.provider import Gemini, open_provider
from phases.run import Options
from phases.settings import Settings
from projections import partitions
from projections.partitions import Whole
from tests.gemini.faults import api_error, storage_quota
from tests.gemini.server import GeminiServer
from tests.gemini.state import ModelRow
from tests.phases.providers.gemini.running import (
    MODEL,
    decisions_of,
    documents_of,
    facts,
    received_bodies,
    run,
    sent_bodies,
    serving,
    settings_for,
)
from tests.phases.providers.gemini.running import key as key
from tests.phases.providers.gemini.running import server as server
from tests.phases.scripting import Script, copied, events_of, only, reading, state_of
from tests.phases.scripting import run as run_scripted
from tools import cli

FROZEN = Path(__file__).parents[3] / "frozen/cases"
OTHER_MODEL = "gemini-3.5-flash"
STABLE = ("case", "sources", "interpretation", "policy", "tools", "catalogs")

Json = dict[str, Any]


class Memory:
    """The ledger's side of one attempt, in memory."""

    attempt = 1

    def __init__(self, request: str) -> None:
        self.request = request
        self.events: list[Event] = []

    def __call__(self, wire: bytes | None, cache: str = "") -> None:
        self.cache = cache

    def record(self, *events: Event, payloads: tuple[bytes, ...] = ()) -> None:
        self.events += events

    def now(self) -> str:
        return "2026-11-30T12:00:00.000000Z"


class Asked:
    """What one request decided and named."""

    def __init__(self, provider: Gemini, document: Json, request: str = "R1") -> None:
        sending = Memory(request)
        provider.ask(canonical.to_bytes(document), sending)
        (self.decided,) = [e for e in sending.events if isinstance(e, CacheDecided)]
        self.creations = sum(isinstance(e, CacheCreateRequested) for e in sending.events)
        self.reason = self.decided.reason
        self.key = self.decided.key
        self.cache = sending.cache


@pytest.fixture(scope="module")
def documents(taken_in: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[Json]]:
    """Return the investigation documents of a case that was amended, by revision."""
    path = copied(taken_in, tmp_path_factory.mktemp("documents") / "small.case")
    run_scripted(path, Script())
    with Book.open_for_writing(path) as book:
        amend_case(book, IntakeRequest(report=None, source=None, observations=("It rained.",)))
    run_scripted(path, Script())
    found: dict[int, list[Json]] = {1: [], 2: []}
    with reading(path) as book:
        revisions = {c.context: c.revision for c in only(path, ContextCreated)}
        for event in only(path, RequestPrepared):
            if event.phase == "investigation":
                document = json.loads(book.payload(event.document.digest))
                found[revisions[event.context]].append(document)
    return found


def gemini(server: GeminiServer, **section: Any) -> Gemini:
    return open_provider("", settings_for(server, **section))


def with_handles_of(provider: Gemini, other: Gemini) -> Gemini:
    """Return a provider as if its process held the handles of another one too."""
    provider._caches._handles = other._caches._handles
    return provider


# What prevents reuse ----------------------------------------------------------------------------


def test_the_next_request_of_a_case_reads_the_cache_of_the_one_before(
    server: GeminiServer, documents: dict[int, list[Json]]
) -> None:
    provider = gemini(server)
    first, *others = [Asked(provider, d, f"R{n}") for n, d in enumerate(documents[1])]
    assert (first.reason, first.creations) == ("create", 1)
    assert {(asked.reason, asked.key, asked.creations) for asked in others} == {
        ("reuse", first.key, 0)
    }


def test_equal_settings_would_read_it_too_if_they_held_its_handle(
    server: GeminiServer, documents: dict[int, list[Json]]
) -> None:
    first = gemini(server)
    created = Asked(first, documents[1][0])
    again = Asked(with_handles_of(gemini(server), first), documents[1][1])
    assert (again.reason, again.key) == ("reuse", created.key)


def check_not_reused(first: Gemini, other: Gemini, documents: list[Json], server: Any) -> None:
    created = Asked(first, documents[0])
    handle = server.caches[-1].name
    asked = Asked(with_handles_of(other, first), documents[1])
    assert (asked.reason, asked.creations) == ("create", 1)
    assert asked.key != created.key
    assert asked.decided.content_id == created.decided.content_id
    assert len([x for x in server.exchanges("generate") if x.cache == handle]) == 1


def test_another_model_does_not_read_it(
    server: GeminiServer, documents: dict[int, list[Json]]
) -> None:
    other = gemini(server, model=OTHER_MODEL, price=PRICES)
    check_not_reused(gemini(server), other, documents[1], server)


PRICES = {"input": "1", "cached": "0.1", "output": "5", "storage": "0.5"}


def test_another_endpoint_does_not_read_it(
    server: GeminiServer, documents: dict[int, list[Json]]
) -> None:
    with serving() as elsewhere:
        check_not_reused(gemini(server), gemini(elsewhere), documents[1], server)
        assert len(elsewhere.caches) == 1


def test_another_version_of_the_api_does_not_read_it(
    server: GeminiServer, documents: dict[int, list[Json]]
) -> None:
    first = gemini(server)
    created = Asked(first, documents[1][0])
    other = with_handles_of(gemini(server, api_version="v1"), first)
    assert other._caches.usable(created.key, Memory("R2")) is not None
    assert other._cache_key(_parts(other, documents[1][1])) != created.key


def _parts(provider: Gemini, document: Json) -> Any:
    from phases.providers.gemini.parts import parts_of

    return parts_of(document, provider._section.cache_context_version, schema_as_text=False)


def test_another_credential_does_not_read_it(
    server: GeminiServer, documents: dict[int, list[Json]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = gemini(server)
    monkeypatch.setenv("GEMINI_API_KEY", server.other_key)
    check_not_reused(first, gemini(server), documents[1], server)
    assert [cache.key for cache in server.caches] == [server.key, server.other_key]


def test_another_lifetime_does_not_read_it(
    server: GeminiServer, documents: dict[int, list[Json]]
) -> None:
    other = gemini(server, cache_ttl_seconds=600)
    check_not_reused(gemini(server), other, documents[1], server)


def test_another_partition_does_not_read_it(
    server: GeminiServer, documents: dict[int, list[Json]]
) -> None:
    first = gemini(server)
    created = Asked(first, documents[1][0])
    other = with_handles_of(gemini(server, cache_context_version="instructions_v1"), first)
    asked = Asked(other, documents[1][1])
    assert (asked.decided.decision, asked.cache) != ("explicit", created.decided.content_id)
    assert asked.key != created.key


def test_another_revision_does_not_read_it(
    server: GeminiServer, documents: dict[int, list[Json]]
) -> None:
    provider = gemini(server)
    check_not_read(provider, documents[1][0], documents[2][0])


def test_another_system_text_does_not_read_it(
    server: GeminiServer, documents: dict[int, list[Json]]
) -> None:
    document = documents[1][0]
    changed = {**document, "system": document["system"].replace("a", "e", 1)}
    created, asked = check_not_read(gemini_saying_nothing(server), document, changed)
    assert asked.decided.content_id == created.decided.content_id


def test_another_output_schema_does_not_read_it(
    server: GeminiServer, documents: dict[int, list[Json]]
) -> None:
    document = documents[1][0]
    changed = {**document, "schema": {**document["schema"], "description": "another"}}
    check_not_read(gemini_saying_nothing(server), document, changed)


@pytest.mark.parametrize("member", STABLE)
def test_another_stable_byte_does_not_read_it(
    server: GeminiServer, documents: dict[int, list[Json]], member: str
) -> None:
    document = documents[1][0]
    changed = copy.deepcopy(document)
    content = changed["messages"][0]["content"]
    content[member] = one_byte_more(content[member])
    created, asked = check_not_read(gemini_saying_nothing(server), document, changed)
    assert asked.decided.content_id != created.decided.content_id


def one_byte_more(value: Any) -> Any:
    """Return a value whose canonical bytes are longer by the shortest text that can be added."""
    if isinstance(value, str):
        return f"{value}."
    if isinstance(value, dict):
        last = list(value)[-1]
        return {**value, last: one_byte_more(value[last])}
    if isinstance(value, list):
        return [*value[:-1], one_byte_more(value[-1])] if value else [0]
    return [value]


def test_the_order_of_stable_members_makes_another_prefix(
    server: GeminiServer, documents: dict[int, list[Json]]
) -> None:
    document = documents[1][0]
    changed = copy.deepcopy(document)
    case = changed["messages"][0]["content"]["case"]
    changed["messages"][0]["content"]["case"] = dict(reversed(case.items()))
    check_not_read(gemini_saying_nothing(server), document, changed)


def gemini_saying_nothing(server: GeminiServer) -> Gemini:
    """Return a provider whose server answers `{}`: what is asked is no document of a protocol."""
    server.responder = lambda request: "{}"
    return gemini(server)


def check_not_read(provider: Gemini, document: Json, changed: Json) -> tuple[Asked, Asked]:
    created = Asked(provider, document)
    again = Asked(provider, document, "R2")
    asked = Asked(provider, changed, "R3")
    assert [x.reason for x in (created, again, asked)] == ["create", "reuse", "create"]
    assert asked.key != created.key == again.key
    return created, asked


def test_live_input_may_change_at_will(
    server: GeminiServer, documents: dict[int, list[Json]]
) -> None:
    document = documents[1][0]
    changed = copy.deepcopy(document)
    content = changed["messages"][0]["content"]
    for member in content.keys() - {*STABLE, "shared"}:
        content[member] = one_byte_more(content[member])
    provider = gemini_saying_nothing(server)
    assert [Asked(provider, d).reason for d in (document, changed)] == ["create", "reuse"]


# Processes --------------------------------------------------------------------------------------


def test_a_new_process_never_uses_the_handle_of_an_old_one(
    server: GeminiServer, documents: dict[int, list[Json]]
) -> None:
    """The old one died: nothing was released, and its cache is still there."""
    old = Asked(gemini(server), documents[1][0])
    new = Asked(gemini(server), documents[1][1])
    assert (new.reason, new.creations, new.key) == ("create", 1, old.key)
    first, second = server.caches
    assert [x.cache for x in server.exchanges("generate")] == [first.name, second.name]
    assert (first.ended, first.uses) == (None, 1)


def test_a_run_that_goes_on_creates_its_own(server: GeminiServer, case: Path) -> None:
    run(case, settings_for(server), Options(max_requests=5))
    run(case, settings_for(server))
    assert server.count("create") == 2
    assert [cache.end for cache in server.caches] == ["deleted", "deleted"]
    assert facts(case) == ["create_requested", "created", "deleted deleted"] * 2


# Candidates -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["v8", "v9", "v10"])
def test_an_older_investigation_is_never_a_candidate(
    server: GeminiServer, case: Path, version: str
) -> None:
    protocols = {"protocols": {"investigation": f"investigation_project_{version}"}}
    assert run(case, settings_for(server, more=protocols)).reason == "done"
    decided = decisions_of(case)
    assert len(decided) >= 10
    assert {(d.decision, d.reason) for d in decided} == {("none", "not_a_candidate")}
    assert server.count("create") == 0
    assert received_bodies(server) == sent_bodies(case)


def test_instructions_v1_caches_system_text_and_schema_and_sends_the_whole_view(
    key: None, case: Path
) -> None:
    with serving(models={"gemini-local": ModelRow(min_cache_tokens=16)}) as server:
        settings = settings_for(
            server, model="gemini-local", price=PRICES, cache_context_version="instructions_v1"
        )
        assert run(case, settings).reason == "done"
        assert received_bodies(server) == sent_bodies(case)
        (created,) = [json.loads(body) for body in server.bodies("create")]
        assert "contents" not in created
        analyst: Any = server.responder
        assert analyst.digests == documents_of(case)
    assert {d.partition for d in decisions_of(case) if d.key} == {"instructions_v1"}
    assert [d.reason for d in decisions_of(case) if d.key][:2] == ["create", "reuse"]


# Snapshots --------------------------------------------------------------------------------------


def written(settings: Mapping[str, Any], effective: Settings) -> bytes:
    """Return a snapshot as it was before there were partitions, by the standard library."""
    document = {
        "format": 1,
        "settings": settings,
        "tools": bindings(),
        "policy": policy(effective),
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


SECTION = {"model": "gemini-2.5-pro", "timeout_seconds": 60}
ALWAYS = {"model": "gemini-3.8-flash", "api_version": "v1beta"}


def pinned_section(section: Json, **more: str) -> Json:
    """Return a section as it is pinned: model and API version always, in this order if added."""
    return {**section, **{k: section.get(k, v) for k, v in ALWAYS.items()}, **more}


@pytest.mark.parametrize("section", [{}, SECTION])
def test_instructions_v1_gives_the_snapshot_from_before_partitions(section: Json) -> None:
    values = {"providers": ["gemini"], "gemini": pinned_section(section)}
    named = {"cache_context_version": "instructions_v1", **section}
    settings = Settings.model_validate({**values, "gemini": named})
    assert canonical.to_bytes(snapshot(settings)) == written(values, settings)


@pytest.mark.parametrize("spelling", ["gemini", "gemini:gemini-2.5-pro"])
@pytest.mark.parametrize("section", [{}, SECTION])
def test_stable_case_v1_is_pinned_though_it_is_the_default(spelling: str, section: Json) -> None:
    values = {"providers": ["offline", spelling], **({"gemini": section} if section else {})}
    version = {"cache_context_version": "stable_case_v1"}
    pinned = {**values, "gemini": pinned_section(section, **version)}
    settings = Settings.model_validate(values)
    assert canonical.to_bytes(snapshot(settings)) == written(pinned, settings)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"providers": ["openai_compatible", "offline"]},
        {"providers": ["recorded:gemini"], "run": {"attempts": 5}},
    ],
)
def test_snapshots_of_other_providers_are_what_they_were(values: Json) -> None:
    settings = Settings.model_validate(values)
    assert canonical.to_bytes(snapshot(settings)) == written(values, settings)
    other = settings.gemini.model_copy(update={"cache_context_version": "instructions_v1"})
    changed = settings.model_copy(update={"gemini": other})
    assert snapshot(changed) == snapshot(settings)


@pytest.mark.parametrize("name", ["gemini", "openai_compatible"])
def test_where_a_key_is_stays_out_of_snapshots_and_is_that_of_today(name: str) -> None:
    section = {"key_variable": "MY_KEY", "key_file": "/home/somebody/key", "timeout_seconds": 60}
    settings = Settings.model_validate({"providers": [name], name: section})
    pinned = snapshot(settings)
    assert b"MY_KEY" not in canonical.to_bytes(pinned)
    assert b"somebody" not in canonical.to_bytes(pinned)
    again = Settings.model_validate(pinned["settings"]).with_keys_of(settings)
    assert getattr(again, name).whereabouts() == getattr(settings, name).whereabouts()
    assert getattr(again, name).timeout_seconds == 60


@pytest.mark.parametrize("name", ["example-v11", "example-v8", "mp-renewal-missing-invoices-v11"])
def test_a_snapshot_that_landed_before_is_made_again_byte_for_byte(name: str) -> None:
    with Package(FROZEN / f"{name}.zip") as package:
        (pinned,) = [e.event for e in package.events() if isinstance(e.event, ConfigurationPinned)]
        settings = pinned_settings(package, pinned.configuration.digest)
        saved = package.payload(pinned.configuration.digest)
    made = snapshot(settings)
    assert canonical.to_bytes(made["settings"]) == canonical.to_bytes(json.loads(saved)["settings"])


@pytest.mark.parametrize("version", ["instructions_v1", "stable_case_v1"])
def test_a_snapshot_is_read_back_as_it_was_pinned(
    server: GeminiServer, case: Path, version: str
) -> None:
    settings = settings_for(server, cache_context_version=version)
    run(case, settings, Options(max_requests=0))
    with reading(case) as book:
        pinned = only(case, ConfigurationPinned)[-1].configuration
        assert pinned_settings(book, pinned.digest) == settings
        assert (b"cache_context_version" in book.payload(pinned.digest)) == (version[0] == "s")


def test_the_same_configuration_is_not_pinned_twice(server: GeminiServer, case: Path) -> None:
    settings = settings_for(server, cache_context_version="instructions_v1")
    for _ in range(2):
        run(case, settings, Options(max_requests=1))
    assert len(only(case, ConfigurationPinned)) == 1


# A request finishes under its configuration -----------------------------------------------------


@pytest.fixture
def waiting(server: GeminiServer, case: Path) -> Path:
    """Return a case whose second investigation request waits: the service was down."""
    run(case, settings_for(server), Options(max_requests=4))
    server.faults.add(operation="generate", action="unavailable", times=3)
    assert run(case, settings_for(server)).reason == "provider"
    return case


def sent_since(path: Path, events: int) -> list[RequestSent]:
    return [event for event in events_of(path)[events:] if isinstance(event, RequestSent)]


@pytest.mark.parametrize(
    "change",
    [
        {"model": OTHER_MODEL},
        {"cache_ttl_seconds": 900},
        {"cache_mode": "off"},
        {"cache_context_version": "instructions_v1"},
        {"temperature": 0.5},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_prepared_request_finishes_under_its_configuration_and_the_next_one_does_not(
    server: GeminiServer, waiting: Path, change: Json
) -> None:
    before = events_of(waiting)
    held = state_of(waiting).open_request
    assert held is not None
    assert run(waiting, settings_for(server, **change), Options(max_requests=2)).reason
    decided = [e for e in events_of(waiting)[len(before) :] if isinstance(e, CacheDecided)]
    first, second = decided[0], decided[1]
    assert first.request == held.id
    assert second.request != held.id
    told = {e.request: e for e in sent_since(waiting, len(before))}
    old = {e.request: e for e in before if isinstance(e, RequestSent)}
    name = next(iter(change))
    assert value_of(name, first, told) == value_of(name, first, old) != change[name]
    assert value_of(name, second, told) == change[name]


def value_of(name: str, decided: CacheDecided, sent: Mapping[str, RequestSent]) -> Any:
    """Return what a setting was for one attempt, as the ledger tells."""
    if name == "temperature":
        return sent[decided.request].parameters.get("temperature")
    if name == "cache_ttl_seconds":
        return decided.basis["key_of"]["ttl_seconds"]
    return {
        "model": decided.model,
        "cache_mode": decided.mode,
        "cache_context_version": decided.partition,
    }[name]


def test_another_provider_is_asked_only_from_the_next_operation_on(
    server: GeminiServer, waiting: Path
) -> None:
    before = len(events_of(waiting))
    assert run(waiting, Settings(), Options()).reason == "done"
    first, *others = sent_since(waiting, before)
    assert first.provider == "gemini"
    assert {event.provider for event in others} == {"offline"}
    assert server.leaked() == []


# Strict test mode -------------------------------------------------------------------------------


@pytest.fixture
def strict(
    server: GeminiServer, case: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[GeminiServer]:
    """Set the environment of a command line that asks this server in strict test mode."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("CASELEDGER_PROVIDERS", "gemini,offline")
    monkeypatch.setenv("CASELEDGER_GEMINI__BASE_URL", server.url)
    monkeypatch.setenv("CASELEDGER_GEMINI__MODEL", MODEL)
    monkeypatch.setenv("CASELEDGER_GEMINI__CACHE_MODE", "required")
    return server


def test_strict_mode_ends_well_where_nothing_departs(strict: GeminiServer, case: Path) -> None:
    assert cli.run(["run", str(case)]) == 0
    assert {d.reason for d in decisions_of(case)} == {"not_a_candidate", "required", "reuse"}
    assert strict.count("create") == 1


def _create_refused(server: GeminiServer) -> None:
    server.faults.add(operation="create", action=storage_quota())


def _create_forbidden(server: GeminiServer) -> None:
    server.faults.add(operation="create", action=api_error(403, "No caches for you."))


def _create_lost(server: GeminiServer) -> None:
    server.faults.add(operation="create", action="close")


def _create_unknown(server: GeminiServer) -> None:
    server.faults.add(operation="create", action="commit_then_drop")
    server.faults.add(operation="list", action="unavailable")


def _too_small(server: GeminiServer) -> None:
    server.faults.add(
        operation="create",
        action=api_error(
            400,
            "Cached content is too small. total_token_count=6789, min_total_token_count=32768",
        ),
    )


def _rejected(server: GeminiServer) -> None:
    server.faults.add(operation="generate", when=lambda x: bool(x.cache), action="evict_cache")


def _down(server: GeminiServer) -> None:
    down = api_error(503, headers={"Retry-After": "0"})
    server.faults.add(operation="generate", when=lambda x: bool(x.cache), action=down, times=3)


DEPARTURES = {
    "create refused": (_create_refused, "rejected_before", ["create_failed http_429"]),
    "create forbidden": (_create_forbidden, "rejected_before", ["create_failed http_403"]),
    "create lost and not found": (
        _create_lost, "rejected_before", ["create_unknown", "deleted left_to_expire"],
    ),
    "create lost and nobody knows": (
        _create_unknown, "rejected_before", ["create_unknown", "deleted deleted"],
    ),
    "below the minimum of the service": (
        _too_small, "rejected_before", ["create_failed too_small"],
    ),
    "rejected at use": (
        _rejected, "cache_rejected",
        ["created", "rejected not_found", "lost rejected", "deleted gone"],
    ),
    "failover": (_down, "", ["created", "deleted deleted"]),
}  # fmt: skip


@pytest.mark.parametrize("departure", DEPARTURES)
def test_strict_mode_stops_at_every_departure_and_a_later_run_goes_on(
    strict: GeminiServer, case: Path, departure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cause, reason, told = DEPARTURES[departure]
    cause(strict)
    assert cli.run(["run", str(case)]) == 4
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("caseled")]
    stopped = only(case, RunStopped)[-1]
    assert stopped.reason == "provider"
    assert stopped.detail
    assert stopped.detail.partition(";")[0] in line
    assert facts(case) == ["create_requested", *told]
    if reason:
        assert decisions_of(case)[-1].reason == reason
        assert "cache_mode is required" in stopped.detail
    else:
        assert "strict mode: no failover" in stopped.detail
    assert only(case, ProviderFailedOver) == []
    assert all(event.provider == "gemini" for event in only(case, RequestSent))
    assert investigation_sends(case) == [x for x in investigation_sends(case) if x.cache]
    assert strict.leaked() == []
    assert cli.run(["run", str(case)]) == 0
    assert investigation_sends(case) == [x for x in investigation_sends(case) if x.cache]
    assert received_bodies(strict) == sent_bodies(case)


def test_strict_mode_stops_at_a_view_that_cannot_be_divided(
    strict: GeminiServer, case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stable = partitions.VERSIONS["stable_case_v1"]
    changed = stable._replace(partition=lambda view: Whole("ShapeChanged: a member is missing"))
    table = {**partitions.VERSIONS, "stable_case_v1": changed}
    with monkeypatch.context() as patch:
        patch.setattr("phases.providers.gemini.parts.VERSIONS", table)
        assert cli.run(["run", str(case)]) == 4
    last = decisions_of(case)[-1]
    assert (last.reason, last.basis["detail"]) == (
        "shape_changed", "ShapeChanged: a member is missing",
    )  # fmt: skip
    assert "shape_changed" in only(case, RunStopped)[-1].detail
    assert investigation_sends(case) == []
    assert cli.run(["run", str(case)]) == 0


def investigation_sends(path: Path) -> list[RequestSent]:
    steps = {e.request for e in only(path, RequestPrepared) if e.phase == "investigation"}
    return [event for event in only(path, RequestSent) if event.request in steps]
