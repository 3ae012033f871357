from __future__ import annotations

import gc
import stat
from pathlib import Path

import pytest

from ledger.lines import split_lines
from phases.investigation.database import Database, DatabaseRefused
from phases.investigation.lines import Text, decode
from phases.investigation.snapshot import Snapshot


@pytest.mark.parametrize("text", ["", "\n", "a", "a\r\nb", "a\rb\n\n", "a\x0cb\u2028c\n"])
def test_lines_are_those_the_ledger_counts(text):
    assert Text(text).lines == split_lines(text)
    assert Text(text).data.count(b"\n") + (Text(text).data[-1:] not in (b"\n", b"")) == len(
        split_lines(text)
    )


def test_a_place_counts_characters_not_bytes():
    text = Text("äö x\nüy")
    assert text.place(text.data.index(b"x")) == (1, 4)
    assert text.place(text.data.index(b"y")) == (2, 2)


def test_text_that_does_not_fit_its_encoding_is_read_all_the_same():
    assert decode(b"\xff", "utf-8").lines == ["ÿ"]
    assert decode(b"a", "no-such-codec").lines == ["a"]


def test_the_same_material_has_the_same_identity_and_other_material_another(make):
    one, same = make({"a.py": "x = 1\n"}), make({"a.py": "x = 1\n"})
    other = make({"a.py": "x = 2\n"})
    assert one.digest == same.digest != other.digest


def test_a_snapshot_ends_at_its_position(make):
    case = make({"a.py": "x = 1\n"}, logs={"app.log": "one\n"})._reader
    assert [d.name for d in Snapshot.of(case, 2).documents.values()] == ["report.md"]
    assert [d.name for d in Snapshot.of(case).documents.values()] == ["report.md", "app.log"]


def test_a_second_tree_renames_nothing(make):
    snapshot = make({"a.py": "x = 1\n"})
    case = snapshot._reader
    case.add_tree({"a.py": "y = 2\n"})
    assert list(Snapshot.of(case).files) == ["S3/a.py", "a.py"]


def test_a_database_file_is_private_and_gone_after_closing(make, sql):
    snapshot = make(databases={"app.db": sql("create table t(a)")})
    with snapshot:
        database = snapshot.database("S3")
        database.query("select * from t")
        path = Path(database._held.folder, "snapshot.db")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.parent.exists()


def test_a_database_left_to_the_collector_leaves_no_file(sql):
    data = sql("create table t(a)")
    database = Database(lambda: data)
    database.query("select 1")
    folder = Path(database._held.folder)
    child = database._held.child
    del database
    gc.collect()
    assert not folder.exists()
    assert child.poll() is not None


@pytest.mark.parametrize("data", [b"no database at all", b"SQLite format 3\0" + b"\xff" * 4000])
def test_a_file_that_is_no_database_is_refused(make, data):
    with make(databases={"x.db": data}) as snapshot, pytest.raises(DatabaseRefused):
        snapshot.database("S3").query("select * from sqlite_schema")


def test_no_descriptor_is_left_open(make, sql):
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    for _ in range(3):
        with make(databases={"app.db": sql("create table t(a)")}) as snapshot:
            snapshot.database("S3").query("select * from t")
    after = len(list(Path("/proc/self/fd").iterdir())) if before else 0
    assert after <= before
