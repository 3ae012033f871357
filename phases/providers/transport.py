"""HTTP of the remote providers: one exchange, its exact bytes, under one total deadline.

Client libraries read answers with loss, follow redirects with the key in hand and know no total
timeout. So this transport keeps the raw bytes, tells the ledger before a body leaves, and hands the
library an empty object: nobody but the provider's own reader ever interprets an answer.
"""

from __future__ import annotations

import codecs
import ipaddress
import re
import threading
import time
import unicodedata
import zlib
from collections.abc import Callable
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from phases.providers.base import Failure, ProviderConfigurationError

if TYPE_CHECKING:
    import ssl

    import httpcore2
    import httpx2

MAX_BODY = 64 * 1024 * 1024
"""Bytes of an answer, with gzip undone too; nobody reads further."""

KEPT_HEADERS = ("retry-after", "x-request-id", "content-type")

_LONGEST_WAIT_SECONDS = 86_400

BeforeSend = Callable[[bytes], None]
"""Called with the exact body; only when it returns may the body leave."""


class Exchanged(NamedTuple):
    """A complete answer: status, the few headers that matter, content with gzip undone."""

    status: int
    headers: dict[str, str]
    body: bytes

    def retry_after_ms(self, now: str) -> int | None:
        """Return how long the server asks to wait: its header is a number of seconds, or a date,
        which is compared with `now` (RFC 9110, 10.2.3). None if it does not ask.
        """
        header = self.headers.get("retry-after", "")
        if header.isascii() and header.isdecimal():
            return min(int(header[:9]), _LONGEST_WAIT_SECONDS) * 1000
        try:
            wait = parsedate_to_datetime(header) - datetime.fromisoformat(now)
        except (ValueError, TypeError, OverflowError):
            return None
        return round(min(max(wait.total_seconds(), 0), _LONGEST_WAIT_SECONDS) * 1000)


def unrecorded(body: bytes) -> None:
    """Record nothing: for exchanges that are no part of a case, such as checks."""


class Line(threading.local):
    """The connections of one provider, used for one exchange after the other in each thread.

    Say what to `expect`, let the library send, then `take` what came back.
    """

    def __init__(self) -> None:
        self.sent = False
        self._ends = 0.0
        self._before_send: BeforeSend = unrecorded
        self._result: Exchanged | Failure | None = None

    def expect(self, deadline_seconds: float, before_send: BeforeSend) -> None:
        """Prepare for one exchange, which ends within the deadline, connecting included."""
        self.sent = False
        self._ends = time.monotonic() + deadline_seconds
        self._before_send = before_send
        self._result = None

    def take(self) -> Exchanged:
        """Return the answer of the exchange.

        Raises:
            Failure: there was none, or not a whole one.
        """
        if self._result is None:
            raise Failure("not_sent", "the client library sent nothing", retryable=False)
        if isinstance(self._result, Failure):
            raise self._result
        return self._result

    def remaining(self) -> float:
        """Return the seconds that are left; little more than none once they are used up."""
        return max(self._ends - time.monotonic(), 0.001)

    def is_over(self) -> bool:
        """Tell whether the deadline is over."""
        return time.monotonic() > self._ends

    def transport(self) -> httpx2.BaseTransport:
        """Return the transport to give to a client library."""
        import httpx2

        line, pool = self, _pool(self)

        class Transport(httpx2.BaseTransport):
            def handle_request(self, request: httpx2.Request) -> httpx2.Response:
                line._exchange(pool, request)
                return httpx2.Response(200, json={}, request=request)

            def close(self) -> None:
                pool.close()

        return Transport()

    def _exchange(self, pool: httpcore2.ConnectionPool, request: httpx2.Request) -> None:
        body = request.read()
        self._before_send(body)  # what it raises ends everything: nothing unrecorded leaves
        self.sent = True
        received = bytearray()
        try:
            self._result = self._answer(pool, request, body, received)
        except Failure as failure:
            self._result = failure

    def _answer(
        self,
        pool: httpcore2.ConnectionPool,
        request: httpx2.Request,
        body: bytes,
        received: bytearray,
    ) -> Exchanged:
        import httpcore2

        url, encoding = httpcore2.URL(str(request.url)), ""
        try:
            with pool.stream(request.method, url, headers=request.headers.raw, content=body) as got:
                encoding = _header(got.headers, b"content-encoding")
                for chunk in got.iter_stream():
                    received += chunk
                    _check_length(received)
        except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError) as why:
            kind, words = _kind(why)
            message = f"{words}: {why}" if str(why) else words
            partial = _opened(bytes(received), encoding)[0] or None
            raise Failure(kind, message, retryable=True, partial=partial) from None
        except UnicodeError:
            message = "no connection: the host is not the name of one"
            raise Failure("connect", message, retryable=False) from None
        return _decoded(got.status, got.headers, bytes(received))


