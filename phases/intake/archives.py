"""Reads zip and tar archives as streams: nothing is ever written to disk by a member's name.

Each archive is gone through twice: once over the names and sizes, so that a hostile or damaged one
is refused before anything is taken; once over the contents. What an archive claims is checked, and
what comes out is counted: a lying header cannot make it larger than the limits.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, Protocol, cast

from phases.intake.errors import IntakeError, reason_of, shown
from phases.intake.files import open_regular, require
from phases.intake.limits import (
    CHUNK,
    MAX_ARCHIVE,
    MAX_NAME,
    MAX_RATIO,
    MAX_UNPACKED,
    MAX_ZIP_DIRECTORY,
    RATIO_FROM,
)
from phases.intake.members import Member, Skipped
from phases.intake.names import MemberNames
from phases.intake.rules import Rules

_DAMAGE = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError,
    struct.error, OverflowError, NotImplementedError, RuntimeError, MemoryError, IndexError,
    KeyError, OSError,
)  # fmt: skip
"""What the standard library raises for archives that are not what they should be."""

_UNREADABLE = (
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd"),
    (b"7z\xbc\xaf\x27\x1c", "is a 7z archive"),
    (b"Rar!", "is a RAR archive"),
    (b"\x1f\x9d", "is compressed with compress (.Z)"),
)
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_COMPRESSED = ((b"\x1f\x8b", "gz"), (b"BZh", "bz2"), (b"\xfd7zXZ\x00", "xz"))
_BLOCK = 512


_Members = Generator[Member | Skipped, None, None]


class Survey(NamedTuple):
    """What is known of an archive after the first pass: its form and its one top folder, or ``."""

    form: str
    top: str


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def survey(path: Path) -> Survey:
    """Check an archive's names, sizes, members and completeness.

    Raises:
        IntakeError: for anything that is not a harmless, whole zip or tar archive.
    """
    form = _form(path)
    names = MemberNames(shown(path.name))
    with _refusing(names):
        if form == "zip":
            with _zip(path, names) as archive:
                for info in archive.infolist():
                    _zip_member(archive, info, names)
        else:
            with _tar(path, form, names) as stream:
                for member in stream:
                    _tar_member(member, names)
    return Survey(form, names.top())


def read(path: Path, found: Survey, rules: Rules) -> Iterator[Member | Skipped]:
    """Yield what an archive holds, paths without its single top folder.

    Raises:
        IntakeError: as `survey`; a member's contents may turn out damaged only here.
    """
    names = MemberNames(shown(path.name))
    left_out: set[str] = set()
    members = _zip_members(path, names) if found.form == "zip" else _tar_members(path, found, names)
    with closing(members):
        for member in members:
            inner = member.path.partition("/")[2] if found.top else member.path
            decided = rules.in_package(inner)
            if decided is None:
                yield member._replace(path=inner)
            elif decided[0] not in left_out:
                left_out.add(decided[0])
                yield Skipped(*decided)


def _form(path: Path) -> str:
    size = require(path, "source").st_size
    if size > MAX_ARCHIVE:
        raise _unfit(path, f"has {size:,} bytes, at most {MAX_ARCHIVE:,} are taken in")
    try:
        with open_regular(path) as file:
            head = file.read(_BLOCK)
    except OSError as error:
        raise _unfit(path, f"cannot be read: {reason_of(error)}") from None
    if head.startswith(_ZIP):
        return "zip"
    for magic, form in _COMPRESSED:
        if head.startswith(magic):
            return form
    for magic, what in _UNREADABLE:
        if head.startswith(magic):
            raise _unfit(path, f"{what}; unpack it and give the folder")
    if head[257:262] == b"ustar":
        return "tar"
    what = (
        "is empty" if not head else "is neither a folder nor an archive (zip, tar, tar.gz/bz2/xz)"
    )
    raise _unfit(path, f"{what}; give the source's folder, an archive or GIT@REV")


def _unfit(path: Path, what: str) -> IntakeError:
    return IntakeError(f"source {shown(path)}: {what}")


@contextmanager
def _refusing(names: MemberNames) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        detail = reason_of(error) if isinstance(error, OSError) else str(error)
        detail = shown(detail.split("\n", 1)[0]) or type(error).__name__
        raise names.refusal(f"is damaged or incomplete ({detail})") from None


class _Meter:
    """Counts what comes out of an archive and remembers its end."""

    def __init__(self, file: _Readable | None, packed: int, names: MemberNames) -> None:
        self._file, self._names = file, names
        self._limit = min(MAX_UNPACKED, max(RATIO_FROM, packed * MAX_RATIO))
        self._packed = packed
        self.total = 0
        self._last = (b"", b"")

    def read(self, size: int = CHUNK) -> bytes:
        assert self._file is not None
        data = self._file.read(size)
        self.count(len(data))
        if data:
            self._last = (self._last[1], data)
        return data

    def count(self, size: int) -> None:
        """Add unpacked bytes; refuses an archive that holds too many."""
        self.total += size
        if self.total > self._limit:
            what = f"{MAX_RATIO} times its size" if self._limit < MAX_UNPACKED else "the limit"
            raise self._names.refusal(
                f"unpacks to more than {self._limit:,} bytes, {what}: a bomb, or too large"
            )

    def ends_with_zeros_from(self, offset: int) -> bool:
        """Tell whether a zero block stands at `offset`: the end that every whole tar has."""
        end = b"".join(self._last)
        start = offset - (self.total - len(end))
        block = end[start : start + _BLOCK] if start >= 0 else b""
        return len(block) == _BLOCK and not block.strip(b"\0")


# tar --------------------------------------------------------------------------------------------


class _TarStream:
    """A tar read once from front to end, and checked to have an end."""

    def __init__(self, file: IO[bytes], size: int, names: MemberNames) -> None:
        self._names = names
        self.meter = _Meter(file, size, names)
        self._tar = tarfile.open(  # noqa: SIM115 - its file is closed by the owner
            fileobj=cast("Any", self.meter),
            mode="r|",
            bufsize=CHUNK,
            encoding="utf-8",
            errors="surrogateescape",
        )

    def __iter__(self) -> Iterator[tarfile.TarInfo]:
        while (member := self._tar.next()) is not None:
            cast("Any", self._tar).members = []  # they would pile up
            if member.size < 0:
                raise tarfile.ReadError("a member has a negative size")
            yield member
        if not self.meter.ends_with_zeros_from(self._tar.offset):
            raise tarfile.ReadError(f"the archive breaks off at byte {self._tar.offset:,}")
        while self.meter.read():  # to the end, so that a checksum is checked
            pass

    def contents(self, member: tarfile.TarInfo) -> Iterator[bytes]:
        file = self._tar.extractfile(member)
        assert file is not None, "a regular file"
        left = member.size
        while left and (data := file.read(min(CHUNK, left))):
            left -= len(data)
            if member.issparse():
                self.meter.count(len(data))  # holes come from nothing
            yield data
        if left:
            raise tarfile.ReadError("unexpected end of data")


@contextmanager
def _tar(path: Path, form: str, names: MemberNames) -> Iterator[_TarStream]:
    opened: Any = {"gz": gzip.open, "bz2": bz2.open, "xz": lzma.open}.get(form)
    with open_regular(path) as raw, opened(raw) if opened else _same(raw) as file:
        yield _TarStream(file, path.stat().st_size, names)


@contextmanager
def _same(file: BinaryIO) -> Iterator[BinaryIO]:
    yield file


def _tar_member(member: tarfile.TarInfo, names: MemberNames) -> Member | Skipped | None:
    """Check a member; return what it is (a Member without contents), or None for a folder."""
    path = names.accept(member.name, folder=member.isdir())
    if member.isdir():
        return None
    if member.issym() or member.islnk():
        names.link(path, member.linkname, hard=member.islnk())
        return Skipped(path, "link")
    if not member.isreg():
        raise names.refusal(f"member {shown(member.name)} is a device, FIFO or unknown kind")
    return Member(path, iter(()))


def _tar_members(path: Path, found: Survey, names: MemberNames) -> _Members:
    with _refusing(names), _tar(path, found.form, names) as stream:
        for info in stream:
            member = _tar_member(info, names)
            if isinstance(member, Member):
                yield member._replace(chunks=_guarded(stream.contents(info), names))
            elif member is not None:
                yield member


def _guarded(chunks: Iterator[bytes], names: MemberNames) -> Iterator[bytes]:
    """Pass contents on; damage is refused here too, where the reader of a member meets it."""
    with _refusing(names):
        yield from chunks


# zip --------------------------------------------------------------------------------------------


@contextmanager
def _zip(path: Path, names: MemberNames) -> Iterator[zipfile.ZipFile]:
    with open_regular(path) as raw:
        _check_directory(raw, names)
        with zipfile.ZipFile(raw) as archive:
            yield archive


def _check_directory(raw: BinaryIO, names: MemberNames) -> None:
    """Refuse a central directory too large to be loaded whole, which `zipfile` would do."""
    size = raw.seek(0, 2)
    raw.seek(max(0, size - 66_000))
    tail = raw.read(66_000)
    at = tail.rfind(b"PK\x05\x06")
    if at >= 0 and len(tail) - at >= 22:
        length = struct.unpack_from("<L", tail, at + 12)[0]
        wide = tail.rfind(b"PK\x06\x06", 0, at)
        if length == 0xFFFFFFFF and wide >= 0 and len(tail) - wide >= 48:
            length = struct.unpack_from("<Q", tail, wide + 40)[0]
        if length > MAX_ZIP_DIRECTORY:
            raise names.refusal(f"has a directory of {length:,} bytes")
    raw.seek(0)


def _zip_member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, names: MemberNames
) -> Member | Skipped | None:
    """Check a member; return what it is (a Member without contents), or None for a folder."""
    name = info.orig_filename  # `filename` is cut at a NUL
    mode = info.external_attr >> 16 if info.create_system == 3 else 0
    folder = name.endswith("/") or stat.S_ISDIR(mode)
    path = names.accept(name, folder=folder)
    if info.flag_bits & 0x1:
        raise names.refusal(f"member {shown(name)} is encrypted; unpack it and give the folder")
    if folder:
        return None
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
        raise names.refusal(
            f"member {shown(name)} is packed with method {info.compress_type}, not deflate or bzip2"
        )
    if stat.S_ISLNK(mode):
        if info.file_size > MAX_NAME:
            raise names.refusal(f"member {shown(name)} is a link with an endless target")
        names.link(path, archive.read(info).decode("utf-8", "surrogateescape"))
        return Skipped(path, "link")
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise names.refusal(f"member {shown(name)} is a device, FIFO or unknown kind")
    return Member(path, iter(()))


def _zip_members(path: Path, names: MemberNames) -> _Members:
    with _refusing(names), _zip(path, names) as archive:
        meter = _Meter(None, path.stat().st_size, names)
        for info in archive.infolist():
            member = _zip_member(archive, info, names)
            if isinstance(member, Member):
                yield member._replace(chunks=_guarded(_zip_contents(archive, info, meter), names))
            elif member is not None:
                yield member


def _zip_contents(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, meter: _Meter
) -> Iterator[bytes]:
    with archive.open(info) as file:
        while data := file.read(CHUNK):
            meter.count(len(data))
            yield data
        if file.tell() != info.file_size:
            raise zipfile.BadZipFile(f"{info.orig_filename}: unexpected end of data")
