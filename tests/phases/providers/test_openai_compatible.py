"""The OpenAI-compatible provider through real HTTP: what leaves, what fails, what is learned."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import prompts
from ledger import canonical
from phases.providers import Failure, ProviderConfigurationError, open_provider
from phases.providers.credentials import Key
from phases.providers.openai_compatible import replies
from phases.providers.openai_compatible.provider import OpenAICompatible
from phases.providers.openai_compatible.wire import Form
from tests.gemini.faults import (
    Action,
    Bytes,
    Cut,
    Delay,
    Drip,
    Instead,
    Redirect,
    Silent,
)
from tests.gemini.guard import only_loopback
from tests.openai_server.asking import (
    PROTOCOL,
    Remembering,
    ask,
    document,
    failure_of,
    provider,
    settings,
)
from tests.openai_server.completions import Completion, error
from tests.openai_server.server import OpenAIServer

CORRECTION = {"correction": {"of": "R1", "kind": "schema", "problems": []}}

KEYS = (
    "sk-canary0123456789abcdefghijklmnopqrstuvwxyz",
    "sk-or-v1-0123456789abcdef0123456789abcdef",
    "canary/with+slash=and==",
    'canary"quote\\backslash',
    "canary%20percent&amp",
)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(lambda asked: '{"hypotheses":[]}') as running, only_loopback():
        yield running


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def meets(server: OpenAIServer, action: Action | str, times: int | None = 1) -> None:
    server.faults.add(operation="chat", action=action, times=times)


def says(status: int, body: object = b"", **headers: str) -> Instead:
    """Return an action: this status, body and headers."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Instead(status, data, headers={n.replace("_", "-"): v for n, v in headers.items()})


def refusal(status: int, message: str, **more: Any) -> Instead:
    return Instead(status, error(status, message, **more).body)


# What leaves ------------------------------------------------------------------------------------


def test_the_body_that_is_recorded_is_the_body_that_arrives(server: OpenAIServer) -> None:
    asked, sending = provider(server.url), Remembering()
    asked.ask(document(), sending)
    asked.ask(document(CORRECTION), sending)
    asked.release(sending)
    assert server.bodies() == sending.wires
    assert [canonical.to_bytes(canonical.from_bytes(body)) for body in server.bodies()] == (
        server.bodies()
    )


def test_a_request_is_complete_and_its_stable_part_comes_first(server: OpenAIServer) -> None:
    ask(provider(server.url, temperature=0.5, max_output_tokens=900), document(CORRECTION))
    sent = json.loads(server.bodies()[0])
    first, *feedback = json.loads(document(CORRECTION))["messages"]
    card = prompts.card(PROTOCOL)
    assert list(sent) == [
        "model", "messages", "max_tokens", "temperature", "response_format", "stream",
    ]  # fmt: skip
    assert sent["messages"] == [
        {"role": "system", "content": card.text},
        {"role": "user", "content": canonical.to_bytes(first["content"]).decode()},
        {"role": "user", "content": canonical.to_bytes(feedback[0]["content"]).decode()},
    ]
    assert sent["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": PROTOCOL, "strict": True, "schema": prompts.schema(card.schema)},
    }
    assert (sent["model"], sent["stream"]) == ("local-model", False)
    assert (sent["max_tokens"], sent["temperature"]) == (900, 0.5)


def test_strict_is_only_claimed_for_a_schema_that_names_every_member(server: OpenAIServer) -> None:
    for protocol in prompts.protocols():
        ask(provider(server.url), document(protocol=protocol))
    formats = [json.loads(body)["response_format"]["json_schema"] for body in server.bodies()]
    assert {f["name"] for f in formats if not f["strict"]} == {
        name for name in prompts.protocols() if prompts.card(name).phase == "investigation"
    }


def test_without_a_model_the_server_takes_its_own(server: OpenAIServer) -> None:
    asked = provider(server.url, model="")
    ask(asked)
    assert "model" not in json.loads(server.bodies()[0])
    assert asked.model == "the server's own"


def test_the_argument_names_the_model(server: OpenAIServer) -> None:
    asked = open_provider("openai_compatible:qwen3:8b", settings(server.url))
    ask(asked)
    assert json.loads(server.bodies()[0])["model"] == asked.model == "qwen3:8b"


