from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.exit_codes import EXIT_SIGSEGV

CODE = "TL613"
NAME = "worker-segfault"
_WORKER = LogPattern(" fault", r"segmentation fault encountered in worker|killed by signal: Segmentation fault")
_TRAP = LogPattern("illed", r"killed by signal: (?:Floating point exception|Illegal instruction|Trace)")
_PROCESS = LogPattern("SIG", r"Signal 11 \(SIGSEGV\)|signal SIGSEGV|exitcode *: *-11\b")
_TORCHRUN = LogPattern("exitcode", r"\bexitcode *[:=] *-11\b")
_DEEPSPEED = LogPattern("return code = -", r"exits with return code = -11\b")
_PYTHON = LogPattern(
    " fault",
    r"Fatal Python error: Segmentation fault|^Segmentation fault(?: \(core dumped\))?\s*$|: line \d+: +\d+ Seg",
)


def diagnose(case: Case) -> Diagnosis | None:
    """Match torch's, torchrun's and Python's texts, and exit code 139."""
    worker = case.first(_WORKER, _TRAP)
    process = case.first(_PROCESS, _TORCHRUN, _DEEPSPEED, _PYTHON)
    if worker:
        return Diagnosis(
            CODE,
            NAME,
            "a DataLoader worker crashed in native code, often a handle (LMDB, HDF5, cv2) opened before the fork",
            seen(worker),
            "open the handle inside the worker, at first use in __getitem__",
        )
    if process or case.exit_code == EXIT_SIGSEGV:
        shown = seen(process or "exit code 139, which is 128 + SIGSEGV")
        return Diagnosis(
            CODE,
            NAME,
            "the job crashed in native code",
            shown,
            'set env: {PYTHONFAULTHANDLER: "1"} and run again for a traceback',
        )
    return None
