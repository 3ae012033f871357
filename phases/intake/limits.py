"""How much an intake takes: every limit in one place, each with its reason.

Sizes are bytes. They keep memory and time bounded whatever is offered; each has a clear message
that names it, and most can be met by `--exclude` or by cutting the file down.
"""

from __future__ import annotations

MIB = 1 << 20
GIB = 1 << 30

CHUNK = MIB
"""Bytes read at a time; what cannot be stored is never held whole."""

MAX_REPORT = 4 * MIB
"""A report is read by people and goes into every request; more is a log."""

MAX_LOG = 128 * MIB
"""A log is held in memory once while its excerpts are chosen."""

MAX_DATABASE = 512 * MIB
"""A database snapshot is one payload, held in memory once."""

MAX_STORED_FILE = 16 * MIB
"""A larger source file is catalogued, not stored: no source text that people wrote is that big."""

MAX_STORED_TOTAL = GIB
"""All stored files of one source tree together."""

MAX_TREE = 64 * GIB
"""All files of one source tree, the catalogued ones included: they are read for their digest."""

MAX_FILES = 100_000
"""Files and skipped entries of one source tree, and members of one archive."""

MAX_ARCHIVE = 2 * GIB
"""An archive as it is, compressed."""

MAX_UNPACKED = 2 * GIB
"""An archive's members together, unpacked."""

MAX_RATIO = 200
"""Unpacked bytes for each byte of the archive. Source text packs to a fifth or a tenth."""

RATIO_FROM = 64 * MIB
"""Below this many unpacked bytes no ratio is suspicious."""

MAX_ZIP_DIRECTORY = 64 * MIB
"""A zip file's central directory, which its reader loads whole."""

MAX_PARTS = 100
"""Folders within folders in an archive."""

MAX_NAME = 4096
"""A member's name in bytes, the longest path that Linux opens."""

MAX_IGNORE_FILE = MIB
"""A .gitignore file."""

MAX_IGNORE_PATTERNS = 2000
"""Patterns of one .gitignore file."""

MAX_PLACES = 100
"""Places that one `secret.replaced/1` names (docs/format.md); the count is always whole."""

DATABASE_SECONDS = 300
"""Time for SQLite to check and copy one database: a hostile schema can make it work forever."""

GIT_SECONDS = 600
"""Time for git to deliver one revision."""
