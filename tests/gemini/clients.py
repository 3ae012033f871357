"""The real google-genai client, pointed at a server with everything said explicitly."""

from __future__ import annotations

import functools
import ssl

import httpx2
from google import genai
from google.genai import types


def make_client(
    url: str,
    key: str,
    *,
    version: str = "v1beta",
    timeout: float = 10.0,
    transport: httpx2.BaseTransport | None = None,
) -> genai.Client:
    """Return a client that reads no environment, retries nothing and follows no redirect.

    `timeout` is in seconds, for each read. A transport of our own also keeps the environment's
    proxies out.
    """
    certificates = trust()
    options = types.HttpOptions(
        base_url=url,
        api_version=version,
        timeout=int(timeout * 1_000),
        client_args={
            "transport": transport or httpx2.HTTPTransport(verify=certificates),
            "verify": certificates,
            "follow_redirects": False,
        },
        async_client_args={"verify": certificates, "ssl": certificates},
    )
    return genai.Client(vertexai=False, api_key=key, http_options=options)


@functools.cache
def trust() -> ssl.SSLContext:
    """Read the certificates once: without this each client reads them three times, in 60 ms."""
    return ssl.create_default_context()
