"""A hundred and more hostile or odd inputs: one clear line each, or a correct intake."""

# ruff: noqa: E501 - a table of inputs reads best with one input a line

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import socket
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phases.intake import IntakeError, IntakeRequest
from phases.intake.limits import MAX_REPORT
from tests.phases.intake.making import (
    Result,
    database,
    folder,
    intake,
    report,
    request,
    special,
    tar,
    write,
    zip_entry,
    zipped,
)

Build = Callable[[Path], IntakeRequest]
Check = Callable[[Result], bool]
ROOT = os.geteuid() == 0


def source(make: Callable[[Path], Path | str]) -> Build:
    return lambda tmp: request(tmp, make(tmp))


def said(data: bytes | str) -> Build:
    return lambda tmp: request(tmp, report=report(tmp, data))


def logged(data: bytes | str, name: str = "app.log") -> Build:
    return lambda tmp: request(tmp, logs=(write(tmp / name, data),))


def base(make: Callable[[Path], Path]) -> Build:
    return lambda tmp: request(tmp, databases=(make(tmp),))


def filed(data: bytes | str, name: str = "odd.py") -> Build:
    return source(lambda tmp: _with(folder(tmp), name, data))


def _with(root: Path, name: str | bytes, data: bytes | str = b"x\n") -> Path:
    write(root / os.fsdecode(name), data)
    return root


def _linked(tmp: Path, target: str | Path, name: str = "link") -> Path:
    root = folder(tmp)
    (root / name).symlink_to(target)
    return root


