"""One exchange through the real client: its deadline, its bytes, and what is recorded before."""

from __future__ import annotations

import bz2
import gzip
import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from ledger import canonical
from ledger import events as e
from phases.providers import Failure, Received, transport
from phases.providers.credentials import Key
from phases.providers.gemini.provider import Gemini
from phases.settings import Gemini as Section
from tests.gemini.faults import Action, Bytes, Cut, Delay, Drip, Instead, Silent, Wire, api_error
from tests.gemini.replies import Answer
from tests.gemini.server import KEYS, GeminiServer
from tests.phases.providers.gemini.running import key, serving
from tests.phases.providers.gemini.surviving import Sheet, all_closed, document_of, nobody

__all__ = ["key"]

DOCUMENT = document_of("hypotheses_v3")
SOON = 0.3
"""Seconds of the deadlines here."""

MUCH_LATER = 3.0
"""Seconds by which they are over on a loaded machine too; what they end would take longer."""


def provider(url: str, **section: Any) -> Gemini:
    values = {"base_url": url, "timeout_seconds": 20, "cache_mode": "off", **section}
    return Gemini(Section().model_copy(update=values), Key(KEYS[0]))


@pytest.fixture
def server(key: None) -> Iterator[GeminiServer]:
    """Return a server that has the same answer for everybody."""
    with serving() as running:
        running.responder = lambda request: "{}"
        yield running


@pytest.fixture
def asked(server: GeminiServer) -> Gemini:
    return provider(server.url)


def failure_of(asked: Gemini, sheet: Sheet | None = None, document: bytes = DOCUMENT) -> Failure:
    with pytest.raises(Failure) as caught:
        asked.ask(document, sheet or Sheet())
    return caught.value


class Says(Action):
    """Bytes of our own in place of a reply, in pieces, with a pause after each; then silence."""

    def __init__(self, *pieces: bytes, every: float = 0.0, hangs: bool = False) -> None:
        self.pieces, self.every, self.hangs = pieces, every, hangs

    def send(self, wire: Wire, answer: Answer) -> None:
        for piece in self.pieces:
            wire.write(piece)
            wire.sleep(self.every)
        (wire.wait_for_client if self.hangs else wire.close)()


class Flood(Action):
    """Interim responses without a pause and without an end: no read ever has to wait."""

    def send(self, wire: Wire, answer: Answer) -> None:
        while True:
            wire.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 50)


# The deadline -----------------------------------------------------------------------------------

