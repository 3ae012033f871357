"""The early review: is the first candidate's source read, are the tables profiled, are rivals
weaker? A second rejection would bring nothing new, so there is at most one.
"""

from __future__ import annotations

from phases.providers.offline.assess import Analysis
from phases.providers.offline.case import Case, Json, as_dict
from phases.providers.offline.limits import distinct, line, text

_CLOSE = 0.05
"""A lead below this share is no lead."""


def answer(case: Case) -> Json:
    """Return the answer of the early review."""
    analysis = Analysis(case)
    missing = _missing(analysis)
    earlier = as_dict(case.view.get("earlier_review"))
    spent = min(case.left("requests", 24), case.left("actions", 40)) <= 2
    reject = bool(missing) and not earlier and not spent
    rivals = [v.id for v in analysis.verdicts() if v.state != "refuted"]
    evidence = analysis.places[0].evidence if analysis.places else []
    return {
        "verdict": "reject" if reject else "accept",
        "why": text(_why(analysis, missing, reject)),
        "missing": missing if reject else [],
        "alternatives": rivals[:8],
        "evidence": distinct(evidence, 12),
    }


def _missing(analysis: Analysis) -> list[Json]:
    found = []
    if not analysis.places:
        found.append(_item("a file of the source that fits the report", "no search led to one",
                           "search with single words of the report"))  # fmt: skip
    elif analysis.places[0].path not in analysis.corpus.read:
        path = analysis.places[0].path
        found.append(_item(f"the lines of {path}", "the first candidate's source was not read",
                           f"read_lines of {path}"))  # fmt: skip
    databases = [i for i, kind in analysis.case.kinds.items() if kind == "database"]
    unprofiled = [d for d in databases if not any(key[0] == d for key in analysis.corpus.profiled)]
    if unprofiled:
        what = f"a profile of the tables of {unprofiled[0]}"
        found.append(_item(what, "odd rows could explain the symptom too", "profile_table"))
    return found


def _item(what: str, why: str, suggestion: str) -> Json:
    return {"what": line(what), "why": line(why), "suggestion": suggestion[:600]}


def _why(analysis: Analysis, missing: list[Json], reject: bool) -> str:
    if reject:
        return "The evidence does not decide the case yet: " + "; ".join(m["why"] for m in missing)
    if not analysis.places:
        return "Nothing fits the report; further looks of the same kind would not help."
    first = analysis.places[0]
    lead = analysis.separation()
    close = " The lead is small; the diagnosis has to say so." if lead < _CLOSE else ""
    return f"{first.path} fits the evidence best. {analysis.story(first).because(1)}{close}"
