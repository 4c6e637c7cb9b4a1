"""What can be known about this host before a local run starts, and how it compares with what the job asks for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.gpu_names import ALL_GPUS
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.host_gpus import NO_GPU, amd_findings, gpu_nodes
from trainlaunch.run.base.secret_values import secret_findings
from trainlaunch.run.base.shm_reading import SHM
from trainlaunch.run.docker.checks import mount_findings
from trainlaunch.run.local.process_spec import working_dir
from trainlaunch.units import counted, format_cpus, format_size, human_size


def local_findings(plan: LaunchPlan) -> tuple[Diagnostic, ...]:
    """Return all that stops `plan` on this host; /dev/shm, memory and open files are left to the preflight."""
    if not sys.platform.startswith("linux"):
        return (_other_system(),)
    gpus = _gpus(plan) if plan.job.resources.gpu_vendor == "nvidia" else amd_findings(plan)
    return (*secret_findings(plan), *gpus, *mount_findings(plan), *_working_dir(plan))


def comparison(plan: LaunchPlan) -> str:
    """Return one sentence: what this host has, beside what the job states; nothing here enforces it."""
    asked = plan.job.resources
    shm = os.statvfs(SHM)
    parts = [
        _beside(counted(len(os.sched_getaffinity(0)), "CPU"), "resources.cpus", asked.cpus and format_cpus(asked.cpus)),
        _beside(
            f"{human_size(host_memory())} of memory", "resources.memory", asked.memory and format_size(asked.memory)
        ),
        _beside(f"/dev/shm of {human_size(shm.f_blocks * shm.f_frsize)}", "shm_size", format_size(plan.shm.size.value)),
    ]
    short = [
        name
        for name, there, wanted in (
            ("resources.cpus", len(os.sched_getaffinity(0)) * 1000, asked.cpus or 0),
            ("resources.memory", host_memory(), asked.memory or 0),
        )
        if wanted > there
    ]
    return f"this host has {', '.join(parts)}" + f"; that is less than {' and '.join(short)}" * bool(short)


def _beside(there: str, field: str, asked: str | int | None) -> str:
    return f"{there} ({field} {asked})" if asked else there


def host_memory() -> int:
    """Return the bytes of memory that this host has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _gpus(plan: LaunchPlan) -> Iterator[Diagnostic]:
    there = gpu_nodes()
    wanted = 1 if plan.gpus.all else plan.gpus.count
    if there is not None and wanted > there:
        asked = ALL_GPUS if plan.gpus.all else wanted
        fix = f"add `--set resources.gpus={there}`, or run it where they are"
        yield Diagnostic(
            code=NO_GPU,
            message=f"resources.gpus is {asked} and this host has {counted(there, 'GPU device')}",
            why="each NVIDIA GPU has a device node, /dev/nvidia0 and on",
            fix=fix if there else f"install the NVIDIA driver until `nvidia-smi` lists a GPU, or {fix}",
            span=plan.job.span("resources.gpus"),
            field="resources.gpus",
        )


def _working_dir(plan: LaunchPlan) -> Iterator[Diagnostic]:
    folder = working_dir(plan)
    if not Path(folder).is_dir():
        yield Diagnostic(
            code="TL513",
            message=f"working_dir {plan.job.working_dir} is not a folder of this host"
            + f": it is {folder} here" * (folder != plan.job.working_dir),
            why="a container gets its working directory made; on a host it must be there",
            fix="write target_overrides.local.working_dir with a folder of this host, or null for the job file's",
            span=plan.job.span("working_dir"),
            field="working_dir",
        )


def _other_system() -> Diagnostic:
    return Diagnostic(
        code="TL512",
        message=f"target local needs Linux, and this is {sys.platform}",
        why="/dev/shm and /proc are Linux's own",
        fix="run it with `--target docker`, whose engine brings a Linux",
    )
