"""The few exceptions that stop trainlaunch, each with the exit code that it means.

LaunchError
├── JobFileRejected      the job file, or the plan it asks for, has errors (all of them at once)
├── UsageError           the command line is wrong
├── TargetUnavailable    the engine or cluster can't take the job; before its first process
├── NotMeasured          a measured script ended, or ran, without what was to be measured
└── RenderingDisagrees   a rendered file does not say what the plan says: a bug of trainlaunch or of a template
"""

from __future__ import annotations

from collections.abc import Iterable

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.exit_codes import EXIT_BUG, EXIT_FINDINGS, EXIT_TARGET_UNAVAILABLE, EXIT_USAGE


class LaunchError(Exception):
    """Root of everything that trainlaunch raises on purpose."""

    exit_code = EXIT_BUG
    documented = False  # whether a JSON document on stdout has it already

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("; ".join(f"{each.code}: {each.message}" for each in self.diagnostics))


class JobFileRejected(LaunchError):
    """The job file can't be read, or no plan satisfies it."""

    exit_code = EXIT_FINDINGS


class UsageError(LaunchError):
    """The command line asks for something that can't be."""

    exit_code = EXIT_USAGE


class TargetUnavailable(LaunchError):
    """The target can't take this job now; nothing of the job has run."""

    exit_code = EXIT_TARGET_UNAVAILABLE


class NotMeasured(LaunchError):
    """A script was run to be measured and gave nothing to measure."""

    exit_code = EXIT_FINDINGS


class RenderingDisagrees(LaunchError):
    """A rendered file does not say what the plan says; it was not written."""
