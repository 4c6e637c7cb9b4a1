"""What was refused before the first line of training ran, and what ended with a code of its own."""

from __future__ import annotations

from collections.abc import Callable

from trainlaunch.container.preflight import STOP_MARKER
from trainlaunch.diagnose.base.case import LIKELY, Case, Story, Symptom, Told, seen, told_by
from trainlaunch.diagnose.base.log_facts import Hit
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.exit_codes import (
    EXIT_BEFORE_START,
    EXIT_FILES_WRONG,
    EXIT_NOT_EXECUTABLE,
    EXIT_NOT_FOUND,
    EXIT_TRY_ELSEWHERE,
    EXIT_USAGE,
)

MARKER = LogPattern(STOP_MARKER)


def _refused(code: int, sentence: str, fix: str) -> Callable[[Case], Told | None]:
    """Return what matches an exit code with the marker; without a code, the marker's own number."""

    def tell(case: Case) -> Told | None:
        hit = next((each for each in case.hits(MARKER) if f"({code})" in each.text), None)
        return None if hit is None or case.exit_code not in {code, None} else Told(sentence, seen(hit), fix)

    return tell


_config_refused = _refused(
    EXIT_FILES_WRONG,
    "the preflight stopped the job before its first line, because the job file can't work as it is",
    "change what that line names; another attempt would stop there too",
)
_machine_refused = _refused(
    EXIT_TRY_ELSEWHERE,
    "the preflight stopped the job before its first line, because this host can't run it now",
    "free what that line names and start again, or use another machine",
)


def _own_exit_code(case: Case) -> Told | None:
    """Match 75 and 78 without the marker."""
    if case.exit_code not in {EXIT_TRY_ELSEWHERE, EXIT_FILES_WRONG} or case.first(MARKER):
        return None
    shown = seen("no `preflight stopped` line in the log")
    return Told(
        f"the job itself ended with {case.exit_code}; the preflight had passed",
        shown,
        "look at the job's own last lines",
    )


_WORDS = LogPattern("Error", r"^(?:docker: )?Error(?: response from daemon)?: |^docker: Error", beside=True)
_DAEMON = LogPattern("Error response from daemon", r"(?:^|docker: )Error response from daemon: ")
_OCI = LogPattern("rror:", r"OCI runtime (?:create|exec|run) failed|OCI runtime error: ")
_SHMSIZE = LogPattern("shm", r"cannot set shmsize when running in the .* IPC Namespace")
_LAUNCH_ERROR_RUNTIME = LogPattern("rror: ", r"^Error: (?:crun|runc): .*OCI (?:permission denied|runtime)")
_FLAG = LogPattern("rror:", r"^(?:docker|podman): .*(?:unknown flag|invalid argument|invalid reference format)")
_PYXIS = LogPattern(
    "rror: pyxis",
    r"pyxis: (?:couldn't start container|failed to (?:import docker image|create container)|container start failed"
    r"|child \d+ failed|No such file)",
)
_ENROOT = LogPattern("rror: pyxis:  ", r"error: pyxis:\s{2,}(?P<words>(?!\[INFO\]).*)")
_LAUNCH_ERROR_APPTAINER = LogPattern(
    "FATAL:  ",
    r"FATAL:\s{3}(?P<words>\S.*)",  # PostgreSQL's have two blanks
)
_REFUSED_BY_SLURM = LogPattern(
    "error: ",
    r"(?:srun|salloc|sbatch): error: (?P<words>(?:Unable to (?:create step|allocate resources|confirm allocation)"
    r"|Batch job submission failed|MPI: Cannot create context).*)",
)
_NO_DAEMON = LogPattern("Cannot connect to the Docker", r"Cannot connect to the Docker daemon at (?P<where>\S+?)\.? ")
_NO_SOCKET = LogPattern(
    "enied", r"permission denied while trying to connect to the (?:Docker daemon socket|docker API)"
)
_SLOTS = LogPattern("There are not enough slots")
_ROOT = LogPattern("to run as root", r"mpirun has detected an attempt to run as root")
PODMANS = frozenset({EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND})  # where its runtime refuses the container


