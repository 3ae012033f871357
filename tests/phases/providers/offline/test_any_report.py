"""Whatever a report or a log says, the analyst answers, and its answer has the schema's form."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import prompts
from phases.phase import find
from phases.providers.offline import answer
from tests.phases.providers.offline.playing import Json, Played, changed

PIECES = (
    "Traceback (most recent call last):",
    '  File "/srv/app/x.py", line 3, in <module>',
    '  File "/opt/site/lib/site-packages/pressroom/slugs.py", line 9, in make_slug',
    '  File "<string>", line 0',
    "ImportError: cannot import name 'a' from 'b.c' (unknown location)",
    "ModuleNotFoundError: No module named 'pressroom.slugs'",
    "ImportError: DLL load failed",
    "KeyError: ''",
    "ValueError",
    "    at async f (file:///x/y.mjs:9999999999:1)",
    "    at Object.<anonymous> (/a/b.js:1:2)",
    "Fatal Python error: Segmentation fault",
    "Current thread 0x0000 (most recent call first):",
    "During handling of the above exception, another exception occurred:",
    "caused by: java.lang.NullPointerException",
    "goroutine 1 [running]:",
    '`lang="x"` `--opt=` `a.b.c()` `make_slug(…)`',
    "2024-13-45T99:99:99 ERROR depot.stock: K-1118 2024-00417 0,00 -0.0 1e999",
    "# ",
    "## Expected",
    "```",
    ">>> f(",
    "| a | b |\n|---|---|",
    "It works with `make_slug`, not with book().",
    "\u202e\ufeff\x07 (((((((( [[[[ {{{{ ****",
)
TEXT = st.lists(st.sampled_from(PIECES) | st.text(max_size=30), max_size=8).map("\n".join)
KEPT = st.none()
"""An observation that stays as it is."""


def telling(document: Json, texts: list[str | None]) -> Json:
    """Return a request document whose observations say something else."""

    def change(view: Json) -> None:
        for item, text in zip(view["sources"]["observations"], texts, strict=False):
            item["text"] = item["text"] if text is None else text

    return changed(document, change)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_every_phase_answers_in_the_form_of_its_schema(
    data: Any, library: Played, depot: Played
) -> None:
    played = data.draw(st.sampled_from([library, depot]))
    document = data.draw(st.sampled_from(played.recorder.asked))
    texts = data.draw(st.lists(KEPT | TEXT, max_size=8))
    given_back = answer(telling(document, texts))
    card = prompts.card(document["protocol"])
    find(card.phase).answers[card.schema].model_validate(given_back)
