"""How targets spell the plan's sizes, paths and names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from launcher.job.reserved import KUBERNETES_LABEL_PREFIX, LABEL_PREFIX
from launcher.job.spec import Mount
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.names import LONGEST_NAME, shortened
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
    """Return `metadata.name`, at most 63 characters.

    A Job's template can't change in the cluster, so its name carries the input hash unless `--name` fixed it.
    """
    if plan.job.kubernetes.kind != "job" or plan.name_fixed:
        return shortened(plan.name, LONGEST_NAME)
    suffix = "-" + plan.input
    return shortened(plan.name, LONGEST_NAME - len(suffix)) + suffix


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
    source = mount.source or "."
    if source.startswith("/"):
        return source
    if base is not None:
        source = os.path.relpath(Path(plan.job.path).parent / source, base)
    source = os.path.normpath(source)
    return source if source == "." or source.startswith("../") or source == ".." else f"./{source}"


def has_relative_bind(plan: LaunchPlan) -> bool:
    """Return whether the text depends on the folder that it is run in."""
    return any(mount.type == "bind" and not (mount.source or ".").startswith("/") for mount in plan.job.mounts)


def needs_own_tmp(plan: LaunchPlan) -> bool:
    """Return whether the root is read-only and the job mounts nothing of its own on /tmp."""
    return plan.job.read_only and "/tmp" not in set(_targets(plan))


def _targets(plan: LaunchPlan) -> Iterator[str]:
    return (os.path.normpath(mount.target) for mount in plan.job.mounts)
