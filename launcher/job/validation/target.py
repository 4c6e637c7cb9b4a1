"""Checks what the chosen target can't say: an error with the nearest equivalent, never a dropped field."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from launcher.job.reserved import KUBERNETES_LABEL_PREFIX, LABEL_PREFIX
from launcher.job.validation.fields import Checked, cannot
from launcher.job.values.scalars import BAD

_INSTEAD = {
    ("kubernetes", "bind"): "pvc",
    ("kubernetes", "volume"): "pvc",
    ("docker", "pvc"): "volume",
    ("docker", "config"): "bind",
    ("compose", "pvc"): "volume",
    ("compose", "config"): "bind",
}
_ONE_NODE = {
    "docker": "docker run starts one container",
    "local": "it starts one process of this host",
}


def check_target(job: Checked) -> None:
    """Report each stated field that the target has no word for."""
    _check_mount_types(job)
    if job.value("secrets"):
        from launcher.job.validation.secrets import check_secrets

        check_secrets(job)
    _check_reserved_labels(job)
    if job.value("patches"):
        from launcher.job.validation.patches import check_patches  # few jobs have some

        check_patches(job)
    nodes = job.value("torchrun.nnodes")
    if nodes is not None and nodes > 1:
        _check_nodes(job, nodes)
    if job.target == "kubernetes":
        from launcher.job.validation.kubernetes import check_cluster

        check_cluster(job)
    elif job.target == "local":
        from launcher.job.validation.engines import check_engine_fields
        from launcher.job.validation.local import check_local

        check_engine_fields(job)
        check_local(job)
    else:
        from launcher.job.validation.engines import check_engine

        check_engine(job)


def _check_nodes(job: Checked, nodes: int) -> None:
    """Report several nodes on a target that has one, and GPUs that two containers of one host would share."""
    if job.target == "kubernetes":
        return  # its kinds have their own rules
    if job.target != "compose":
        what = f"second node (torchrun.nnodes: {nodes})"
        fix = f"take --target compose, which starts {nodes} containers on one network, or write 1 for {job.target}"
        cannot(job, "torchrun.nnodes", what, why=_ONE_NODE[job.target], fix=fix)
        return
    gpus = job.value("resources.gpus")
    if gpus and job.value("resources.gpu_vendor") == "amd":
        fix = "write target_overrides.compose.torchrun.nnodes: 1, with all GPUs for one node"
        cannot(job, "resources.gpu_vendor", f"GPUs of AMD for each of {nodes} nodes", fix=fix)
    elif gpus is not None and (gpus.ids or gpus.all):
        asked = f"[{', '.join(gpus.ids)}]" if gpus.ids else "all"
        cannot(
            job,
            "resources.gpus",
            f"GPUs {asked} for each of {nodes} nodes",
            why="all nodes run on one host, and NCCL refuses a GPU that two ranks share",
            fix=f"write how many each node gets, like gpus: {max(1, len(gpus.ids) // nodes)}",
        )


def _check_mount_types(job: Checked) -> None:
    mounts = [each for each in job.value("mounts") or () if each is not BAD and BAD not in each.values()]
    for index, mount in enumerate(job.value("mounts") or ()):
        if mount not in mounts or (job.target, mount.get("type")) not in _INSTEAD:
            continue
        cannot(
            job,
            f"mounts.{index}",
            f"{mount['type']} mounts, and mounts.{index} asks for one at {mount.get('target')}",
            why="a cluster's nodes don't hold this machine's files" if job.target == "kubernetes" else "",
            fix=f"write target_overrides.{job.target}.mounts: {_mounts_instead(job.target, mounts)}",
        )


def _mounts_instead(target: str, mounts: list[Mapping[str, Any]]) -> str:
    """Return all mounts as the target can hold them; lists replace, so the whole list is what to type."""
    written = []
    for mount in mounts:
        kind = _INSTEAD.get((target, mount.get("type", "")), mount.get("type"))
        parts = [f"type: {kind}"]
        if kind not in {"tmpfs", "scratch"}:
            parts.append(f"source: {_source_instead(kind, mount)}")
        parts.append(f"target: {mount.get('target')}")
        if mount.get("read_only"):
            parts.append("read_only: true")
        written.append(f"{{{', '.join(parts)}}}")
    return f"[{', '.join(written)}]"


def _source_instead(kind: str | None, mount: Mapping[str, Any]) -> str:
    source = str(mount.get("source") or mount.get("target"))
    if kind == mount.get("type"):
        return source
    base = re.sub(r"[^a-z0-9]+", "-", posixpath.basename(posixpath.normpath(source)).lower()).strip("-") or "data"
    return f"./{base}" if kind == "bind" else base


def _check_reserved_labels(job: Checked) -> None:
    for key in job.value("labels") or {}:
        if key.startswith((LABEL_PREFIX, KUBERNETES_LABEL_PREFIX)):
            what = f"second place for {key}, which trainlaunch itself writes"
            cannot(job, f"labels.{key}", what, fix="choose another prefix for the label")
