"""Finds secrets by their shape and replaces them before anything is stored.

A small table of our own, because no library fits: detect-secrets (the reference) has had no
release since May 2024 and judges lines of source, by entropy too; the others are scanners shipped
as binaries, or carry a trained model. None gives spans to replace at equal length. Matching is done
by google-re2, which is linear in the text whatever it holds: a 50 MB line makes nothing slow.

Two sets: `KEYS`, shapes that are nothing but keys, for source and databases; and `PROSE`, the same
and what only context tells (passwords in URLs, assignments, bearer tokens), for reports and logs.
Assignments in source are never guessed at: one library had 156 false hits.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from mmap import mmap
from typing import Any, NamedTuple

from phases.intake.text import count_ends


class Hit(NamedTuple):
    """One replaced secret: its kind, and where it began (1-based line and character column)."""

    kind: str
    line: int
    column: int


class Cleaned(NamedTuple):
    """Text as UTF-8 with its secrets replaced, and what was replaced, in order."""

    data: bytes
    hits: tuple[Hit, ...]


class Span(NamedTuple):
    """A secret in UTF-8 text: byte range, kind, first bytes to keep, number of its secret."""

    start: int
    end: int
    kind: str
    keep: int
    first: bool = True


class _Shape(NamedTuple):
    kind: str
    pattern: bytes  # must not have groups, but one named `value` if only a part is the secret
    keep: int = 0  # leading bytes that tell the kind and stay in an equal-length replacement
    size: int = 0  # exact length, where the shape has one
    check: Callable[[bytes], bool] | None = None


def _mixed(value: bytes) -> bool:
    """Tell whether a value after `token:` looks drawn rather than written."""
    if len(value) < 8 or value.startswith((b"/", b"http")):
        return False
    digits = any(48 <= byte <= 57 for byte in value)
    letters = any(byte > 64 for byte in value)
    both_cases = value != value.lower() and value != value.upper()
    return (digits and letters) or (len(value) >= 24 and both_cases)


def _password(value: bytes) -> bool:
    return value.strip(b"\"'`\\").lower().rstrip(b".,:!?") not in _NOT_PASSWORDS


def _labelled(value: bytes) -> bool:
    """Tell a password after `password:` from prose, a type, and the folder that `pwd` prints."""
    word = value.partition(b"[")[0]  # Optional[…]
    return _password(value) and _password(word) and not value.startswith((b"/", b"~/"))


def _credential(value: bytes) -> bool:
    return _password(value) and not value.startswith(b"//")  # -u http://…


_NOT_PASSWORDS = frozenset(
    b"password passwd pwd pass secret token user username none null nil true false undefined str"
    b" string required missing invalid incorrect wrong empty the not is"
    b" optional boolean varchar integer characters attempt attempts cannot should expired changed"
    b" updated rejected accepted failed failure hidden masked redacted removed forgotten unknown"
    b" placeholder your-password your_password yourpassword mypassword passwort kennwort falsch"
    b" vergessen erforderlich ung\xc3\xbcltig ge\xc3\xa4ndert fehlend unbekannt".split()
)

_KEYS = (
    _Shape("aws_access_key", rb"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16,}", 4, 20),
    _Shape("github_token", rb"\bgh[pousr]_[A-Za-z0-9]{36,}", 4),
    _Shape("github_token", rb"\bgithub_pat_[A-Za-z0-9_]{60,}", 11),
    _Shape("gitlab_token", rb"\bglpat-[A-Za-z0-9_-]{20,}", 6),
    _Shape("slack_token", rb"\bxox[abeoprs]-[A-Za-z0-9-]{16,}", 5),
    _Shape(
        "slack_webhook",
        rb"hooks\.slack\.com/services/(?P<value>T[A-Za-z0-9]+/B[A-Za-z0-9]+/[A-Za-z0-9]{16,})",
    ),
    _Shape("google_api_key", rb"\bAIza[0-9A-Za-z_-]{35,}", 4, 39),
    _Shape("google_oauth_token", rb"\bya29\.[0-9A-Za-z_-]{30,}", 5),
    _Shape("google_client_secret", rb"\bGOCSPX-[0-9A-Za-z_-]{28,}", 7, 35),
    _Shape("anthropic_key", rb"\bsk-ant-[A-Za-z0-9_-]{24,}", 7),
    _Shape("openai_key", rb"\bsk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{32,}", 8),
    _Shape("openai_key", rb"\bsk-[A-Za-z0-9]{40,}", 3, check=lambda v: _mixed(v)),
    _Shape("stripe_key", rb"\b[sr]k_live_[A-Za-z0-9]{16,}", 8),
    _Shape("jwt", rb"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}", 3),
    _Shape("npm_token", rb"\bnpm_[A-Za-z0-9]{36,}", 4, 40),
    _Shape("pypi_token", rb"\bpypi-AgE[A-Za-z0-9_-]{50,}", 8),
    _Shape("sendgrid_key", rb"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}", 3),
    _Shape("huggingface_token", rb"\bhf_[A-Za-z]{34,}", 3, 37),
    _Shape("digitalocean_token", rb"\bdo[opr]_v1_[a-f0-9]{64}", 7),
    _Shape("shopify_token", rb"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", 6),
    _Shape("vault_token", rb"\bhvs\.[A-Za-z0-9_-]{90,}", 4),
    _Shape("azure_storage_key", rb"AccountKey=(?P<value>[A-Za-z0-9+/]{86}==)"),
    _Shape("telegram_token", rb"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33,}", 0, check=lambda v: b"_" in v),
    _Shape("age_key", rb"\bAGE-SECRET-KEY-1[0-9A-Z]{58}", 16),
)
_QUOTES = rb"\\*[\"'`]"
_SEP = rb"(?:" + _QUOTES + rb")?[ \t]{0,3}(?:=>|:=|=|:)[ \t]{0,3}"
_WORD = rb"[^\s\"'`,;&<>(){}\[\]\\]{4,}"
_SECRETIVE = rb"(?i:password|passwd|passphrase|passwort|kennwort|pwd)"
_COLON = rb"(?:" + _QUOTES + rb")?[ \t]{0,3}(?:=>|:=|:)[ \t]{0,3}"
_CURL = rb"\bcurl\b(?:[^\r\n]|\\\r?\n)*?[ \t](?:-[A-Za-z]{0,8}u[ \t]*|--user(?:=|[ \t]+))"
_END = rb"\s\"'`\\"
_TOKENISH = rb"(?i:token|secret|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|auth)"
_CONTEXT = (
    _Shape(
        "bearer_token",
        rb"(?i:\bbearer)[ \t]+(?P<value>[A-Za-z0-9._~+/=-]{12,})",
        check=lambda v: _mixed(v),
    ),
    _Shape(
        "authorization",
        rb"(?i:\bauthorization)"
        + _SEP
        + rb"(?:"
        + _QUOTES
        + rb")?(?i:basic|token|digest|apikey)[ \t]+"
        rb"(?P<value>[A-Za-z0-9._~+/=-]{6,})",
    ),
    _Shape(
        "url_password",
        rb"[A-Za-z0-9+.-]+://[^\s/:@?#\"'<>\[\]]*:(?P<value>[^\s/@?#\"'<>\[\]]+)@",
        check=_password,
    ),
    _Shape(
        "cookie",
        rb"(?i:\b(?:set-)?cookie2?)"
        + _COLON
        + rb"(?:"
        + _QUOTES
        + rb")?(?P<value>[^\s=;,\"'`\\]+=(?:[^\r\n\"'`\\]|=\"[^\"\r\n]*\"|\"[^\"\r\n]*\";)*)",
    ),
    _Shape("password", _CURL + rb"[^\s:\"']*:(?P<value>[^\s\"']{3,})", check=_credential),
    _Shape("password", _CURL + rb"'[^\r\n:']*:(?P<value>[^\r\n']{3,})", check=_credential),
    _Shape("password", _CURL + rb'"[^\r\n:"]*:(?P<value>[^\r\n"]{3,})', check=_credential),
    _Shape(
        "password",
        rb"<[\w.:-]*"
        + _SECRETIVE
        + rb"(?:\s[^<>]*)?>(?:<!\[CDATA\[)?\s*(?P<value>[^<>\s](?:[^<\r\n]*[^<\s])?)\s*</",
        check=_password,
    ),
    _Shape(
        "session_cookie",
        rb"(?i:\b(?:sessionid|session_id|phpsessid|jsessionid|connect\.sid))=(?P<value>[^\s;,\"'&]{8,})",
    ),
    _Shape("password", _SECRETIVE + _SEP + rb'\\*"(?P<value>[^"\r\n\\]{3,})', check=_password),
    _Shape("password", _SECRETIVE + _SEP + rb"\\*'(?P<value>[^'\r\n\\]{3,})", check=_password),
    _Shape("password", _SECRETIVE + rb"=(?P<value>" + _WORD + rb")", check=_password),
    _Shape("password", _SECRETIVE + _SEP + rb"(?P<value>" + _WORD + rb")", check=_mixed),
    _Shape(
        "password",
        _SECRETIVE + _COLON + rb"(?P<value>[^%b]{5,}[^%b.,;:)\]}>])" % (_END, _END),
        check=_labelled,
    ),
    _Shape(
        "token",
        _TOKENISH + _SEP + rb"(?:" + _QUOTES + rb")?(?P<value>" + _WORD + rb")",
        check=_mixed,
    ),
)

_BEGIN = re.compile(rb"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_RUN = re.compile(rb"(?:\\[nrt])?([A-Za-z0-9+/]{16,}={0,2}|[A-Za-z0-9+/]{2,}={1,2})")
MAX_PEM = 32 << 10
"""Bytes after a private key's first line that are looked at."""
MIN_PEM = 64
"""Characters of base64 that make a private key; documentation shows the two frame lines only."""