def _fifo(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    return path


def _socket(root: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(root)  # a socket's path is short
        try:
            server.bind("s")
        finally:
            os.chdir(here)
    return root


def _sparse(path: Path, size: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
    return path


def _locked(path: Path, mode: int = 0) -> Path:
    path.chmod(mode)
    return path


def _deep(tmp: Path) -> Path:
    """Folders deeper than the longest path that can be opened by name."""
    root = folder(tmp)
    here = os.open(root, os.O_RDONLY)
    for _ in range(60):
        os.mkdir("d" * 100, dir_fd=here)
        below = os.open("d" * 100, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    return root


def _bomb(tmp: Path) -> Path:
    path = tmp / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for n in range(80):
            archive.writestr(f"{n}.txt", b"0" * (1 << 20))
    return path


def _lying_zip(tmp: Path) -> Path:
    """A member that claims to be small."""
    path = zipped(tmp / "lies.zip", ("a.txt", b"a" * 5000))
    data = bytearray(path.read_bytes())
    at = data.rfind(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<L", 10)
    return write(path, bytes(data))


def _tar(*members: Any, name: str = "a.tar", mode: str = "w") -> Build:
    return source(lambda tmp: tar(tmp / name, members, mode))


def _zip(*members: Any) -> Build:
    return source(lambda tmp: zipped(tmp / "a.zip", *members))


def _cut(make: Callable[[Path], Path], keep: float) -> Callable[[Path], Path]:
    def cut(tmp: Path) -> Path:
        path = make(tmp)
        data = path.read_bytes()
        return write(path, data[: int(len(data) * keep)])

    return cut


def _noise(size: int) -> bytes:
    return random.Random(7).randbytes(size)


def _tgz(tmp: Path) -> Path:
    return tar(tmp / "a.tgz", [("p/a.py", _noise(40_000)), ("p/b.py", b"x\n")], "w:gz")


def _plain_tar(tmp: Path) -> Path:
    return tar(tmp / "a.tar", [("p/a.py", b"a" * 3000), ("p/b.py", b"b" * 3000)])


def _at_member_boundary(tmp: Path) -> Path:
    path = _plain_tar(tmp)
    return write(path, path.read_bytes()[: 512 + 3072])


def _damaged_second_header(tmp: Path) -> Path:
    path = _plain_tar(tmp)
    data = bytearray(path.read_bytes())
    data[512 + 3072 : 512 + 3072 + 20] = b"\xff" * 20
    return write(path, bytes(data))


def _encrypted_zip(tmp: Path) -> Path:
    path = zipped(tmp / "e.zip", ("a.txt", b"secret"))
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.rfind(b"PK\x01\x02") + 8] |= 1
    return write(path, bytes(data))


def _bad_crc(tmp: Path) -> Path:
    path = zipped(tmp / "c.zip", ("a.txt", b"hello world"), method=zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    data[data.find(b"hello")] = ord("j")
    return write(path, bytes(data))


def _negative_tar(tmp: Path) -> Path:
    info = tarfile.TarInfo("n")
    block = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    block[124:136] = b"\xff" * 12  # minus one, in base 256
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return write(tmp / "neg.tar", bytes(block) + bytes(1024))


def _broken_db(tmp: Path) -> Path:
    rows = ("CREATE TABLE t (a)", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 3000)"
            " INSERT INTO t SELECT hex(randomblob(40)) FROM n")  # fmt: skip
    path = database(tmp / "b.db", *rows)
    data = bytearray(path.read_bytes())
    for page in range(2, 8):
        data[page * 4096 : page * 4096 + 200] = _noise(200)
    return write(path, bytes(data))


def _short_db(tmp: Path) -> Path:
    path = _broken_db(tmp)
    return write(path, path.read_bytes()[:9000])


def _super_journal(tmp: Path) -> Path:
    path = database(tmp / "j.db", "PRAGMA journal_mode = WAL", "CREATE TABLE t (a)")
    data = bytearray(path.read_bytes())
    write(tmp / "j.db-wal", b"x" * 100)
    write(tmp / "j.db-journal", b"\0" * 512 + bytes.fromhex("d9d505f920a163d7"))
    return write(path, bytes(data))


def has(text: str) -> Check:
    return lambda result: text in result.file("odd.py").decode(result.files()["odd.py"]["encoding"])


def binary(path: str) -> Check:
    return lambda result: (
        result.files()[path]["media"] == "binary" and not result.files()[path]["stored"]
    )


def skips(path: str, reason: str) -> Check:
    return lambda result: result.skipped()[path] == reason


def encoded(kind: str, encoding: str) -> Check:
    return lambda result: result.one(kind).encoding == encoding


def takes(path: str) -> Check:
    return lambda result: path in result.files()


REFUSED: dict[str, tuple[Build, str]] = {
    # paths
    "missing report": (lambda t: request(t, report=t / "no.md"), "no such file"),
    "no report": (lambda t: request(t, report=None), "needs a report"),
    "report is a folder": (lambda t: request(t, report=t), "is a folder"),
    "report is a FIFO": (lambda t: request(t, report=_fifo(t / "f")), "is a FIFO"),
    "report is a device": (lambda t: request(t, report=Path("/dev/zero")), "is a device"),
    "report with NUL in its name": (lambda t: request(t, report=Path("a\0b")), "no possible file name"),
    "report with an endless name": (lambda t: request(t, report=t / ("n" * 5000)), "file name too long"),
    "report behind a dangling link": (lambda t: request(t, report=_linked(t, "gone") / "link"), "no such file"),
    "report behind a link to itself": (lambda t: request(t, report=_linked(t, "link") / "link"), "symbolic links"),
    "file name with ANSI codes is escaped": (lambda t: request(t, report=t / "\x1b[31mred\n.md"), r"\x1b[31mred\n.md"),
    "empty report": (said(b""), "is empty"),
    "blank report": (said("\n \t\r\n\n"), "is empty"),
    "report of a byte order mark only": (said(b"\xef\xbb\xbf"), "is empty"),
    "report that is an image": (said(b"\x89PNG\r\n\x1a\n" + _noise(50)), "is a PNG image"),
    "report that is a zip": (said(b"PK\x03\x04" + _noise(50)), "is a zip archive"),
    "report of 50 MB": (lambda t: request(t, report=_sparse(t / "r.md", 50_000_000)), f"at most {MAX_REPORT:,}"),
    "missing log": (lambda t: request(t, logs=(t / "no.log",)), "no such file"),
    "log is a folder": (lambda t: request(t, logs=(t,)), "is a folder"),
    "log is a FIFO": (lambda t: request(t, logs=(_fifo(t / "f.log"),)), "is a FIFO"),
    "log is gzipped": (logged(gzip.compress(b"ERROR")), "is gzip-compressed"),
    "sparse log of 10 GB": (lambda t: request(t, logs=(_sparse(t / "l.log", 10 << 30),)), "cut it down"),
    "missing source": (source(lambda t: t / "no"), "no such folder or file"),
    "source with NUL": (source(lambda t: "a\0b"), "no such folder or file"),
    "source with an endless name": (source(lambda t: "x" * 9000), "no such folder or file"),
    "source is a URL": (source(lambda t: "https://example.org/x.git@main"), "no such folder or file"),
    "source is a single file": (source(lambda t: write(t / "one.py")), "neither a folder nor an archive"),
    "source is an empty file": (source(lambda t: write(t / "z.zip", b"")), "is empty"),
    "source is a FIFO": (source(lambda t: _fifo(t / "f")), "FIFO"),
    "empty source folder": (source(lambda t: (t / "e").mkdir() or t / "e"), "holds no file"),
    "source folder of ignored files only": (
        source(lambda t: write(t / "s" / ".gitignore", "*\n").parent), "holds no file"),
    "source is a 7z archive": (source(lambda t: write(t / "a.7z", b"7z\xbc\xaf\x27\x1c" + _noise(99))), "7z archive"),
    "source is zstd": (source(lambda t: write(t / "a.tar.zst", b"\x28\xb5\x2f\xfd" + _noise(99))), "zstd"),
    "revision of no repository": (source(lambda t: f"{folder(t)}@main"), "not the top folder of a git repository"),
    "bad include pattern": (lambda t: request(t, folder(t), include=("!",)), "--include !: is no pattern"),
    "bad exclude pattern": (lambda t: request(t, folder(t), exclude=("[z-a]",)), "is no pattern"),
    "blank exclude pattern": (lambda t: request(t, folder(t), exclude=("  ",)), "is no pattern"),
    "endless .gitignore": (
        source(lambda t: _with(folder(t), ".gitignore", "a\n" * 3000)), "more than 2,000 lines"),
    "empty observation": (lambda t: request(t, observations=(" ",)), "is empty"),
    # tar
    "tar member above": (_tar(("../../etc/passwd", b"x")), "../../etc/passwd leads outside the archive; nothing"),
    "tar member above in the middle": (_tar(("a/../../b", b"x")), "leads outside"),
    "tar member above that stays inside": (_tar(("a/../b", b"x")), "leads outside"),
    "tar absolute member": (_tar(("/etc/passwd", b"x")), "absolute name"),
    "tar drive letter": (_tar(("C:/x", b"x")), "absolute name"),
    "tar backslash": (_tar(("..\\..\\x", b"x")), "backslash"),
    "tar ANSI name is escaped": (_tar(("\x1b[2J/../x", b"x")), r"member \x1b[2J/../x leads"),
    "tar symlink outside": (_tar(special("a/l", tarfile.SYMTYPE, "../../x")), "outside the archive"),
    "tar absolute symlink": (_tar(special("l", tarfile.SYMTYPE, "/etc")), "link to /etc, outside"),
    "tar hard link outside": (_tar(special("a/l", tarfile.LNKTYPE, "../x")), "outside the archive"),
    "tar character device": (_tar(special("d", tarfile.CHRTYPE)), "device"),
    "tar block device": (_tar(special("d", tarfile.BLKTYPE)), "device"),
    "tar FIFO": (_tar(special("d", tarfile.FIFOTYPE)), "FIFO"),
    "tar duplicate": (_tar(("a", b"1"), ("a", b"2")), "member a occurs twice"),
    "tar duplicate after normalising": (_tar(("a/b", b"1"), ("./a//b", b"2")), "is also a/b"),
    "tar duplicate in another Unicode form": (_tar(("\u00e9", b"1"), ("e\u0301", b"2")), "is also"),
    "tar file below a file": (_tar(("a", b"1"), ("a/b", b"2")), "which is a file"),
    "tar file over a folder": (_tar(("a/b", b"1"), ("a", b"2")), "is also a folder"),
    "tar of folders only": (_tar(special("a", tarfile.DIRTYPE)), "holds no file"),
    "tar without members": (_tar(), "neither a folder nor an archive"),
    "tar very deep": (_tar(("d/" * 150 + "f", b"1")), "folders deep"),
    "tar with an endless name": (_tar(("n" * 5000, b"1")), "more than 4,096 bytes"),
    "tar member without a name": (_tar(("./", b"")), "has no name"),
    "tar cut in a member": (source(_cut(_plain_tar, 0.2)), "incomplete"),
    "tar cut between members": (source(_at_member_boundary), "breaks off"),
    "tar with a damaged header": (source(_damaged_second_header), "breaks off"),
    "tar with a negative size": (source(_negative_tar), "damaged"),
    "tar.gz cut": (source(_cut(_tgz, 0.5)), "incomplete"),
    "tar.gz without its checksum": (source(_cut(_tgz, 0.9999)), "incomplete"),
    "tar.bz2 cut": (source(_cut(lambda t: write(t / "a.tar.bz2", bz2.compress(_plain_tar(t).read_bytes())), 0.5)), "incomplete"),
    "tar.xz cut": (source(_cut(lambda t: write(t / "a.tar.xz", lzma.compress(_plain_tar(t).read_bytes())), 0.5)), "incomplete"),
    "gz of no tar": (source(lambda t: write(t / "a.gz", gzip.compress(b"hello " * 500))), "damaged"),
    "gz of nothing": (source(lambda t: write(t / "a.gz", gzip.compress(b""))), "damaged"),
    "tar.gz bomb": (source(lambda t: write(t / "b.tgz", gzip.compress(_sparse(t / "z", 80 << 20).read_bytes(), 1))), "a bomb"),
    "tar.gz bomb of one member": (source(lambda t: tar(t / "b.tgz", [("z", bytes(80 << 20))], "w:gz")), "a bomb"),
    # zip
    "zip member above": (_zip(("../x", b"x")), "leads outside"),
    "zip absolute member": (_zip(("/x", b"x")), "absolute name"),
    "zip drive letter": (_zip(("c:x", b"x")), "absolute name"),
    "zip backslash": (_zip(("a\\b", b"x")), "backslash"),
    "zip duplicate after normalising": (_zip(("a/b", b"x"), ("a/./b", b"y")), "is also a/b"),
    "zip symlink outside": (_zip((zip_entry("l", stat.S_IFLNK | 0o777), b"../etc")), "outside the archive"),
    "zip device": (_zip((zip_entry("d", stat.S_IFCHR | 0o777), b"")), "device"),
    "zip encrypted": (source(_encrypted_zip), "is encrypted"),
    "zip packed with LZMA": (source(lambda t: zipped(t / "a.zip", ("a", b"x"), method=zipfile.ZIP_LZMA)), "method 14"),
    "zip bomb": (source(_bomb), "a bomb"),
    "zip that lies about a size": (source(_lying_zip), "damaged"),
    "zip with a bad checksum": (source(_bad_crc), "damaged"),
    "zip cut": (source(_cut(lambda t: zipped(t / "a.zip", ("a", _noise(9000))), 0.7)), "damaged"),
    "zip without members": (_zip(), "holds no file"),
    # databases
    "missing database": (base(lambda t: t / "no.db"), "no such file"),
    "database is a folder": (base(lambda t: t), "is a folder"),
    "database is a FIFO": (base(lambda t: _fifo(t / "f.db")), "is a FIFO"),
    "empty database file": (base(lambda t: write(t / "e.db", b"")), "is empty"),
    "database is text": (base(lambda t: write(t / "t.db", "id;name\n")), "is no SQLite database"),
    "database encrypted": (base(lambda t: write(t / "e.db", _noise(8192))), "or it is encrypted"),
    "database of a header only": (base(lambda t: write(t / "h.db", b"SQLite format 3\0" + bytes(40))), "cut off"),
    "database header of zeros": (base(lambda t: write(t / "h.db", b"SQLite format 3\0" + bytes(5000))), "damaged"),
    "database with damaged pages": (base(_broken_db), "is damaged"),
    "database cut short": (base(_short_db), "is damaged"),
    "database with a journal over several": (base(_super_journal), "transaction over several"),
    "sparse database of 10 GB": (
        base(lambda t: (_sparse(t / "s.db", 10 << 30), os.pwrite(fd := os.open(t / "s.db", os.O_WRONLY), b"SQLite format 3\0" + bytes(84), 0), os.close(fd), t / "s.db")[-1]),
        "at most"),
}  # fmt: skip

TAKEN: dict[str, tuple[Build, Check]] = {
    # text
    "source with a BOM": (filed(b"\xef\xbb\xbfx = 1\n"), lambda r: r.files()["odd.py"]["encoding"] == "utf-8-sig"),
    "source with two BOMs": (filed(b"\xef\xbb\xbf\xef\xbb\xbfx\n"), has("\ufeffx")),
    "source in latin-1": (filed("# Größe für Straße\n".encode("latin-1")), has("Größe für Straße")),
    "source in Shift-JIS": (filed(("# 日本語のコメントです。テスト\n" * 5).encode("cp932")), has("日本語のコメント")),
    "source in KOI8-R": (filed(("# Проверка размера файла\n" * 5).encode("koi8_r")), has("Проверка")),
    "source in UTF-16 LE with BOM": (filed("x = 1\n".encode("utf-16")), has("x = 1")),
    "source in UTF-16 BE with BOM": (filed(b"\xfe\xff" + "x = 1\n".encode("utf-16-be")), has("x = 1")),
    "source in UTF-32 with BOM": (filed(b"\xff\xfe\0\0" + "x = 1\n".encode("utf-32-le")), has("x = 1")),
    "UTF-16 with half a character": (filed(b"\xff\xfex\0y"), binary("odd.py")),
    "UTF-16 with a lone surrogate": (filed(b"\xff\xfe\x00\xd8x\0"), binary("odd.py")),
    "surrogates written as UTF-8": (filed(b"x = '\xed\xa0\x80'\n"), lambda r: r.files()["odd.py"]["stored"]),
    "UTF-8 with one bad byte": (filed(b"x = '\xff'\n" * 3), lambda r: r.files()["odd.py"]["media"] == "text"),
    "source with NUL": (filed(b"x = 1\0\n"), binary("odd.py")),
    "source of noise": (filed(_noise(5000)), binary("odd.py")),
    "noise without NUL": (filed(_noise(5000).replace(b"\0", b"")), binary("odd.py")),
    "empty source file": (filed(b""), lambda r: r.files()["odd.py"]["lines"] == 0),
    "line ends of all kinds": (filed(b"a\r\nb\rc\n\x0bd\x0ce\xc2\x85f"), lambda r: r.files()["odd.py"]["lines"] == 4),
    "old Macintosh line ends": (filed(b"a\rb\rc"), lambda r: r.files()["odd.py"]["lines"] == 3),
    "a huge file of CR LF": (filed(b"a\r\n" * 6_000_000), lambda r: r.files()["odd.py"]["lines"] == 6_000_000),
    "log of CR LF": (logged(b"fine\r\n" * 200 + b"ERROR x\r\n" + b"fine\r\n" * 200), lambda r: r.end().observations[-1].first_line == 199),
    "log of a progress bar": (logged(b"1%\r2%\r3%\r\n" * 100), lambda r: r.one("log").lines == 300),
    "no line feed at the end": (filed(b"a\nb"), lambda r: r.files()["odd.py"]["lines"] == 2),
    "a million short lines": (filed(b"\n" * 1_000_000), lambda r: r.files()["odd.py"]["lines"] == 1_000_000),
    "a line of 10 MB": (filed(b"a" * 10_000_000), lambda r: r.files()["odd.py"]["lines"] == 1),
    "a file over the limit": (filed(b"ab\n" * 7_000_000), lambda r: not r.files()["odd.py"]["stored"] and r.files()["odd.py"]["lines"] == 7_000_000),
    "sparse file of 300 MB": (source(lambda t: _sparse(folder(t) / "s", 300 << 20).parent), binary("s")),
    "report in UTF-16": (said("# Fehler\n\nBeim Öffnen\n".encode("utf-16")), encoded("report", "utf-16-le")),
    "report in UTF-16 without BOM": (said("# Fehler\n\nBeim Oeffnen\n".encode("utf-16-le")), encoded("report", "utf-16-le")),
    "report in latin-1": (said("Größe für Straße\n".encode("latin-1")), lambda r: r.one("report").encoding in ("cp1252", "latin-1")),
    "report of noise": (said(_noise(3000)), lambda r: r.one("report").media == "text"),
    "report with NUL": (said(b"a\0b\n"), encoded("report", "utf-8")),
    "report with ANSI codes": (said(b"\x1b[31merror\x1b[0m\n"), encoded("report", "utf-8")),
    "report with CRLF": (said(b"# A\r\n\r\nb\r\n"), lambda r: len(r.end().observations) == 1),
    "report of an unclosed fence": (said("```\nx\n\ny\n"), lambda r: len(r.end().observations) == 1),
    "report of 100,000 headings": (said("#\n" * 100_000), lambda r: len(r.end().observations) <= 400),
    "report of 100,000 tracebacks": (said("Traceback (most recent call last):\n" * 100_000), lambda r: len(r.end().observations) == 1),
    "report of 50,000 paragraphs": (said("a\n\n" * 50_000), lambda r: len(r.end().observations) <= 400),
    "empty log": (logged(b""), lambda r: not any(o.kind == "log_excerpt" for o in r.end().observations)),
    "log of noise": (logged(_noise(20_000)), lambda r: r.one("log").media == "text"),
    "log of NULs": (logged(bytes(5000)), lambda r: r.one("log").lines == 1),
    "log of blank lines": (logged(b"\n" * 200_000), lambda r: len(r.end().observations) == 3),
    "log of 200,000 errors": (logged(b"ERROR x%s\n" * 200_000), lambda r: len(r.end().observations) < 10),
    "log line of 10 MB of errors": (logged(b"ERROR " * 1_700_000), lambda r: len(r.end().observations) == 2),
    "two logs of one name": (
        lambda t: request(t, logs=(write(t / "a/x.log"), write(t / "b/x.log"))),
        lambda r: [a.name for a in r.artifacts("log")] == ["x.log", "2/x.log"]),
    # names
    "file name that is not UTF-8": (source(lambda t: _with(folder(t), b"caf\xe9.py")), takes("caf\\xe9.py")),
    "two names that could collide": (
        source(lambda t: _with(_with(folder(t), b"a\xff"), b"a\\xff")),
        lambda r: {"a\\xff", "a\\x5cxff"} <= set(r.files())),
    "file name with a line feed": (source(lambda t: _with(folder(t), "a\nb\x1b[2J.py")), takes("a\nb\x1b[2J.py")),
    "file name of right-to-left text": (source(lambda t: _with(folder(t), "\u202egnp.py")), takes("\u202egnp.py")),
    "file name of a space": (source(lambda t: _with(folder(t), " ")), takes(" ")),
    "folder name that is not UTF-8": (source(lambda t: _with(folder(t), b"\xe9/f")), takes("\\xe9/f")),
    # folders
    "symlink loop": (source(lambda t: _linked(t, ".")), skips("link", "link")),
    "symlink to itself": (source(lambda t: _linked(t, "link")), skips("link", "link")),
    "symlink out of the source": (source(lambda t: _linked(t, "/etc/passwd")), skips("link", "link")),
    "symlink to nothing": (source(lambda t: _linked(t, "gone")), skips("link", "link")),
    ".gitignore that is a link": (source(lambda t: _linked(t, "/etc/passwd", ".gitignore")), skips(".gitignore", "link")),
    "source given by a link": (source(lambda t: (t / "l").symlink_to(folder(t)) or t / "l"), takes("app.py")),
    "FIFO in the source": (source(lambda t: _fifo(folder(t) / "f").parent), skips("f", "special")),
    "socket in the source": (source(lambda t: _socket(folder(t))), skips("s", "special")),
    "folders beyond the longest path": (source(_deep), lambda r: "unreadable" in r.skipped().values()),
    "hostile glob in .gitignore": (source(lambda t: _with(_with(folder(t), ".gitignore", "*a" * 60 + "b\n"), "a" * 200)), takes("a" * 200)),
    "broken lines in .gitignore": (source(lambda t: _with(_with(folder(t), ".gitignore", b"!\n[z-a]\n\\\n\xff\n[[:alpha:]]\nq\n"), "q")), skips("q", "ignored")),
    # archives
    "tar with a harmless link": (_tar(("p/a", b"1"), special("p/l", tarfile.SYMTYPE, "a")), skips("l", "link")),
    "tar with a name that is not UTF-8": (_tar(("p/caf\udce9", b"1"), ("q", b"")), takes("p/caf\\xe9")),
    "tar with a PAX name": (_tar(("p/" + "ü" * 150, b"1"), ("q", b"")), takes("p/" + "ü" * 150)),
    "tar with folders named twice": (_tar(special("a", tarfile.DIRTYPE), special("a/", tarfile.DIRTYPE), ("a/f", b"1"), ("g", b"")), takes("a/f")),
    "zip with a harmless link": (_zip((zip_entry("l", stat.S_IFLNK | 0o777), b"a"), ("a", b"1")), skips("l", "link")),
    "zip with something before it": (source(lambda t: write(t / "a.zip", b"PK\x03\x04junk" + zipped(t / "b.zip", ("a", b"1")).read_bytes())), takes("a")),
    # databases
    "database without tables": (base(lambda t: database(t / "e.db", "CREATE TABLE t (a)", "DROP TABLE t", "VACUUM")), lambda r: r.one("database").counts["tables"] == 0),
    "database with odd names": (base(lambda t: database(t / "a?b#c%20.db", 'CREATE TABLE "t""x; --" ("a b" TEXT, rowid TEXT)', """INSERT INTO "t""x; --" VALUES ('v', 'w')""")), lambda r: r.one("database").counts["tables"] == 1),
    "database with a check that takes for ever": (base(lambda t: database(t / "c.db", "CREATE TABLE t (a CHECK (length(zeroblob(90000000)) > 0))", "PRAGMA ignore_check_constraints = ON", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 2000) INSERT INTO t SELECT i FROM n")), lambda r: True),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_input_is_refused_in_one_clear_line(name: str, tmp_path: Path) -> None:
    build, expected = REFUSED[name]
    with pytest.raises(IntakeError) as refused:
        intake(build(tmp_path))
    message = str(refused.value)
    assert expected in message
    assert message.isprintable(), message  # one line, no control characters


@pytest.mark.parametrize("name", TAKEN)
def test_an_odd_input_is_taken_in_correctly(name: str, tmp_path: Path) -> None:
    build, check = TAKEN[name]
    assert check(intake(build(tmp_path)))


def test_an_archive_of_too_many_members_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phases.intake.names.MAX_FILES", 50)
    path = tar(tmp_path / "many.tar", [(f"f{n}", b"") for n in range(51)])
    with pytest.raises(IntakeError, match="more than 50 members"):
        intake(request(tmp_path, path))


def test_there_are_a_hundred_of_them() -> None:
    assert len(REFUSED) + len(TAKEN) >= 100


@pytest.mark.skipif(ROOT, reason="root reads everything")
def test_unreadable_files_are_recorded_or_refused(tmp_path: Path) -> None:
    root = folder(tmp_path, secret="x")
    _locked(root / "secret")
    assert intake(request(tmp_path, root)).skipped() == {"secret": "unreadable"}
    with pytest.raises(IntakeError, match="permission denied"):
        intake(request(tmp_path, logs=(_locked(write(tmp_path / "l.log")),)))


def test_a_file_that_cannot_be_opened_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = folder(tmp_path, locked="x")

    def refuse(path: object, *, follow: bool = True) -> io.BytesIO:
        if str(path).endswith("locked"):
            raise PermissionError(13, "denied")
        return io.BytesIO(b"x = 1\n")

    monkeypatch.setattr("phases.intake.scan.open_regular", refuse)
    assert intake(request(tmp_path, root)).skipped() == {"locked": "unreadable"}


@pytest.mark.slow
def test_a_sparse_file_of_10_gb_is_catalogued_in_bounded_memory(tmp_path: Path) -> None:
    root = _sparse(folder(tmp_path) / "s", 10 << 30).parent
    assert binary("s")(intake(request(tmp_path, root)))


@pytest.mark.slow
@pytest.mark.parametrize("piece", [b"a", b"password=", b"token: a ", b"ERROR ", b"a://b:c", b"sk-"])
def test_a_log_line_of_50_mb_hangs_nothing(tmp_path: Path, piece: bytes) -> None:
    intake(logged(piece * (50_000_000 // len(piece)))(tmp_path))
