"""Answer of case interpretation, schema case_interpretation_v1."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from phases.answers import Answer, EntityIds, Line, Needs, ObservationIds, Text


class Statement(Answer):
    """A sentence and the observations it rests on."""

    statement: Text
    observations: ObservationIds


class Fact(Answer):
    """One thing that is known, and how."""

    statement: Text
    certainty: Annotated[
        Literal["stated", "observed", "inferred"],
        Field(
            description="stated by the report, observed in logs or output, or inferred from both"
        ),
    ]
    observations: ObservationIds
    entities: EntityIds


class Moment(Answer):
    """Something that happened at a time."""

    when: Annotated[Line, Field(description="as written, or relative: before, after")]
    what: Line
    observations: ObservationIds


class Scope(Answer):
    """Where the symptom shows and where it does not."""

    affected: Annotated[list[Line], Field(max_length=20)]
    unaffected: Annotated[list[Line], Field(max_length=20)]


class CaseInterpretation(Answer):
    """What the case says, before anybody looks for the cause."""

    summary: Text
    symptom: Statement
    expected: Statement
    facts: Annotated[list[Fact], Field(max_length=60)]
    timeline: Annotated[list[Moment], Field(max_length=40)]
    scope: Scope
    contradictions: Annotated[list[Statement], Field(max_length=20)]
    open_questions: Annotated[list[Line], Field(max_length=20)]
    information_needed: Needs
