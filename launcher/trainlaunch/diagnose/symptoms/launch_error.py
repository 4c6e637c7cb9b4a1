from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.exit_codes import EXIT_BEFORE_START, EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND

CODE = "TL602"
NAME = "launch-error"
_WORDS = LogPattern("Error", r"^(?:docker: )?Error(?: response from daemon)?: |^docker: Error", beside=True)
_DAEMON = LogPattern("Error response from daemon", r"(?:^|docker: )Error response from daemon: ")
_OCI = LogPattern("rror:", r"OCI runtime (?:create|exec|run) failed|OCI runtime error: ")
_SHMSIZE = LogPattern("shm", r"cannot set shmsize when running in the .* IPC Namespace")
_RUNTIME = LogPattern("rror: ", r"^Error: (?:crun|runc): .*OCI (?:permission denied|runtime)")
_FLAG = LogPattern("rror:", r"^(?:docker|podman): .*(?:unknown flag|invalid argument|invalid reference format)")
_PYXIS = LogPattern(
    "rror: pyxis",
    r"pyxis: (?:couldn't start container|failed to import docker image|container start failed|child \d+ failed)",
)
_ENROOT = LogPattern("rror: pyxis:  ", r"error: pyxis:\s{2,}(?P<words>(?!\[INFO\]).*)")
_APPTAINER = LogPattern(
    "FATAL:  ",
    r"FATAL:\s+(?P<words>(?:container creation failed|could not open image|while (?:making|handling|loading)|Unable "
    r"to|image ).*)",
)
_ROOT = LogPattern("to run as root", r"mpirun has detected an attempt to run as root")
PODMANS = frozenset({EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND})  # where its runtime refuses the container


def diagnose(case: Case) -> Diagnosis | None:
    """Match 125: by the engine's words where there are any, else as the job's own code."""
    evidence = case.evidence
    cluster = _of_cluster(case)
    if cluster is not None:
        return cluster
    if not evidence.where.on_this_machine:
        return None  # a cluster's own reasons are symptoms of their own
    hit = case.first(_DAEMON, _SHMSIZE, _OCI, _RUNTIME, _FLAG)
    refused = case.exit_code in {EXIT_BEFORE_START, None} or (case.exit_code in PODMANS and case.first(_RUNTIME))
    if not refused or (case.exit_code is None and hit is None):
        return None
    told = evidence.error or hit or case.first(_WORDS)
    if told:
        fix = "change the setting that the engine names; retrying does not help"
        if case.first(_SHMSIZE):
            fix = "delete ipc host and keep shm_size: podman refuses the two together, docker would ignore the size"
        return Diagnosis(
            CODE, NAME, "the engine refused to start the container; no line of training ran", seen(told), fix
        )
    return Diagnosis(
        CODE,
        NAME,
        "the job itself ended with 125, the code that engines use for a container that could not start",
        seen("the container ran and its first process returned 125"),
        "look at the job's own last lines",
        LIKELY,
    )


def _of_cluster(case: Case) -> Diagnosis | None:
    """Match pyxis and Apptainer: the last of their lines that says what failed."""
    if (refused := case.first(_ROOT)) is not None:
        fix = "pass `--allow-run-as-root` to mpirun, or let the container run as another user"
        return Diagnosis(CODE, NAME, "mpirun does not start anything as root", seen(refused), fix)
    hit = case.first(_APPTAINER)
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
    return Diagnosis(CODE, NAME, sentence, seen(hit), fix)
