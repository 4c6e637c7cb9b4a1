"""What a plan asks for and its target has no word for: errors with the nearest thing to write, never a dropped field.

Reading the job file has refused what the target has no field for at all; here is what depends on the rendering.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.plan.launch_plan import LaunchPlan
from launcher.render.container import LABEL_PREFIX
from launcher.render.spelling import LONGEST_NAME, shortened

HOME = "/trainlaunch"  # where a Kubernetes container has its home and caches
_ANNOTATION = re.compile(
    r"(?:(?=[^/]{1,253}/)[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_NUMERIC_USER = re.compile(r"(\d+)(?::(\d+))?")


def unsayable(plan: LaunchPlan) -> tuple[Diagnostic, ...]:
    """Return what the plan's target can't say (TL401, errors), and notes on what it says differently (TL402, TL403)."""
    checks = _KUBERNETES if plan.target == "kubernetes" else _ENGINE
    found = [diagnostic for check in checks for diagnostic in check(plan)]
    return (*found, *_notes(plan))


def numeric_user(user: str | None) -> tuple[int, int] | None:
    """Return uid and gid on Kubernetes (1000 where unstated), or None for a name, which only an image resolves."""
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
    elif ids[0] == 0:
        yield _cannot(
            plan,
            "user",
            f"place for root under Pod Security restricted (user {user!r})",
            fix='write target_overrides.kubernetes.user: "1000"',
            why="a namespace that enforces restricted refuses the pod, and the Job waits without an error",
        )


def _cluster_groups(plan: LaunchPlan) -> Iterator[Diagnostic]:
    for group in plan.job.group_add:
        if not group.isdecimal():
            fix = f"write the number of {group!r}, as `getent group {group}` shows it"
            yield _cannot(plan, "group_add", f"named groups (group_add {group!r})", fix=fix)


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


def _engine_labels(plan: LaunchPlan) -> Iterator[Diagnostic]:
    for key in plan.job.labels:
        if "=" in key:
            what = f"label key with an equals sign ({key})"
            fix = f"write {key.replace('=', '-')}"
            yield _cannot(plan, f"labels.{key}", what, fix=fix, why="docker reads --label KEY=VALUE up to the first =")


def _cluster_annotations(plan: LaunchPlan) -> Iterator[Diagnostic]:
    for key in plan.job.annotations:
        if not _ANNOTATION.fullmatch(key):
            what = f"annotation key like {key!r}"
            fix = "write at most 63 letters, digits, -, _ and ., after a domain and a slash if need be"
            yield _cannot(plan, f"annotations.{key}", what, fix=fix)


_Check = Callable[[LaunchPlan], Iterator[Diagnostic]]
_ENGINE: tuple[_Check, ...] = (_engine_paths, _engine_labels, _reserved_labels)
_KUBERNETES: tuple[_Check, ...] = (
    _cluster_user,
    _cluster_groups,
    _cluster_mount_points,
    _cluster_annotations,
    _reserved_labels,
)
