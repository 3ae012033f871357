"""Commands about Gemini: cache ls, cache why, saw --wire, status, doctor, run --preview."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ledger.events import CacheDeleted, CacheLost, CacheRejected, RequestSent
from phases.run import Options
from tests.gemini.server import KEYS, GeminiServer
from tests.phases.providers.gemini.running import (
    MODEL,
    names_cache,
    received_bodies,
    run,
    serving,
    settings_for,
)
from tests.phases.scripting import copied, events_of
from tests.tools.conftest import Cli

Json = dict[str, Any]


@dataclass(frozen=True)
class Lived:
    """A case of two runs: the first ended early, in the second a cache was gone at its use."""

    path: Path
    bodies: list[bytes]
    sent: list[RequestSent]


@pytest.fixture(scope="module")
def lived(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Lived:
    folder = tmp_path_factory.mktemp("lived")
    path = copied(home / "fresh.case", folder / "remote.case")
    with pytest.MonkeyPatch.context() as patch, serving() as server:
        patch.setenv("GEMINI_API_KEY", KEYS[0])
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        run(path, settings_for(server), Options(max_requests=5))
        server.faults.add(operation="generate", when=names_cache, skip=1, action="evict_cache")
        assert run(path, settings_for(server)).reason == "done"
        sent = [event for event in events_of(path) if isinstance(event, RequestSent)]
        return Lived(path, received_bodies(server), sent)


@pytest.fixture
def remote(desk: Path, lived: Lived) -> Lived:
    """Lay the case into the cases folder as `remote`."""
    copied(lived.path, desk / ".caseledger/remote.case")
    return lived


@pytest.fixture
def service(desk: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[GeminiServer]:
    """Set the environment of a command line that asks a local server."""
    with serving() as server:
        monkeypatch.setenv("GEMINI_API_KEY", server.key)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        monkeypatch.setenv("CASELEDGER_GEMINI__BASE_URL", server.url)
        monkeypatch.setenv("CASELEDGER_GEMINI__MODEL", MODEL)
        yield server


def positions(path: Path, kind: type[Any]) -> list[int]:
    return [n for n, event in enumerate(events_of(path), start=1) if isinstance(event, kind)]


# cache ls ---------------------------------------------------------------------------------------


def test_cache_ls_lists_every_cache_and_every_decision(call: Cli, remote: Lived) -> None:
    shown = call("cache", "ls", "remote", "--json").json
    first, second = shown["caches"]
    assert [cache["ended"] for cache in (first, second)] == ["deleted", "rejected"]
    assert (first["reads"], second["reads"]) == (2, 1)
    assert first["key"] == second["key"]
    assert first["cached_tokens"] == 2 * first["tokens"]
    assert (first["tokens_from"], first["adopted"], first["model"]) == (
        "the provider",
        False,
        MODEL,
    )
    assert second["saved_nano_usd"] < 0 < first["expected_nano_usd"]["none"]
    assert shown["cached_tokens"] == 3 * first["tokens"] < shown["prompt_tokens"]
    assert [(d["request"], d["attempt"]) for d in shown["decisions"]] == [
        (event.request, event.attempt) for event in remote.sent
    ]


def test_cache_ls_says_it_in_words(call: Cli, remote: Lived) -> None:
    found = call("cache", "ls", "remote")
    assert found.code == 0
    lines = found.out.splitlines()
    assert lines[0].split("\t")[:3] == ["attempt", "decision", "reason"]
    assert "R7.1\texplicit\treuse\trejected" in found.out
    assert sum(line.startswith("sha256:") for line in lines) == 2
    assert any("prompt tokens of requests that named a cache were read from it" in x for x in lines)


def test_a_case_without_remote_caches_says_so(call: Cli) -> None:
    assert call("cache", "ls", "small").out == "no remote cache was created\n"
    assert call("cache", "why", "small").out == "no cache decision is recorded\n"
    assert call("cache", "why", "small", "--json").json == []
    assert call("cache", "ls", "fresh", "--json").json["decisions"] == []


@pytest.mark.parametrize("command", ["ls", "why"])
def test_a_package_says_the_same_as_its_case(call: Cli, remote: Lived, command: str) -> None:
    call("export", "remote", "-o", "remote.zip")
    for options in ([], ["--json"]):
        said = call("cache", command, "remote", *options)
        assert call("cache", command, "remote.zip", *options).out == said.out


# cache why --------------------------------------------------------------------------------------


def test_cache_why_names_the_cause_of_every_attempt_and_the_events_that_show_it(
    call: Cli, remote: Lived
) -> None:
    found = call("cache", "why", "remote", "--json").json
    told = {f"{why['request']}.{why['attempt']}": why for why in found}
    assert {at: why["cause"] for at, why in told.items()} == {
        **dict.fromkeys(["R1.1", "R2.1", "R3.1"], "not_a_candidate"),
        "R4.1": "first",
        "R5.1": "hit",
        "R6.1": "deleted",
        "R7.1": "rejected",
        "R7.2": "cache_rejected",
        **dict.fromkeys(["R8.1", "R9.1", "R10.1"], "not_a_candidate"),
    }
    assert told["R6.1"]["positions"][0] == positions(remote.path, CacheDeleted)[0]
    assert told["R7.1"]["positions"][0] == positions(remote.path, CacheRejected)[0]
    for why in found:
        assert why["says"]
        assert why["positions"]


def test_cache_why_of_one_request_shows_what_the_decision_rests_on(
    call: Cli, remote: Lived
) -> None:
    found = call("cache", "why", "remote", "R4")
    assert found.code == 0
    assert found.out.startswith("R4.1 first: ")
    for word in ("prefix", "reads", "model", "expected", "price row"):
        assert f"\n  {word}" in found.out
    (why,) = call("cache", "why", "remote", "R4", "--json").json
    assert {"tokens", "expected_reads", "price", "capability"} <= why["basis"].keys()
    assert call("cache", "why", "remote").out.count("\n") == len(remote.sent)


def test_cache_why_of_a_request_that_is_not_there_is_a_users_mistake(
    call: Cli, remote: Lived
) -> None:
    found = call("cache", "why", "remote", "R99")
    assert found.code == 2
    assert "R99: no cache decision is recorded" in found.err


# saw --wire -------------------------------------------------------------------------------------


def test_saw_wire_prints_the_body_of_every_attempt_as_the_server_got_it(
    call: Cli, remote: Lived
) -> None:
    assert len(remote.sent) == len(remote.bodies)
    for event, body in zip(remote.sent, remote.bodies, strict=True):
        number = str(event.attempt)
        found = call("saw", "remote", event.request, "--at-attempt", number)
        assert found.out.encode() == body
        named = found.json.get("cachedContent", "cachedContents/sha256:")
        assert named.startswith("cachedContents/sha256:")  # never a handle


def test_saw_wire_prints_the_latest_attempt(call: Cli, remote: Lived) -> None:
    latest = {event.request: body for event, body in zip(remote.sent, remote.bodies, strict=True)}
    for request in ("R5", "R7"):
        assert call("saw", "remote", request, "--wire").out.encode() == latest[request]
    first = call("saw", "remote", "R7", "--wire", "--at-attempt", "1").json
    second = call("saw", "remote", "R7", "--wire").json
    lost = positions(remote.path, CacheLost)
    assert first["cachedContent"].startswith("cachedContents/sha256:")
    assert len(lost) == 1
    assert "cachedContent" not in second
    assert second["contents"][0]["parts"][1:] == first["contents"][0]["parts"]


def test_saw_wire_of_a_package_is_that_of_its_case(call: Cli, remote: Lived) -> None:
    call("export", "remote", "-o", "remote.zip")
    for request in ("R1", "R5", "R7"):
        assert call("saw", "remote.zip", request, "--wire").out == (
            call("saw", "remote", request, "--wire").out
        )


def test_saw_wire_of_a_provider_in_this_process_is_the_document(call: Cli) -> None:
    assert call("saw", "small", "R2", "--wire").out == call("saw", "small", "R2").out


@pytest.mark.parametrize("options", [["R4", "--at-attempt", "2"], ["R99", "--wire"]])
def test_an_attempt_that_was_not_made_is_a_users_mistake(
    call: Cli, remote: Lived, options: list[str]
) -> None:
    found = call("saw", "remote", *options)
    assert (found.code, found.out) == (2, "")
    assert options[0] in found.err


# status -----------------------------------------------------------------------------------------


def test_status_says_what_caches_did(call: Cli, remote: Lived) -> None:
    cache = call("status", "remote", "--json").json["cache"]
    assert {key: cache[key] for key in ("decisions", "explicit", "rejected", "caches")} == {
        "decisions": 11, "explicit": 4, "rejected": 1, "caches": 2,
    }  # fmt: skip
    listed = call("cache", "ls", "remote", "--json").json["caches"]
    assert cache["saved_nano_usd"] == sum(life["saved_nano_usd"] for life in listed)
    (line,) = [x for x in call("status", "remote").out.splitlines() if x.startswith("cache")]
    assert "4 of 11 attempts named one, 1 refused; saved" in line


def test_status_of_a_case_without_decisions_has_no_line_about_caches(call: Cli) -> None:
    assert "\ncache" not in call("status", "small").out


# doctor -----------------------------------------------------------------------------------------


def checks(call: Cli, *providers: str) -> dict[str, Json]:
    """Return what doctor says of providers, by check."""
    options = [x for name in providers for x in ("--provider", name)]
    found = call("doctor", *options, "--json")
    named = {c["name"]: c for c in found.json["checks"]}
    return {name: c for name, c in named.items() if name.startswith(providers)}


def test_doctor_asks_the_service_and_spends_nothing(call: Cli, service: GeminiServer) -> None:
    found = checks(call, "gemini")
    assert [c["state"] for c in found.values()] == ["ok"] * 3
    assert f"{MODEL} is there" in found["gemini key and model"]["detail"]
    assert found["gemini cache"]["detail"].startswith("explicit caches")
    assert [x.operation for x in service.log] == ["models"]


def test_doctor_tells_a_model_that_has_no_explicit_caches(call: Cli, service: GeminiServer) -> None:
    found = checks(call, "gemini:gemini-4-argon")
    assert "implicit caching only" in found["gemini:gemini-4-argon cache"]["detail"]


def test_doctor_tells_a_model_that_is_not_there(call: Cli, service: GeminiServer) -> None:
    found = call("doctor", "--provider", "gemini:gemini-9", "--json")
    assert found.code == 1
    bad = [c for c in found.json["checks"] if c["state"] == "missing"]
    assert [c["name"] for c in bad] == ["gemini:gemini-9 key and model"]
    assert "gemini-9" in bad[0]["detail"]


def test_doctor_tells_a_key_that_is_not_good(
    call: Cli, service: GeminiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "another-key")
    found = call("doctor", "--provider", "gemini", "--json")
    assert found.code == 1
    assert "API key not valid" in checks(call, "gemini")["gemini key and model"]["detail"]
    assert "another-key" not in found.out


def test_doctor_tells_that_there_is_no_key_and_asks_nobody(
    call: Cli, service: GeminiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GEMINI_API_KEY")
    found = checks(call, "gemini")
    assert found["gemini"]["state"] == "missing"
    assert "GEMINI_API_KEY" in found["gemini"]["detail"]
    assert service.log == []


def test_doctor_tells_that_nobody_answers(call: Cli, service: GeminiServer) -> None:
    service.faults.add(action="close", times=None)
    found = checks(call, "gemini")
    assert found["gemini endpoint"]["state"] == "missing"
    assert service.url in found["gemini endpoint"]["detail"]


# run --preview ----------------------------------------------------------------------------------


def preview(call: Cli, name: str = "gemini") -> Json:
    """Return what a run would cost, as JSON."""
    shown: Json = call("run", "fresh", "--provider", name, "--preview", "--json").json
    return shown


@pytest.fixture
def elsewhere(service: GeminiServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[GeminiServer]:
    """Ask the real service, which a preview must not; the guard would refuse the connection."""
    monkeypatch.delenv("CASELEDGER_GEMINI__BASE_URL")
    yield service
    assert service.log == []


def test_preview_bounds_the_bill_from_above_and_asks_nobody(
    call: Cli, service: GeminiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.delenv("CASELEDGER_GEMINI__BASE_URL")
        shown = preview(call)
    assert service.log == []
    assert call("run", "fresh", "--provider", "gemini").code == 0
    status = call("status", "fresh", "--json").json
    assert 0 < status["usage"]["cost_nano_usd"] < shown["at_most_nano_usd"]
    assert status["requests"] <= shown["at_most_requests"]


def test_preview_says_to_whom_what_and_for_how_much(call: Cli, elsewhere: GeminiServer) -> None:
    lines = call("run", "fresh", "--provider", "gemini", "--preview").out.splitlines()
    assert lines[0] == f"gemini: {MODEL} at https://generativelanguage.googleapis.com"
    assert "S2 source source: may be quoted in requests" in lines
    assert lines[-1].startswith("at most ")
    assert "retries not counted; at most $" in lines[-1]


def test_preview_of_a_server_on_this_machine_bills_nothing(
    call: Cli, service: GeminiServer
) -> None:
    shown = preview(call)
    assert (shown["at_most_nano_usd"], shown["artifacts"]) == (0, [])
    assert shown["lines"][-1].startswith("requests go to a server on this machine")


def test_a_dearer_model_may_cost_more(call: Cli, elsewhere: GeminiServer) -> None:
    models = ("gemini-2.5-flash-lite", MODEL, "gemini-2.5-pro")
    bounds = [preview(call, f"gemini:{model}")["at_most_nano_usd"] for model in models]
    assert bounds == sorted(bounds)
    assert len(set(bounds)) == 3


def test_the_dearest_of_several_providers_bounds_the_bill(
    call: Cli, elsewhere: GeminiServer
) -> None:
    both = ["--provider", "gemini:gemini-2.5-flash-lite", "--provider", "gemini:gemini-2.5-pro"]
    shown = call("run", "fresh", *both, "--preview", "--json").json
    assert shown["at_most_nano_usd"] == preview(call, "gemini:gemini-2.5-pro")["at_most_nano_usd"]


def test_a_model_without_a_known_price_has_no_bound(
    call: Cli, elsewhere: GeminiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["run", "fresh", "--provider", "gemini:gemini-new", "--preview"]
    assert preview(call, "gemini:gemini-new")["at_most_nano_usd"] is None
    assert "no price is known" in call(*options).out
    monkeypatch.setenv("CASELEDGER_RUN__MAX_COST_USD", "1")
    found = call(*options)
    assert found.code == 2
    assert "run.max_cost_usd" in found.err
    monkeypatch.setenv("CASELEDGER_GEMINI__PRICE__INPUT", "1")
    monkeypatch.setenv("CASELEDGER_GEMINI__PRICE__OUTPUT", "5")
    assert preview(call, "gemini:gemini-new")["at_most_nano_usd"] > 0
