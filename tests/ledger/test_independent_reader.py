"""The format page is enough: a reader written from it alone agrees with the ledger."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ledger import canonical, packing
from ledger.book import Book
from ledger.errors import PayloadWithheld
from ledger.events import RequestPrepared
from ledger.package import Package
from ledger.redacted import Redacted, known_event
from projections.redaction import redaction
from tests.ledger import independent_reader
from tests.ledger.making import append_raw, edit, head_path, request, whole_case
from tests.ledger.packages import Loose
from tests.ledger.test_package import withhold

READER = Path(independent_reader.__file__)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole_case(tmp_path_factory.mktemp("original") / "a 100%.case")


@pytest.fixture(scope="module")
def package(case: Path) -> Path:
    with Book.open(case) as book:
        packing.write(book, case.with_suffix(".zip"), extra={"prompts/p.md": b"prompt"})
    return case.with_suffix(".zip")


def expected(reader: Book | Package) -> list[str]:
    """Return what the independent reader has to print, by the ledger's own answer."""
    lines = [
        f"event {row.position} {row.topic} "
        + ("withheld" if row.state is None else row.state.decode())
        for row in reader.rows()
    ]
    stored = sorted(digest for digest, _ in reader.stored_payloads())
    lines += [f"document {digest} {length(reader, digest)}" for digest in stored]
    for event in map(known_event, reader.rows()):
        if isinstance(event, RequestPrepared):
            lines.append(f"request {event.request} {text(reader, event.document.digest)}")
    return [*lines, f"head {reader.head.position} {reader.head.chain.hex()}"]


def text(reader: Book | Package, digest: str) -> str:
    try:
        return reader.payload(digest).decode()
    except PayloadWithheld:
        return "withheld"


def length(reader: Book | Package, digest: str) -> int | str:
    try:
        return len(reader.payload(digest))
    except PayloadWithheld:
        return "withheld"


def run(path: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-I",
        str(READER),
        str(path),
    ]  # isolated: nothing of ours on its path
    return subprocess.run(command, capture_output=True, text=True, check=False)


def printed(path: Path) -> list[str]:
    done = run(path)
    assert (done.returncode, done.stderr) == (0, "")
    *lines, head = done.stdout.splitlines()
    documents = [line for line in lines if line.startswith("document ")]
    requests = [line for line in lines if line.startswith("request ")]
    events = [line for line in lines if line.startswith("event ")]
    assert len(events) + len(documents) + len(requests) == len(lines)
    return [*events, *sorted(documents), *requests, head]


def test_it_uses_the_standard_library_only() -> None:
    tree = ast.parse(READER.read_text())
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {str(n.module) for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


def test_it_reads_a_case_as_the_ledger_does(case: Path) -> None:
    with Book.open(case) as book:
        assert printed(case) == expected(book)


def test_it_reads_a_package_as_the_ledger_does(package: Path) -> None:
    with Package(package) as reader:
        assert printed(package) == expected(reader)


def test_it_reads_the_same_documents_from_both(case: Path, package: Path) -> None:
    _, events, documents = independent_reader.read(case)
    _, again, same = independent_reader.read(package)
    assert again == events
    assert same == documents
    with Book.open(case) as book:
        assert documents == {digest: book.payload(digest) for digest, _ in book.stored_payloads()}


def test_it_reads_events_that_no_release_knows(case: Path, tmp_path: Path) -> None:
    path = Path(shutil.copyfile(case, tmp_path / "b.case"))
    append_raw(path, "os:system", b'{"command":"true"}')
    with Book.open(path) as book:
        assert printed(path) == expected(book)


@pytest.mark.parametrize("what", ["S2", "S3", "R1", "#12", "report"])
def test_it_reads_a_copy_made_for_sharing(what: str, case: Path, tmp_path: Path) -> None:
    path = tmp_path / "shared.zip"
    with Book.open(case) as book:
        packing.write(Redacted(book, redaction(book, [what]).withheld), path)
    lines = printed(path)
    with Package(path) as reader:
        assert lines == expected(reader)
    assert any(line.endswith(" withheld") for line in lines)


def test_it_reads_an_event_that_is_withheld_alone(package: Path, tmp_path: Path) -> None:
    path = withhold(package, tmp_path / "shared.zip")
    with Package(path) as reader:
        assert printed(path) == expected(reader)


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE event SET state = x'7b7d' WHERE position = 5", "event 5: chain"),
        ("UPDATE event SET topic = 'x' WHERE position = 5", "event 5: chain"),
        ("DELETE FROM event WHERE position = 5", "event 5: position 6"),
        ("DELETE FROM event WHERE position > 20", "behind its anchor"),
        ("UPDATE event SET case_id = 'x' WHERE position = 3", "not one case"),
        ("UPDATE chunk SET data = x'00' WHERE id = 2", "chunk 2"),
        ("UPDATE chunk SET codec = 9 WHERE id = 2", "codec 9"),
        ("UPDATE document SET size = size + 1 WHERE size > 9000", "payload sha256:"),
        ("DELETE FROM document WHERE size > 9000", "is missing"),
    ],
)
def test_it_finds_what_verify_finds(statement: str, says: str, case: Path, tmp_path: Path) -> None:
    path = Path(shutil.copyfile(case, tmp_path / "b.case"))
    shutil.copyfile(head_path(case), head_path(path))
    edit(path, statement)
    done = run(path)
    assert done.returncode == 1, done.stderr
    assert says in done.stderr


@pytest.mark.parametrize("member", ["events.jsonl", "documents.jsonl", "chunks.jsonl"])
def test_it_finds_an_altered_package(member: str, package: Path, tmp_path: Path) -> None:
    loose = Loose.of(package)
    loose.keep_listing = True
    loose[member] = loose[member].replace(b"1", b"2", 1)
    done = run(loose.pack(tmp_path / "b.zip"))
    assert (done.returncode, done.stderr) == (1, f"damaged: {member}\n")
    loose.keep_listing = False
    assert run(loose.pack(tmp_path / "c.zip")).returncode == 1


def test_the_digest_it_prints_is_that_of_a_request(package: Path) -> None:
    assert f"document {canonical.digest(request(2))} {len(request(2))}" in printed(package)
