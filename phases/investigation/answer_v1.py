"""Answer of one investigation step, schema investigation_v1."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from phases.answers import Answer, EvidenceIds, Line, Needs, Text

HypothesisId = Annotated[str, Field(description="ID of a hypothesis, such as H2")]


class Assessment(Answer):
    """What the evidence so far does to one hypothesis."""

    hypothesis: HypothesisId
    state: Literal["open", "supported", "refuted", "confirmed"]
    notes: Text
    questions: Annotated[list[Line], Field(max_length=10, description="what is still open")]
    evidence: EvidenceIds


class ActionRequest(Answer):
    """A read-only look, from the list of tools."""

    name: Annotated[Line, Field(description="name of a tool")]
    arguments: Annotated[dict[str, Any], Field(description="arguments as the tool's schema says")]
    purpose: Annotated[Line, Field(description="what the result will decide")]
    hypothesis: Annotated[str | None, Field(description="the hypothesis it serves, or null")]


class Conclusion(Answer):
    """Whether the evidence decides the case."""

    ready: Annotated[
        bool, Field(description="true asks for an early review; then no actions are asked for")
    ]
    why: Text


class InvestigationStep(Answer):
    """Assess what is known, then look further or conclude."""

    assessments: Annotated[list[Assessment], Field(max_length=24)]
    selected_hypothesis: Annotated[
        str | None,
        Field(description="the hypothesis to follow next, or null to keep the current one"),
    ]
    actions: Annotated[list[ActionRequest], Field(max_length=4)]
    conclusion: Conclusion
    information_needed: Needs
