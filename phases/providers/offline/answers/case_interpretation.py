"""Case interpretation: the report's own sentences, sorted by what they say."""

from __future__ import annotations

import re
from collections.abc import Iterable

from phases.providers.offline.case import Case, Json, as_str, strings
from phases.providers.offline.clues import Clues
from phases.providers.offline.limits import distinct, line, text
from phases.providers.offline.report import Piece, tells_what_works

_EXPECTED = re.compile(
    r"\b(should|expect(?:ed|s)?|ought to|must|supposed to|would be right|as documented)\b", re.I
)
_SYMPTOM = re.compile(
    r"\b(instead|but|fails?|failed|crash\w*|raises?|returns?|shows?|hangs?|never|wrong|missing"
    r"|vanish\w*|no longer|ignored?|lost|empty|error|exception|slow|does not|do not|cannot|can't"
    r"|doesn't|aborts?)\b",
    re.I,
)
_AFFECTED = re.compile(r"\b(every|all|always|only|whenever|each|any)\b", re.I)
_SINCE = re.compile(
    r"\b(since|after|before|until|as of|upgrad\w+|updat\w+ (?:to|from)|migrat\w+)\b", re.I
)
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = re.compile(
    rf"\b(\d{{4}}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?|\d{{1,2}}\.? (?:{_MONTHS})(?: \d{{4}})?)"
)
_ASIDE = re.compile(
    r"\b(attached|attachments?|enclosed)\b|^(versions?|environment|no error)\b", re.I
)
"""What reports say beside the matter, whatever section it stands in."""

_CONTRAST = re.compile(r"\b(although|even though|however|nevertheless|yet)\b", re.I)


def answer(case: Case) -> Json:
    """Return the answer of case interpretation."""
    clues = Clues(case)
    prose = [p for p in clues.pieces if not p.code]
    symptom, expected = _symptom(clues, prose), _expected(prose, clues)
    return {
        "summary": _summary(clues, symptom, expected),
        "symptom": symptom,
        "expected": expected,
        "facts": _facts(clues, prose)[:60],
        "timeline": _timeline(clues, prose)[:40],
        "scope": _scope(prose),
        "contradictions": [
            _statement([p]) for p in prose if _CONTRAST.search(p.text)
        ][:8],
        "open_questions": _questions(clues)[:20],
        "information_needed": [],
    }  # fmt: skip


def _statement(pieces: Iterable[Piece], otherwise: str = "The report does not say.") -> Json:
    chosen = list(pieces)
    return {
        "statement": text(" ".join(map(_ended, chosen)) or otherwise),
        "observations": distinct(p.observation for p in chosen),
    }


def _ended(piece: Piece) -> str:
    """Return a piece with a stop after it, so that sentences do not run together."""
    words = piece.text.strip()
    return words if piece.code or words.endswith((".", "!", "?", ":")) else f"{words}."


def _symptom(clues: Clues, prose: list[Piece]) -> Json:
    """The title, what the section for it says, and the error; else sentences that complain."""
    told = [
        p for p in clues.pieces
        if not _ASIDE.search(p.text) and not _is_contrast(p) and not p.text.rstrip().endswith(":")
    ]  # fmt: skip
    observed = [p for p in told if p.section == "observed"]
    observed = observed or [p for p in told if p.section == "story"]
    complaints = [p for p in told if p.section == "" and not p.code and _SYMPTOM.search(p.text)]
    chosen = [p for p in prose if p.section == "title"][:1]
    chosen += [p for p in observed if not p.code][:3] or complaints[:3]
    chosen += [p for p in observed if p.code and _SYMPTOM.search(p.text)][-1:]
    if not chosen:
        chosen = prose[:1] or clues.pieces[:1]
    return _statement(dict.fromkeys(chosen))


def _is_contrast(piece: Piece) -> bool:
    return not piece.code and tells_what_works(piece.text)


def _expected(prose: list[Piece], clues: Clues) -> Json:
    section = [p for p in clues.pieces if p.section == "expected" and not _ASIDE.search(p.text)][:4]
    return _statement(section or [p for p in prose if _EXPECTED.search(p.text)][:3])


def _summary(clues: Clues, symptom: Json, expected: Json) -> str:
    parts = [as_str(symptom["statement"])]
    if expected["observations"]:
        parts.append(f"Expected: {expected['statement']}")
    for kind, message, _ in clues.errors[:1]:
        parts.append(f"Error: {kind}: {message}" if message else f"Error: {kind}")
    return text(" ".join(parts), 2000)


def _facts(clues: Clues, prose: list[Piece]) -> list[Json]:
    """Sentences of the report (stated), errors and outputs (observed)."""
    facts = [
        _fact(clues, p.text, "stated", [p.observation])
        for p in prose if p.section != "title" and len(p.text) > 15
    ][:30]  # fmt: skip
    for kind, message, where in clues.errors[:6]:
        shown = f"{kind}: {message}" if message else kind
        facts.append(_fact(clues, shown, "observed", [where]))
    for linked in [x for x in clues.frames if x.path][:8]:
        frame = linked.frame
        inside = f" in {frame.name}" if frame.name else ""
        said = f"A stack trace names {linked.path}, line {frame.line}{inside}."
        facts.append(_fact(clues, said, "observed", [frame.observation]))
    return facts


def _fact(clues: Clues, statement: str, certainty: str, observations: list[str]) -> Json:
    entities = [
        as_str(entity["id"]) for entity in clues.case.entities
        if as_str(entity.get("name")) and as_str(entity.get("name")) in statement
        and set(strings(entity.get("observations"))) & set(observations)
    ]  # fmt: skip
    return {
        "statement": text(statement, 1500),
        "certainty": certainty,
        "observations": distinct(observations),
        "entities": distinct(entities),
    }


def _timeline(clues: Clues, prose: list[Piece]) -> list[Json]:
    found = []
    for piece in prose:
        for dated in _DATE.finditer(piece.text):
            found.append((dated[1], piece.text, piece.observation))
        if not _DATE.search(piece.text) and (since := _SINCE.search(piece.text)):
            found.append((since[1].lower(), piece.text, piece.observation))
    for item in clues.case.logs:
        for row in item.text.split("\n")[:400]:
            held = [code for code in clues.codes if code in row]
            if held and (match := _DATE.search(row)):
                found.append((match[1], row.strip(), item.id))
    unique = dict.fromkeys(found)
    return [
        {"when": line(when), "what": line(what), "observations": [where]}
        for when, what, where in unique
    ]


def _scope(prose: list[Piece]) -> Json:
    unaffected = [p.text for p in prose if tells_what_works(p.text)]
    affected = [p.text for p in prose if _AFFECTED.search(p.text) and p.text not in unaffected]
    return {
        "affected": [line(t) for t in distinct(affected, 10)],
        "unaffected": [line(t) for t in distinct(unaffected, 10)],
    }


def _questions(clues: Clues) -> list[str]:
    """What nobody has said yet and the investigation has to find."""
    found = []
    if clues.frames and not any(linked.path for linked in clues.frames):
        found.append(
            "Which code of the tree leads to the stack trace, none of whose frames is in it?"
        )
    if clues.errors:
        kind, message, _ = clues.errors[0]
        found.append(line(f"What makes {kind} arise ({message or 'without a message'})?"))
    if clues.case.tables:
        found.append("Do the rows that the report is about differ from those that work?")
    if not clues.errors:
        found.append("Which code computes the result that is wrong, without any error?")
    found.append(line(f"Where is the behaviour decided that the report is about: {clues.title}"))
    return found
