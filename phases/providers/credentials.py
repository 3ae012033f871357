"""Keys: read where they are used, shown nowhere. A ledger holds a fingerprint at most."""

from __future__ import annotations

import contextlib
import hmac
import os
import re
import secrets
from functools import cached_property
from pathlib import Path
from typing import Any

from phases.providers.base import Failure, ProviderConfigurationError, line
from phases.providers.transport import Exchanged

REMOVED = b"[credential removed]"
_SALT_BYTES = 32

_LEAST_IN_ANSWERS = 16
"""Characters of a key that is removed from answers. `test`, `null`, `EMPTY` and `ollama` are what
servers on this machine are given as keys: they protect nothing, and an answer may need the word."""

_LEAST = 8
"""Characters of a key that is removed from errors: nothing is built on their words."""

_LEAST_BEGINNING = 4
"""Characters of a key that are removed where something broke off."""

_LONGEST = 8192
"""Characters of a key; no header of a server is as long."""

_PATTERN_BYTES = 256 * 1024 * 1024
"""Memory that a search for a key may take; the longest key of odd characters takes a fifth."""


class Key:
    """A credential. Its text is never part of a representation."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "Key(…)"

    def __bool__(self) -> bool:
        return bool(self._text)

    def reveal(self) -> str:
        """Return the key, for the one header it belongs into."""
        return self._text

    def fingerprint(self) -> str:
        """Return what tells two keys apart and reveals neither; empty without a key.

        A truncated HMAC-SHA-256 under a salt of this installation: it compares on this machine,
        and a guess cannot be tried anywhere else.
        """
        if not self._text:
            return ""
        return hmac.new(_salt(), self._text.encode(), "sha256").hexdigest()[:16]

    def removed_from_answer(self, data: bytes) -> bytes:
        """Return an answer without this key; one of fewer than 16 characters stays in it."""
        return data if len(self._text) < _LEAST_IN_ANSWERS else self.removed_from(data)

    def removed_from(self, data: bytes) -> bytes:
        """Return bytes without this key, plain or escaped as JSON, addresses and HTML do it.

        Bytes that broke off lose the beginning of the key at their end, too. A key of fewer than
        8 characters stays where it is.
        """
        if len(self._text) < _LEAST:
            return data
        data = self._spelled.sub(REMOVED, data)
        for size in range(len(self._text) - 1, _LEAST_BEGINNING - 1, -1):
            if data.endswith(self._text[:size].encode()):
                return data[:-size] + REMOVED
        return data

    def removed(self, text: str) -> str:
        """Return a text without this key."""
        return self.removed_from(text.encode("utf-8", "backslashreplace")).decode()

    @cached_property
    def _spelled(self) -> Any:
        """Return the pattern of this key. Bodies are hostile: google-re2 takes linear time."""
        import re2

        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1  # a byte is a character
        options.log_errors = False
        options.max_mem = _PATTERN_BYTES
        pieces = re.findall(r"\\+|[A-Za-z0-9]+|.", self._text)
        return re2.compile("".join(map(_spellings, pieces)).encode(), options)


def without_key(failure: Failure, key: Key) -> Failure:
    """Return a failure without the key, on one line: a server may say anything, our header too."""
    partial = failure.partial
    return Failure(
        failure.kind,
        line(key.removed(failure.message)),
        retryable=failure.retryable,
        status=failure.status,
        retry_after_ms=failure.retry_after_ms,
        partial=None if partial is None else key.removed_from(partial),
    )


def answer_without_key(got: Exchanged, key: Key) -> Exchanged:
    """Return what came back without the key, wherever a server may have put it."""
    headers = {name: key.removed(value) for name, value in got.headers.items()}
    remove = key.removed_from_answer if got.status == 200 else key.removed_from
    return Exchanged(got.status, headers, remove(got.body))


_BACKSLASH = "\\"
_NAMED = {'"': "quot", "&": "amp", "'": "apos", "<": "lt", ">": "gt"}


def _spellings(piece: str) -> str:
    """Return a pattern for a piece of a key: letters and digits, backslashes, or a character.

    No serialiser escapes letters and digits; what one escapes, the next may escape again.
    """
    if piece.isalnum():
        return piece
    if piece[0] == _BACKSLASH:
        runs = "|".join(re.escape(piece * 2**level) for level in (3, 2, 1, 0))
        return rf"(?:{runs}|(?:{_escapes(piece[0])})+)"
    return rf"(?:\\|{_escapes(_BACKSLASH)})*(?:{re.escape(piece)}|{_escapes(piece)})"


def _escapes(character: str) -> str:
    digits = "".join(f"[{d}{d.upper()}]" for d in f"{ord(character):02x}")
    entity = rf"#0*{ord(character)}|#[xX]0*{digits}|{_NAMED.get(character, '#')}"
    return rf"\\+u00{digits}|%(?:25)*{digits}|&(?:amp;)*(?:{entity});"


def read_key(variable: str, file: str, what: str, *, needed: bool = True) -> Key:
    """Return the key of a file, else of an environment variable.

    Raises:
        ProviderConfigurationError: there is none, or it cannot be a header.
    """
    text, origin = _text(variable, file)
    if not text and needed:
        raise ProviderConfigurationError(
            f"{what}: no key; put it into the environment variable {variable}, "
            f"or name a file with {what}.key_file"
        )
    if text and not (text.isascii() and text.isprintable() and " " not in text):
        raise ProviderConfigurationError(f"{origin}: is no key: it has blanks or odd characters")
    if len(text) > _LONGEST:
        raise ProviderConfigurationError(f"{origin}: is no key: longer than {_LONGEST} characters")
    return Key(text)


def _text(variable: str, file: str) -> tuple[str, str]:
    if not file:
        return os.environ.get(variable, "").strip(), variable
    try:
        return Path(file).expanduser().read_text(encoding="utf-8").strip(), file
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "is not text"
        raise ProviderConfigurationError(f"key file {file}: {why}") from None


def _salt() -> bytes:
    """Return the salt of this installation, made at first use, readable by its owner only."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(base) / "caseledger" / "salt"
    try:
        if not path.exists():
            _make_salt(path)
        salt = path.read_bytes()
    except OSError as error:
        raise ProviderConfigurationError(
            f"{path}: the salt of fingerprints cannot be kept: {error.strerror}"
        ) from None
    if len(salt) < _SALT_BYTES:  # a fingerprint without salt could be guessed anywhere
        raise ProviderConfigurationError(f"{path}: is no salt; remove it, and a new one is made")
    return salt


def _make_salt(path: Path) -> None:
    """Make the salt whole or not at all, once, whoever else does the same at this moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ours = path.with_name(f".salt-{secrets.token_hex(8)}")
    new = os.open(ours, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(new, "wb") as file:
            file.write(secrets.token_bytes(_SALT_BYTES))
        with contextlib.suppress(FileExistsError):
            os.link(ours, path)
    finally:
        ours.unlink()
