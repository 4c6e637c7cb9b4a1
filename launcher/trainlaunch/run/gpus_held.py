"""Which GPUs of a machine a run has, as its record says it: `0,1`, `GPU-…`, `all`, `amd:0`; empty for none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainlaunch.gpu_names import ALL_GPUS
from trainlaunch.plan.launch_plan import LaunchPlan

GPUS = "gpus"  # the key of a run's label and record
AMD = "amd:"  # in front of the numbers of AMD's GPUs, which are counted apart from NVIDIA's
_RENDER_NODE = "/dev/dri/renderD"


def held_by(plan: LaunchPlan) -> str:
    """Return the GPUs that a plan's containers get on one machine, as a run's record has them; `` for none."""
    gpus, amd = plan.gpus, plan.job.resources.gpu_vendor == "amd"
    numbers = gpus.ids or tuple(map(str, range(gpus.count * plan.nodes)))
    if gpus.all:
        numbers = (ALL_GPUS,)
    if gpus and not plan.target_record.starts_container:
        from trainlaunch.run.local.process_spec import visible_gpus  # the shell's own variables count there

        numbers = visible_gpus(plan) or (ALL_GPUS,)
    return ",".join(f"{AMD}{each}" if amd else each for each in numbers)


def held_in(host: Mapping[str, Any]) -> str:
    """Return the same of a container whose text was started without `up`, by the engine's HostConfig."""
    found: list[str] = []
    for request in host.get("DeviceRequests") or ():
        if any("gpu" in each for each in request.get("Capabilities") or ()):
            count = request.get("Count") or 0
            found += request.get("DeviceIDs") or ([ALL_GPUS] if count < 0 else map(str, range(count)))
    for device in host.get("Devices") or ():
        path = str(device.get("PathOnHost"))
        number = path.removeprefix(_RENDER_NODE)
        if path == "/dev/dri":
            found.append(f"{AMD}{ALL_GPUS}")
        elif path != number and number.isdecimal():
            found.append(f"{AMD}{int(number) - 128}")
    return ",".join(found)
