"""Fresh defects: slips in functions of published packages, with reports as users would file them.

    .venv/bin/python -P tests/benchmarks/defects.py make DIR [--seed 1] [--each 16] [--only NAME…]
    .venv/bin/caseledger evaluate DIR -o RESULT.json --keep LEDGERS
    .venv/bin/python -P tests/benchmarks/defects.py table DIR RESULT.json

`make` fetches the packages of defects.toml with pip, by hash (wheels: nothing of them runs), and
writes evaluation folders. Their public functions are called, by examples of their own docstrings
and by generated calls; functions that ran get a slip (mutations.py); it is kept when a call then
gives another result, and most other calls do not. The report says what was called, what came and
what was expected; it never names the faulty function unless the user called it, or a traceback
shows it. The same seed gives the same defects. `table` divides a result by how much the report
gives away.
"""

from __future__ import annotations

import argparse
import ast
import doctest
import hashlib
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.benchmarks.mutations import Mutation, mutations

HERE = Path(__file__).parent
CHILD = HERE / "defect_child.py"
DATA = HERE / "defects.toml"
INSTALLED = "/srv/app/venv/lib/python3.11/site-packages"
"""Where users have packages; the place of our copy is told as this."""

SECONDS = 2
"""CPU seconds of one probe; most take milliseconds."""

STUCK = 600
"""Seconds after which a process that hangs where no signal reaches it is given up."""

PROBES = 200
"""Probes of a package, at most; each is run a few times."""

TRIED = 12
"""Probes that may show a slip."""

OTHERS = 10
"""Other probes, of which half must still give what they gave: a release that breaks everything is
found before it is published.
"""

LONGEST = 1_500
"""Characters of an output that a report quotes."""

_UNSTABLE = re.compile(r" at 0x[0-9a-f]{6,}|\bid=\d{9,}")
_UNUSABLE = ("NameError", "ImportError", "ModuleNotFoundError", "SyntaxError", "FileNotFoundError",
             "OSError", "Hang", "SystemExit", "MemoryError")  # fmt: skip
"""Errors of an original probe that say that it cannot be run here."""


@dataclass(frozen=True)
class Probe:
    """A short session. `own`: the function whose docstring it is from."""

    setup: str
    steps: tuple[str, ...]
    own: str = ""

    def job(self) -> dict[str, Any]:
        return {"setup": self.setup, "steps": self.steps}

    def names(self, function: str) -> bool:
        """Tell whether the session names a function, by its last name."""
        last = function.rpartition(".")[2]
        last = function.split(".")[-2] if last == "__init__" and "." in function else last
        return bool(re.search(rf"(?<!\w){re.escape(last)}(?!\w)", "\n".join(self.steps)))


