"""Checks what a Compose file does not support."""

from __future__ import annotations

from trainlaunch.gpu_names import ALL_GPUS
from trainlaunch.job.validation.context import ValidationContext, cannot
from trainlaunch.job.validation.engines import ENGINE_MOUNTS, check_engine
from trainlaunch.job.validation.shared import check_shared, nodes_of


def check(job: ValidationContext) -> None:
    """Report each field of the job file that a Compose file has no key for."""
    check_shared(job, instead=ENGINE_MOUNTS)
    if nodes_of(job) > 1:
        _check_gpus_of_nodes(job, nodes_of(job))
    check_engine(job)


def _check_gpus_of_nodes(job: ValidationContext, nodes: int) -> None:
    """Report GPUs that two containers of one host would share."""
    gpus = job.value("resources.gpus")
    if gpus and job.value("resources.gpu_vendor") == "amd":
        cannot(
            job,
            "resources.gpu_vendor",
            f"GPUs of AMD for each of {nodes} nodes",
            fix="write target_overrides.compose.torchrun.nnodes: 1, with all GPUs for one node",
        )
    elif gpus is not None and (gpus.ids or gpus.all):
        asked = f"[{', '.join(gpus.ids)}]" if gpus.ids else ALL_GPUS
        cannot(
            job,
            "resources.gpus",
            f"GPUs {asked} for each of {nodes} nodes",
            why="all nodes run on one host, and NCCL refuses a GPU that two ranks share",
            fix=f"write how many each node gets, like gpus: {max(1, len(gpus.ids) // nodes)}",
        )
