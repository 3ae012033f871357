"""A snapshot is complete and consistent, the user's files are untouched, and keys are gone."""

# ruff: noqa: E501 - tables and scripts read best with one case a line

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from phases.intake import IntakeError
from tests.phases.intake.making import (
    AWS,
    AWS_OTHER,
    GITHUB,
    Result,
    database,
    intake,
    request,
)


def opened(result: Result, path: Path) -> sqlite3.Connection:
    path.write_bytes(result.bytes_of("database"))
    return sqlite3.connect(path)


def taken(tmp: Path, path: Path, **options: Any) -> Result:
    before = stamps(path.parent)
    result = intake(request(tmp, databases=(path,), **options))
    assert stamps(path.parent) == before, "nothing beside the user's database changed"
    return result


def stamps(where: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        p.name: (p.stat().st_size, p.stat().st_mtime_ns, p.read_bytes())
        for p in where.iterdir()
        if p.is_file()
    }


def rows(result: Result, tmp: Path, sql: str) -> list[Any]:
    with closing(opened(result, tmp / "out.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return connection.execute(sql).fetchall()


def killed_writer(path: Path) -> Path:
    """Leave a database with 100 committed rows that only its write-ahead log holds."""
    path.parent.mkdir()
    script = (
        "import sqlite3, os, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA journal_mode=WAL')\n"
        "c.execute('CREATE TABLE t(a)'); c.commit(); c.execute('PRAGMA wal_checkpoint'); c.execute('PRAGMA wal_autocheckpoint=0')\n"
        "c.executemany('INSERT INTO t VALUES(?)', [(i,) for i in range(100)]); c.commit(); os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", script, path], check=True)
    return path


def test_a_database_at_rest_comes_back_byte_for_byte(tmp_path: Path) -> None:
    path = database(tmp_path / "d" / "app.db")
    result = taken(tmp_path, path)
    assert result.bytes_of("database") == path.read_bytes()
    assert result.one("database").media == "sqlite"
    assert result.one("database").provenance["copied"] == "backup"


@pytest.mark.parametrize("index", ["with its index", "without its index"])
def test_rows_of_a_write_ahead_log_are_taken(tmp_path: Path, index: str) -> None:
    path = killed_writer(tmp_path / "d" / "app.db")
    if index == "without its index":
        path.with_name("app.db-shm").unlink()
    result = taken(tmp_path, path)
    data = result.bytes_of("database")
    assert data[18:20] == b"\1\1", "in rollback-journal mode, complete in itself"
    assert rows(result, tmp_path, "SELECT count(*) FROM t") == [(100,)]
    assert taken(tmp_path, path).bytes_of("database") == data


def test_a_database_in_wal_mode_at_rest_is_not_written_beside(tmp_path: Path) -> None:
    path = database(
        tmp_path / "d" / "w.db",
        "PRAGMA journal_mode = WAL",
        "CREATE TABLE t (a)",
        "INSERT INTO t VALUES (1)",
    )
    assert path.read_bytes()[18] == 2
    assert rows(taken(tmp_path, path), tmp_path, "SELECT * FROM t") == [(1,)]


def test_a_write_ahead_log_beside_the_target_of_a_link_is_taken(tmp_path: Path) -> None:
    path = killed_writer(tmp_path / "d" / "app.db")
    (tmp_path / "link.db").symlink_to(path)
    result = intake(request(tmp_path, databases=(tmp_path / "link.db",)))
    assert rows(result, tmp_path, "SELECT count(*) FROM t") == [(100,)]


def test_a_hot_journal_is_rolled_back_in_the_copy_only(tmp_path: Path) -> None:
    path = database(tmp_path / "d" / "j.db", "CREATE TABLE t (a)", "INSERT INTO t VALUES ('old')")
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE t SET a = 'new'")
        writer.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 5000) INSERT INTO t SELECT hex(randomblob(50)) FROM n"
        )
        killed = tmp_path / "k" / "j.db"
        killed.parent.mkdir()
        for suffix in ("", "-journal"):
            shutil.copyfile(f"{path}{suffix}", f"{killed}{suffix}")
        writer.execute("ROLLBACK")
    assert rows(taken(tmp_path, killed), tmp_path, "SELECT a FROM t") == [("old",)]


def test_a_database_that_is_written_to_is_taken_or_refused_but_never_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phases.intake.databases._BUSY_SECONDS", 0.1)
    path = database(tmp_path / "d" / "app.db")
    script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN EXCLUSIVE'); print('x', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with pytest.raises(IntakeError, match="is locked by another program"):
            intake(request(tmp_path, databases=(path,)))
        writer.kill()


