"""What a run that measures has other than the job: a /dev/shm as large as its limits allow, one attempt, its own name.

No run of the job has that name, so neither stands in the other's way.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from trainlaunch.kinds import JOB
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.units import MIB

MAX_NAME = 40  # of the job, before what says that it measures
GRACE = 10  # seconds: nothing that a measured script would still save is wanted
PREPARES = 1800  # seconds that a script may take to its first batch


def measuring_name(job: str, verb: str) -> str:
    """Return a new name for a run of `job` that measures: digits-probe-3f9a."""
    return f"{job[:MAX_NAME].rstrip('-')}-{verb}-{secrets.token_hex(2)}"


def measuring_sets(plan: LaunchPlan, name: str, *, seconds: float, host_memory: int) -> tuple[str, ...]:
    """Return, as --set takes them, what such a run called `name` has other than the job whose `plan` this is.

    `seconds` is how long it measures, `host_memory` the bytes of this machine, for a job without a limit.
    """
    return tuple(f"{field}={value}" for field, value in _fields(plan, name, seconds, host_memory))


def _fields(plan: LaunchPlan, name: str, seconds: float, host_memory: int) -> Iterator[tuple[str, object]]:
    job = plan.job
    yield "name", name
    yield "restart", "{max_attempts: 1}"
    if job.stop_grace_period > GRACE:
        yield "stop_grace_period", f"{GRACE}s"
    if job.active_deadline is None:
        yield "active_deadline", f"{PREPARES + int(seconds)}s"
    if plan.target_record.private_shm:
        yield "shm_size", _largest_shm(plan, host_memory)
    if plan.nodes > 1:
        yield "torchrun.nnodes", 1
    if job.kind is not None and job.kind.controller:  # whose pods come late, and are several
        yield "kubernetes.kind", JOB.word


def _largest_shm(plan: LaunchPlan, host_memory: int) -> int:
    """Return the largest /dev/shm that memory limit and policy allow: it costs nothing until it is used."""
    memory = plan.job.resources.memory
    most = memory - 1 if memory else max(plan.shm.size.value, host_memory // 2)
    ceiling = plan.job.ceiling("shm_size")
    return min(most, ceiling.value if ceiling else most) // MIB * MIB
