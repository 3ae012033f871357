"""What of a case a request does not show, or only as metadata, and which policy decided so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from ledger import canonical
from ledger.reader import CaseReader
from ledger.trees import tree_files
from projections.contexts.parts import READS
from projections.explaining.trail import Json, Trail, ids
from projections.report import lines_shown


class LeftOut(NamedTuple):
    """Something of the case that the model did not see in this request, or only as metadata.

    Attributes:
        kind: `catalogued` (named in a catalog), `not_listed` (beyond a catalog's bound),
            `not_shown` (left out by a view or context), `withheld`, `excerpted`, `cut_off`,
            `not_taken_in`, or `replaced`.
        what: what it is, in words.
        policy: the version, setting or rule that decided so.
        number: how many things, or lines.
        names: their IDs or paths, where they have some.
    """

    kind: str
    what: str
    policy: str
    number: int
    names: tuple[str, ...] = ()


def left_out(reader: CaseReader, trail: Trail, context: Json, view: Json) -> Iterator[LeftOut]:
    yield from _not_in_view(trail, context, view)
    yield from _withheld(trail, context)
    yield from _only_catalogued(view)
    yield from _excerpted(trail, view)
    yield from _cut_off(view)
    yield from _not_taken_in(reader, trail)


def _not_in_view(trail: Trail, context: Json, view: Json) -> Iterator[LeftOut]:
    policy = f"view {trail.prepared.versions.get('view', '')}"
    if dropped := [name for name in context if name not in view]:
        yield LeftOut("not_shown", "members of the context", policy, len(dropped), tuple(dropped))
    shown = set(ids(view.get("evidence", [])))
    hidden = [name for name in ids(context.get("evidence", [])) if name not in shown]
    if hidden:
        what = "evidence of other hypotheses, listed by ID"
        yield LeftOut("not_shown", what, policy, len(hidden), tuple(hidden))
    if missing := view.get("catalogs", {}).get("evidence_not_cited"):
        what = "evidence that the diagnosis does not cite, listed by ID"
        yield LeftOut("not_shown", what, f"context of {trail.prepared.phase}", len(missing),
                      tuple(missing))  # fmt: skip


def _withheld(trail: Trail, context: Json) -> Iterator[LeftOut]:
    policy = "no_egress of the configuration"
    shown = set(ids(context["sources"]["artifacts"]))
    names = [a.artifact for a in trail.artifacts if a.artifact not in shown]
    if names:
        what = "artefacts, their observations and their catalogs"
        yield LeftOut("withheld", what, policy, len(names), tuple(names))
    items = [item["id"] for item in context.get("evidence", []) if "withheld" in item]
    if items:
        yield LeftOut("withheld", "results of looks at them", policy, len(items), tuple(items))


def _only_catalogued(view: Json) -> Iterator[LeftOut]:
    catalogs = view.get("catalogs", {})
    seen = _seen(catalogs, view.get("evidence", []))
    files = catalogs.get("files", {})
    policy = "catalogs of the revision"
    if names := [item["path"] for item in files.get("items", ()) if item["path"] not in seen]:
        what = f"source files of {files['total']} that no evidence here shows lines of"
        yield LeftOut("catalogued", what, policy, len(names), tuple(names))
    for member in ("logs", "databases"):
        names = [item["artifact"] for item in _listed(catalogs, member)]
        if names := [name for name in names if name not in seen]:
            what = f"{member} that no evidence here looks into"
            yield LeftOut("catalogued", what, policy, len(names), tuple(names))
    for name, catalog in _bounded(catalogs):
        if more := catalog["total"] - catalog["bound"] if catalog.get("cut_off") else 0:
            bound = f"bound of the catalog ({catalog['bound']})"
            yield LeftOut("not_listed", f"{name} beyond the catalog's bound", bound, more)


def _bounded(catalogs: Json) -> Iterator[tuple[str, Json]]:
    yield "source files", catalogs.get("files", {})
    for database in _listed(catalogs, "databases"):
        yield f"tables of {database['artifact']}", database


def _seen(catalogs: Json, evidence: list[Json]) -> set[str]:
    """Return what evidence shows lines of, names in its arguments, or searched as a whole."""
    found = {place for place, _, _ in lines_shown(evidence)}
    for item in evidence:
        arguments = item.get("arguments", {})
        found |= {value for value in arguments.values() if isinstance(value, str)}
        if READS.get(item.get("action", "")) == "log" and not arguments.get("log"):
            found |= {log["artifact"] for log in _listed(catalogs, "logs")}
    return found


def _listed(catalogs: Json, member: str) -> list[Json]:
    """Return a list of the catalogs; empty for one that is withheld."""
    listed = catalogs.get(member, [])
    return listed if isinstance(listed, list) else []


def _excerpted(trail: Trail, view: Json) -> Iterator[LeftOut]:
    shown = set(ids(view["sources"]["observations"]))
    lines: defaultdict[str, int] = defaultdict(int)
    for item in trail.observations:
        if item.id in shown:
            lines[item.artifact] += item.last_line - item.first_line + 1
    for artifact in trail.artifacts:
        more = artifact.lines - lines.get(artifact.artifact, artifact.lines)
        if artifact.kind == "log" and more > 0:
            what = f"lines of {artifact.lines} of {artifact.artifact} {artifact.name}"
            policy = "excerpts at intake (observations)"
            yield LeftOut("excerpted", what, policy, more, (artifact.artifact,))


def _cut_off(view: Json) -> Iterator[LeftOut]:
    cut = [item["id"] for item in view.get("evidence", ()) if item.get("complete") is False]
    if cut:
        what = "results that are themselves cut off; each says where"
        yield LeftOut("cut_off", what, "limits of the actions", len(cut), tuple(cut))


def _not_taken_in(reader: CaseReader, trail: Trail) -> Iterator[LeftOut]:
    for artifact in trail.artifacts:
        if artifact.tree is None:
            continue
        document = reader.payload(artifact.tree.digest)
        listed = tuple(item["path"] for item in tree_files(document) if not item["stored"])
        if listed:
            what = f"files of {artifact.artifact} whose content was not taken in"
            yield LeftOut("not_taken_in", what, "limits of the intake", len(listed), listed)
        reasons: defaultdict[str, list[str]] = defaultdict(list)
        for item in canonical.from_bytes(document).get("skipped", ()):
            reasons[item["reason"]].append(item["path"])
        for reason, paths in reasons.items():
            what = f"paths of {artifact.artifact} that were skipped: {reason}"
            yield LeftOut("not_taken_in", what, "skipped at intake", len(paths), tuple(paths))
    if trail.secrets:
        names = tuple(dict.fromkeys(item.artifact for item in trail.secrets))
        count = sum(item.count for item in trail.secrets)
        yield LeftOut("replaced", "secrets", "replacement at intake", count, names)
