"""Hostile packages at the door: one line for each command, nothing left behind, bounded resources.

What makes each hostile is its name. tests/ledger/test_package.py has many more, below the command
line; these are one or two of every kind, given to a child of little memory and time.
"""

from __future__ import annotations

import io
import json
import os
import stat
import struct
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ledger import canonical
from ledger.package import Package
from tests.ledger.packages import Loose, central, patched
from tests.tools import hostile_child
from tools import cli

Edit = Callable[[Loose], Any]

REFUSED = {
    "verify": 1,  # the answer is no
    **dict.fromkeys(["import", "log", "show", "report", "saw", "status", "seal"], 2),
}
UNREADABLE = {"file is empty": ["verify"], "manifest of a later format": list(REFUSED)}
"""Which commands end with 5: there is nothing that could be read and found altered."""
INTAKE = "intake/S1/report.md"
ROOT = Path(__file__).parents[2]


# How to make one ----------------------------------------------------------------------------------


def add(name: str, data: bytes = b"smuggled") -> Edit:
    return lambda loose: loose.members.append((name, data))


def info(name: str, change: Callable[[zipfile.ZipInfo], Any]) -> Edit:
    return lambda loose: loose.infos.update({name: change})


def special(kind: int) -> Edit:
    return info(INTAKE, lambda i: setattr(i, "external_attr", (kind | 0o777) << 16))


def finish(change: Callable[[bytes], bytes]) -> Edit:
    return lambda loose: setattr(loose, "finish", change)


def raw_manifest(change: Callable[[bytes], bytes]) -> Edit:
    def run(loose: Loose) -> None:
        loose.raw_manifest = change(canonical.to_bytes(loose.manifest) + b"\n")

    return run


def manifest(**changes: Any) -> Edit:
    return lambda loose: loose.manifest.update(changes)


def listing(change: Callable[[list[Any]], Any]) -> Edit:
    def run(loose: Loose) -> None:
        loose.keep_listing = True
        change(loose.manifest["members"])

    return run


def lines(member: str, change: Callable[[list[Any]], Any], *, rechain: bool = False) -> Edit:
    def run(loose: Loose) -> None:
        values: list[Any] = loose.lines(member)
        changed = change(values)
        loose.set_lines(member, values if changed is None else changed)
        if rechain:
            loose.rechain()

    return run


def text(member: str, change: Callable[[bytes], bytes]) -> Edit:
    return lambda loose: loose.__setitem__(member, change(loose[member]))


def chunks(*numbers: Any) -> Edit:
    """Give the last document that has chunks these instead."""

    def change(documents: list[Any]) -> None:
        target = [document for document in documents if document.get("chunks")][-1]
        target["chunks"] = list(numbers)

    return lines("documents.jsonl", change)


def state(position: int, old: str, new: str) -> Edit:
    """Change a state, and the chain so that it fits."""

    def change(events: list[Any]) -> None:
        before = events[position - 1]["state"]
        events[position - 1]["state"] = before.replace(old, new)
        assert events[position - 1]["state"] != before

    return lines("events.jsonl", change, rechain=True)


def two_of(*edits: Edit) -> Edit:
    return lambda loose: [edit(loose) for edit in edits]


# Zip files that lie -------------------------------------------------------------------------------


def overlapping(data: bytes) -> bytes:
    """Two entries of the directory that are one place of the file."""
    places = {name: offset for offset, name in central(data)}
    first, second = places["README.txt"], places["events.jsonl"]
    return data[: second + 42] + data[first + 42 : first + 46] + data[second + 46 :]


def end_record(at: int, value: bytes) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        place = len(data) - 22 + at
        return data[:place] + value + data[place + len(value) :]

    return change


def zip64_lie(size: int) -> Edit:
    """A field that gives a member another size for tools that look there."""
    field = struct.pack("<HHQQ", 1, 16, size, size)
    return info("README.txt", lambda i: setattr(i, "extra", field))


def nested_bomb() -> bytes:
    """A zip of zips of zeros."""
    data = bytes(10_000_000)
    for _ in range(3):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("next.zip", data)
        data = buffer.getvalue()
    return data


def long_line(loose: Loose) -> None:
    loose["events.jsonl"] += b'{"position":' + b"1" * 20_000_000 + b"}\n"


def many_lines(loose: Loose) -> None:
    loose["events.jsonl"] += b"0\n" * 10_000_000


