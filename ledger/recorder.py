"""The eventsourcing library's side of a case: application, mapper, recorder, on our connection.

Loaded by writers only (importing the library costs 0.1 s). Used of it: `Application.save`, whose
keyword arguments reach the recorder, so that payloads and chain commit in the same transaction;
`EventStore`, `StoredEvent`, its exceptions. Not used, on purpose: its table, its mapper (a topic in
a row would be imported), its connection pool (a failed connect keeps the writer lock for ever), its
environment (a shell variable can change the stored format). See
docs/decisions/0003-eventsourcing.md.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from eventsourcing.application import Application
from eventsourcing.persistence import (
    ApplicationRecorder,
    InfrastructureFactory,
    IntegrityError,
    Mapper,
    OperationalError,
    PersistenceError,
    StoredEvent,
)
from eventsourcing.sqlite import (
    SQLiteApplicationRecorder,
    SQLiteCursor,
    SQLiteDatastore,
    SQLiteFactory,
)
from eventsourcing.utils import Environment, EnvType

from ledger import chain, topics
from ledger.events import Event
from ledger.reader import Head

INSERT = (
    "INSERT INTO event (position, case_id, version, topic, state, nonce, chain) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
SELECT_TIP = "SELECT position, chain FROM event ORDER BY position DESC LIMIT 1"


class Stamped(NamedTuple):
    """An event on its way into the stream, as the library names its place."""

    originator_id: str
    originator_version: int
    event: Event


@dataclass
class Commit:
    """What must become true together with the events of one transaction; `head` is the result."""

    expected: Head
    nonces: Sequence[bytes]
    before: Callable[[], None]  # stores payloads and checks that every named one is there
    head: Head | None = None


class CaseApplication(Application[str]):
    """The library's application for one open case file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        super().__init__()
        # Stock recorders ignore keyword arguments without a word: payloads would be lost.
        assert isinstance(self.recorder, CaseRecorder)

    def construct_env(self, name: str, env: EnvType | None = None) -> Environment:
        """Return an empty environment: nothing in the shell may change what is stored."""
        return Environment(name, {})

    def construct_factory(self, env: Environment) -> InfrastructureFactory[Any]:
        return CaseFactory(env, self._connection)

    def construct_mapper(self) -> Mapper[str]:
        return CaseMapper()


class CaseFactory(SQLiteFactory):
    """Hands out the recorder of a connection that the book owns."""

    def __init__(self, env: Environment, connection: sqlite3.Connection) -> None:
        InfrastructureFactory.__init__(self, env)
        self.datastore = CaseDatastore(connection)

    def application_recorder(self) -> ApplicationRecorder:
        return CaseRecorder(self.datastore)


class CaseMapper(Mapper[str]):
    """Event to stored row and back, through our closed list of topics."""

    def __init__(self) -> None:
        """Take none of the library's transcoders, compressors or ciphers."""

    def to_stored_event(self, domain_event: Any) -> StoredEvent:
        topic, state = topics.encode(domain_event.event)
        return StoredEvent(
            domain_event.originator_id, domain_event.originator_version, topic, state
        )

    def to_domain_event(self, stored_event: StoredEvent) -> Any:
        event = topics.decode(
            stored_event.topic, stored_event.state, stored_event.originator_version
        )
        return Stamped(str(stored_event.originator_id), stored_event.originator_version, event)


class CaseDatastore(SQLiteDatastore):
    """One connection, no pool; immediate transactions that never stay open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.single_row_tracking = True
        self.originator_id_type = "text"

    @contextmanager
    def transaction(self, *, commit: bool) -> Iterator[SQLiteCursor]:
        connection = self._connection
        if connection.in_transaction:  # its owner, not this one, decides how it ends
            raise OperationalError("an append is under way on this case; appends do not nest")
        try:
            connection.execute("BEGIN IMMEDIATE" if commit else "BEGIN")
            with SQLiteCursor(connection.cursor()) as cursor:
                yield SQLiteCursor(cursor)
            connection.execute("COMMIT" if commit else "ROLLBACK")
        except sqlite3.IntegrityError as error:
            raise IntegrityError(error) from error
        except sqlite3.OperationalError as error:
            raise OperationalError(error) from error
        except sqlite3.Error as error:
            raise PersistenceError(error) from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def close(self) -> None:
        """Leave the connection alone: the book closes it (the library closes in `__del__`)."""


class CaseRecorder(SQLiteApplicationRecorder):
    """Inserts into our own table, with payloads and chain in the same transaction."""

    def construct_create_table_statements(self) -> list[str]:
        return []  # the schema is made when the case is created, never when it is opened

    def _insert_events(  # type: ignore[override]  # an unknown keyword is an error here
        self,
        c: SQLiteCursor,
        stored_events: Sequence[StoredEvent],
        *,
        commit: Commit,
        **kwargs: Any,
    ) -> Sequence[int] | None:
        unknown = {name for name, value in kwargs.items() if value is not None}
        if unknown:
            raise TypeError(f"the recorder does not know {sorted(unknown)}")
        c.execute(SELECT_TIP)
        if Head(*(c.fetchone() or (0, chain.ZERO))) != commit.expected:
            raise IntegrityError("the head of the ledger is not where it was")
        commit.before()
        rows = list(chained_rows(stored_events, commit))
        c.executemany(INSERT, rows)
        commit.head = Head(rows[-1][0], rows[-1][-1])
        return None

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        order = "DESC" if desc else "ASC"
        with self.datastore.transaction(commit=False) as c:
            c.execute(
                "SELECT case_id, position, topic, state FROM event WHERE case_id = ? "
                f"AND position > ? AND position <= ? ORDER BY position {order} LIMIT ?",
                (
                    originator_id,
                    gt or 0,
                    2**62 if lte is None else lte,
                    -1 if limit is None else limit,
                ),
            )
            return [StoredEvent(*row) for row in c.fetchall()]


def chained_rows(
    stored_events: Sequence[StoredEvent], commit: Commit
) -> Iterator[tuple[int, str, int, str, bytes, bytes, bytes]]:
    """Yield the rows of the events, each linked to the one before it."""
    value = commit.expected.chain
    for stored, nonce in zip(stored_events, commit.nonces, strict=True):
        case_id, position = str(stored.originator_id), stored.originator_version
        value = chain.link(value, chain.leaf(case_id, position, stored.topic, stored.state, nonce))
        yield position, case_id, position, stored.topic, stored.state, nonce, value
