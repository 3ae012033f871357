"""One case to one file and back: what `export` and `import` do."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledger import packing
from ledger.book import Book
from ledger.errors import LedgerDamaged
from ledger.package import Package, restore
from ledger.reader import Head, RecordReader
from ledger.verify import verify_book
from tools.output import head_json, print_json, say
from tools.packaging import derived_members, prompt_members, require_verified
from tools.progress import telling
from tools.selecting import open_case
from tools.sharing import shared_copy, withheld_json, withheld_text


@dataclass(frozen=True)
class Wanted:
    """What a package should hold beside the record, and what it should leave out of it."""

    requests: bool = False
    report: bool = False
    redacted: bool = False
    withhold: list[str] = field(default_factory=list)
    keep: list[str] = field(default_factory=list)


def export_case(case: Path, target: Path, wanted: Wanted, *, force: bool, json: bool) -> None:
    """Write a package of a case and say what it holds.

    Raises:
        UserError: something to be withheld is not there, or would stand in what is kept.
        CaseExists, StorageError: nothing was written.
    """
    roots: tuple[str, ...] = ()
    with open_case(str(case)) as book, telling(quiet=json) as tell:
        require_whole(case, book)
        record: RecordReader = book
        if wanted.redacted:
            tell("finding what quotes what is withheld")
            record, roots = shared_copy(book, wanted.withhold, wanted.keep)
        extra = prompt_members(record)
        extra |= derived_members(record, requests=wanted.requests, report=wanted.report)
        identity = packing.write(record, target, extra=extra, overwrite=force)
        withheld, head = withheld_json(record), book.head
    shown = {
        "package": str(target),
        "identity": identity,
        "bytes": target.stat().st_size,
        "head": head_json(head),
        "withheld": withheld and {**withheld, "asked": list(roots)},
    }
    if json:
        print_json(shown)
    else:
        _print(shown)


def require_whole(case: Path, book: Book) -> None:
    """Refuse to pack a record that was altered: who unpacks it could not tell by whom.

    Raises:
        LedgerDamaged: at the first thing that does not verify.
    """
    report = verify_book(book)
    if not report.ok:
        why = report.first_damage(case)
        raise LedgerDamaged(f"{case}: does not verify: {why}; nothing was written")


def _print(shown: dict[str, Any]) -> None:
    size, events, identity = shown["bytes"], shown["head"]["position"], shown["identity"]
    say(f"{shown['package']}: {size} bytes, {events} events, identity {identity}")
    withheld = shown["withheld"]
    if not withheld:
        say("It holds everything that was taken in: report, logs, source and databases.")
        return
    say(f"{withheld_text(withheld)}: {', '.join(withheld['asked'])} and what quotes them.")
    say(
        "Names, sizes and digests of what is withheld stay; look at the copy before you share it "
        f"(`caseledger log {shown['package']}`)."
    )


def import_package(package: Path, target: Path) -> Head:
    """Rebuild the ledger of a package that verifies, derived files included; they stay behind.

    Raises:
        PackageRefused: it does not verify, or it is a copy made for sharing.
        CaseExists, StorageError: nothing was written.
    """
    with Package(package) as opened:
        if not opened.is_redacted:
            require_verified(opened)
        return restore(opened, target)
