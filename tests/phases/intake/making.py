"""Makes inputs for the tests of the intake, and checks what every intake must hold."""

from __future__ import annotations

import io
import os
import sqlite3
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ledger import canonical
from ledger.events import ArtifactAdded, Event, ObservationsExtracted, SecretReplaced, references
from ledger.lines import split_lines
from ledger.trees import package_id
from phases.intake import IntakeRequest, Known, Summary, take

AWS = "AKIA" + "Q3EGR7Z2WXN5TB4M"  # put together, so that no scanner takes it for real
AWS_OTHER = "AKIA" + "7LP2ZK4HVD6QWJ3R"
GITHUB = "ghp_" + "aB3dE5fG7hI9jK1lM2nO4pQ6rS8tU0vW1xY2"
SLACK = "xoxb-" + "123456789012-abcDEF345ghiJKL678"
PEM_BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
PEM = f"-----BEGIN PRIVATE KEY-----\n{PEM_BODY}\n{PEM_BODY[::-1]}\n-----END PRIVATE KEY-----\n"


@dataclass(frozen=True)
class Result:
    """Everything that an intake gave."""

    events: list[Event]
    payloads: dict[str, bytes]
    summary: Summary

    def artifacts(self, kind: str = "") -> list[ArtifactAdded]:
        return [e for e in self.events if isinstance(e, ArtifactAdded) and kind in ("", e.kind)]

    def one(self, kind: str) -> ArtifactAdded:
        (artifact,) = self.artifacts(kind)
        return artifact

    def bytes_of(self, kind: str) -> bytes:
        content = self.one(kind).content
        assert content is not None
        return self.payloads[content.digest]

    def tree(self) -> dict[str, Any]:
        ref = self.one("source").tree
        assert ref is not None
        document: dict[str, Any] = canonical.from_bytes(self.payloads[ref.digest])
        return document

    def files(self) -> dict[str, dict[str, Any]]:
        return {file["path"]: file for file in self.tree()["files"]}

    def skipped(self) -> dict[str, str]:
        return {entry["path"]: entry["reason"] for entry in self.tree()["skipped"]}

    def file(self, path: str) -> bytes:
        return self.payloads[self.files()[path]["digest"]]

    def secrets(self) -> list[SecretReplaced]:
        return [e for e in self.events if isinstance(e, SecretReplaced)]

    def end(self) -> ObservationsExtracted:
        last = self.events[-1]
        assert isinstance(last, ObservationsExtracted)
        return last


def intake(request: IntakeRequest, known: Known | None = None, **options: Any) -> Result:
    """Take in, and check what holds for every intake."""
    events: list[Event] = []
    payloads: dict[str, bytes] = {}
    summary = Summary()
    if known:
        options = {"revision": 2, "known": known} | options
    for step in take(
        request, now=lambda: "2025-01-01T00:00:00.000000Z", summary=summary, **options
    ):
        here = {canonical.digest(data): data for data in step.payloads}
        payloads |= here
        events += step.events
        for event in step.events:
            for ref in references(event):
                assert len(here[ref.digest]) == ref.size
    result = Result(events, payloads, summary)
    _check_artifacts(result)
    _check_observations(result)
    for event in events:  # an event is written and read as it is
        assert (
            type(event).model_validate(
                canonical.from_bytes(canonical.to_bytes(event.model_dump(mode="json")))
            )
            == event
        )
    assert all("\n" not in line and "\x1b" not in line for line in summary.render())
    canonical.to_bytes(summary.as_json())
    return result


def _check_artifacts(result: Result) -> None:
    trees = {}
    for artifact in result.artifacts():
        assert not artifact.name.startswith("/")
        if artifact.media == "text":
            assert artifact.content is not None
            _check_text(result.payloads[artifact.content.digest], artifact.encoding, artifact.lines)
        if artifact.tree is not None:
            document = canonical.from_bytes(result.payloads[artifact.tree.digest])
            trees[artifact.tree.digest] = document
            _check_tree(document, result.payloads)
    if result.end().revision == 1:
        assert result.end().package_id == package_id(result.artifacts(), trees)


