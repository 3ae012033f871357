"""Answer of the hypotheses phase, schema hypotheses_v1."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from phases.answers import (
    Answer,
    EntityIds,
    EvidenceIds,
    FactIds,
    Line,
    Needs,
    ObservationIds,
    Probability,
    Text,
)


class Hypothesis(Answer):
    """One explanation that competes with the others."""

    statement: Annotated[Text, Field(description="cause and symptom in one or two sentences")]
    mechanism: Annotated[Text, Field(description="how the cause would lead to the symptom")]
    predicts: Annotated[
        list[Line],
        Field(min_length=1, max_length=10, description="what must be seen if it is true"),
    ]
    refuted_by: Annotated[
        list[Line], Field(min_length=1, max_length=10, description="what would show it is false")
    ]
    first_checks: Annotated[
        list[Line], Field(max_length=10, description="cheapest looks that tell it from the others")
    ]
    likelihood: Annotated[Probability, Field(description="before any evidence")]
    facts: FactIds
    observations: ObservationIds
    entities: EntityIds
    evidence: EvidenceIds


class Hypotheses(Answer):
    """Competing explanations, most likely first."""

    hypotheses: Annotated[list[Hypothesis], Field(max_length=8)]
    information_needed: Needs