def _launch_error(case: Case) -> Told | None:
    """Match 125: by the engine's words where there are any, else as the job's own code."""
    evidence = case.evidence
    cluster = _of_cluster(case)
    if cluster is not None:
        return cluster
    if not evidence.where.on_this_machine:
        return None  # a cluster's own reasons are symptoms of their own
    hit = case.first(_DAEMON, _SHMSIZE, _OCI, _LAUNCH_ERROR_RUNTIME, _FLAG)
    refused = case.exit_code in {EXIT_BEFORE_START, None} or (
        case.exit_code in PODMANS and case.first(_LAUNCH_ERROR_RUNTIME)
    )
    if not refused or (case.exit_code is None and hit is None):
        return None
    told = evidence.error or hit or case.first(_WORDS)
    if told:
        fix = "change the setting that the engine names; retrying does not help"
        if case.first(_SHMSIZE):
            fix = "delete ipc host and keep shm_size: podman refuses the two together, docker would ignore the size"
        return Told(
            "the engine refused to start the container; no line of training ran",
            seen(told),
            fix,
        )
    return Told(
        "the job itself ended with 125, the code that engines use for a container that could not start",
        seen("the container ran and its first process returned 125"),
        "look at the job's own last lines",
        LIKELY,
    )


_REFUSALS = (
    Story(
        (_ROOT,),
        "mpirun does not start anything as root",
        "pass `--allow-run-as-root` to mpirun, or let the container run as another user",
    ),
    Story(
        (_SLOTS,),
        "mpirun was asked for more processes than its hosts have slots",
        "lower -np, or set the slots (`--host NODE:8`); `--oversubscribe` shares the cores",
    ),
    Story(
        (_REFUSED_BY_SLURM,), "Slurm refused the job or its step; it did not run", "change what Slurm names: <words>"
    ),
    Story(
        (_NO_DAEMON,),
        "no Docker daemon answers at <where>; no container was started",
        "start it (`sudo systemctl start docker`), or choose the engine that runs (`docker context ls`, DOCKER_HOST)",
    ),
    Story(
        (_NO_SOCKET,),
        "this user may not speak to the Docker daemon; no container was started",
        "let an administrator add the user to the group docker (then log in again), or use rootless Docker or Podman",
    ),
)


def _of_cluster(case: Case) -> Told | None:
    """Match pyxis and Apptainer: the last of their lines that says what failed."""
    if (refused := told_by(case, _REFUSALS)) is not None:
        return refused
    hit = case.first(_LAUNCH_ERROR_APPTAINER)
    runner, sentence = "Apptainer", "Apptainer could not start the container; no line of training ran"
    if hit is None and case.first(_PYXIS) is not None:
        runner, sentence = "pyxis", "pyxis could not start the container; no line of training ran"
        told = case.hits(_ENROOT)
        hit = told[-1] if told else case.first(_PYXIS)
    if hit is None:
        return None
    words = hit.match.groupdict().get("words") or hit.text
    fix = f"change what {runner} names: {words.strip()}"
    if "failed to execute" in words:
        fix = (
            "the image has no such shell, or an ENTRYPOINT that needs it: use `srun "
            "--no-container-entrypoint`, or another"
        )
    return Told(sentence, seen(hit), fix)


_PODMANS_INIT = LogPattern("o such file", r"catatonit.*failed to exec pid1: No such file")  # ends with 1
_NO_SHELL = LogPattern(
    "o such file", r"exec /bin/sh failed|catatonit.*failed to exec pid1|exec: \"/bin/sh\": .*no such file"
)
_MISSING = LogPattern("ot found", r"not found", beside=True)
_NO_FILE = LogPattern("o such file", beside=True)
_DENIED = LogPattern("enied", r"[Pp]ermission denied", beside=True)
_FORMAT = LogPattern("rror", r"[Ee]xec format error")
_SCRIPT = LogPattern("ot found", r"^script: .*not found")
_COMMAND = LogPattern(
    "ot found", r"^(?:\S+: )?(?:line \d+: |\d+: )?(?P<program>[\w./+-]{1,200}): (?:command )?not found$", beside=True
)
_INTERPRETER = LogPattern("ot found", r"exec: (?:line \d+: )?/.*not found")
_ENGINE = LogPattern("ot found", r'exec: "[^"]+": executable file not found')
_ENGINE_STAT = LogPattern("o such file", r'exec: "[^"]+": stat .*no such file')
_ENGINE_DENIED = LogPattern("enied", r'exec: "[^"]+": permission denied')
_SLURM = LogPattern(
    "rror",
    r"slurmstepd: error: execve\(\): (?P<program>.{1,200}?): (?:No such file or directory|Permission denied"
    r"|Exec format)",
)
_SRUN = LogPattern("Can not execute", r"srun: fatal: Can not execute (?P<program>\S+)")
_COMMAND_NOT_STARTED_APPTAINER = LogPattern(
    "FATAL:  ", r'FATAL:\s+"?(?P<program>[\w./-]+)"?: executable file not found in \$PATH'
)
_COMMAND_NOT_STARTED_RUNTIME = LogPattern(
    "rror: ", r"^Error: (?:(?:crun|runc)\b(?!.*executable file)|setting up CDI|preparing container)"
)  # Podman's 126 and 127 for a refusal


