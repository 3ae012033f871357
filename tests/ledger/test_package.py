"""Packages: the same everywhere, readable with stock tools, and never trusted."""

from __future__ import annotations

import base64
import json
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger import archive as archive_module
from ledger import canonical, packing, topics
from ledger.book import Book
from ledger.errors import (
    CaseExists,
    CaseNotFound,
    LedgerDamaged,
    LedgerError,
    LedgerLocked,
    PackageRefused,
    PayloadDamaged,
    StorageError,
)
from ledger.events import ArtifactAdded, CaseForked
from ledger.package import Package, restore, verify_package
from ledger.reader import Head
from ledger.verify import verify_book
from tests.ledger.making import (
    AT,
    DATABASE,
    FILES,
    LOG,
    REPORT,
    append_raw,
    contents,
    edit,
    fixed_sources,
    listing,
    note,
    one_line,
    open_files,
    raising,
    ref,
    request,
    small_case,
    tree_document,
    whole_case,
    whole_record,
)
from tests.ledger.packages import Loose, central, patched
from tests.ledger.test_verify import tree_of, with_tree

EXTRA = {
    "prompts/hypotheses_v2.md": b"# A prompt\n",
    "prompts/schemas/hypotheses_v2.json": b"{}\n",
    "derived/report.md": b"# A report\n",
}


def export(case: Path, path: Path, **options: Any) -> str:
    with Book.open(case) as book:
        return packing.write(book, path, **options)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole_case(tmp_path_factory.mktemp("original") / "a.case")


@pytest.fixture(scope="module")
def exported(original: Path) -> Path:
    path = original.with_suffix(".zip")
    export(original, path, extra=EXTRA)
    return path


# The same everywhere ------------------------------------------------------------------------------


def test_the_same_case_gives_the_same_bytes(original: Path, exported: Path, tmp_path: Path) -> None:
    identity = export(original, tmp_path / "b.zip", extra=dict(reversed(EXTRA.items())))
    assert (tmp_path / "b.zip").read_bytes() == exported.read_bytes()
    with Package(exported) as package:
        assert package.identity == identity


def test_export_import_export_gives_the_same_head_identity_and_bytes(
    original: Path, exported: Path, tmp_path: Path
) -> None:
    with Package(exported) as package:
        head = restore(package, tmp_path / "b.case")
        identity = package.identity
    with Book.open(original) as book:
        assert book.head == head
    assert contents(tmp_path / "b.case")["event"] == contents(original)["event"]
    assert export(tmp_path / "b.case", tmp_path / "b.zip", extra=EXTRA) == identity
    assert (tmp_path / "b.zip").read_bytes() == exported.read_bytes()
    with Book.open(tmp_path / "b.case") as book:
        assert verify_book(book).findings == []
        assert book.anchor() == head


def test_an_imported_case_can_be_continued(exported: Path, tmp_path: Path) -> None:
    with Package(exported) as package:
        head = restore(package, tmp_path / "b.case")
    with Book.open_for_writing(tmp_path / "b.case") as book:
        assert book.append(note(9)).position == head.position + 1
    with Book.open(tmp_path / "b.case") as book:
        assert verify_book(book).findings == []


def test_the_order_in_which_a_store_was_filled_does_not_show(
    original: Path, exported: Path, tmp_path: Path
) -> None:
    """Row numbers are private: other numbers, the same package."""
    path = shutil.copyfile(original, tmp_path / "b.case")
    with Book.open(path) as book:
        rows, documents = list(book.rows()), [d for d, _ in book.stored_payloads()]
        with Book.create(tmp_path / "c.case") as other:
            parts = {d: [chunk for _, chunk in book.numbered_chunks(d)] for d in documents}
            other.restore(
                rows,
                [(d, sum(map(len, parts[d])), parts[d]) for d in sorted(documents, reverse=True)],
            )
    assert contents(tmp_path / "c.case")["chunk"] != contents(path)["chunk"]
    export(tmp_path / "c.case", tmp_path / "c.zip", extra=EXTRA)
    assert (tmp_path / "c.zip").read_bytes() == exported.read_bytes()


def test_the_identity_is_the_digest_of_the_manifest(exported: Path) -> None:
    with Package(exported) as package, zipfile.ZipFile(exported) as archive:
        assert package.identity == canonical.digest(archive.read("manifest.json"))


def test_the_readme_is_part_of_the_format() -> None:
    """It stands in the manifest's digests: another text is another identity for every package."""
    assert canonical.digest(packing._README.encode()) == (
        "sha256:33fa4403233e3ba046388306a755701fa20f9970ad125ff09482e4b7e9a67f57"
    )


def test_a_package_holds_what_the_manifest_says_in_the_order_of_the_page(exported: Path) -> None:
    with zipfile.ZipFile(exported) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        names = archive.namelist()
        assert names == ["manifest.json", *(m["name"] for m in manifest["members"])]
        assert names[1:5] == ["README.txt", "events.jsonl", "documents.jsonl", "chunks.jsonl"]
        intake = [name for name in names if name.startswith("intake/")]
        assert intake == sorted(intake)
        assert names[-3:] == [*sorted(list(EXTRA)[:2]), "derived/report.md"]
        assert {
            (i.date_time, i.external_attr >> 16, i.compress_type) for i in archive.infolist()
        } == {((1980, 1, 1, 0, 0, 0), 0o100644, zipfile.ZIP_DEFLATED)}
    assert list(manifest) == [
        *("format", "case_id", "trial_id", "package_id", "generation", "head", "members")
    ]
    assert (manifest["case_id"], manifest["trial_id"]) == ("case-17", "trial-1")
    assert manifest["generation"] == 8


INTAKE = {
    "intake/S1/report.md": REPORT,
    "intake/S3/logs/app.log": LOG,
    "intake/S4/db/app.db": DATABASE,
    "intake/S5/logs/copy.log": LOG,
    "intake/S2/src/a.py": FILES["src/a.py"],
    "intake/S2/src/b%3A 100%25.py": FILES["src/b: 100%.py"],
    "intake/S2/src/bin.dat": FILES["src/bin.dat"],
    "intake/S2/src/empty.py": b"",
    "intake/S2/src/same.py": FILES["src/same.py"],
}


def test_the_intake_is_there_as_files(exported: Path) -> None:
    with zipfile.ZipFile(exported) as archive:
        files = {n: archive.read(n) for n in archive.namelist() if n.startswith("intake/")}
    assert files == INTAKE


@pytest.mark.skipif(shutil.which("unzip") is None, reason="unzip is not installed")
def test_stock_unzip_reads_every_member(exported: Path, tmp_path: Path) -> None:
    tested = subprocess.run(["unzip", "-t", exported], capture_output=True, text=True, check=True)
    assert "No errors detected" in tested.stdout
    subprocess.run(["unzip", "-q", exported, "-d", tmp_path], capture_output=True, check=True)
    found = {
        str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()
    }
    with zipfile.ZipFile(exported) as archive:
        assert archive.testzip() is None
        assert found == {name: archive.read(name) for name in archive.namelist()}


