from __future__ import annotations

import re

from trainlaunch.diagnose.base.case import Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.symptoms.dist_timeout_secondary import WATCHDOG
from trainlaunch.exit_codes import EXIT_SIGABRT

CODE = "TL642"
NAME = "worker-aborted"
_WORKER = LogPattern("killed by signal: Aborted")
_PROCESS = LogPattern("SIG", r"Signal 6 \(SIGABRT\)|signal SIGABRT")
_TORCHRUN = LogPattern("exitcode", r"\bexitcode *[:=] *-6\b")
_PYTHON = LogPattern("Aborted", r"Fatal Python error: Aborted|^Aborted(?: \(core dumped\))?\s*$")
_WHAT = LogPattern("what():  ", r"what\(\):  (?P<what>.+)", beside=True)
_THREAD = LogPattern("terminated with exception: ", r"terminated with exception: (?P<what>.+)", beside=True)
_GPU = re.compile(r"CUDA error: (?:an illegal|device-side|misaligned|unspecified)")


def diagnose(case: Case) -> Diagnosis | None:
    """Match torch's text, torchrun's and Python's."""
    hit = case.first(_WORKER) or case.first(_PROCESS, _TORCHRUN, _PYTHON)
    if hit is None and case.exit_code != EXIT_SIGABRT:
        return None
    if (hit is None or "worker" not in hit.text) and case.first(*WATCHDOG) is not None:
        return None  # NCCL's watchdog ends its own rank so
    who = "a DataLoader worker" if hit is not None and "worker" in hit.text else "a process of the job"
    said = case.hits(_WHAT, _THREAD)
    what = said[-1].match["what"].strip() if said else ""
    fix = (
        "look at the lines above it (terminate called, free(), an assertion), run once with env: "
        '{PYTHONFAULTHANDLER: "1"} and data_loader.num_workers 0; /dev/shm and memory are not it'
    )
    if _GPU.search(what):
        fix = (
            "run once with env: {CUDA_LAUNCH_BLOCKING: '1'}: the line that is then told is the one whose kernel failed"
        )
    return Diagnosis(
        CODE,
        NAME,
        f"{who} called abort(): native code gave up" + (f": {what}" if what else ""),
        seen(hit or "exit code 134, which is 128 + SIGABRT", said[-1] if said else None),
        fix,
    )
