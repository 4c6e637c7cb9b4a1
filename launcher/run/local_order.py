"""What a local run starts: the same preflight and variables as in a container, with this host's paths and programs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.job.host_paths import host_path
from launcher.job.spec import Gpus
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.ranks import torchrun_prefix
from launcher.render.preflight import preflight_text
from launcher.run.docker_body import bind_source, secret_value
from launcher.run.host_process import RUN_MARK

OWN_PREFIX = "TRAINLAUNCH_"
VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"


@dataclass(frozen=True, slots=True)
class Order:
    """A process to start. `env` is whole and holds secrets."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str


def order_of(plan: LaunchPlan, *, run_id: str, folder: Path) -> Order:
    """Return what to start for a plan; `run_id` is unique on this host, `folder` marks the run's processes."""
    env = _environment(plan, run_id=run_id, folder=folder)
    return Order(
        argv=("/bin/sh", "-c", preflight_text(plan), "trainlaunch", *_arguments(plan, env.get("PATH", ""))),
        env=env,
        cwd=working_dir(plan),
    )


def working_dir(plan: LaunchPlan) -> str:
    """Return the job's folder on this host: working_dir, mapped where it is below a bind, else the job file's own."""
    if plan.job.working_dir is None:
        return str(Path(plan.job.path).absolute().parent)
    return host_path(plan.job.working_dir, _binds(plan))


def _binds(plan: LaunchPlan) -> dict[str, str]:
    return {each.target: bind_source(plan, each) for each in plan.job.mounts if each.type == "bind"}


def _arguments(plan: LaunchPlan, path: str) -> tuple[str, ...]:
    if plan.job.command is None:
        return plan.argv
    own = len(torchrun_prefix(plan.job, plan.ranks.value))
    command = [host_path(each, _binds(plan)) for each in plan.argv[own:]]
    if command[0] == "python" and shutil.which("python", path=path) is None:
        command[0] = sys.executable
    return (*plan.argv[:own], *command)


def _environment(plan: LaunchPlan, *, run_id: str, folder: Path) -> dict[str, str]:
    """Return the shell's variables, ours, the job's, its secrets; each wins over those before it."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(OWN_PREFIX)}
    # Last on PATH: `python` and `torchrun` of trainlaunch's own environment, where no other has them.
    inherited["PATH"] = os.pathsep.join(filter(None, [inherited.get("PATH", os.defpath), _own_programs()]))
    return {
        **inherited,
        **_gpu_variables(plan.gpus, inherited),
        f"{OWN_PREFIX}RUN_ID": run_id,
        **plan.job.env,
        **{name: secret_value(name, secret) for name, secret in plan.job.secrets.items()},
        RUN_MARK: str(folder),
    }


def _own_programs() -> str:
    return str(Path(sys.executable).parent) if sys.executable else ""


def _gpu_variables(gpus: Gpus, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that give the job the GPUs that it asks for and no other, as a container would."""
    if gpus.all:
        return {}
    numbers = tuple(str(number) for number in range(gpus.count))
    given = tuple(filter(None, inherited.get(VISIBLE, ",".join(numbers)).split(",")))
    visible = {VISIBLE: ",".join(gpus.ids or given[: gpus.count])}
    # By default CUDA numbers GPUs by speed; the numbers of nvidia-smi and of the engines are those of the bus.
    counted_by_us = all(each.isdigit() for each in gpus.ids) if gpus.ids else VISIBLE not in inherited
    return visible | ({ORDER: "PCI_BUS_ID"} if gpus and counted_by_us else {})