class Table:
    """A set of shapes. One pass of all together tells whether any of them is there at all."""

    def __init__(self, shapes: tuple[_Shape, ...]) -> None:
        self._shapes = [(shape, _compiled(_group(shape))) for shape in shapes]
        self._any = _compiled(b"|".join(_group(shape, capture=False) for shape in shapes))

    def spans(self, data: bytes) -> list[Span]:
        """Return what has one of the shapes; spans of different shapes may overlap."""
        if not self._any.search(data):
            return []
        return [s for shape, pattern in self._shapes for s in _shaped(data, shape, pattern)]


def _apart(spans: list[Span]) -> list[Span]:
    """Return spans in order, without those that begin inside the one before."""
    spans.sort(key=lambda span: (span.start, -span.end))
    apart: list[Span] = []
    for span in spans:
        if not apart or span.start >= apart[-1].end:
            apart.append(span)
    return apart


def _compiled(pattern: bytes) -> Any:
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes; the shapes are ASCII
    options.log_errors = False
    options.max_mem = 64 << 20
    return re2.compile(pattern, options)


def _shaped(data: bytes, shape: _Shape, pattern: Any) -> Iterator[Span]:
    for match in pattern.finditer(data):
        start, end = match.span(1)
        if shape.size and end - start != shape.size:
            continue
        value = data[start:end]
        if (shape.check and not shape.check(value)) or _is_filler(value[shape.keep :]):
            continue
        yield Span(start, end, shape.kind, shape.keep)


