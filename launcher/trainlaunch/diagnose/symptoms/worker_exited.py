from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL643"
NAME = "worker-exited"
_EXITED = LogPattern("DataLoader worker", r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) exited unexpectedly")
_CODE = LogPattern("DataLoader worker", r"exited unexpectedly with exit code (\d+)")


def diagnose(case: Case) -> Diagnosis | None:
    """Match torch's texts for a worker that is gone."""
    hit = case.first(_CODE) or case.first(_EXITED)
    if hit is None:
        return None
    return Diagnosis(
        CODE,
        NAME,
        "a DataLoader worker ended by itself, with no signal that torch saw; its own words, if any, stand above",
        seen(hit),
        "look above for the first traceback of a worker, and run once with data_loader.num_workers 0; with "
        "multiprocessing_context spawn or forkserver look for a missing `if __name__ == '__main__':`",
        LIKELY,
    )
