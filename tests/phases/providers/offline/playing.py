"""Two small cases, code only and with a database, played through the real run loop."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from phases.intake import IntakeRequest
from phases.opening import open_case
from phases.providers.offline import answer
from phases.providers.offline.provider import Offline
from projections.requests import restored_view
from tests.phases import scripting

Json = dict[str, Any]

LIBRARY = {
    "pressroom/__init__.py": '"""Newsletters."""\n',
    "pressroom/render.py": '''"""Renders newsletters."""

from pressroom.slugs import make_slug


def render_page(article):
    """Return an article as a page."""
    return f"<a id={make_slug(article.title)}>{article.title}</a>"


def render_footer(year):
    return f"<footer>{year}</footer>"
''',
    "pressroom/slugs.py": '''"""Slugs: the part of an address that names an article."""

import re


def make_slug(title):
    """Return the slug of a title."""
    words = re.findall(r"[a-z]+", title.lower())
    first = words[0]
    return "-".join([first, *words[1:]])


def unique_slug(title, taken):
    slug = make_slug(title)
    return slug if slug not in taken else slug + "-2"
''',
    "pressroom/mailer.py": '''"""Sends newsletters."""


def send(page, addresses):
    for address in addresses:
        print(address, page)
''',
    "tests/test_slugs.py": (
        'from pressroom.slugs import make_slug\n\n\ndef test_slug():\n    assert make_slug("A b")\n'
    ),
    "README.md": "# Pressroom\n\nSlugs of titles, titles of slugs.\n",
}
LIBRARY_REPORT = """# Page of an article whose title has only digits cannot be rendered

The newsletter of an article called "2024" stops. `make_slug` should give some slug for any title.

## Expected
The page is rendered, with a slug such as `2024`.

## Observed
```
Traceback (most recent call last):
  File "/opt/site/run.py", line 4, in <module>
    render_page(article)
  File "/opt/site/lib/site-packages/pressroom/render.py", line 8, in render_page
    return f"<a id={make_slug(article.title)}>{article.title}</a>"
  File "/opt/site/lib/site-packages/pressroom/slugs.py", line 9, in make_slug
    first = words[0]
IndexError: list index out of range
```

Versions: pressroom 1.2.0, Python 3.11.
"""

DEPOT = {
    "depot/__init__.py": '"""A depot."""\n',
    "depot/stock.py": '''"""What is in stock."""

STOCK = """
    select b.id, b.label, sum(m.pieces) as pieces
      from bin b join movement m on m.label = b.label
     where b.hall = ?
     group by b.id
"""


def in_stock(connection, hall):
    return connection.execute(STOCK, (hall,)).fetchall()
''',
    "depot/moves.py": '''"""Movements between bins."""


def book(connection, hall, label, pieces):
    connection.execute("insert into movement values (null, ?, ?, ?)", (hall, label, pieces))
''',
    "depot/labels.py": '''"""Prints the labels of bins."""


def print_label(label):
    print("label of bin", label)
''',
}
DEPOT_REPORT = """# Bin B-0077 shows pieces that are not there

The stock list of hall 1 shows 12 pieces in bin B-0077, but the bin is empty. Other bins are right.

## Expected
The stock of bin B-0077 in hall 1 is zero.

No error is shown.
"""
DEPOT_LOG = "".join(
    f"2024-03-0{1 + n % 9} 08:{n % 60:02}:00 INFO depot.moves: booked B-{n:04} 5\n"
    for n in range(1, 200)
)


class Recorder(Offline):
    """The analyst, with what it was asked and what it answered kept."""

    def __init__(self) -> None:
        self.asked: list[Json] = []
        self.answered: list[Json] = []

    def ask(self, document: bytes, sending: Any) -> Any:
        self.asked.append(json.loads(document))
        received = super().ask(document, sending)
        self.answered.append(json.loads(received.body))
        return received


class Played:
    """A case from intake to change request."""

    def __init__(self, recorder: Recorder, path: Path) -> None:
        self.recorder = recorder
        self.path = path

    def documents(self, phase: str) -> list[Json]:
        """Return the request documents of a phase."""
        return [d for d in self.recorder.asked if _phase(d) == phase]

    def answers(self, phase: str) -> list[Json]:
        pairs = zip(self.recorder.asked, self.recorder.answered, strict=True)
        return [a for d, a in pairs if _phase(d) == phase]


def _phase(document: Json) -> str:
    return scripting.prompts.card(document["protocol"]).phase


def play(folder: Path, files: dict[str, str], report: str, **more: Any) -> Played:
    """Take a case in and run it to its end."""
    for name, text in files.items():
        path = folder / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "report.md").write_text(report)
    request = IntakeRequest(report=folder / "report.md", source=str(folder / "source"), **more)
    path = folder / "a.case"
    open_case(path, request, program="tests", sources=scripting.ticking())
    recorder = Recorder()
    scripting.run(path, recorder)
    return Played(recorder, path)


def play_library(folder: Path) -> Played:
    """Play the case with code only."""
    return play(folder, LIBRARY, LIBRARY_REPORT)


def play_depot(folder: Path, report: str = DEPOT_REPORT) -> Played:
    """Play the case whose cause shows in the database only."""
    folder.mkdir(parents=True, exist_ok=True)
    make_depot(folder / "depot.db")
    (folder / "depot.log").write_text(DEPOT_LOG)
    more = {"logs": (folder / "depot.log",), "databases": (folder / "depot.db",)}
    return play(folder, DEPOT, report, **more)


def make_depot(path: Path) -> None:
    """Labels are unique within a hall only; one is used in two halls."""
    connection = sqlite3.connect(path)
    with connection:
        connection.executescript(
            "create table bin (id integer primary key, hall int, label text, unique (hall, label));"
            "create table movement (id integer primary key, hall int, label text, pieces int)"
        )
        for number in range(1, 121):
            hall = 1 + number % 2
            label = f"B-{number:04}"
            connection.execute("insert into bin values (?, ?, ?)", (number, hall, label))
            values = (number, hall, label, 5)
            connection.execute("insert into movement values (?, ?, ?, ?)", values)
        connection.execute("insert into bin values (200, 1, 'B-0077'), (201, 1, 'B-0078x')")
        connection.execute("update bin set hall = 2 where id = 77")
        connection.execute("update movement set hall = 2, pieces = 12 where id = 77")
    connection.close()


def changed(document: Json, change: Callable[[Json], None]) -> Json:
    """Return a copy of a request document with its view, written plainly, changed."""
    copy: Json = json.loads(json.dumps(document))
    view: Json = json.loads(json.dumps(restored_view(copy)))
    change(view)
    copy["messages"][0]["content"] = view
    return copy


def again(document: Json) -> Json:
    """Answer a copy of a document."""
    return answer(json.loads(json.dumps(document)))
