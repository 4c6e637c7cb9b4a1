"""What a job asks for and its target has no word for: errors with a code and the nearest thing to write, never a dropped field."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.job.spec import Mount
from launcher.plan.launch_plan import LaunchPlan
from launcher.render.container import LABEL_PREFIX
from launcher.render.spelling import LONGEST_NAME, shortened

HOME = "/trainlaunch"  # where a Kubernetes container has its home and caches
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_LABEL_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_DOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_NUMERIC_USER = re.compile(r"(\d+)(?::(\d+))?")


def unsayable(plan: LaunchPlan) -> tuple[Diagnostic, ...]:
    """Return what the plan's target can't say (TL401, errors), and notes on what it says differently (TL402, TL403)."""
    checks = _KUBERNETES if plan.target == "kubernetes" else _ENGINE
    found = [diagnostic for check in checks for diagnostic in check(plan)]
    return (*found, *_notes(plan))


def numeric_user(user: str | None) -> tuple[int, int] | None:
    """Return uid and gid as Kubernetes runs them (1000 where unstated), or None for a name, which only an image resolves."""
    match = _NUMERIC_USER.fullmatch("1000" if user is None else user)
    return (int(match[1]), int(match[2] or 1000)) if match else None


def _cannot(plan: LaunchPlan, field: str, what: str, *, fix: str, why: str = "") -> Diagnostic:
    return Diagnostic(
        code="TL401", message=f"{plan.target} has no {what}", fix=fix, why=why, span=plan.job.span(field), field=field
    )


def _notes(plan: LaunchPlan) -> Iterator[Diagnostic]:
    longest = LONGEST_NAME - 9 if plan.job.kubernetes.kind == "job" and not plan.name_fixed else LONGEST_NAME
    if plan.target == "kubernetes" and len(plan.name) > longest:
        yield Diagnostic(
            code="TL402",
            message=f"name has {len(plan.name)} characters and {longest} fit beside the suffix, "
            f"so it is shortened to {shortened(plan.name, longest)}",
            why=f"the name becomes a label of the job's pods, and labels hold {LONGEST_NAME} characters",
            fix=f"give it a name of at most {longest} characters to choose the short form yourself",
            severity=Severity.INFO,
            span=plan.job.span("name"),
            field="name",
        )
    if plan.job.image_entrypoint is None:
        yield Diagnostic(
            code="TL403",
            message="image_entrypoint is not stated, so an ENTRYPOINT that the image has is not run",
            why="rendering asks no engine; the preflight takes the place of the image's ENTRYPOINT",
            fix="write image_entrypoint: [] to drop it on purpose, or the argv that `docker image inspect` shows",
            severity=Severity.INFO,
            field="image_entrypoint",
        )


def _foreign_mounts(plan: LaunchPlan) -> Iterator[Diagnostic]:
    instead = {
        ("kubernetes", "bind"): "pvc",
        ("kubernetes", "volume"): "pvc",
        ("docker", "pvc"): "volume",
        ("docker", "config"): "bind",
        ("compose", "pvc"): "volume",
        ("compose", "config"): "bind",
    }
    for index, mount in enumerate(plan.job.mounts):
        other = instead.get((plan.target, mount.type))
        if other:
            yield _cannot(
                plan,
                f"mounts.{index}",
                f"{mount.type} mounts, as mounts asks for at {mount.target}",
                fix=f"write target_overrides.{plan.target}.mounts: "
                f"[{{type: {other}, source: {_example_source(mount, other)}, target: {mount.target}}}]",
                why="a node of a cluster doesn't hold this machine's files" if plan.target == "kubernetes" else "",
            )


def _example_source(mount: Mount, other: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", os.path.basename(os.path.normpath(mount.source or "data")).lower()).strip("-")
    return f"./{name or 'data'}" if other == "bind" else name or "data"


def _engine_paths(plan: LaunchPlan) -> Iterator[Diagnostic]:
    for index, mount in enumerate(plan.job.mounts):
        if re.search(r"[\x00-\x1f\x7f]", (mount.source or "") + mount.target):
            yield _cannot(
                plan,
                f"mounts.{index}",
                f"way to write the control character in the path of the mount at {mount.target!r}",
                fix="rename the folder",
                why="docker reads mounts as CSV, which drops carriage returns",
            )


def _engine_resources(plan: LaunchPlan) -> Iterator[Diagnostic]:
    resources = plan.job.resources
    move = f"put it under target_overrides.kubernetes.resources, out of the way of {plan.target}"
    if resources.ephemeral_storage is not None:
        yield _cannot(plan, "resources.ephemeral_storage", "limit of a container's own disk", fix=move)
    if resources.extended:
        named = ", ".join(resources.extended)
        yield _cannot(plan, "resources.extended", f"extended resources ({named})", fix=move)
    if resources.gpu_resource != "nvidia.com/gpu":
        yield _cannot(
            plan,
            "resources.gpu_resource",
            f"GPU resource names ({resources.gpu_resource})",
            fix="list the device, as in resources.gpus: [MIG-uuid], and " + move,
        )


def _engine_metadata(plan: LaunchPlan) -> Iterator[Diagnostic]:
    if plan.job.annotations:
        yield _cannot(
            plan,
            "annotations",
            f"annotations ({', '.join(plan.job.annotations)})",
            fix="write them as labels, or put them under target_overrides.kubernetes.annotations",
        )


def _secret_sources(plan: LaunchPlan) -> Iterator[Diagnostic]:
    on_cluster = plan.target == "kubernetes"
    for name, secret in plan.job.secrets.items():
        if (secret.kubernetes if on_cluster else secret.env) is None:
            field = f"secrets.{name}"
            source = f"kubernetes: my-secret/{name.lower()}" if on_cluster else f"env: {name}"
            yield _cannot(plan, field, f"source for {field}", fix=f"add {source} to {field}")


def _cluster_user(plan: LaunchPlan) -> Iterator[Diagnostic]:
    user = plan.job.user
    ids = numeric_user(user)
    if ids is None:
        yield _cannot(
            plan,
            "user",
            f"named users (user {user!r})",
            fix='write its number, as in user: "1000"',
            why="the API server checks runAsNonRoot by number and can't look into the image",
        )
    elif ids[0] == 0 or ids[1] == 0:
        yield _cannot(
            plan,
            "user",
            f"place for root under Pod Security restricted (user {user!r})",
            fix='write target_overrides.kubernetes.user: "1000"',
            why="a namespace that enforces restricted refuses the pod, and the Job waits without an error",
        )
    for group in plan.job.group_add:
        if not group.isdecimal():
            fix = f"write the number of {group!r}, as `getent group {group}` shows it"
            yield _cannot(plan, "group_add", f"named groups (group_add {group!r})", fix=fix)


def _cluster_process(plan: LaunchPlan) -> Iterator[Diagnostic]:
    job = plan.job
    if job.stop_signal is not None:
        yield _cannot(
            plan,
            "stop_signal",
            f"field for stop_signal {job.stop_signal} that every cluster has",
            fix=f"write STOPSIGNAL {job.stop_signal} in the image's Dockerfile and put stop_signal under "
            "target_overrides.docker",
            why="lifecycle.stopSignal is an alpha field; a runtime follows the image's STOPSIGNAL",
        )
    if job.ulimits:
        yield _cannot(
            plan,
            "ulimits",
            f"ulimits ({', '.join(limit.name for limit in job.ulimits)})",
            fix="put them under target_overrides.docker; the preflight raises the soft nofile to the hard limit itself",
        )


def _cluster_resources(plan: LaunchPlan) -> Iterator[Diagnostic]:
    resources = plan.job.resources
    for name, value, example in (("cpus", resources.cpus, "4"), ("memory", resources.memory, "8Gi")):
        if value is None:
            field = f"resources.{name}"
            yield Diagnostic(
                code="TL106",
                message=f"{field} is missing, and kubernetes requires it",
                why="without it the scheduler puts the pod on a node that has no room, and /dev/shm has no bound",
                fix=f"write {field}: {example}",
                field=field,
            )
    if plan.gpus.ids or plan.gpus.all:
        asked = f"[{', '.join(plan.gpus.ids)}]" if plan.gpus.ids else "all"
        count = len(plan.gpus.ids) or 1
        fix = f"write target_overrides.kubernetes.resources.gpus: {count}"
        why = "the device plugin chooses the devices; a pod only says how many"
        yield _cannot(plan, "resources.gpus", f"choice of GPU devices (resources.gpus {asked})", fix=fix, why=why)


def _cluster_labels(plan: LaunchPlan) -> Iterator[Diagnostic]:
    for key, value in plan.job.labels.items():
        domain, _, name = key.rpartition("/")
        fits = _LABEL_NAME.fullmatch(name) and (("/" not in key) or _LABEL_DOMAIN.fullmatch(domain))
        if not (fits and _LABEL_VALUE.fullmatch(value)):
            yield _cannot(
                plan,
                f"labels.{key}",
                f"room in a label for {key}: {value[:LONGEST_NAME]!r} ({len(value)} characters)",
                fix="write it under annotations, which hold any text",
                why=f"a label's value is at most {LONGEST_NAME} letters, digits, '-', '_' and '.'",
            )


def _cluster_mount_points(plan: LaunchPlan) -> Iterator[Diagnostic]:
    for index, mount in enumerate(plan.job.mounts):
        if ":" in mount.target or os.path.normpath(mount.target) == HOME:
            what = f"mount point {mount.target}"
            yield _cannot(plan, f"mounts.{index}", what, fix="choose another target, without a colon")


def _reserved_labels(plan: LaunchPlan) -> Iterator[Diagnostic]:
    for key in plan.job.labels:
        if key.startswith((LABEL_PREFIX, "trainlaunch.dev/")):
            field = f"labels.{key}"
            what = f"second place for {key}, which trainlaunch itself writes"
            yield _cannot(plan, field, what, fix="choose another prefix for the label")


_Check = Callable[[LaunchPlan], Iterator[Diagnostic]]
_ENGINE: tuple[_Check, ...] = (
    _foreign_mounts,
    _engine_paths,
    _engine_resources,
    _engine_metadata,
    _secret_sources,
    _reserved_labels,
)
_KUBERNETES: tuple[_Check, ...] = (
    _foreign_mounts,
    _secret_sources,
    _cluster_user,
    _cluster_process,
    _cluster_resources,
    _cluster_labels,
    _cluster_mount_points,
    _reserved_labels,
)
