"""Checks what an engine does not support."""

from __future__ import annotations

import re

from trainlaunch.gpu_names import AMD_GPU, NVIDIA_GPU
from trainlaunch.job.validation.context import ValidationContext, cannot
from trainlaunch.sanitize import shorten

MIN_CONTAINER_NAME_LENGTH = 2
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# Types of mounts that no engine has, each with the one that holds the same.
ENGINE_MOUNTS = {"pvc": "volume", "config": "bind"}
_CSV = "docker reads mounts as CSV, which drops carriage returns"


def check_engine(job: ValidationContext) -> None:
    """Report each field of the job file that an engine does not support."""
    name = job.value("name")
    if name is not None and len(name) < MIN_CONTAINER_NAME_LENGTH:
        cannot(job, "name", f"container names of one character (name {name})", fix=f"write {name}-job")
    check_engine_fields(job)
    _check_labels(job)
    _check_paths(job)


def check_engine_fields(job: ValidationContext) -> None:
    """Report each field of the job file that only a cluster has."""
    if job.value("annotations"):
        cannot(
            job,
            "annotations",
            "annotations",
            fix="write them as labels, or move them to target_overrides.kubernetes.annotations",
        )
    move = "move it to target_overrides.kubernetes.resources"
    if job.value("resources.ephemeral_storage") is not None:
        cannot(
            job,
            "resources.ephemeral_storage",
            "limit of a container's own disk (resources.ephemeral_storage)",
            fix=move,
        )
    extended = job.value("resources.extended")
    if extended:
        cannot(job, "resources.extended", f"extended resources ({', '.join(extended)})", fix=move)
    named = job.value("resources.gpu_resource")
    if named not in {None, NVIDIA_GPU, AMD_GPU}:
        cannot(
            job,
            "resources.gpu_resource",
            f"names of GPU resources (resources.gpu_resource: {named})",
            fix=f"{move}; here list the device, as in resources.gpus: [MIG-uuid]",
        )


def _check_labels(job: ValidationContext) -> None:
    for key in job.value("labels") or {}:
        if "=" in key:
            cannot(
                job,
                f"labels.{key}",
                f"label key with an equals sign ({shorten(key)})",
                fix=f"write {key.replace('=', '-')}",
                why="docker reads --label KEY=VALUE up to the first =",
            )


def _check_paths(job: ValidationContext) -> None:
    for field, secret in job.entries("secrets"):
        if _CONTROL.search(str(secret.get("file", ""))):
            cannot(
                job,
                f"{field}.file",
                f"way to write the control character in the path of {field}.file",
                fix="rename the file",
                why=_CSV,
            )
    for field, mount in job.entries("mounts"):
        stated = mount.get("source"), mount.get("target")
        if mount.get("type") == "tmpfs" and ":" in str(mount.get("target")):
            cannot(
                job,
                f"{field}.target",
                f"way to write the colon in {mount.get('target')}, where {field} asks for a tmpfs",
                fix="choose a target without a colon",
                why="docker reads --tmpfs PATH:OPTIONS up to the first colon",
            )
        if any(isinstance(path, str) and _CONTROL.search(path) for path in stated):
            cannot(
                job,
                field,
                f"way to write the control character in a path of {field}",
                fix="rename the folder",
                why=_CSV,
            )