def test_a_package_reads_like_the_case_it_was_made_from(original: Path, exported: Path) -> None:
    with Book.open(original) as book, Package(exported) as package:
        assert list(package.events()) == list(book.events())
        assert list(package.events(9, after=3)) == list(book.events(9, after=3))
        assert list(package.rows()) == list(book.rows())
        assert (package.head, package.case_id) == (book.head, book.case_id)
        assert dict(package.stored_payloads()) == dict(book.stored_payloads())
        for digest, size in book.stored_payloads():
            assert package.payload(digest) == book.payload(digest)
            assert package.check(digest) == size
        assert not package.is_redacted
        assert verify_package(package).findings == []
        assert package.member("prompts/hypotheses_v2.md") == b"# A prompt\n"
        with pytest.raises(PayloadDamaged):
            package.payload("sha256:" + "0" * 64)


def test_a_package_can_be_packed_again_as_it_is(exported: Path, tmp_path: Path) -> None:
    with Package(exported) as package:
        packing.write(package, tmp_path / "b.zip", extra=EXTRA)
    assert (tmp_path / "b.zip").read_bytes() == exported.read_bytes()


def test_a_package_is_held_against_a_sealed_head(exported: Path) -> None:
    with Package(exported) as package:
        seal = Head(5, list(package.rows())[4].chain)
        assert verify_package(package, seal).ok
        assert verify_package(package, Head(5, bytes(32))).first_bad_position == 5
        assert verify_package(package, Head(99, bytes(32))).first_bad_position == 25


def test_events_of_a_newer_release_survive_with_their_payloads(
    original: Path, tmp_path: Path
) -> None:
    path = shutil.copyfile(original, tmp_path / "a.case")
    shutil.copyfile(f"{original}.head", f"{path}.head")
    payload = b"what only a newer release knows the use of"
    with Book.open_for_writing(path) as book:
        book._writer([note(1)])
        book.payloads.put(payload)
    append_raw(path, "os:system", b'{"command":"touch /tmp/owned"}')
    append_raw(path, "run.stopped/1", topics.encode(note(9))[1][:-1] + b',"novelty":1}')
    identity = export(path, tmp_path / "a.zip")
    with Package(tmp_path / "a.zip") as package:
        assert verify_package(package).ok
        restore(package, tmp_path / "b.case")
    assert contents(tmp_path / "b.case")["event"] == contents(path)["event"]
    with Book.open(tmp_path / "b.case") as book:
        assert book.payload(canonical.digest(payload)) == payload
    assert export(tmp_path / "b.case", tmp_path / "b.zip") == identity


def test_a_case_whose_intake_never_ended_has_no_identity_of_its_material(tmp_path: Path) -> None:
    export(small_case(tmp_path / "a.case"), tmp_path / "a.zip")
    manifest = Loose.of(tmp_path / "a.zip").manifest
    assert (manifest["package_id"], manifest["generation"]) == (None, 0)
    with Package(tmp_path / "a.zip") as package:
        restore(package, tmp_path / "b.case")


def test_a_fork_is_packed_under_its_own_identity(tmp_path: Path) -> None:
    path = small_case(tmp_path / "a.case")
    with Book.open_for_writing(path) as book:
        book.append(
            CaseForked(
                at=AT,
                trial_id="trial-2",
                origin_trial_id="trial-1",
                origin_position=4,
                origin_chain=book.head.chain.hex(),
            )
        )
    export(path, tmp_path / "a.zip")
    assert Loose.of(tmp_path / "a.zip").manifest["trial_id"] == "trial-2"


# Writing a file -----------------------------------------------------------------------------------


