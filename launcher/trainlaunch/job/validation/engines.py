"""Checks what an engine (docker run, Compose) does not support."""

from __future__ import annotations

import re

from trainlaunch.gpu_names import AMD_GPU, NVIDIA_GPU
from trainlaunch.job.names import shown
from trainlaunch.job.validation.fields import Checked, cannot
from trainlaunch.job.values.scalars import BAD

SHORTEST_CONTAINER_NAME = 2
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# Types of mounts that no engine has, each with the one that holds the same.
ENGINE_MOUNTS = {"pvc": "volume", "config": "bind"}
_CSV = "docker reads mounts as CSV, which drops carriage returns"


def check_engine(job: Checked) -> None:
    """Report each stated field that an engine does not support."""
    name = job.value("name")
    if name is not None and len(name) < SHORTEST_CONTAINER_NAME:
        cannot(job, "name", f"containers with a name of one character (name {name})", fix=f"write {name}-job")
    check_engine_fields(job)
    _check_labels(job)
    _check_paths(job)


def check_engine_fields(job: Checked) -> None:
    """Report each stated field that only a cluster has a word for."""
    if job.value("annotations"):
        fix = "write them as labels, or move them to target_overrides.kubernetes.annotations"
        cannot(job, "annotations", "annotations", fix=fix)
    move = "move it to target_overrides.kubernetes.resources"
    if job.value("resources.ephemeral_storage") is not None:
        what = "limit of a container's own disk (resources.ephemeral_storage)"
        cannot(job, "resources.ephemeral_storage", what, fix=move)
    extended = job.value("resources.extended")
    if extended:
        cannot(job, "resources.extended", f"extended resources ({', '.join(extended)})", fix=move)
    named = job.value("resources.gpu_resource")
    if named not in {None, NVIDIA_GPU, AMD_GPU}:
        what = f"names of GPU resources (resources.gpu_resource: {named})"
        fix = f"{move}; here list the device, as in resources.gpus: [MIG-uuid]"
        cannot(job, "resources.gpu_resource", what, fix=fix)


def _check_labels(job: Checked) -> None:
    for key in job.value("labels") or {}:
        if "=" in key:
            what = f"label key with an equals sign ({shown(key)})"
            fix = f"write {key.replace('=', '-')}"
            cannot(job, f"labels.{key}", what, fix=fix, why="docker reads --label KEY=VALUE up to the first =")


def _check_paths(job: Checked) -> None:
    for name, secret in (job.value("secrets") or {}).items():
        if secret is not BAD and _CONTROL.search(str(secret.get("file", ""))):
            what = f"way to write the control character in the path of secrets.{name}.file"
            cannot(job, f"secrets.{name}.file", what, fix="rename the file", why=_CSV)
    for index, mount in enumerate(job.value("mounts") or ()):
        stated = () if mount is BAD else (mount.get("source"), mount.get("target"))
        if mount is not BAD and mount.get("type") == "tmpfs" and ":" in str(mount.get("target")):
            what = f"way to write the colon in {mount.get('target')}, where mounts.{index} asks for a tmpfs"
            why = "docker reads --tmpfs PATH:OPTIONS up to the first colon"
            cannot(job, f"mounts.{index}.target", what, fix="choose a target without a colon", why=why)
        if any(isinstance(path, str) and _CONTROL.search(path) for path in stated):
            cannot(
                job,
                f"mounts.{index}",
                f"way to write the control character in a path of mounts.{index}",
                fix="rename the folder",
                why=_CSV,
            )
