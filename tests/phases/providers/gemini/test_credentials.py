"""Keys: sent in one header to one address, and found nowhere else, whatever a server repeats.

Every canary key has words that no serialiser escapes, so one that leaks leaves them behind in any
spelling: plain, as JSON, percent-encoded, as HTML, or cut in half.
"""

from __future__ import annotations

import gzip
import html
import json
import logging
import os
import re
import stat
import subprocess
import sys
import threading
import traceback
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from ledger import events as e
from ledger.book import Book
from phases.providers import Failure, ProviderConfigurationError, open_provider
from phases.providers.credentials import (
    REMOVED,
    Key,
    answer_without_key,
    read_key,
    without_key,
)
from phases.providers.gemini import replies
from phases.providers.gemini.provider import Gemini
from phases.providers.transport import Exchanged, check_address
from phases.settings import Gemini as Section
from phases.settings import Settings
from tests.gemini.analyst import Analyst
from tests.gemini.faults import Action, Bytes, Instead, Redirect, Wire
from tests.gemini.guard import only_loopback
from tests.gemini.replies import Answer, Request
from tests.gemini.server import GeminiServer
from tests.phases.providers.gemini.running import key, serving
from tests.phases.providers.gemini.surviving import (
    Sheet,
    document_of,
    impatient,
    opened,
    told,
    understood,
)
from tests.phases.scripting import copied
from tools import cli

__all__ = ["key", "understood"]

WORD = b"KANARI"

KEYS = {
    "ordinary": "AIzaSyKANARI0123-KANARI1_KANARI2abcdef",
    "plus, slash, equals": "KANARI0+KANARI1/KANARI2=KANARI3==",
    "quotes, backslashes": 'KANARI0"KANARI1\\KANARI2\\\\"KANARI3\\',
    "percent": "KANARI0%2FKANARI1%KANARI2%25",
    "as in HTML": "<KANARI0>&KANARI1;'&amp;KANARI2#&#39;",
    "very long": "AIza" + "/KANARI" * 600,
}


@pytest.fixture(params=KEYS)
def canary(request: pytest.FixtureRequest, key: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """Set a key of some shape."""
    text = KEYS[request.param]
    monkeypatch.setenv("GEMINI_API_KEY", text)
    return text


# Spellings --------------------------------------------------------------------------------------


def as_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def as_google(text: str) -> str:
    """Escape as Google's own JSON writers do: what HTML could misread becomes `\\u00XX`."""
    return re.sub("[<>&'=]", lambda found: f"\\u{ord(found[0]):04x}", as_json(text))


def as_entities(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", lambda found: f"&#x{ord(found[0]):X};", text)


SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "JSON": as_json,
    "JSON in JSON": lambda text: as_json(json.dumps(text)),
    "JSON in JSON in JSON": lambda text: as_json(as_json(json.dumps(text))),
    "JSON with slashes escaped": lambda text: as_json(text).replace("/", "\\/"),
    "JSON as Google writes it": as_google,
    "that in JSON": lambda text: as_json(as_google(text)),
    "an address": lambda text: quote(text, safe=""),
    "an address with slashes": lambda text: quote(text),
    "an address in lower case": lambda text: re.sub(
        "%..", lambda found: found[0].lower(), quote(text, safe="")
    ),
    "a form": quote_plus,
    "an address in an address": lambda text: quote(quote(text, safe=""), safe=""),
    "an address in JSON": lambda text: as_json(quote(text)),
    "HTML": html.escape,
    "HTML without quotes": lambda text: html.escape(text, quote=False),
    "HTML in HTML": lambda text: html.escape(html.escape(text)),
    "HTML entities": as_entities,
    "HTML in JSON": lambda text: as_json(html.escape(text)),
    "JSON in HTML": lambda text: html.escape(json.dumps(text)),
    "Python": repr,
    "Python bytes": lambda text: repr(text.encode()),
    "Python bytearray": lambda text: repr(bytearray(text.encode())),
}


@pytest.mark.parametrize("shape", KEYS)
def test_a_key_is_removed_from_every_spelling(shape: str) -> None:
    canary = Key(KEYS[shape])
    for name, spelled in SPELLINGS.items():
        data = f"before {spelled(KEYS[shape])} after {spelled(KEYS[shape])}".encode()
        cleaned = canary.removed_from(data)
        assert WORD not in cleaned, name
        assert cleaned.startswith(b"before ")
        assert b" after " in cleaned
        assert cleaned.count(REMOVED) == 2


PRINTABLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=30)


