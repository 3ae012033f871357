"""What can be configured, with defaults. Reading files and the environment is the tools' business.

A snapshot of it is pinned on the ledger by each run (`configuration.pinned`), so everything here
can be read back years later. Secrets do not belong here: they are named, never held.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0, le=10**9)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Budget(_Section):
    """How much one analysis may use; its end gives the best diagnosis so far."""

    requests: Annotated[Count, Field(description="accepted investigation requests")] = 24
    actions: Annotated[Count, Field(description="actions of an investigation")] = 40
    evidence_characters: Annotated[
        Count, Field(description="characters of evidence, from the model's window")
    ] = 400_000


class Run(_Section):
    """How a run behaves when something goes wrong."""

    corrections: Annotated[
        int, Field(ge=0, le=10, description="correction rounds after a rejected answer")
    ] = 2
    attempts: Annotated[
        int, Field(ge=1, le=20, description="attempts at a request for each provider and run")
    ] = 3
    unknown_outcome: Annotated[
        Literal["resend", "ask", "stop"],
        Field(description="what to do with a request whose outcome is unknown"),
    ] = "resend"


class Settings(_Section):
    """The effective configuration of one run."""

    providers: Annotated[
        tuple[str, ...], Field(description="providers in the order they are tried", min_length=1)
    ] = ("offline",)
    protocols: Annotated[
        dict[str, str], Field(description="phase to pinned protocol; others take the newest")
    ] = {}
    no_egress: Annotated[
        tuple[Literal["source", "log", "database"], ...],
        Field(description="kinds of artefact that never go to a remote provider"),
    ] = ()
    budget: Budget = Budget()
    run: Run = Run()
