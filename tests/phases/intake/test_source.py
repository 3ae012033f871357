"""Folders, archives and git revisions: what is taken, what is left out and why."""

# ruff: noqa: E501 - tables and scripts read best with one case a line

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from ledger import canonical
from phases.intake import IntakeError
from phases.intake.limits import MAX_STORED_FILE
from tests.phases.intake.making import (
    AWS,
    folder,
    git_repository,
    intake,
    request,
    special,
    tar,
    write,
    zipped,
)


def fill(root: Path, *paths: str) -> Path:
    for path in paths:
        write(root / path)
    return root


def test_default_folders_are_skipped_and_named(tmp_path: Path) -> None:
    root = fill(
        tmp_path / "s", "app.py", "pyproject.toml", "build/lib/app.py", "dist/x.txt", "my.egg-info/PKG-INFO",
        "__pycache__/a.pyc", "pkg/__pycache__/b.pyc", "venv/pyvenv.cfg", "venv/lib/x.py", ".tox/a", "node_modules/left/i.js",
        "web/node_modules/a.js", ".git/config", ".hg/x", ".env", ".env.local", ".env.example", "id_rsa", "c/CACHEDIR.TAG",
        ".mypy_cache/x", "build2/x.py",
    )  # fmt: skip
    result = intake(request(tmp_path, root))
    assert set(result.files()) == {"app.py", "pyproject.toml", ".env.example", "build2/x.py"}
    assert result.skipped() == {
        "build/": "build", "dist/": "build", "my.egg-info/": "build", "__pycache__/": "build", "c/": "build",
        "pkg/__pycache__/": "build", ".mypy_cache/": "build", "venv/": "environment", ".tox/": "environment",
        "node_modules/": "dependencies", "web/node_modules/": "dependencies", ".git/": "version_control",
        ".hg/": "version_control", ".env": "secret_file", ".env.local": "secret_file", "id_rsa": "secret_file",
    }  # fmt: skip
    counts = result.one("source").counts
    assert counts["files"] == 4
    assert counts["skipped"]["build"] == 7
    assert "skipped, environment: 2 (.tox/, venv/)" in result.summary.render()


def test_a_build_folder_that_is_the_code_is_taken(tmp_path: Path) -> None:
    npm = fill(tmp_path / "npm", "package.json", "build/lib/index.js", "dist/index.js", "lib/x.js")
    assert len(intake(request(tmp_path, npm)).files()) == 4
    package = fill(tmp_path / "py", "pyproject.toml", "build/__init__.py")
    assert "build/__init__.py" in intake(request(tmp_path, package)).files()


def test_an_environment_in_the_projects_own_folder_is_left_out(tmp_path: Path) -> None:
    root = fill(tmp_path / "s", "pyvenv.cfg", "bin/python", "lib/x.py", "app/lib/y.py")
    assert set(intake(request(tmp_path, root)).files()) == {"pyvenv.cfg", "app/lib/y.py"}


