"""A report as people write it: sections by heading, sentences, code, and where each stands."""

from __future__ import annotations

import re
from dataclasses import dataclass

from phases.providers.offline.case import Observation

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"^ {0,3}#{1,6}\s+(?P<title>.+?)\s*#*$")
_LABEL = re.compile(r"^\s*\**(?P<title>[A-Z][\w' ]{2,40}?)\**:\**\s*(?P<rest>.*)$")
_ALONE = re.compile(r"^\s*\**(?P<title>[A-Z][\w' ]{1,60}?)\**:\**\s*$")
_TELLS_OUTPUT = re.compile(r"\b(?:gets?|see[ns]?|comes?|returns?|prints?|shows?|gives?)\b", re.I)
"""What people write before the output that they complain about: “I get:”, “It prints:”."""

_RULE = re.compile(r"^\s*([=-])\1{2,}\s*$")
_ITEM = re.compile(r"^\s{0,8}([-*+]|\d{1,3}[.)])\s+")
_END = re.compile(r"(?<=[.!?:])[\"')]?\s+(?=[A-Z`\"'(\[\d])")
_SHORT = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|approx|no|nr|resp)\.$", re.IGNORECASE)
_FRAME = re.compile(r'^\s*(File "|at \S|Traceback |\^|\.\.\.|During handling|The above exc)')

_UNAFFECTED = re.compile(
    r"\b(works?|fine|correct(?:ly)?|right|not affected|unaffected|no problem|did not happen"
    r"|is ok)\b",
    re.I,
)
_NEGATED = re.compile(r"\b(not|n't|never|no longer) \w{0,12}\s?(works?|right|correct)\b", re.I)

_SECTIONS = tuple(
    (kind, re.compile(rf"\b(?:{words})\b", re.I))
    for kind, words in (
        ("expected", "expect(?:ed|s|ations?)?|should|wanted|desired"),
        ("steps", r"steps?|reproduc(?:e[ds]?|ing|tions?|ible)|what we did|how to|to repeat"),
        ("environment", "environments?|versions?|setup|system info(?:rmation)?|platforms?"),
        ("observed", "observed|actual(?:ly)?|symptoms?|results?|got|outputs?|logs?"),
        ("story", "happen(?:s|ed|ing)?"),
    )
)
"""Whole words of headings that tell what a section is for; the first kind that fits wins."""


@dataclass(frozen=True)
class Piece:
    """A sentence or a line of code of the report. `code`: inside a fence, or a traceback line."""

    text: str
    section: str
    code: bool
    observation: str


def section_of(heading: str) -> str:
    """Return what a heading announces: expected, observed, story, steps, environment, or ""."""
    return next((kind for kind, words in _SECTIONS if words.search(heading)), "")


def pieces(report: list[Observation]) -> list[Piece]:
    """Return the report in order, headings left out but the first one (its title)."""
    found: list[Piece] = []
    section, fenced = "title", False
    announced = ""
    for observation in report:
        for paragraph, code, heading in _paragraphs(observation.text, fenced):
            if heading:
                if section == "title" and not found:
                    found.append(Piece(paragraph, "title", False, observation.id))
                    section = ""
                else:
                    section = section_of(paragraph)
                continue
            if section == "title":
                section = ""
            kind, rest = _labelled(paragraph, code)
            announced = announced if code else _announced(paragraph)
            section_now = kind or (announced if code else "") or section
            parts = [rest] if code else sentences(rest)
            found += [Piece(p, section_now, code, observation.id) for p in parts if p.strip()]
        fenced = _open_fence(observation.text, fenced)
    return found


def title(all_: list[Piece]) -> str:
    """Return the report's title: its first heading, else its first sentence."""
    named = [piece.text for piece in all_ if piece.section == "title"]
    return (named or [piece.text for piece in all_ if not piece.code] or [""])[0]


def sentences(paragraph: str) -> list[str]:
    """Return the sentences of running text, words unchanged, blanks unified."""
    flat = " ".join(paragraph.split())
    found: list[str] = []
    for part in _END.split(flat):
        if found and (_SHORT.search(found[-1]) or len(found[-1]) < 4):
            found[-1] += " " + part
        elif part:
            found.append(part)
    return found


def tells_what_works(sentence: str) -> bool:
    """Tell whether a sentence is about what is not affected."""
    return bool(_UNAFFECTED.search(sentence)) and not _NEGATED.search(sentence)


def without_what_works(all_: list[Piece]) -> list[Piece]:
    """Return the pieces that are not about what works: `This works: …` goes to its paragraph's end,
    a sentence only as far as its stop.
    """
    found: list[Piece] = []
    works, block = False, ""
    for piece in all_:
        told = not piece.code and tells_what_works(piece.text)
        works = told or (works and piece.observation == block)
        if not works:
            found.append(piece)
        works, block = works and piece.text.rstrip().endswith(":"), piece.observation
    return found


def _labelled(paragraph: str, code: bool) -> tuple[str, str]:
    """Read `Expected: the rows stay` as a section of its own paragraph."""
    match = None if code else _LABEL.match(paragraph)
    kind = section_of(match["title"]) if match else ""
    return (kind, match["rest"]) if match and kind and match["rest"] else ("", paragraph)


def _announced(paragraph: str) -> str:
    """Return what a paragraph such as `Expected:` says of the code below it."""
    match = _ALONE.match(paragraph)
    if match is None:
        return ""
    return section_of(match["title"]) or (
        "observed" if _TELLS_OUTPUT.search(match["title"]) else ""
    )


def _open_fence(text: str, fenced: bool) -> bool:
    for line in text.split("\n"):
        if _FENCE.match(line):
            fenced = not fenced
    return fenced


def _paragraphs(text: str, fenced: bool) -> list[tuple[str, bool, bool]]:
    """Return (text, code, heading) of each paragraph, list item, code line and heading."""
    found: list[tuple[str, bool, bool]] = []
    running: list[str] = []
    lines = text.split("\n")

    def close() -> None:
        if running:
            found.append((" ".join(running), False, False))
            running.clear()

    for at, line in enumerate(lines):
        following = lines[at + 1] if at + 1 < len(lines) else ""
        heading = _HEADING.match(line)
        if _FENCE.match(line):
            close()
            fenced = not fenced
        elif fenced or line.startswith(("    ", "\t")) or _FRAME.match(line):
            close()
            found.append((line, True, False))
        elif heading or (line.strip() and _RULE.match(following) and not running):
            found.append(((heading["title"] if heading else line).strip(), False, True))
        elif not line.strip() or _RULE.match(line):
            close()
        else:
            if _ITEM.match(line) or _labelled(line, False)[0]:
                close()
            running.append(_ITEM.sub("", line).strip())
    close()
    return found
