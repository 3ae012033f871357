"""Roles, copies and symbols on published packages, as laid out by the cases' materialize.py.

Set CASELEDGER_CASES to a folder of materialised cases (NAME/source …).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from phases.investigation.actions import perform
from phases.investigation.index import index_of
from phases.investigation.snapshot import Snapshot

ROOT = Path(os.environ.get("CASELEDGER_CASES", "/nonexistent"))

pytestmark = [
    pytest.mark.registry,
    pytest.mark.skipif(not ROOT.is_dir(), reason="CASELEDGER_CASES names no folder"),
]


@pytest.fixture(scope="module")
def case(folder_case):
    made = {}

    def read(name):
        if not (ROOT / name).is_dir():
            pytest.skip(f"{name} is not materialised")
        if name not in made:
            made[name] = Snapshot.of(folder_case(ROOT / name))
        return made[name]

    yield read
    for snapshot in made.values():
        snapshot.close()


COPIES = {
    "axios-socket-invalid-url": {
        "dist/axios.js", "dist/axios.min.js", "dist/browser/axios.cjs", "dist/esm/axios.js",
        "dist/esm/axios.min.js", "dist/node/axios.cjs",
    },
    "knex-boolean-text": set(),
    "luxon-old-dates-odd-offset": {
        "build/amd/luxon.js", "build/cjs-browser/luxon.js", "build/global/luxon.js",
        "build/global/luxon.min.js", "build/node/luxon.js",
    },
    "yargs-positional-defaults-kept": {"build/index.cjs"},
    "requests-proxy-credentials": set(),
    "sqlparse-split-case-begin": set(),
    "werkzeug-multipart-slow": set(),
    "pytest-skip-in-warns": set(),
}  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
def test_exactly_the_built_copies_are_recognised(case, name):
    roles = index_of(case(name)).roles
    assert {path for path, role in roles.items() if role.role == "built_copy"} == COPIES[name]
    assert all(role.origins for role in roles.values() if role.role == "built_copy")


@pytest.mark.parametrize(
    ("name", "path", "symbol", "copy"),
    [
        ("axios-socket-invalid-url", "lib/adapters/http.js", "httpAdapter.dispatchHttpRequest",
         "dist/node/axios.cjs"),
        ("knex-boolean-text", "lib/dialects/better-sqlite3/index.js",
         "Client_BetterSQLite3._formatBindings", None),
        ("luxon-old-dates-odd-offset", "src/zones/IANAZone.js", "IANAZone.offset",
         "build/node/luxon.js"),
        ("yargs-positional-defaults-kept", "build/lib/command.js",
         "CommandInstance.postProcessPositionals", "build/index.cjs"),
    ],
)  # fmt: skip
def test_an_original_is_source_has_its_symbols_and_names_its_copies(case, name, path, symbol, copy):
    index = index_of(case(name))
    assert index.roles[path].role == "source"
    assert symbol in {s.qualified for s in index.symbols(path)}
    assert copy is None or copy in index.copies[path]


def test_minified_files_are_recognised_by_content(case):
    found = {
        path
        for name in COPIES
        for path, role in index_of(case(name)).roles.items()
        if role.minified
    }
    assert found == {
        "dist/axios.min.js", "dist/esm/axios.min.js", "build/global/luxon.min.js",
        "build/index.cjs",
    }  # fmt: skip


def test_a_place_in_a_minified_file_leads_to_its_original(case):
    index = index_of(case("axios-socket-invalid-url"))
    line = index.text("dist/axios.min.js").lines[0]
    origin = index.origin("dist/axios.min.js", 1, line.index("window.location.href") + 1)
    assert (origin.path, origin.present) == ("lib/helpers/isURLSameOrigin.js", True)
    assert "window.location.href" in index.text(origin.path).lines[origin.line - 1]


@pytest.mark.parametrize("column", ["newsletter", "paid"])
def test_members_case_shows_its_decisive_rows(case, column):
    found = perform(case("knex-boolean-text"), "profile_table", {"table": "members"})
    mixed = [f for f in found.document["result"]["findings"] if f["kind"] == "mixed_types"]
    assert column in {f["odd"][0] for f in mixed}
    assert all(f["where"].endswith("IN ('text')") for f in mixed)