def key_spans(data: bytes) -> list[Span]:
    """Return the keys in UTF-8 text, by shape alone, in order, none overlapping another."""
    return _apart([*_private_keys(data), *_keys().spans(data)])


def keys_in_bytes(data: bytes | mmap) -> bool:
    """Tell whether a key stands anywhere in a database file: freed pages, BLOBs, the schema.

    What stands before and after it there is no text, so no boundary is asked for.
    """
    if any(not _is_filler(match.group(0)[6:]) for match in _loose().finditer(data)):
        return True
    return any(True for _ in _private_keys(data))


@functools.cache
def _loose() -> Any:
    patterns = (_group(shape, capture=False).replace(rb"\b", b"") for shape in _KEYS)
    return _compiled(b"(?:" + b"|".join(patterns) + b")")


@functools.cache
def _keys() -> Table:
    return Table(_KEYS)


@functools.cache
def _context() -> Table:
    return Table(_CONTEXT)


def _in_prose(data: bytes) -> list[Span]:
    """Return keys and what only context tells; a key wins over the assignment it stands in."""
    found = key_spans(data)
    taken = {span.start for span in found}
    found += (span for span in _context().spans(data) if span.start not in taken)
    return _apart(found)


def mark(data: bytes) -> Cleaned:
    """Replace the secrets of a report or log (UTF-8) by `[secret:KIND]`; lines stay lines."""
    return _replace(data, _in_prose(data), lambda _, span: b"[secret:%b]" % span.kind.encode())


