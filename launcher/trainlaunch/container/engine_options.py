"""What an engine gives a container beside its mounts: device nodes, and file systems in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator

from trainlaunch.container.secret_delivery import written_secrets
from trainlaunch.job.reserved import SECRETS_FOLDER
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.units import docker_size


def gpu_devices(plan: LaunchPlan) -> tuple[str, ...]:
    """Return the device nodes of an AMD job's GPUs; none for NVIDIA's, which the engine's own runtime brings.

    /dev/kfd is shared by all GPUs, and each has a render node, numbered from 128 on.
    """
    gpus = plan.gpus
    if plan.job.resources.gpu_vendor != "amd" or not gpus:
        return ()
    if gpus.all:
        return ("/dev/kfd", "/dev/dri")
    numbers = map(int, gpus.ids) if gpus.ids else range(gpus.count)
    return ("/dev/kfd", *(f"/dev/dri/renderD{128 + number}" for number in numbers))


def tmpfs_options(plan: LaunchPlan) -> dict[str, str]:
    """Return the options of an engine's tmpfs mounts by target.

    One that the job asks for may hold programs, and as much as the memory limit, all that it can ever use: the engine
    would mount it without execution and with half of the host's memory, Kubernetes does neither.
    """
    options = {"/tmp": "exec"} if needs_own_tmp(plan) else {}
    if written_secrets(plan):
        options[SECRETS_FOLDER] = "mode=1777"
    size = "" if plan.memory.limit is None else f",size={docker_size(plan.memory.limit)}"
    for mount in plan.job.mounts:
        if mount.type == "tmpfs":
            options[mount.target] = f"exec{size}"
    return options


def needs_own_tmp(plan: LaunchPlan) -> bool:
    """Return whether the root is read-only and the job mounts nothing of its own on /tmp."""
    return plan.job.read_only and "/tmp" not in set(_targets(plan))


def _targets(plan: LaunchPlan) -> Iterator[str]:
    return (os.path.normpath(mount.target) for mount in plan.job.mounts)
