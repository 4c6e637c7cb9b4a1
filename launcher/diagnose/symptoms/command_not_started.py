"""The command of the job could not be started: 127 not found, 126 found and not executable.

**What you see**: exit code 127 or 126, with the shell's `not found` or `Permission denied`.
**Why**: the preflight passed and its last step, exec of the command, failed: the program is not in the image, not
on PATH, has no execute permission or names an interpreter that is missing. An image without /bin/sh can't run the
preflight itself; on Podman that ends with 1.
**Way out**: run the image with a shell and look (`command -v`, `ls -l`).
**References**: POSIX, Shell Command Language 2.8.2, Exit Status for Commands.
"""

from __future__ import annotations

from launcher.diagnose.diagnosis import LIKELY, Diagnosis, line_with
from launcher.diagnose.evidence import Evidence

CODE = "TL614"
NAME = "command-not-started"
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127
_PODMANS_INIT = r"catatonit.*failed to exec pid1: No such file"  # and it ends with 1
_NO_SHELL = rf"exec /bin/sh failed|{_PODMANS_INIT}"
_TEXTS = r"not found|[Pp]ermission denied|[Nn]o such file|Exec format error"


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match 126 and 127; a script may also return them itself."""
    if evidence.exit_code == _NOT_FOUND or (evidence.exit_code == 1 and line_with(evidence.log, _PODMANS_INIT)):
        sentence, fix = _not_found(evidence)
    elif evidence.exit_code == _NOT_EXECUTABLE:
        sentence = "the command was found and could not be executed"
        fix = "give it execute permission (`chmod +x`), or start it with its interpreter, like [python, train.py]"
    else:
        return None
    saw = line_with(evidence.log, _NO_SHELL) or line_with(evidence.log, _TEXTS)
    return Diagnosis(CODE, NAME, sentence, saw or f"exit code {evidence.exit_code}", fix, LIKELY)


def _not_found(evidence: Evidence) -> tuple[str, str]:
    if line_with(evidence.log, _NO_SHELL):
        return "the image has no /bin/sh, which the preflight needs", "use an image with a shell; busybox is enough"
    if line_with(evidence.log, r"^script: .*not found"):
        return "a command of the script was not found", "correct the line that is named, or install the command"
    place, whose = (
        ("in the image", "the image's") if evidence.where.starts_container else ("on this host", "your shell's")
    )
    fix = f"correct the first word of command, or install it {place}; it is looked up on {whose} PATH"
    if line_with(evidence.log, r"exec: (line \d+: )?/.*not found"):
        fix += "; of a script it may be the `#!` interpreter that is missing"
    return f"the command was not found {place}", fix
