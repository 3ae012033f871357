"""Everything that can go wrong with a ledger, drawn once.

    LedgerError
    ├── CanonicalError          a value or text that has no canonical bytes
    ├── CaseNotFound            no file at this path
    ├── CaseExists              something already stands where a new file should go
    ├── UnsafeEvent             an event that may not be appended as it is
    ├── StorageError            the file system or SQLite refuses
    │   ├── LedgerFull          no space left
    │   ├── LedgerReadOnly      the file or its folder cannot be written
    │   ├── LedgerBusy          SQLite waited for another process and gave up
    │   └── NotALedger          another kind of file, or an empty one
    ├── LedgerConflict          somebody else appended first
    │   └── LedgerLocked        another process holds the case open for writing
    ├── NewerFormat             written by a newer release: verify and export still work
    │   └── UnknownEvent        a topic or field this release does not know
    ├── LedgerDamaged           the record is not what was written; names the first bad position
    │   └── PayloadDamaged      a payload is missing or differs from its digest
    │       └── PayloadWithheld left out of a copy made for sharing
    └── PackageRefused          a package that is malformed, hostile or altered
        ├── NotAPackage         another kind of file, or an empty one
        └── NewerPackage        written by a newer release (a NewerFormat too)

Projections add ConsolidatedError (an envelope that breaks its grammar), ShapeChanged and
PartitionRefused (a view that does not divide, parts that do not join).

Messages are one line: what, where, expected, found, what to do. Nothing below the command line
catches these to go on; the command line prints the message and ends with the documented exit code.
"""

from __future__ import annotations


class LedgerError(Exception):
    """Base of all errors of the ledger."""


class CanonicalError(LedgerError):
    """A value or text has no canonical bytes, or they would not give it back exactly."""


class CaseNotFound(LedgerError):
    """There is no file at the path given."""


class CaseExists(LedgerError):
    """A file already stands where a new one should go; nothing is overwritten."""


class UnsafeEvent(LedgerError):
    """An event could not be read back exactly, or names a payload that is not there."""


class StorageError(LedgerError):
    """The file system or SQLite refuses for a reason outside the ledger."""


class LedgerFull(StorageError):
    """No space is left for the transaction; it was rolled back."""


class LedgerReadOnly(StorageError):
    """The case or its folder cannot be written."""


class LedgerBusy(StorageError):
    """SQLite waited for a lock held by another process and gave up."""


class NotALedger(StorageError):
    """The file is not a case ledger: another kind of file, an empty one, or a cut-off one."""


class LedgerConflict(LedgerError):
    """Somebody else appended first; the events were not written."""


class LedgerLocked(LedgerConflict):
    """Another process holds this case open for writing."""


class NewerFormat(LedgerError):
    """The ledger was written by a newer release; it can be verified and exported, not written."""


class UnknownEvent(NewerFormat):
    """An event has a topic or a field that this release does not know."""


class LedgerDamaged(LedgerError):
    """The record is not what was written; `position` is the first bad one, if it has one."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class PayloadDamaged(LedgerDamaged):
    """A payload is missing or its bytes differ from its digest."""


class PayloadWithheld(PayloadDamaged):
    """A payload is left out of a copy made for sharing: nothing is wrong, and it is not there."""


class PackageRefused(LedgerError):
    """A package is malformed, hostile or altered; nothing was imported."""


class NotAPackage(PackageRefused):
    """The file is no zip: nothing in it can be read."""


class NewerPackage(PackageRefused, NewerFormat):
    """The package has a newer format; the release that wrote it reads it."""