@dataclass(frozen=True)
class Outcome:
    """What a probe gave. `error`: type, message, trace and frames, or None; `entered`: (path, first
    line) of each function that ran.
    """

    outputs: tuple[str, ...]
    error: dict[str, Any] | None
    entered: frozenset[tuple[str, int]] = field(default=frozenset(), compare=False)

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two outcomes equal: outputs, and type and message of the error."""
        error = self.error and (self.error["type"], self.error["message"])
        return self.outputs, error

    @property
    def is_stable(self) -> bool:
        text = "".join(self.outputs) + (self.error["message"] if self.error else "")
        return not _UNSTABLE.search(text)


@dataclass(frozen=True)
class Defect:
    """A slip that shows: by this probe, in this step, with these outcomes."""

    path: str
    mutation: Mutation
    probe: Probe
    step: int
    before: Outcome
    after: Outcome
    unaffected: Probe | None


class Package:
    """An unpacked package and what running its probes gives."""

    def __init__(self, row: dict[str, Any], root: Path, also: Sequence[Path]) -> None:
        self.row, self.root = row, root
        self.paths = [root, *also]
        self.code = root / row["code"]

    def files(self) -> list[Path]:
        found = sorted(self.code.rglob("*.py"))
        return [path for path in found if "tests" not in path.relative_to(self.root).parts]

    def run(
        self, probes: Sequence[Probe], *, overlay: tuple[Path, str] | None = None,
        trace: bool = False,
    ) -> list[Outcome]:  # fmt: skip
        """Return what probes give, fewer if the process came to an end before."""
        job = {
            "paths": [str(path) for path in self.paths],
            "overlay": overlay and {"path": str(overlay[0]), "text": overlay[1]},
            "trace": str(self.code) if trace else "",
            "probes": [probe.job() for probe in probes],
            "root": str(self.root), "shown": INSTALLED,
            "seconds": SECONDS * (20 if trace else 1),
        }  # fmt: skip
        command = [sys.executable, "-P", "-S", "-W", "ignore", str(CHILD)]
        try:
            out = subprocess.run(
                command, input=json.dumps(job).encode(), capture_output=True, cwd=self.root.parent,
                env={"PYTHONHASHSEED": "0", "PATH": os.defpath, "LANG": "C.UTF-8"},
                timeout=STUCK, check=False,
            ).stdout  # fmt: skip
        except subprocess.TimeoutExpired as error:
            out = error.stdout or b""
        return [_outcome(json.loads(line)) for line in out.splitlines() if line.endswith(b"}")]


def _outcome(found: dict[str, Any]) -> Outcome:
    entered = frozenset((path, line) for path, line in found["entered"])
    return Outcome(tuple(found["outputs"]), found["error"], entered)


# Packages --------------------------------------------------------------------------------------


def fetched(row: dict[str, Any], cache: Path) -> Path:
    """Return a pinned wheel, downloaded with pip by hash if it is not there."""
    wanted = cache / row["file"]
    if not wanted.exists():
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            pin = Path(folder) / "pin.txt"
            pin.write_text(f"{row['name']}=={row['version']} --hash=sha256:{row['sha256']}\n")
            command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--require-hashes", "--only-binary", ":all:", "-r", str(pin), "-d", folder]
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=300)
            (Path(folder) / row["file"]).replace(wanted)
    if hashlib.sha256(wanted.read_bytes()).hexdigest() != row["sha256"]:
        raise SystemExit(f"{wanted} is not the file that {DATA.name} pins; delete it")
    return wanted


def unpacked(row: dict[str, Any], cache: Path, work: Path) -> Path:
    """Return the folder a wheel was unpacked to, without its metadata."""
    root = work / f"{row['name']}-{row['version']}"
    if not root.exists():
        with zipfile.ZipFile(fetched(row, cache)) as archive:
            names = [n for n in archive.namelist() if ".dist-info/" not in n and ".." not in n]
            archive.extractall(root, names)
    return root


# Probes ----------------------------------------------------------------------------------------


def probes_of(package: Package, pick: random.Random) -> list[Probe]:
    """Return the sessions that are tried on a package, at most PROBES."""
    generated = [p for row in package.row.get("probe", ()) for p in _generated(row, pick)]
    examples = list(_examples(package)) if package.row.get("doctests") else []
    pick.shuffle(generated)
    pick.shuffle(examples)
    both = [p for pair in itertools.zip_longest(examples, generated) for p in pair if p]
    return list(dict.fromkeys(both))[:PROBES]


def _generated(row: dict[str, Any], pick: random.Random) -> Iterator[Probe]:
    for _ in range(PROBES):
        call = row["call"]
        for name, slot in row["slots"].items():
            if "values" in slot:
                call = call.replace("{" + name + "}", pick.choice(slot["values"]))
        for name, slot in row["slots"].items():
            if "pieces" in slot:
                chosen = pick.sample(slot["pieces"], pick.randint(1, slot["most"]))
                call = call.replace("{" + name + "}", repr(slot["join"].join(chosen)))
        for name, slot in row["slots"].items():  # values may hold slots of values
            if "values" in slot and "{" + name + "}" in call:
                call = call.replace("{" + name + "}", pick.choice(slot["values"]))
        yield Probe(row["setup"], (call,))


def _examples(package: Package) -> Iterator[Probe]:
    parser = doctest.DocTestParser()
    for path in package.files():
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        module = ".".join(path.relative_to(package.root).with_suffix("").parts)
        module = module.removesuffix(".__init__")
        defined = _defined(tree)
        for name, docstring in _docstrings(tree):
            try:
                steps = [e.source.rstrip("\n") for e in parser.get_examples(docstring)]
            except ValueError:
                continue
            if steps and len(steps) <= 12:
                yield Probe(_setup(package, module, defined, steps), tuple(steps), name)


def _docstrings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    yield "", ast.get_docstring(tree) or ""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, ast.get_docstring(node) or ""


def _defined(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    return {name for name in found if not name.startswith("_")}


def _setup(package: Package, module: str, defined: set[str], steps: list[str]) -> str:
    """Return the imports of a session: the package's usual one, and names of its module."""
    text = "\n".join(steps)
    header = package.row.get("header", "")
    used = sorted(name for name in defined if re.search(rf"(?<![\w.]){name}(?!\w)", text))
    imported = re.search(rf"\bimport\b.*\b({'|'.join(used)})\b", text) if used else None
    own = f"from {module} import {', '.join(used)}" if used and not header and not imported else ""
    return "\n".join(line for line in (header, own) if line)


