"""The kubernetes target's text: one Pod, or one Job of one pod, that Pod Security `restricted` accepts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from launcher.job.reserved import CLUSTER_HOME
from launcher.job.spec import Mount, numeric_user, secret_path
from launcher.plan.launch_plan import LaunchPlan
from launcher.render.container import container_of
from launcher.render.header import header_lines
from launcher.render.secrets import mounted_secrets
from launcher.render.spelling import (
    kubernetes_cpus,
    kubernetes_labels,
    kubernetes_name,
    kubernetes_size,
    needs_own_tmp,
)
from launcher.render.templates import template_text
from launcher.units import format_duration

PULL_POLICIES = {"always": "Always", "missing": "IfNotPresent", "never": "Never"}
# A uid that the image doesn't know has no home and no name: getpass.getuser() raises, which PyTorch's Inductor calls.
IDENTITY = {
    "HOME": CLUSTER_HOME,
    "USER": "trainlaunch",
    "LOGNAME": "trainlaunch",
    "XDG_CACHE_HOME": f"{CLUSTER_HOME}/.cache",
    "TORCHINDUCTOR_CACHE_DIR": f"{CLUSTER_HOME}/.cache/torchinductor",
    "TRITON_CACHE_DIR": f"{CLUSTER_HOME}/.cache/triton",
    "MPLCONFIGDIR": f"{CLUSTER_HOME}/.cache/matplotlib",
}


class Volume(NamedTuple):
    """A pod volume and its one mount.

    `source` is the claim, the ConfigMap, the Secret's name/key, or the size of a volume that lies in memory.
    """

    name: str
    type: str
    source: str | None
    target: str
    read_only: bool


def kubernetes_text(plan: LaunchPlan, *, base: Path | None) -> str:
    """Return the manifest of the kind that the job names; `base` is the folder that it will lie in."""
    job = plan.job
    container = container_of(plan)
    uid, gid = numeric_user(job.user) or (1000, 1000)
    return template_text(
        f"kubernetes/{job.kubernetes.kind}.yaml.j2",
        header=header_lines(plan, base=base),
        job=job,
        container=container,
        name=kubernetes_name(plan),
        labels=kubernetes_labels(plan, container.labels),
        env=dict(container.env) | missing_identity(plan),
        uid=uid,
        gid=gid,
        gpu_count=plan.gpus.count,
        pull_policy=PULL_POLICIES[job.pull_policy],
        resources=kubernetes_resources(plan),
        volumes=list(kubernetes_volumes(plan)),
        start_period=format_duration(job.healthcheck.start_period),
    )


def missing_identity(plan: LaunchPlan) -> dict[str, str]:
    """Return the variables of a home and its caches that the job doesn't set itself."""
    return {name: value for name, value in IDENTITY.items() if name not in {*plan.job.env, *plan.job.secrets}}


def kubernetes_resources(plan: LaunchPlan) -> dict[str, str]:
    """Return what the container requests, also its limit: devices may not differ, memory and CPUs are planned for."""
    asked = plan.job.resources
    named: dict[str, str] = {}
    if asked.cpus is not None:
        named["cpu"] = kubernetes_cpus(asked.cpus)
    if plan.memory.limit is not None:
        named["memory"] = kubernetes_size(plan.memory.limit)
    if asked.ephemeral_storage is not None:
        named["ephemeral-storage"] = kubernetes_size(asked.ephemeral_storage)
    if plan.gpus.count:
        named[asked.gpu_resource] = str(plan.gpus.count)
    return named | {name: str(count) for name, count in asked.extended.items()}


def kubernetes_volumes(plan: LaunchPlan) -> Iterator[Volume]:
    """Yield the pod's volumes, /dev/shm first."""
    yield Volume("shm", "shm", kubernetes_size(plan.shm.size.value), "/dev/shm", False)
    yield Volume("home", "scratch", None, CLUSTER_HOME, False)
    if needs_own_tmp(plan):
        yield Volume("tmp", "scratch", None, "/tmp", False)
    for index, mount in enumerate(plan.job.mounts):
        yield Volume(f"mount-{index}", mount.type, _source(plan, mount), mount.target, mount.read_only)
    for index, (name, secret) in enumerate(mounted_secrets(plan)):
        yield Volume(f"secret-{index}", "secret", secret.kubernetes, secret_path(name), True)


def _source(plan: LaunchPlan, mount: Mount) -> str | None:
    """Return what the volume refers to; a tmpfs gets the memory limit as its size, all that it can ever use."""
    if mount.type == "tmpfs" and plan.memory.limit is not None:
        return kubernetes_size(plan.memory.limit)
    return mount.source