def test_a_package_overwrites_only_when_told(original: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_text("somebody's")
    with pytest.raises(CaseExists):
        export(original, path)
    assert path.read_text() == "somebody's"
    export(original, path, overwrite=True)
    Package(path).close()
    with pytest.raises(StorageError, match="does not exist"):
        export(original, tmp_path / "none" / "a.zip")
    assert listing(tmp_path) == ["a.zip"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_export_that_fails_leaves_the_folder_as_it_was(
    overwrite: bool, original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.zip"
    if overwrite:
        path.write_text("the last good one")
    monkeypatch.setattr(zipfile.ZipFile, "open", raising(OSError(28, "No space left")))
    with pytest.raises(StorageError, match="full"):
        export(original, path, overwrite=overwrite)
    assert listing(tmp_path) == (["a.zip"] if overwrite else [])
    assert not overwrite or path.read_text() == "the last good one"


def test_two_exports_to_one_name_do_not_meet(original: Path, tmp_path: Path) -> None:
    from ledger.files import new_file

    with new_file(tmp_path / "a.zip") as file:
        file.write(b"first")
        with pytest.raises(LedgerLocked):
            export(original, tmp_path / "a.zip")
    assert (tmp_path / "a.zip").read_bytes() == b"first"
    assert listing(tmp_path) == ["a.zip"]


def test_what_a_killed_export_left_is_taken_over(original: Path, tmp_path: Path) -> None:
    (tmp_path / ".a.zip.new").write_bytes(b"x" * 10_000_000)
    export(original, tmp_path / "a.zip")
    Package(tmp_path / "a.zip").close()
    assert listing(tmp_path) == ["a.zip"]


def test_a_leftover_that_is_the_finished_package_is_not_written_to(
    original: Path, tmp_path: Path
) -> None:
    """Killed after the file got its name, before the temporary name went: one file, two names."""
    path = tmp_path / "a.zip"
    export(original, path)
    good = path.read_bytes()
    os.link(path, tmp_path / ".a.zip.new")
    with pytest.raises(PackageRefused), new_file_that_fails(path):
        pass
    assert path.read_bytes() == good
    assert listing(tmp_path) == ["a.zip"]


def new_file_that_fails(path: Path) -> Any:
    from contextlib import contextmanager

    from ledger.files import new_file

    @contextmanager
    def failing() -> Any:
        with new_file(path, overwrite=True) as file:
            file.write(b"half")
            raise PackageRefused("on purpose")
        yield

    return failing()


def test_a_temporary_name_that_is_a_link_is_not_followed(original: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".a.zip.new").symlink_to(victim)
    with pytest.raises(StorageError):
        export(original, tmp_path / "a.zip")
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(
    "document", [tree_of("../a"), tree_of("/a"), tree_of("a", "a/b")], ids=["up", "root", "below"]
)
def test_a_case_with_names_that_lead_outside_is_not_packed(
    document: bytes, original: Path, tmp_path: Path
) -> None:
    path = shutil.copyfile(original, tmp_path / "a.case")
    with_tree(path, document, b"abc")
    with pytest.raises(LedgerDamaged, match="tree document"):
        export(path, tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()


@pytest.mark.parametrize("name", ["../a", "/a", "a/../../b", "", "a//b"])
def test_an_artefact_with_a_name_that_leads_outside_is_not_packed(
    name: str, original: Path, tmp_path: Path
) -> None:
    path = shutil.copyfile(original, tmp_path / "a.case")
    edit(
        path,
        "UPDATE event SET state = CAST(replace(CAST(state AS TEXT), '\"report.md\"', ?) AS BLOB)",
        json.dumps(name),
    )
    with pytest.raises(LedgerDamaged, match="not a path"):
        export(path, tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()


# Hostile packages ---------------------------------------------------------------------------------


def edit_lines(member: str, change: Callable[[list[Any]], Any], *, rechain: bool = False) -> Any:
    """Return an edit of the lines of a member; `change` may return new ones."""

    def run(loose: Loose) -> None:
        lines: list[Any] = loose.lines(member)
        changed = change(lines)
        loose.set_lines(member, lines if changed is None else changed)
        if rechain:
            loose.rechain()

    return run


def edit_line(name: str, number: int, /, **changes: Any) -> Any:
    """Return an edit of the fields of one line; None removes a field."""

    def change(lines: list[Any]) -> None:
        lines[number] = {k: v for k, v in (lines[number] | changes).items() if v is not None}

    return edit_lines(name, change)


def edit_manifest(**changes: Any) -> Any:
    return lambda loose: loose.manifest.update(changes)


def raw(data: bytes | Callable[[bytes], bytes]) -> Any:
    def run(loose: Loose) -> None:
        before = canonical.to_bytes(fitting(loose)) + b"\n"
        loose.raw_manifest = data if isinstance(data, bytes) else data(before)

    return run


def fitting(loose: Loose) -> dict[str, Any]:
    """Return the manifest that fits, as a value of its own."""
    value: dict[str, Any] = json.loads(json.dumps(loose.manifest))
    return value


def listing_edit(change: Callable[[list[Any]], Any]) -> Any:
    """Return an edit of the manifest's list of members alone."""

    def run(loose: Loose) -> None:
        loose.keep_listing = True
        change(loose.manifest["members"])

    return run


def finish(change: Callable[[bytes], bytes]) -> Any:
    return lambda loose: setattr(loose, "finish", change)


def add(name: str, data: bytes = b"smuggled", at: int | None = None) -> Any:
    def run(loose: Loose) -> None:
        loose.members.insert(len(loose.members) if at is None else at, (name, data))

    return run


def set_raw(member: str, change: Callable[[bytes], bytes]) -> Any:
    return lambda loose: loose.__setitem__(member, change(loose[member]))


def reorder(loose: Loose) -> None:
    loose.members[5], loose.members[6] = loose.members[6], loose.members[5]


def smuggle_document(loose: Loose) -> None:
    chunks, documents = loose.lines("chunks.jsonl"), loose.lines("documents.jsonl")
    number = len(chunks) + 1
    loose.set_lines("chunks.jsonl", [*chunks, {"n": number, "text": "smuggled"}])
    document = {"digest": canonical.digest(b"smuggled"), "size": 8, "chunks": [number]}
    loose.set_lines("documents.jsonl", [*documents, document])


def consistent_size(loose: Loose) -> None:
    """An event and the document list agree on a size that the payload has not."""
    digest, size = canonical.digest(request(1)), len(request(1))

    def events(lines: list[Any]) -> None:
        for line in lines:
            line["state"] = line["state"].replace(f'"size":{size}', '"size":5')

    edit_lines("events.jsonl", events, rechain=True)(loose)
    documents = loose.lines("documents.jsonl")
    for line in documents:
        line["size"] = 5 if line["digest"] == digest else line["size"]
    loose.set_lines("documents.jsonl", documents)


def state_edit(change: Callable[[str], str], number: int = 9) -> Any:
    """Return an edit of one state, with a chain that fits."""

    def events(lines: list[Any]) -> None:
        before = lines[number]["state"]
        lines[number]["state"] = change(before)
        assert lines[number]["state"] != before

    return edit_lines("events.jsonl", events, rechain=True)


def tree_naming_a_missing_file(loose: Loose) -> None:
    """The tree document and all that names it agree; the file is nowhere."""
    old = tree_document(catalogued=("src/huge.bin",))
    replace_tree(
        loose,
        old,
        old.replace(canonical.digest(FILES["src/a.py"]).encode(), b"sha256:" + b"0" * 64),
    )


def tree_leading_outside(loose: Loose) -> None:
    old = tree_document(catalogued=("src/huge.bin",))
    replace_tree(loose, old, old.replace(b'"src/a.py"', b'"../a.py"'))
    loose.rename("intake/S2/src/a.py", "intake/S2/../a.py")


def replace_tree(loose: Loose, old: bytes, new: bytes) -> None:
    assert new != old
    events = loose.lines("events.jsonl")
    named = json.dumps(ref(old).model_dump(), separators=(",", ":"))
    for event in events:
        event["state"] = event["state"].replace(
            named, json.dumps(ref(new).model_dump(), separators=(",", ":"))
        )
    loose.set_lines("events.jsonl", events)
    loose.rechain()
    chunks, documents = loose.lines("chunks.jsonl"), loose.lines("documents.jsonl")
    for document in documents:
        if document["digest"] == canonical.digest(old):
            document |= {"digest": canonical.digest(new), "size": len(new)}
            document["chunks"] = [document["chunks"][0]]
            chunks[document["chunks"][0] - 1] = {"n": document["chunks"][0], "text": new.decode()}
    loose.set_lines("documents.jsonl", documents)
    loose.set_lines("chunks.jsonl", chunks)


def split_chunk(loose: Loose) -> None:
    """An empty chunk more, in the middle of a payload."""
    chunks, documents = loose.lines("chunks.jsonl"), loose.lines("documents.jsonl")
    target = next(d for d in documents if len(d.get("chunks", [])) > 2)
    number = target["chunks"][1]
    shifted = [c if c["n"] < number else c | {"n": c["n"] + 1} for c in chunks]
    shifted.insert(number - 1, {"n": number, "text": ""})
    for document in documents:
        if "chunks" in document:
            document["chunks"] = [n if n < number else n + 1 for n in document["chunks"]]
    target["chunks"].insert(1, number)
    loose.set_lines("chunks.jsonl", shifted)
    loose.set_lines("documents.jsonl", documents)


def same_chunk_twice(loose: Loose) -> None:
    """One chunk under two numbers, both used: the same bytes, another package."""
    chunks, documents = loose.lines("chunks.jsonl"), loose.lines("documents.jsonl")
    used: set[int] = set()
    for document in documents:
        for at, number in enumerate(document.get("chunks", [])):
            if number in used:
                more = len(chunks) + 1
                chunks.append(chunks[number - 1] | {"n": more})
                document["chunks"][at] = more
                loose.set_lines("chunks.jsonl", chunks)
                loose.set_lines("documents.jsonl", documents)
                return
            used.add(number)
    raise AssertionError


def long_nonce(loose: Loose) -> None:
    edit_lines("events.jsonl", lambda lines: lines[3].update(nonce="00" * 17), rechain=True)(loose)


def bomb_within_its_size(loose: Loose) -> None:
    """A member that says how large it is, and is larger than anything that is read."""
    loose.members.append(("derived/zeros", bytes(3_000_000)))


def lying_size(data: bytes) -> bytes:
    """Every place but the stream says that a member is small."""
    return patched("intake/S4/db/app.db", 24, struct.pack("<I", 100), local=22)(data)


def big_document(loose: Loose) -> None:
    """A few bytes of list that stand for terabytes."""
    documents = loose.lines("documents.jsonl")
    target = next(d for d in documents if d.get("chunks"))
    target["chunks"] = target["chunks"][:1] * 300_000
    loose.set_lines("documents.jsonl", documents)


def huge_sizes(loose: Loose) -> None:
    documents = loose.lines("documents.jsonl")
    for document in documents:
        document["size"] = 2**31
    for n in range(40):
        documents.append({"digest": f"sha256:{n:064x}", "size": 2**31, "chunks": []})
    loose.set_lines("documents.jsonl", documents)


MANIFEST_JSON = b'{"format":1,"case_id":"case-17"}'
WITHHELD = "0" * 64
DEEP = "[" * 1000 + "]" * 1000

COPY = "intake/S5/logs/copy.log"
"""The second file of one payload: the document names the first."""

HOSTILE: dict[str, tuple[Any, str]] = {
    # Names
    "traversal": (add("intake/S1/../../../evil"), "leads outside"),
    "traversal at the start": (add("../evil"), "leads outside"),
    "absolute": (add("/etc/evil"), "leads outside"),
    "backslash": (add("intake\\S1\\evil"), "leads outside"),
    "drive letter": (add("C:/evil"), "leads outside"),
    "drive letter inside": (add("intake/c:evil"), "leads outside"),
    "empty part": (add("intake//evil"), "leads outside"),
    "dot": (add("intake/./evil"), "leads outside"),
    "folder": (add("intake/S1/", b""), "leads outside"),
    "zero byte": (
        finish(lambda d: d.replace(b"derived/report.md", b"derived/repor\0.md")),
        "outside",
    ),
    "not a home of packages": (add("evil.sh"), "does not belong"),
    "hidden": (add(".bashrc"), "does not belong"),
    # Members
    "same name twice": (add("derived/report.md"), "twice|not those"),
    "manifest twice": (add("manifest.json", b"{}"), "twice"),
    "extra member": (
        lambda p: (setattr(p, "keep_listing", True), add("derived/more")(p)),
        "not those of its manifest: 'derived/more'",
    ),
    "missing member": (
        lambda p: (setattr(p, "keep_listing", True), p.remove("derived/report.md")),
        "not those of its manifest: 'derived/report.md'",
    ),
    "missing member, listed nowhere": (lambda p: p.remove("intake/S1/report.md"), "has no member"),
    "events missing": (lambda p: p.remove("events.jsonl"), "does not hold"),
    "members in another order": (reorder, "not the one that its own events give"),
    "fixed members in another order": (
        lambda p: p.members.insert(0, p.members.pop(1)),
        "in this order",
    ),
    "extra intake file": (add("intake/S1/zzz", at=12), "not the one"),
    "other bytes in a member": (
        listing_edit(lambda m: m[5].update(sha256="0" * 64)),
        "the manifest says",
    ),
    "other size in the manifest": (listing_edit(lambda m: m[5].update(size=1)), "not those"),
    "altered intake file": (
        set_raw("intake/S1/report.md", lambda d: d + b"!"),
        "not the one|bytes",
    ),
    "altered prompt is another identity only": (
        set_raw("README.txt", lambda d: d + b"!"),
        "not the one",
    ),
    "text in the README that the manifest does not know": (
        lambda p: (
            setattr(p, "keep_listing", True),
            p.__setitem__("README.txt", p["README.txt"].replace(b"A case", b"B case")),
        ),
        "'README.txt' has sha256",
    ),
    "second copy of a payload altered": (
        lambda p: (
            setattr(p, "keep_listing", True),
            p.__setitem__(COPY, p[COPY].replace(b"line 7", b"line 8")),
        ),
        f"'{COPY}' has sha256",
    ),
    # The zip
    "bytes behind the end of a packed member": (
        finish(lambda d: with_hidden(d, "intake/S1/report.md", b"evil")),
        "does not end where its packed bytes do",
    ),
    "much behind the end of a packed member": (
        finish(lambda d: with_hidden(d, "README.txt", bytes(3 * 2**20))),
        "bytes after its end|does not end where",
    ),
    "another date in the local header": (
        finish(lambda d: d[:12] + b"\x22" + d[13:]),
        "headers that disagree",
    ),
    "empty file": (finish(lambda d: b""), "not a zip"),
    "no zip": (finish(lambda d: b"not a zip at all"), "not a zip"),
    "cut tail": (finish(lambda d: d[:-1]), "not a zip|outside"),
    "cut in half": (finish(lambda d: d[: len(d) // 2]), "not a zip"),
    "cut before the directory": (finish(lambda d: d[: next(central(d))[0]]), "not a zip"),
    "leading bytes": (finish(lambda d: b"#!/bin/sh\n" + d), "outside its members"),
    "trailing bytes": (finish(lambda d: d + b"trailing"), "outside its members"),
    "bytes between members": (
        finish(lambda d: d[: next(central(d))[0]] + b"gap" + shifted_directory(d, 3)),
        "outside its members",
    ),
    "comment": (finish(lambda d: d[:-2] + b"\3\0abc"), "outside its members"),
    "encrypted flag": (
        finish(patched("intake/S1/report.md", 8, b"\1\0", local=6)),
        "is encrypted",
    ),
    "data descriptor flag": (finish(patched("intake/S1/report.md", 8, b"\x08\0", local=6)), "flag"),
    "patched data flag": (finish(patched("intake/S1/report.md", 8, b"\x20\0", local=6)), "flag"),
    "bzip2": (
        lambda p: p.infos.update(
            {"derived/report.md": lambda i: setattr(i, "compress_type", zipfile.ZIP_BZIP2)}
        ),
        "packed in a way",
    ),
    "unknown compression": (
        finish(patched("intake/S1/report.md", 10, b"\x63\0", local=8)),
        "packed in a way",
    ),
    "newer zip version": (
        finish(patched("intake/S1/report.md", 6, b"\xff\0", local=4)),
        "not a zip",
    ),
    "other name in the local header": (
        finish(lambda d: d.replace(b"intake/S1/report.md", b"intake/S1/rebort.md", 1)),
        "headers that disagree",
    ),
    "wrong checksum": (
        finish(patched("intake/S1/report.md", 16, b"\0\0\0\0", local=14)),
        "cannot be read",
    ),
    "wrong checksum in the directory": (
        finish(patched("intake/S1/report.md", 16, b"\0\0\0\0")),
        "headers that disagree",
    ),
    "broken stream": (finish(lambda d: spoiled(d, "chunks.jsonl")), "cannot be read|shorter"),
    "bomb beyond its size": (finish(lying_size), "not those|shorter|larger|cannot be read"),
    "offset far away": (finish(patched("events.jsonl", 42, b"\xff\xff\xff\x7f")), "outside"),
    # Manifest
    "manifest not first": (lambda p: p.members.append(("manifest.json", b"{}")), "twice"),
    "manifest empty": (raw(b""), "malformed manifest"),
    "manifest no JSON": (raw(b"{"), "malformed manifest"),
    "manifest array": (raw(b"[]"), "malformed manifest"),
    "manifest null": (raw(b"null"), "malformed manifest"),
    "manifest half": (raw(MANIFEST_JSON), "malformed manifest"),
    "manifest deep": (raw(DEEP.encode()), "malformed manifest"),
    "manifest duplicate key": (raw(lambda d: d[:-2] + b',"format":1}\n'), "malformed manifest"),
    "manifest NaN": (
        raw(lambda d: d.replace(b'"format":1', b'"format":NaN')),
        "malformed manifest",
    ),
    "manifest byte order mark": (raw(lambda d: b"\xef\xbb\xbf" + d), "malformed manifest"),
    "manifest spaced": (raw(lambda d: d.replace(b'"format":1', b'"format": 1')), "not the one"),
    "manifest without line feed": (raw(lambda d: d[:-1]), "not the one"),
    "format 2": (edit_manifest(format=2), "has format 2"),
    "format 1.0": (edit_manifest(format=1.0), "malformed manifest"),
    "format true": (edit_manifest(format=True), "malformed manifest"),
    "format text": (edit_manifest(format="1"), "malformed manifest"),
    "format zero": (edit_manifest(format=0), "malformed manifest"),
    "members no list": (
        lambda p: (edit_manifest(members=7)(p), listing_edit(id)(p)),
        "malformed manifest",
    ),
    "member no object": (listing_edit(lambda m: m.append(7)), "malformed manifest"),
    "member name a list": (listing_edit(lambda m: m[0].update(name=["x"])), "malformed manifest"),
    "member size true": (listing_edit(lambda m: m[0].update(size=True)), "malformed manifest"),
    "member size float": (
        listing_edit(lambda m: m[0].update(size=float(m[0]["size"]))),
        "malformed manifest",
    ),
    "member digest no hex": (listing_edit(lambda m: m[0].update(sha256="x" * 64)), "malformed"),
    "member digest missing": (listing_edit(lambda m: m[0].pop("sha256")), "malformed manifest"),
    "head missing": (edit_manifest(head=None), "malformed manifest"),
    "head position text": (edit_manifest(head={"position": "9", "chain": "0" * 64}), "malformed"),
    "head chain short": (edit_manifest(head={"position": 9, "chain": "00"}), "malformed manifest"),
    "head elsewhere": (edit_manifest(head={"position": 9, "chain": "0" * 64}), "the record ends"),
    "head negative": (edit_manifest(head={"position": -1, "chain": "0" * 64}), "the record ends"),
    "case_id changed": (edit_manifest(case_id="case-18"), "position 1"),
    "case_id number": (edit_manifest(case_id=17), "malformed manifest"),
    "case_id surrogate": (edit_manifest(case_id="\ud800"), "malformed manifest"),
    "trial_id changed": (edit_manifest(trial_id="trial-2"), "not the one"),
    "package_id changed": (edit_manifest(package_id="sha256:" + "0" * 64), "not the one"),
    "package_id removed": (edit_manifest(package_id=None), "not the one"),
    "generation changed": (edit_manifest(generation=9), "not the one"),
    "generation float": (edit_manifest(generation=8.0), "not the one"),
    "unknown field": (edit_manifest(more=1), "not the one"),
    # Events
    "tail of events cut": (edit_lines("events.jsonl", lambda e: e[:-1]), "the record ends at 23"),
    "tail cut, head fitting": (
        edit_lines("events.jsonl", lambda e: e[:-5], rechain=True),
        "not the one",
    ),
    "no events": (set_raw("events.jsonl", lambda d: b""), "the record ends at 0|not the one"),
    "events reordered": (
        edit_lines("events.jsonl", lambda e: [e[0], e[2], e[1], *e[3:]]),
        "line 2: malformed",
    ),
    "event twice": (edit_lines("events.jsonl", lambda e: [*e[:3], *e[2:]]), "line 4: malformed"),
    "event removed": (edit_lines("events.jsonl", lambda e: [*e[:3], *e[4:]]), "line 4: malformed"),
    "state altered": (
        edit_lines("events.jsonl", lambda e: e[4].update(state=e[4]["state"][:-1] + " }")),
        "position 5",
    ),
    "nonce altered": (edit_line("events.jsonl", 4, nonce="00" * 16), "position 5"),
    "chain altered": (edit_line("events.jsonl", 4, chain="00" * 32), "position 5"),
    "topic altered": (edit_line("events.jsonl", 4, topic="os:system"), "position 5"),
    "nonce of another length": (long_nonce, "line 4: malformed"),
    "chain of another length": (edit_line("events.jsonl", 4, chain="00"), "line 5: malformed"),
    "hex in capitals": (
        edit_lines("events.jsonl", lambda e: e[4].update(nonce=e[4]["nonce"].upper())),
        "line 5: malformed",
    ),
    "hex with spaces": (
        edit_lines("events.jsonl", lambda e: e[4].update(nonce=e[4]["nonce"] + " ")),
        "line 5: malformed",
    ),
    "position text": (edit_line("events.jsonl", 4, position="5"), "line 5: malformed"),
    "position float": (edit_line("events.jsonl", 4, position=5.0), "line 5: malformed"),
    "position true": (edit_line("events.jsonl", 0, position=True), "line 1: malformed"),
    "position huge": (edit_line("events.jsonl", 4, position=2**70), "line 5: malformed"),
    "position negative": (edit_line("events.jsonl", 4, position=-5), "line 5: malformed"),
    "topic number": (edit_line("events.jsonl", 4, topic=7), "line 5: malformed"),
    "topic surrogate": (edit_line("events.jsonl", 4, topic="\ud800"), "line 5: malformed"),
    "state object": (edit_line("events.jsonl", 4, state={}), "line 5: malformed"),
    "state surrogate": (edit_line("events.jsonl", 4, state="\ud800"), "line 5: malformed"),
    "state missing": (edit_line("events.jsonl", 4, state=None), "line 5: malformed"),
    "field too many": (edit_line("events.jsonl", 4, more=1), "line 5: malformed"),
    "event no object": (edit_lines("events.jsonl", lambda e: [*e, 7]), "malformed"),
    "event of another case": (
        edit_lines(
            "events.jsonl",
            lambda e: e[0].update(state=e[0]["state"].replace("case-17", "case-18")),
            rechain=True,
        ),
        "position 1",
    ),
    "withheld leaf of another length": (
        edit_line("events.jsonl", 4, state=None, nonce=None, leaf="00"),
        "line 5: malformed",
    ),
    "withheld without cause": (
        edit_line("events.jsonl", 4, state=None, nonce=None, leaf=WITHHELD),
        "parts withheld",
    ),
    "state spaced": (state_edit(lambda s: s.replace('","', '", "', 1)), "position 10"),
    "state with NaN": (state_edit(lambda s: s[:-1] + ',"options":{"a":NaN}}'), "position 10"),
    "state overflowing": (state_edit(lambda s: s[:-1] + ',"options":{"a":1e999}}'), "position 10"),
    "state deep": (state_edit(lambda s: s[:-1] + f',"options":{{"a":{DEEP}}}}}'), "position 10"),
    "state member twice": (state_edit(lambda s: s[:-1] + ',"run":1}'), "position 10"),
    "state without a field": (state_edit(lambda s: '{"at":"x"}'), "position 10"),
    "name leading outside": (
        state_edit(lambda s: s.replace('"report.md"', '"../../evil"'), 1),
        "not a path",
    ),
    "artefact leading outside": (
        state_edit(lambda s: s.replace('"S1"', '"../../S1"'), 1),
        "not a path",
    ),
    "case opened twice": (
        edit_lines("events.jsonl", lambda e: [*e, e[0] | {"position": 25}], rechain=True),
        "position 25",
    ),
    # Lines
    "line without line feed": (set_raw("events.jsonl", lambda d: d[:-1]), "line feed"),
    "empty line": (set_raw("events.jsonl", lambda d: d + b"\n"), "line 25: not JSON"),
    "carriage returns": (
        set_raw("events.jsonl", lambda d: d.replace(b"\n", b"\r\n")),
        "not the one",
    ),
    "spaces in a line": (
        set_raw("chunks.jsonl", lambda d: d.replace(b',"', b', "', 1)),
        "not the one",
    ),
    "line not UTF-8": (set_raw("events.jsonl", lambda d: d + b"\xff\n"), "line 25: not UTF-8"),
    "line NaN": (set_raw("documents.jsonl", lambda d: d + b"NaN\n"), "NaN"),
    "line deep": (set_raw("documents.jsonl", lambda d: d + DEEP.encode() + b"\n"), "nested deeper"),
    "line very deep": (set_raw("documents.jsonl", lambda d: d + b"[" * 200_000 + b"\n"), "nested"),
    "line duplicate key": (
        set_raw("documents.jsonl", lambda d: d.replace(b'{"digest"', b'{"size":1,"digest"', 1)),
        "occurs twice",
    ),
    "line huge number": (set_raw("documents.jsonl", lambda d: d + b"9" * 5000 + b"\n"), "4300"),
    # Documents and chunks
    "document names a missing chunk": (
        edit_lines("documents.jsonl", lambda d: d[-1].update(chunks=[99_999])),
        "chunk 99999 is missing",
    ),
    "document names a missing member": (
        edit_line("documents.jsonl", 0, member="intake/S9/x"),
        "has no member",
    ),
    "document twice": (edit_lines("documents.jsonl", lambda d: [*d, d[0]]), "malformed"),
    "document missing": (edit_lines("documents.jsonl", lambda d: d[:-1]), "is missing"),
    "documents reordered": (
        edit_lines("documents.jsonl", lambda d: [d[1], d[0], *d[2:]]),
        "not the one",
    ),
    "document of no event": (smuggle_document, "not the one"),
    "chunk of no document": (
        edit_lines("chunks.jsonl", lambda c: [*c, {"n": len(c) + 1, "text": "smuggled"}]),
        "not the one",
    ),
    "document size": (edit_lines("documents.jsonl", lambda d: d[-1].update(size=1)), "bytes"),
    "document size larger": (
        edit_lines("documents.jsonl", lambda d: d[-1].update(size=999)),
        "bytes",
    ),
    "document and event size": (consistent_size, "bytes"),
    "document size negative": (edit_line("documents.jsonl", 0, size=-1), "malformed"),
    "document size float": (edit_line("documents.jsonl", 0, size=44.0), "malformed"),
    "document size beyond all": (edit_line("documents.jsonl", 0, size=2**40), "malformed"),
    "documents beyond all together": (huge_sizes, "together"),
    "document digest": (edit_line("documents.jsonl", 0, digest="md5:0"), "malformed"),
    "document without chunks": (edit_line("documents.jsonl", 0, member=None), "malformed"),
    "document chunks and member": (edit_line("documents.jsonl", 0, chunks=[1]), "malformed"),
    "document chunks text": (
        edit_lines("documents.jsonl", lambda d: d[-1].update(chunks="12")),
        "malformed",
    ),
    "document chunk zero": (
        edit_lines("documents.jsonl", lambda d: d[-1].update(chunks=[0])),
        "malformed",
    ),
    "document chunk true": (
        edit_lines("documents.jsonl", lambda d: d[-1].update(chunks=[True])),
        "malformed",
    ),
    "document withheld without cause": (
        edit_lines(
            "documents.jsonl",
            lambda d: [
                *d[:-1],
                {"digest": d[-1]["digest"], "size": d[-1]["size"], "withheld": True},
            ],
        ),
        "parts withheld",
    ),
    "document withheld false": (
        edit_lines(
            "documents.jsonl",
            lambda d: [
                *d[:-1],
                {"digest": d[-1]["digest"], "size": d[-1]["size"], "withheld": False},
            ],
        ),
        "malformed",
    ),
    "document bomb": (big_document, "more than its"),
    "document by member instead of chunks": (
        edit_lines(
            "documents.jsonl",
            lambda d: [
                {"digest": x["digest"], "size": x["size"], "member": "README.txt"}
                if x["digest"] == canonical.digest(request(0))
                else x
                for x in d
            ],
        ),
        "bytes|sha256",
    ),
    "chunk altered": (edit_line("chunks.jsonl", 5, text="other"), "payload|bytes"),
    "chunk numbers": (edit_line("chunks.jsonl", 5, n=7), "line 6: malformed"),
    "chunk number true": (edit_line("chunks.jsonl", 0, n=True), "line 1: malformed"),
    "chunk not base64": (
        edit_lines("chunks.jsonl", lambda c: [{"n": 1, "base64": "***"}, *c[1:]]),
        "line 1: malformed",
    ),
    "chunk base64 not ASCII": (
        edit_lines("chunks.jsonl", lambda c: [{"n": 1, "base64": "éé=="}, *c[1:]]),
        "line 1: malformed",
    ),
    "chunk text as base64": (
        edit_lines(
            "chunks.jsonl",
            lambda c: [
                {"n": 1, "base64": base64.b64encode(c[0]["text"].encode()).decode()},
                *c[1:],
            ],
        ),
        "not the one",
    ),
    "chunk text and base64": (edit_line("chunks.jsonl", 0, base64="AA=="), "line 1: malformed"),
    "chunk surrogate": (edit_line("chunks.jsonl", 0, text="\ud800"), "line 1: malformed"),
    "chunk number for text": (edit_line("chunks.jsonl", 0, text=5), "line 1: malformed"),
    "chunk without anything": (edit_line("chunks.jsonl", 0, text=None), "line 1: malformed"),
    "chunk too long": (edit_line("chunks.jsonl", 0, text="x" * (2**20 + 1)), "line 1: malformed"),
    "empty chunk": (split_chunk, "malformed"),
    "chunk twice": (same_chunk_twice, "occurs twice"),
    "tree names a missing file": (tree_naming_a_missing_file, f"sha256:{'0' * 64} is missing"),
    "tree leads outside": (tree_leading_outside, "leads outside|relative path"),
    "no tree": (
        lambda p: replace_tree(p, tree_document(catalogued=("src/huge.bin",)), b"{}"),
        "tree",
    ),
}


def shifted_directory(data: bytes, by: int) -> bytes:
    """Return the directory of a zip whose beginning lies `by` bytes later."""
    start = next(central(data))[0]
    end = bytearray(data[start:])
    end[-6:-2] = struct.pack("<I", start + by)
    return bytes(end)


def with_hidden(data: bytes, name: str, hidden: bytes) -> bytes:
    """Put bytes behind the packed ones of a member, inside the size that its headers give."""
    ((at, start, size),) = [
        (
            o,
            *struct.unpack("<I", data[o + 42 : o + 46]),
            *struct.unpack("<I", data[o + 20 : o + 24]),
        )
        for o, member in central(data)
        if member == name
    ]
    (first,) = struct.unpack("<I", data[-6:-2])
    out = bytearray(data)
    for offset, _ in central(data):
        (other,) = struct.unpack("<I", data[offset + 42 : offset + 46])
        if other > start:
            out[offset + 42 : offset + 46] = struct.pack("<I", other + len(hidden))
    for place in (at + 20, start + 18):
        out[place : place + 4] = struct.pack("<I", size + len(hidden))
    out[-6:-2] = struct.pack("<I", first + len(hidden))
    end = start + 30 + len(name) + size
    return bytes(out[:end] + hidden + out[end:])


def spoiled(data: bytes, name: str) -> bytes:
    """Flip a byte in the middle of a member's stream."""
    for offset, member in central(data):
        if member == name:
            (size,) = struct.unpack("<I", data[offset + 20 : offset + 24])
            (start,) = struct.unpack("<I", data[offset + 42 : offset + 46])
            middle = start + 30 + len(name) + size // 2
            return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]
    raise AssertionError


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_package_is_refused_and_leaves_nothing(
    kind: str, exported: Path, tmp_path: Path
) -> None:
    change, says = HOSTILE[kind]
    loose = Loose.of(exported)
    change(loose)
    path = loose.pack(tmp_path / "evil.zip")
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(LedgerError) as caught, Package(path) as package:
        restore(package, target / "b.case")
    text = str(caught.value)
    assert isinstance(caught.value, (PackageRefused, PayloadDamaged)), repr(caught.value)
    assert re.search(says, text), text
    assert len(text.splitlines()) == 1
    assert len(text) < 600
    assert listing(target) == []
    assert sorted(listing(tmp_path)) == ["evil.zip", "target"]
    assert open_files() == []


def test_a_package_put_together_again_is_not_refused(exported: Path, tmp_path: Path) -> None:
    """The tools of these tests make good packages, unless they are told to make bad ones."""
    path = Loose.of(exported).pack(tmp_path / "good.zip")
    with Package(path) as package, Package(exported) as original:
        assert package.identity == original.identity
        restore(package, tmp_path / "b.case")
    rechained = Loose.of(exported)
    rechained.rechain()
    assert rechained.manifest["head"] == Loose.of(exported).manifest["head"]


def test_a_path_that_is_no_package_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(CaseNotFound):
        Package(tmp_path / "none.zip")
    with pytest.raises(StorageError):
        Package(tmp_path)


DIFFERENT: dict[str, tuple[Any, str]] = {
    "trial": (lambda p: p.manifest.update(trial_id="x"), 'manifest.json, trial_id: "x", not "tri'),
    "generation": (lambda p: p.manifest.update(generation=7), "manifest.json, generation: 7, not"),
    "format": (lambda p: p.manifest.update(extra=1), "manifest.json is not the canonical JSON"),
    "order": (reorder, "give: the order of its members"),
    "more": (add("intake/S1/zzz", at=12), "give: intake/S1/zzz belongs to no event"),
    "README": (set_raw("README.txt", lambda d: d + b"!"), "give: README.txt is not what"),
    "events": (
        lambda p: p.__setitem__("events.jsonl", p["events.jsonl"].replace(b'":', b'": ', 1)),
        "give: events.jsonl is not what the events and payloads give",
    ),
    "documents": (
        lambda p: p.set_lines("documents.jsonl", p.lines("documents.jsonl")[::-1]),
        "give: documents.jsonl is not what",
    ),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_differs_from_what_the_events_give_is_named(
    what: str, exported: Path, tmp_path: Path
) -> None:
    change, says = DIFFERENT[what]
    loose = Loose.of(exported)
    change(loose)
    with Package(loose.pack(tmp_path / "other.zip")) as package:
        (finding,) = verify_package(package).findings
    assert "the package is not the one that its own events give" in finding.message
    assert says in finding.message


def line_edit(member: str, number: int, **values: Any) -> Callable[[Loose], Any]:
    def run(loose: Loose) -> None:
        lines = loose.lines(member)
        lines[number - 1] |= values
        loose.set_lines(member, lines)

    return run


MALFORMED_LINES = {
    "position": (line_edit("events.jsonl", 3, position=4), "line 3: malformed: position 4, expec"),
    "nonce": (line_edit("events.jsonl", 2, nonce="AB" * 16), "expected nonce as 32 lower-case hex"),
    "event": (line_edit("events.jsonl", 2, more=1), "expected an object of position, topic, state"),
    "size": (line_edit("documents.jsonl", 2, size=-1), "line 2: malformed: expected a size from 0"),
    "digest": (line_edit("documents.jsonl", 2, digest="x"), "malformed: expected a digest"),
    "document": (line_edit("documents.jsonl", 2, more=1), "expected an object of digest, size and"),
    "number": (line_edit("chunks.jsonl", 2, n=5), "chunks.jsonl, line 2: malformed: n is 5, expec"),
}


@pytest.mark.parametrize("what", MALFORMED_LINES)
def test_a_malformed_line_says_what_was_expected(what: str, exported: Path, tmp_path: Path) -> None:
    change, says = MALFORMED_LINES[what]
    loose = Loose.of(exported)
    change(loose)
    with (
        pytest.raises(PackageRefused) as caught,
        Package(loose.pack(tmp_path / "odd.zip")) as package,
    ):
        restore(package, tmp_path / "b.case")
    assert says in one_line(caught.value)


def test_a_member_that_cannot_be_read_is_said_once_however_many_payloads_need_it(
    exported: Path, tmp_path: Path
) -> None:
    loose = Loose.of(exported)
    loose.finish = lambda data: spoiled(data, "chunks.jsonl")
    with Package(loose.pack(tmp_path / "bad.zip")) as package:
        found = [finding.message for finding in verify_package(package).findings]
    assert sum("chunks.jsonl" in message for message in found) == 1


def test_an_import_overwrites_nothing(exported: Path, tmp_path: Path) -> None:
    (tmp_path / "b.case").write_text("somebody's")
    with Package(exported) as package, pytest.raises(CaseExists):
        restore(package, tmp_path / "b.case")
    assert (tmp_path / "b.case").read_text() == "somebody's"


def test_a_zip_of_anything_at_all_is_refused_with_a_typed_error(
    exported: Path, tmp_path: Path
) -> None:
    """Every bit flipped in each byte of the headers and the directory, one byte at a time."""
    data = Loose.of(exported).pack(tmp_path / "a.zip").read_bytes()
    start = next(central(data))[0]
    places = [*range(40), *range(start, start + 200), *range(len(data) - 60, len(data))]
    path = tmp_path / "b.zip"
    for place in places:
        path.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            with Package(path) as package:
                verify_package(package)
        except LedgerError as error:
            one_line(error)


def test_a_bomb_is_refused_by_its_size_before_it_is_unpacked(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loose = Loose.of(exported)
    bomb_within_its_size(loose)
    path = loose.pack(tmp_path / "a.zip")
    monkeypatch.setattr(archive_module.Archive, "_unpacked", raising(AssertionError("unpacked")))
    for name, limit in (("MAX_BYTES", 3_000_000), ("MAX_MEMBER", 2_999_999), ("MAX_RECORD", 1000)):
        with monkeypatch.context() as patch:
            patch.setattr(archive_module, name, limit)
            with pytest.raises(PackageRefused, match="would unpack to more"):
                Package(path)
    monkeypatch.setattr(archive_module, "MAX_MEMBERS", 3)
    with pytest.raises(PackageRefused, match="more than 3"):
        Package(path)


def test_a_member_that_would_be_taken_for_a_bomb_is_stored_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An honest file that is nearly empty: it is exported, and its package is not refused."""
    monkeypatch.setattr(archive_module, "MAX_DENSE", 50_000)
    path = tmp_path / "a.case"
    with Book.create(path, sources=fixed_sources()) as book:
        record = whole_record()
        book.append(record[0][0])
        for name, data in (("S1", bytes(60_000)), ("S2", bytes(40_000)), ("S3", LOG)):
            event = filled_artifact(name, data)
            book.append(event, payloads=[data])
    export(path, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        packed = {i.filename: i.compress_type for i in archive.infolist() if "intake" in i.filename}
    assert list(packed.values()) == [zipfile.ZIP_STORED, *[zipfile.ZIP_DEFLATED] * 2]
    with Package(tmp_path / "a.zip") as package:
        assert verify_package(package).ok
        restore(package, tmp_path / "b.case")


def filled_artifact(name: str, data: bytes) -> ArtifactAdded:
    return ArtifactAdded(
        at=AT, artifact=name, kind="log", name="a.log", revision=1, media="binary",
        content=ref(data),
    )  # fmt: skip


def test_packages_of_more_than_two_gigabytes_are_read(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With zip64 fields in both headers and at the end, where zipfile needs them."""
    for limit in (3_000, 30_000, 100_000):
        with monkeypatch.context() as patch:
            patch.setattr(zipfile, "ZIP64_LIMIT", limit)
            patch.setattr(archive_module, "_ZIP64_FROM", limit)
            export(original, tmp_path / f"{limit}.zip")
            with Package(tmp_path / f"{limit}.zip") as package:
                assert verify_package(package).findings == []
        if limit < 100_000:  # read under the usual limit, the fields are there without need
            with pytest.raises(PackageRefused, match=r"disagree|a field"):
                Package(tmp_path / f"{limit}.zip")


def test_a_manifest_or_line_beyond_its_limit_is_refused(
    exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_module, "MAX_LINE", 100)
    monkeypatch.setattr(archive_module, "BLOCK", 64)
    with pytest.raises(PackageRefused, match="a line of more than 100"):
        Package(exported)
    monkeypatch.undo()
    monkeypatch.setattr(archive_module, "MAX_MANIFEST", 100)
    with pytest.raises(PackageRefused, match="does not begin"):
        Package(exported)


def test_a_bomb_of_shared_chunks_is_refused_in_little_memory(
    exported: Path, tmp_path: Path
) -> None:
    """In a child of little memory: a few kilobytes must not become gigabytes."""
    loose = Loose.of(exported)
    chunks, documents = loose.lines("chunks.jsonl"), loose.lines("documents.jsonl")
    number = len(chunks) + 1
    chunks.append({"n": number, "text": "x" * 1_000_000})
    target = next(d for d in documents if d["digest"] == canonical.digest(request(0)))
    target |= {"size": 300_000_000, "chunks": [number] * 300}
    loose.set_lines("chunks.jsonl", chunks)
    loose.set_lines("documents.jsonl", documents)
    path = loose.pack(tmp_path / "bomb.zip")
    assert path.stat().st_size < 200_000
    script = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from ledger.errors import LedgerError
        from ledger.package import Package, restore
        import ledger.recorder

        try:
            with Package(sys.argv[1]) as package:
                restore(package, Path(sys.argv[2]))
        except LedgerError as error:
            print(type(error).__name__)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script, path, tmp_path / "b.case"],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (330_000_000,) * 2),
    )
    assert (done.stdout.strip(), done.stderr) == ("PackageRefused", "")
    assert not (tmp_path / "b.case").exists()


# Copies made for sharing --------------------------------------------------------------------------


def withhold(exported: Path, path: Path) -> Path:
    """Withhold one event and one payload, as a copy made for sharing does."""
    loose = Loose.of(exported)
    with Package(exported) as package:
        leaf = list(package.rows())[9].leaf().hex()
    edit_line("events.jsonl", 9, state=None, nonce=None, leaf=leaf)(loose)
    events = loose.lines("events.jsonl")
    events[9] = {k: events[9][k] for k in ("position", "topic", "leaf", "chain")}
    loose.set_lines("events.jsonl", events)
    return loose.pack(path)


def test_a_copy_made_for_sharing_is_read_and_verified_not_imported(
    exported: Path, tmp_path: Path
) -> None:
    path = withhold(exported, tmp_path / "shared.zip")
    with Package(path) as package:
        assert package.is_redacted
        report = verify_package(package)
        assert report.ok
        assert (report.findings, report.withheld_events, report.withheld_payloads) == ([], 1, 0)
        assert [e.position for e in package.events()] == [*range(1, 10), *range(11, 25)]
        with pytest.raises(PackageRefused, match="not imported"):
            restore(package, tmp_path / "b.case")
    assert listing(tmp_path) == ["shared.zip"]


def test_a_payload_withheld_in_a_copy_is_said_so(exported: Path, tmp_path: Path) -> None:
    loose = Loose.of(exported)
    documents = loose.lines("documents.jsonl")
    digest = documents[-1]["digest"]
    documents[-1] = {"digest": digest, "size": documents[-1]["size"], "withheld": True}
    loose.set_lines("documents.jsonl", documents)
    with Package(loose.pack(tmp_path / "shared.zip")) as package:
        assert package.is_redacted
        with pytest.raises(PayloadDamaged, match="withheld in this copy"):
            package.payload(digest)


def test_an_import_needs_no_clock_and_no_randomness(exported: Path, tmp_path: Path) -> None:
    for name in ("b", "c"):
        with Package(exported) as package:
            restore(package, tmp_path / f"{name}.case", sources=fixed_sources())
    assert contents(tmp_path / "b.case") == contents(tmp_path / "c.case")