def _command_not_started(case: Case) -> Told | None:
    """Match 126, 127, the engines' texts, and an image for another CPU; a script may return the codes itself."""
    engine = case.first(_ENGINE, _ENGINE_STAT, _ENGINE_DENIED)
    if engine is None and case.first(_COMMAND_NOT_STARTED_RUNTIME) is not None:
        return None
    slurm = case.first(_SLURM, _SRUN, _COMMAND_NOT_STARTED_APPTAINER)
    if slurm is not None:
        return _not_there(slurm)
    wrong_cpu = case.first(_FORMAT)
    if wrong_cpu is not None and case.exit_code != 0:
        sentence = "the program is built for another CPU than this host's, or is a script without a `#!` line"
        fix = "use an image for this platform (`docker image inspect -f '{{.Architecture}}' IMAGE`), or add `#!/bin/sh`"
    elif case.exit_code == EXIT_NOT_EXECUTABLE or (engine is not None and _ENGINE_DENIED.found_in(engine.text)):
        sentence = "the command was found and could not be executed"
        fix = "give it execute permission (`chmod +x`), or start it with its interpreter, like [python, train.py]"
    elif case.exit_code == EXIT_NOT_FOUND or engine is not None or (case.exit_code == 1 and case.first(_PODMANS_INIT)):
        sentence, fix = _not_found(case)
    else:
        return None
    hits = case.hits(_MISSING, _NO_FILE, _DENIED, _FORMAT)
    shown = case.first(_NO_SHELL) or engine or (hits[-1] if hits else None)
    return Told(sentence, seen(shown or f"exit code {case.exit_code}"), fix, LIKELY)


def _not_there(hit: Hit) -> Told:
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
    return Told(sentence, seen(hit), f"`chmod +x {program}`" if denied else fix)


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
    named = case.hits(_COMMAND)
    which = f" {named[-1].match['program']}" if named else ""
    return f"the command{which} was not found {place}", fix


_ARGPARSE = LogPattern(
    ": error: ",
    r"^(?P<program>[\w./ -]{1,120}): error: (?P<words>(?:unrecognized arguments|the following arguments are required"
    r"|argument [^:]+|ambiguous option|one of the arguments|invalid choice|too few arguments|expected \w+ argument).*)",
)
_CLICK = LogPattern(
    "Error: ",
    r"^Error: (?P<words>(?:No such (?:option|command)|Missing (?:option|argument|parameter|command)|Invalid value"
    r"|Got unexpected extra argument|Option '[^']+' (?:requires|does not take))\b.*)",
)
_ANY = LogPattern(": error: ", r"^(?P<program>[\w./-]{1,120}\.py|torchrun|accelerate|deepspeed): error: (?P<words>.+)")
_HYDRA = LogPattern("rror", r"(?P<words>(?:LexerNoViableAlt|mismatched input) .*)")
_OVERRIDE = LogPattern("Could not override '", r"(?P<words>Could not override '[^']+'.*)")
_PARSER = LogPattern(
    "rror: ", r"ValueError: (?P<words>Some specified arguments are not used by the HfArgumentParser: .*)"
)


def _arguments_refused(case: Case) -> Told | None:
    """Match the words of argument parsers, which end with 2."""
    hit = case.first(_ARGPARSE, _CLICK, _HYDRA, _OVERRIDE, _PARSER)
    if hit is None and case.exit_code == EXIT_USAGE:
        hit = case.first(_ANY)
    if hit is None or case.exit_code == 0:
        return None
    program = (hit.match.groupdict().get("program") or "the script").strip()
    return Told(
        f"{program} does not take the arguments that it was given: {hit.match['words'].strip()}",
        seen(hit),
        f"correct the arguments of command; `{program} --help` lists them"
        if program != "the script"
        else "correct the arguments of command; its --help lists them",
        LIKELY if case.exit_code not in {1, 2} else "certain",
    )


SYMPTOMS = (
    Symptom("TL601", "config-refused", _config_refused),
    Symptom("TL616", "machine-refused", _machine_refused),
    Symptom("TL615", "own-exit-code", _own_exit_code),
    Symptom("TL602", "launch-error", _launch_error),
    Symptom("TL614", "command-not-started", _command_not_started),
    Symptom("TL675", "arguments-refused", _arguments_refused),
)
