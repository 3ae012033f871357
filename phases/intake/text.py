"""Bytes to characters, always reversible: which encoding gives a file's text back byte for byte.

UTF-8 if valid (`utf-8-sig` with a byte order mark), UTF-16 and UTF-32 by their mark (which stays
in the text as U+FEFF, so that the same codec writes the same bytes on any machine), else a detected
encoding that round-trips, else latin-1, which always does. No text holds a surrogate.

Lines are those of `ledger.lines`: LF, CR LF or CR ends one, nothing else.
"""

from __future__ import annotations

import codecs
import re

from ledger.lines import split_lines

SAMPLE = 8192
"""Bytes of lines with unusual bytes that are shown to the detector; more changes nothing."""

_WIDE_MARKS = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CANDIDATES = (
    "cp1252", "cp1251", "koi8_r", "cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "cp932",
    "euc_jp", "gb18030", "big5", "cp949", "iso8859_2", "cp866", "cp437",
)  # fmt: skip
_HIGH = re.compile(rb"[\x80-\xff]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ODD_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b\b"))
MAX_ODD_SHARE = 0.02
"""Control characters among the bytes of a file that is no UTF-8, beyond which it is binary."""


def source_encoding(data: bytes) -> str | None:
    """Return the encoding of a source file's text, or None for a binary file.

    A NUL makes a file binary, unless a byte order mark says that its characters are wide.
    """
    marked = _marked(data)
    if marked:
        return marked
    if b"\0" in data:
        return None
    if _decodes(data, "utf-8"):
        return "utf-8"
    odd = len(data) - len(data.translate(None, _ODD_CONTROLS))
    return None if odd > MAX_ODD_SHARE * len(data) else _detected(data)


def prose_encoding(data: bytes) -> str:
    """Return the encoding of a report's or log's text; these are text whatever they hold."""
    marked = _marked(data)
    if marked:
        return marked
    wide = _unmarked_wide(data)
    if wide:
        return wide
    return "utf-8" if _decodes(data, "utf-8") else _detected(data)


def count_lines(data: bytes, encoding: str) -> int:
    """Return the number of lines of text in `encoding`."""
    if not data or (encoding == "utf-8-sig" and len(data) == len(codecs.BOM_UTF8)):
        return 0
    if encoding.startswith(("utf-16", "utf-32")):
        return len(split_lines(data.decode(encoding)))
    # No other codec has a byte of a line end within a character.
    return count_ends(data) + (not data.endswith((b"\n", b"\r")))


def count_ends(data: bytes, start: int = 0, end: int | None = None) -> int:
    """Return the number of line ends in bytes whose codec writes them as ASCII does."""
    returns = data.count(b"\r", start, end)
    ends = data.count(b"\n", start, end) + returns
    return ends - data.count(b"\r\n", start, end) if returns else ends


def _marked(data: bytes) -> str | None:
    if data.startswith(codecs.BOM_UTF8):
        return "utf-8-sig" if _decodes(data, "utf-8") else None
    for mark, name in _WIDE_MARKS:
        if data.startswith(mark) and _decodes(data, name):
            return name
    return None


def _unmarked_wide(data: bytes) -> str | None:
    """Recognise UTF-16 without a mark: Latin text has a NUL in every second byte."""
    sample = data[:SAMPLE]
    half = len(sample) // 2
    if len(data) % 2 or half < 2:
        return None
    for nuls, others, name in (
        (sample[1::2], sample[0::2], "utf-16-le"),
        (sample[0::2], sample[1::2], "utf-16-be"),
    ):
        if nuls.count(0) > 0.6 * half and others.count(0) < 0.1 * half and _decodes(data, name):
            return name
    return None


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _detected(data: bytes) -> str:
    sample = _telling(data)
    for name in _guesses(sample):
        if _round_trips(data, name):
            return name
    return "latin-1"


def _telling(data: bytes) -> bytes:
    """Return the lines, or pieces of lines, that hold bytes above 127: about SAMPLE bytes."""
    found, end = bytearray(), 0
    for match in _HIGH.finditer(data):
        if match.start() < end:
            continue
        start = max(end, data.rfind(b"\n", max(0, match.start() - 200), match.start()) + 1)
        end = data.find(b"\n", match.end(), match.end() + 400) + 1 or match.end() + 400
        found += data[max(start, match.start() - 200) : end]
        if len(found) >= SAMPLE:
            break
    return bytes(found)


def _guesses(sample: bytes) -> list[str]:
    """Return likely encodings, best first.

    The detector merges encodings that give the same characters, and names any of them; the Western
    one is preferred where it is among the likely ones, being by far the most frequent.
    """
    import charset_normalizer

    found = list(charset_normalizer.from_bytes(sample, cp_isolation=list(_CANDIDATES)))
    names = [codecs.lookup(match.encoding).name.replace("-", "_") for match in found]
    if not found:
        return []
    western = _decoded(sample, "cp1252")
    if "cp1252" in names or (western is not None and western == str(found[0])):
        names.insert(0, "cp1252")
    return names


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _round_trips(data: bytes, encoding: str) -> bool:
    text = _decoded(data, encoding)
    if text is None or _SURROGATE.search(text):
        return False
    try:
        return text.encode(encoding) == data
    except UnicodeEncodeError:
        return False
