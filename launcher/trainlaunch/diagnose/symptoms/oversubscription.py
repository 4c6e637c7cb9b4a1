from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, POSSIBLE, Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL662"
NAME = "oversubscription"
_TORCH = LogPattern(
    "This DataLoader will create",
    r"will create (?P<workers>\d{1,9}) worker processes in total\. Our suggested .{0,99} system is (?P<cpus>\d{1,9})\b",
    beside=True,
)


def diagnose(case: Case) -> Diagnosis | None:
    """Match torch's warning."""
    hit = case.first(_TORCH)
    if hit is None:
        return None
    workers, cpus = hit.match["workers"], hit.match["cpus"]
    sure = LIKELY if int(workers) >= 2 * int(cpus) else POSSIBLE
    return Diagnosis(
        CODE,
        NAME,
        f"{workers} DataLoader workers share {cpus} CPUs",
        seen(hit),
        f"set data_loader.num_workers to {cpus} or to auto, or raise resources.cpus",
        sure,
    )
