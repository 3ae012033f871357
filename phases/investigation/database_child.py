"""The child process that holds one database open, read-only: a standard-library script of its own.

A model may write any SELECT, and the database itself is untrusted. In a process of its own a query
can be stopped whatever it does (one long built-in function never calls the progress handler), its
memory has a ceiling that the ledger's own connection does not share, and a damaged file cannot take
the program down. The parent is database.py; both speak marshal in frames of u64be length + bytes.

Started as `python -I -S database_child.py FILE`, with TZ=UTC.
"""

from __future__ import annotations

import contextlib
import marshal
import re
import sqlite3
import sys
import time
from collections.abc import Callable
from typing import Any, BinaryIO

STEP = 1000
"""Virtual-machine instructions between two looks at the limits."""

FUNCTIONS = frozenset((
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "avg", "ceil",
    "ceiling", "char", "coalesce", "concat", "concat_ws", "cos", "cosh", "count", "cume_dist",
    "date", "datetime", "degrees", "dense_rank", "exp", "first_value", "floor", "format",
    "glob", "group_concat", "hex", "ifnull", "iif", "instr", "json", "json_array",
    "json_array_length", "json_extract", "json_group_array", "json_group_object",
    "json_object", "json_patch", "json_quote", "json_remove", "json_replace", "json_set",
    "json_type", "json_valid", "julianday", "lag", "last_value", "lead", "length", "like",
    "likelihood", "likely", "ln", "log", "log10", "log2", "lower", "ltrim", "max", "min",
    "mod", "nth_value", "ntile", "nullif", "octet_length", "percent_rank", "pi", "pow",
    "power", "printf", "quote", "radians", "rank", "replace", "round", "row_number", "rtrim",
    "sign", "sin", "sinh", "soundex", "sqrt", "strftime", "string_agg", "substr", "substring",
    "sum", "tan", "tanh", "time", "timediff", "total", "trim", "trunc", "typeof", "unhex",
    "unicode", "unixepoch", "unlikely", "upper", "->", "->>",
))  # fmt: skip
"""What a statement may call. Left out: what is random, reads the program's surroundings, loads or
writes.
"""

CLOCK_FUNCTIONS = ("date", "time", "datetime", "julianday", "strftime", "unixepoch")
READABLE_ALWAYS = frozenset({"sqlite_master", "sqlite_schema", "json_each", "json_tree"})
PRAGMAS = frozenset(
    ("table_xinfo", "foreign_key_list", "foreign_key_check", "index_list", "index_xinfo")
)
MODULES = frozenset({"fts3", "fts4", "fts5", "rtree"})
_MODULE = re.compile(r"\bUSING\s+(\w+)", re.IGNORECASE)
_START = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/|\()*([A-Za-z]*)", re.DOTALL)


def limit_process(memory: int) -> None:
    """Put a ceiling on this process's memory, and let it write no file at all."""
    import resource

    for what, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        # macOS refuses RLIMIT_AS; the other limits hold there all the same.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (value, value))


class Stop(Exception):
    """A limit was reached; its name is the argument."""


