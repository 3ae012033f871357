"""Hypotheses: three to six competing explanations, each from another kind of signal."""

from __future__ import annotations

from collections.abc import Iterator

from phases.providers.offline.case import Case, Json, as_str, strings
from phases.providers.offline.clues import Clues
from phases.providers.offline.data import related_tables
from phases.providers.offline.limits import distinct, line, text

MOST = 6


def answer(case: Case) -> Json:
    """Return the answer of the hypotheses phase."""
    clues = Clues(case)
    known = {as_str(item.get("statement")) for item in case.hypotheses}
    proposals = [
        proposal
        for maker in (_frame, _symbol, _area, _data, _settings, _copy, _caller)
        for proposal in maker(clues)
        if proposal["statement"] not in known
    ]
    proposals.sort(key=lambda item: -item["likelihood"])
    return {"hypotheses": proposals[:MOST], "information_needed": []}


def _proposal(
    clues: Clues, statement: str, mechanism: str, predicts: list[str], refuted_by: list[str],
    checks: list[str], likelihood: float, observations: list[str],
) -> Json:  # fmt: skip
    places = set(observations)
    facts = [
        as_str(f["id"]) for f in clues.case.facts if places & set(strings(f.get("observations")))
    ]
    entities = [
        as_str(e["id"]) for e in clues.case.entities
        if as_str(e.get("name")) and as_str(e.get("name")) in statement
    ]  # fmt: skip
    return {
        "statement": text(statement, 1200),
        "mechanism": text(mechanism, 1200),
        "predicts": [line(p) for p in predicts],
        "refuted_by": [line(p) for p in refuted_by],
        "first_checks": [line(c) for c in checks],
        "likelihood": likelihood,
        "facts": distinct(facts, 12),
        "evidence": [],
        "observations": distinct(observations, 12),
        "entities": distinct(entities, 12),
    }


def _frame(clues: Clues) -> Iterator[Json]:
    """The innermost frame of our own code: it was there when things went wrong."""
    own = [x for x in clues.frames if x.path]
    own.sort(key=lambda x: (x.frame.depth, x.path, x.frame.line))
    for linked in own[:1]:
        frame = linked.frame
        inside = f"{frame.name} in {linked.path}" if frame.name else linked.path
        error = f" ({clues.errors[0][0]})" if clues.errors else ""
        yield _proposal(
            clues,
            f"{inside}, near line {frame.line}, mishandles its input or state and so causes the "
            f"failure in the stack trace{error}.",
            "The innermost frame of the project's own code runs with values that it does not "
            "provide for, and the error arises there or just below.",
            [f"the lines around {linked.path}:{frame.line} show a case that is not handled"],
            [f"the code at {linked.path}:{frame.line} handles the reported input correctly and "
             "only passes on what a caller gave it"],
            [f"read {linked.path} around line {frame.line}"],
            0.45, [frame.observation],
        )  # fmt: skip


def _caller(clues: Clues) -> Iterator[Json]:
    """A caller on the trace in another file: half of all faults are not in the innermost frame."""
    own = [x for x in clues.frames if x.path]
    own.sort(key=lambda x: (x.frame.depth, x.path, x.frame.line))
    others = [x for x in own if x.path != own[0].path]
    for linked in others[:1]:
        yield _proposal(
            clues,
            f"{linked.frame.name or 'the code'} in {linked.path} (line {linked.frame.line}) calls "
            "on with a wrong or stale value; the failure only shows further in.",
            "A caller prepares the wrong value, and the innermost frame is merely where it hurts.",
            [f"{linked.path} around line {linked.frame.line} passes on something that is not valid "
             "for the reported case"],
            [f"what {linked.path} passes on is right"],
            [f"read {linked.path} around line {linked.frame.line}"],
            0.3, [linked.frame.observation],
        )  # fmt: skip


