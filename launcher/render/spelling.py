"""How targets spell the plan's sizes, paths and names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from launcher.job.reserved import KUBERNETES_LABEL_PREFIX, LABEL_PREFIX, SECRETS_FOLDER
from launcher.job.spec import Mount
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.names import longest_cluster_name, shortened
from launcher.render.secrets import written_secrets
from launcher.units import MIB


def docker_size(size: int) -> str:
    """Return `size` bytes as Docker and Compose read them: `512m`, or plain bytes where that is not exact."""
    return f"{size // MIB}m" if size % MIB == 0 else str(size)


def kubernetes_size(size: int) -> str:
    """Return `size` bytes as a Kubernetes quantity: `512Mi`, or plain bytes where that is not exact."""
    return f"{size // MIB}Mi" if size % MIB == 0 else str(size)


def kubernetes_cpus(milli: int) -> str:
    """Return thousandths of a CPU as a Kubernetes quantity in its own canonical form: `2`, `1500m`."""
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def kubernetes_name(plan: LaunchPlan) -> str:
    """Return `metadata.name`, short enough for the names that controllers make from it.

    The template of a Job, or of what makes one, can't change in the cluster, so its name carries the input hash unless
    `--name` fixed it.
    """
    kind = plan.job.kubernetes.kind
    name = shortened(plan.name, longest_cluster_name(kind, plan.job.nodes, fixed=plan.name_fixed))
    return name if kind == "pod" or plan.name_fixed else f"{name}-{plan.input}"


def kubernetes_labels(plan: LaunchPlan, labels: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return `labels` as Kubernetes spells them: ours under `trainlaunch.dev/`, and the two that its tools look for."""
    known = {"app.kubernetes.io/name": plan.job.name, "app.kubernetes.io/managed-by": "trainlaunch"}
    return known | {_kubernetes_key(key): value for key, value in labels}


def _kubernetes_key(key: str) -> str:
    if not key.startswith(LABEL_PREFIX):
        return key
    return KUBERNETES_LABEL_PREFIX + key.removeprefix(LABEL_PREFIX)


def bind_source(plan: LaunchPlan, mount: Mount, base: Path | None) -> str:
    """Return a bind's host path; a relative one starts with a dot, seen from `base` (None: the job file's folder)."""
    return host_source(plan, mount.source or ".", base)


def host_source(plan: LaunchPlan, source: str, base: Path | None) -> str:
    """Return a path of this machine as `bind_source` returns a bind's."""
    if source.startswith("/"):
        return source
    if base is not None:
        source = os.path.relpath(Path(plan.job.path).parent / source, base)
    source = os.path.normpath(source)
    return source if source == "." or source.startswith("../") or source == ".." else f"./{source}"


def has_relative_bind(plan: LaunchPlan) -> bool:
    """Return whether the text depends on the folder that it is run in, by a bind or the file of a secret."""
    sources = [mount.source or "." for mount in plan.job.mounts if mount.type == "bind"]
    if plan.target != "kubernetes":
        sources += [each.file for each in plan.job.secrets.values() if each.file is not None]
    return any(not source.startswith("/") for source in sources)


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


def needs_own_tmp(plan: LaunchPlan) -> bool:
    """Return whether the root is read-only and the job mounts nothing of its own on /tmp."""
    return plan.job.read_only and "/tmp" not in set(_targets(plan))


def _targets(plan: LaunchPlan) -> Iterator[str]:
    return (os.path.normpath(mount.target) for mount in plan.job.mounts)
