"""Answer of the change request, schema change_request_v1: a hand-off somebody can act on."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from phases.answers import Answer, EvidenceIds, Line, Needs, Text

LineNumber = Annotated[int, Field(ge=1)]


class Change(Answer):
    """One change to the source, in words."""

    path: Annotated[Line, Field(description="path in the snapshot, exactly as evidence shows it")]
    function: Annotated[
        str, Field(max_length=300, description="qualified name, or empty outside of functions")
    ]
    first_line: LineNumber
    last_line: LineNumber
    what: Text
    why: Text
    evidence: EvidenceIds


class Test(Answer):
    """A test that fails today and passes after the change."""

    where: Annotated[Line, Field(description="existing test file to extend, or a new one's path")]
    arrange: Text
    expect: Text


class DataRepair(Answer):
    """What to do about rows that are wrong already."""

    what: Text
    why: Text
    evidence: EvidenceIds


class ChangeRequest(Answer):
    """What to change, where, how to test it, and what could go wrong."""

    title: Line
    summary: Text
    changes: Annotated[list[Change], Field(max_length=10)]
    tests: Annotated[list[Test], Field(max_length=10)]
    data_repair: Annotated[list[DataRepair], Field(max_length=6)]
    risks: Annotated[list[Line], Field(max_length=10)]
    acceptance: Annotated[
        list[Line], Field(max_length=10, description="how to tell that the bug is gone")
    ]
    out_of_scope: Annotated[list[Line], Field(max_length=10)]
    information_needed: Needs
