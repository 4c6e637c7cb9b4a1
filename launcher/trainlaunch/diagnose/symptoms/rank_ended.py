from __future__ import annotations

from trainlaunch.diagnose.base.account import is_echo
from trainlaunch.diagnose.base.case import LIKELY, Case, Diagnosis, EvidenceLine, seen

CODE = "TL672"
NAME = "rank-ended"


def diagnose(case: Case) -> Diagnosis | None:
    """Match torchrun's summary where the rank's own words are missing; a signal is another symptom's."""
    failed, raised = case.account.failed, case.raised
    if failed is None or failed.code <= 0 or (raised is not None and not is_echo(raised)):
        return None
    return Diagnosis(
        CODE,
        NAME,
        f"rank {failed.rank} ended first, by itself with exit code {failed.code}; what it said is not in this log",
        seen(EvidenceLine("log", failed.line, failed.text.strip())),
        "look at that rank's own output: start torchrun with `--tee 3 --log-dir DIR` (or look into its --log-dir), or "
        "put "
        "`@record` of torch.distributed.elastic.multiprocessing.errors on main(); the other ranks' errors are its "
        "echoes",
        LIKELY,
    )