def _pool(line: Line) -> httpcore2.ConnectionPool:
    """Return a pool whose every wait ends with the deadline of the line."""
    import httpcore2

    class Stream(httpcore2.NetworkStream):
        def __init__(self, inner: httpcore2.NetworkStream) -> None:
            self._inner = inner

        def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
            if line.is_over():  # a server that never pauses would never meet a timeout
                raise httpcore2.ReadTimeout("the answer was not complete")
            return self._inner.read(max_bytes, line.remaining())

        def write(self, buffer: bytes, timeout: float | None = None) -> None:
            for start in range(0, len(buffer), _PIECE):
                if line.is_over():
                    raise httpcore2.WriteTimeout("the request was not taken")
                self._inner.write(buffer[start : start + _PIECE], line.remaining())

        def close(self) -> None:
            self._inner.close()

        def start_tls(
            self,
            ssl_context: ssl.SSLContext,
            server_hostname: str | None = None,
            timeout: float | None = None,
        ) -> httpcore2.NetworkStream:
            return Stream(self._inner.start_tls(ssl_context, server_hostname, line.remaining()))

        def get_extra_info(self, info: str) -> Any:
            return self._inner.get_extra_info(info)

    class Backend(httpcore2.SyncBackend):
        def connect_tcp(self, *args: Any, **more: Any) -> httpcore2.NetworkStream:
            return Stream(super().connect_tcp(*args, **{**more, "timeout": line.remaining()}))

    return httpcore2.ConnectionPool(ssl_context=certificates(), network_backend=Backend())


@cache
def certificates() -> ssl.SSLContext:
    """Return what servers are checked against; read once, clients read it three times otherwise."""
    import httpcore2

    return httpcore2.default_ssl_context()


def check_address(url: str, setting: str) -> str:
    """Return a base URL without its last slash.

    Raises:
        ProviderConfigurationError: it would send a key in clear text over a network, or nowhere.
    """
    if "@" in _AFTER_AUTHORITY.split(url.partition("//")[2], maxsplit=1)[0]:
        raise ProviderConfigurationError(f"{setting}: holds a password; give the key as a key")
    if wrong := _wrong_with(url):
        raise ProviderConfigurationError(f"{setting}{_shown(url)}: {wrong}")
    return url.rstrip("/")


_AFTER_AUTHORITY = re.compile(r"[/?#]")
_NO_ADDRESS = "is no http or https address"


def _wrong_with(url: str) -> str:
    try:
        parts = urlsplit(url)
        fits = parts.port != 0 and url.isascii() and url.isprintable() and " " not in url
    except ValueError:  # brackets or a port that are none
        return _NO_ADDRESS
    if not fits:
        return _NO_ADDRESS
    if parts.query or parts.fragment:
        return "is more than an address; leave ? and # away"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return _NO_ADDRESS
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        return "use https; plain http is for this machine only"
    return _wrong_with_host(parts.hostname)


