"""Finds what starts a job's training processes, where its command does so itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainlaunch.job.starter import Count, Starter

_NAMES = ("torchrun", "torch.distributed", "accelerate", "deepspeed", "mpirun", "mpiexec")


def starter_of(command: Sequence[str] | None, script: str | None, env: Mapping[str, str]) -> Starter | None:
    """Return what starts the job's ranks, None where nothing known does; of several the one that starts most.

    `env` are the job's variables, whose PET_NPROC_PER_NODE torchrun reads where its options don't say.
    """
    text = "\n".join((*(command or ()), script or ""))
    if not any(name in text for name in _NAMES):
        return None
    from trainlaunch.job.starter_programs import calls_of  # most jobs have none

    return max(calls_of(command, script, env), key=lambda each: _weight(each.count), default=None)


def _weight(count: Count) -> tuple[int, int]:
    """Order calls by what they say: unknown outweighs any number, since it may be more."""
    if count is None:
        return 2, 0
    return (0, count) if isinstance(count, int) else (1, 0)