class Guard:
    """Authorizer and progress handler of one connection, set afresh for each query."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.tables: frozenset[str] = frozenset()
        self.read: set[str] = set()
        self.denied = self.stopped = ""
        self.trusted, self.steps, self.limit, self.deadline = False, 0, 0, 0.0
        connection.set_authorizer(self.authorize)
        connection.set_progress_handler(self.progress, STEP)

    def begin(self, job: dict[str, Any]) -> None:
        """Take the limits of the next query."""
        self.trusted, self.limit = job["trusted"], job["steps"]
        self.read, self.denied, self.stopped, self.steps = set(), "", "", 0
        self.deadline = time.monotonic() + job["seconds"]

    def progress(self) -> int:
        """Stop at the limit of instructions, which is the same everywhere, or of time, the last
        resort.
        """
        self.steps += STEP
        if self.steps > self.limit:
            self.stopped = "steps"
        elif time.monotonic() > self.deadline:
            self.stopped = "seconds"
        return bool(self.stopped)

    def authorize(
        self, action: int, one: str | None, two: str | None, database: str | None, _: str | None
    ) -> int:
        """Allow reading the database's own tables and calling harmless functions; nothing else."""
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            name = (one or "").lower()
            if name in self.tables or name in READABLE_ALWAYS:
                self.read.add(one or "")
                return sqlite3.SQLITE_OK
            if database is None:  # a common table expression of the statement itself
                return sqlite3.SQLITE_OK
            return self.deny(f"reading {one}")
        if action == sqlite3.SQLITE_FUNCTION:
            return sqlite3.SQLITE_OK if two in FUNCTIONS else self.deny(f"the function {two}")
        if action == sqlite3.SQLITE_PRAGMA and one == "data_version":  # FTS5 asks for it itself
            return sqlite3.SQLITE_OK
        if self.trusted and action == sqlite3.SQLITE_PRAGMA and one in PRAGMAS:
            return sqlite3.SQLITE_OK
        names = {sqlite3.SQLITE_PRAGMA: "PRAGMA", sqlite3.SQLITE_ATTACH: "ATTACH"}
        return self.deny(names.get(action, "writing or system tables"))

    def deny(self, what: str) -> int:
        self.denied = self.denied or what
        return sqlite3.SQLITE_DENY


def open_database(path: str) -> tuple[sqlite3.Connection, Guard]:
    """Open `path` so that nothing can be written through the connection."""
    from urllib.parse import quote

    uri = f"file:{quote(path)}?mode=ro&immutable=1"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, cached_statements=0)
    connection.text_factory = lambda data: ("text", data)
    for setting in ("query_only=1", "trusted_schema=0", "cell_size_check=1", "temp_store=2"):
        connection.execute(f"PRAGMA {setting}")
    # A table-valued function declares itself at first use, which the authorizer would refuse.
    connection.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')")
    _connect_virtual(connection)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000)
    connection.setlimit(sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 100)
    guard = Guard(connection)
    _pin_clock(connection, guard)
    guard.trusted, guard.limit, guard.deadline = True, 10**9, time.monotonic() + 5
    rows = connection.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")
    guard.tables = frozenset(name[1].decode("utf-8", "replace").lower() for (name,) in rows)
    return connection, guard


def _connect_virtual(connection: sqlite3.Connection) -> None:
    """Connect the full-text and spatial tables of the database, which declare themselves too."""
    rows = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL%'"
    )
    for (_, name), (_, statement) in rows.fetchall():
        found = _MODULE.search(statement.decode("utf-8", "replace"))
        if found and found.group(1).lower() in MODULES:
            quoted = name.decode("utf-8", "replace").replace('"', '""')
            with contextlib.suppress(sqlite3.Error):
                connection.execute(f'SELECT 1 FROM "{quoted}" LIMIT 0')


def _pin_clock(connection: sqlite3.Connection, guard: Guard) -> None:
    """Make date functions refuse the present moment: a result must be the same tomorrow."""
    plain = sqlite3.connect(":memory:", isolation_level=None)

    def pinned(name: str) -> Callable[..., Any]:
        calls = [f"SELECT {name}({','.join('?' * n)})" for n in range(12)]
        first = 1 if name == "strftime" else 0

        def call(*arguments: Any) -> Any:
            texts = [a[1].decode("utf-8", "replace") if type(a) is tuple else a for a in arguments]
            present = len(texts) <= first or str(texts[first]).strip().lower() == "now"
            if present or len(texts) > 11:
                guard.denied = f"{name}() of the present moment"
                raise Stop(name)
            return plain.execute(calls[len(texts)], texts).fetchone()[0]

        return call

    for name in CLOCK_FUNCTIONS:
        connection.create_function(name, -1, pinned(name), deterministic=True)


