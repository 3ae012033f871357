"""search_code: literal text, a regular expression, an identifier, or words ranked by relevance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ledger.events import JsonObject
from phases.investigation.actions.base import (
    MOST_HITS,
    OFFSET,
    SIZE,
    Action,
    Page,
    Refused,
    Result,
    Tray,
    choice_schema,
    limit_schema,
    number_schema,
    object_schema,
    text_schema,
)
from phases.investigation.actions.files import cost, file_entry
from phases.investigation.actions.quote import Quoter, around
from phases.investigation.actions.scope import GLOB, ROLE, check_glob, files_in_scope, scope_of
from phases.investigation.index import index_of
from phases.investigation.index.search import TIERS
from phases.investigation.patterns import WORK, Pattern, PatternRefused, Work, WorkDone
from phases.investigation.snapshot import Snapshot, SourceFile

MODES = ("literal", "regex", "identifier", "ranked")
RANKED = 50
"""Passages that a ranked search looks at."""


class Hit(NamedTuple):
    """A place that matched, 1-based."""

    path: str
    line: int
    column: int


class Search(NamedTuple):
    """All hits of a search and what it covered."""

    hits: list[Hit]
    files: int
    bytes: int
    cut_off: tuple[str, int] | None


def compile_pattern(query: str, mode: str, ignore_case: bool) -> Pattern:
    """Return what a mode looks for; an identifier is not part of a longer one.

    Raises:
        Refused: for an expression that cannot be used.
    """
    try:
        return Pattern(
            query,
            literal=mode == "literal",
            identifier=mode == "identifier",
            ignore_case=ignore_case,
        )
    except PatternRefused as error:
        raise Refused("arguments", "expression", str(error), "$.query") from None


def search(snapshot: Snapshot, files: list[SourceFile], pattern: Pattern) -> Search:
    """Return the hits in `files`, one a line, within the work a search may cost."""
    work, hits, covered, size = Work(), list[Hit](), 0, 0
    try:
        for file in files:
            for line, column in pattern.matches(snapshot.text(file), work):
                hits.append(Hit(file.path, line, column))
                if len(hits) > MOST_HITS:
                    raise WorkDone("hits", MOST_HITS)
            covered += 1
            size += file.size
    except WorkDone as done:
        reason, limit = done.args
        return Search(hits[:MOST_HITS], covered, size, (reason, limit))
    return Search(hits, covered, size, None)


def ranked(snapshot: Snapshot, files: list[SourceFile], query: str, role: str) -> Search:
    """Return the best passages, each as its line that holds most of the query's words."""
    index = index_of(snapshot)
    tier = "rest" if role in TIERS["rest"] else "source"
    engine = index.search(tier)
    allowed = {file.path for file in files}
    passages = [p for p in index.rank(query, RANKED * 10, tier) if p.path in allowed][:RANKED]
    hits = [Hit(p.path, engine.best_line(snapshot, p, query), 1) for p in passages]
    looked_at = [file for file in engine.files if file.path in allowed]
    return Search(hits, len(looked_at), sum(file.size for file in looked_at), None)


def run(snapshot: Snapshot, arguments: JsonObject) -> Result:
    files = files_in_scope(snapshot, arguments)
    query, mode = arguments["query"], arguments["mode"]
    if mode == "ranked":
        found = ranked(snapshot, files, query, arguments["role"])
    else:
        found = search(snapshot, files, compile_pattern(query, mode, arguments["ignore_case"]))
    return show(snapshot, "search_code", found, arguments, {"query": query, "mode": mode})


def show(
    snapshot: Snapshot, action: str, found: Search, arguments: JsonObject, query: JsonObject
) -> Result:
    """Return a page of hits as blocks of lines, files and hits."""
    tray = Tray(arguments["characters"])
    quoter = Quoter(tray)
    shown = list(_quote(snapshot, action, found.hits, arguments, quoter))
    offset, limit = arguments["offset"], arguments["limit"]
    result = {
        "files": [file_entry(snapshot, action, path) for path in quoter.names],
        "hits": [{"path": hit.path, "line": hit.line, "column": hit.column} for hit in shown],
        "blocks": quoter.blocks(),
    }
    return Result(
        result,
        found=bool(found.hits),
        page=Page(offset, limit, len(shown), len(found.hits), found.cut_off is None),
        cut_off=("characters", tray.limit) if tray.full else found.cut_off,
        covered={"files": found.files, "bytes": found.bytes},
        scope=scope_of(snapshot),
        filter={"glob": arguments["glob"], "role": arguments["role"]},
        query=query,
    )


def _quote(
    snapshot: Snapshot, action: str, hits: list[Hit], arguments: JsonObject, quoter: Quoter
) -> Iterator[Hit]:
    index, context = index_of(snapshot), arguments["context"]
    offset = arguments["offset"]
    for hit in hits[offset : offset + arguments["limit"]]:
        entry = file_entry(snapshot, action, hit.path)
        fits = quoter.add(
            hit.path, index.text(hit.path), hit.line - context, hit.line + context,
            {hit.line: around(hit.column)}, cost(entry) + 60,
        )  # fmt: skip
        if not fits or not quoter.tray.charge(len(hit.path) + 50):
            return
        yield hit


ACTION = Action(
    name="search_code",
    description=(
        "Search the text of the source tree. Modes: literal text; regex (RE2 syntax, matched "
        "line by line, no look-around or back-references); identifier (whole names only); "
        "ranked (words of a question, best passages of source files first; of tests, docs, "
        "examples or data if `role` says so). Shows the first hit of each line with lines of "
        "context, source files before tests and docs."
    ),
    arguments=object_schema(
        ["query"],
        query=text_schema("What to look for.", 1000),
        mode=choice_schema("How to read the query.", MODES, "literal"),
        ignore_case={"type": "boolean", "description": "Ignore case.", "default": False},
        glob=GLOB,
        role=ROLE,
        context=number_schema("Lines before and after a hit.", 0, 10, 2),
        offset=OFFSET,
        limit=limit_schema(30, 200),
        characters=SIZE,
    ),
    run=run,
    check=check_glob,
    limits={"hits_counted": MOST_HITS, "instructions_times_bytes": WORK},
)
