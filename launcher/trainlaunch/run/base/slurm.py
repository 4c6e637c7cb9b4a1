"""The allocation of Slurm that this process is in, as srun and sbatch tell it: variables, whatever a site enforces.

A task of a step has its share; a batch script, which is no task, has all that the job has on its node.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from trainlaunch.plan.target_names import shortened
from trainlaunch.units import MIB

_COUNT = re.compile(r"(\d+)(?:\(x(\d+)\))?")  # of SLURM_TASKS_PER_NODE: `2(x3),1`
_BATCH_STEPS = 0xFFFFFFF0  # from here on Slurm numbers what is no step of srun's


class SlurmTask(NamedTuple):
    """One task of a step, or a batch script as the only one; `rank` counts over all nodes.

    `tasks_here` are those of this step on this node, which share its /dev/shm. `cpus` and `memory` (bytes) are this
    task's share, None where nothing tells.
    """

    job: str
    rank: int
    tasks: int
    tasks_here: int
    cpus: int | None
    memory: int | None


def slurm_task(env: Mapping[str, str] = os.environ) -> SlurmTask | None:
    """Return the task that this process is, or was started by; None outside of an allocation's own nodes."""
    job, node = env.get("SLURM_JOB_ID", ""), env.get("SLURM_NODEID")
    if not re.fullmatch(r"\d+", job) or node is None:  # a shell of salloc is elsewhere, and has no node
        return None
    step = _number(env, "SLURM_STEP_ID")
    in_step = step is not None and step < _BATCH_STEPS
    here = _tasks_here(env, _number(env, "SLURM_NODEID") or 0) if in_step else 1
    cpus = _cpus(env, here, in_step=in_step)
    return SlurmTask(
        job,
        (_number(env, "SLURM_PROCID") or 0) if in_step else 0,
        (_number(env, "SLURM_STEP_NUM_TASKS") or _number(env, "SLURM_NTASKS") or 1) if in_step else 1,
        here,
        cpus,
        _memory(env, here, cpus),
    )


def name_of_task(name: str) -> str:
    """Return a run's name that no other task of this node and no other job of Slurm's gives; outside, the same."""
    task = slurm_task()
    if task is None:
        return name
    return f"{shortened(name, 40)}-{task.job}" + f"-{task.rank}" * (task.tasks > 1)


def _cpus(env: Mapping[str, str], tasks_here: int, *, in_step: bool) -> int | None:
    """Return a task's CPUs: SLURM_CPUS_PER_TASK may be the batch script's, and more than a later step has."""
    on_node = _number(env, "SLURM_CPUS_ON_NODE")
    known = [None if on_node is None else max(1, on_node // tasks_here)]
    known += [_number(env, "SLURM_CPUS_PER_TASK")] if in_step else []
    return min((each for each in known if each), default=None)


def _memory(env: Mapping[str, str], tasks_here: int, cpus: int | None) -> int | None:
    """Return a task's bytes; Slurm counts MiB, and 0 is all that the node has."""
    of_node, of_cpu = _number(env, "SLURM_MEM_PER_NODE"), _number(env, "SLURM_MEM_PER_CPU")
    if of_node:
        return of_node * MIB // tasks_here
    return of_cpu * cpus * MIB if of_cpu and cpus else None


def _tasks_here(env: Mapping[str, str], node: int) -> int:
    told = env.get("SLURM_STEP_TASKS_PER_NODE") or env.get("SLURM_TASKS_PER_NODE") or ""
    counts = [int(count) for count, times in _COUNT.findall(told) for _ in range(int(times or 1))]
    return max(1, counts[node]) if node < len(counts) else 1


def _number(env: Mapping[str, str], name: str) -> int | None:
    text = env.get(name, "")
    return int(text) if re.fullmatch(r"\d{1,12}", text) else None
