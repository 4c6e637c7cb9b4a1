"""Whether this host's /dev/shm can hold what a job needs."""

from __future__ import annotations

import os
from collections.abc import Iterator

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.shared_memory import WHEN_FULL
from trainlaunch.run.base.run_evidence import workers_advice
from trainlaunch.run.base.shm_place import way_to_enlarge
from trainlaunch.run.base.shm_reading import SHM
from trainlaunch.units import MIB, counted, human_size, needed_size, round_up

TOO_SMALL = "TL517"


def shm_findings(plan: LaunchPlan, tasks: int = 1) -> Iterator[Diagnostic]:
    """Yield an error where the whole of /dev/shm is less than a peak that is known, of `tasks` that share it (TL517).

    What others use of it now is left to the preflight, which looks at the last moment.
    """
    found = os.statvfs(SHM)
    size, need = found.f_blocks * found.f_frsize, plan.shm.need * tasks
    if plan.shm.unsized or not size or size >= need:
        return
    mib = round_up(max(need, plan.shm.size.value * tasks), MIB) // MIB
    each = f" for each of {counted(tasks, 'task')} here" * (tasks > 1)
    fewer = workers_advice(plan.job, by_run=plan.by_run).lower()
    yield Diagnostic(
        TOO_SMALL,
        f"/dev/shm has {human_size(size)}, and the job's one-epoch peak is {needed_size(plan.shm.need)}{each}",
        f"{way_to_enlarge(mib)}; or {fewer}, prefetch_factor or batch_size",
        why=f"DataLoader workers pass batches through it; {WHEN_FULL}",
        span=plan.job.span("data_loader"),
    )
