"""Exit codes, and which error ends with which. The table is in docs/cli.md; scripts rely on it."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the caller's `$?` means."""

    DONE = 0
    NO = 1  # the answer is no: verification failed, a difference
    USAGE = 2  # usage or bad input
    ATTENTION = 3  # the case needs attention
    PROVIDER = 4
    STORAGE = 5  # conflict, damaged, full, read-only, newer format
    INTERRUPTED = 130


BAD_INPUT = {
    "IntakeError": "phases.intake.errors",
    "ProviderConfigurationError": "phases.providers.base",
    "PromptError": "prompts",
    "UnknownVersion": "projections.requests",
}
"""By name: the modules that define them are heavy, and loaded already when one is raised."""


class UserError(Exception):
    """A mistake in what was asked for: one line with what, where and what to do. Exit 2."""


class AnswerIsNo(Exception):
    """The question was answered, and the answer is no; the command has printed why. Exit 1."""


class NotAllChecked(AnswerIsNo):
    """Nothing was found wrong, and not all could be checked; the command has said so. Exit 3."""


class NeedsAttention(Exception):
    """The case needs a person: one line that says what for. Exit 3."""


class ProviderGaveUp(Exception):
    """No provider answered: one line that says why and how to go on. Exit 4."""


class Declined(Exception):
    """A person was asked and did not say yes: nothing was done. Exit 130."""


def exit_code(error: BaseException) -> ExitCode | None:
    """Return the exit code of an error of ours; None for one that is a defect of the program."""
    from ledger import errors

    if isinstance(error, NotAllChecked):
        return ExitCode.ATTENTION
    if isinstance(error, AnswerIsNo | errors.PayloadWithheld):
        return ExitCode.NO
    if isinstance(error, UserError | errors.CaseNotFound | errors.CaseExists):
        return ExitCode.USAGE
    if isinstance(error, NeedsAttention):
        return ExitCode.ATTENTION
    if isinstance(error, ProviderGaveUp):
        return ExitCode.PROVIDER
    if isinstance(error, Declined):
        return ExitCode.INTERRUPTED
    if type(error).__name__ in BAD_INPUT:
        return ExitCode.USAGE
    if isinstance(error, errors.NewerFormat):
        return ExitCode.STORAGE
    if isinstance(error, errors.PackageRefused | errors.CanonicalError):
        return ExitCode.USAGE
    if isinstance(error, errors.LedgerError):
        return ExitCode.STORAGE
    return None
