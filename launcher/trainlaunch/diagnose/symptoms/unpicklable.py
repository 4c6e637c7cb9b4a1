from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL650"
NAME = "unpicklable"
_CANT = LogPattern(
    "Error: ",
    r"(?:Error: )(?:Can't pickle|Can't get local object|cannot pickle|can't pickle|Can't get attribute '[^']+' on <)",
)
_TYPE = LogPattern("PicklingError")
_SENDS = r"multiprocessing/|popen_|DataLoader|_feed|ForkingPickler|reduction\.py|dataloader\.py|spawn"


def diagnose(case: Case) -> Diagnosis | None:
    """Match pickle's texts where processes are started or fed."""
    hit = case.first(_CANT, _TYPE, within=_SENDS) or case.first(_CANT, _TYPE)
    if hit is None:
        return None
    fed = hit.within(r"queues\.py.*_feed")
    hung = "; the batch is lost, and the run is hung" if fed and case.exit_code is None else ""
    return Diagnosis(
        CODE,
        NAME,
        f"something that is sent to or from a DataLoader worker can't be pickled{hung}",
        seen(hit),
        "define functions at the top of a module in the place of lambdas and local functions, and "
        "open files and handles "
        "in the worker; multiprocessing_context fork needs no pickle of the dataset",
    )


def in_feeder(case: Case) -> bool:
    """Whether a worker's feeder thread met it, which prints it, drops the batch, and goes on."""
    return case.first(_CANT, _TYPE, within=r"queues\.py.*\b_feed\b") is not None
