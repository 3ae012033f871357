"""Runs probes of a package in a process of its own; started by defects.py, never by itself.

Gets one JSON document on stdin: `paths` (put in front of the import path), `overlay` ({path, text}:
a module's text in place of the file's, or null), `trace` (folder whose entered functions are
wanted, or ""), `probes` ([{setup, steps}]), `root` and `shown` (how installed paths are told),
`seconds` (CPU a probe may use). Gives one JSON line a probe, up to the first that hangs: `outputs`
of its steps, `error`, and `entered` ([path, first line] of each function).
"""

from __future__ import annotations

import codeop
import contextlib
import importlib.abc
import importlib.machinery
import io
import json
import linecache
import random
import resource
import signal
import sys
import sysconfig
import traceback
from types import CodeType, FrameType
from typing import Any

MEMORY = 3 * 2**30
SCRIPT = "example.py"
LIBRARY = sysconfig.get_path("stdlib")
"""Where Python's own modules are; told as users have them."""


class Hang(BaseException):
    """A probe used more time than it may; no package catches it by accident."""


class Overlay(importlib.abc.MetaPathFinder):
    """Gives one module another text than its file has."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.origin == self.path:
            loader = _Loader(name, self.path)
            loader.text = self.text
            spec.loader = loader
            return spec
        return None


class _Loader(importlib.machinery.SourceFileLoader):
    text = ""

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.text, self.path, "exec", dont_inherit=True)


def main() -> None:
    """Read the job, run its probes, write what came of each."""
    job = json.loads(sys.stdin.buffer.read())
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = int(60 + 4 * job["seconds"])  # ends what hangs inside a C function
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    signal.signal(signal.SIGPROF, _hang)
    sys.path[:0] = job["paths"]
    if job["overlay"]:
        sys.meta_path.insert(0, Overlay(job["overlay"]["path"], job["overlay"]["text"]))
    out = sys.stdout
    for probe in job["probes"]:
        entered: set[tuple[str, int]] = set()
        found = run(probe, job, entered)
        found["entered"] = sorted(entered)
        out.write(json.dumps(found) + "\n")
        out.flush()
        if found["error"] and found["error"]["type"] == Hang.__name__:
            break  # the others would likely take as long


def _hang(number: int, frame: FrameType | None) -> None:
    raise Hang


def run(
    probe: dict[str, Any], job: dict[str, Any], entered: set[tuple[str, int]]
) -> dict[str, Any]:
    """Return the outputs of a probe's steps up to the first error, and that error."""
    random.seed(0)
    outputs: list[str] = []
    names: dict[str, Any] = {"__name__": "__main__"}
    script = [
        line + "\n" for part in (probe["setup"], *probe["steps"]) for line in part.split("\n")
    ]
    linecache.cache[SCRIPT] = (1, None, script, SCRIPT)
    number = probe["setup"].count("\n") + 2
    try:
        exec(compile(probe["setup"], SCRIPT, "exec"), names)
    except BaseException as error:
        return {"outputs": outputs, "error": told(error, job)}
    signal.setitimer(signal.ITIMER_PROF, job["seconds"])
    try:
        for step in probe["steps"]:
            with contextlib.redirect_stdout(io.StringIO()) as said:
                _traced(_code(step, number), names, job["trace"], entered)
            outputs.append(said.getvalue())
            number += step.count("\n") + 1
    except (Exception, Hang, SystemExit) as error:
        signal.setitimer(signal.ITIMER_PROF, 0)
        return {"outputs": outputs, "error": told(error, job)}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return {"outputs": outputs, "error": None}


def _code(step: str, number: int) -> CodeType:
    code = codeop.compile_command(step + "\n", SCRIPT, "single")
    if code is None:
        raise SyntaxError("incomplete step")
    return code.replace(co_firstlineno=number)


def _traced(
    code: CodeType, names: dict[str, Any], folder: str, entered: set[tuple[str, int]]
) -> None:
    if not folder:
        exec(code, names)
        return

    def enter(frame: FrameType, event: str, value: Any) -> None:
        code = frame.f_code
        if code.co_filename.startswith(folder):
            entered.add((code.co_filename, code.co_firstlineno))

    sys.settrace(enter)
    try:
        exec(code, names)
    finally:
        sys.settrace(None)


def told(error: BaseException, job: dict[str, Any]) -> dict[str, Any]:
    """Return an error as its user sees it: frames of this program left out, paths as installed."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    shown = traceback.TracebackException.from_exception(error)
    inner = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)
    shown.stack = traceback.StackSummary.from_list(frames)
    text = "".join(shown.format(chain=inner is not None))
    return {
        "type": type(error).__name__,
        "message": str(error)[:2000],
        "trace": text.replace(job["root"], job["shown"]).replace(LIBRARY, "/usr/lib/python3.11"),
        "functions": [[frame.filename, frame.lineno, frame.name] for frame in frames],
    }


if __name__ == "__main__":
    main()
