"""Two cases whose cause is a value in the database and a line that decides by it.

The report's words lead elsewhere in both; only the odd rows and what code does with their column
lead to the fault.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.phases.providers.offline.playing import Json, Played, play

KENNEL = {
    "kennel/__init__.py": '"""A kennel."""\n',
    "kennel/db/__init__.py": "",
    "kennel/db/stays.py": '''"""Stays of animals, from the day book."""

COLUMNS = "stay_id, animal_id, arrived, weight"


def of_animal(con, animal_id):
    """Every stay of an animal."""
    return con.execute(f"SELECT {COLUMNS} FROM stay WHERE animal_id = ?", (animal_id,)).fetchall()


def heavier_than(con, animal_id, limit):
    """Stays at whose arrival the animal was above a limit."""
    query = f"""
        SELECT {COLUMNS}
          FROM stay
         WHERE animal_id = ?
           AND weight > ?
    """
    return con.execute(query, (animal_id, limit)).fetchall()


def note(con, animal_id, arrived, weight):
    con.execute("INSERT INTO stay VALUES (null, ?, ?, ?)", (animal_id, arrived, weight))
''',
    "kennel/diet.py": '''"""Diets: which animal is overweight and gets the diet food."""

from kennel.db import stays

LIMIT = 40


def diet(con, animal):
    """Tell whether an animal needs the diet food: it was overweight at every stay."""
    heavy = stays.heavier_than(con, animal["animal_id"], LIMIT)
    return "diet food" if heavy else "ordinary food"


def diet_card(con, animal):
    """The card with the diet of an animal and its overweight stays."""
    return f"{animal['name']}: {diet(con, animal)}"
''',
    "kennel/cards.py": '''"""Prints cards of animals: name, stays, weight at each arrival."""


def card(animal, rows):
    lines = [animal["name"]]
    lines += [f"{row['arrived']}  weight {row['weight']}" for row in rows]
    return "\\n".join(lines)
''',
}
KENNEL_REPORT = """# Animal gets the diet food although it is not overweight

The card of animal K-4407 says diet food. `diet` is wrong for it: the animal weighs 12 kg and was
never overweight. K-4410 is fine.

## Expected
The card says ordinary food.

## Observed
The card says diet food.
"""


def make_kennel(path: Path) -> None:
    """Weights are numbers; three stays, one of them of the reported animal, hold texts."""
    con = sqlite3.connect(path)
    with con:
        con.executescript(
            "create table animal (animal_id integer primary key, tag text, name text);"
            "create table stay (stay_id integer primary key, animal_id int, arrived text, weight)"
        )
        for n in range(1, 90):
            con.execute("insert into animal values (?, ?, ?)", (n, f"K-{4400 + n}", f"Rex{n}"))
            for day in (1, 2):
                weight: object = f"{n + 5} kg" if n in (7, 31, 60) and day == 2 else n + 5
                values = (n, f"2031-02-{day + n % 20:02}", weight)
                con.execute("insert into stay values (null, ?, ?, ?)", values)
    con.close()


RADIO = {
    "waves/__init__.py": '"""Radio programmes."""\n',
    "waves/tariff.py": '''"""Fees by genre."""

FEES = {"news": 0, "music": 35, "drama": 60}


def fee_of(row, minutes):
    """Return the fee of a broadcast in cents."""
    return FEES.get(row["genre"], 100) * minutes


def minutes_of(row):
    return row["ends"] - row["starts"]
''',
    "waves/invoices.py": '''"""Invoices of broadcasts to stations: one charges a fee too high."""

from waves import tariff


def invoice(station, rows):
    """The invoice of a station, a line a broadcast with its fee."""
    lines = []
    for row in rows:
        fee = tariff.fee_of(row, tariff.minutes_of(row))
        lines.append((row["slot"], row["genre"], fee))
    return station, lines, sum(fee for _, _, fee in lines)


def render(station, lines, total):
    return "\\n".join(f"{slot} {genre} {fee}" for slot, genre, fee in lines) + f"\\n{total}"
''',
    "waves/store.py": '''"""Reads broadcasts."""


def broadcasts(con, station):
    return con.execute("select slot, genre, starts, ends from broadcast where station = ?",
                       (station,)).fetchall()
''',
}
RADIO_REPORT = """# Invoice of a station charges a fee too high for one broadcast