# Defects ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """Probes of a package that run, and what they give."""

    probes: tuple[Probe, ...]
    outcomes: tuple[Outcome, ...]

    def at(self, path: Path, line: int) -> list[int]:
        """Return the probes that enter the function that begins at a line."""
        return [n for n, o in enumerate(self.outcomes) if (str(path), line) in o.entered]


def known(package: Package, probes: list[Probe]) -> Known:
    """Run probes twice; keep those that can be run and give the same again."""
    traced = package.run(probes, trace=True)
    again = package.run(probes)
    kept = [
        (probe, first)
        for probe, first, second in zip(probes, traced, again, strict=False)
        if first.key == second.key and first.is_stable
        and (first.error is None or first.error["type"] not in _UNUSABLE)
        and (first.error is None or first.error["functions"])
    ]  # fmt: skip
    return Known(tuple(p for p, _ in kept), tuple(o for _, o in kept))


def defects(package: Package, wanted: int, pick: random.Random) -> Iterator[Defect]:
    """Yield defects of a package: one a function, kinds and files in turn, the least told first."""
    known_ = known(package, probes_of(package, pick))
    texts = {path: path.read_text("utf-8") for path in package.files()}
    found, tried = 0, 0
    for path, mutation in _candidates(package, known_, texts, pick):
        if found >= wanted or tried >= 40 * wanted:
            return
        text = mutation.applied(texts[path])
        if text is None:
            continue
        tried += 1
        if defect := _shown(package, known_, path, mutation, text, pick):
            found += 1
            yield defect


def _candidates(
    package: Package, known_: Known, texts: dict[Path, str], pick: random.Random
) -> Iterator[tuple[Path, Mutation]]:
    """Yield slips in functions that probes enter, files and functions in turn."""
    entered = {place for outcome in known_.outcomes for place in outcome.entered}
    groups: dict[tuple[Path, str], list[Mutation]] = defaultdict(list)
    for path, text in texts.items():
        if any(str(path) == name for name, _ in entered):
            for mutation in mutations(text):
                if (str(path), mutation.first) in entered:
                    groups[path, mutation.function].append(mutation)
    order = sorted(groups, key=str)
    pick.shuffle(order)
    order = _in_turns(order)
    for key in order:
        by_kind: dict[str, list[Mutation]] = defaultdict(list)
        for mutation in groups[key]:
            by_kind[mutation.kind].append(mutation)
        kinds = sorted(by_kind)
        pick.shuffle(kinds)
        for kind in kinds[:3]:
            yield key[0], pick.choice(by_kind[kind])


def _in_turns(order: list[tuple[Path, str]]) -> list[tuple[Path, str]]:
    """Return functions so that files take turns."""
    by_file: dict[Path, list[tuple[Path, str]]] = defaultdict(list)
    for key in order:
        by_file[key[0]].append(key)
    rounds = itertools.zip_longest(*by_file.values())
    return [key for round_ in rounds for key in round_ if key is not None]


