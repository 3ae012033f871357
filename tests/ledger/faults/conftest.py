"""What the fault tests share: a case to harm, and what every error message owes to a person."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from ledger import storage
from ledger.book import Book
from ledger.errors import LedgerError
from ledger.verify import verify_book
from tests.support import evidence, make_case

Refused = Callable[..., AbstractContextManager[None]]


@pytest.fixture
def case(tmp_path: Path) -> Path:
    return make_case(tmp_path / "a.case", events=8)


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that every user can reach; pytest's own ones are private."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait a moment for a lock, not five seconds."""
    monkeypatch.setattr(storage, "BUSY_SECONDS", 0.1)


@pytest.fixture
def refused() -> Refused:
    """Expect exactly this error, in one line that names the file and says what to do."""
    return _refused


@contextmanager
def _refused(expected: type[LedgerError], advice: str) -> Iterator[None]:
    with pytest.raises(LedgerError) as caught:
        yield
    check_message(expected.__name__, advice, type(caught.value).__name__, str(caught.value))


def check_message(expected: str, advice: str, kind: str, message: str) -> None:
    assert kind == expected, message
    assert message.startswith("/"), message
    assert "\n" not in message
    assert re.search(advice, message), message


def append_one(path: Path) -> int:
    """Open for writing, append, close, verify; return the new position."""
    with Book.open_for_writing(path) as book:
        data = b"one more, after %d" % book.head.position
        head = book.append(evidence(book.head.position, data), payloads=[data])
    with Book.open(path) as book:
        assert verify_book(book).findings == []
    return head.position
