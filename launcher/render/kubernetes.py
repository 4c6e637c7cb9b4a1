"""The kubernetes target's text: the objects of one kind around one pod template, in the order of their creation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from launcher.job.reserved import CLUSTER_HOME, KUEUE_QUEUE_LABEL
from launcher.job.spec import JobSpec, Mount, numeric_user, secret_path
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
# Kubeflow's controllers look for the training container by its name.
CONTAINER_NAMES = {"trainjob": "node", "pytorchjob": "pytorch"}
OWN_CONTAINER_NAME = "train"
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
LOCAL_ADDRESS = "PET_LOCAL_ADDR"  # torchrun's
_RECORDS_ONLY = "trap 'exit 0' EXIT # something acts on readiness here, so this check only records\n"


class Volume(NamedTuple):
    """A pod volume and its one mount.

    `source` is the claim, the ConfigMap, the Secret's name/key, or the size of a volume that lies in memory.
    """

    name: str
    type: str
    source: str | None
    target: str
    read_only: bool


class Security(NamedTuple):
    """Whose the processes and volumes of a pod are; None leaves it to the image, or the volume as it is."""

    uid: int | None
    gid: int | None
    fs_group: int | None
    restricted: bool
    seccomp: bool


def kubernetes_text(plan: LaunchPlan, *, base: Path | None) -> str:
    """Return the manifest of the kind that the job names; `base` is the folder that it will lie in."""
    job, name = plan.job, kubernetes_name(plan)
    container = container_of(plan)
    labels = kubernetes_labels(plan, container.labels)
    kind = job.kubernetes.kind
    return template_text(
        f"kubernetes/{kind}.yaml.j2",
        header=header_lines(plan, base=base),
        job=job,
        platform=job.kubernetes,
        container=container,
        container_name=CONTAINER_NAMES.get(kind, OWN_CONTAINER_NAME),
        name=name,
        nodes=job.nodes,
        gang=job.nodes > 1,
        subdomain=name if kind == "job" and job.nodes > 1 else None,
        labels=labels,
        queue_label=KUEUE_QUEUE_LABEL,
        pod_annotations={**job.annotations, **job.kubernetes.annotations},
        env=dict(container.env) | missing_identity(plan),
        local_address=needs_local_address(job),
        security=security(job),
        stated_security=security(job)[:3] != (None, None, None) or security(job).seccomp or bool(job.group_add),
        tolerations=list(tolerations(plan)),
        pull_policy=PULL_POLICIES[job.pull_policy],
        requests=kubernetes_resources(plan),
        limits=kubernetes_limits(plan),
        volumes=list(kubernetes_volumes(plan)),
        health=readiness_text(job, container.health),
        start_period=format_duration(job.healthcheck.start_period),
        backoff_limit=job.max_attempts - 1 if kind == "job" else 0,
        deadline_of_pods=kind == "jobset" and job.active_deadline is not None,
    )


def security(job: JobSpec) -> Security:
    """Return the ids that the pod states: always under `restricted`, else those that the job asks for."""
    platform = job.kubernetes
    restricted = platform.pod_security == "restricted"
    uid, gid = numeric_user(job.user) or (1000, 1000)
    if not restricted and job.user is None:
        return Security(None, None, platform.fs_group, False, platform.pod_security != "privileged")
    fs_group = platform.fs_group if platform.fs_group is not None or not uid else 1000
    stated_gid = gid if restricted or ":" in str(job.user) else None
    return Security(uid, stated_gid, fs_group, restricted, platform.pod_security != "privileged")


def needs_own_home(job: JobSpec) -> bool:
    """Return whether the processes have a uid that the image need not know."""
    return bool(security(job).uid)


def needs_local_address(job: JobSpec) -> bool:
    """Return whether torchrun must be told by which address the other nodes reach it: a node's name may not do."""
    stated = LOCAL_ADDRESS in {*job.env, *job.secrets}
    return job.nodes > 1 and job.kubernetes.host_network and not stated


def missing_identity(plan: LaunchPlan) -> dict[str, str]:
    """Return the variables of a home and its caches that the job doesn't set itself."""
    if not needs_own_home(plan.job):
        return {}
    return {name: value for name, value in IDENTITY.items() if name not in {*plan.job.env, *plan.job.secrets}}


def readiness_text(job: JobSpec, health: str) -> str:
    """Return the readiness command: the health check, which must not fail where readiness decides about the job.

    A queue evicts what is not ready, and a pod that is not ready drops out of the names that its peers look up.
    """
    acted_upon = job.nodes > 1 or job.kubernetes.queue or job.kubernetes.kind not in {"job", "pod"}
    return _RECORDS_ONLY + health if acted_upon else health


def tolerations(plan: LaunchPlan) -> Iterator[Mapping[str, object]]:
    """Yield what GPU nodes are tainted with, the resource's own name and its vendor's, then the job's own."""
    if plan.gpus.count:
        resource = plan.job.resources.gpu_resource
        for key in dict.fromkeys((resource, f"{resource.partition('/')[0]}/gpu")):
            yield {"key": key, "operator": "Exists", "effect": "NoSchedule"}
    yield from plan.job.kubernetes.tolerations


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


def kubernetes_limits(plan: LaunchPlan) -> dict[str, str]:
    """Return the container's limits: its requests, without CPUs where `kubernetes.cpu_limit` is false."""
    limited = plan.job.kubernetes.cpu_limit
    return {name: value for name, value in kubernetes_resources(plan).items() if limited or name != "cpu"}


def kubernetes_volumes(plan: LaunchPlan) -> Iterator[Volume]:
    """Yield the pod's volumes, /dev/shm first."""
    yield Volume("shm", "shm", kubernetes_size(plan.shm.size.value), "/dev/shm", False)
    if needs_own_home(plan.job):
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