def mask(data: bytes) -> Cleaned:
    """Replace the keys in source (UTF-8) by as many bytes in the same lines."""
    return _replace(data, key_spans(data), masked)


def masked(value: bytes, span: Span) -> bytes:
    """Return a secret with its letters and digits, but those that tell its kind, as `x`."""
    return value[: span.keep] + _ALNUM.sub(b"x", value[span.keep :])


_ALNUM = re.compile(rb"[A-Za-z0-9]")


def _group(shape: _Shape, *, capture: bool = True) -> bytes:
    """Return the pattern with its value as group 1, or with no group."""
    if b"(?P<value>" in shape.pattern:
        return shape.pattern.replace(b"(?P<value>", b"(" if capture else b"(?:")
    return (b"(%b)" if capture else b"(?:%b)") % shape.pattern


def _is_filler(value: bytes) -> bool:
    """Tell a placeholder (`xxxx`, `***`, `EXAMPLE`, `[secret:…]`, `$TOKEN`) from a value."""
    if not value or value.startswith((b"[secret:", b"$", b"%", b"{", b"<")) or b"EXAMPLE" in value:
        return True
    return Counter(value).most_common(1)[0][1] > len(value) // 2


def _private_keys(data: bytes | mmap) -> Iterator[Span]:
    """Yield the runs of base64 of each private key; the frame lines stay.

    Not by a pattern that runs to the END line: unclosed BEGIN lines would make it quadratic.
    """
    end = 0
    for match in _BEGIN.finditer(data):
        if match.start() < end:
            continue
        limit = match.end() + MAX_PEM
        stop = data.find(b"-----END ", match.end(), limit)
        end = stop if stop >= 0 else min(limit, len(data))
        runs = [run.span(1) for run in _RUN.finditer(data, match.end(), end)]
        if sum(b - a for a, b in runs) < MIN_PEM or all(_is_filler(data[a:b]) for a, b in runs):
            continue
        for n, (a, b) in enumerate(runs):
            yield Span(a, b, "private_key", 0, first=n == 0)


def _replace(data: bytes, spans: list[Span], by: Callable[[bytes, Span], bytes]) -> Cleaned:
    if not spans:
        return Cleaned(data, ())
    parts: list[bytes] = []
    end = 0
    for span in spans:
        parts += (data[end : span.start], by(data[span.start : span.end], span))
        end = span.end
    parts.append(data[end:])
    return Cleaned(b"".join(parts), tuple(_places(data, [s for s in spans if s.first])))


def _places(data: bytes, spans: list[Span]) -> Iterator[Hit]:
    """Yield line and column of each span, in one pass: a line may be very long."""
    position, line, column = 0, 1, 1
    for span in spans:
        ends = count_ends(data, position, span.start)
        if ends:
            line += ends
            column = 1
            last = (data.rfind(end, position, span.start) for end in (b"\n", b"\r"))
            position = max(last) + 1
        column += len(data[position : span.start].decode("utf-8", "replace"))
        position = span.start
        yield Hit(span.kind, line, column)


def in_encoding(data: bytes, encoding: str, clean: Callable[[bytes], Cleaned]) -> Cleaned:
    """Apply `mark` or `mask` to text in any encoding; the result is in the same one."""
    if encoding == "utf-8":
        return clean(data)
    plain = data.decode(encoding).encode("utf-8")
    cleaned = clean(plain)
    if not cleaned.hits:
        return Cleaned(data, ())
    return Cleaned(cleaned.data.decode("utf-8").encode(encoding), cleaned.hits)