def _symbol(clues: Clues) -> Iterator[Json]:
    """A name in code that the report gives: users name what they called."""
    names = [name for name in clues.meant_symbols if len(name) > 3]
    for name in names[:1]:
        where = [o.id for o in clues.case.report if name in o.text]
        files = clues.catalog.modules(name) or clues.catalog.named_like(name.rpartition(".")[2])
        at = f" (perhaps {files[0]})" if files else ""
        yield _proposal(
            clues,
            f"The implementation of {name}{at} does not cover the reported case.",
            f"The report names {name}; what it does with the reported input departs from what is "
            "expected.",
            [f"the definition of {name}, or what it calls, lacks the reported case"],
            [f"{name} hands the reported case on unchanged to code that decides otherwise"],
            [f"find the definition of {name} and who uses it"],
            0.4, where,
        )  # fmt: skip


def _area(clues: Clues) -> Iterator[Json]:
    """The code that the report's own words describe."""
    where = [o.id for o in clues.case.report]
    yield _proposal(
        clues,
        f"The code that implements what the report describes decides wrongly: {clues.title}",
        "The words of the report stand in the code that is responsible; a condition, an argument "
        "or an order of steps in it is wrong for the reported case.",
        ["a search with the report's words leads to one file, and a function in it decides what "
         "the report complains about"],
        ["the code that fits the report's words treats the reported case correctly"],
        ["search the source with the report's words and read the best places"],
        0.42, where[:6],
    )  # fmt: skip


def _data(clues: Clues) -> Iterator[Json]:
    """Rows that break what the code takes for granted."""
    for score, table in related_tables(clues)[:1]:
        named = [o.id for o in clues.case.report if any(c in o.text for c in clues.codes)]
        yield _proposal(
            clues,
            f"Rows in the database, probably in table {table.name}, violate an assumption of the "
            "code that reads them (a key that is not unique, a value of another form, a missing "
            "counterpart).",
            "The code is right for ordinary rows; a few rows are not ordinary, and only these show "
            "the symptom.",
            [f"a profile of {table.name} or a related table shows rows that are not like the "
             "others, and the report's rows are among them"],
            ["the rows that the report is about look like all others"],
            ["profile the tables that the report's words name", "look up the report's codes"],
            0.5 if clues.codes else 0.28 if score > 0 else 0.15,
            named or [o.id for o in clues.case.report[:2]],
        )  # fmt: skip


def _settings(clues: Clues) -> Iterator[Json]:
    """Settings, packaging or surroundings instead of code."""
    words = {
        "import",
        "install",
        "packag",
        "modul",
        "configur",
        "set",
        "option",
        "environ",
        "wheel",
    }
    hits = sum(1 for word in words if word in clues.weights)
    missing = any("ModuleNotFound" in kind or "ImportError" in kind for kind, _, _ in clues.errors)
    yield _proposal(
        clues,
        "The configuration, packaging or environment is the cause: the code itself would behave "
        "as expected.",
        "A setting, a missing file or a packaging declaration leads the code astray.",
        ["a configuration or packaging file of the tree lacks or mis-states something that the "
         "report needs"],
        ["the behaviour follows from the source with any configuration"],
        ["search the configuration files with the report's words"],
        0.5 if missing else min(0.25, 0.08 + 0.03 * hits), [o.id for o in clues.case.report[:2]],
    )  # fmt: skip


def _copy(clues: Clues) -> Iterator[Json]:
    """What runs is a built copy that differs from the source in the tree."""
    copies = [f.path for f in clues.case.files if f.role == "built_copy"]
    if copies:
        yield _proposal(
            clues,
            f"What runs is a built copy ({copies[0]} or another) that is older than its source.",
            "The package is loaded from its built files; a change in the source is not in them.",
            ["a stack trace names built files, and their text differs from the source"],
            ["the source itself shows the reported behaviour"],
            ["compare the built file with its source at the place in question"],
            0.1, [o.id for o in clues.case.report[:2]],
        )  # fmt: skip
