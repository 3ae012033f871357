"""Measures consolidated_v1 against the goals of design page 4, on the committed corpus.

    .venv/bin/python -P tests/benchmarks/bench_encodings.py [--peers PYTHON] [--markdown FILE]

Both sides of a ratio are measured in one run, in turns, so that a busy machine slows both; times
are least ones of CPU time. Tokens are estimated (estimate_v1) unless said. PYTHON, the interpreter
of a venv with other formats, `sentencepiece` and the vocabulary of tools/vocabulary.py, adds
peers and real counts. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ledger.canonical import from_bytes, same, to_bytes
from projections.encodings.consolidated_v1 import encode, restore
from projections.tokens import ESTIMATOR, estimated_tokens
from tests.benchmarks.adversarial import FAMILIES
from tests.benchmarks.corpus.build import FOLDER, Document, load
from tests.projections.encodings.test_corpus import explanation

MACHINE = "2 cores, Linux, Python 3.11"
GOALS = {"raw": 55, "compact": 30, "tight": 22}
PHASE_GOAL = 12
PHASES = (
    "interpretation",
    "hypotheses",
    "investigation",
    "diagnosis_early",
    "diagnosis",
    "change_request",
)


class Text(NamedTuple):
    """A document, plain and as it was encoded."""

    document: Document
    plain: str
    encoded: str
    form: str


class Row(NamedTuple):
    """A row of a table: cells as they are printed."""

    cells: tuple[str, ...]


def texts() -> list[Text]:
    """Return the corpus, each document encoded and proved to come back."""
    out = []
    for document in load():
        encoded = encode(document.view)
        data = to_bytes(encoded.content)
        assert same(restore(from_bytes(data)), document.view), document.name
        out.append(Text(document, to_bytes(document.view).decode(), data.decode(), encoded.form))
    return out


def reduction(items: Sequence[Text], count: Callable[[str], int], extra: int) -> float:
    """Return by how many per cent `count` is smaller, `extra` added to each encoded text."""
    before = sum(count(item.plain) for item in items)
    after = sum(count(item.encoded) + extra for item in items)
    return 100 * (1 - after / before)


def reductions(items: Sequence[Text]) -> Iterator[Row]:
    """Yield the reduction of each phase and of all, by density, net of the explanation."""
    cost, length = estimated_tokens(explanation()), len(explanation())
    for phase in (*PHASES, "all"):
        cells = [phase]
        for density, goal in GOALS.items():
            some = [
                item
                for item in items
                if item.document.density == density and phase in (item.document.phase, "all")
            ]
            tokens = reduction(some, estimated_tokens, cost)
            wanted = goal if phase == "all" else PHASE_GOAL
            met = "yes" if tokens >= wanted else "**no**"
            cells.append(f"{tokens:.1f} (≥ {wanted}: {met})")
            cells.append(f"{reduction(some, len, length):.1f}")
        yield Row(tuple(cells))


def in_turns(rounds: int, *sides: Callable[[], object]) -> list[float]:
    """Return the least CPU seconds of each side, run in turns."""
    least = [math.inf] * len(sides)
    for _ in range(rounds):
        for number, side in enumerate(sides):
            began = time.process_time()
            side()
            least[number] = min(least[number], time.process_time() - began)
    return least


def speed(name: str, view: Any, rounds: int) -> Row:
    """Return encoding and decoding as multiples of the standard library's json."""
    text = json.dumps(view)
    content = from_bytes(to_bytes(encode(view).content))
    gc.collect()
    gc.freeze()  # what the benchmark itself holds is not to be looked through again and again
    dumps, encoding, loads, decoding = in_turns(
        rounds,
        lambda: json.dumps(view),
        lambda: encode(view),
        lambda: json.loads(text),
        lambda: restore(content),
    )
    gc.unfreeze()
    factors = encoding / dumps, decoding / loads
    return Row(
        (
            name,
            f"{len(text):,}",
            f"{1000 * encoding:.1f} ms = {factors[0]:.1f}×",
            "yes" if factors[0] <= 12 else "**no**",
            f"{1000 * decoding:.1f} ms = {factors[1]:.1f}×",
            "yes" if factors[1] <= 4 else "**no**",
            f"{len(text) / encoding / 1e6:.1f} MB/s",
        )
    )


def of_size(documents: Sequence[Document], density: str, characters: int) -> Any:
    """Return a view of about a size: one document, or distinct ones of a density in a list."""
    views = [d.view for d in documents if d.density == density]
    if characters < 200_000:
        return min(views, key=lambda view: abs(len(json.dumps(view)) - characters))
    out: list[Any] = []
    while len(json.dumps(out)) < characters:
        out += [_renamed(view, number) for number, view in enumerate(views, len(out))]
    return out


def _renamed(node: Any, copy: int) -> Any:
    """Return a view with other names and numbers, so that copies of a view do not fold into one."""
    if isinstance(node, dict):
        return {key: _renamed(value, copy) for key, value in node.items()}
    if isinstance(node, list):
        return [_renamed(value, copy) for value in node]
    if isinstance(node, str):
        return f"{node}~{copy}" if len(node) > 8 else node
    return node + 1000 * copy if type(node) is int and node > 9 else node


def exponent(sizes: Sequence[int], make: Callable[[int], Any]) -> tuple[float, float]:
    """Return the growth exponents of encoding and decoding from the least to the largest size."""
    points = []
    for size in sizes:
        view = make(size)
        content = encode(view).content
        sides = partial(encode, view), partial(restore, content)
        encoding, decoding = in_turns(3, *sides)
        points.append((len(json.dumps(view)), encoding, decoding))
    (n0, e0, d0), (n1, e1, d1) = points[0], points[-1]
    return math.log(e1 / e0) / math.log(n1 / n0), math.log(d1 / d0) / math.log(n1 / n0)


