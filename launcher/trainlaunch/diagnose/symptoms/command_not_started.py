from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_facts import Hit
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.exit_codes import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND

CODE = "TL614"
NAME = "command-not-started"
_PODMANS_INIT = LogPattern("o such file", r"catatonit.*failed to exec pid1: No such file")  # ends with 1
_NO_SHELL = LogPattern(
    "o such file", r"exec /bin/sh failed|catatonit.*failed to exec pid1|exec: \"/bin/sh\": .*no such file"
)
_MISSING = LogPattern("ot found", r"not found", beside=True)
_NO_FILE = LogPattern("o such file", beside=True)
_DENIED = LogPattern("enied", r"[Pp]ermission denied", beside=True)
_FORMAT = LogPattern("rror", r"[Ee]xec format error")
_SCRIPT = LogPattern("ot found", r"^script: .*not found")
_INTERPRETER = LogPattern("ot found", r"exec: (?:line \d+: )?/.*not found")
_ENGINE = LogPattern("ot found", r'exec: "[^"]+": executable file not found')
_ENGINE_STAT = LogPattern("o such file", r'exec: "[^"]+": stat .*no such file')
_ENGINE_DENIED = LogPattern("enied", r'exec: "[^"]+": permission denied')
_SLURM = LogPattern(
    "rror",
    r"slurmstepd: error: execve\(\): (?P<program>.+?): (?:No such file or directory|Permission denied|Exec format)",
)
_SRUN = LogPattern("srun: fatal: ", r"srun: fatal: Can not execute (?P<program>\S+)")
_APPTAINER = LogPattern("FATAL:  ", r'FATAL:\s+"?(?P<program>[\w./-]+)"?: executable file not found in \$PATH')
_RUNTIME = LogPattern(
    "rror: ", r"^Error: (?:(?:crun|runc)\b(?!.*executable file)|setting up CDI|preparing container)"
)  # Podman's 126 and 127 for a refusal


def diagnose(case: Case) -> Diagnosis | None:
    """Match 126, 127, the engines' texts, and an image for another CPU; a script may return the codes itself."""
    engine = case.first(_ENGINE, _ENGINE_STAT, _ENGINE_DENIED)
    if engine is None and case.first(_RUNTIME) is not None:
        return None
    slurm = case.first(_SLURM, _SRUN, _APPTAINER)
    if slurm is not None:
        return _not_there(slurm)
    wrong_cpu = case.first(_FORMAT)
    if wrong_cpu is not None and case.exit_code != 0:
        sentence = "the program is built for another CPU than this machine's, or is a script without a `#!` line"
        fix = "use an image for this platform (`docker image inspect -f '{{.Architecture}}' IMAGE`), or add `#!/bin/sh`"
    elif case.exit_code == EXIT_NOT_FOUND or engine is not None or (case.exit_code == 1 and case.first(_PODMANS_INIT)):
        sentence, fix = _not_found(case)
    elif case.exit_code == EXIT_NOT_EXECUTABLE:
        sentence = "the command was found and could not be executed"
        fix = "give it execute permission (`chmod +x`), or start it with its interpreter, like [python, train.py]"
    else:
        return None
    hits = case.hits(_MISSING, _NO_FILE, _DENIED, _FORMAT)
    shown = case.first(_NO_SHELL) or engine or (hits[-1] if hits else None)
    return Diagnosis(CODE, NAME, sentence, seen(shown or f"exit code {case.exit_code}"), fix, LIKELY)


def _not_there(hit: Hit) -> Diagnosis:
    """Return what Slurm and Apptainer say of a program: both look inside of the container, and srun before it too."""
    program = hit.match["program"]
    denied = "ermission denied" in hit.text
    sentence = (
        f"{program} may not be executed there" if denied else f"there is no program {program} where the task runs"
    )
    fix = (
        f"give the path that {program} has inside of the container or on the node, or install it there; with pyxis "
        f"srun "
        "looks for it on the submitting host too, so start it by `bash -c '…'`"
    )
    return Diagnosis(CODE, NAME, sentence, seen(hit), f"`chmod +x {program}`" if denied else fix)


def _not_found(case: Case) -> tuple[str, str]:
    where = case.evidence.where
    if case.first(_NO_SHELL):
        return "the image has no /bin/sh, which the preflight needs", "use an image with a shell; busybox is enough"
    if case.first(_SCRIPT):
        return "a command of the script was not found", "correct the line that is named, or install the command"
    place, whose = ("in the image", "the image's") if where.starts_container else ("on this host", "your shell's")
    fix = f"correct the first word of command, or install it {place}; it is looked up on {whose} PATH"
    if case.first(_INTERPRETER):
        fix += "; of a script it may be the `#!` interpreter that is missing"
    return f"the command was not found {place}", fix
