"""Exit codes: trainlaunch's own, those of a job that are never tried again, and those of signals."""

EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_TARGET_UNAVAILABLE = 3
EXIT_BUG = 70
EXIT_TRY_ELSEWHERE = 75  # sysexits EX_TEMPFAIL: the preflight says that this host is wrong
EXIT_FILES_WRONG = 78  # sysexits EX_CONFIG: the preflight says that the files are wrong; never retried
EXIT_BEFORE_START = 125  # as docker run: nothing of the job has run
EXIT_NOT_EXECUTABLE = 126  # as a shell and docker run: the command was found and could not be started
EXIT_NOT_FOUND = 127  # as a shell and docker run: the command was not found

NEVER_RAN = (EXIT_BEFORE_START, EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND)
FINAL = (EXIT_FILES_WRONG, *NEVER_RAN)  # no attempt follows one of these on any target

_SIGNALLED = 128
EXIT_INTERRUPTED = _SIGNALLED + 2  # SIGINT
EXIT_SIGABRT = _SIGNALLED + 6
EXIT_SIGBUS = _SIGNALLED + 7
EXIT_SIGKILL = _SIGNALLED + 9
EXIT_SIGSEGV = _SIGNALLED + 11
EXIT_SIGTERM = _SIGNALLED + 15


def exit_of_signal(number: int) -> int:
    """Return the exit code of what a signal ended, as shells and engines tell it."""
    return _SIGNALLED + number
