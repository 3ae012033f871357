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
from ledger.errors import (
    CanonicalError,
    CaseNotFound,
    NewerPackage,
    NotAPackage,
    PackageRefused,
)
from ledger.storage import translated
from ledger.trees import is_safe_path

FORMAT = 1
UTF8 = 0x800
"""The bit of a member's flags that says that its name is UTF-8."""
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
        with translated(path):
            self._file = path.open("rb")
        try:
            self._zip = self._opened()
            self._starts: dict[int, int] = {}  # offset of a member's header: of its data
            self._read_whole: set[str] = set()
            self._check_layout()
            self._infos = self._check_directory()
            raw = b"".join(self._read(MANIFEST, self._infos[MANIFEST].file_size))
            self.identity = canonical.digest(raw)
            self.manifest = self._check_manifest(raw)
            self._members = {m["name"]: m for m in self.manifest["members"]}
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        self._file.close()

    def _opened(self) -> zipfile.ZipFile:
        try:
            with translated(self._path):
                return zipfile.ZipFile(self._file)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError, struct.error):
            self._file.seek(0)
            if self._file.read(2) == b"PK":
                raise self._refuse(
                    "is not a zip file that can be read: cut off or damaged"
                ) from None
            raise NotAPackage(f"{self._path}: is not a zip file") from None

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield a member's bytes; the last block only if size and digest are the manifest's."""
        member = self._members.get(name)
        if member is None:
            raise PackageRefused(f"{self._path}: has no member {name!r}")
        sha256, last = hashlib.sha256(), b""
        for block in self._read(name, member["size"]):
            sha256.update(block)
            if last:
                yield last
            last = block
        if sha256.hexdigest() != member["sha256"]:
            raise PackageRefused(
                f"{self._path}: {name!r} has sha256 {sha256.hexdigest()}, "
                f"the manifest says {member['sha256']}"
            )
        if last:
            yield last
        self._read_whole.add(name)

    def check_unread(self) -> None:
        """Check the members that nothing has read yet: a second copy of a file, the README.

        Raises:
            PackageRefused: one is not what the manifest says.
        """
        for name in self._members.keys() - self._read_whole:
            for _ in self.blocks(name):
                pass

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
        with translated(self._path):
            for info in self._zip.infolist():
                if info.header_offset != end:
                    raise self._refuse("has bytes outside its members")
                self._starts[end] = self._data_start(info)
                end = self._starts[end] + info.compress_size
            self._file.seek(-_END.size, 2)
            last = self._file.read()
        if end != self._zip.start_dir or not self._is_end(last):
            raise self._refuse("has bytes outside its members")

    def _data_start(self, info: zipfile.ZipInfo) -> int:
        """Return where a member's data begins, its local header checked."""
        self._file.seek(info.header_offset)
        header = self._file.read(_LOCAL.size)
        if len(header) != _LOCAL.size:
            raise self._refuse("has bytes outside its members")
        name, extra = struct.unpack("<26x2H", header)
        if not _same_headers(info, header, self._file.read(name)):
            raise self._refuse(f"member {info.orig_filename[:80]!r} has headers that disagree")
        return int(info.header_offset + _LOCAL.size + name + extra)

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
                raise NewerPackage(
                    f"{self._path}: has format {form}, this release reads up to {FORMAT}; "
                    "use the release that wrote it"
                )
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
        left, checksum = size, 0
        info = self._infos[name]
        try:
            for block in self._unpacked(info):
                left -= len(block)
                if left < 0:
                    raise self._refuse(f"{name!r} is larger than it says")
                checksum = zlib.crc32(block, checksum)
                if block:
                    yield block
        except (zlib.error, EOFError, OSError) as error:
            raise self._refuse(f"{name!r} cannot be read ({error})") from None
        if left:
            raise self._refuse(f"{name!r} is shorter than it says")
        if checksum != info.CRC:
            raise self._refuse(f"{name!r} cannot be read (its checksum differs)")

    def _unpacked(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        """Yield a member's bytes: exactly those that its packed ones give, none left over.

        `zipfile` reads up to the end of the Deflate stream, whatever stands behind it.
        """
        if info.compress_type == zipfile.ZIP_STORED:
            yield from self._packed(info)
            return
        engine = zlib.decompressobj(-zlib.MAX_WBITS)
        for block in self._packed(info):
            if engine.eof:
                raise EOFError("it has bytes after its end")
            while block:
                yield engine.decompress(block, BLOCK)
                block = engine.unconsumed_tail
        yield engine.flush()
        if not engine.eof or engine.unused_data:
            raise EOFError("it does not end where its packed bytes do")

    def _packed(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        at, left = self._starts[info.header_offset], info.compress_size
        while left:
            self._file.seek(at)  # another member may be read in between
            block = self._file.read(min(BLOCK, left))
            if not block:
                raise EOFError("the file is cut off")
            at, left = at + len(block), left - len(block)
            yield block


def is_hex(value: Any, size: int) -> bool:
    """Tell whether a value is `size` bytes in lower-case hex."""
    return type(value) is str and re.fullmatch(f"[0-9a-f]{{{2 * size}}}", value) is not None


def is_bomb(size: int, packed: int) -> bool:
    """Tell whether a member that unpacks to `size` bytes is denser than any honest one."""
    return size > MAX_DENSE and size > MAX_RATIO * packed


def _same_headers(info: zipfile.ZipInfo, header: bytes, name: bytes) -> bool:
    """Tell whether a member's local header says what the directory says of it."""
    mark, _, flags, method, time, date, checksum, packed, size, _, extra = _LOCAL.unpack(header)
    large = info.file_size * 1.05 > _ZIP64_FROM
    sizes = (0xFFFFFFFF,) * 2 if large and extra else (info.compress_size, info.file_size)
    return (
        mark == b"PK\3\4"
        and (flags, method, checksum) == (info.flag_bits, info.compress_type, info.CRC)
        and (date, time) == _dos_time(info)
        and name.decode("utf-8" if flags & UTF8 else "cp437", "replace") == info.orig_filename
        and (packed, size) == sizes
        and extra == (20 if large and extra else 0)
    )


def _dos_time(info: zipfile.ZipInfo) -> tuple[int, int]:
    year, month, day, hour, minute, second = info.date_time
    return (year - 1980) << 9 | month << 5 | day, hour << 11 | minute << 5 | second // 2


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
    if info.flag_bits & ~UTF8:
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