@given(PRINTABLE, st.sampled_from(sorted(SPELLINGS)), st.text(max_size=9), st.text(max_size=9))
def test_no_key_is_left_in_any_spelling(text: str, name: str, before: str, after: str) -> None:
    spelled = SPELLINGS[name](text)
    cleaned = Key(text).removed(before + spelled + after)
    assert REMOVED.decode() in cleaned
    assert len(cleaned) <= len(before) + len(after) + len(spelled) + len(REMOVED) * (
        1 + len(before + after)
    )


@given(PRINTABLE, st.integers(1, 3))
def test_removing_a_key_leaves_json_readable(text: str, levels: int) -> None:
    written: Any = {"message": text, "kept": "é"}
    for _ in range(levels):
        written = json.dumps(written)
    read: Any = Key(text).removed(written)
    for _ in range(levels):
        read = json.loads(read)
    assert read["kept"] == "é" or text in '{"message":kept}'
    assert read["message"] == REMOVED.decode() or text in '{"message":kept}'


def test_what_is_no_key_is_left_alone() -> None:
    data = b'{"a":"AIza","b":["\\u00e9","%2F","&amp;"]}\xff'
    assert Key("AIzaSyKANARI-0123456789").removed_from(data) == data
    assert Key("").removed_from(data) == data


DUMMIES = ("test", "null", "none", "EMPTY", "ollama", "sk-test", "lm-studio", "not-needed")
"""What servers on this machine are given as keys."""


@pytest.mark.parametrize("text", DUMMIES)
def test_a_word_that_stands_for_a_key_destroys_no_answer(text: str) -> None:
    answer = json.dumps({"file": f"tests/test_{text}.py", text: None}).encode()
    assert answer_without_key(Exchanged(200, {}, answer), Key(text)).body == answer


@pytest.mark.parametrize(
    ("size", "kept_in_answers", "kept_in_errors"),
    [(7, True, True), (8, True, False), (15, True, False), (16, False, False)],
)
def test_a_key_is_removed_from_answers_of_16_characters_on_and_from_errors_of_8(
    size: int, kept_in_answers: bool, kept_in_errors: bool
) -> None:
    text = "AIza-KANARI-01234"[:size]
    body = f"<{text}>".encode()
    key = Key(text)
    assert (answer_without_key(Exchanged(200, {}, body), key).body == body) is kept_in_answers
    error = answer_without_key(Exchanged(503, {"content-type": text}, body), key)
    failed = without_key(Failure("timeout", text, retryable=True, partial=body), key)
    for shown in (error.body, error.headers["content-type"].encode(), failed.partial):
        assert shown is not None
        assert (text.encode() in shown) is kept_in_errors
    assert (text in failed.message) is kept_in_errors


