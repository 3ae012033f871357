"""A phase view in three densities, as three designs of a view would show the same case.

raw: one record a source line, a log line and a database row, provenance inline in each.
compact: blocks of lines, labels for repeated provenance and metadata; rows and hits are objects.
tight: labels; rows columnar; hits grouped by file and columnar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from projections import aliases

Json = dict[str, Any]
_label = aliases.VERSIONS["sequential_v1"]


def raw(view: Json) -> Json:
    """Return a resolved view with a record for each line, hit and row, provenance in each."""
    return _with_results(_with_sources(view, _line_records), _spread)


def compact(view: Json) -> Json:
    """Return a resolved view with blocks of lines, rows as objects and labels."""
    return _labelled(_with_results(view, _objects))


def tight(view: Json) -> Json:
    """Return a resolved view with labels, rows columnar, and hits grouped by file."""
    return _labelled(_with_results(view, _grouped))


DENSITIES: Mapping[str, Callable[[Json], Json]] = {"raw": raw, "compact": compact, "tight": tight}


def _labelled(view: Json) -> Json:
    return _label({key: value for key, value in view.items() if key != "shared"})


def _with_results(view: Json, change: Callable[[Json], Json]) -> Json:
    """Return a view with the result of each evidence item changed."""
    if "evidence" not in view:
        return view
    items = [
        {**item, "result": change(item["result"])} if "result" in item else item
        for item in view["evidence"]
    ]
    return {**view, "evidence": items}


def _with_sources(view: Json, change: Callable[[Json], list[Json]]) -> Json:
    sources = view.get("sources")
    if not sources or "observations" not in sources:
        return view
    records = [line for item in sources["observations"] for line in change(item)]
    return {**view, "sources": {**sources, "observations": records}}


def _line_records(observation: Json) -> list[Json]:
    first = observation["first_line"]
    rest = {k: v for k, v in observation.items() if k not in ("first_line", "text")}
    lines = observation["text"].split("\n")
    return [{**rest, "line": first + n, "text": text} for n, text in enumerate(lines)]


def _provenance(result: Json) -> Callable[[Json], Json]:
    """Return what finds the provenance of an item of a result by its path or artefact."""
    known: dict[str, Json] = {}
    for item in [*result.get("files", []), *result.get("documents", []), result.get("file")]:
        if isinstance(item, dict) and "provenance" in item:
            known[item.get("path", item.get("artifact"))] = item["provenance"]
    whole = result.get("provenance")

    def find(item: Json) -> Json:
        found = known.get(item.get("path", item.get("artifact", "")), whole)
        return {"provenance": found} if found else {}

    return find


def _spread(result: Json) -> Json:
    find, out = _provenance(result), dict(result)
    if "blocks" in out:
        out["blocks"] = [line for block in out["blocks"] for line in _spread_block(block, find)]
    if "hits" in out:
        out["hits"] = [{**hit, **find(hit)} for hit in out["hits"]]
    return _rows_as_objects(out, find)


def _spread_block(block: Json, find: Callable[[Json], Json]) -> list[Json]:
    if not isinstance(block.get("lines"), list) or "first" not in block:
        return [block]
    rest = {k: v for k, v in block.items() if k not in ("first", "lines")}
    return [
        {**rest, **find(block), "line": block["first"] + n, "text": text}
        for n, text in enumerate(block["lines"])
    ]


def _objects(result: Json) -> Json:
    return _rows_as_objects(dict(result), lambda _: {})


def _rows_as_objects(result: Json, find: Callable[[Json], Json]) -> Json:
    """Return a result with each columnar row, also of a sample, as an object."""
    out = dict(result)
    if isinstance(out.get("sample"), dict):
        out["sample"] = _rows_as_objects(out["sample"], find)
    rows, columns = out.get("rows"), out.get("columns")
    columnar = isinstance(rows, list) and isinstance(columns, list)
    if columnar and len(set(map(str, columns))) == len(columns):
        out["rows"] = [{**dict(zip(columns, row, strict=True)), **find(out)} for row in rows]
    return out


def _grouped(result: Json) -> Json:
    """Return a result with its hits grouped by path or artefact, and columnar."""
    hits = result.get("hits")
    if not hits or not all(isinstance(hit, dict) for hit in hits):
        return result
    groups: dict[tuple[Any, ...], Json] = {}
    for hit in hits:
        key = "path" if "path" in hit else "artifact"
        columns = [name for name in hit if name != key]
        group = groups.setdefault(
            (hit.get(key), *columns), {key: hit.get(key), "columns": columns, "hits": []}
        )
        group["hits"].append([hit[name] for name in columns])
    return {**result, "hits": list(groups.values())}
