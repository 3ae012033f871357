"""One investigation step: assess by the evidence so far, then look further or conclude."""

from __future__ import annotations

from phases.providers.offline.assess import Analysis, Verdict
from phases.providers.offline.case import Case, Json, as_dict, as_str, dicts, strings
from phases.providers.offline.limits import distinct, line, text
from phases.providers.offline.looks import Look, Planner

MOST_ACTIONS = 38
"""Looks after which the analyst has seen what it can make use of."""


def answer(case: Case) -> Json:
    """Return the answer of an investigation step."""
    analysis = Analysis(case)
    verdicts = analysis.verdicts()
    looks = _looks(analysis)
    best = max(verdicts, key=lambda v: v.weight, default=None)
    return {
        "assessments": [_assessment(v, analysis) for v in verdicts][:8],
        "selected_hypothesis": best.id if best else None,
        "actions": [_action(look, verdicts, case) for look in looks],
        "conclusion": _conclusion(analysis, looks),
        "information_needed": [],
    }


def _looks(analysis: Analysis) -> list[Look]:
    case, corpus = analysis.case, analysis.corpus
    if corpus.asked >= MOST_ACTIONS or case.left("requests", 24) <= 1:
        return []
    planner = Planner(analysis.clues, corpus, analysis.ranker)
    return planner.next(case.actions_per_step)


def _assessment(verdict: Verdict, analysis: Analysis) -> Json:
    questions = []
    if verdict.state == "open":
        item = next(h for h in analysis.case.hypotheses if h["id"] == verdict.id)
        questions = [line(f"Is this so: {p}?") for p in strings(item.get("predicts"))[:2]]
    return {
        "hypothesis": verdict.id,
        "state": verdict.state,
        "notes": text(verdict.why, 1500),
        "questions": questions,
        "evidence": distinct([*verdict.supporting, *verdict.against], 20),
    }


def _action(look: Look, verdicts: list[Verdict], case: Case) -> Json:
    return {
        "name": look.name,
        "arguments": look.arguments,
        "purpose": line(look.purpose),
        "hypothesis": _served(look, verdicts, case),
    }


def _served(look: Look, verdicts: list[Verdict], case: Case) -> str | None:
    """Return the hypothesis that a look serves most: by the file or table it names, else the best
    of its kind.
    """
    named = [as_str(look.arguments.get(key)) for key in ("path", "table", "name")]
    for item in case.hypotheses:
        statement = as_str(item.get("statement"))
        if any(name and name in statement for name in named):
            return as_str(item["id"])
    for item in case.hypotheses:
        if (look.kind == "data") == ("database" in as_str(item.get("statement"))):
            return as_str(item["id"])
    return verdicts[0].id if verdicts else None


def _conclusion(analysis: Analysis, looks: list[Look]) -> Json:
    if looks:
        why = "It is to be found out next " + "; ".join(look.purpose for look in looks) + "."
        return {"ready": False, "why": text(why, 1500)}
    if not analysis.places:
        return {
            "ready": True,
            "why": "Nothing was found that fits the report, and nothing is left to look at.",
        }
    first = analysis.places[0]
    rejected = as_dict(analysis.case.view.get("early_review"))
    again = (
        " The review's points cannot be pursued further." if dicts(rejected.get("missing")) else ""
    )
    why = (
        f"{first.path} fits the report best. {analysis.story(first).because()} Further looks of "
        f"the same kinds would not change that.{again}"
    )
    return {"ready": True, "why": text(why, 1500)}
