"""What model answers have in common: strict shapes, and the JSON schema a model is shown.

The frozen files under prompts/schemas/ are what was sent; the pydantic models of the phases check
what comes back. A test holds the two equal.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1, max_length=4000)]
Line = Annotated[str, Field(min_length=1, max_length=600)]
Probability = Annotated[float, Field(ge=0, le=1)]
ObservationIds = Annotated[
    list[str], Field(max_length=40, description="IDs of observations, such as O3")
]
FactIds = Annotated[list[str], Field(max_length=40, description="IDs of facts, such as F2")]
EntityIds = Annotated[list[str], Field(max_length=40, description="IDs of entities, such as N4")]
EvidenceIds = Annotated[
    list[str],
    Field(max_length=40, description="original IDs this rests on: E12, O3, F2, N4"),
]


class Answer(BaseModel):
    """An object in a model's answer: nothing missing, nothing extra, no coercion."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Need(Answer):
    """A fact from outside without which the phase cannot go on."""

    what: Line
    why: Line


Needs = Annotated[
    list[Need],
    Field(
        max_length=10,
        description=(
            "empty in a normal answer; only if this phase cannot be answered at all without facts "
            "from outside: what is needed, and why"
        ),
    ),
]


def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of an answer in the frozen form: definitions inlined, no titles.

    Inlined because providers differ in what they do with `$ref`; the models are not recursive.
    """
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    tidied = _tidy(schema, definitions)
    assert isinstance(tidied, dict)
    return tidied


def _tidy(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_tidy(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = definitions[node["$ref"].rpartition("/")[2]]
        node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
    return {
        key: (
            {name: _tidy(item, definitions) for name, item in value.items()}
            if key == "properties"
            else _tidy(value, definitions)
        )
        for key, value in node.items()
        if key != "title"
    }
