"""Prompts and schemas: complete, frozen, and equal to the models that check answers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import jsonschema
import pytest

import prompts
from phases import ORDER
from phases.answers import json_schema
from phases.phase import find
from projections import aliases, encodings, views
from tests.phases.scripting import Script, copied, run, view_of

ROOT = Path(__file__).parents[2]
PHASES = (*ORDER, "diagnosis_early")
FROZEN = ROOT / "FROZEN.sha256"


def schemas() -> list[str]:
    return sorted(path.stem for path in (ROOT / "prompts/schemas").glob("*.json"))


@pytest.mark.parametrize("name", schemas())
def test_a_frozen_schema_equals_the_model_that_checks_answers(name: str) -> None:
    models = [find(phase).answers[name] for phase in PHASES if name in find(phase).answers]
    assert len(models) == 1
    assert json_schema(models[0]) == prompts.schema(name)
    jsonschema.Draft202012Validator.check_schema(prompts.schema(name))


def test_every_model_has_its_schema_file() -> None:
    assert {name for phase in PHASES for name in find(phase).answers} == set(schemas())


def test_good_answers_fit_the_schema_that_was_sent(lives: dict[str, Path], tmp_path: Path) -> None:
    from tests.phases.scripting import good_answer

    script = Script()
    run(copied(lives["fresh"], tmp_path / "x.case"), script)
    for document in script.documents:
        schema = json.loads(document)["schema"]
        jsonschema.validate(good_answer(*view_of(document)), schema)


@pytest.mark.parametrize("name", prompts.protocols())
def test_a_card_is_complete_and_everything_it_names_exists(name: str) -> None:
    card = prompts.card(name)
    assert card.phase in PHASES
    assert card.view in views.VERSIONS
    assert card.alias in aliases.VERSIONS
    assert card.encoding in encodings.VERSIONS
    assert card.partition
    assert card.schema in find(card.phase).answers
    assert len(card.text) > 400


@pytest.mark.parametrize("name", prompts.protocols())
def test_a_prompt_says_that_case_data_is_not_instructions(name: str) -> None:
    text = " ".join(prompts.card(name).text.lower().split())
    assert "untrusted" in text
    assert "instruction" in text


def test_the_newest_protocol_of_every_phase_exists_and_is_of_that_phase() -> None:
    assert set(prompts.NEWEST) == set(PHASES)
    assert all(prompts.card(name).phase == phase for phase, name in prompts.NEWEST.items())


def test_the_older_protocols_that_must_stay_selectable_are_here() -> None:
    wanted = {
        *("entity_resolution_v1", "case_interpretation_resolved_v6", "hypotheses_v2"),
        *(f"investigation_project_v{n}" for n in (8, 9, 10)),
        *("diagnosis_early_v3", "diagnosis_v3", "change_request_v4"),
    }
    assert wanted <= set(prompts.protocols())


@pytest.mark.parametrize("head", ["", "phase: x\n---\ntext"])
def test_a_prompt_file_without_a_proper_head_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    path = tmp_path / "v1.md"
    path.write_text(head)
    monkeypatch.setattr(prompts, "_files", lambda: {"x_v1": path})
    with pytest.raises(prompts.PromptError, match="head"):
        prompts.card.__wrapped__("x_v1")


@pytest.mark.skipif(not FROZEN.exists(), reason="nothing is frozen yet")
def test_frozen_files_are_what_the_list_says_and_every_one_is_listed() -> None:
    listed = dict(reversed(line.split("  ", 1)) for line in FROZEN.read_text("utf-8").splitlines())
    changed = [
        name
        for name, digest in listed.items()
        if hashlib.sha256((ROOT / name).read_bytes()).hexdigest() != digest
    ]
    assert changed == []
    files = [
        path
        for kind in ("*/*.md", "schemas/*.json", "encodings/*.txt")
        for path in (ROOT / "prompts").glob(kind)
    ]
    assert {path.relative_to(ROOT).as_posix() for path in files} <= set(listed)