def test_nested_gitignore_files_decide_as_git_does(tmp_path: Path) -> None:
    root = fill(
        tmp_path / "s",
        "a.log",
        "keep.log",
        "sub/a.log",
        "sub/b.tmp",
        "sub/deep/b.tmp",
        "gen/x.py",
        "doc/gen/x.py",
        "x/y/z.o",
    )
    write(root / ".gitignore", "*.log\n!keep.log\n/gen/\nx/**/z.o\n# comment\n\n")
    write(root / "sub/.gitignore", "!a.log\n*.tmp\n")
    write(root / "sub/deep/.gitignore", "!b.tmp\r\n")
    ours = set(intake(request(tmp_path, root)).files())
    git_repository(tmp_path / "g", lambda path: None)
    subprocess.run(["cp", "-r", f"{root}/.", tmp_path / "g"], check=True)
    listed = subprocess.run(
        ["git", "-C", tmp_path / "g", "ls-files", "-o", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert ours == set(listed.stdout.split())


def test_include_overrides_and_exclude_wins(tmp_path: Path) -> None:
    root = fill(
        tmp_path / "s", "setup.py", "build/a.py", "build/b.py", "build/deep/c.py", "node_modules/x/i.js", ".env", "a.log",
        "b.log", ".git/config", "src/t.py", "__pycache__/x.py",
    )  # fmt: skip
    write(root / ".gitignore", "*.log\n")
    result = intake(
        request(
            tmp_path,
            root,
            include=("build/deep/", "build/a.py", ".env", "a.log", ".git/", "node_modules/"),
            exclude=("*.js", "src/"),
        )
    )
    assert set(result.files()) == {
        "setup.py",
        "build/a.py",
        "build/deep/c.py",
        ".env",
        "a.log",
        ".gitignore",
    }
    assert result.skipped() == {
        "build/b.py": "build", "node_modules/x/i.js": "excluded", "b.log": "ignored", ".git/": "version_control",
        "src/": "excluded", "__pycache__/": "build",
    }  # fmt: skip


def test_binary_and_huge_files_are_catalogued_only(tmp_path: Path) -> None:
    root = folder(
        tmp_path, logo__png=b"\x89PNG\0\0", big__sql=b"-- x\n" * (MAX_STORED_FILE // 5 + 1)
    )
    result = intake(request(tmp_path, root))
    assert result.one("source").counts["catalogued"] == {"binary": 1, "huge": 1}
    files = result.files()
    assert files["big.sql"]["encoding"] == "utf-8"
    assert files["big.sql"]["lines"] == MAX_STORED_FILE // 5 + 1
    assert all(files[name]["digest"] not in result.payloads for name in ("logo.png", "big.sql"))


def test_a_sparse_file_has_the_digest_of_its_bytes(tmp_path: Path) -> None:
    root = folder(tmp_path)
    with (root / "s").open("wb") as file:
        for place in (0, 5 << 20, 9 << 20):
            file.seek(place)
            file.write(b"x" * 70_000)
        file.truncate(40 << 20)
    expected = canonical.digest((root / "s").read_bytes())
    assert intake(request(tmp_path, root)).files()["s"]["digest"] == expected


def test_the_same_contents_are_one_payload(tmp_path: Path) -> None:
    root = fill(tmp_path / "s", "a.py", "b.py", "c/d.py")
    assert len(intake(request(tmp_path, root)).payloads) == 3  # report, contents, tree


ARCHIVES = {
    "s.tar": "w", "s.tar.gz": "w:gz", "s.tar.bz2": "w:bz2", "s.tar.xz": "w:xz", "s.tgz": "w:gz", "s.zip": "", "s.whl": "",
}  # fmt: skip


@pytest.mark.parametrize("name", ARCHIVES)
def test_every_kind_of_archive_gives_the_same_tree(name: str, tmp_path: Path) -> None:
    members = [
        ("s-1.0/app.py", b"x = 1\n"),
        ("s-1.0/build/lib/y.js", b"y\n"),
        ("s-1.0/my.egg-info/P", b"p\n"),
        ("s-1.0/.gitignore", b"*\n"),
    ]
    mode = ARCHIVES[name]
    path = tar(tmp_path / name, members, mode) if mode else zipped(tmp_path / name, *members)
    result = intake(request(tmp_path, path))
    assert set(result.files()) == {
        "app.py",
        "build/lib/y.js",
        "my.egg-info/P",
        ".gitignore",
    }  # packages whole
    assert result.one("source").provenance["stripped"] == "s-1.0"
    assert "note: the archive's only folder s-1.0/ is left out of paths" in result.summary.render()
    assert result.one("source").name == name


def test_dependencies_secrets_and_version_control_in_archives_are_left_out(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "a.zip", ("p/a.js", b"1"), ("p/node_modules/x/i.js", b"1"), ("p/node_modules/y/i.js", b"1"), ("p/.env", b"K=1"),
        ("p/.git/config", b"1"), ("p/t/x.log", b"1"),
    )  # fmt: skip
    result = intake(request(tmp_path, path, exclude=("t/",)))
    assert set(result.files()) == {"a.js"}
    assert result.skipped() == {
        "node_modules/": "dependencies",
        ".env": "secret_file",
        ".git/": "version_control",
        "t/": "excluded",
    }
    kept = intake(request(tmp_path, path, include=("node_modules/y/",)))
    assert "node_modules/y/i.js" in kept.files()
    assert kept.skipped()["node_modules/"] == "dependencies"


def test_a_package_folder_or_several_folders_are_not_stripped(tmp_path: Path) -> None:
    package = zipped(tmp_path / "p.zip", ("pkg/__init__.py", b""), ("pkg/a.py", b""))
    assert set(intake(request(tmp_path, package)).files()) == {"pkg/__init__.py", "pkg/a.py"}
    several = tar(tmp_path / "s.tar", [("a/x", b""), ("b/x", b"")])
    assert set(intake(request(tmp_path, several)).files()) == {"a/x", "b/x"}


def test_nothing_is_written_outside_by_an_archive(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    path = tar(inside / "a.tar", [("x", b"1"), special("l", tarfile.SYMTYPE, "x")])
    before = sorted(tmp_path.rglob("*"))
    intake(request(inside, path))
    assert sorted(tmp_path.rglob("*")) == [*before, inside / "given", inside / "given/report.md"]


def test_a_git_revision_is_read_without_running_anything(tmp_path: Path) -> None:
    def make(root: Path) -> None:
        fill(root, "a.py", "pkg/ünï.py", "node_modules/x.js", "skip.log")
        write(root / "empty.py", b"")
        write(root / ".gitattributes", "*.py filter=evil export-ignore\n")
        (root / "l").symlink_to("a.py")

    root = tmp_path / "repo@home"
    commit = git_repository(root, make)
    canary = tmp_path / "ran"
    with (root / ".git/config").open("a") as file:
        file.write(
            f'[filter "evil"]\n\tsmudge = touch {canary}\n[core]\n\tfsmonitor = touch {canary}\n\thooksPath = {tmp_path}\n'
        )
    write(root / "later.py")
    result = intake(request(tmp_path, f"{root}@main"))
    assert set(result.files()) == {"a.py", "pkg/ünï.py", "skip.log", "empty.py", ".gitattributes"}
    assert result.skipped() == {"node_modules/": "dependencies", "l": "link"}
    provenance = result.one("source").provenance
    assert provenance == {"name": "repo@home", "form": "git", "revision": "main", "commit": commit}
    assert not canary.exists()


def test_a_bare_repository_and_a_short_name_work(tmp_path: Path) -> None:
    commit = git_repository(tmp_path / "r", lambda root: fill(root, "a.py"))
    subprocess.run(
        ["git", "clone", "-q", "--bare", tmp_path / "r", tmp_path / "b.git"],
        check=True,
        capture_output=True,
    )
    assert set(intake(request(tmp_path, f"{tmp_path}/b.git@{commit[:8]}")).files()) == {"a.py"}


@pytest.mark.parametrize(
    "revision", ["nope", "--help", "main:a.py", "a b", "\x1b[0m", "main..main"]
)
def test_an_unknown_revision_is_one_clear_line(revision: str, tmp_path: Path) -> None:
    git_repository(tmp_path / "r", lambda root: fill(root, "a.py"))
    with pytest.raises(IntakeError, match="no such revision") as refused:
        intake(request(tmp_path, f"{tmp_path}/r@{revision}"))
    assert str(refused.value).isprintable()


def test_a_damaged_repository_is_one_clear_line(tmp_path: Path) -> None:
    git_repository(tmp_path / "r", lambda root: write(root / "a.py", "only\n"))
    blob = subprocess.run(
        ["git", "-C", tmp_path / "r", "rev-parse", "HEAD:a.py"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    (tmp_path / "r/.git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(
        IntakeError, match=r"could not deliver a\.py; check the repository with git fsck"
    ):
        intake(request(tmp_path, f"{tmp_path}/r@main"))


def test_without_git_a_revision_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git_repository(tmp_path / "r", lambda root: fill(root, "a.py"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(IntakeError, match="git is not installed"):
        intake(request(tmp_path, f"{tmp_path}/r@main"))


def test_the_same_source_gives_the_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    root = fill(tmp_path / "s", *(f"d{n % 7}/f{n}.py" for n in range(60)), "node_modules/x")
    write(root / "keys.py", f"A = '{AWS}'\n")
    request(tmp_path, root)
    script = (
        "import sys; from pathlib import Path\n"
        "from phases.intake import *; from ledger import canonical\n"
        "r = IntakeRequest(Path(sys.argv[1]), sys.argv[2], logs=(Path(sys.argv[1]),))\n"
        "for step in take(r, now=lambda: 'T'):\n"
        "    for data in step.payloads: print(canonical.digest(data))\n"
        "    for event in step.events: print(event.model_dump_json())\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script, tmp_path / "given/report.md", root],
            env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True,
        ).stdout
        for seed in ("0", "1")
    }  # fmt: skip
    assert len(outputs) == 1