def _shown(
    package: Package, known_: Known, path: Path, mutation: Mutation, text: str,
    pick: random.Random,
) -> Defect | None:  # fmt: skip
    """Return a slip with the probe that shows it and tells least; None if none does."""
    there = known_.at(path, mutation.first)
    pick.shuffle(there)
    there.sort(key=lambda n: _tells(known_.probes[n], path, mutation))
    chosen = there[:TRIED]
    rest = [n for n in range(len(known_.probes)) if n not in chosen]
    others = pick.sample(rest, min(OTHERS, len(rest)))
    numbers = [*others, *chosen]
    outcomes = package.run([known_.probes[n] for n in numbers], overlay=(path, text))
    after = dict(zip(numbers, outcomes, strict=False))  # fewer, if one hangs or dies
    same = [n for n in others if n in after and after[n].key == known_.outcomes[n].key]
    if 2 * len(same) < len(others):
        return None
    for n in [n for n in chosen if n in after]:
        step = _difference(known_.outcomes[n], after[n])
        if (
            step is not None
            and after[n].is_stable
            and _is_tellable(known_.outcomes[n], after[n], step)
        ):
            near = [m for m in same if _alike(known_.probes[m], known_.probes[n])]
            fine = known_.probes[near[0]] if near else None
            return Defect(
                path.relative_to(package.root).as_posix(), mutation, known_.probes[n], step,
                known_.outcomes[n], after[n], fine,
            )  # fmt: skip
    return None


def _tells(probe: Probe, path: Path, mutation: Mutation) -> int:
    """Return how much a session gives away: 0 nothing, 1 the module's name, 2 the function's."""
    if probe.names(mutation.function):
        return 2
    said = f"{probe.setup}\n" + "\n".join(probe.steps)
    stem = path.parent.name if path.stem == "__init__" else path.stem
    return 1 if re.search(rf"(?<!\w){re.escape(stem)}(?!\w)", said) else 0


def _difference(before: Outcome, after: Outcome) -> int | None:
    """Return the step in which outcomes differ first; None if they are equal."""
    if before.key == after.key:
        return None
    pairs = enumerate(zip(before.outputs, after.outputs, strict=False))
    return next(
        (n for n, (one, two) in pairs if one != two), min(len(before.outputs), len(after.outputs))
    )


def _is_tellable(before: Outcome, after: Outcome, step: int) -> bool:
    """Tell whether a report can quote both outcomes of a step."""
    texts = [o.outputs[step] for o in (before, after) if step < len(o.outputs)]
    return all(len(text) <= LONGEST for text in texts) and all(
        len(o.error["trace"]) <= 4 * LONGEST for o in (before, after) if o.error
    )


def _alike(one: Probe, two: Probe) -> bool:
    return one.setup == two.setup and one.steps[0].split("(")[0] == two.steps[0].split("(")[0]


# Reports ---------------------------------------------------------------------------------------


Heads = tuple[str, str]
HEADS: tuple[Heads, ...] = (
    ("What comes:", "Expected:"), ("Observed:", "Expected:"), ("We get:", "It should be:"),
    ("## Observed", "## Expected"), ("### Actual behaviour", "### Expected behaviour"),
)  # fmt: skip
"""How reports head what came and what should have."""


def report(defect: Defect, package: Package, pick: random.Random) -> str:
    """Return what the user of a package would file: what was called, what came, what should."""
    called = _called(defect)
    failed = defect.after.error is not None and defect.step >= len(defect.after.outputs)
    parts = [f"# {_title(defect, called, failed, pick)}"]
    version = f"{package.row['name']} {package.row['version']}"
    parts.append(
        pick.choice([
            f"We use {version} with Python 3.11 on Linux.",
            f"Seen with {version}, Python 3.11. The release before does not have this.",
            f"After the update to {version} a nightly job of ours began to differ.",
        ])
    )  # fmt: skip
    parts.append(_fenced(_session(defect), "python"))
    heads = pick.choice(HEADS)
    parts += _failure(defect, heads) if failed else _value(defect, heads)
    if defect.unaffected is not None and len(defect.unaffected.steps[-1]) < 300:
        fine = defect.unaffected.steps[-1].replace("\n", " ")
        parts.append(
            pick.choice(["This works as before: ", "Not affected: ", "For comparison, fine: "])
            + f"`{fine}`"
        )
    return "\n\n".join(parts) + "\n"