def _check_tree(document: dict[str, Any], payloads: dict[str, bytes]) -> None:
    paths = [file["path"] for file in document["files"]]
    assert paths == sorted(set(paths))
    for path in (*paths, *(entry["path"] for entry in document["skipped"])):
        parts = path.removesuffix("/").split("/")
        assert not {"", ".", ".."} & set(parts)
    for file in document["files"]:
        assert ("encoding" in file) == ("lines" in file) == (file["media"] == "text")
        if file["stored"]:
            data = payloads[file["digest"]]
            assert len(data) == file["size"]
            _check_text(data, file["encoding"], file["lines"])


def _check_text(data: bytes, encoding: str, lines: int) -> None:
    text = data.decode(encoding)
    assert text.encode(encoding) == data
    assert not any("\ud800" <= ch <= "\udfff" for ch in text)
    assert len(split_lines(text)) == lines


def _check_observations(result: Result) -> None:
    artifacts = {a.artifact: a for a in result.artifacts()}
    for seen in result.end().observations:
        artifact = artifacts[seen.artifact]
        assert 1 <= seen.first_line <= seen.last_line <= artifact.lines
    for kind in ("report", "observation"):
        for artifact in result.artifacts(kind):
            assert artifact.content is not None
            text = result.payloads[artifact.content.digest].decode(artifact.encoding)
            seen_lines = {
                line
                for o in result.end().observations
                if o.artifact == artifact.artifact
                for line in range(o.first_line, o.last_line + 1)
            }
            for number, line in enumerate(split_lines(text), 1):
                assert not line.strip() or number in seen_lines


def report(tmp: Path, data: str | bytes = "# It breaks\n\nSteps: call f().\n") -> Path:
    return write(tmp / "report.md", data)


def write(path: Path, data: str | bytes = "x = 1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def request(tmp: Path, source: Path | str | None = None, **fields: Any) -> IntakeRequest:
    if "report" not in fields:
        fields["report"] = report(tmp / "given")
    base = IntakeRequest(report=None, source=None if source is None else str(source))
    return replace(base, **fields)


def folder(tmp: Path, **files: str | bytes) -> Path:
    """A source folder with one plain file and those given (`__` in a name is a dot)."""
    root = tmp / "source"
    write(root / "app.py")
    for name, data in files.items():
        write(root / name.replace("__", "."), data)
    return root


def tar(
    path: Path, members: Iterable[tarfile.TarInfo | tuple[str, bytes]], mode: str = "w"
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


def zipped(
    path: Path, *members: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def zip_entry(name: str, mode: int = stat.S_IFREG | 0o644) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = mode << 16
    return info


def database(path: Path, *statements: str, encoding: str = "UTF-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA encoding = '{encoding}'")
        for statement in statements or ("CREATE TABLE t (a)", "INSERT INTO t VALUES ('row')"):
            connection.execute(statement).fetchall()
    return path


def git_repository(path: Path, fill: Callable[[Path], object]) -> str:
    """Make a repository with one commit of what `fill` puts there; return the commit."""
    path.mkdir(parents=True)
    fill(path)

    def git(*arguments: str) -> str:
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(path), "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_DATE": "2025-01-01T00:00:00Z",
            "GIT_COMMITTER_DATE": "2025-01-01T00:00:00Z",
        }  # fmt: skip
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        done = subprocess.run(
            ["git", "-C", str(path), *who, *arguments],
            env=environment,
            capture_output=True,
            check=True,
        )
        return done.stdout.decode().strip()

    git("init", "-q", "-b", "main")
    git("add", "-A", "-f")
    git("commit", "-q", "-m", "one", "--allow-empty")
    return git("rev-parse", "HEAD")
