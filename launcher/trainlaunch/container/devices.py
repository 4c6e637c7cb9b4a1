"""Device nodes that a container is given."""

from __future__ import annotations

from trainlaunch.plan.launch_plan import LaunchPlan


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
