"""A guard that lets a test open connections to loopback only, and tells of every other try."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Iterator
from typing import Any
from unittest import mock


class Escape(AssertionError):
    """A connection or a look-up left the machine."""


@contextlib.contextmanager
def only_loopback() -> Iterator[list[str]]:
    """Refuse other hosts; the list given holds every host that was asked for, loopback included."""
    asked: list[str] = []
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def guarded_connect(self: socket.socket, address: Any) -> None:
        _allow(asked, address)
        connect(self, address)

    def guarded_look_up(host: Any, *rest: Any, **named: Any) -> Any:
        _allow(asked, (host,))
        return look_up(host, *rest, **named)

    with (
        mock.patch.object(socket.socket, "connect", guarded_connect),
        mock.patch.object(socket, "getaddrinfo", guarded_look_up),
    ):
        yield asked


def _allow(asked: list[str], address: Any) -> None:
    if not isinstance(address, tuple):
        return  # a local socket, by its path
    host = address[0].decode() if isinstance(address[0], bytes) else str(address[0])
    asked.append(host)
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise Escape(f"a connection to {host} was tried")
