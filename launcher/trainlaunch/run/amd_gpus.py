"""What can be known about this host's AMD GPUs before a job starts: their device nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trainlaunch.container.engine_options import gpu_devices
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.plan.launch_plan import LaunchPlan

NO_GPU = "TL505"
INSTALL_AMDGPU = "install the amdgpu driver until /dev/kfd is there, or add `--set resources.gpus=0`"
AMD = "0x1002"  # its number as a PCI vendor


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
        if not vendor.is_file() or vendor.read_text().strip() == AMD:
            found.append(int(node.name.removeprefix("renderD")) - 128)
    return sorted(found)


def _no_gpu(plan: LaunchPlan, message: str, *, why: str, fix: str) -> Diagnostic:
    span = plan.job.span("resources.gpus")
    return Diagnostic(NO_GPU, message, fix, why=why, span=span, field="resources.gpus")