def test_the_schema_can_be_text(server: OpenAIServer) -> None:
    asked = provider(server.url, response_schema=False)
    ask(asked)
    sent = json.loads(server.bodies()[0])
    schema = canonical.to_bytes(prompts.schema(prompts.card(PROTOCOL).schema)).decode()
    assert "response_format" not in sent
    assert sent["messages"][0]["content"].startswith(prompts.card(PROTOCOL).text + "\n\n")
    assert sent["messages"][0]["content"].endswith(schema)
    assert asked.parameters["schema"] == "text"


def test_nothing_leaves_that_could_not_be_recorded(server: OpenAIServer) -> None:
    class Full(Remembering):
        def __call__(self, wire: bytes | None, cache: str = "") -> None:
            assert not server.log
            raise OSError("the disk is full")

    asked = provider(server.url)
    with pytest.raises(OSError, match="full"):
        asked.ask(document(), Full())
    asked.release(Full())
    assert server.log == []


def test_an_answer_is_kept_as_it_came(server: OpenAIServer) -> None:
    body = b' {"choices": [ ],\n "x": 1e5}'
    server.queue(Completion(body=body))
    received = ask(provider(server.url))
    assert (received.body, received.complete, received.status) == (body, True, 200)
    assert received.content_type.startswith("application/json")


def test_attributes_say_who_is_asked(server: OpenAIServer) -> None:
    asked = provider(server.url, temperature=0.0, price={"input": "0", "output": "0"})
    assert (asked.name, asked.endpoint, asked.remote) == ("openai_compatible", server.url, False)
    assert asked.client.startswith("httpx2/")
    assert (asked.api_version, asked.deadline_ms) == ("", 5_000)
    assert asked.parameters == {"max_tokens": 16_384, "temperature": 0.0, "schema": "json_schema"}
    assert [(row.input, row.output) for row in asked.prices] == [(0, 0)]
    assert provider("https://gateway.example/v1").remote
    assert provider("http://[::1]:8080/v1/").endpoint == "http://[::1]:8080/v1"


# What fails -------------------------------------------------------------------------------------

