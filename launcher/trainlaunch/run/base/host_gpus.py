"""This host's GPUs without their makers' tools: device nodes, ids, variables that show some, and the labels of runs.

A run's record says which GPUs of its machine it has: `0,1`, `GPU-…`, `all`, `amd:0`; empty for none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trainlaunch.container.engine_options import gpu_devices
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.gpu_names import ALL_GPUS
from trainlaunch.job.spec import Gpus
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.secret_values import environment

_UUID = re.compile(r"^GPU UUID:\s*(GPU-\S+)", re.MULTILINE)
NO_GPU = "TL505"
INSTALL_AMDGPU = "install the amdgpu driver until /dev/kfd is there, or add `--set resources.gpus=0`"
VISIBLE = "CUDA_VISIBLE_DEVICES"
AMD_VISIBLE = "HIP_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"
AMD_VENDOR = "0x1002"  # its number as a PCI vendor
GPUS = "gpus"  # the key of a run's label and record
AMD_PREFIX = "amd:"  # in front of the numbers of AMD's GPUs, which are counted apart from NVIDIA's
_RENDER_NODE = "/dev/dri/renderD"


def gpu_nodes(dev: Path = Path("/dev")) -> int | None:
    """Return how many GPUs have a device node; None on WSL, whose one node /dev/dxg stands for all."""
    if (dev / "dxg").exists():
        return None
    return sum(1 for each in dev.glob("nvidia*") if re.fullmatch(r"nvidia\d+", each.name))


def gpu_uuids(driver: Path = Path("/proc/driver/nvidia/gpus")) -> dict[str, str]:
    """Return the numbers of nvidia-smi and the engines, which follow the bus, by id; empty without a driver."""
    found = {}
    for number, folder in enumerate(sorted(driver.glob("*"))):
        try:
            told = _UUID.search((folder / "information").read_text())
        except OSError:
            continue
        if told:
            found[told[1]] = str(number)
    return found


def amd_findings(plan: LaunchPlan, *, dev: Path = Path("/dev"), sys: Path = Path("/sys")) -> Iterator[Diagnostic]:
    """Yield an error where a device node that the job is given is not there, or is another maker's (TL505)."""
    nodes = gpu_devices(plan)
    if not nodes:
        return
    asked = plan.gpus.words
    usable = amd_gpus(dev=dev, sys=sys)
    there = {f"/dev/dri/renderD{128 + number}" for number in usable}
    if not (dev / "kfd").exists() or not usable:
        missing = "/dev/kfd" if not (dev / "kfd").exists() else "/dev/dri/renderD128"
        yield _no_gpu(
            plan,
            f"resources.gpus is {asked} and this host has 0 AMD GPUs ({missing} is missing)",
            why="no amdgpu driver is loaded, or the machine has no AMD GPU",
            fix=INSTALL_AMDGPU,
        )
        return
    lacking = [each for each in nodes if each.startswith("/dev/dri/render") and each not in there]
    if lacking:
        few = f"[{', '.join(map(str, usable))}]"
        yield _no_gpu(
            plan,
            f"resources.gpus is {asked}, and {', '.join(lacking)} of this host is no AMD GPU or not there",
            why="GPU n is the render node 128 + n, and a count takes the first ones",
            fix=f"write gpus: {few}, the AMD GPUs that are here, or some of them",
        )


def amd_gpus(*, dev: Path = Path("/dev"), sys: Path = Path("/sys")) -> list[int]:
    """Return the numbers of this host's AMD GPUs, as `resources.gpus` names them: n is the render node 128 + n.

    A node whose maker the system doesn't tell is taken for AMD's.
    """
    found = []
    for node in dev.glob("dri/renderD*"):
        vendor = sys / "class" / "drm" / node.name / "device" / "vendor"
        if not vendor.is_file() or vendor.read_text().strip() == AMD_VENDOR:
            found.append(int(node.name.removeprefix("renderD")) - 128)
    return sorted(found)


def _no_gpu(plan: LaunchPlan, message: str, *, why: str, fix: str) -> Diagnostic:
    span = plan.job.span("resources.gpus")
    return Diagnostic(NO_GPU, message, fix, why=why, span=span, field="resources.gpus")


def gpu_variables(plan: LaunchPlan, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that give the job the GPUs that it asks for and no other, as a container would."""
    gpus, amd = plan.gpus, plan.job.resources.gpu_vendor == "amd"
    if gpus.all:
        return {}
    variable, ids = (AMD_VISIBLE, _hip_ids(gpus)) if amd else (VISIBLE, gpus.ids)
    numbers = tuple(str(number) for number in range(gpus.count))
    given = tuple(filter(None, inherited.get(variable, ",".join(numbers)).split(",")))
    visible = {variable: ",".join(ids or given[: gpus.count])}
    # By default CUDA numbers GPUs by speed; the numbers of nvidia-smi and of the engines are those of the bus.
    counted_by_us = all(each.isdigit() for each in gpus.ids) if gpus.ids else VISIBLE not in inherited
    return visible | ({ORDER: "PCI_BUS_ID"} if gpus and counted_by_us and not amd else {})


def visible_gpus(plan: LaunchPlan) -> tuple[str, ...] | None:
    """Return the GPUs that the variables leave a job, as `resources.gpus` names them; None where they leave all."""
    amd = plan.job.resources.gpu_vendor == "amd"
    inherited, variable = environment(), AMD_VISIBLE if amd else VISIBLE
    seen = {**inherited, **gpu_variables(plan, inherited), **plan.job.env}.get(variable)
    if seen is None:
        return None
    there = [str(each) for each in amd_gpus()] if amd else []
    named = [each.strip() for each in seen.split(",") if each.strip()]
    return tuple(there[int(each)] if each.isdecimal() and int(each) < len(there) else each for each in named)


def _hip_ids(gpus: Gpus) -> tuple[str, ...]:
    """Return the ids as HIP counts: AMD's GPUs alone, while a job's ids count the render nodes of every maker."""
    there = amd_gpus() if gpus.ids else []
    return tuple(str(there.index(int(each))) if int(each) in there else each for each in gpus.ids)


def held_by(plan: LaunchPlan) -> str:
    """Return the GPUs that a plan's containers get on one machine, as a run's record has them; `` for none."""
    gpus, amd = plan.gpus, plan.job.resources.gpu_vendor == "amd"
    numbers = gpus.ids or tuple(map(str, range(gpus.count * plan.nodes)))
    if gpus.all:
        numbers = (ALL_GPUS,)
    if gpus and not plan.target_record.starts_container:
        numbers = visible_gpus(plan) or (ALL_GPUS,)  # the shell's own variables count there
    return ",".join(f"{AMD_PREFIX}{each}" if amd else each for each in numbers)


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
            found.append(f"{AMD_PREFIX}{ALL_GPUS}")
        elif path != number and number.isdecimal():
            found.append(f"{AMD_PREFIX}{int(number) - 128}")
    return ",".join(found)
