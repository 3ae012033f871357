"""Answers of diagnosis and of the early review, schemas diagnosis_v1 and diagnosis_early_v1."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from phases.answers import Answer, EvidenceIds, Line, Needs, Probability, Text

LineNumber = Annotated[int, Field(ge=1)]


class Step(Answer):
    """One step from cause to symptom."""

    step: Text
    evidence: EvidenceIds


class Location(Answer):
    """A place in the source."""

    path: Annotated[Line, Field(description="path in the snapshot, exactly as evidence shows it")]
    function: Annotated[
        str, Field(max_length=300, description="qualified name, or empty outside of functions")
    ]
    first_line: LineNumber
    last_line: LineNumber
    role: Literal["faulty", "contributing", "affected"]
    why: Text
    evidence: EvidenceIds


class DataFinding(Answer):
    """Rows that take part in the cause."""

    database: Annotated[Line, Field(description="ID of the database, such as S4")]
    table: Line
    rows: Annotated[Line, Field(description="which rows, by key")]
    meaning: Text
    evidence: EvidenceIds


class Verdict(Answer):
    """What became of one hypothesis."""

    hypothesis: Annotated[str, Field(description="ID of a hypothesis, such as H2")]
    verdict: Literal["confirmed", "supported", "open", "refuted"]
    why: Text
    evidence_for: EvidenceIds
    evidence_against: EvidenceIds


class Diagnosis(Answer):
    """What broke, why, where, and how sure that is."""

    outcome: Literal["cause_found", "cause_likely", "insufficient_evidence"]
    symptom: Text
    cause: Text
    mechanism: Annotated[list[Step], Field(max_length=12)]
    locations: Annotated[
        list[Location], Field(max_length=10, description="most likely place of the fault first")
    ]
    data: Annotated[list[DataFinding], Field(max_length=10)]
    hypotheses: Annotated[list[Verdict], Field(max_length=24)]
    confidence: Annotated[
        Probability, Field(description="that the first location is where the fault is")
    ]
    confidence_reason: Text
    unknowns: Annotated[list[Line], Field(max_length=12, description="what remains unknown")]
    checks: Annotated[
        list[Line], Field(max_length=12, description="what to look at in production to be sure")
    ]
    method: Annotated[Line, Field(description="how this was concluded, in one sentence")]
    information_needed: Needs


class Missing(Answer):
    """What the investigation should still look at."""

    what: Line
    why: Line
    suggestion: Annotated[str, Field(max_length=600, description="a look that would settle it")]


class EarlyReview(Answer):
    """Does the evidence already decide the case?"""

    verdict: Literal["accept", "reject"]
    why: Text
    missing: Annotated[
        list[Missing], Field(max_length=8, description="for a rejection: what is missing")
    ]
    alternatives: Annotated[
        list[str], Field(max_length=24, description="IDs of hypotheses that are not ruled out")
    ]
    evidence: EvidenceIds
