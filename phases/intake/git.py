"""Reads one revision of a local git repository, object by object.

`ls-tree` and `cat-file` only: unlike `archive` or `checkout` they run no filter, hook or helper
that a hostile repository could name in its configuration. The environment is scrubbed, nothing
prompts, nothing is fetched (a partial clone's missing objects are an error), and time is limited.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from phases.intake.errors import IntakeError, shown
from phases.intake.limits import CHUNK, GIT_SECONDS, MAX_FILES
from phases.intake.members import Member, Skipped
from phases.intake.names import written
from phases.intake.rules import Rules

_OPTIONS = (
    "--no-pager", "--no-replace-objects", "--literal-pathspecs",
    "-c", "safe.directory=*",      # reading objects is safe whoever owns them
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
    "-c", "protocol.allow=never", "-c", "credential.helper=", "-c", "core.askPass=",
)  # fmt: skip
_SKIPPED_MODES = {"120000": "link", "160000": "special"}  # symbolic link, submodule


class Revision(NamedTuple):
    """A commit of a local repository."""

    git_dir: Path
    name: str
    commit: str


def split(source: str) -> tuple[Path, str] | None:
    """Return folder and revision of `FOLDER@REV`, or None; a revision may hold `@` too."""
    at = source.find("@")
    while at >= 0:
        folder, revision = source[:at], source[at + 1 :]
        if folder and revision and os.path.isdir(folder):  # noqa: PTH112 - a NUL is False here
            return Path(folder), revision
        at = source.find("@", at + 1)
    return None


def resolve(folder: Path, name: str) -> Revision:
    """Find the commit that `name` means in the repository at `folder`.

    Raises:
        IntakeError: if `folder` is no repository's top folder, or the name means no commit.
    """
    git_dir = folder / ".git" if (folder / ".git").exists() else folder
    if git_dir is folder and not ((folder / "HEAD").is_file() and (folder / "objects").is_dir()):
        raise IntakeError(
            f"source {shown(folder)}@{shown(name)}: is not the top folder of a git repository"
        )
    done = _run(git_dir, name, "rev-parse", "--verify", "--end-of-options", name + "^{commit}")
    commit = done.stdout.decode("ascii", "replace").strip()
    if done.returncode or not commit.isalnum():
        why = _last_line(done.stderr)
        raise IntakeError(f"source {shown(folder)}@{shown(name)}: no such revision ({why})")
    return Revision(git_dir, name, commit)


def read(revision: Revision, rules: Rules) -> Iterator[Member | Skipped]:
    """Yield the files of a revision, in git's order.

    Raises:
        IntakeError: if git fails: a missing or damaged object, or more time than the limit.
    """
    left_out: set[str] = set()
    with _objects(revision) as ask:
        for mode, kind, object_id, path in _listing(revision):
            decided = rules.in_package(path)
            if decided is not None:
                if decided[0] not in left_out:
                    left_out.add(decided[0])
                    yield Skipped(*decided)
            elif mode in _SKIPPED_MODES or kind != "blob":
                yield Skipped(path, _SKIPPED_MODES.get(mode, "special"))
            else:
                chunks = ask(object_id, path)
                yield Member(path, chunks)
                for _ in chunks:  # what the reader left must not be taken for the next object
                    pass


def _listing(revision: Revision) -> Iterator[tuple[str, str, str, str]]:
    done = _run(
        revision.git_dir, revision.name, "ls-tree", "-r", "-z", "--full-tree", revision.commit
    )
    if done.returncode:
        raise _failed(revision, _last_line(done.stderr))
    rows = done.stdout.split(b"\0")[:-1]
    if len(rows) > MAX_FILES:
        raise _failed(revision, f"it has more than {MAX_FILES:,} files")
    for row in rows:
        head, _, name = row.partition(b"\t")
        mode, kind, object_id = head.decode("ascii").split()
        parts = os.fsdecode(name).split("/")
        if not {"", ".", ".."}.isdisjoint(parts):
            raise _failed(revision, f"it holds the path {shown(os.fsdecode(name))}")
        yield mode, kind, object_id, "/".join(map(written, parts))


@contextmanager
def _objects(revision: Revision) -> Iterator[_Asking]:
    process = subprocess.Popen(
        _command(revision.git_dir, "cat-file", "--batch"),
        env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    timer = threading.Timer(GIT_SECONDS, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield _Asking(process, revision)
    finally:
        timer.cancel()
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


class _Asking:
    """Asks one `cat-file` for one object after the other."""

    def __init__(self, process: subprocess.Popen[bytes], revision: Revision) -> None:
        self._process, self._revision = process, revision

    def __call__(self, object_id: str, path: str) -> Iterator[bytes]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(object_id.encode("ascii") + b"\n")
            stdin.flush()
        except OSError:
            raise self._lost(path) from None
        answer = stdout.readline(CHUNK).split()
        if len(answer) != 3 or answer[1] != b"blob":
            raise self._lost(path)
        yield from self._body(stdout, int(answer[2]), path)

    def _body(self, stdout: IO[bytes], size: int, path: str) -> Iterator[bytes]:
        while size:
            data = stdout.read(min(size, CHUNK))
            if not data:
                raise self._lost(path)
            size -= len(data)
            yield data
        if stdout.read(1) != b"\n":
            raise self._lost(path)

    def _lost(self, path: str) -> IntakeError:
        return _failed(self._revision, f"git could not deliver {shown(path)}")


def _failed(revision: Revision, why: str) -> IntakeError:
    return IntakeError(
        f"source git revision {shown(revision.name)}: {why}; check the repository with git fsck"
    )


def _command(git_dir: Path, *arguments: str) -> list[str]:
    return ["git", *_OPTIONS, f"--git-dir={git_dir.absolute()}", *arguments]


def _environment() -> dict[str, str]:
    """Return an environment with nothing of the user's but where programs are."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
    }


def _run(git_dir: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            _command(git_dir, *arguments),
            env=_environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=GIT_SECONDS,
            check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise IntakeError(
            f"source @{shown(name)}: git is not installed; give a folder or an archive"
        ) from None
    except subprocess.TimeoutExpired:
        raise IntakeError(f"source @{shown(name)}: git took more than {GIT_SECONDS} s") from None
    except ValueError:  # a NUL in the revision
        raise IntakeError(f"source @{shown(name)}: is no possible revision") from None


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return shown(lines[-1].removeprefix("fatal: ")) if lines else "git says no more"
