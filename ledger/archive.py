"""A zip file that is not trusted: members, sizes and digests are those of its manifest, or nothing.

Form: docs/format.md, "The package".
"""

from __future__ import annotations

import hashlib
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ledger import canonical
from ledger.errors import CanonicalError, CaseNotFound, PackageRefused
from ledger.storage import translated
from ledger.trees import is_safe_path

FORMAT = 1
DOS_FOLDER = 0x10
"""The bit of `external_attr` that makes a zip entry a folder, whatever its name."""
MANIFEST = "manifest.json"
FIXED = ("README.txt", "events.jsonl", "documents.jsonl", "chunks.jsonl")
FOLDERS = ("intake/", "prompts/", "derived/")

MAX_MEMBERS = 200_000
MAX_BYTES = 8 * 2**30
"""Decompressed bytes of all members together."""
MAX_MEMBER = 2 * 2**30
"""Decompressed bytes of one member, and bytes of one payload: they are held in memory."""
MAX_RECORD = 2 * 2**30
"""Decompressed bytes of the events, documents and chunks: they are held in memory together."""
MAX_PAYLOADS = 64 * 2**30
"""Bytes of all payloads together, shared chunks counted each time."""
MAX_MANIFEST = 64 * 2**20
MAX_LINE = 64 * 2**20
MAX_DENSE = 16 * 2**20
"""Bytes that a member may unpack to from anything; beyond them, how dense it may be is limited."""
MAX_RATIO = 100
"""How many times its packed size a larger member may unpack to; zeros give 1,000."""
BLOCK = 2**20

_LOCAL = struct.Struct("<4s5H3L2H")
_END = struct.Struct("<4s4H2LH")
_ZIP64_FROM = 2**31 - 1
"""Sizes and offsets above it are written in a zip64 field, by zipfile's rule."""


class Archive:
    """A zip file that is not trusted: every member is the manifest's, whole and no larger."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.exists():
            raise CaseNotFound(f"{path}: there is no such package")
        try:
            with translated(path):
                self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError, struct.error):
            raise PackageRefused(f"{path}: is not a zip file, or it is cut off") from None
        try:
            self._check_layout()
            self._infos = self._check_directory()
            raw = b"".join(self._read(MANIFEST, self._infos[MANIFEST].file_size))
            self.identity = canonical.digest(raw)
            self.manifest = self._check_manifest(raw)
            self._members = {m["name"]: m for m in self.manifest["members"]}
        except BaseException:
            self._zip.close()
            raise

    def close(self) -> None:
        self._zip.close()

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield a member's bytes; the last block only if size and digest are the manifest's."""
        member = self._members.get(name)
        if member is None:
            raise PackageRefused(f"{self._path}: has no member {name!r}")
        sha256 = hashlib.sha256()
        for block in self._read(name, member["size"]):
            sha256.update(block)
            yield block
        if sha256.hexdigest() != member["sha256"]:
            raise PackageRefused(
                f"{self._path}: {name!r} has sha256 {sha256.hexdigest()}, "
                f"the manifest says {member['sha256']}"
            )

    def lines(self, name: str) -> Iterator[bytes]:
        """Yield a member's lines, without their line feeds."""
        rest = b""
        for block in self.blocks(name):
            *lines, rest = (rest + block).split(b"\n")
            yield from lines
            if len(rest) > MAX_LINE:
                raise self._refuse(f"{name!r} has a line of more than {MAX_LINE} bytes")
        if rest:
            raise self._refuse(f"{name!r} does not end with a line feed")

    def _refuse(self, what: str) -> PackageRefused:
        return PackageRefused(f"{self._path}: {what}; the package was refused")

    def _check_layout(self) -> None:
        """Refuse bytes before, between and after the members, and two headers that disagree: stock
        tools read past the ones and differ on the others.
        """
        end = 0
        with translated(self._path), self._path.open("rb") as file:
            for info in self._zip.infolist():
                file.seek(info.header_offset)
                header = file.read(_LOCAL.size)
                if info.header_offset != end or len(header) != _LOCAL.size:
                    raise self._refuse("has bytes outside its members")
                if not _same_headers(info, header):
                    raise self._refuse(
                        f"member {info.orig_filename[:80]!r} has headers that disagree"
                    )
                name, extra = struct.unpack("<26x2H", header)
                end += _LOCAL.size + name + extra + info.compress_size
            file.seek(-_END.size, 2)
            last = file.read()
        if end != self._zip.start_dir or not self._is_end(last):
            raise self._refuse("has bytes outside its members")

    def _is_end(self, record: bytes) -> bool:
        """Tell whether the last bytes are an end record: one disk, all members, no comment."""
        mark, disk, first, here, count, _, offset, comment = _END.unpack(record)
        members = min(len(self._zip.infolist()), 0xFFFF)
        return (
            mark == b"PK\5\6"
            and disk == first == comment == 0
            and here == count == members
            and offset in (self._zip.start_dir, 0xFFFFFFFF)
        )

    def _check_directory(self) -> dict[str, zipfile.ZipInfo]:
        infos = self._zip.infolist()
        if len(infos) > MAX_MEMBERS:
            raise self._refuse(f"has {len(infos)} members, more than {MAX_MEMBERS}")
        sizes = {info.filename: info.file_size for info in infos}
        if sum(sizes.values()) > MAX_BYTES or max(sizes.values(), default=0) > MAX_MEMBER:
            raise self._refuse(f"would unpack to more than {MAX_BYTES} bytes, {MAX_MEMBER} each")
        if sum(sizes.get(name, 0) for name in FIXED) > MAX_RECORD:
            raise self._refuse(f"its record would unpack to more than {MAX_RECORD} bytes")
        if not infos or infos[0].filename != MANIFEST or infos[0].file_size > MAX_MANIFEST:
            raise self._refuse(f"does not begin with a {MANIFEST}")
        by_name: dict[str, zipfile.ZipInfo] = {}
        alike: set[str] = set()
        for info in infos:
            if problem := _member_problem(info, by_name) or _name_problem(info.filename, alike):
                raise self._refuse(f"member {info.orig_filename[:80]!r} {problem}")
            by_name[info.filename] = info
        return by_name

    def _check_manifest(self, raw: bytes) -> dict[str, Any]:
        try:
            manifest = canonical.from_bytes(raw)
            form = manifest["format"]
            if type(form) is int and form > FORMAT:
                raise self._refuse(f"has format {form}, this release reads {FORMAT}")
            if not canonical.same(form, FORMAT) or not _manifest_ok(manifest):
                raise ValueError
            listed = [(m["name"], m["size"]) for m in manifest["members"]]
        except (CanonicalError, KeyError, TypeError, ValueError, AttributeError):
            raise self._refuse("has a malformed manifest") from None
        present = [(i.filename, i.file_size) for n, i in self._infos.items() if n != MANIFEST]
        if listed != present:
            odd = sorted({n for n, _ in set(listed) ^ set(present)}) or ["their order"]
            raise self._refuse(f"members are not those of its manifest: {odd[0][:80]!r}")
        if [name for name, _ in listed[: len(FIXED)]] != list(FIXED):
            raise self._refuse(f"does not hold {', '.join(FIXED)} in this order")
        return manifest  # type: ignore[no-any-return]

    def _read(self, name: str, size: int) -> Iterator[bytes]:
        left = size
        try:
            with self._zip.open(self._infos[name]) as member:
                while block := member.read(min(BLOCK, left + 1)):
                    left -= len(block)
                    if left < 0:
                        raise self._refuse(f"{name!r} is larger than it says")
                    yield block
        except _UNREADABLE as error:
            raise self._refuse(f"{name!r} cannot be read ({error})") from None
        if left:
            raise self._refuse(f"{name!r} is shorter than it says")


_UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError),
    *(ValueError, struct.error),
)


def is_hex(value: Any, size: int) -> bool:
    """Tell whether a value is `size` bytes in lower-case hex."""
    return type(value) is str and re.fullmatch(f"[0-9a-f]{{{2 * size}}}", value) is not None


def is_bomb(size: int, packed: int) -> bool:
    """Tell whether a member that unpacks to `size` bytes is denser than any honest one."""
    return size > MAX_DENSE and size > MAX_RATIO * packed


def _same_headers(info: zipfile.ZipInfo, header: bytes) -> bool:
    """Tell whether a member's local header says what the directory says of it."""
    mark, _, flags, method, _, _, checksum, packed, size, _, extra = _LOCAL.unpack(header)
    large = info.file_size * 1.05 > _ZIP64_FROM
    sizes = (0xFFFFFFFF,) * 2 if large and extra else (info.compress_size, info.file_size)
    return (
        mark == b"PK\3\4"
        and (flags, method, checksum) == (info.flag_bits, info.compress_type, info.CRC)
        and (packed, size) == sizes
        and extra == (20 if large and extra else 0)
    )


def _manifest_ok(manifest: dict[str, Any]) -> bool:
    head = manifest["head"]
    manifest["case_id"].encode()  # a lone surrogate has no bytes to hash
    return (
        type(head["position"]) is int
        and is_hex(head["chain"], 32)
        and type(manifest["case_id"]) is str
        and type(manifest["trial_id"]) is str
        and type(manifest["package_id"]) in (str, type(None))
        and type(manifest["members"]) is list
        and all(
            type(m["name"]) is str and type(m["size"]) is int and is_hex(m["sha256"], 32)
            for m in manifest["members"]
        )
    )


def _member_problem(info: zipfile.ZipInfo, before: Mapping[str, Any]) -> str | None:
    name = info.filename
    if name in before:
        return "occurs twice"
    if info.orig_filename != name or "\\" in name or ":" in name or not is_safe_path(name):
        return "has a name that leads outside"
    if name not in (MANIFEST, *FIXED) and not name.startswith(FOLDERS):
        return "does not belong in a package"
    if info.flag_bits & 0x1:
        return "is encrypted"
    if info.flag_bits & ~0x800:  # only the one that says that the name is UTF-8
        return "has a flag that packages do not use"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is packed in a way that packages do not use"
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG) or info.external_attr & DOS_FOLDER:
        return "is a link or another special file"
    if info.comment or (info.extra and not _needs_zip64(info)):
        return "has a comment or a field that packages do not use"
    if is_bomb(info.file_size, info.compress_size):
        return f"would unpack to {info.file_size} bytes from {info.compress_size}: a bomb"
    return None


def _needs_zip64(info: zipfile.ZipInfo) -> bool:
    sizes = info.file_size, info.compress_size, info.header_offset
    return max(sizes) > _ZIP64_FROM and info.extra[:2] == b"\1\0"


def _name_problem(name: str, before: set[str]) -> str | None:
    """Refuse a name that some file systems take for another member's; intake names are given."""
    if name.startswith("intake/"):
        return None
    alike = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
    if alike in before:
        return "differs from another one in capitals or accents only"
    before.add(alike)
    return None