def _wrong_with_host(host: str) -> str:
    try:
        host.encode("idna")  # as the look-up of the address does it
    except UnicodeError:
        return "a part of its host is empty or longer than 63 characters"
    return ""


def _shown(url: str) -> str:
    """Return an address as a message shows it; nothing if a password or a key may be in it."""
    return "" if set("@?#") & set(unicodedata.normalize("NFKC", url)) else f" {url!r}"


def is_loopback_url(url: str) -> bool:
    """Tell whether an address is on this machine."""
    return is_loopback(urlsplit(url).hostname or "")


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _decoded(status: int, raw_headers: list[tuple[bytes, bytes]], raw: bytes) -> Exchanged:
    body, problem = _opened(raw, _header(raw_headers, b"content-encoding"))
    if problem:
        message = f"the answer cannot be decompressed: {problem}"
        raise Failure("undecodable", message, retryable=True, partial=body or None)
    found = {name: _header(raw_headers, name.encode()) for name in KEPT_HEADERS}
    return Exchanged(status, {name: value for name, value in found.items() if value}, body)


def _header(headers: list[tuple[bytes, bytes]], name: bytes) -> str:
    values = (value.decode("latin-1") for key, value in headers if key.lower() == name)
    return ", ".join(values).strip()


_COMPRESSED = frozenset({"gzip", "x-gzip", "deflate"})
"""Encodings that we ask for."""

_BY_HEADER = 47
"""`wbits` of zlib for gzip or zlib, whichever a header says."""

_NOT_IN_TEXT = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

_PIECE = 65_536
"""Bytes of a request that are written at a time: a server may take each as slowly as it likes."""

_STEP = 1024
"""Compressed bytes that are undone at a time: what comes before an error is kept."""


def _opened(raw: bytes, encoding: str) -> tuple[bytes, str]:
    """Return the content of a body as far as it can be read, and what is wrong with it.

    Compressed bytes are never returned: nobody could remove a key from them. What cannot be undone
    is only returned if it is text.
    """
    if not raw or encoding.lower() in ("", "identity"):
        return raw, ""
    if encoding.lower() not in _COMPRESSED:
        return b"", f"encoding {encoding[:40]!r} was not asked for"
    content, problem = _inflated(raw)
    if problem and _is_text(raw):
        return raw, "it is not compressed as it says"
    return content, problem


def _inflated(raw: bytes) -> tuple[bytes, str]:
    """Return all members of a compressed body, one after the other, and what is wrong with it."""
    inflater, content = zlib.decompressobj(wbits=_BY_HEADER), bytearray()
    try:
        for start in range(0, len(raw), _STEP):
            piece = raw[start : start + _STEP]
            while piece:
                if inflater.eof:
                    inflater = zlib.decompressobj(wbits=_BY_HEADER)
                content += inflater.decompress(piece, MAX_BODY + 1 - len(content))
                _check_length(content)
                piece = inflater.unused_data
    except zlib.error as error:
        return bytes(content), str(error)
    return bytes(content), "" if inflater.eof else "it ends early"


def _is_text(data: bytes) -> bool:
    """Tell whether bytes are text, which may break off within a character."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return False
    return not _NOT_IN_TEXT.search(data)


def _check_length(content: bytearray) -> None:
    if len(content) > MAX_BODY:
        message = f"the answer is longer than {MAX_BODY} bytes"
        raise Failure("too_long", message, retryable=False)


def _kind(error: Exception) -> tuple[str, str]:
    import httpcore2

    for cls, kind, words in (
        (httpcore2.ConnectTimeout, "connect", "no connection within the deadline"),
        (httpcore2.ConnectError, "connect", "no connection"),
        (httpcore2.TimeoutException, "timeout", "no answer within the deadline"),
        (httpcore2.RemoteProtocolError, "disconnected", "the server ended the connection"),
    ):
        if isinstance(error, cls):
            return kind, words
    return "reset", "the connection broke"
