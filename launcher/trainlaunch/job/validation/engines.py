"""Checks what an engine does not support, and what the texts of a repository share that an engine runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainlaunch.gpu_names import AMD_GPU, NVIDIA_GPU
from trainlaunch.job.host_paths import below_repository
from trainlaunch.job.validation.context import ValidationContext, cannot
from trainlaunch.job.validation.shared import check_one_node, check_shared
from trainlaunch.job.values.scalar_reader import BAD
from trainlaunch.sanitize import shorten

MIN_CONTAINER_NAME_LENGTH = 2
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# Types of mounts that no engine has, each with the one that holds the same.
ENGINE_MOUNTS = {"pvc": "volume", "config": "bind"}
_CSV = "docker reads mounts as CSV, which drops carriage returns"

_SOURCE = "add env: {name} to {field}: the variable, or the secret of CI, that holds it"
_PATHS = frozenset({"bind", "code"})
_CLUSTERS = frozenset({"pvc", "config"})
_HEALTH = ("interval", "timeout", "retries", "start_period", "stall_after")


def check_engine(job: ValidationContext) -> None:
    """Report each stated field that an engine does not support."""
    name = job.value("name")
    if name is not None and len(name) < MIN_CONTAINER_NAME_LENGTH:
        cannot(job, "name", f"containers with a name of one character (name {name})", fix=f"write {name}-job")
    check_engine_fields(job)
    _check_labels(job)
    _check_paths(job)


def check_engine_fields(job: ValidationContext) -> None:
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


def _check_labels(job: ValidationContext) -> None:
    for key in job.value("labels") or {}:
        if "=" in key:
            what = f"label key with an equals sign ({shorten(key)})"
            fix = f"write {key.replace('=', '-')}"
            cannot(job, f"labels.{key}", what, fix=fix, why="docker reads --label KEY=VALUE up to the first =")


def _check_paths(job: ValidationContext) -> None:
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


def check_text(job: ValidationContext) -> None:
    """Report what no engine has, several nodes, and mounts that a checkout of the repository doesn't have."""
    check_shared(job, source_fix=_SOURCE)
    check_one_node(job)
    check_engine(job)
    if job.value("healthcheck.on_unhealthy") == "stop":
        why = "whoever runs this text asks after the job's health at most; `trainlaunch up` and a kubelet stop it"
        what = "way to stop an unhealthy job (healthcheck.on_unhealthy: stop)"
        cannot(job, "healthcheck.on_unhealthy", what, fix="write report", why=why)
    for index, mount in mounts_of(job):
        kind, source = mount.get("type"), str(mount.get("source") or ".")
        if kind in _CLUSTERS:
            fix = f"give it another one, like --set mounts.{index}.type=bind --set mounts.{index}.source=./data"
            cannot(job, f"mounts.{index}", f"{kind} mounts, and mounts.{index} asks for one", fix=fix)
        elif kind in _PATHS and not source.startswith("/") and below_repository(job.root.span.file, source) is None:
            why = "a runner has the repository alone, at a path that it chooses"
            fix = "move it into the repository, or write the whole path that the runner's machine has"
            cannot(
                job, f"mounts.{index}", f"{source} of mounts.{index}, which is outside the repository", fix=fix, why=why
            )


def mounts_of(job: ValidationContext) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the mounts that could be read, each with its index."""
    for index, mount in enumerate(job.value("mounts") or ()):
        if mount is not BAD and BAD not in mount.values():
            yield index, mount


def check_job_of_ci(job: ValidationContext, grace: str) -> None:
    """Report what a job of CI has no key for; `grace` says how long its runner lets a cancelled job end."""
    stated = [each for each in _HEALTH if job.value(f"healthcheck.{each}") is not None]
    if stated:
        why = "its runner starts the container with a process of its own and asks nobody whether the job in it is well"
        cannot(job, f"healthcheck.{stated[0]}", f"health check (healthcheck.{stated[0]})", fix="delete it", why=why)
    if job.value("stop_grace_period") is not None:
        cannot(job, "stop_grace_period", "stop_grace_period", fix=f"delete it: {grace}", why=grace)
    if job.value("pull_policy") == "never":
        cannot(job, "pull_policy", "pull_policy never", fix="write always", why="its runner pulls before each job")
    refuse_read_only_clone(job)
    deadline = job.value("active_deadline")
    if isinstance(deadline, int) and deadline % 60:
        what = f"active_deadline of {deadline} seconds"
        cannot(job, "active_deadline", what, fix=f"write {deadline // 60 + 1}m", why="it counts whole minutes")


def refuse_read_only_clone(job: ValidationContext) -> None:
    """Report parts of the repository that the job may not write to: a runner clones it into the container itself."""
    for index, mount in mounts_of(job):
        source = str(mount.get("source") or ".")
        read_only = mount.get("read_only") or mount.get("type") == "code"
        if mount.get("type") in _PATHS and not source.startswith("/") and read_only:
            what = f"read-only folder of the repository (mounts.{index})"
            why = "its runner clones the repository into the container, where the job may write to it"
            fix = f"add --set mounts.{index}.type=bind --set mounts.{index}.read_only=false"
            cannot(job, f"mounts.{index}.read_only", what, why=why, fix=fix)


def refuse_characters(job: ValidationContext, pattern: str, why: str, fields: tuple[str, ...]) -> None:
    """Report values of these fields in which one of these characters would not arrive."""
    for field, text in _texts(job):
        match = re.search(pattern, text) if field.startswith(fields) else None
        if match:
            what = f"way to write {shorten(match[0])} in {field}"
            cannot(job, field, what, fix=f"write {field} without it, or read the value from a file", why=why)


def _texts(job: ValidationContext) -> Iterator[tuple[str, str]]:
    for index, mount in mounts_of(job):
        yield from ((f"mounts.{index}.{key}", str(mount[key])) for key in ("source", "target") if mount.get(key))
    for block in ("env", "labels"):
        for name, value in (job.value(block) or {}).items():
            yield f"{block}.{name}", f"{name}={value}" if value is not BAD else ""
    for name in ("working_dir", "image"):
        yield name, str(job.value(name) or "")
    yield from ((f"command.{at}", str(each)) for at, each in enumerate(job.value("command") or ()))
    yield from ((f"image_entrypoint.{at}", str(each)) for at, each in enumerate(job.value("image_entrypoint") or ()))
    yield "script", str(job.value("script") or "")