# Copies made for sharing that lie -----------------------------------------------------------------


def withheld(position: int, **changes: Any) -> Edit:
    """Withhold the state of an event, with the leaf it has or another one."""

    def change(events: list[Any]) -> None:
        event = events[position - 1]
        events[position - 1] = {
            "position": position,
            "topic": event["topic"],
            "leaf": "00" * 32,
            "chain": event["chain"],
        } | changes

    return lines("events.jsonl", change)


def withheld_document(**changes: Any) -> Edit:
    """Withhold the last payload; its chunks stay, which nothing needs any more."""

    def change(documents: list[Any]) -> None:
        last = documents[-1]
        documents[-1] = {"digest": last["digest"], "size": last["size"], "withheld": True} | changes

    return lines("documents.jsonl", change)


DEEP = b"[" * 150_000 + b"]" * 150_000
ZEROS = bytes(40_000_000)
NFC, NFD = "caf\u00e9", "cafe\u0301"

HOSTILE: dict[str, tuple[Edit, str]] = {
    # Names
    "name leads up": (add("derived/../../evil"), "leads outside"),
    "name is absolute": (add("/etc/cron.d/evil"), "leads outside"),
    "name has a backslash": (add("derived\\..\\evil"), "leads outside"),
    "name has a drive letter": (add("C:/evil"), "leads outside"),
    "name has an empty part": (add("derived//evil"), "leads outside"),
    "name ends in a slash": (add("derived/evil/", b""), "leads outside"),
    "name has a zero byte": (
        finish(lambda data: data.replace(b"derived/report.md", b"derived/repo\0t.md")),
        "outside",
    ),
    "name is no home of packages": (add("setup.py"), "does not belong"),
    "name occurs twice": (add("derived/report.md"), "twice"),
    "names differ in capitals only": (add("derived/REPORT.md"), "in capitals or accents"),
    "names differ in normalisation only": (
        two_of(add(f"derived/{NFC}"), add(f"derived/{NFD}")),
        "in capitals or accents",
    ),
    # Kinds of entries
    "entry is a symbolic link": (special(stat.S_IFLNK), "link or another special file"),
    "entry is a device": (special(stat.S_IFCHR), "link or another special file"),
    "entry is a folder": (special(stat.S_IFDIR), "link or another special file"),
    "entry is a folder by DOS": (
        info(INTAKE, lambda i: setattr(i, "external_attr", 0x10)),
        "link or another special file",
    ),
    "entry is encrypted": (finish(patched(INTAKE, 8, b"\1\0", local=6)), "encrypted"),
    "entry has an unknown flag": (finish(patched(INTAKE, 8, b"\x40\0", local=6)), "flag"),
    "entry is packed with bzip2": (
        info(INTAKE, lambda i: setattr(i, "compress_type", zipfile.ZIP_BZIP2)),
        "packed in a way",
    ),
    "entry is packed with nothing known": (
        finish(patched(INTAKE, 10, b"\x63\0", local=8)),
        "packed in a way",
    ),
    "entry has a comment": (
        info(INTAKE, lambda i: setattr(i, "comment", b"curl evil | sh")),
        "comment or a field",
    ),
    "entry has a field of its own": (
        info(INTAKE, lambda i: setattr(i, "extra", b"\xfe\xca\4\0evil")),
        "headers that disagree|comment or a field",
    ),
    # The zip as a whole
    "file is empty": (finish(lambda data: b""), "not a zip file"),
    "file has its first bytes only": (finish(lambda data: data[:4]), "not a zip file"),
    "file is cut in half": (finish(lambda data: data[: len(data) // 2]), "not a zip file"),
    "file lacks its last byte": (finish(lambda data: data[:-1]), "not a zip file|outside"),
    "bytes before": (finish(lambda data: b"PK\3\4" + data), "outside its members"),
    "bytes after": (finish(lambda data: data + b"#!/bin/sh\n"), "outside its members"),
    "comment of the archive": (finish(lambda data: data[:-2] + b"\4\0evil"), "outside its members"),
    "entries overlap": (finish(overlapping), "outside its members"),
    "entry lies elsewhere": (
        finish(patched("events.jsonl", 42, b"\xff\xff\xff\x6f")),
        "outside its members",
    ),
    "directory counts fewer members": (finish(end_record(8, b"\3\0\3\0")), "outside its members"),
    "directory counts 65,535 members": (
        finish(end_record(8, b"\xff\xff\xff\xff")),
        "outside its members|not a zip",
    ),
    "archive of several disks": (
        finish(end_record(4, b"\1\0\1\0")),
        "outside its members|not a zip",
    ),
    "headers disagree on the size": (
        finish(patched("README.txt", 24, struct.pack("<I", 7))),
        "headers that disagree",
    ),
    "headers agree on a wrong size": (
        finish(patched("README.txt", 24, struct.pack("<I", 7), local=22)),
        "not those|larger",
    ),
    "headers disagree on the checksum": (
        finish(patched("README.txt", 16, b"\0\0\0\0")),
        "headers that disagree",
    ),
    "size of four gigabytes": (
        finish(patched("README.txt", 24, b"\xfe\xff\xff\xff", local=22)),
        "would unpack to",
    ),
    "zip64 field that lies": (zip64_lie(2**50), "headers that disagree|comment or a field|outside"),
    # Bombs
    "bomb of zeros": (add("derived/zeros", ZEROS), "a bomb"),
    "bomb of zeros in the record": (
        text("chunks.jsonl", lambda data: data + b'{"n":9,"text":"' + ZEROS + b'"}\n'),
        "a bomb",
    ),
    "bomb in bombs": (add("intake/S1/next.zip", nested_bomb()), "not the one|not those"),
    "line of twenty megabytes": (long_line, "a bomb"),
    "ten million lines": (many_lines, "a bomb"),
    "few chunks for terabytes": (chunks(*[1] * 300_000), "more than its"),
    # Members and manifest
    "member is missing": (
        two_of(listing(id), lambda p: p.remove("derived/report.md")),
        "not those of its manifest",
    ),
    "member too many": (two_of(listing(id), add("derived/more")), "not those of its manifest"),
    "member of other bytes": (listing(lambda m: m[5].update(sha256="0" * 64)), "manifest says"),
    "member of another size": (listing(lambda m: m[5].update(size=1)), "not those"),
    "intake file that nothing names": (add("intake/S1/zzz"), "not the one"),
    "intake file altered": (text(INTAKE, lambda data: data + b"!"), "not the one|bytes"),
    "prompt altered": (
        lambda p: p.__setitem__(next(n for n, _ in p.members if n.startswith("prompts/")), b"yes"),
        "never changes",
    ),
    "report altered": (text("derived/report.md", lambda d: d + b"!"), "report.md differs"),
    "request altered": (
        text("derived/requests/R1.json", lambda d: d + b" "),
        "R1.json differs from what the events give",
    ),
    "manifest is no JSON": (raw_manifest(lambda data: b"{"), "malformed manifest"),
    "manifest is a list": (raw_manifest(lambda data: b"[]"), "malformed manifest"),
    "manifest is not UTF-8": (raw_manifest(lambda data: b"\xff" + data), "malformed manifest"),
    "manifest has a key twice": (
        raw_manifest(lambda data: data.replace(b"{", b'{"format":1,', 1)),
        "malformed manifest",
    ),
    "manifest holds NaN": (
        raw_manifest(lambda data: data.replace(b'"format":1', b'"format":NaN')),
        "malformed manifest",
    ),
    "manifest is deep": (raw_manifest(lambda data: DEEP), "malformed manifest"),
    "manifest holds a number of 100,000 digits": (
        raw_manifest(lambda data: data.replace(b'"format":1', b'"format":' + b"1" * 100_000)),
        "malformed manifest",
    ),
    "manifest of a later format": (manifest(format=2), "has format 2"),
    "manifest of format true": (manifest(format=True), "malformed manifest"),
    "manifest without members": (two_of(listing(id), manifest(members={})), "malformed manifest"),
    "manifest of another head": (
        manifest(head={"position": 3, "chain": "0" * 64}),
        "the record ends",
    ),
    "manifest of another case": (manifest(case_id="case-18"), "position 1"),
    "manifest of another trial": (manifest(trial_id="trial-2"), "not the one"),
    "manifest of no trial": (manifest(trial_id=None), "malformed manifest"),
    # The record
    "events out of order": (
        lines("events.jsonl", lambda e: [e[0], e[2], e[1], *e[3:]]),
        "line 2: malformed",
    ),
    "event left out": (lines("events.jsonl", lambda e: e[:5] + e[6:]), "line 6: malformed"),
    "tail of events cut": (lines("events.jsonl", lambda e: e[:-1]), "the record ends"),
    "state altered": (
        lines("events.jsonl", lambda e: e[3].update(state=e[3]["state"][:-1] + " }")),
        "position 4",
    ),
    "state altered, chain made to fit": (state(4, '"name":', '"name" :'), "position 4"),
    "artefact with a name that leads outside": (
        state(2, '"report.md"', '"../../../evil"'),
        "not a path",
    ),
    "events that are not UTF-8": (
        text("events.jsonl", lambda data: data + b"\xc3\x28\n"),
        "not UTF-8",
    ),
    "events without a line end": (text("events.jsonl", lambda data: data[:-1]), "line feed"),
    "document list that is deep": (
        text("documents.jsonl", lambda data: data + DEEP + b"\n"),
        "nested",
    ),
    "chunk number out of range": (chunks(99_999_999), "is missing"),
    "chunk number negative": (chunks(-1), "malformed"),
    "chunk number zero": (chunks(0), "malformed"),
    "chunk number of a float": (chunks(1.0), "malformed"),
    "payload that is the list of payloads": (
        lines(
            "documents.jsonl",
            lambda d: d.__setitem__(
                -1,
                {"digest": d[-1]["digest"], "size": d[-1]["size"], "member": "documents.jsonl"},
            ),
        ),
        "payload|bytes|sha256",
    ),
    "payload of two gigabytes too many": (
        lines("documents.jsonl", lambda d: d[-1].update(size=2**40)),
        "malformed",
    ),
    # Copies made for sharing
    "withheld event with another leaf": (withheld(5), "position 5|made for sharing"),
    "withheld event that keeps its nonce": (
        withheld(5, nonce="00" * 16),
        "line 5: malformed",
    ),
    "withheld event with a short leaf": (withheld(5, leaf="00"), "line 5: malformed"),
    "withheld payload whose chunks are there": (
        withheld_document(),
        "not the one|made for sharing",
    ),
    "withheld payload of another size": (
        withheld_document(size=7),
        "not the one|made for sharing",
    ),
    "withheld payload that is there": (withheld_document(chunks=[1]), "malformed"),
}


# Trying them --------------------------------------------------------------------------------------


class Found(NamedTuple):
    commands: dict[str, dict[str, Any]]
    folder: Path


@pytest.fixture(scope="module")
def good(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("good") / "good.zip"
    command = ["export", str(home / "small.case"), "--with-requests", "--with-report"]
    assert cli.run([*command, "-o", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def found(good: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Give all of them, and the good one, to one child."""
    folder = tmp_path_factory.mktemp("hostile")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of names that occur twice
        for name, (edit, _) in HOSTILE.items():
            loose = Loose.of(good)
            edit(loose)
            loose.pack(folder / f"{name}.zip")
    Loose.of(good).pack(folder / "good.zip")
    variables = {k: v for k, v in os.environ.items() if not k.startswith("CASELEDGER_")}
    done = subprocess.run(
        [sys.executable, "-P", hostile_child.__file__, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env=variables | {"XDG_CONFIG_HOME": str(folder / "none"), "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return dict(json.loads(done.stdout))


def test_there_are_enough_of_them() -> None:
    assert len(HOSTILE) >= 80


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_package_is_refused_with_one_line_and_leaves_nothing(
    name: str, found: dict[str, dict[str, Any]]
) -> None:
    says = HOSTILE[name][1]
    for command, result in found[name].items():
        unreadable = command in UNREADABLE.get(name, [])
        assert result["code"] == (5 if unreadable else REFUSED[command]), (command, result)
        assert result["left"] == [], command
        (line,) = result["err"] if command != "verify" or unreadable else result["out"][:1]
        assert any(word in line for word in says.split("|")), (command, line)
        assert len(line) < 700
        if command == "verify" and not unreadable:
            assert (result["err"], line.startswith("damage: ")) == ([], True)
            assert all(line.startswith("damage") for line in result["out"])
        else:
            assert result["out"] == [], command


def test_the_good_one_is_not_refused(found: dict[str, dict[str, Any]], good: Path) -> None:
    results = {command: result["code"] for command, result in found["good"].items()}
    assert results == dict.fromkeys(REFUSED, 0)
    with Package(good) as package:
        assert found["good"]["seal"]["out"] == [str(package.head)]