def _called(defect: Defect) -> str:
    """Return the name of what the deciding step calls, as the user wrote it."""
    step = defect.probe.steps[min(defect.step, len(defect.probe.steps) - 1)]
    try:
        calls = [n for n in ast.walk(ast.parse(step)) if isinstance(n, ast.Call)]
    except SyntaxError:
        calls = []
    names = [ast.unparse(c.func) for c in calls if isinstance(c.func, ast.Name | ast.Attribute)]
    own = [n for n in names if n not in ("print", "sorted", "list", "str", "set", "dict", "type")]
    plain = [name for name in own if re.fullmatch(r"[\w.]+", name)]
    return plain[0] if plain else "the call below"


def _title(defect: Defect, called: str, failed: bool, pick: random.Random) -> str:
    if failed:
        assert defect.after.error is not None
        kind = defect.after.error["type"]
        if kind == "Hang":
            return f"{called} does not come back"
        first = defect.after.error["message"].split("\n")[0][:80]
        return pick.choice([f"{called} fails with {kind}", f"{kind} from {called}: {first}"])
    if defect.before.error is not None and defect.step >= len(defect.before.outputs):
        return f"{called} accepts what it should refuse"
    return pick.choice([
        f"{called} gives a wrong result", f"Wrong output of {called}",
        f"Result of {called} is not what it was",
    ])  # fmt: skip


def _session(defect: Defect) -> str:
    shown = [f">>> {line}" for line in defect.probe.setup.split("\n") if line]
    for step in defect.probe.steps[: defect.step + 1]:
        first, *rest = step.split("\n")
        shown += [f">>> {first}", *(f"... {line}" for line in rest)]
    return "\n".join(shown)


def _failure(defect: Defect, heads: Heads) -> list[str]:
    error = defect.after.error
    assert error is not None
    shown = "It was stopped after some minutes with one core busy."
    if error["type"] != "Hang":
        shown = _fenced(error["trace"].rstrip())
    return [heads[0], shown, *_expected(defect, heads)]


def _expected(defect: Defect, heads: Heads) -> list[str]:
    if defect.step < len(defect.before.outputs):
        output = defect.before.outputs[defect.step].rstrip("\n")
        return [heads[1], _fenced(output) if output else "No error."]
    assert defect.before.error is not None
    error = defect.before.error
    said = f", {error['message'][:300]}" if error["message"] else ""
    return [heads[1], f"{error['type']}{said}"]


def _value(defect: Defect, heads: Heads) -> list[str]:
    output = defect.after.outputs[defect.step].rstrip("\n")
    parts = [heads[0], _fenced(output) if output else "(nothing is printed)"]
    parts += _expected(defect, heads)
    if first := _first_difference(defect):
        parts.append(first)
    return parts


def _first_difference(defect: Defect) -> str:
    if defect.step >= len(defect.before.outputs):
        return ""
    pairs = zip(*(o.outputs[defect.step].split("\n") for o in (defect.before, defect.after)),
                strict=False)  # fmt: skip
    lines = [(old, new) for old, new in pairs if old != new]
    if not lines or "\n" not in defect.after.outputs[defect.step].rstrip("\n"):
        return ""
    old, new = (text.strip()[:160] for text in lines[0])
    return f"The first line that differs: `{new}` instead of `{old}`."


def _fenced(text: str, language: str = "") -> str:
    fence = "````" if "```" in text else "```"
    return f"{fence}{language}\n{text}\n{fence}"


# Folders ---------------------------------------------------------------------------------------


