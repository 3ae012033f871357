"""Answer of entity resolution, schema entity_resolution_v1."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from phases.answers import Answer, Line, Needs, ObservationIds

Kind = Literal[
    "file",
    "symbol",
    "package",
    "table",
    "column",
    "identifier",
    "value",
    "error",
    "command",
    "configuration",
    "component",
    "moment",
    "other",
]


class Entity(Answer):
    """One thing that report or logs speak of."""

    name: Annotated[Line, Field(description="as written in the observations")]
    kind: Kind
    also_written: Annotated[
        list[Line], Field(max_length=20, description="other spellings of the same thing")
    ]
    meaning: Annotated[Line, Field(description="what it is, in this case")]
    observations: ObservationIds
    candidates: Annotated[
        list[Line],
        Field(
            max_length=20,
            description="paths, tables or columns of the catalogs it may refer to, best first",
        ),
    ]


class Unresolved(Answer):
    """A mention that could not be tied to anything."""

    text: Line
    why: Line
    observations: ObservationIds


class EntityResolution(Answer):
    """Who and what the case speaks of."""

    entities: Annotated[list[Entity], Field(max_length=80)]
    unresolved: Annotated[list[Unresolved], Field(max_length=40)]
    information_needed: Needs
