"""The command line: `caseledger`. Each command opens, calls one function and prints.

Nothing heavy is imported here: a command loads what it needs when it runs.
"""

from __future__ import annotations

import io
import os
import sys
from errno import EBADF, EIO, ENOSPC
from typing import Annotated

try:
    import typer
    from typer.exceptions import TyperException

    from tools.commands import (
        analysis,
        caching,
        cases,
        evaluation,
        machine,
        measuring,
        packages,
        record,
        requests,
        tabulating,
        trials,
    )
    from tools.exits import AnswerIsNo, ExitCode, exit_code
except KeyboardInterrupt:  # Ctrl-C before anything has begun: no traceback
    sys.exit(130)

app = typer.Typer(
    name="caseledger",
    help=(
        "Analyse a bug with a language model, and keep a ledger of it that can be trusted.\n\n"
        "A CASE is a path, the name of a case in the cases folder ($CASELEDGER_HOME, else "
        "./.caseledger), a unique beginning of that name, or `last`. Commands that read the "
        "record take a package (.zip) as well."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group in (
    *(analysis, cases, record, requests, trials, caching, measuring, tabulating),
    *(evaluation, packages, machine),
):
    group.register(app)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        from tools.output import say
        from tools.version import program

        say(program())
        raise typer.Exit


def main() -> None:
    """Run the command line and end the process with a documented exit code."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123 - closed by the caller
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that is not UTF-8 is no mistake
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command; return its exit code. A user's mistake is one line on stderr."""
    try:
        ended = int(app(arguments, standalone_mode=False, prog_name="caseledger") or 0)
        sys.stdout.flush()  # here, where a closed pipe is nobody's mistake
        if ended == ExitCode.INTERRUPTED:  # typer's word for Ctrl-C
            _complain("interrupted", "interrupted; what was recorded stays", arguments)
        return ended
    except (typer.Abort, KeyboardInterrupt):
        _complain("interrupted", "interrupted; what was recorded stays", arguments)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return _nobody_listens()
    except SystemExit as error:  # typer's way to end on a closed pipe
        if isinstance(error.__context__, BrokenPipeError):
            return _nobody_listens()
        raise
    except AnswerIsNo as error:  # it has been printed
        return exit_code(error) or ExitCode.NO
    except TyperException as error:
        if message := error.format_message():  # empty: no command was given, help was printed
            _complain("usage", f"{message} (see --help)", arguments)
        return ExitCode.USAGE
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (ENOSPC, EIO, EBADF):
            return _cannot_print(error, arguments)
        code = exit_code(error)
        if code is None:
            raise  # a defect of ours: the traceback is what we need to see
        _complain(type(error).__name__, str(error), arguments)
        return code


def _cannot_print(error: OSError, arguments: list[str]) -> int:
    """Standard output is full or closed: not an answer of the command."""
    _nobody_listens()
    _complain("output", f"the output cannot be written: {error.strerror}", arguments)
    return ExitCode.STORAGE


def _nobody_listens() -> int:
    """The reader of our output has seen enough: what is still buffered goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.DONE


def _complain(kind: str, message: str, arguments: list[str]) -> None:
    from tools.output import one_line, print_json

    if "--json" in arguments:
        print_json({"error": {"kind": kind, "message": one_line(message, 4000)}})
    sys.stderr.write(f"caseledger: {one_line(message, 4000)}\n")