ENDLESS: dict[str, Action] = {
    "silence": Delay(60),
    "hang": Silent("hang"),
    "a stall within the head": Says(b"HTTP/1.1 200 OK\r\nContent-Le", hangs=True),
    "a head that drips": Says(b"HTTP/1.1 200 OK\r\n", *[b"X: y\r\n"] * 600, every=0.1),
    "a stall within the body": Cut(how="hang"),
    "a body that drips": Drip(size=1, every=0.1),
    "a body that drips fast": Drip(size=1, every=0.0),
    "a chunk that never ends": Says(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{", hangs=True
    ),
    "interim responses": Flood(),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_an_attempt_ends_with_its_total_deadline(server: GeminiServer, name: str) -> None:
    server.responder = lambda request: "{}" + " " * 200_000 * ("fast" in name)
    server.faults.add(operation="generate", action=ENDLESS[name])
    started = time.monotonic()
    failure = failure_of(provider(server.url, timeout_seconds=SOON))
    assert time.monotonic() - started < MUCH_LATER
    assert (failure.kind, failure.retryable, failure.status) == ("timeout", True, None)
    assert "within the deadline" in failure.message


@contextmanager
def listening(serve: Callable[[socket.socket], object]) -> Iterator[str]:
    """Yield the address of a socket of ours; `serve` gets its first connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            connection, _ = listener.accept()
            with connection:
                serve(connection)

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(10)


@pytest.mark.parametrize("pause", [None, 0.05], ids=["not at all", "slowly"])
def test_a_server_that_does_not_take_the_request_is_left_at_the_deadline(
    pause: float | None,
) -> None:
    done = threading.Event()

    def take(connection: socket.socket) -> None:
        while not done.wait(pause) and pause and connection.recv(8_192):
            pass

    document = canonical.from_bytes(DOCUMENT)
    document["messages"][0]["content"] = {"text": "x" * 20_000_000}
    with listening(take) as url:
        asked = provider(url, timeout_seconds=0.6)
        started = time.monotonic()
        failure = failure_of(asked, document=canonical.to_bytes(document))
        assert time.monotonic() - started < MUCH_LATER
        done.set()
    assert failure.kind == "timeout"


def test_each_attempt_has_a_deadline_of_its_own(
    asked: Gemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic
    for hours in (0, 1, 2):
        clock = SimpleNamespace(monotonic=lambda late=hours * 3_600: now() + late)
        monkeypatch.setattr(transport, "time", clock)
        assert asked.ask(DOCUMENT, Sheet()).status == 200


def test_loading_the_client_library_is_not_on_the_servers_time(
    server: GeminiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = provider(server.url, timeout_seconds=1)
    expect = asked._client.line.expect
    made: list[bool] = []

    def noting(*arguments: Any) -> None:
        made.append("_genai" in vars(asked._client))
        expect(*arguments)

    monkeypatch.setattr(asked._client.line, "expect", noting)
    asked.ask(DOCUMENT, Sheet())
    assert made == [True]


# What comes back --------------------------------------------------------------------------------

FAILURES: dict[str, tuple[Action | str, str, bool]] = {
    "html 502": ("html_502", "http_502", True),
    "empty 503": ("empty_503", "http_503", True),
    "overloaded": ("unavailable", "http_503", True),
    "408": (api_error(408), "http_408", True),
    "504": (api_error(504), "http_504", True),
    "no such path": ("no_such_path", "http_404", False),
    "forbidden": (api_error(403, "no"), "http_403", False),
    "204": (Instead(204), "http_204", False),
    "empty 200": ("empty_200", "no_answer", True),
    "object 200": ("object_200", "no_answer", True),
    "null 200": ("null_200", "no_answer", True),
    "list 200": ("list_200", "no_answer", True),
    "error 200": ("error_200", "no_answer", True),
    "html 200": ("html_200", "no_answer", True),
    "closed": ("close", "disconnected", True),
    "closed after it was handled": ("commit_then_drop", "disconnected", True),
    "reset": ("reset", "reset", True),
    "reset after it was handled": ("commit_then_reset", "reset", True),
    "no http": ("garbage", "disconnected", True),
    "closed mid body": ("close_mid_body", "disconnected", True),
    "reset mid body": ("reset_mid_body", "reset", True),
    "closed mid chunk": ("cut_chunk", "disconnected", True),
    "bad gzip": ("bad_gzip", "undecodable", True),
    "an endless head": (Says(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 500_000), "disconnected", True),
    "two lengths": (
        Says(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}"),
        "disconnected",
        True,
    ),
    "another encoding": (Bytes(lambda body: body, "br"), "undecodable", True),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_has_its_kind_and_says_whether_it_may_pass(
    server: GeminiServer, asked: Gemini, name: str
) -> None:
    action, kind, retryable = FAILURES[name]
    server.faults.add(operation="generate", action=action)
    failure = failure_of(asked)
    assert (failure.kind, failure.retryable) == (kind, retryable)
    assert failure.message == " ".join(failure.message.split())
    assert 0 < len(failure.message) <= 600
    assert asked.ask(DOCUMENT, Sheet()).status == 200  # the next exchange knows nothing of it


def test_an_answer_without_a_length_may_be_cut_and_is_kept_for_the_reader(
    server: GeminiServer, asked: Gemini
) -> None:
    server.faults.add(operation="generate", action=Cut(after_bytes=60, framing="close"))
    received = asked.ask(DOCUMENT, Sheet())
    assert asked.read(received.body).finish == "malformed"


@pytest.mark.parametrize("edit", ["truncated_json", "duplicate_keys", "wrong_types", "bad_utf8"])
def test_an_answer_that_cannot_be_read_is_kept_as_it_came(
    server: GeminiServer, asked: Gemini, edit: str
) -> None:
    server.faults.add(operation="generate", action=edit)
    received = asked.ask(DOCUMENT, Sheet())
    (exchange,) = server.exchanges("generate")
    assert received.body == exchange.reply
    assert (received.complete, received.status) == (True, 200)
    assert asked.read(received.body).finish == "malformed"


def test_what_arrived_before_a_failure_is_kept(server: GeminiServer, asked: Gemini) -> None:
    for action in (Cut(after_bytes=20), Cut(after_bytes=20, how="reset")):
        server.faults.add(operation="generate", action=action)
        partial = failure_of(asked).partial
        assert partial == server.exchanges("generate")[-1].reply[:20]
    server.faults.add(operation="generate", action=Silent("close"))
    assert failure_of(asked).partial is None


def test_nobody_listening_is_a_failure_that_may_pass(key: None) -> None:
    url, sheet = nobody(), Sheet()
    failure = failure_of(provider(url), sheet)
    assert (failure.kind, failure.retryable, failure.status) == ("connect", True, None)
    assert len(sheet.sent) == 1  # it was recorded, and then could not leave


@pytest.mark.parametrize("host", ["api..example.com", "a" * 64 + ".example", ".example"])
def test_a_host_that_is_no_name_is_a_failure_that_will_not_pass(key: None, host: str) -> None:
    sheet, asked = Sheet(), provider(f"https://{host}/v1")
    failure = failure_of(asked, sheet)
    assert (failure.kind, failure.retryable, failure.status) == ("connect", False, None)
    assert len(sheet.sent) == 1
    (check,) = asked.checks()
    assert (check.what, check.ok) == ("endpoint", False)
    assert "no connection" in check.detail


def test_a_creation_that_found_nobody_failed_and_is_no_unknown_one(key: None) -> None:
    sheet = Sheet()
    failure = failure_of(provider(nobody(), cache_mode="auto"), sheet, investigation())
    assert failure.kind == "connect"
    assert sheet.story() == [
        "decided explicit: create",
        "create",
        "not created: connect",
        "decided implicit: rejected_before",
    ]


def test_a_connection_is_used_again(server: GeminiServer, asked: Gemini) -> None:
    ports = Ports(server)
    for _ in range(3):
        asked.ask(DOCUMENT, Sheet())
    assert len(ports.seen) == 1


def test_a_connection_that_the_server_closed_is_not_used_again(
    server: GeminiServer, asked: Gemini
) -> None:
    server.faults.add(operation="generate", action="close_after_reply", times=None)
    for _ in range(3):
        assert asked.ask(DOCUMENT, Sheet()).status == 200
        all_closed(server)
    assert server.count("generate") == 3


class Ports:
    """The connections that a server accepts from now on."""

    def __init__(self, server: GeminiServer) -> None:
        self.seen: list[Any] = []
        accept = server._listener.get_request

        def noting() -> Any:
            accepted = accept()
            self.seen.append(accepted[1])
            return accepted

        server._listener.get_request = noting  # type: ignore[method-assign]


# Compression ------------------------------------------------------------------------------------

ENCODED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "GZIP": gzip.compress,
    "deflate": zlib.compress,
    "identity": bytes,
}


@pytest.mark.parametrize("encoding", ENCODED)
def test_compression_is_undone(server: GeminiServer, asked: Gemini, encoding: str) -> None:
    server.responder = lambda request: json.dumps({"text": "é" * 5_000})
    server.faults.add(operation="generate", action=Bytes(ENCODED[encoding], encoding))
    received = asked.ask(DOCUMENT, Sheet())
    assert asked.read(received.body).text == json.dumps({"text": "é" * 5_000})


def test_an_empty_body_needs_no_compression(server: GeminiServer, asked: Gemini) -> None:
    empty = Instead(503, b"", headers={"Content-Encoding": "gzip"})
    server.faults.add(operation="generate", action=empty)
    assert failure_of(asked).kind == "http_503"


DAMAGED: dict[str, Callable[[bytes], bytes]] = {
    "half": lambda body: gzip.compress(body)[: len(gzip.compress(body)) * 3 // 4],
    "without its end": lambda body: gzip.compress(body)[:-8],
    "with a wrong sum": lambda body: gzip.compress(body)[:-8] + bytes(8),
    "with a hole": lambda body: gzip.compress(body)[:2_000] + bytes(500),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_compression_is_a_failure_with_what_could_be_read(
    server: GeminiServer, asked: Gemini, name: str
) -> None:
    noise = "".join(f"{n * n % 8_191:x}" for n in range(6_000))
    server.responder = lambda request: noise
    server.faults.add(operation="generate", action=Bytes(DAMAGED[name], "gzip"))
    failure = failure_of(asked)
    assert (failure.kind, failure.retryable) == ("undecodable", True)
    assert failure.partial
    assert noise[:500].encode() in failure.partial


def test_compressed_bytes_are_kept_opened_when_the_connection_breaks(
    server: GeminiServer, asked: Gemini
) -> None:
    noise = "".join(f"{n * n % 8_191:x}" for n in range(6_000))
    whole = gzip.compress(noise.encode())
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 99999\r\n\r\n"
    server.faults.add(operation="generate", action=Says(head + whole[: len(whole) // 2]))
    failure = failure_of(asked)
    assert failure.kind == "disconnected"
    assert failure.partial
    assert noise.encode().startswith(failure.partial)


def raw_deflate(body: bytes) -> bytes:
    squeezer = zlib.compressobj(wbits=-15)
    return squeezer.compress(body) + squeezer.flush()


def small_window(body: bytes) -> bytes:
    squeezer = zlib.compressobj(wbits=12)
    return squeezer.compress(body) + squeezer.flush()


@pytest.mark.parametrize("bits", range(9, 16))
def test_every_window_of_zlib_is_undone(server: GeminiServer, asked: Gemini, bits: int) -> None:
    def squeezed(body: bytes) -> bytes:
        squeezer = zlib.compressobj(wbits=bits)
        return squeezer.compress(body) + squeezer.flush()

    server.faults.add(operation="generate", action=Bytes(squeezed, "deflate"))
    received = asked.ask(DOCUMENT, Sheet())
    assert asked.read(received.body).text == "{}"


SQUEEZED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "raw deflate": (raw_deflate, "deflate"),
    "raw deflate as gzip": (raw_deflate, "gzip"),
    "a small window, cut at once": (lambda body: small_window(body)[:2], "deflate"),
    "a small window, damaged": (lambda body: small_window(body)[:2] + b"\xff" * 9, "deflate"),
    "bzip2": (lambda body: bz2.compress(body), "gzip"),
    "zlib after a byte": (lambda body: b"\0" + zlib.compress(body), "deflate"),
}


@pytest.mark.parametrize("name", SQUEEZED)
def test_what_cannot_be_decompressed_and_is_no_text_is_not_kept(
    server: GeminiServer, asked: Gemini, name: str
) -> None:
    squeeze, encoding = SQUEEZED[name]
    server.faults.add(operation="generate", action=Bytes(squeeze, encoding))
    failure = failure_of(asked)
    assert (failure.kind, failure.partial) == ("undecodable", None)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("text", ["<p>Bad gateway</p>\n", "HK: 17 é", "x^", "hello", "é"])
def test_text_that_is_said_to_be_compressed_is_kept(
    server: GeminiServer, asked: Gemini, encoding: str, text: str
) -> None:
    server.faults.add(operation="generate", action=Bytes(lambda body: text.encode(), encoding))
    failure = failure_of(asked)
    assert (failure.kind, failure.partial) == ("undecodable", text.encode())


@pytest.mark.parametrize("sizes", [(1, 10), (10, 1_500, 1), (0, 0, 40), (700,) * 9])
def test_every_member_of_a_gzip_answer_is_read(
    server: GeminiServer, asked: Gemini, sizes: tuple[int, ...]
) -> None:
    def members(body: bytes) -> bytes:
        found, start = b"", 0
        for size in sizes:
            found += gzip.compress(body[start : start + size])
            start += size
        return found + gzip.compress(body[start:])

    noise = "".join(f"{n * n % 8_191:x}" for n in range(3_000))
    server.responder = lambda request: noise
    server.faults.add(operation="generate", action=Bytes(members, "gzip"))
    received = asked.ask(DOCUMENT, Sheet())
    assert asked.read(received.body).text == noise


@pytest.mark.parametrize(
    "after",
    [b"oops", b"\x1f\x8b", gzip.compress(b"x", mtime=0)[:-1]],
    ids=["words", "a beginning", "all but the end"],
)
def test_what_follows_compression_and_is_none_is_a_failure(
    server: GeminiServer, asked: Gemini, after: bytes
) -> None:
    server.faults.add(
        operation="generate", action=Bytes(lambda body: gzip.compress(body) + after, "gzip")
    )
    failure = failure_of(asked)
    assert failure.kind == "undecodable"
    assert failure.partial
    assert asked.read(failure.partial.removesuffix(b"x")).text == "{}"


# Bounds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_that_is_too_long_is_not_read_to_its_end(
    server: GeminiServer, asked: Gemini, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(transport, "MAX_BODY", 200_000)
    server.faults.add(operation="generate", action=Instead(status, b"x" * 30_000_000))
    failure = failure_of(asked)
    assert (failure.kind, failure.retryable, failure.partial) == ("too_long", False, None)


def test_an_answer_of_just_that_length_is_read(
    server: GeminiServer, asked: Gemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MAX_BODY", 200_000)
    answer = b'{"candidates": []}'.ljust(200_000)
    for action in (Instead(200, answer), Bytes(lambda body: gzip.compress(answer), "gzip")):
        server.faults.add(operation="generate", action=action)
        assert asked.ask(DOCUMENT, Sheet()).body == answer


@pytest.mark.parametrize("cut", [False, True])
def test_a_compressed_bomb_is_not_opened_to_its_end(
    server: GeminiServer, asked: Gemini, monkeypatch: pytest.MonkeyPatch, cut: bool
) -> None:
    monkeypatch.setattr(transport, "MAX_BODY", 200_000)
    bomb = gzip.compress(bytes(50_000_000))
    assert len(bomb) < 200_000
    server.faults.add(
        operation="generate", action=Bytes(lambda body: bomb[:-9] if cut else bomb, "gzip")
    )
    assert failure_of(asked).kind == "too_long"


def test_many_members_have_the_bound_of_one(
    server: GeminiServer, asked: Gemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MAX_BODY", 200_000)
    for more, kind in ((0, "no_answer"), (1, "too_long")):
        members = gzip.compress(bytes(50_000)) * 4 + gzip.compress(bytes(more))
        server.faults.add(
            operation="generate", action=Bytes(lambda body, sent=members: sent, "gzip")
        )
        assert failure_of(asked).kind == kind


# Nothing leaves unrecorded ----------------------------------------------------------------------


class Full(Sheet):
    """A ledger whose disk is full when something is about to leave."""

    def __call__(self, wire: bytes | None, cache: str = "") -> None:
        raise OSError("the disk is full")


class FullAt(Sheet):
    """A ledger whose disk is full when this event is to be recorded."""

    def __init__(self, kind: type[e.Event]) -> None:
        super().__init__()
        self.kind = kind

    def record(self, *events: e.Event, payloads: tuple[bytes, ...] = ()) -> None:
        if any(isinstance(event, self.kind) for event in events):
            raise OSError("the disk is full")
        super().record(*events, payloads=payloads)


def test_nothing_leaves_that_could_not_be_recorded(server: GeminiServer, asked: Gemini) -> None:
    with pytest.raises(OSError, match="full"):
        asked.ask(DOCUMENT, Full())
    assert server.log == []
    assert asked.ask(DOCUMENT, Sheet()).status == 200


@pytest.mark.parametrize("kind", [e.CacheDecided, e.CacheCreateRequested])
def test_no_cache_is_created_that_could_not_be_recorded(
    server: GeminiServer, kind: type[e.Event]
) -> None:
    asked = provider(server.url, cache_mode="auto")
    with pytest.raises(OSError, match="full"):
        asked.ask(investigation(), FullAt(kind))
    assert server.log == []


def test_the_server_is_reached_after_the_record_and_not_before(
    server: GeminiServer, asked: Gemini
) -> None:
    arrived: list[int] = []
    sheet = Sheet(leaving=lambda: arrived.append(server.count("generate")))
    asked.ask(DOCUMENT, sheet)
    assert arrived == [0]
    assert [wire for wire, _ in sheet.sent] == server.bodies("generate")


def test_one_call_is_one_request_whatever_the_answer_asks_for(
    server: GeminiServer, asked: Gemini
) -> None:
    more: dict[str, Any] = {"finishReason": "CONTINUATION", "continuationToken": "bW9yZQ=="}
    call = {"content": {"parts": [{"functionCall": {"name": "f", "args": {}}}]}}
    for candidate in (more, call):
        answer = Instead(200, canonical.to_bytes({"candidates": [candidate]}))
        server.faults.add(operation="generate", action=answer)
        asked.ask(DOCUMENT, Sheet())
    assert server.count("generate") == 2


def test_what_is_recorded_is_told_to_the_reader_of_the_record(
    server: GeminiServer, asked: Gemini
) -> None:
    received = asked.ask(DOCUMENT, Sheet())
    assert isinstance(received, Received)
    assert received.content_type.startswith("application/json")
    assert received.body == server.exchanges("generate")[0].reply


def investigation() -> bytes:
    """Return a document that a cache can serve."""
    view = {
        **dict.fromkeys(("case", "sources", "interpretation", "policy", "tools", "catalogs")),
        "case": {"text": "carts 17 and 18: " * 4_000},
        "evidence": [],
        "budget": {"left": {"requests": 20}},
        "shared": {},
    }
    return document_of("investigation_project_v11", view)
