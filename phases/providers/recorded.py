"""Provider `recorded:CASE`: answers from another ledger, by digest of the request document.

Answers that were rejected there are given again, and rejected again: a whole case replays. One that
was no JSON was never kept apart from its provider's envelope and counts as not recorded; so does
one that is withheld in a copy made for sharing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ledger import canonical
from ledger.book import Book
from ledger.errors import LedgerError, PackageRefused, PayloadWithheld
from ledger.events import RequestPrepared, RequestSent, ResponseAccepted, ResponseRejected
from ledger.package import Package, verify_package
from ledger.reader import CaseReader
from phases.providers.base import (
    Failure,
    Provider,
    ProviderConfigurationError,
    Received,
    Reply,
    Sending,
)
from phases.settings import Settings


class Recorded(Provider):
    """Answers of a case file or package."""

    name = "recorded"

    def __init__(self, answers: Mapping[str, bytes], model: str) -> None:
        self._answers = answers
        self.model = model

    def ask(self, document: bytes, sending: Sending) -> Received:
        """Return the recorded answer of the very same document."""
        sending(None)
        digest = canonical.digest(document)
        answer = self._answers.get(digest)
        if answer is None:
            raise Failure(
                "not_recorded", f"no answer to document {digest} is recorded", retryable=False
            )
        return Received(answer)

    def read(self, body: bytes) -> Reply:
        """Return the answer's text."""
        try:
            return Reply(body.decode())
        except UnicodeDecodeError:
            return Reply(None, "malformed", "the recorded answer is not UTF-8")


def open_provider(argument: str, settings: Settings) -> Recorded:
    """Open the recording at a path; a package is verified first.

    Raises:
        ProviderConfigurationError: nothing is there, or it cannot be trusted.
    """
    if not argument:
        raise ProviderConfigurationError("recorded: names no case; give recorded:CASE")
    path = Path(argument)
    try:
        with path.open("rb") as file:
            is_package = file.read(2) == b"PK"
        reader = Package(path) if is_package else Book.open(path)
        with reader:
            if isinstance(reader, Package):
                _check(reader)
            return Recorded(_answers(reader), f"recorded {reader.case_id}")
    except (OSError, LedgerError) as error:
        raise ProviderConfigurationError(f"recorded:{argument}: {error}") from None


def _check(package: Package) -> None:
    report = verify_package(package)
    if not report.ok:
        raise PackageRefused(f"does not verify: {report.first_damage(package.path)}")


def _answers(reader: CaseReader) -> dict[str, bytes]:
    """Return the answers by digest of their document, as far as both are in this record."""
    documents: dict[str, str] = {}
    answers: dict[str, bytes] = {}
    for _, event in reader.events():
        if isinstance(event, RequestPrepared):
            documents[event.request] = event.document.digest
        elif isinstance(event, RequestSent):  # its preparation may be withheld
            documents.setdefault(event.request, event.document)
        elif isinstance(event, ResponseAccepted | ResponseRejected) and event.answer:
            with suppress(PayloadWithheld):
                answer = reader.payload(event.answer.digest)
                if document := documents.get(event.request):
                    answers[document] = answer
    return answers