KEYED = (
    "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, key TEXT UNIQUE, n INTEGER)",
    f"INSERT INTO users VALUES (1, 'a', '{AWS}', 5), (2, 'b', '{AWS_OTHER}', 6), (7, 'c', 'none', 7)",
    "CREATE TABLE log (line TEXT)",
    f"INSERT INTO log VALUES ('used {AWS} twice: {AWS}'), ('password=hunter2'), ('{GITHUB}')",
    "CREATE INDEX by_key ON users (key)",
    "CREATE TABLE w (k TEXT PRIMARY KEY, v TEXT) WITHOUT ROWID",
    f"INSERT INTO w VALUES ('{AWS}', '1'), ('z', '{GITHUB}')",
    "CREATE TABLE audit (what TEXT)",
    "CREATE TRIGGER t AFTER UPDATE ON users BEGIN INSERT INTO audit VALUES ('changed'); END",
    "CREATE TABLE deleted (a TEXT)",
    f"INSERT INTO deleted VALUES ('{AWS_OTHER}')",
    "DELETE FROM deleted",
)


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
def test_keys_in_cells_are_replaced_and_keep_their_meaning(tmp_path: Path, encoding: str) -> None:
    path = database(tmp_path / "d" / "k.db", *KEYED, encoding=encoding)
    result = taken(tmp_path, path)
    data = result.bytes_of("database")
    for key in (AWS, AWS_OTHER, GITHUB):
        for codec in ("utf-8", "utf-16-le", "utf-16-be"):
            assert key.encode(codec) not in data
    found = rows(result, tmp_path, "SELECT id, name, key, n FROM users ORDER BY id")
    first, second, third = (row[2] for row in found)
    assert first != second
    assert len(first) == len(second) == len(AWS)
    assert third == "none"
    assert rows(result, tmp_path, "SELECT k FROM w WHERE v = '1'") == [(first,)]
    assert rows(result, tmp_path, "SELECT line FROM log")[:2] == [
        (f"used {first} twice: {first}",),
        ("password=hunter2",),
    ]
    assert rows(result, tmp_path, "SELECT count(*) FROM audit") == [(0,)], (
        "a replacement is no change of the application's"
    )
    assert rows(result, tmp_path, "SELECT name FROM sqlite_schema WHERE type = 'trigger'") == [
        ("t",)
    ]
    assert taken(tmp_path, path).bytes_of("database") == data
    events = {event.kind: event for event in result.secrets()}
    assert (events["aws_access_key"].count, events["github_token"].count) == (5, 2)
    assert {"table": "users", "column": "key", "row": 2} in events["aws_access_key"].places


def test_a_deleted_rows_key_does_not_survive_in_a_free_page(tmp_path: Path) -> None:
    path = database(
        tmp_path / "d" / "f.db", "CREATE TABLE t (a)", f"INSERT INTO t VALUES ('{AWS}')", "PRAGMA secure_delete = OFF", "DELETE FROM t",
    )  # fmt: skip
    assert AWS.encode() in path.read_bytes()
    result = taken(tmp_path, path)
    assert AWS.encode() not in result.bytes_of("database")
    assert not result.secrets()


def test_a_full_text_index_forgets_the_keys_of_its_rows(tmp_path: Path) -> None:
    path = database(
        tmp_path / "d" / "f.db",
        "CREATE VIRTUAL TABLE f USING fts5(a)",
        f"INSERT INTO f VALUES ('key {AWS} here'), ('other')",
    )
    result = taken(tmp_path, path)
    assert AWS.lower().encode() not in result.bytes_of("database").lower()
    assert rows(result, tmp_path, "SELECT count(*) FROM f WHERE f MATCH 'here'") == [(1,)]
    assert rows(result, tmp_path, f"SELECT count(*) FROM f WHERE f MATCH '{AWS}'") == [(0,)]


def test_text_that_is_no_utf8_and_blobs_stay_as_they_are(tmp_path: Path) -> None:
    path = database(
        tmp_path / "d" / "b.db", "CREATE TABLE t (a, b)",
        f"INSERT INTO t VALUES (CAST(x'ff41' AS TEXT), x'00ff'), ('{AWS}', 1.5), (CAST(x'ff20' || '{AWS}' AS TEXT), NULL)",
    )  # fmt: skip
    result = taken(tmp_path, path)
    found = rows(result, tmp_path, "SELECT typeof(a), hex(a), typeof(b) FROM t")
    assert found[0] == ("text", "FF41", "blob")
    assert found[1][2] == "real"
    assert found[2][1].startswith("FF20" + b"AKIAxxxx".hex().upper())
    assert found[2][0] == "text"


def test_a_key_in_the_schema_or_a_blob_is_noted(tmp_path: Path) -> None:
    path = database(tmp_path / "d" / "s.db", f"CREATE TABLE t (a DEFAULT '{AWS}')")
    assert any("left there" in note for note in taken(tmp_path, path).summary.notes)


def test_keys_stay_on_request(tmp_path: Path) -> None:
    path = database(tmp_path / "d" / "k.db", *KEYED)
    assert taken(tmp_path, path, keep_secrets=True).bytes_of("database") == path.read_bytes()


def test_a_schema_that_cannot_be_updated_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "d" / "c.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.create_collation("odd", lambda a, b: (a > b) - (a < b))
        connection.execute("CREATE TABLE t (a TEXT COLLATE odd UNIQUE)")
        connection.execute("INSERT INTO t VALUES (?)", (AWS,))
    with pytest.raises(IntakeError, match=r"cannot be replaced|is damaged|cannot be opened"):
        intake(request(tmp_path, databases=(path,)))


@pytest.mark.slow
def test_a_million_rows_are_taken_in_reasonable_time(tmp_path: Path) -> None:
    path = database(
        tmp_path / "d" / "m.db", "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b TEXT, c REAL, d TEXT)",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 1000000) INSERT INTO t SELECT i, 'name ' || i, hex(i * 7919), i / 3.0, 'x' FROM n",
        f"UPDATE t SET d = '{AWS}' WHERE id % 100000 = 0",
    )  # fmt: skip
    started = os.times().elapsed
    result = intake(request(tmp_path, databases=(path,)))
    assert os.times().elapsed - started < 60
    assert result.secrets()[0].count == 10
