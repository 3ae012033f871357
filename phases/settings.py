"""What can be configured, with defaults. Reading files and the environment is the tools' business.

A snapshot of it is pinned on the ledger by each run (`configuration.pinned`), so everything here
can be read back years later. Secrets do not belong here: they are named, never held.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from phases.providers.prices import usd

Count = Annotated[int, Field(ge=0, le=10**9)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _amount(text: str) -> str:
    if text:
        usd(text)
    return text


Usd = Annotated[str, AfterValidator(_amount)]
"""An amount in USD as text, such as `0.075`: exact, unlike a float; empty for none."""

Seconds = Annotated[int, Field(ge=1, le=86_400)]


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
    max_seconds: Annotated[
        Count, Field(description="stop a run after so many seconds; 0: never")
    ] = 0
    max_cost_usd: Annotated[
        Usd, Field(description="stop asking when the case has cost so much; empty: never")
    ] = ""


class PriceRow(_Section):
    """Prices in USD for a million tokens that take the place of built-in ones."""

    input: Annotated[Usd, Field(description="USD for a million prompt tokens")] = ""
    cached: Annotated[Usd, Field(description="of them read from a cache")] = ""
    output: Annotated[Usd, Field(description="USD for a million output tokens")] = ""
    storage: Annotated[Usd, Field(description="USD for a million cached tokens and hour")] = ""


WHEREABOUTS = ("key_variable", "key_file")


class _Remote(_Section):
    """What every remote provider has. Where a key is never belongs into a snapshot."""

    model: Annotated[str, Field(description="model asked")] = ""
    base_url: Annotated[str, Field(description="address of the service")] = ""
    key_variable: Annotated[str, Field(description="environment variable with the key")] = ""
    key_file: Annotated[str, Field(description="file with the key, instead of the variable")] = ""
    timeout_seconds: Annotated[Seconds, Field(description="total time of one attempt")] = 600
    max_output_tokens: Annotated[
        int, Field(ge=256, le=1_000_000, description="limit of an answer, thoughts included")
    ] = 16_384
    temperature: Annotated[
        float | None, Field(ge=0, le=2, description="sampling temperature; default: the model's")
    ] = None
    price: PriceRow = PriceRow()

    def whereabouts(self) -> dict[str, str]:
        """Return where the key is: what a snapshot leaves out."""
        return {name: getattr(self, name) for name in WHEREABOUTS}


class Gemini(_Remote):
    """Gemini through its native API."""

    model: Annotated[str, Field(description="model asked", min_length=1)] = "gemini-3.8-flash"
    base_url: Annotated[str, Field(description="address of the service")] = (
        "https://generativelanguage.googleapis.com"
    )
    api_version: Annotated[str, Field(description="API version", pattern="^[a-z0-9]+$")] = "v1beta"
    key_variable: Annotated[str, Field(description="environment variable with the key")] = (
        "GEMINI_API_KEY"
    )
    thinking_level: Annotated[
        Literal["", "low", "medium", "high"],
        Field(description="how much the model thinks; default: the model's"),
    ] = ""
    response_schema: Annotated[
        bool,
        Field(description="send the output schema as such too, not only as text"),
    ] = True
    cache_context_version: Annotated[
        Literal["stable_case_v1", "instructions_v1"],
        Field(description="which part of an investigation is put into a cache"),
    ] = "stable_case_v1"
    cache_mode: Annotated[
        Literal["off", "auto", "required"],
        Field(description="explicit caching; required: any departure from it is an error"),
    ] = "auto"
    cache_ttl_seconds: Annotated[
        int, Field(ge=60, le=86_400, description="lifetime asked for a cache")
    ] = 3_600
    cache_create_seconds: Annotated[
        Seconds, Field(description="total time for creating a cache")
    ] = 30


class OpenAICompatible(_Remote):
    """A server that speaks the OpenAI chat completions API: llama.cpp, Ollama, vLLM, gateways."""

    base_url: Annotated[str, Field(description="address that /chat/completions follows")] = (
        "http://127.0.0.1:8080/v1"
    )
    key_variable: Annotated[str, Field(description="environment variable with the key")] = (
        "OPENAI_API_KEY"
    )
    response_schema: Annotated[
        bool, Field(description="send the output schema as such, not as text")
    ] = True


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
    gemini: Gemini = Gemini()
    openai_compatible: OpenAICompatible = OpenAICompatible()

    def with_keys_of(self, other: Settings) -> Settings:
        """Return these settings with the keys where others, those of today, say they are."""
        sections = {
            name: getattr(self, name).model_copy(update=getattr(other, name).whereabouts())
            for name in REMOTE
        }
        return self.model_copy(update=sections)


REMOTE = ("gemini", "openai_compatible")
"""Sections of remote providers."""
