"""What a stable prefix would take out of saved investigation requests: `measure cache`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ledger.files import new_file
from projections import partitions
from projections.cache_measuring import (
    Measured,
    Summary,
    full_history_protocols,
    measure,
    plus,
    summary,
)
from projections.measuring import Size, reduction
from projections.wording import counted
from tools.exits import UserError
from tools.many import Broken, Cases, broken_json, over, row_files
from tools.measuring import (
    HONESTY,
    Options,
    Source,
    counters,
    end_well,
    file_digest,
    size_json,
    verified,
)
from tools.output import json_bytes, print_json, say, table

SAYS = (
    "Historical: the complete saved phase view as sent, JSON transport escaping included; system "
    "text and output schema stand on neither side.",
    "Stable text is moved, not deleted: creating the cache still transmits it.",
    "Storage, cached reads and recreation after expiry cost money.",
    "Older presentations are marked {rebuilt}; they are not shown as full-history originals.",
    *HONESTY,
)


@dataclass(frozen=True)
class _Found:
    """One case; `requests` only if asked for."""

    source: Source
    case_id: str
    position: int
    summary: Summary
    requests: list[Measured]


def measure_cache(
    cases: Cases, protocol: str, partition: str, options: Options, *, output: Path | None = None
) -> None:
    """Measure a partition over saved investigation requests; print the figures, write the report.

    Raises:
        UserError: there is no such protocol or partition, or its view is no candidate.
        AnswerIsNo: a case does not verify or was changed meanwhile.
        CaseExists: the report or another file is there already.
    """
    _check(protocol, partition)
    names = list(counters())
    work = partial(_measured, protocol, partition, options.per_request)
    found: list[_Found] = []
    broken: list[Broken] = []
    report = new_file(output, overwrite=options.force) if output else nullcontext()
    with (
        report as file,
        row_files(options.csv, options.jsonl, columns(names), force=options.force) as write,
    ):
        for one in over(cases, work, "measuring", jobs=options.jobs, quiet=options.json):
            if isinstance(one, Broken):
                broken.append(one)
            else:
                found.append(one)
                write(_flat(one, names))
        document = _as_json(protocol, partition, names, found, broken)
        if file:
            file.write(json_bytes(document, indent=True))
    if options.json:
        print_json(document)
    else:
        _print(protocol, partition, names, found)
        if output:
            say(f"Report: {output}")
    end_well(broken, [one.source for one in found])


def columns(names: Sequence[str]) -> list[str]:
    """Return the columns of CSV and JSON lines of `measure cache`."""
    counts = ["case", "case_id", "sha256", "position", "requests", "rebuilt", "exact", "prefixes"]
    sizes = [f"{name}_{what}" for name in ("characters", *names) for what in _SIZES]
    shares = ["reduction", "stable_share", "alias_overhead", "relabelled", "fallbacks"]
    return [*counts, *sizes, *shares]


_SIZES = ("historical", "complete", "live", "created")


def _check(protocol: str, partition: str) -> None:
    if partition not in partitions.VERSIONS:
        raise UserError(f"{partition}: partitions are {', '.join(partitions.VERSIONS)}")
    allowed = full_history_protocols()
    if protocol not in allowed:
        raise UserError(
            f"{protocol}: is no investigation with full history, which a cache needs; "
            f"there are {', '.join(allowed)}"
        )


def _measured(protocol: str, partition: str, per_request: bool, path: Path) -> _Found:
    before = file_digest(path)
    counted = tuple(counters().values())
    with verified(path) as reader:
        found = list(measure(reader, counted, protocol, partition))
        case_id, position = reader.case_id, reader.head.position
    source = Source(path.name, before, file_digest(path))
    sums = summary(found, len(counted))
    return _Found(source, case_id, position, sums, found if per_request else [])


def _sizes(sums: Summary) -> dict[str, Size]:
    """Return the sizes of a case by name; `created` is every prefix once."""
    created = Size(
        sum(prefix.size.characters for prefix in sums.prefixes),
        tuple(
            sum(prefix.size.tokens[number] for prefix in sums.prefixes)
            for number in range(len(sums.live.tokens))
        ),
    )
    return dict(zip(_SIZES, (sums.historical, sums.complete, sums.live, created), strict=True))


def _flat(one: _Found, names: Sequence[str]) -> dict[str, Any]:
    sums = one.summary
    sizes = {what: size_json(size, names) for what, size in _sizes(sums).items()}
    return {
        "case": one.source.case,
        "case_id": one.case_id,
        "sha256": one.source.before,
        "position": one.position,
        "requests": sums.requests,
        "rebuilt": sums.rebuilt,
        "exact": sums.exact,
        "prefixes": len(sums.prefixes),
        **{
            f"{name}_{what}": sizes[what][name]
            for name in ("characters", *names)
            for what in _SIZES
        },
        "reduction": _percent(sums.historical.characters, sums.live.characters),
        "stable_share": _share(sums.stable.characters, sums.complete.characters),
        "alias_overhead": sums.alias_overhead.characters,
        "relabelled": sums.relabelled,
        "fallbacks": sum(sums.fallbacks.values()),
    }


def _as_json(
    protocol: str,
    partition: str,
    names: list[str],
    found: Sequence[_Found],
    broken: Sequence[Broken],
) -> dict[str, Any]:
    return {
        "protocol": protocol,
        "partition": partition,
        "counters": names,
        "cases": [_case_json(one, names) for one in found],
        "total": _sums_json(_total(found, len(names)), names),
        "broken": broken_json(broken),
        "says": _says(protocol),
    }


def _case_json(one: _Found, names: list[str]) -> dict[str, Any]:
    return {
        **one.source.as_json(),
        "case_id": one.case_id,
        "position": one.position,
        **_sums_json(one.summary, names),
        "prefixes": [
            {"id": prefix.id, "requests": prefix.requests, **size_json(prefix.size, names)}
            for prefix in one.summary.prefixes
        ],
        "views": [_request_json(request, names) for request in one.requests],
    }


def _sums_json(sums: Summary, names: list[str]) -> dict[str, Any]:
    sizes = {what: size_json(size, names) for what, size in _sizes(sums).items()}
    stable = size_json(sums.stable, names)
    return {
        "requests": sums.requests,
        "rebuilt": sums.rebuilt,
        "exact": sums.exact,
        "unique_prefixes": len(sums.prefixes),
        **sizes,
        "reduction": {n: _percent(sizes["historical"][n], sizes["live"][n]) for n in stable},
        "stable_share": {n: _share(stable[n], sizes["complete"][n]) for n in stable},
        "alias_overhead": size_json(sums.alias_overhead, names),
        "relabelled": sums.relabelled,
        "fallbacks": dict(sums.fallbacks),
    }


def _request_json(item: Measured, names: list[str]) -> dict[str, Any]:
    return {
        "request": item.request,
        "protocol": item.protocol,
        "presentation": item.presentation,
        "view": item.view,
        "prefix": item.prefix_id or None,
        "exact": item.exact,
        "fallback": item.fallback or None,
        "historical": size_json(item.historical, names),
        "complete": size_json(item.complete, names),
        "live": size_json(item.live, names),
        "alias_overhead": size_json(item.alias_overhead, names),
    }


def _total(found: Sequence[_Found], counted: int) -> Summary:
    total = summary((), counted)
    for one in found:
        total = plus(total, one.summary)
    return total


def _says(protocol: str) -> list[str]:
    return [sentence.format(rebuilt=_mark(protocol)) for sentence in SAYS]


def _mark(protocol: str) -> str:
    return "rebuilt_" + protocol.rpartition("_")[2]


def _percent(before: int, after: int) -> float | None:
    return round(reduction(before, after), 2) if before else None


def _share(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 2) if whole else None


def _print(protocol: str, partition: str, names: list[str], found: Sequence[_Found]) -> None:
    total = _total(found, len(names))
    rows = [(one.source.case, one.summary) for one in found]
    rows += [("all", total)] if len(found) > 1 else []
    _print_characters(rows)
    _print_tokens(names, rows)
    if any(one.requests for one in found):
        _print_requests(found)
    _print_remarks(protocol, partition, names, total)
    for one in found if len(found) == 1 else ():
        for prefix in one.summary.prefixes:
            characters = counted(prefix.size.characters, "character")
            uses = f"{counted(prefix.requests, 'request')}, {characters}"
            say(f"prefix {prefix.id}: {uses}")
    for sentence in _says(protocol):
        say(sentence)


def _print_characters(rows: Sequence[tuple[str, Summary]]) -> None:
    headings = ["case", "requests", "prefixes", "historical live", "new live", "reduction"]
    table(
        [*headings, "stable share"],
        [
            [
                name,
                sums.requests,
                len(sums.prefixes),
                *_cells(sums.historical.characters, sums.live.characters),
                _shown(_share(sums.stable.characters, sums.complete.characters)),
            ]
            for name, sums in rows
        ],
    )
    say()


def _print_tokens(names: list[str], rows: Sequence[tuple[str, Summary]]) -> None:
    table(
        ["case", "tokens", "historical live", "new live", "reduction", "prefixes once"],
        [
            [
                name,
                counter,
                *_cells(sums.historical.tokens[number], sums.live.tokens[number]),
                f"{_sizes(sums)['created'].tokens[number]:,}",
            ]
            for name, sums in rows
            for number, counter in enumerate(names)
        ],
    )
    say()


def _print_requests(found: Sequence[_Found]) -> None:
    table(
        ["case", "request", "protocol", "presentation", "historical live", "new live", "reduction"],
        [
            [
                one.source.case,
                item.request,
                item.protocol,
                item.presentation,
                *_cells(item.historical.characters, item.live.characters),
            ]
            for one in found
            for item in one.requests
        ],
    )
    say()


def _print_remarks(protocol: str, partition: str, names: list[str], total: Summary) -> None:
    if not total.requests:
        say("No investigation request was saved.")
        return
    views = counted(total.requests, "view")
    say(f"{protocol}, {partition}: {total.exact} of {views} rejoined exactly.")
    if total.rebuilt:
        say(f"{total.rebuilt} of {total.requests} are {_mark(protocol)}: sent in another form.")
    if total.relabelled:
        have = "has" if total.relabelled == 1 else "have"
        definitions = counted(total.relabelled, "definition")
        say(f"{definitions} {have} different labels in different requests.")
    for reason, number in total.fallbacks.items():
        say(f"{number} sent as one document: {reason}")
    more = size_json(total.alias_overhead, names)
    shown = ", ".join(f"{number:+,} {name}" for name, number in more.items())
    say(f"Labels against sequential ones: {shown}")


def _cells(before: int, after: int) -> list[str]:
    return [f"{before:,}", f"{after:,}", _shown(_percent(before, after))]


def _shown(percent: float | None) -> str:
    return "" if percent is None else f"{percent:.2f} %"
