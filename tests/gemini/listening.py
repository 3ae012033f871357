"""HTTP on loopback for the test servers: a thread for each connection, one write for each reply."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import struct
import sys
import threading
from collections.abc import Mapping
from http.client import responses
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol

from tests.gemini.faults import Action
from tests.gemini.replies import Answer


class Owner(Protocol):
    """A server whose sockets these are; `failures` are raised when it stops."""

    failures: list[BaseException]

    def receive(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Any:
        """Log a request; what is returned is handed to `handle`."""

    def handle(self, call: Any) -> tuple[Action, Answer]:
        """Return a request's answer and how it is to be sent."""


class Listener(socketserver.ThreadingTCPServer):
    """Accepts connections, one thread each, and knows them all, so that none outlives it."""

    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, owner: Owner) -> None:
        super().__init__(("127.0.0.1", 0), Connection)
        self.owner = owner
        self.stopping = threading.Event()
        self._open: set[socket.socket] = set()

    def get_request(self) -> tuple[socket.socket, Any]:
        accepted = super().get_request()
        self._open.add(accepted[0])
        return accepted

    def close_request(self, request: Any) -> None:
        self._open.discard(request)
        super().close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep what is no closed connection: a client may leave at any time."""
        error = sys.exception()
        if error and not isinstance(error, OSError):
            self.owner.failures.append(error)

    def stop(self) -> None:
        """Refuse new connections, end the open ones, and wait for their threads."""
        self.stopping.set()
        self.shutdown()
        for connection in list(self._open):
            with contextlib.suppress(OSError):  # it may be closed already
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()


class Connection(BaseHTTPRequestHandler):
    """One connection; also the wire that actions send on."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Listener

    def respond(self) -> None:
        owner = self.server.owner
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        call = owner.receive(self.command, self.path, headers, body)
        action, answer = owner.handle(call)
        try:
            action.send(self, answer)
        except OSError:
            self.close_connection = True  # the client left first

    do_GET = do_POST = do_PATCH = do_DELETE = respond  # noqa: N815 - named by the base class

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the server keeps a log of its own."""

    def plain(self, answer: Answer) -> None:
        """Send head and body in one write."""
        self.write(self.head(answer, {"Content-Length": str(len(answer.body))}) + answer.body)

    def head(self, answer: Answer, framing: Mapping[str, str]) -> bytes:
        """Write status line and headers; `framing` says how the body ends."""
        fixed = {"Content-Type": answer.content_type, "Server": "local-gemini"}
        lines = [f"HTTP/1.1 {answer.status} {responses.get(answer.status, 'Unknown')}"]
        lines += [f"{name}: {value}" for name, value in (*fixed.items(), *answer.headers)]
        lines += [f"{name}: {value}" for name, value in framing.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def write(self, data: bytes) -> None:
        self.connection.sendall(data)

    def close(self) -> None:
        """End the connection in good order (FIN)."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_WR)
        self.rfile.close()  # it would hold the socket open
        self.connection.close()

    def reset(self) -> None:
        """End the connection abruptly (RST)."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()  # it would hold the socket open
        self.connection.close()

    def sleep(self, seconds: float) -> None:
        """Wait, but not longer than the server lives."""
        self.server.stopping.wait(seconds)

    def wait_for_client(self) -> None:
        """Wait until the client closes, or the server stops."""
        self.close_connection = True
        while self.connection.recv(4_096):
            pass