def hostile_bodies(text: str) -> Iterator[bytes]:
    """Yield bodies of some 200 KB that a search which goes back would never come to the end of."""
    starts = (text[:1], text[:4], re.split(r"[^A-Za-z0-9]", text)[0], text[:-1])
    runs = (
        "\\",
        "\\\\",
        "\\\\u005c",
        "\\u005c",
        "%25",
        "%5c",
        "%255c",
        "&amp;",
        "&#92;",
        "&amp;#0092;",
    )
    for start in starts:
        yield (start * (200_000 // max(len(start), 1))).encode()
        for run in runs:
            yield (start + run * (200_000 // len(run))).encode()


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-0123456789abcdefghijklmnop",
        "risk-\\-KANARI-0123456789",
        "a%%%%%%%%%%%%%%%%b%25%25%25%25%25%25",
        "&&&&&&&&&&&&&&&&&&&&&&&&",
        "\\" * 16,
        "-" * 64,
        *KEYS.values(),
    ],
    ids=lambda text: text[:12],
)
def test_no_body_makes_the_search_for_a_key_long(text: str) -> None:
    key = Key(text)
    for body in hostile_bodies(text):
        assert len(key.removed_from(body)) <= len(body) + len(REMOVED)
        found = key.removed_from(body + b" " + text.encode() + b" ")
        assert found.endswith((b" " + REMOVED + b" ", REMOVED + b" "))


def test_the_longest_key_can_still_be_looked_for() -> None:
    for text in ("&'\"<>\\" * 1_365, "\\" * 8_192, "sk-proj-" + "a" * 8_184):
        assert Key(text).removed_from(b"(" + text.encode() + b")") == b"(" + REMOVED + b")"


@pytest.mark.parametrize("size", [4, 5, 20, 37])
def test_the_beginning_of_a_key_at_the_end_of_a_broken_answer_is_removed(size: int) -> None:
    text = KEYS["ordinary"]
    cleaned = Key(text).removed_from(b"{" + text.encode() + b" " + text[:size].encode())
    assert cleaned == b"{" + REMOVED + b" " + REMOVED
    assert Key(text).removed_from(b"{ AIz") == b"{ AIz"


def test_a_key_is_not_part_of_what_holds_it() -> None:
    text = KEYS["ordinary"]
    asked = Gemini(Section(), Key(text))
    assert WORD.decode() not in repr([asked, vars(asked), vars(asked._client), Key(text)])
    assert (bool(Key(text)), bool(Key("")), Key(text).reveal()) == (True, False, text)


# Whole runs against a server that repeats the key everywhere ------------------------------------


class Says(Action):
    """Bytes of our own in place of a reply, then the end of the connection."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def send(self, wire: Wire, answer: Answer) -> None:
        wire.write(self.data)
        wire.close()


def everywhere(text: str) -> list[Action]:
    """Return answers that repeat a key: in errors, in headers, compressed, broken, in no HTTP."""
    said = json.dumps({"error": {"message": f"key {text}, ?key={quote(text)}", "status": text}})
    details = [{"reason": text, "metadata": {"key": [text, as_json(text)]}}]
    head = "HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n"
    squeezer = zlib.compressobj(wbits=31)
    packed = squeezer.compress(said.encode()) + squeezer.flush(zlib.Z_SYNC_FLUSH)
    half = text[: len(text) // 2 + 3].encode()
    return [
        Instead(503, said.encode()),
        Instead(503, as_google(said).encode()),
        Instead(500, json.dumps({"error": {"message": "no", "details": details}}).encode()),
        Instead(
            502, f"<p>{html.escape(text)}</p><a href='?k={quote(text)}'>".encode(), "text/html"
        ),
        Instead(502, f"{'x' * 1_980}{text}".encode(), "text/html"),
        Instead(502, b"", headers={"Retry-After": text, "X-Request-Id": text}),
        Instead(200, said.encode(), f"text/html; key={text}"),
        Instead(200, b"key=" + half),
        Says(f"HTTP/1.1 200 {text}\x00\r\n\r\n".encode()),
        Says(f"HTTP/1.1 200 OK\r\n{text}\r\n\r\n".encode()),
        Says(text.encode() + b"\r\n\r\n"),
        Says(f"{head}\r\n{said}".encode()),
        Says(f"{head}\r\n{{".encode() + half),
        Says(f"{head}Content-Encoding: gzip\r\n\r\n".encode() + packed),
        Bytes(lambda body: packed + b"oops", "gzip"),
        Bytes(lambda body: gzip.compress(said.encode())[:-6] + b"oops!!", "gzip"),
        Bytes(lambda body: said.encode(), "br"),
    ]


class Parrot(Analyst):
    """The offline analyst, repeating the key in its answers; it looks at the case's files too."""

    def __init__(self, text: str, folder: Path) -> None:
        super().__init__()
        self._text, self._folder = text, folder
        self.looks: list[str] = []

    def __call__(self, request: Request) -> str:
        for path in self._folder.rglob("small.case*"):
            self.looks.append(path.name)
            assert WORD not in path.read_bytes()
        answer = json.loads(super().__call__(request))
        for name in ("summary", "cause", "symptom", "title"):
            if isinstance(answer.get(name), str):
                answer[name] += f" (key {self._text})"
        for item in answer.get("assessments", ()):
            item["notes"] = f"asked with {self._text}"
        return json.dumps(answer)


def repeats(server: GeminiServer, text: str) -> None:
    """Let the server repeat the key in everything that it answers."""
    written = as_json(text).encode()

    def signed(body: bytes) -> bytes:
        return body.replace(b"{", b'{"echo": "' + written + b'",', 1)

    for action in everywhere(text):
        server.faults.add(operation="generate", action=action)
    server.faults.add(operation="create", action=Instead(503, json.dumps([text]).encode()))
    for operation in ("create", "list", "delete", "generate"):
        server.faults.add(operation=operation, action=Bytes(signed), times=None)


@pytest.fixture(scope="module")
def command() -> Any:
    """Return the command line, read once: typer reads every signature again for each call."""
    return typer.main.get_command(cli.app)


@pytest.fixture
def desk(scratch: Path, understood: Path, monkeypatch: pytest.MonkeyPatch, command: Any) -> Path:
    """Stand in a folder with a case before its investigation, nothing of this machine around."""
    for variable in [name for name in os.environ if name.startswith("CASELEDGER_")]:
        monkeypatch.delenv(variable)
    copied(understood, scratch / "small.case")
    monkeypatch.chdir(scratch)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(scratch / "config"))
    monkeypatch.setattr("phases.asking.FIRST_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(cli, "app", command)
    return scratch


def configure(desk: Path, server: GeminiServer, **gemini: Any) -> None:
    values = {"base_url": server.url, "model": "gemini-3.8-flash", **gemini}
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    (desk / "caseledger.toml").write_text(
        'providers = ["gemini"]\n[run]\nattempts = 20\n[gemini]\n' + "\n".join(lines)
    )


def events(desk: Path) -> list[e.Event]:
    with Book.open(desk / "small.case") as book:
        return [event for _, event in book.events()]


def test_a_key_that_a_server_repeats_everywhere_is_nowhere(
    canary: str, desk: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    parrot = Parrot(canary, desk)
    with serving(parrot, keys=(canary,)) as server:
        repeats(server, canary)
        configure(desk, server)
        most = str(len(everywhere(canary)) + 3)
        assert cli.run(["run", "small.case", "--max-requests", most]) == 0
        assert cli.run(["log", "small.case", "--json"]) == 0
        assert cli.run(["export", "small.case", "-o", "small.zip", "--with-requests"]) == 0
    printed = capfd.readouterr()
    assert WORD.decode() not in printed.out + printed.err + caplog.text
    assert {"small.case", "small.case-wal", "small.case.head"} <= set(parrot.looks)
    assert {x.headers["x-goog-api-key"] for x in server.log} == {canary}
    assert [path for path in desk.rglob("*") if holds_the_key(path)] == []
    with Book.open(desk / "small.case") as book:
        stored = [book.payload(digest) for digest, _ in book.stored_payloads()]
    assert not any(WORD in data for data in stored)
    failures = [told(event) for event in events(desk) if isinstance(event, e.RequestFailed)]
    assert len(failures) == len(everywhere(canary))
    assert sum(REMOVED in data for data in stored) > len(failures) / 2


COMMANDS = (
    "status small.case",
    "report small.case",
    "log small.case",
    "cache ls small.case",
    "cache why small.case",
    "saw small.case R4 --wire",
    "saw small.case R4 --wire --at-attempt 1",
    "replay small.case --check",
    "verify small.case",
    "config",
    "doctor --provider gemini",
    "export small.case -o small.zip --with-requests --with-report --force",
    "tables small.case -o small.db --force",
    "view small.case -o small.html --no-browser --force",
)


def test_no_command_prints_or_writes_a_key(
    desk: Path, key: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    canary = KEYS["as in HTML"]
    monkeypatch.setenv("GEMINI_API_KEY", canary)
    with serving(Parrot(canary, desk), keys=(canary,)) as server:
        repeats(server, canary)
        configure(desk, server)
        assert cli.run(["run", "small.case", "--json"]) == 0
        for command in COMMANDS:
            assert cli.run(command.split()) == 0, command
            assert cli.run([*command.split(), "--json"]) == 0, command
        for position, event in enumerate(events(desk), 1):
            if isinstance(event, e.RequestFailed | e.CacheCreateFailed | e.CacheCreated):
                assert cli.run(["show", "small.case", str(position)]) == 0
                assert cli.run(["show", "small.case", str(position), "--json"]) == 0
    printed = capfd.readouterr()
    assert "[credential removed]" in printed.out
    assert WORD.decode() not in printed.out + printed.err
    assert {"small.zip", "small.db", "small.html"} <= {path.name for path in desk.iterdir()}
    assert [path for path in desk.rglob("*") if holds_the_key(path)] == []


def holds_the_key(path: Path) -> bool:
    if not path.is_file():
        return False
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            return any(WORD in archive.read(name) for name in archive.namelist())
    return WORD in path.read_bytes()


def test_a_refusal_that_repeats_the_key_is_told_without_it(
    canary: str, desk: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    refusal = json.dumps({"error": {"message": f"API key {canary} not valid"}}).encode()
    with serving(keys=("the-key-of-another",)) as server:
        server.faults.add(action=Instead(400, refusal), times=None)
        configure(desk, server)
        for more in ([], ["--json"]):
            assert cli.run(["run", "small.case", *more]) == 4
            assert cli.run(["doctor", "--provider", "gemini", *more]) == 1
    printed = capfd.readouterr()
    assert "API key [credential removed] not valid" in printed.out
    assert "API key [credential removed] not valid" in printed.err
    assert WORD.decode() not in printed.out + printed.err


PROGRAM = (sys.executable, "-P", "-c", "from tools.cli import main; main()")


def test_a_process_of_its_own_tells_nothing_either(
    desk: Path, key: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = KEYS["quotes, backslashes"]
    monkeypatch.setenv("GEMINI_API_KEY", canary)
    monkeypatch.setenv("GOOGLE_API_KEY", canary)  # the client library would warn of it
    refusal = json.dumps({"error": {"message": f"API key {canary} not valid"}}).encode()
    with serving(keys=("the-key-of-another",)) as server:
        server.faults.add(action=Instead(400, refusal), times=None)
        configure(desk, server)
        ended = subprocess.run(
            [*PROGRAM, "run", "small.case"],
            capture_output=True,
            timeout=60,
        )
    assert ended.returncode == 4
    assert b"[credential removed]" in ended.stderr
    assert WORD not in ended.stdout + ended.stderr
    assert ended.stderr.count(b"\n") == 2  # the phase, and why it ended


def test_a_defect_of_ours_does_not_print_the_key(
    desk: Path, key: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise RuntimeError("a defect")

    canary = KEYS["quotes, backslashes"]
    monkeypatch.setenv("GEMINI_API_KEY", canary)
    with serving(Parrot(canary, desk), keys=(canary,)) as server:
        configure(desk, server)
        for place in ("has_answer", "read"):
            with monkeypatch.context() as patch:
                patch.setattr(replies, place, broken)
                with pytest.raises(RuntimeError, match="a defect") as caught:
                    cli.run(["run", "small.case"])
            text = "".join(traceback.format_exception(caught.value))
            assert "a defect" in text
            assert WORD.decode() not in text


def test_a_failure_holds_the_key_nowhere(canary: str, server_of: Callable[..., Any]) -> None:
    server, asked = server_of(canary)
    for action in everywhere(canary):
        server.faults.add(operation="generate", action=action)
        try:
            received = asked.ask(document_of("hypotheses_v3"), Sheet())
            assert WORD not in received.body + repr(received).encode()
        except Failure as failure:
            shown = [failure.args, vars(failure), traceback.format_exception(failure)]
            assert WORD.decode() not in repr(shown)


@pytest.fixture
def server_of(key: None) -> Iterator[Callable[[str], tuple[GeminiServer, Gemini]]]:
    """Return what makes a server for a key, and a provider that asks it."""
    with ExitStack() as stack:

        def made(text: str, **section: Any) -> tuple[GeminiServer, Gemini]:
            server = stack.enter_context(GeminiServer(keys=(text,)))
            server.responder = lambda request: "{}"
            values = {"base_url": server.url, "cache_mode": "off", **section}
            return server, Gemini(Section().model_copy(update=values), Key(text))

        stack.enter_context(only_loopback())
        yield made


# Where a key goes -------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [302, 307, 308])
@pytest.mark.parametrize("operation", ["generate", "create", "list", "delete", "models"])
def test_a_redirect_is_not_followed(
    server_of: Callable[..., Any], understood: Path, operation: str, status: int
) -> None:
    server, _ = server_of("AIza-canary")
    other, _ = server_of("AIza-canary")
    for where in (other.url, server.url + "/elsewhere"):
        server.faults.clear()
        server.faults.add(operation=operation, action=Redirect(where, status), times=None)
        if operation == "list":
            server.faults.add(operation="create", action="close")
        use_everything(impatient(server))
    assert other.log == []
    assert all(x.path.startswith("/v1beta/") for x in server.log)
    assert server.count(operation) >= 2


def use_everything(asked: Gemini) -> None:
    sheet = Sheet()
    view = dict.fromkeys(("sources", "interpretation", "policy", "tools", "catalogs"))
    content = {
        "case": {"text": "carts " * 9_000},
        **view,
        "evidence": [],
        "budget": {"left": {"requests": 20}},
        "shared": {},
    }
    with suppress(Failure):
        asked.ask(document_of("investigation_project_v11", content), sheet)
    asked.checks()
    asked.release(sheet)


VARIABLES = {
    "GOOGLE_GENAI_USE_VERTEXAI": "true",
    "GOOGLE_GENAI_USE_ENTERPRISE": "true",
    "GOOGLE_CLOUD_PROJECT": "somebody-elses",
    "GOOGLE_CLOUD_LOCATION": "europe-west4",
    "GOOGLE_GEMINI_BASE_URL": "OTHER",
    "GOOGLE_VERTEX_BASE_URL": "OTHER",
    "GOOGLE_GENAI_API_VERSION": "v1",
    "GOOGLE_API_KEY": "another-key",
    "HTTP_PROXY": "OTHER",
    "HTTPS_PROXY": "OTHER",
    "ALL_PROXY": "OTHER",
    "http_proxy": "OTHER",
    "https_proxy": "OTHER",
    "all_proxy": "OTHER",
}


@pytest.mark.parametrize("names", [*([name] for name in VARIABLES), list(VARIABLES)], ids=" ".join)
def test_the_environment_of_the_client_library_changes_nothing(
    server_of: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    names: list[str],
) -> None:
    other, _ = server_of("AIza-canary")
    server, asked = server_of("AIza-canary", cache_mode="auto")
    for name in names:
        value = VARIABLES[name]
        monkeypatch.setenv(name, other.url if value == "OTHER" else value)
    monkeypatch.setenv("NO_PROXY", "")
    use_everything(asked)
    assert other.log == []
    assert [x.operation for x in server.log] == ["create", "generate", "models", "delete"]
    assert {x.path.split("/")[1] for x in server.log} == {"v1beta"}
    assert {x.headers["x-goog-api-key"] for x in server.log} == {"AIza-canary"}
    assert not any("authorization" in x.headers for x in server.log)
    assert [r.message for r in caplog.records if r.levelno >= logging.WARNING] == []


GOOD = {
    "https://generativelanguage.googleapis.com": "https://generativelanguage.googleapis.com",
    "https://gateway.example/gemini/": "https://gateway.example/gemini",
    "http://127.0.0.1:8080": "http://127.0.0.1:8080",
    "http://127.9.9.9": "http://127.9.9.9",
    "http://localhost:8080/": "http://localhost:8080",
    "http://[::1]:8080": "http://[::1]:8080",
    "https://gateway.example./v1": "https://gateway.example./v1",
    f"https://{'a' * 63}.example": f"https://{'a' * 63}.example",
    "https://gateway.example/@team/v1": "https://gateway.example/@team/v1",
}


@pytest.mark.parametrize("url", GOOD)
def test_an_address_that_keeps_a_key_is_taken(url: str) -> None:
    assert check_address(url, "gemini.base_url") == GOOD[url]


@pytest.mark.parametrize(
    "url",
    [
        "http://generativelanguage.googleapis.com",
        "HTTP://generativelanguage.googleapis.com",
        "http://localhost.example",
        "http://127.0.0.1.example",
        "http://127.0.0.1@gateway.example",
        "http://0.0.0.0:8080",
        "http://10.0.0.1",
        "http://[fe80::1]",
        "http://2130706433.example",
        "ftp://gateway.example",
        "file:///etc/passwd",
        "//gateway.example",
        "gateway.example",
        "https://",
        "",
        "https://me:KANARI@gateway.example",
        "https://KANARI@gateway.example",
        "https://gateway.example/?key=KANARI",
        "https://gateway.example/#KANARI",
        "https://me:KANARI\u00e9@gateway.example",
        "https://me:KANARI @gateway.example",
        "https://me: KANARI\t@gateway.example",
        "https://me:KANARI\n@gateway.example",
        "https://me:KANARI[@gateway.example",
        "https://me:KANARI/@gateway.example",
        "https://me:KANARI?@gateway.example",
        "https://me:KANARI#@gateway.example",
        "https://me:KANARI\\@gateway.example",
        "https://me:KANARI\uff20gateway.example",
        "https:me:KANARI@gateway.example",
        "https://me:KANARI@gateway.example:99999",
        "ftp://me:KANARI@gateway.example",
        "//me:KANARI@gateway.example",
        "https://@gateway.example",
        "https://gateway.example:99999/?key=KANARI",
        "https://gateway.example\u00e9/?key=KANARI",
        "https://gateway..example",
        "https://.gateway.example",
        "https://.",
        f"https://{'a' * 64}.example",
        f"https://gateway.{'a' * 64}",
    ],
)
def test_an_address_that_would_show_a_key_is_refused(url: str) -> None:
    with pytest.raises(ProviderConfigurationError, match=r"^gemini\.base_url") as caught:
        check_address(url, "gemini.base_url")
    assert "KANARI" not in str(caught.value)
    settings = Settings.model_validate({"gemini": {"base_url": url}})
    with pytest.raises(ProviderConfigurationError):
        open_provider("gemini", settings)


# Where a key comes from -------------------------------------------------------------------------


def test_a_key_is_read_from_its_file_before_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GEMINI_API_KEY", "of-the-variable")
    (tmp_path / "gemini.key").write_text(" of-the-file \n\n")
    assert read_key("GEMINI_API_KEY", "~/gemini.key", "gemini").reveal() == "of-the-file"
    assert read_key("GEMINI_API_KEY", "", "gemini").reveal() == "of-the-variable"


def test_no_key_says_where_to_put_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "  ")
    with pytest.raises(ProviderConfigurationError, match=r"GEMINI_API_KEY, or .*gemini\.key_file"):
        read_key("GEMINI_API_KEY", "", "gemini")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(ProviderConfigurationError, match="no key"):
        read_key("GEMINI_API_KEY", str(tmp_path / "empty"), "gemini")
    assert not read_key("GEMINI_API_KEY", "", "gemini", needed=False)


@pytest.mark.parametrize(
    "text",
    ["KANARI KANARI", "KANARI\nKANARI", "KANARI\t1", "KANARIé", "KANARI\x07", "\u200bKANARI"],
)
def test_a_text_that_is_no_key_is_refused_and_not_shown(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", text)
    (tmp_path / "key").write_text(text)
    for file in ("", str(tmp_path / "key")):
        with pytest.raises(ProviderConfigurationError, match="is no key") as caught:
            read_key("GEMINI_API_KEY", file, "gemini")
        assert "KANARI" not in str(caught.value)


def test_a_text_that_no_header_could_hold_is_no_key(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k" * 8_192)
    assert len(read_key("", str(tmp_path / "key"), "gemini").reveal()) == 8_192
    (tmp_path / "key").write_text("k" * 8_193)
    with pytest.raises(ProviderConfigurationError, match="longer than 8192 characters"):
        read_key("", str(tmp_path / "key"), "gemini")


def test_a_key_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name, why in (("missing", "No such file"), ("binary", "is not text"), (".", "directory")):
        with pytest.raises(ProviderConfigurationError, match=why) as caught:
            read_key("GEMINI_API_KEY", str(tmp_path / name), "gemini")
        assert str(tmp_path) in str(caught.value)


# Fingerprints -----------------------------------------------------------------------------------


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of this installation's state; it does not exist yet."""
    folder = tmp_path / "deep/state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


def test_a_fingerprint_tells_keys_apart_and_shows_none(state: Path) -> None:
    prints = {text: Key(text).fingerprint() for text in [*KEYS.values(), "AIza", "AIzb", "AIzaa"]}
    assert len(set(prints.values())) == len(prints)
    for text, shown in prints.items():
        assert Key(text).fingerprint() == shown
        assert re.fullmatch("[0-9a-f]{16}", shown)
        assert shown not in text
    assert Key("").fingerprint() == ""


def test_another_installation_has_other_fingerprints(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Key("AIza-canary").fingerprint()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert Key("AIza-canary").fingerprint() != here


def test_the_salt_is_made_once_and_read_by_its_owner_only(state: Path) -> None:
    before = os.umask(0)
    try:
        Key("AIza-canary").fingerprint()
    finally:
        os.umask(before)
    salt = state / "caseledger/salt"
    assert stat.S_IMODE(salt.stat().st_mode) == 0o600
    data = salt.read_bytes()
    assert len(data) == 32
    Key("AIza-other").fingerprint()
    assert salt.read_bytes() == data
    assert [path.name for path in salt.parent.iterdir()] == ["salt"]


def test_processes_that_make_the_salt_at_once_agree(state: Path) -> None:
    start, prints = threading.Barrier(16), []

    def work() -> None:
        start.wait(10)
        prints.append(Key("AIza-canary").fingerprint())

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(prints) == 16
    assert len(set(prints)) == 1
    assert [path.name for path in (state / "caseledger").iterdir()] == ["salt"]


def test_a_salt_that_is_none_is_not_used(state: Path) -> None:
    (state / "caseledger").mkdir(parents=True)
    (state / "caseledger/salt").write_bytes(b"")
    with pytest.raises(ProviderConfigurationError, match="is no salt"):
        Key("AIza-canary").fingerprint()


def test_a_salt_that_cannot_be_kept_is_a_mistake_in_the_setup(state: Path) -> None:
    state.parent.mkdir(parents=True)
    state.write_text("a file stands here")
    with pytest.raises(ProviderConfigurationError, match="cannot be kept"):
        Key("AIza-canary").fingerprint()


def test_a_ledger_holds_the_fingerprint_and_another_key_another_cache(
    understood: Path, scratch: Path, key: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(copied(understood, scratch / "small.case")) as trial:
        trial.go(requests=1)
        monkeypatch.setenv("GEMINI_API_KEY", trial.server.other_key)
        trial.go(requests=1)
        decided = trial.all(e.CacheDecided)
        prints = [d.basis["key_of"]["credential"] for d in decided]
        assert prints == [
            Key(trial.server.key).fingerprint(),
            Key(trial.server.other_key).fingerprint(),
        ]
        assert decided[0].key != decided[1].key
        assert decided[0].content_id == decided[1].content_id
        for text in trial.server.keys:
            assert text.encode() not in (scratch / "small.case").read_bytes()