FAILURES: dict[str, tuple[Action | str, str, bool]] = {
    "timeout of the server": (says(408), "http_408", True),
    "too many requests": (refusal(429, "Rate limit reached", code="rate_limit"), "http_429", True),
    "internal error": (refusal(500, "oops"), "http_500", True),
    "html 502": ("html_502", "http_502", True),
    "empty 503": ("empty_503", "http_503", True),
    "loading": (refusal(503, "Loading model", kind="unavailable_error"), "http_503", True),
    "gateway timeout": (says(504), "http_504", True),
    "bad request": (refusal(400, "context size exceeded"), "http_400", False),
    "wrong key": (refusal(401, "Incorrect API key provided"), "http_401", False),
    "no credit": (refusal(402, "Insufficient credits"), "http_402", False),
    "forbidden": (refusal(403, "not for you"), "http_403", False),
    "no such model": (refusal(404, "model not found", code="model_not_found"), "http_404", False),
    "quota": (refusal(429, "You exceeded", code="insufficient_quota"), "quota", False),
    "quota by type": (refusal(429, "You exceeded", kind="insufficient_quota"), "quota", False),
    "created": (says(201, {"choices": []}), "http_201", False),
    "empty 200": ("empty_200", "no_answer", True),
    "object 200": ("object_200", "no_answer", True),
    "null 200": ("null_200", "no_answer", True),
    "list 200": ("list_200", "no_answer", True),
    "html 200": ("html_200", "no_answer", True),
    "error 200": (says(200, {"error": {"message": "upstream failed"}}), "no_answer", True),
    "choices are no list": (says(200, {"choices": {}}), "no_answer", True),
    "closed": ("close", "disconnected", True),
    "reset": ("reset", "reset", True),
    "no http": ("garbage", "disconnected", True),
    "closed mid body": (Cut(), "disconnected", True),
    "reset mid body": (Cut(how="reset"), "reset", True),
    "closed mid chunk": (Cut(framing="chunked"), "disconnected", True),
    "bad gzip": ("bad_gzip", "undecodable", True),
    "gzip that ends early": (
        Bytes(lambda body: gzip.compress(body)[:-9], "gzip"),
        "undecodable",
        True,
    ),
    "gzip of far too much": (
        Bytes(lambda body: gzip.compress(bytes(70_000_000), 1), "gzip"),
        "too_long",
        False,
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_has_its_kind_and_says_whether_it_may_be_repeated(
    server: OpenAIServer, name: str
) -> None:
    action, kind, retryable = FAILURES[name]
    meets(server, action)
    failure = failure_of(provider(server.url))
    assert (failure.kind, failure.retryable) == (kind, retryable)
    assert failure.message == " ".join(failure.message.split())
    assert 0 < len(failure.message) <= 600


def test_no_server_is_a_failure_that_may_be_repeated() -> None:
    with OpenAIServer() as gone:
        url = gone.url
    failure = failure_of(provider(url))
    assert (failure.kind, failure.retryable) == ("connect", True)


@pytest.mark.parametrize(
    "action",
    [Silent("hang"), Cut(how="hang"), Drip(size=1, every=0.2), Delay(30)],
    ids=["hang", "hang mid body", "drip", "silence"],
)
def test_an_attempt_ends_with_its_total_deadline(server: OpenAIServer, action: Action) -> None:
    meets(server, action)
    failure = failure_of(provider(server.url, timeout_seconds=1))
    assert (failure.kind, failure.retryable) == ("timeout", True)


def test_what_arrived_before_a_failure_is_kept(server: OpenAIServer) -> None:
    for action, partial in (
        (Cut(after_bytes=12), b'{"choices": '),
        (says(500, b"out of memory"), b"out of memory"),
        (says(200, b"<html>"), b"<html>"),
        (says(503), None),
    ):
        meets(server, action)
        assert failure_of(provider(server.url)).partial == partial


@pytest.mark.parametrize(
    ("header", "milliseconds"),
    [
        ("7", 7_000),
        ("0", 0),
        ("Fri, 17 May 2024 09:30:42 GMT", 42_000),
        ("Fri, 17 May 2024 09:29:00 GMT", 0),
        ("99999999999999999999", 86_400_000),
        ("Sat, 17 May 2098 09:30:42 GMT", 86_400_000),
        ("soon", None),
        ("-1", None),
        ("", None),
        ("٣", None),
    ],
)
def test_the_wait_that_a_server_asks_for_is_kept(
    server: OpenAIServer, header: str, milliseconds: int | None
) -> None:
    header = header.encode().decode("latin-1")
    meets(server, Instead(429, b"{}", headers={"Retry-After": header}))
    assert failure_of(provider(server.url)).retry_after_ms == milliseconds


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "two\n lines"}}, "two lines"),
        ({"error": "plain text"}, "plain text"),
        ({"object": "error", "message": "as vLLM did"}, "as vLLM did"),
        ({"detail": "as FastAPI does"}, "as FastAPI does"),
        ({"detail": [{"msg": "field required"}]}, "field required"),
        (b"<html>\n <title>Bad</title>", "<html> <title>Bad</title>"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b'{"error":{"message":"\\ud83d"}}', "\\ud83d"),
        ({"error": {"message": 17, "code": [], "type": {}}}, "17"),
        ({"error": None}, "no message"),
        ([], "no message"),
        (b"", "no message"),
        ({"error": {"message": "x" * 10_000}}, "x" * 590),
    ],
)
def test_a_server_s_words_become_one_line(server: OpenAIServer, body: object, said: str) -> None:
    meets(server, says(418, body))
    failure = failure_of(provider(server.url))
    assert failure.message.startswith("418: ")
    assert said in failure.message
    assert len(failure.message) <= 600
    failure.message.encode()


def test_gzip_is_undone(server: OpenAIServer) -> None:
    meets(server, Bytes(lambda body: gzip.compress(body), "gzip"))
    assert json.loads(ask(provider(server.url)).body)["object"] == "chat.completion"


def test_a_connection_that_the_server_closed_costs_a_repetition_at_most(
    server: OpenAIServer,
) -> None:
    meets(server, "close_after_reply")
    asked, sending = provider(server.url), Remembering()
    asked.ask(document(), sending)
    with suppress(Failure):  # whether the end is seen before the next request is a race
        asked.ask(document(), sending)
    assert asked.ask(document(), sending).status == 200
    asked.release(sending)


