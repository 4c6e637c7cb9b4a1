from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL639"
NAME = "old-seccomp"
_PTHREAD = LogPattern("hread", r"pthread_create(?:\(\))? (?:failed|error).*Operation not permitted")
_GOMP = LogPattern("hread creation failed", r"Thread creation failed: Operation not permitted")
_CXX = LogPattern("rror", r"std::system_error.*Operation not permitted")


def diagnose(case: Case) -> Diagnosis | None:
    """Match EPERM of a thread's start: a limit answers EAGAIN."""
    hit = case.first(_PTHREAD, _GOMP, _CXX)
    if hit is None:
        return None
    commands = ("docker version --format '{{.Server.Version}}'",)
    return Diagnosis(
        CODE,
        NAME,
        "the engine's seccomp profile is older than the image's C library and forbids it to start threads",
        seen(hit),
        "update Docker to 20.10.10 or newer, with runc and libseccomp 2.5, on the host; no limit has to be raised",
        commands=commands,
    )
