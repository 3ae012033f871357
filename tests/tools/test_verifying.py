"""What `verify` answers, by exit code, and what the commands around it do with its answer."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger.book import Book
from tests.ledger.making import edit, head_path, rechain
from tests.ledger.packages import Loose
from tests.tools.conftest import Cli

SMALL = Path(".caseledger/small.case")


def pragma(name: str, value: int) -> None:
    connection = sqlite3.connect(SMALL)
    connection.execute(f"PRAGMA {name} = {value}")
    connection.close()


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def newer() -> None:
    loose = Loose.of(Path("small.zip"))
    loose.manifest["format"] = 2
    loose.pack(Path("small.zip"))


def respelled() -> None:
    """Write one state with a space more; chain and anchor fit."""
    edit(SMALL, "UPDATE event SET state = CAST(state || ' ' AS BLOB) WHERE position = 30")
    rechain(SMALL)


ANSWERS: dict[str, tuple[Callable[[], object], str, int]] = {
    "whole case": (lambda: None, "small", 0),
    "whole package": (lambda: None, "small.zip", 0),
    "case cut in half": (lambda: halve(SMALL), "small", 1),
    "package cut in half": (lambda: halve(Path("small.zip")), "small.zip", 1),
    "state in another spelling": (respelled, "small", 1),
    "no such case": (SMALL.unlink, str(SMALL), 2),
    "no such package": (Path("small.zip").unlink, "small.zip", 2),
    "text in place of a case": (lambda: SMALL.write_text("a text\n"), "small", 5),
    "text in place of a package": (lambda: Path("small.zip").write_text("text"), "small.zip", 5),
    "empty case": (lambda: SMALL.write_bytes(b""), "small", 5),
    "empty package": (lambda: Path("small.zip").write_bytes(b""), "small.zip", 5),
    "database of another program": (lambda: pragma("application_id", 5), "small", 5),
    "case of a newer format": (lambda: pragma("user_version", 2), "small", 5),
    "package of a newer format": (newer, "small.zip", 5),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_verify_answers_no_for_what_was_altered_and_5_for_what_cannot_be_read(
    what: str, call: Cli
) -> None:
    change, name, code = ANSWERS[what]
    change()
    found = call("verify", name)
    assert found.code == code
    assert len(found.err.splitlines()) == (code in (2, 5))
    assert (found.out == "") == (code in (2, 5))
    assert "run `verify`" not in found.out + found.err
    shown = call("verify", name, "--json")
    assert shown.code == code
    assert next(iter(shown.json)) == ("error" if code in (2, 5) else "ok")


def test_a_case_that_could_not_be_imported_again_is_not_exported(call: Cli) -> None:
    respelled()
    refused = call("export", "small", "-o", "backup.zip")
    assert (refused.code, refused.out, len(refused.err.splitlines())) == (5, "", 1)
    assert refused.err.count("small.case") == 1
    assert "position 30: its state is not the canonical JSON of its event" in refused.err
    assert refused.err.rstrip().endswith("nothing was written")
    assert not Path("backup.zip").exists()


def test_an_error_names_its_file_once(call: Cli) -> None:
    edit(SMALL, "DELETE FROM event WHERE position > 100")
    found = call("export", "small", "-o", "backup.zip")
    assert (found.code, found.err.count("small.case: ")) == (5, 1)
    loose = Loose.of(Path("small.zip"))
    loose.keep_listing = True
    loose["README.txt"] = loose["README.txt"].replace(b"A case", b"B case")
    loose.pack(Path("odd.zip"))
    for command in (["import", "odd.zip"], ["log", "odd.zip"], ["measure", "cache", "odd.zip"]):
        assert call(*command).err.count("odd.zip: ") == 1


def test_a_head_is_not_sealed_while_the_ledger_is_behind_its_anchor(call: Cli) -> None:
    assert call("seal", "small").code == 0
    edit(SMALL, "DELETE FROM event WHERE position > 100")
    found = call("seal", "small")
    assert (found.code, found.out, len(found.err.splitlines())) == (5, "", 1)
    assert "the tail is missing" in found.err
    head_path(SMALL).unlink()
    assert call("seal", "small").code == 0


@pytest.mark.parametrize(
    "command",
    [
        ["label", "small", "right"],
        ["amend", "small", "--observation", "It rains."],
        ["recover", "small", "--accept-head"],
        ["act", "small", "list_files", "--record"],
    ],
)
def test_nothing_is_recorded_in_a_ledger_whose_triggers_are_gone(
    command: list[str], call: Cli
) -> None:
    connection = sqlite3.connect(SMALL)
    connection.execute("DROP TRIGGER event_delete")
    connection.close()
    before = SMALL.read_bytes()
    found = call(*command)
    assert (found.code, len(found.err.splitlines())) == (5, 1)
    assert "trigger event_delete is missing; restore it from a package, or go on" in found.err
    assert SMALL.read_bytes() == before


def test_the_fork_that_is_advised_has_its_triggers_again(call: Cli) -> None:
    connection = sqlite3.connect(SMALL)
    connection.execute("DROP TRIGGER event_delete")
    connection.close()
    with Book.open(SMALL) as book:
        at = str(book.head.position)
    assert call("fork", "small", "--at", at, "-o", "f.case").code == 0
    assert call("label", "f.case", "right").code == 0
    assert call("verify", "f.case").code == 0


def test_requests_of_a_copy_that_are_not_rebuilt_are_said_to_be_withheld(call: Cli) -> None:
    requests = call("status", "small", "--json").json["requests"]
    assert call("export", "small", "--redacted", "--withhold", "S1", "-o", "copy.zip").code == 0
    found = call("verify", "copy.zip").out
    assert (
        f"0 of {requests} requests rebuilt byte for byte "
        f"({requests} unchecked: what they need is withheld)"
    ) in found


def test_what_does_not_follow_is_said_in_words_without_names_of_exceptions(call: Cli) -> None:
    edit(
        SMALL,
        "UPDATE event SET state = CAST(replace(CAST(state AS TEXT), '\"R3\"', '\"R99\"') AS BLOB) "
        "WHERE topic = 'response.accepted/1'",
    )
    rechain(SMALL)
    found = call("verify", "small")
    assert (found.code, "Error" in found.out) == (1, False)
    assert "does not follow from the events before it" in found.out
    assert "'R99' is not there" in found.out


def test_a_restored_backup_verifies(call: Cli) -> None:
    assert call("export", "small", "-o", "backup.zip").code == 0
    shutil.move(SMALL, "away.case")
    head_path(SMALL).unlink()
    assert call("import", "backup.zip", "-o", str(SMALL)).code == 0
    assert call("verify", "small").code == 0
