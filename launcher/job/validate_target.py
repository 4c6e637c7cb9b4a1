"""Checks what the chosen target can't say: an error with the nearest equivalent, never a dropped field."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from launcher.job.field import SUBDOMAIN
from launcher.job.names import shown
from launcher.job.scalars import BAD
from launcher.job.validate import Checked

_INSTEAD = {
    ("kubernetes", "bind"): "pvc",
    ("kubernetes", "volume"): "pvc",
    ("docker", "pvc"): "volume",
    ("docker", "config"): "bind",
    ("compose", "pvc"): "volume",
    ("compose", "config"): "bind",
}
LONGEST_LABEL = 63
_LABEL_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_KEY = re.compile(rf"(?:{SUBDOMAIN}/)?{_LABEL_NAME}")
_LABEL_VALUE = re.compile(rf"(?:{_LABEL_NAME})?")


def check_target(job: Checked) -> None:
    """Report each stated field that the target has no word for."""
    _check_mount_types(job)
    _check_secret_sources(job)
    if job.target == "kubernetes":
        _require_limits(job)
        _check_cluster_fields(job)
        _check_cluster_labels(job)
    else:
        _check_engine_fields(job)


def _cannot(job: Checked, field: str, what: str, *, fix: str, why: str = "") -> None:
    job.add("TL401", field, f"{job.target} has no {what}", fix=fix, why=why)


def _check_mount_types(job: Checked) -> None:
    mounts = [each for each in job.value("mounts") or () if each is not BAD and BAD not in each.values()]
    for index, mount in enumerate(job.value("mounts") or ()):
        if mount not in mounts or (job.target, mount.get("type")) not in _INSTEAD:
            continue
        _cannot(
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


def _check_secret_sources(job: Checked) -> None:
    source = "kubernetes" if job.target == "kubernetes" else "env"
    for name, secret in (job.value("secrets") or {}).items():
        if secret is not BAD and source not in secret:
            example = f"my-secret/{name.lower().replace('_', '-')}" if source == "kubernetes" else name
            field = f"secrets.{name}"
            _cannot(job, field, f"source for {field}", fix=f"add {source}: {example} to {field}")


def _require_limits(job: Checked) -> None:
    for name, example in (("cpus", "4"), ("memory", "8Gi")):
        if name not in (job.value("resources") or {}):
            job.add(
                "TL106",
                "resources",
                f"resources.{name} is missing, and kubernetes requires it",
                why="without it the scheduler puts the pod on a node that has no room, and /dev/shm has no bound",
                fix=f"add resources.{name}: {example}",
            )


def _check_cluster_fields(job: Checked) -> None:
    ulimits = job.value("ulimits")
    if ulimits:
        fix = "write them under target_overrides.docker; the preflight raises the soft nofile to the hard limit itself"
        _cannot(job, "ulimits", f"ulimits ({', '.join(ulimits)})", fix=fix)
    signal = job.value("stop_signal")
    if signal is not None:
        _cannot(
            job,
            "stop_signal",
            f"stop_signal ({signal}) that every cluster knows",
            why="lifecycle.stopSignal is an alpha field; a runtime follows the image's STOPSIGNAL",
            fix=f"write STOPSIGNAL {signal} in the image's Dockerfile, and stop_signal under target_overrides.docker",
        )
    gpus = job.value("resources.gpus")
    if gpus is not None and (gpus.ids or gpus.all):
        asked = f"[{', '.join(gpus.ids)}]" if gpus.ids else "all"
        _cannot(
            job,
            "resources.gpus",
            f"choice of GPUs (resources.gpus: {asked})",
            why="the device plugin chooses the devices; a pod only says how many",
            fix=f"write target_overrides.kubernetes.resources.gpus: {len(gpus.ids) or 1}",
        )


def _check_cluster_labels(job: Checked) -> None:
    for key, value in (job.value("labels") or {}).items():
        if value is BAD or (_LABEL_KEY.fullmatch(key) and _LABEL_VALUE.fullmatch(value)):
            continue
        too_long = f"its value has {len(value)} characters, and {LONGEST_LABEL} fit"
        why_not = too_long if len(value) > LONGEST_LABEL else "labels have another form"
        job.add(
            "TL401",
            f"labels.{key}",
            f"kubernetes can't hold the label {shown(key)}: {why_not}",
            why=f"a label's name and value are at most {LONGEST_LABEL} letters, digits, dots, - and _",
            fix="move it to target_overrides.kubernetes.annotations, and write the label as null there",
        )


def _check_engine_fields(job: Checked) -> None:
    if job.value("annotations"):
        fix = "write them as labels, or move them to target_overrides.kubernetes.annotations"
        _cannot(job, "annotations", "annotations", fix=fix)
    move = "move it to target_overrides.kubernetes.resources"
    if job.value("resources.ephemeral_storage") is not None:
        what = "limit of a container's own disk (resources.ephemeral_storage)"
        _cannot(job, "resources.ephemeral_storage", what, fix=move)
    extended = job.value("resources.extended")
    if extended:
        _cannot(job, "resources.extended", f"extended resources ({', '.join(extended)})", fix=move)
    named = job.value("resources.gpu_resource")
    if named not in {None, "nvidia.com/gpu"}:
        what = f"names of GPU resources (resources.gpu_resource: {named})"
        fix = f"{move}; here list the device, as in resources.gpus: [MIG-uuid]"
        _cannot(job, "resources.gpu_resource", what, fix=fix)