def write_case(folder: Path, package: Package, defect: Defect, pick: random.Random) -> None:
    """Write a defect as an evaluation folder; unchanged files are linked, not copied."""
    source = folder / "source"
    shutil.copytree(package.root, source, copy_function=_linked,
                    ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    original = (package.root / defect.path).read_text("utf-8")
    text = defect.mutation.applied(original)
    assert text is not None
    (source / defect.path).unlink()
    (source / defect.path).write_text(text, "utf-8")
    (folder / "report.md").write_text(report(defect, package, pick), "utf-8")
    truth = {
        "files": [defect.path],
        "functions": [f"{defect.path}::{defect.mutation.function}"],
        "explanation": f"{defect.mutation.kind}, line {defect.mutation.line}: "
        + defect.mutation.told(original),
        "kind": defect.mutation.kind,
        "told": told(defect, package),
    }
    (folder / "truth.json").write_text(json.dumps(truth, indent=1, ensure_ascii=False) + "\n")


def told(defect: Defect, package: Package) -> str:
    """Return how much the report gives away: function, traceback (the faulty function is in it),
    module, or nothing.
    """
    path = package.root / defect.path
    tells = _tells(defect.probe, path, defect.mutation)
    frames = defect.after.error["functions"] if defect.after.error else []
    last = defect.mutation.function.rpartition(".")[2]
    if tells == 2:
        return "function"
    if any(name == str(path) and function == last for name, _, function in frames):
        return "traceback"
    return "module" if tells == 1 else "nothing"


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def make(target: Path, seed: int, each: int, only: list[str], cache: Path) -> int:
    """Write evaluation folders; return how many."""
    data = tomllib.loads(DATA.read_text("utf-8"))
    required = {row["name"]: row for row in data["requirement"]}
    total = 0
    target.mkdir(parents=True, exist_ok=True)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="defects-") as work:
        for row in data["package"]:
            if only and row["name"] not in only:
                continue
            also = [unpacked(required[name], cache, Path(work)) for name in row.get("requires", ())]
            package = Package(row, unpacked(row, cache, Path(work)), also)
            pick = random.Random(f"{seed} {row['name']}")
            count = 0
            for count, defect in enumerate(defects(package, each, pick), 1):
                name = f"{re.sub('[^a-z0-9]+', '-', row['name'].lower())}-{count:02}"
                write_case(target / name, package, defect, random.Random(f"{seed} {name}"))
            total += count
            print(f"{row['name']:<16} {count:>3} defects", flush=True)
    return total


# Results ---------------------------------------------------------------------------------------


def table(folder: Path, result: Path) -> list[str]:
    """Return a result of `evaluate` by what the report gives away, by package and by kind."""
    rows = json.loads(result.read_text("utf-8"))["cases"]
    for row in rows:
        row.update(json.loads((folder / row["case"] / "truth.json").read_text("utf-8")))
        row["package"] = row["case"].rpartition("-")[0]
    lines = []
    for title, name in (("the report tells of the fault", "told"), ("package", "package"),
                        ("slip", "kind")):  # fmt: skip
        groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            groups[row[name]].append(row)
        lines += [f"| {title} | cases | Acc@1 | Acc@3 | Acc@5 | function first | among five |"]
        lines += ["| --- | --- | --- | --- | --- | --- | --- |"]
        lines += [_line(key, groups[key]) for key in sorted(groups, key=lambda k: -len(groups[k]))]
        lines += [_line("all", rows), ""]
    return lines


def _line(name: str, rows: list[dict[str, Any]]) -> str:
    def share(key: str, most: int) -> str:
        good = sum(row[key] is not None and row[key] <= most for row in rows)
        return f"{100 * good / len(rows):.0f} %"

    cells = [name, str(len(rows)), share("rank", 1), share("rank", 3), share("rank", 5)]
    return f"| {' | '.join([*cells, share('function_rank', 1), share('function_rank', 5)])} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("folder", type=Path)
    making.add_argument("--seed", type=int, default=1)
    making.add_argument("--each", type=int, default=16)
    making.add_argument("--only", nargs="*", default=[])
    making.add_argument("--cache", type=Path, default=Path.home() / ".cache/caseledger-defects")
    showing = commands.add_parser("table")
    showing.add_argument("folder", type=Path)
    showing.add_argument("result", type=Path)
    asked = parser.parse_args()
    if asked.command == "table":
        print("\n".join(table(asked.folder, asked.result)))
        return 0
    print(make(asked.folder, asked.seed, asked.each, asked.only, asked.cache), "defects")
    return 0


if __name__ == "__main__":
    sys.exit(main())