The invoice of station Nord lists broadcast B-2031 with a fee of 3000 instead of 1050. It is a music
broadcast like B-2030, which is invoiced correctly.

## Expected
Fee 1050.

## Observed
Fee 3000.
"""


def make_radio(path: Path) -> None:
    """One genre has a blank at its end."""
    con = sqlite3.connect(path)
    with con:
        con.execute(
            "create table broadcast (slot text primary key, station text, genre text,"
            " starts int, ends int)"
        )
        for n in range(300):
            genre = ("news", "music", "drama")[n % 3] + (" " if n == 31 else "")
            values = (f"B-{2000 + n}", ("Nord", "Sued")[n % 2], genre, n, n + 30)
            con.execute("insert into broadcast values (?, ?, ?, ?, ?)", values)
    con.close()


def played(
    folder: Path, files: dict[str, str], report: str, make: Callable[[Path], None]
) -> tuple[Played, Json]:
    make(folder / "data.db")
    found = play(folder, files, report, databases=(folder / "data.db",))
    (diagnosis,) = found.answers("diagnosis")
    return found, diagnosis


@pytest.fixture(scope="module")
def kennel(tmp_path_factory: pytest.TempPathFactory) -> tuple[Played, Json]:
    return played(tmp_path_factory.mktemp("kennel"), KENNEL, KENNEL_REPORT, make_kennel)


@pytest.fixture(scope="module")
def radio(tmp_path_factory: pytest.TempPathFactory) -> tuple[Played, Json]:
    return played(tmp_path_factory.mktemp("radio"), RADIO, RADIO_REPORT, make_radio)


def test_a_comparison_of_mixed_types_is_named_first(kennel: tuple[Played, Json]) -> None:
    first = kennel[1]["locations"][0]
    assert (first["path"], first["function"]) == ("kennel/db/stays.py", "heavier_than")


def test_its_caller_comes_second_and_says_why(kennel: tuple[Played, Json]) -> None:
    second = kennel[1]["locations"][1]
    assert (second["path"], second["function"]) == ("kennel/diet.py", "diet")
    assert "calls `heavier_than`" in second["why"]


def test_the_cause_quotes_the_line_and_ties_the_row_to_the_report(
    kennel: tuple[Played, Json],
) -> None:
    cause = kennel[1]["cause"]
    assert "`AND weight > ?`" in cause
    assert "K-4407" in cause
    assert "animal_id=7" in cause
    assert "'12 kg'" in cause


def test_a_look_up_that_a_blank_breaks_is_named_first(radio: tuple[Played, Json]) -> None:
    first = radio[1]["locations"][0]
    assert (first["path"], first["function"]) == ("waves/tariff.py", "fee_of")
    assert "'music '" in radio[1]["cause"]
    assert any("B-2031" in item["rows"] for item in radio[1]["data"])


def test_the_title_of_the_change_request_is_an_imperative(radio: tuple[Played, Json]) -> None:
    (change,) = radio[0].answers("change_request")
    assert change["title"] == "Ignore blanks at the ends of broadcast.genre in fee_of"
    assert change["changes"][0]["path"] == "waves/tariff.py"


@pytest.mark.parametrize("name", ["kennel", "radio"])
def test_sentences_are_ended_once_and_no_name_is_missing(
    name: str, request: pytest.FixtureRequest
) -> None:
    diagnosis: Json = request.getfixturevalue(name)[1]
    said = [diagnosis["cause"], diagnosis["symptom"], *(s["step"] for s in diagnosis["mechanism"])]
    assert not [text for text in said if ".”." in text or ".." in text or "  " in text]
    assert not [text for text in diagnosis["unknowns"] if "find_symbol" in text]


def test_what_is_said_of_one_function_is_not_said_of_its_neighbours(
    kennel: tuple[Played, Json],
) -> None:
    others = [x for x in kennel[1]["locations"] if x["function"] in ("of_animal", "note")]
    assert others
    assert not any("called from" in x["why"] or "decides by" in x["why"] for x in others)