def growth(documents: Sequence[Document]) -> Iterator[Row]:
    """Yield growth exponents of phase views and of the adversarial families."""
    phase_views = exponent(
        (80_000, 1_300_000, 5_000_000), lambda n: of_size(documents, "compact", n)
    )
    yield _growth_row("phase views, 80 KB to 5 MB", phase_views, 1.10)
    for name, make in FAMILIES.items():
        yield _growth_row(name, exponent((16_000, 128_000), make), 1.2)


def _growth_row(name: str, exponents: tuple[float, float], goal: float) -> Row:
    met = "yes" if max(exponents) <= goal else "**no**"
    return Row((name, f"{exponents[0]:.2f}", f"{exponents[1]:.2f}", f"≤ {goal}", met))


def peers(python: str, items: Sequence[Text]) -> tuple[list[Row], list[Row]]:
    """Return the rows of other formats, and of the estimator's error, by another interpreter."""
    texts_in = [
        {
            "name": i.document.name,
            "density": i.document.density,
            "plain": i.plain,
            "encoded": i.encoded,
        }
        for i in items
    ]
    script = Path(__file__).with_name("peers.py")
    done = subprocess.run(
        [python, "-P", script],
        input=json.dumps(texts_in),
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    base = found["figures"]["minified JSON"]
    rows = []
    for name, by_density in found["figures"].items():
        version = found["versions"].get(name, "")
        cells = [f"{name} {version}".strip()]
        for density in GOALS:
            figures = by_density[density]
            for what in ("tokens", "characters"):
                before = base[density][what]
                cells.append(f"{100 * (figures[what] / before - 1):+.1f}" if before else "–")
        exact = sum(f["exact"] for f in by_density.values())
        seconds = sum(f["seconds"] for f in by_density.values())
        cells.append(f"{exact}/{len(items)}")
        megabytes = sum(len(i.plain) for i in items) / 1e6
        own = name == "consolidated_v1"
        cells.append("above" if own else f"{megabytes / seconds:.1f}" if seconds else "–")
        rows.append(Row(tuple(cells)))
    return rows, estimator_rows(found, items)


def estimator_rows(found: dict[str, Any], items: Sequence[Text]) -> list[Row]:
    """Return estimated against real tokens, in sum by density."""
    if not found["real"]:
        return []
    rows = []
    for name, attribute in (("minified JSON", "plain"), ("consolidated_v1", "encoded")):
        for density in GOALS:
            some = [getattr(i, attribute) for i in items if i.document.density == density]
            real = found["figures"][name][density]["tokens"]
            estimated = sum(map(estimated_tokens, some))
            rows.append(
                Row(
                    (
                        name,
                        density,
                        f"{real:,}",
                        f"{estimated:,}",
                        f"{100 * (estimated / real - 1):+.1f}",
                    )
                )
            )
    return rows


def break_even(items: Sequence[Text]) -> str:
    """Return the size below which the explanation costs more than the encoding saves."""
    cost = estimated_tokens(explanation())
    by_size = sorted(
        (estimated_tokens(i.plain), estimated_tokens(i.plain) - estimated_tokens(i.encoded) - cost)
        for i in items
        if i.document.density != "raw"
    )
    saved = sum(gain for _, gain in by_size) / sum(size for size, _ in by_size)
    gross = saved + cost * len(by_size) / sum(size for size, _ in by_size)
    smallest, gain = by_size[0]
    return (
        f"The explanation is {len(explanation()):,} characters, {cost} estimated tokens. At the "
        f"mean rate of compact and tight views it is earned back from {cost / gross:,.0f} tokens "
        f"of plain view on; the smallest of these views has {smallest:,} and saves {gain:,} net."
    )


def table(head: Sequence[str], rows: Sequence[Row]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *(row.cells for row in rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def report(python: str | None) -> str:
    """Return the whole report as Markdown."""
    (corpus,) = FOLDER.glob("*.json.xz")
    documents = load()
    items = texts()
    columns = [c for density in GOALS for c in (f"{density}: tokens", "characters")]
    forms: dict[str, int] = defaultdict(int)
    for item in items:
        forms[item.form] += 1
    parts = [
        f"Corpus {corpus.name} ({len(items)} documents, all of them exact: "
        + ", ".join(f"{count} {form}" for form, count in sorted(forms.items()))
        + f"). Tokens: {ESTIMATOR}. {MACHINE}.",
        "Reduction in per cent against the minified plain view, the explanation counted once a "
        "document:\n\n" + table(["phase", *columns], list(reductions(items))),
        break_even(items),
        "Speed, against `json.dumps` and `json.loads` of the same view in the same run:\n\n"
        + table(
            ["view", "characters", "encode", "≤ 12×", "decode", "≤ 4×", "encode"],
            [
                speed(f"{density}, {name}", of_size(documents, density, size), rounds)
                for density in GOALS
                for name, size, rounds in (("80 KB", 80_000, 40), ("5 MB", 5_000_000, 3))
            ],
        ),
        "Growth exponents:\n\n"
        + table(["family", "encode", "decode", "goal", "met"], list(growth(documents))),
    ]
    if python:
        rows, estimates = peers(python, items)
        head = ["format", *columns, "exact", "MB/s"]
        parts.append(
            "Other formats, per cent against minified JSON, the explanation of no format counted; "
            "tokens are real Gemma 3 tokens. A document that a format cannot write counts as "
            "plain:\n\n" + table(head, rows)
        )
        parts.append(
            "The estimator against real tokens, sums:\n\n"
            + table(["text", "density", "real", "estimated", "error %"], estimates)
        )
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Print the report; write it to a file too if asked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter of a venv with peers")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    options = parser.parse_args()
    text = report(options.peers)
    print(text)
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
