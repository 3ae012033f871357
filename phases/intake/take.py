"""Turns what the user gave into events and payloads: one step an artefact, nothing written.

The caller appends each step in one transaction, under a temporary name that it renames at the end:
bad input leaves nothing behind. Same input, same events (but `at`) and same bytes, on any machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ledger import canonical
from ledger.events import (
    ArtifactAdded,
    ArtifactKind,
    Event,
    Observation,
    ObservationsExtracted,
    Ref,
    SecretReplaced,
)
from ledger.lines import split_lines
from ledger.trees import package_id
from phases.intake import archives, databases, git, scan, secrets, text
from phases.intake.errors import IntakeError, shown
from phases.intake.excerpts import identifiers, log_excerpts
from phases.intake.files import chunks_of, open_regular, read_file, require
from phases.intake.limits import MAX_LOG, MAX_PLACES, MAX_REPORT
from phases.intake.members import Member, Skipped
from phases.intake.names import written
from phases.intake.observations import Lines, report_blocks
from phases.intake.rules import Rules
from phases.intake.summary import Summary, Tally
from phases.intake.tree import Spool, TreeBuilder, catalogued_as

Progress = Callable[[str, int, int | None], None]
"""Called with what is being taken, how much is done, and of how much, if known."""

MAX_TITLE = 200
"""Characters of a case's title."""

_NOT_TEXT = (
    (b"\x1f\x8b", "gzip-compressed"), (b"PK\x03\x04", "a zip archive"),
    (b"BZh", "bzip2-compressed"), (b"\xfd7zXZ\x00", "xz-compressed"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed"), (b"SQLite format 3\0", "an SQLite database"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"), (b"GIF8", "a GIF image"), (b"%PDF-", "a PDF document"),
    (b"\x7fELF", "a program"),
)  # fmt: skip


@dataclass(frozen=True)
class IntakeRequest:
    """What the user asked to take in.

    `report` is required for a new case, None when facts are added. `source` is a folder, an archive
    (zip, tar, tar.gz/bz2/xz) or `FOLDER@REVISION` of a git repository. `include` and `exclude` are
    patterns as in .gitignore.
    """

    report: Path | None
    source: str | None
    logs: tuple[Path, ...] = ()
    databases: tuple[Path, ...] = ()
    observations: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    keep_secrets: bool = False


@dataclass(frozen=True)
class Known:
    """What earlier revisions hold: revision 1's package_id, and the characters of its report."""

    package_id: str
    report: str


class Taken(NamedTuple):
    """One step: events to append in one transaction, and their payloads.

    `payloads` must be exhausted before the next step is asked for: it may read from a file that is
    closed then.
    """

    events: tuple[Event, ...]
    payloads: Iterable[bytes]


def take(
    request: IntakeRequest,
    *,
    revision: int = 1,
    first_artifact: int = 1,
    first_observation: int = 1,
    known: Known | None = None,
    now: Callable[[], str],
    progress: Progress | None = None,
    summary: Summary | None = None,
) -> Iterator[Taken]:
    """Yield the steps of an intake: report, source, logs, databases, observations, and the end.

    Args:
        revision: 1 for a new case; later ones need `known`.
        first_artifact: number of the first artefact's ID, `S…`.
        first_observation: number of the first observation's ID, `O…`.
        now: gives the time of an event.
        progress: is told how far the current step is.
        summary: is filled on the way.

    Raises:
        IntakeError: for bad input, at the first step that meets it.
    """
    intake = _Intake(
        request, revision, first_artifact, first_observation, now,
        progress or (lambda what, done, total: None), summary or Summary(),
    )  # fmt: skip
    return intake.steps(known)


def title_of(report: str) -> str:
    """Return a title for a case: the first line of its report that says something."""
    for line in split_lines(report[:100_000]):
        visible = "".join(ch if ch.isprintable() else " " for ch in line[:2000])
        title = " ".join(visible.strip("#*_=-~`> \t").split())
        if title:
            return title if len(title) <= MAX_TITLE else title[: MAX_TITLE - 1] + "…"
    return "untitled"


