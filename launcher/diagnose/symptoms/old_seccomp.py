"""The container engine is older than the image's C library, and forbids a system call that starts threads.

**What you see**: `pthread_create failed … Operation not permitted`, `can't start new thread` in a fresh container, or
`Operation not permitted` out of apt and curl, with an image of Ubuntu 22.04, Debian 12 or newer.
**Why**: glibc 2.34 starts threads by clone3. A seccomp profile that does not know it, Docker's before 20.10.10 with
libseccomp before 2.5, answers EPERM instead of ENOSYS, so that glibc does not try the older call.
**Way out**: update Docker, runc and libseccomp on the host; `--security-opt seccomp=unconfined` shows that it is this.
**References**: moby/moby#42680; pthread_create(3).
"""

from __future__ import annotations

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import Diagnosis, seen
from launcher.diagnose.texts import Text

CODE = "TL639"
NAME = "old-seccomp"
_PTHREAD = Text("hread", r"pthread_create(?:\(\))? (?:failed|error).*Operation not permitted")
_GOMP = Text("hread creation failed", r"Thread creation failed: Operation not permitted")
_CXX = Text("rror", r"std::system_error.*Operation not permitted")


def diagnose(case: Case) -> Diagnosis | None:
    """Match EPERM of a thread's start: a limit answers EAGAIN."""
    hit = case.first(_PTHREAD, _GOMP, _CXX)
    if hit is None:
        return None
    sentence = "the engine's seccomp profile is older than the image's C library and forbids it to start threads"
    fix = "update Docker to 20.10.10 or newer, with runc and libseccomp 2.5, on the host; no limit has to be raised"
    commands = ("docker version --format '{{.Server.Version}}'",)
    return Diagnosis(CODE, NAME, sentence, seen(hit), fix, commands=commands)
