"""Lines that decide by a column, told from lines that only name it."""

from __future__ import annotations

import pytest

from phases.providers.offline import deciding
from phases.providers.offline.deciding import EQUAL, JOIN, ORDER, PARSE, SORT, SUM, TRUTH


def ways(text: str, column: str = "soil_code", converted: bool = False) -> set[tuple[str, bool]]:
    lines = dict(enumerate(text.split("\n"), 1))
    return {(d.way, d.direct) for d in deciding.decisions(column, lines, converted)}


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("WHERE plot_id = ? AND soil_code <= ?", ORDER),
        ("return [r for r in rows if r.soil_code > low]", ORDER),
        ("Plot.objects.filter(soil_code__lte=limit)", ORDER),
        ("plots.where('soil_code', '<', limit)", ORDER),
        ("SELECT *\n  FROM plot\n ORDER BY grown_on,\n   soil_code", SORT),
        ('rows.sort(key=lambda r: r["soil_code"])', SORT),
        ('if row["soil_code"] == wanted:', EQUAL),
        ('rate = RATES[row["soil_code"]]', EQUAL),
        ('rate = RATES.get(row["soil_code"], 0)', EQUAL),
        ("rows.filter(r => r.soilCode === wanted)", EQUAL),
        ("db('plot').where({ soil_code: wanted })", EQUAL),
        ("select x from plot where soil_code in (?, ?)", EQUAL),
        ("select count(*) from plot group by soil_code", EQUAL),
        ('code = row["soil_code"]\nif code in KNOWN:', EQUAL),
        ("join soil s on s.soil_code = p.soil_code", JOIN),
        ('day = date.fromisoformat(row["soil_code"])', PARSE),
        ('first = row["soil_code"].split("-")[0]', PARSE),
        ('name = row["soil_code"] or "unknown"', TRUTH),
        ("if not plot.soil_code:", TRUTH),
        ("share = total / plot.soil_code", SUM),
        ("select sum(soil_code) from plot", SUM),
    ],
)  # fmt: skip
def test_a_line_that_decides_says_how(text: str, way: str) -> None:
    assert way in {found for found, _ in ways(text)}


@pytest.mark.parametrize(
    "text",
    ['print(row["soil_code"])', 'soil_code=row["soil_code"],', "for soil_code in codes:",
     "const { soil_code } = row;", 'row.get("soil_code")', "key = (soil_code, day)",
     "# soil_code == 3 is clay", "create table plot (soil_code text = 'x')",
     "insert into plot (soil_code) values (?)", "return soil_code", "my_soil_code_2 == 3"],
)  # fmt: skip
def test_a_line_that_only_names_it_does_not_decide(text: str) -> None:
    assert ways(text) == set()


def test_values_made_even_before_are_not_compared_as_they_are() -> None:
    assert ways("WHERE upper(soil_code) = ?") == {(EQUAL, False)}
    assert ways('if row["soil_code"].strip() == wanted:') == {(EQUAL, False)}


def test_an_attribute_that_was_converted_is_not_the_stored_value() -> None:
    seen = ['Plot(soil_code=parse_soil(row["soil_code"]))']
    assert deciding.is_converted("soil_code", seen)
    assert ways("if plot.soil_code <= limit:", converted=True) == {(ORDER, False)}
    assert ways("WHERE p.soil_code <= ?", converted=True) == {(ORDER, True)}


def test_every_harmful_way_has_a_reason_or_a_general_meaning() -> None:
    surest = [(kind, max(by, key=lambda way: by[way])) for kind, by in deciding.BREAKS.items()]
    unsaid = [kind for kind, way in surest if not deciding.reason(kind, way)]
    assert unsaid == ["count_equals_offset"]
