"""Checks what Kubernetes does not support: the container, its user, its labels."""

from __future__ import annotations

import re

from trainlaunch.gpu_names import ALL_GPUS, gpu_resource_of
from trainlaunch.job.fields.kubernetes import LABEL_VALUE, QUALIFIED_NAME
from trainlaunch.job.fields.table import default
from trainlaunch.job.spec import numeric_user
from trainlaunch.job.validation.context import ValidationContext, cannot
from trainlaunch.job.validation.kubernetes_objects import check_platform
from trainlaunch.job.validation.shared import check_shared
from trainlaunch.job.values.scalar_reader import BAD
from trainlaunch.sanitize import shorten

MAX_LABEL_LENGTH = 63


def check(job: ValidationContext) -> None:
    """Report each field of the job file that a pod does not support."""
    check_shared(
        job,
        instead={"bind": "pvc", "volume": "pvc"},
        why="a cluster's nodes don't hold this host's files; type: code brings a folder of at most 900 KiB there",
        source_fix="add kubernetes: my-secret/{key} to {field}",
    )
    _require_limits(job)
    _check_fields(job)
    _check_devices(job)
    _check_user(job)
    _check_groups(job)
    _check_mount_points(job)
    _check_labels(job)
    for field in ("annotations", "kubernetes.annotations"):
        _check_annotations(job, field)
    check_platform(job)
    if job.value("patches"):
        from trainlaunch.job.validation.patches import check_operations  # few jobs have some

        check_operations(job)


def _require_limits(job: ValidationContext) -> None:
    for name, example in (("cpus", "4"), ("memory", "8Gi")):
        if name not in (job.value("resources") or {}):
            job.add(
                "TL106",
                "resources",
                f"resources.{name} is missing, and kubernetes requires it",
                why="without it the scheduler puts the pod on a node that has no room, and /dev/shm has no bound",
                fix=f"add {name}: {example} under resources",
            )


def _check_fields(job: ValidationContext) -> None:
    ulimits = job.value("ulimits")
    if ulimits:
        cannot(
            job,
            "ulimits",
            f"ulimits ({', '.join(ulimits)})",
            fix="write them under target_overrides.docker; the preflight raises the soft nofile to "
            "the hard limit itself",
        )
    signal = job.value("stop_signal")
    if signal is not None:
        cannot(
            job,
            "stop_signal",
            f"stop_signal ({signal}) that every cluster knows",
            why="lifecycle.stopSignal is an alpha field; a runtime follows the image's STOPSIGNAL",
            fix=f"write STOPSIGNAL {signal} in the image's Dockerfile, and stop_signal under target_overrides.docker",
        )
    gpus = job.value("resources.gpus")
    if gpus is not None and (gpus.ids or gpus.all):
        asked = f"[{', '.join(gpus.ids)}]" if gpus.ids else ALL_GPUS
        cannot(
            job,
            "resources.gpus",
            f"choice of GPUs (resources.gpus: {asked})",
            why="the device plugin chooses the devices; a pod only says how many",
            fix=f"write target_overrides.kubernetes.resources.gpus: {len(gpus.ids) or 1}",
        )


def _check_devices(job: ValidationContext) -> None:
    gpus = job.value("resources.gpus")
    vendor = job.value("resources.gpu_vendor") or default("resources.gpu_vendor")
    name = job.value("resources.gpu_resource") or gpu_resource_of(vendor)
    extended = job.value("resources.extended") or {}
    if gpus is not None and gpus.count and name in extended:
        job.add(
            "TL109",
            f"resources.extended.{name}",
            f"resources.gpus and resources.extended both ask for {name}",
            fix=f"delete {name} from resources.extended",
            why="a container has one number of each resource",
        )


def _check_user(job: ValidationContext) -> None:
    user = job.value("user")
    if job.value("kubernetes.run_as") == "assigned":
        _refuse_stated_ids(job)
        return
    ids = numeric_user(user)
    if ids is None:
        cannot(
            job,
            "user",
            f"named users (user {shorten(user)})",
            fix='write its number, as in user: "1000"',
            why="the API server checks runAsNonRoot by number and can't look into the image",
        )
    elif ids[0] == 0 and (job.value("kubernetes.pod_security") or "restricted") == "restricted":
        cannot(
            job,
            "user",
            f"place for root under Pod Security restricted (user {user})",
            fix='write target_overrides.kubernetes.user: "1000", or set kubernetes.pod_security to baseline',
            why="a namespace that enforces restricted refuses the pod, and the Job waits without an error",
        )


def _refuse_stated_ids(job: ValidationContext) -> None:
    """Report ids beside `run_as: assigned`: the cluster's own are a range that no job file knows."""
    elsewhere = "write user under target_overrides.docker, or null under target_overrides.kubernetes"
    for field, fix in (("user", elsewhere), ("kubernetes.fs_group", "delete it")):
        if job.value(field) is not None:
            job.add(
                "TL109",
                field,
                f"kubernetes.run_as is assigned, and {field} is set",
                fix=f"{fix}, or delete kubernetes.run_as",
                why="a cluster that assigns ids refuses pods that state others",
            )


def _check_groups(job: ValidationContext) -> None:
    for field, group in job.entries("group_add"):
        if not group.isdecimal():
            cannot(
                job,
                field,
                f"named groups (group_add {shorten(group)})",
                fix=f"write the number of {shorten(group)}, as `getent group {shorten(group)}` shows it",
            )


def _check_mount_points(job: ValidationContext) -> None:
    for field, mount in job.entries("mounts"):
        target = "" if mount.get("target") is BAD else mount.get("target", "")
        if ":" in target:
            cannot(
                job, f"{field}.target", f"mount point {shorten(target)}", fix="choose another target, without a colon"
            )


def _check_labels(job: ValidationContext) -> None:
    for field, value in job.entries("labels"):
        key = field.partition(".")[2]
        if re.fullmatch(QUALIFIED_NAME, key) and re.fullmatch(LABEL_VALUE, value):
            continue
        too_long = f"its value has {len(value)} characters, and {MAX_LABEL_LENGTH} fit"
        why_not = too_long if len(value) > MAX_LABEL_LENGTH else "labels have another form"
        job.add(
            "TL401",
            field,
            f"kubernetes can't hold the label {shorten(key)}: {why_not}",
            why=f"a label's name and value are at most {MAX_LABEL_LENGTH} letters, digits, dots, - and _",
            fix="move it to target_overrides.kubernetes.annotations, and write the label as null there",
        )


def _check_annotations(job: ValidationContext, field: str) -> None:
    for key in job.value(field) or {}:
        if not re.fullmatch(QUALIFIED_NAME, key):
            cannot(
                job,
                f"{field}.{key}",
                f"annotation key like {shorten(key)}",
                fix="write at most 63 letters, digits, -, _ and ., after a domain and a slash if need be",
            )