def test_no_answer_is_read_before_it_is_recorded(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_at_all(data: bytes) -> None:
        raise AssertionError("it is read")

    asked = provider(server.url)
    monkeypatch.setattr(replies, "canonical", SimpleNamespace(from_bytes=read_at_all))
    assert ask(asked).status == 200


@pytest.mark.parametrize("key", ["test", "null", "EMPTY", "ollama", "lm-studio", "hypotheses"])
def test_a_word_that_stands_for_a_key_destroys_no_answer(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    text = json.dumps({"hypotheses": [f"tests/test_{key}.py"]})
    server.queue(Completion(text=text))
    asked = provider(server.url)
    assert asked.read(ask(asked).body).text == text


def test_a_host_that_is_no_name_is_refused_before_anything_is_sent() -> None:
    for host in ("api..example.com", "a" * 64 + ".example"):
        with pytest.raises(ProviderConfigurationError, match="a part of its host is empty"):
            provider(f"https://{host}/v1")


# What is learned --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quirk", "parameter"),
    [
        ("no_schema", ("schema", "text")),
        ("no_max_tokens", ("max_completion_tokens", 16_384)),
        ("alternating", ("messages", "joined")),
    ],
)
def test_a_refused_form_is_asked_again_in_another_and_remembered(
    quirk: str, parameter: tuple[str, object]
) -> None:
    data = document(CORRECTION)
    with OpenAIServer(quirks=frozenset({quirk})) as server:
        asked, sending = provider(server.url), Remembering()
        with pytest.raises(Failure) as caught:
            asked.ask(data, sending)
        assert (caught.value.kind, caught.value.retryable) == ("form_refused", True)
        assert (caught.value.status, caught.value.retry_after_ms) == (400, 0)
        assert caught.value.partial
        asked.ask(data, sending)
        asked.ask(data, sending)
        asked.release(sending)
        assert parameter in asked.parameters.items()
        assert server.bodies() == sending.wires  # each form was recorded before it left


def test_a_form_that_is_learned_meanwhile_is_not_recorded_for_what_leaves(
    server: OpenAIServer,
) -> None:
    """Another thread has its lesson when the body is made and has not left."""

    class Noting(Remembering):
        def __call__(self, wire: bytes | None, cache: str = "") -> None:
            super().__call__(wire)
            recorded.append(dict(asked.parameters))

    class Meanwhile(OpenAICompatible):
        def _body(self, document: Any, form: Form) -> bytes:
            body = super()._body(document, form)
            self._take(replace(form, limit="max_completion_tokens"))
            return body

    recorded: list[dict[str, Any]] = []
    section = settings(server.url).openai_compatible
    asked = Meanwhile(section, Key(""))
    for limit in ("max_tokens", "max_completion_tokens"):
        asked.ask(document(), Noting())
        assert limit in recorded[-1]
        assert limit in json.loads(server.bodies()[-1])
    asked.release(Remembering())


def test_joined_messages_are_a_document_a_line() -> None:
    data = document(CORRECTION, CORRECTION)
    with OpenAIServer(quirks=frozenset({"alternating"})) as server:
        asked = provider(server.url)
        failure_of(asked, data)
        ask(asked, data)
        _, user = json.loads(server.bodies()[1])["messages"]
    contents = [message["content"] for message in json.loads(data)["messages"]]
    assert [json.loads(line) for line in user["content"].split("\n")] == contents


def test_a_server_that_refuses_every_form_is_asked_once_for_each(server: OpenAIServer) -> None:
    for words in ("use max_completion_tokens", "roles must alternate", "no schema", "no schema"):
        meets(server, refusal(400, words))
    asked = provider(server.url)
    kinds = [failure_of(asked, document(CORRECTION)).kind for _ in range(4)]
    assert kinds == ["form_refused"] * 3 + ["http_400"]
    assert len(set(server.bodies())) == 4


def test_a_form_that_would_change_nothing_is_no_reason_to_ask_again(server: OpenAIServer) -> None:
    meets(server, refusal(400, "Conversation roles must alternate"))
    failure = failure_of(provider(server.url))  # there is one user message only
    assert (failure.kind, failure.retryable) == ("http_400", False)


def test_only_a_refusal_of_the_request_teaches(server: OpenAIServer) -> None:
    for status in (401, 404, 429, 500, 503):
        meets(server, refusal(status, "response_format json_schema"))
        assert failure_of(provider(server.url)).kind == f"http_{status}"


# Keys and addresses -----------------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_sent_in_its_header_and_returns_nowhere(
    server: OpenAIServer, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    server.keys = (key,)
    asked, sending = provider(server.url), Remembering()
    found: list[object] = []
    actions = (
        Bytes(lambda body: body.replace(b"hypotheses", json.dumps(key)[1:-1].encode())),
        refusal(400, f"bad key {key} in {{Bearer {key}}}"),
        says(500, key.encode()),
        says(200, {"error": key}),
        says(503, b"", x_request_id=key, retry_after=key),
        _Speaks(b"HTTP/1.1 200 Bearer " + key.encode() + b"\x00\r\n\r\n"),
        _Speaks(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + key.encode()),
    )
    for action in actions:
        meets(server, action)
        try:
            found.append(asked.ask(document(), sending))
        except Failure as failure:
            found += [failure.message, failure.partial, failure.args]
    asked.release(sending)
    assert len(server.bodies()) == len(actions)
    assert {exchange.headers["authorization"] for exchange in server.log} == {f"Bearer {key}"}
    told = repr([found, sending.wires, vars(asked), asked.parameters, asked])
    for shape in (key, repr(key)[1:-1], json.dumps(key)[1:-1], repr(json.dumps(key))[2:-2]):
        assert shape not in told


class _Speaks(Action):
    """Bytes of our own instead of a reply, then the end of the connection."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def send(self, wire: Any, answer: Any) -> None:
        wire.write(self.data)
        wire.close()


def test_a_redirect_is_not_followed_and_the_key_stays(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEYS[0])
    with OpenAIServer() as other:
        for status in (301, 302, 303, 307, 308):
            meets(server, Redirect(other.origin, status))
            failure = failure_of(provider(server.url))
            assert (failure.kind, failure.retryable) == (f"http_{status}", False)
            assert "base_url" in failure.message
        assert other.log == []


def test_the_environment_does_not_reroute(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIServer() as other:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, other.origin)
            monkeypatch.setenv(name.lower(), other.origin)
        for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
            monkeypatch.setenv(name, other.url)
        monkeypatch.setenv("OPENAI_ORG_ID", "org-canary")
        monkeypatch.setenv("OPENAI_PROJECT", "project-canary")
        monkeypatch.delenv("NO_PROXY", raising=False)
        ask(provider(server.url))
        assert other.log == []
    assert "canary" not in repr(server.log)


def test_a_netrc_file_adds_no_credential(
    server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login somebody password canary-password\n")
    monkeypatch.setenv("NETRC", str(netrc))
    ask(provider(server.url))
    assert "authorization" not in server.log[0].headers


def test_the_key_comes_from_a_file_before_the_environment(
    server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEYS[1]}\n")
    monkeypatch.setenv("OPENAI_API_KEY", KEYS[0])
    ask(provider(server.url, key_file=str(file)))
    assert server.log[0].headers["authorization"] == f"Bearer {KEYS[1]}"


def test_another_variable_can_hold_the_key(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEYS[0])
    ask(provider(server.url, key_variable="GATEWAY_KEY"))
    assert "authorization" not in server.log[0].headers


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"base_url": "http://models.example/v1"}, "use https"),
        ({"base_url": "http://192.168.1.7:8080/v1"}, "use https"),
        ({"base_url": "ftp://models.example/v1"}, "no http or https"),
        ({"base_url": "https://somebody:secret@models.example/v1"}, "password"),
        ({"base_url": "https://models.example/v1", "model": ""}, "openai_compatible.model"),
        ({"key_file": "/there/is/none"}, "No such file"),
    ],
)
def test_what_cannot_be_set_up_is_said_before_anything_is_sent(
    section: dict[str, str], words: str
) -> None:
    with pytest.raises(ProviderConfigurationError, match=words) as caught:
        provider(**{"url": "http://127.0.0.1:8080/v1", **_renamed(section)})
    assert "secret" not in str(caught.value)


def _renamed(section: dict[str, str]) -> dict[str, str]:
    return {{"base_url": "url"}.get(name, name): value for name, value in section.items()}


# Checks -----------------------------------------------------------------------------------------


def test_a_check_looks_at_address_key_and_model_and_asks_for_no_answer(
    server: OpenAIServer,
) -> None:
    server.models = ("local-model", "llama3.2:latest")
    for model, ok in (("local-model", True), ("llama3.2", True), ("other", False), ("", True)):
        found = provider(server.url, model=model).checks()
        assert [check.what for check in found] == ["endpoint", "key", "model"]
        assert [check.ok for check in found] == [True, True, ok]
    assert server.bodies() == []


def test_a_check_names_what_is_wrong(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEYS[0])
    server.keys = (KEYS[1],)
    checks = provider(server.url).checks()
    assert [(check.what, check.ok) for check in checks] == [("endpoint", True), ("key", False)]
    assert "Incorrect API key" in checks[1].detail
    server.keys = ()
    for action, ok in (("empty_503", False), ("no_such_path", True), ("close", False)):
        server.faults.add(operation="models", action=action)
        (check,) = provider(server.url).checks()
        assert (check.what, check.ok) == ("endpoint", ok)
    server.faults.add(operation="models", action="object_200")
    assert provider(server.url).checks()[-1].detail == "the server lists no models; not checked"