class _Prose(NamedTuple):
    """A report, log or observation: bytes as stored, its encoding, and the same as UTF-8."""

    data: bytes
    encoding: str
    plain: bytes
    hits: tuple[secrets.Hit, ...]


class _Intake:
    def __init__(
        self,
        request: IntakeRequest,
        revision: int,
        first_artifact: int,
        first_observation: int,
        now: Callable[[], str],
        progress: Progress,
        summary: Summary,
    ) -> None:
        self._request, self._revision, self._now = request, revision, now
        self._progress, self._summary = progress, summary
        self._artifact, self._observation = first_artifact, first_observation
        self._rules = Rules(request.include, request.exclude)
        self._artifacts: list[ArtifactAdded] = []
        self._trees: dict[str, dict[str, Any]] = {}
        self._observed: list[Observation] = []
        self._names: set[tuple[str, str]] = set()

    def steps(self, known: Known | None) -> Iterator[Taken]:
        request = self._request
        self._check(known)
        report = known.report if known else ""
        if request.report is not None:
            prose = self._prose_of(request.report, "report", MAX_REPORT)
            report = prose.plain.decode("utf-8")
            if not report.strip("\ufeff \t\r\n\0"):
                raise IntakeError(
                    f"report {shown(request.report)}: is empty; describe the bug in it"
                )
            blocks = report_blocks(split_lines(report))
            yield self._text("report", request.report.name, prose, "report_block", blocks)
        if request.source is not None:
            yield from self._source(request.source)
        names = identifiers(report)
        for path in request.logs:
            prose = self._prose_of(path, "log", MAX_LOG)
            excerpts = log_excerpts(_unified(prose.plain), names)
            yield self._text("log", path.name, prose, "log_excerpt", excerpts)
        for path in request.databases:
            yield self._database(path)
        for number, said in enumerate(request.observations, 1):
            yield self._said(number, said)
        yield Taken((self._end(known),), ())

    def _check(self, known: Known | None) -> None:
        request = self._request
        if self._revision == 1 and request.report is None:
            raise IntakeError("a new case needs a report: a text file that describes the bug")
        if self._revision > 1 and known is None:
            raise ValueError("a later revision needs what is known of the first")
        if not any(
            (request.report, request.source, request.logs, request.databases, request.observations)
        ):
            raise IntakeError(
                "there is nothing to take in; give a log, a database or an observation"
            )
        for path in (
            *((request.report,) if request.report else ()),
            *request.logs,
            *request.databases,
        ):
            require(path, "file")  # before minutes are spent on the source

    # Text -----------------------------------------------------------------------------------------

    def _prose_of(self, path: Path, what: str, limit: int) -> _Prose:
        self._progress(what, 0, None)
        data = read_file(path, what, limit)
        for magic, kind in _NOT_TEXT:
            if data.startswith(magic):
                raise IntakeError(f"{what} {shown(path)}: is {kind}, not text; give its text")
        return self._cleaned(data, text.prose_encoding(data))

    def _cleaned(self, data: bytes, encoding: str) -> _Prose:
        hits: tuple[secrets.Hit, ...] = ()
        if not self._request.keep_secrets:
            data, hits = secrets.in_encoding(data, encoding, secrets.mark)
        plain = data if encoding == "utf-8" else data.decode(encoding).encode("utf-8")
        return _Prose(data, encoding, plain, hits)

    def _text(
        self, kind: ArtifactKind, name: str, prose: _Prose, observed: str, lines: Sequence[Lines]
    ) -> Taken:
        artifact = self._next()
        count = text.count_lines(prose.data, prose.encoding)
        added = ArtifactAdded(
            at=self._now(), artifact=artifact, kind=kind, name=self._unique(kind, name),
            revision=self._revision, media="text", content=_ref(prose.data),
            encoding=prose.encoding, lines=count, provenance=self._given(name),
        )  # fmt: skip
        self._observe(artifact, observed, lines)
        self._summary.took(artifact, kind, added.name, len(prose.data), lines=count)
        return self._taken(added, self._secrets(artifact, prose.hits), (prose.data,))

    def _said(self, number: int, said: str) -> Taken:
        data = said.encode("utf-8", "surrogateescape")
        if not said.strip():
            raise IntakeError(f"observation {number}: is empty; say what was observed")
        if len(data) > MAX_REPORT:
            raise IntakeError(f"observation {number}: is too long; give it as a log")
        prose = self._cleaned(data, text.prose_encoding(data))
        last = text.count_lines(prose.plain, "utf-8")
        name = f"observation-{number}.txt"
        return self._text("observation", name, prose, "observation", [Lines(1, last)])

    def _secrets(
        self, artifact: str, hits: Iterable[secrets.Hit], path: str = ""
    ) -> Iterator[SecretReplaced]:
        kinds: dict[str, list[secrets.Hit]] = {}
        for hit in hits:
            kinds.setdefault(hit.kind, []).append(hit)
        for kind, found in sorted(kinds.items()):
            places = tuple({"line": hit.line, "column": hit.column} for hit in found[:MAX_PLACES])
            tally = self._summary.replaced.setdefault(kind, Tally())
            tally.add(f"{artifact}{':' if path else ''}{path}:{found[0].line}", len(found))
            yield SecretReplaced(
                at=self._now(),
                artifact=artifact,
                kind=kind,
                count=len(found),
                path=path,
                places=places,
            )

    # Source ---------------------------------------------------------------------------------------

    def _source(self, source: str) -> Iterator[Taken]:
        self._progress("source", 0, None)
        name, members, provenance = self._members(source)
        with Spool() as spool:
            builder = TreeBuilder(
                spool,
                keep_secrets=self._request.keep_secrets,
                tell=lambda done: self._progress("source", done, None),
            )
            builder.take(members)
            if not builder.files:
                raise IntakeError(
                    f"source {shown(source)}: holds no file to take in"
                    f" ({len(builder.skipped)} left out); check the path, or use --include"
                )
            yield self._tree(name, builder, provenance)

    def _members(self, source: str) -> tuple[str, Iterator[Member | Skipped], dict[str, Any]]:
        path = Path(source)
        if _is_there(path):
            name = written(path.resolve().name) or "source"
            if path.is_dir():
                return name, scan.walk(path, self._rules), {"form": "folder"}
            return self._archive(path, name)
        found = git.split(source)
        if found is None:
            raise IntakeError(
                f"source {shown(source)}: there is no such folder or file;"
                " give a folder, an archive or FOLDER@REVISION"
            )
        revision = git.resolve(*found)
        provenance = {"form": "git", "revision": shown(revision.name), "commit": revision.commit}
        name = written(found[0].resolve().name) or "source"
        return name, git.read(revision, self._rules), provenance

    def _archive(
        self, path: Path, name: str
    ) -> tuple[str, Iterator[Member | Skipped], dict[str, Any]]:
        survey = archives.survey(path)
        provenance = {"form": survey.form, "digest": _file_digest(path)}
        if survey.top:
            provenance["stripped"] = survey.top
            self._summary.notes.append(
                f"the archive's only folder {shown(survey.top)}/ is left out of paths"
            )
        return name, archives.read(path, survey, self._rules), provenance

    def _tree(self, name: str, builder: TreeBuilder, provenance: dict[str, Any]) -> Taken:
        document = builder.document()
        data = canonical.to_bytes(document)
        artifact, counts = self._next(), builder.counts()
        added = ArtifactAdded(
            at=self._now(), artifact=artifact, kind="source", name=self._unique("source", name),
            revision=self._revision, media="tree", tree=_ref(data),
            provenance=self._given(name) | provenance, counts=counts,
        )  # fmt: skip
        self._trees[canonical.digest(data)] = document
        self._summary.took(artifact, "source", added.name, counts["bytes"], files=counts["files"])
        self._summary.skip(builder.skipped)
        for file in builder.files:
            if reason := catalogued_as(file):
                self._summary.catalogued.setdefault(reason, Tally()).add(file["path"])
        replaced = [
            event
            for path, hits in builder.replaced
            for event in self._secrets(artifact, hits, path)
        ]
        return self._taken(added, replaced, _then(builder.contents(), data))

    # Databases ------------------------------------------------------------------------------------

    def _database(self, path: Path) -> Taken:
        snapshot = databases.snapshot(
            path,
            keep_secrets=self._request.keep_secrets,
            tell=lambda done, total: self._progress("database", done, total),
        )
        artifact = self._next()
        added = ArtifactAdded(
            at=self._now(), artifact=artifact, kind="database",
            name=self._unique("database", path.name), revision=self._revision, media="sqlite",
            content=_ref(snapshot.data),
            provenance=self._given(path.name) | snapshot.provenance, counts=snapshot.counts,
        )  # fmt: skip
        self._summary.took(
            artifact, "database", added.name, len(snapshot.data), tables=snapshot.counts["tables"]
        )
        if snapshot.left:
            self._summary.notes.append(
                f"{artifact} {shown(added.name)}: what looks like a key stands in its schema"
                " or in a BLOB and was left there"
            )
        replaced = [self._cells(artifact, found) for found in snapshot.replaced]
        return self._taken(added, replaced, (snapshot.data,))

    def _cells(self, artifact: str, found: Any) -> SecretReplaced:
        where = found.places[0]
        tally = self._summary.replaced.setdefault(found.kind, Tally())
        tally.add(f"{artifact}:{where['table']}.{where['column']}", found.found)
        return SecretReplaced(
            at=self._now(),
            artifact=artifact,
            kind=found.kind,
            count=found.found,
            places=found.places,
        )

    # Numbers and the end --------------------------------------------------------------------------

    def _next(self) -> str:
        self._artifact += 1
        return f"S{self._artifact - 1}"

    def _unique(self, kind: str, name: str) -> str:
        """Return a name that no other artefact of this kind and intake has."""
        name = written(name)
        unique, number = name, 1
        while (kind, unique) in self._names:
            number += 1
            unique = f"{number}/{name}"
        self._names.add((kind, unique))
        return unique

    def _given(self, name: str) -> dict[str, Any]:
        kept = {"secrets": "kept"} if self._request.keep_secrets else {}
        return {"name": written(name), **kept}

    def _observe(self, artifact: str, kind: str, ranges: Sequence[Lines]) -> None:
        for first, last in ranges:
            identity = f"O{self._observation}"
            self._observation += 1
            self._observed.append(
                Observation(
                    id=identity, artifact=artifact, kind=kind, first_line=first, last_line=last
                )
            )
        self._summary.observations = len(self._observed)

    def _taken(
        self, added: ArtifactAdded, replaced: Iterable[Event], payloads: Iterable[bytes]
    ) -> Taken:
        self._artifacts.append(added)
        return Taken((added, *replaced), payloads)

    def _end(self, known: Known | None) -> ObservationsExtracted:
        identity = known.package_id if known else package_id(self._artifacts, self._trees)
        return ObservationsExtracted(
            at=self._now(), revision=self._revision, package_id=identity,
            observations=tuple(self._observed),
        )  # fmt: skip


def _ref(data: bytes) -> Ref:
    return Ref(digest=canonical.digest(data), size=len(data))


def _then(contents: Iterator[bytes], last: bytes) -> Iterator[bytes]:
    yield from contents
    yield last


def _unified(log: bytes) -> bytes:
    """Return a log (UTF-8) with LF as its only line end."""
    return log.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in log else log


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long, or with a NUL
        return False


def _file_digest(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with open_regular(path) as file:
            for data in chunks_of(file):
                digest.update(data)
    except OSError:
        raise IntakeError(f"source {shown(path)}: cannot be read to its end") from None
    return f"sha256:{digest.hexdigest()}"