def short(value: Any, limit: int) -> Any:
    """Return a value cut to `limit`: None, int, float, str, or (form, first part, total)."""
    if type(value) is bytes:
        return ("blob", value[:limit], len(value))
    if type(value) is not tuple:
        return value
    data: bytes = value[1]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return ("text_bytes", data[:limit], len(data))
    return text if len(text) <= limit else ("text", text[:limit], len(text))


def run(connection: sqlite3.Connection, guard: Guard, job: dict[str, Any]) -> dict[str, Any]:
    """Carry out one query and return its rows, or what stood against it.

    `job`: sql, parameters, trusted, offset, rows (kept), count (rows counted at most), steps,
    seconds, length (bytes of one value inside SQLite), value (characters or bytes returned of one),
    bytes (returned in all).
    """
    guard.begin(job)
    answer: dict[str, Any] = {"columns": [], "rows": [], "seen": 0, "error": "", "message": ""}
    if not job["trusted"]:
        start = _START.match(job["sql"])
        word = start.group(1).upper() if start else ""
        if word not in ("SELECT", "WITH", "VALUES"):
            return answer | {
                "error": "not_read_only",
                "message": f"a statement starting with {word!r}",
            }
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, job["length"])
    try:
        _fetch(connection, job, answer, guard)
    except Stop as stop:
        answer["error"] = str(stop)
    except MemoryError:
        answer["error"] = "memory"
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        answer["error"], answer["message"] = _explain(error, guard)
    answer["steps"] = guard.steps
    answer["tables"] = sorted(guard.read)
    return answer


def _fetch(
    connection: sqlite3.Connection, job: dict[str, Any], answer: dict[str, Any], guard: Guard
) -> None:
    size = 0
    cursor = connection.execute(job["sql"], job["parameters"])
    try:
        answer["columns"] = [column[0] for column in cursor.description or ()]
        for row in cursor:
            answer["seen"] += 1
            if answer["seen"] > job["count"]:
                answer["seen"] -= 1
                raise Stop("count")
            if job["offset"] < answer["seen"] <= job["offset"] + job["rows"]:
                cut = [short(value, job["value"]) for value in row]
                size += len(marshal.dumps(cut))
                if size > job["bytes"]:
                    answer["seen"] -= 1
                    raise Stop("bytes")
                answer["rows"].append(cut)
    finally:
        cursor.close()


def _explain(error: Exception, guard: Guard) -> tuple[str, str]:
    """Return (error, message) for what SQLite raised."""
    if guard.denied:
        return "not_read_only", guard.denied
    if guard.stopped:
        return guard.stopped, ""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_NOMEM:
        return "memory", ""
    if code == sqlite3.SQLITE_TOOBIG:
        return "length", ""
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR):
        return "unreadable", str(error)
    return "sql", str(error)


def _receive(stream: BinaryIO) -> Any:
    head = stream.read(8)
    return marshal.loads(stream.read(int.from_bytes(head, "big"))) if len(head) == 8 else None  # noqa: S302 - from our parent


def _send(stream: BinaryIO, value: Any) -> None:
    data = marshal.dumps(value)
    stream.write(len(data).to_bytes(8, "big") + data)
    stream.flush()


def main(path: str) -> None:
    """Answer queries from standard input until it ends."""
    settings = _receive(sys.stdin.buffer)
    limit_process(settings["memory"])
    try:
        connection, guard = open_database(path)
    except (sqlite3.Error, MemoryError) as error:
        _send(sys.stdout.buffer, {"error": "unreadable", "message": str(error)})
        return
    _send(sys.stdout.buffer, {"error": "", "message": ""})
    while (job := _receive(sys.stdin.buffer)) is not None:
        _send(sys.stdout.buffer, run(connection, guard, job))


if __name__ == "__main__":
    main(sys.argv[1])
